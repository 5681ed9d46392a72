"""Timelines of Snabb processes: the ring, its events, lags, breaths."""
