"""Interval logs of HdrHistogram: lines, payloads, clocks, tags."""
