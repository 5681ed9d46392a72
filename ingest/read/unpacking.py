"""base64 and zlib: by the packages pybase64 and isal where they are installed (extra `fast`), else by the standard library.

What these refuse is given to the standard library, which alone decides what is damaged, and says why.
"""

from __future__ import annotations

import binascii
import zlib
from importlib import import_module
from typing import Any


def _installed(name: str) -> Any:
    """Return a module, None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


PYBASE64, ISAL = _installed("pybase64"), _installed("isal.isal_zlib")


def from_base64(text: bytes) -> bytes:
    """Return what strict base64 text holds; binascii.Error says why it holds nothing."""
    if PYBASE64 is not None:
        try:
            data: bytes = PYBASE64.b64decode(text, None, True)  # `validate`: named, it takes a third longer
        except binascii.Error:
            return binascii.a2b_base64(text, strict_mode=True)
        return data
    return binascii.a2b_base64(text, strict_mode=True)


def inflated(data: bytes | memoryview) -> bytes:
    """Return what a zlib stream holds, whatever follows it; zlib.error says why it holds nothing."""
    if ISAL is not None:
        try:
            body: bytes = ISAL.decompress(data)
        except ISAL.error:
            return zlib.decompress(data)
        return body
    return zlib.decompress(data)
