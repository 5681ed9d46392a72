"""How an answer of the double is held against a recorded one: exactly, but for what no two servers share.

Left out are: times, ids that a server makes up, shard figures of the node itself, build fields, sequence numbers of requests that
were not recorded, hints ("did you mean") and the text that a JSON parser quotes. Reasons, positions
and the order of keys are compared: more than the recordings' README asks for. HDR percentiles are compared to the last digit.
"""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from typing import Any

Json = Any
DATA = Path(__file__).parents[3] / "data" / "elasticsearch"
VOLATILE = {
    "took", "pit_id", "uuid", "index_uuid", "cluster_uuid", "cluster_name", "node", "_seq_no", "_primary_term",
    "created_date_millis", "modified_date_millis", "creation_date", "index.creation_date", "index.uuid",
    "active_primary_shards", "active_shards", "unassigned_shards", "active_shards_percent_as_number",
}  # fmt: skip
MADE_UP = re.compile(r"[A-Za-z0-9_-]{20}")  # a document's id, made by the server
LOOSE = (
    (re.compile(r" did you mean .*\?$"), ""),
    (re.compile(r"No search context found for id \[.*\]$"), "No search context found"),
    (re.compile(r"^index \[(.*)/[\w-]{22}\] already exists"), r"index [\1] already exists"),
    (re.compile(r"document with id '[\w-]{20}'"), "document with an id"),
    (re.compile(r"(bytes)=\d+"), r"\1=N"),
    (re.compile(r"of TimedRunnable.*", re.DOTALL), "of TimedRunnable"),
)


def recorded(name: str) -> list[Json]:
    """Return the exchanges of a recording."""
    with lzma.open(DATA / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _reason(text: str) -> str:
    for pattern, replacement in LOOSE:
        text = pattern.sub(replacement, text)
    return text


def differences(want: Json, have: Json, place: str = "") -> list[str]:
    """Return where two answers differ, each as a line of text."""
    if isinstance(want, dict) and isinstance(have, dict):
        return _of_objects(want, have, place)
    if isinstance(want, list) and isinstance(have, list):
        if len(want) != len(have):
            return [f"{place}: {len(want)} elements recorded, {len(have)} given"]
        return [line for number, (a, b) in enumerate(zip(want, have)) for line in differences(a, b, f"{place}[{number}]")]
    if place.endswith((".reason", ".error")) and isinstance(want, str) and isinstance(have, str):
        want, have = _reason(want), _reason(have)
    same = type(want) is type(have) and want == have
    return [] if same else [f"{place}: recorded {want!r}, given {have!r}"[:600]]


def _of_objects(want: dict[str, Json], have: dict[str, Json], place: str) -> list[str]:
    found = []
    if want.keys() == have.keys() and [*want] != [*have]:
        found.append(f"{place}: keys recorded in the order {[*want]}, given in {[*have]}")
    for key in sorted({*want, *have}):
        here = f"{place}.{key}"
        if key not in have or key not in want:
            found.append(f"{here}: only {'recorded' if key in want else 'given'}: {(want if key in want else have)[key]!r}"[:600])
        elif not _left_out(key, want, have):
            found += differences(want[key], have[key], here)
    return found


def _left_out(key: str, want: dict[str, Json], have: dict[str, Json]) -> bool:
    if key == "_id":
        return all(MADE_UP.fullmatch(str(one[key])) for one in (want, have)) and want[key] != have[key]
    return (
        key in VOLATILE
        or (key == "id" and "_shards" in want)  # of a point in time
        or (key == "name" and "cluster_uuid" in want)
        or (key == "status" and "active_shards" in want)  # of a cluster with other indices
    )
