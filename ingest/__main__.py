"""`python -m ingest` is `tailboard`."""

from ingest.cli import main

main()
