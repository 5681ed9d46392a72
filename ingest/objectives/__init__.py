"""Objectives, how they are held against runs, and where the verdicts are sent."""
