"""The report as a live page: its selections, a cache of answers that all readers share, the server."""
