"""Snabb timelines written and read a second time: entry by entry with struct, rules as they are told, nothing of `ingest`."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from fractions import Fraction

MAGIC = bytes.fromhex("01001d442372ffa3")
SECOND = 10**9
DAY = 86_400 * SECOND
Event = dict  # tsc, core, number, arguments, place; decoded ones also what `explain` adds
TRAILING = ("commited_counters", "polled_timers", "sleep_hz", "sleep_on_idle", "wakeup_from_sleep")


# Reading ----------------------------------------------------------------------------------------------------


def entries(data: bytes) -> list[Event]:
    """Return every entry of a file as it lies there, never written ones too."""
    assert data[:8] == MAGIC
    major, _, length, _ = struct.unpack_from("<HHII", data, 8)
    number = "Q" if major == 2 else "d"
    found = []
    for place in range(length // 64):
        tsc, message, core, _, *arguments = struct.unpack_from(f"<{number}HHI6{number}", data, 64 + 64 * place)
        found.append({"place": place, "tsc": int(tsc), "number": message, "core": core, "arguments": arguments})
    return found


def turns(written: list[Event]) -> list[list[Event]]:
    """Return each turn of a ring in which no core's stamps run back."""
    good = []
    for cut in range(len(written)):
        turned = written[cut:] + written[:cut]
        last: dict[int, int] = {}
        if all(last.get(one["core"], 0) <= one["tsc"] and not last.update({one["core"]: one["tsc"]}) for one in turned):
            good.append(turned)
    return good


def in_order(found: list[Event]) -> list[Event]:
    """Return the written entries oldest first; of a full ring in its turn, less the oldest.

    Where cores moved so that several turns would do, it is the one that ends with the largest stamp.
    """
    written = [one for one in found if one["tsc"]]
    if len(written) < len(found):
        return written
    return max(turns(written), key=lambda turned: turned[-1]["tsc"])[1:]


def text_of(data: bytes, number: int) -> str:
    """Return the text of a message, empty where there is none."""
    length, strings = struct.unpack_from("<II", data, 12)
    table = data[64 + length : 64 + length + strings]
    at = 16 * number
    return table[at : table.index(b"\0", at)].decode() if at < len(table) else ""


def explain(text: str) -> dict:
    """Return level, rate, depth, name, attributes and names of arguments of a message."""
    if not text:
        return {"level": -1, "rate": -1, "depth": -1, "name": "", "attributes": {}, "names": []}
    line = text.split("\n", maxsplit=1)[0]
    digits, _, rest = line.partition("|")
    at = rest.rindex(":")
    name, *pairs = rest[:at].split()
    numbers = [int(digit) for digit in digits.split(",")]
    told = {"name": name, "attributes": dict(pair.split("=", 1) for pair in pairs), "names": rest[at + 1 :].split()}
    if len(numbers) == 2:
        return {"level": numbers[0], "rate": numbers[1], "depth": numbers[0], **told}
    return {"level": numbers[0], "rate": numbers[0], "depth": 9 - numbers[0], **told}


def decode(data: bytes) -> list[Event]:
    """Return the events oldest first, each with what its message says, its anchor's index, its lag in cycles, and its breath."""
    events = [{**one, **explain(text_of(data, one["number"]))} for one in in_order(entries(data))]
    reference: list[int | None] = [None] * 10
    breath, ended = 0, False
    for index, event in enumerate(events):
        name = event["name"].removeprefix("engine.")
        if name == "breath_start" or (ended and name not in (*TRAILING, "breath_end")):
            breath += 1
            ended = False
        elif name == "breath_end":
            ended = True
        event["breath_unit"] = breath
        event["anchor"] = event["lag"] = None
        if not event["name"]:
            continue
        event["anchor"] = reference[event["depth"]]
        if event["anchor"] is not None:
            event["lag"] = event["tsc"] - events[event["anchor"]]["tsc"]
        for depth in range(event["depth"], 10):
            reference[depth] = index
    return events


def counted(events: list[Event], event: Event) -> bool:
    """Return whether the lag of an event is a latency: in its own breath, on its own core."""
    if event["anchor"] is None:
        return False
    anchor = events[event["anchor"]]
    return anchor["core"] == event["core"] and anchor["breath_unit"] == event["breath_unit"]


