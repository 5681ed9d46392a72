#!/usr/bin/env bash
# After a CBT run: its archives into the store, each as a load of its own. It may be run again at any time.
#
#   cbt.py --archive="$archive" tests.yaml
#   TAILBOARD_STORE=sqlite:/srv/latency.db after-cbt.sh "$archive"
#
# TAILBOARD_STORE  where to (default: sqlite:tailboard.db in the working directory)
# TAILBOARD_RUN    first word of the runs' names: cbt/FOLDER/PERMUTATION (default: cbt)
# TAILBOARD_JOBS   processes that read (default: one a core)
#
# Ends as tailboard load does: 0 loaded or nothing new, 3 an archive is refused, 4 the store is unavailable or refuses.
set -euo pipefail

if [ $# = 0 ]; then
  echo "usage: after-cbt.sh ARCHIVE..." >&2
  exit 2
fi
exec tailboard load --run "${TAILBOARD_RUN:-cbt}" --each --jobs "${TAILBOARD_JOBS:-$(nproc)}" -- "$@"
