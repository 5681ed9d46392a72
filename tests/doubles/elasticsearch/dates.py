"""Dates as the server reads and writes them: milliseconds since 1970 in UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tests.doubles.elasticsearch.errors import CannotDo

DEFAULT_FORMAT = "strict_date_optional_time||epoch_millis"
KNOWN = ("strict_date_optional_time", "date_optional_time", "strict_date_optional_time_nanos", "epoch_millis", "epoch_second")
ISO = re.compile(
    r"(?P<y>\d{4})(?:-(?P<mo>\d{2})(?:-(?P<d>\d{2})(?:T(?:(?P<h>\d{2})(?::(?P<mi>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?)?)?"
    r"(?P<z>Z|[+-]\d{2}(?::?\d{2})?)?)?)?)?"
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = re.compile(r"now((?:[+-]\d+[smhHdw])*)")
SECONDS = {"s": 1, "m": 60, "h": 3600, "H": 3600, "d": 86400, "w": 604800}
DURATION = re.compile(r"([+-]?\d+)(ms|s|m|h|d)")
MILLIS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class NotADate(ValueError):
    """The text is no date in the formats asked for."""


def check_format(pattern: str) -> str:
    """Return the format, or say that the double does not know one of its parts."""
    for part in pattern.split("||"):
        if part not in KNOWN:
            raise CannotDo(f"date format [{part}]")
    return pattern


def _iso(text: str, *, up: bool) -> int:
    match = ISO.fullmatch(text)
    if match is None:
        raise NotADate(text)
    part = match.groupdict()
    try:
        start = datetime(
            int(part["y"]), int(part["mo"] or 1), int(part["d"] or 1),
            int(part["h"] or 0), int(part["mi"] or 0), int(part["s"] or 0), tzinfo=UTC,
        )  # fmt: skip
    except ValueError as error:
        raise NotADate(text) from error
    zone = part["z"]
    shift = 0
    if zone and zone != "Z":
        digits = zone[1:].replace(":", "").ljust(4, "0")
        shift = (int(digits[:2]) * 60 + int(digits[2:])) * (-1 if zone[0] == "-" else 1) * 60_000
    millis = (start - EPOCH) // timedelta(milliseconds=1) + int((part["f"] or "0").ljust(9, "0")[:3]) - shift
    return _last_millisecond(millis, part) if up else millis


def _last_millisecond(millis: int, part: dict[str, str | None]) -> int:
    """Return the end of what the text leaves open: a day without a time lasts until its last millisecond."""
    if part["f"]:
        return millis
    if part["s"]:
        return millis + 999
    if part["mi"]:
        return millis + 59_999
    if part["h"]:
        return millis + 3_599_999
    if part["d"]:
        return millis + 86_399_999
    year, month = int(part["y"] or 0), int(part["mo"] or 12) + 1
    after = datetime(year + (month > 12), (month - 1) % 12 + 1, 1, tzinfo=UTC)
    return (after - EPOCH) // timedelta(milliseconds=1) - 1


def millis_of(value: object, pattern: str = DEFAULT_FORMAT, *, up: bool = False, now: int | None = None) -> int:
    """Return a date's milliseconds; `up` rounds what the text leaves open to its end, as gt and lte do."""
    text = str(value) if not isinstance(value, float) else str(int(value))
    if isinstance(value, str) and now is not None and text.startswith("now"):
        match = NOW.fullmatch(text)
        if match is None:
            raise CannotDo(f"date math [{text}]")
        return now + sum(int(step[:-1]) * SECONDS[step[-1]] * 1000 for step in re.findall(r"[+-]\d+.", match.group(1)))
    if "||" in text:
        raise CannotDo(f"date math [{text}]")
    if isinstance(value, int) and 1000 <= value <= 9999 and pattern != "epoch_millis" and "_time" in pattern:
        raise CannotDo(f"the number {value} as a date: the server's first format takes four digits for a year")
    for part in pattern.split("||"):
        if part == "epoch_millis" and re.fullmatch(r"-?\d+(\.\d+)?", text):
            return int(float(text)) if "." in text else int(text)
        if part == "epoch_second" and re.fullmatch(r"-?\d+(\.\d+)?", text):
            return int(float(text) * 1000)
        if part not in ("epoch_millis", "epoch_second"):
            try:
                return _iso(text, up=up)
            except NotADate:
                continue
    raise NotADate(text)


def text_of(millis: int, pattern: str | None = None) -> str:
    """Return a date as the server prints it, strict_date_optional_time: 2026-09-21T14:00:00.000Z."""
    first = (pattern or "strict_date_optional_time").split("||")[0]
    if first == "epoch_millis":
        return str(millis)
    if first == "epoch_second":
        return str(millis // 1000) if millis % 1000 == 0 else f"{millis / 1000:.3f}"
    return (EPOCH + timedelta(milliseconds=millis)).strftime("%Y-%m-%dT%H:%M:%S.") + f"{millis % 1000:03d}Z"


def interval_millis(text: object) -> int:
    """Return the milliseconds of a fixed interval or an offset: 10s, 1h, +30m, -1d."""
    if isinstance(text, (int, float)):
        return int(text)
    match = DURATION.fullmatch(str(text))
    if match is None:
        raise CannotDo(f"interval [{text}]")
    return int(match.group(1)) * MILLIS[match.group(2)]


def seconds_of(text: object) -> float:
    """Return the seconds of a time value: 5s, 1m, 100ms; -1 stays -1."""
    if str(text) == "-1":
        return -1.0
    return interval_millis(text) / 1000
