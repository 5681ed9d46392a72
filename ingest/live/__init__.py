"""What goes on while data come in: runs that grow, and a page that keeps up with them."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

USUAL = 700, 10, 10  # thresholds of Python's collector


@contextmanager
def heeding(heed: Callable[[int, object], None], numbers: Iterable[int] = (signal.SIGINT, signal.SIGTERM)) -> Iterator[None]:
    """Have `heed` called for signals inside; in a thread that is not the main one, which takes none, none is set.

    Garbage is collected as Python does by itself: commands that end soon hardly ever look for it, see cli.
    """
    collecting = gc.get_threshold()
    gc.set_threshold(*USUAL)
    main = threading.current_thread() is threading.main_thread()
    before = [(number, signal.signal(number, heed)) for number in numbers] if main else []
    try:
        yield
    finally:
        gc.set_threshold(*collecting)
        for number, handler in before:
            signal.signal(number, handler)
