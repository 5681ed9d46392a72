"""Objectives, how they are held against runs, and whom the verdicts are sent to."""