def hz_of(events: list[Event]) -> int:
    """Return the frequency: the least-squares slope of clock readings that all cores share."""
    top = bottom = Fraction(0)
    for core in {event["core"] for event in events}:
        points = [
            (e["tsc"], int(e["arguments"][0])) for e in events if e["core"] == core and e["name"] == "engine.got_monotonic_time"
        ]
        if points:
            mean_x, mean_y = (Fraction(sum(point[axis] for point in points), len(points)) for axis in (0, 1))
            top += sum((x - mean_x) * (y - mean_y) for x, y in points)
            bottom += sum((x - mean_x) ** 2 for x, _ in points)
    return round(SECOND * bottom / top)


def stamps(events: list[Event], hz: int) -> list[int]:
    """Return the time of each event in ns, by the mean offset of its core's clock readings."""
    first = events[0]["tsc"]
    shown: dict[int, list[int]] = {}
    for event in events:
        if event["name"] == "engine.got_monotonic_time":
            passed = (event["tsc"] - first) * SECOND // hz
            shown.setdefault(event["core"], []).append(int(event["arguments"][0]) - passed)
    every = [offset for offsets in shown.values() for offset in offsets] or [0]
    return [
        (event["tsc"] - first) * SECOND // hz + sum(shown.get(event["core"], every)) // len(shown.get(event["core"], every))
        for event in events
    ]


def breaths(events: list[Event]) -> list[dict]:
    """Return the breaths whose start and end follow each other with one number, on one core."""
    found, start = [], None
    for event in events:
        if event["name"] == "engine.breath_start":
            start = event
        elif event["name"] == "engine.breath_end" and start is not None:
            before = dict(zip(start["names"], start["arguments"]))
            after = dict(zip(event["names"], event["arguments"]))
            if before["breath"] == after["breath"] and start["core"] == event["core"]:
                grown = {
                    name: after[name] - before[name] if name in before and name in after else None
                    for name in ("totalpackets", "totalbytes", "totaletherbits")
                }
                found.append(
                    {
                        "number": before["breath"],
                        "cycles": event["tsc"] - start["tsc"],
                        "packets": grown["totalpackets"],
                        "bytes": grown["totalbytes"],
                        "bits": grown["totaletherbits"],
                    }
                )
                if "npackets" in after:
                    found[-1] |= {"packets": after["npackets"], "bytes": after["npackets"] * after["bpp"]}
            start = None
    return found


# Writing ----------------------------------------------------------------------------------------------------


@dataclass
class Writer:
    """A ring as Snabb fills it: each event goes to the next entry, round and round. `stored` keeps what was written, in order."""

    size: int
    major: int = 3
    strings_bytes: int = 4096
    texts: dict[str, int] = field(default_factory=dict)
    table: bytes = b""
    stored: list[Event] = field(default_factory=list)
    ring: dict[int, bytes] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """Return the number of a message, put into the table unless it is there; 0xFFFF where the table is full."""
        if text not in self.texts:
            padded = text.encode() + b"\0"
            padded += bytes(-len(padded) % 16)
            if len(self.table) + len(padded) > self.strings_bytes:
                return 0xFFFF
            self.texts[text] = len(self.table) // 16
            self.table += padded
        return self.texts[text]

    def packed(self, tsc: float, number: int, core: int, arguments: tuple[float, ...]) -> bytes:
        """Return an entry."""
        kind = "Q" if self.major == 2 else "d"
        whole = [*arguments, *[0] * (6 - len(arguments))]
        return struct.pack(f"<{kind}HHI6{kind}", tsc, number, core, 0, *whole)

    def event(self, text: str, tsc: int, core: int = 0, *arguments: float) -> None:
        """Store an event."""
        number = self.number(text)
        place = len(self.stored) % self.size
        self.ring[place] = self.packed(tsc, number, core, arguments)
        self.stored.append({"place": place, "tsc": tsc, "number": number, "core": core})

    def torn(self, text: str, *arguments: float) -> None:
        """Begin to store an event: all but core and stamp, which are written last."""
        place = len(self.stored) % self.size
        old = self.ring.get(place, bytes(64))
        new = self.packed(0, self.number(text), 0, arguments)
        self.ring[place] = old[:8] + new[8:10] + old[10:16] + new[16:]

    def data(self) -> bytes:
        """Return the file."""
        ring = b"".join(self.ring.get(place, bytes(64)) for place in range(self.size))
        head = MAGIC + struct.pack("<HHII", self.major, 0, 64 * self.size, self.strings_bytes)
        return head.ljust(64, b"\0") + ring + self.table.ljust(self.strings_bytes, b"\0")

    def kept(self) -> list[Event]:
        """Return what a reader has to find, oldest first: all, or of a full ring the last lap less the entry at the seam."""
        if len(self.stored) < self.size:
            return self.stored
        return self.stored[-self.size + 1 :] if self.size > 1 else self.stored[-1:]
