"""What the numbers must be, written a second time: plain Python, nothing of `ingest`, nothing of NumPy."""
