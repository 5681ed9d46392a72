"""`python -m ingest` is `tailboard`."""

import sys

try:
    from ingest.cli import main
except KeyboardInterrupt:  # while the program is still being imported
    sys.exit(130)

main()
