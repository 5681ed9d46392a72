"""Timelines of Snabb processes: the ring, its events and lags, breaths."""
