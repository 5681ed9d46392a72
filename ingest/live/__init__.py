"""What goes on while data come in: runs that grow, and a page that keeps up with them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def heeding(heed: Callable[[int, object], None], numbers: Iterable[int] = (signal.SIGINT, signal.SIGTERM)) -> Iterator[None]:
    """Have `heed` called for signals inside; in a thread that is not the main one, which takes none, nothing is done."""
    main = threading.current_thread() is threading.main_thread()
    before = [(number, signal.signal(number, heed)) for number in numbers] if main else []
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
