"""What fio writes: histogram logs, raw latency logs, JSON, and what is known to be wrong with them."""
