"""Histograms that other tools write or answer when they are polled, each by itself on a line or in a document."""
