"""fio's files: histogram logs, raw latency logs, JSON, and their known faults."""
