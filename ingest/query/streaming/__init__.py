"""Long logs answered window by window, in memory that does not grow."""
