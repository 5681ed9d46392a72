"""Logs of single operations in lines: described columns, NDJSON, operation logs, smallfile, YCSB."""
