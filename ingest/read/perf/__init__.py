"""What `perf script` prints: samples and their moments, requests and system calls."""
