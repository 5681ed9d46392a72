"""Traces by the definitions alone: samples of `perf script` by splitting lines, Chrome trace events by `json` and stacks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One sample of perf: `leaf` is its first frame."""

    comm: str
    event: str
    at_ns: int
    leaf: str


def is_stamp(word: str) -> bool:
    """Return whether a word is seconds with six or nine decimals and a colon."""
    whole, _, part = word.removesuffix(":").partition(".")
    return word.endswith(":") and whole.isdigit() and part.isdigit() and len(part) in (6, 9)


def perf_samples(text: str) -> list[Sample]:
    """Return the samples in a text of `perf script`; records of perf's own are none."""
    lines, found = text.split("\n"), []
    for number, line in enumerate(lines):
        if line[:1] in ("", "\t", "#") or "PERF_RECORD_" in line:
            continue
        words = line.split()
        place = next(at for at, word in enumerate(words) if is_stamp(word))
        before, after = words[:place], words[place + 1 :]
        if len(before) > 2 and before[-1].isalpha() and (before[-2].startswith("[") or before[-2].isdigit()):
            before.pop()  # the mode: K, U
        if before and before[-1].startswith("["):
            before.pop()
        if before and before[-1].replace("/", "").isdigit():
            before.pop()
        if after[0].isdigit():
            after.pop(0)
        whole, part = words[place].removesuffix(":").split(".")
        below = lines[number + 1] if lines[number + 1].startswith("\t") else " ".join(after[1:])
        at = int(whole) * 10**9 + int(part) * (1 if len(part) == 9 else 1000)
        found.append(Sample(" ".join(before), after[0].removesuffix(":"), at, below))
    return found


def is_idle(sample: Sample) -> bool:
    """Return whether a sample of a clock found the idle task idling; one without a frame is taken for idling."""
    words = sample.leaf.split()
    return sample.comm == "swapper" and (not words or any(word in words[1] for word in ("idle", "halt", "mwait")))


Operation = tuple[str, str, str, int, int]  # op, process, thread, end, duration (ns)


def chrome_operations(text: str) -> tuple[list[Operation], dict[str, int]]:
    """Return the operations of a whole trace, and how many events were left over by what they are."""
    document = json.loads(text, parse_float=Decimal)
    events: list[dict[str, Any]] = document["traceEvents"] if isinstance(document, dict) else document
    names: dict[tuple[Any, ...], str] = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "process_name":
            names[event["pid"],] = event["args"]["name"]
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["pid"], event["tid"]] = event["args"]["name"]
    found: list[Operation] = []
    left = {"no end": 0, "no beginning": 0, "others": 0}
    waiting: dict[tuple[Any, ...], list[tuple[str, int]]] = {}

    def keep(event: dict[str, Any], name: str, start: int, end: int) -> None:
        process = names.get((event["pid"],), str(event["pid"]))
        found.append((name.lower(), process, names.get((event["pid"], event["tid"]), ""), end, end - start))

    for event in events:
        phase, at = event["ph"], round(event.get("ts", 0) * 1000)
        if phase == "X":
            keep(event, event["name"], at, at + round(event["dur"] * 1000))
        elif phase in ("B", "E"):
            key: tuple[Any, ...] = ("thread", event["pid"], event["tid"])
            stack = waiting.setdefault(key, [])
            if phase == "B":
                stack.append((event["name"], at))
            elif stack:
                name, start = stack.pop()
                keep(event, name, start, at)
            else:
                left["no beginning"] += 1
        elif phase in ("b", "e", "S", "F"):
            stack = waiting.setdefault(("async", event["cat"], event["id"], event["name"]), [])
            if phase in ("b", "S"):
                stack.append((event["name"], at))
            elif stack:
                name, start = stack.pop()
                keep(event, name, start, at)
            else:
                left["no beginning"] += 1
        else:
            left["others"] += 1
    left["no end"] = sum(map(len, waiting.values()))
    return sorted(found), left
