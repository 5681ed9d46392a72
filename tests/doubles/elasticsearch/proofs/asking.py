"""Documents drawn at random, and how they are asked about."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.replaying import send

Json = Any
T0 = 1_789_999_200_000  # 2026-09-21T14:00:00Z
EDGES = [T0 + step for step in (0, 1000, 29_999, 30_000, 30_500, 30_999, 31_000, 59_999, 60_000)]
MAPPINGS = {
    "properties": {
        "t": {"type": "date"},
        "k": {"type": "keyword"},
        "n": {"type": "long"},
        "d": {"type": "double"},
        "h": {"type": "histogram"},
    }
}
values = st.lists(st.integers(0, 40), unique=True, min_size=0, max_size=6).map(sorted)
rows = st.lists(
    st.fixed_dictionaries(
        {"t": st.one_of(st.integers(T0, T0 + 60_000), st.sampled_from(EDGES))},
        optional={
            "k": st.one_of(st.sampled_from(["a", "b", "c"]), st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)),
            "n": st.one_of(st.integers(-5, 5), st.lists(st.integers(-2, 2), max_size=3)),
            "d": st.sampled_from([0.5, 1.25, -3.0, 7.0]),
            "h": values.flatmap(
                lambda vs: st.lists(st.integers(1, 9), min_size=len(vs), max_size=len(vs)).map(
                    lambda cs: {"values": vs, "counts": cs}
                )
            ),
        },
    ),
    max_size=12,
)
CUTS = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


numbers = itertools.count()


def ask(server: ElasticsearchDouble, documents: list[Json], body: Json, indices: int = 2) -> Json:
    """Return the answer to a search over documents spread over some indices."""
    name = f"x{next(numbers)}"
    lines = [
        f'{{"index":{{"_index":"{name}-{number % indices}","_id":"{number}"}}}}\n{json.dumps(document)}\n'
        for number, document in enumerate(documents)
    ]
    for part in range(indices):
        send(server, "PUT", f"/{name}-{part}", {"settings": {"number_of_shards": 1 + part}, "mappings": MAPPINGS})
    if lines:
        assert send(server, "POST", "/_bulk?refresh=true", "".join(lines)).body["errors"] is False
    answer = send(server, "POST", f"/{name}-*/_search", body)
    assert answer.status == 200, answer.body
    return answer.body


def listed(document: Json, field: str) -> list[Any]:
    """Return the values of a field."""
    value = document.get(field, [])
    return value if isinstance(value, list) else [value]
