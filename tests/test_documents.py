"""Windows packed into documents and back: every coding, also through the pipe of a reading process."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.documents import CODINGS, pack, packed_bins, unpack
from ingest.core.pool import fork_map
from strategies import FIO_LAYOUTS, HDR_LAYOUTS, made

COUNTS = st.sampled_from([1, 2, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**61])
ROWS = st.lists(st.dictionaries(st.integers(0, 1200), COUNTS, min_size=1, max_size=9), max_size=12)
NARROWEST = {1: 2**8, 2: 2**16, 3: 2**32, 4: 2**63}


@given(ROWS, st.sampled_from([FIO_LAYOUTS[0], HDR_LAYOUTS[0]]))
def test_each_row_is_packed_in_the_narrowest_coding_that_holds_it_whatever_most_rows_have(rows: list, layout) -> None:
    windows = made(layout, [(0, number, number + 1, row) for number, row in enumerate(rows)])
    codings, blobs = packed_bins(windows)
    assert codings.tolist() == [min(code for code, most in NARROWEST.items() if max(row.values()) < most) for row in rows]
    for row, code, blob in zip(rows, codings.tolist(), blobs.each(), strict=True):
        kind = CODINGS[code]
        assert blob == np.array(sorted(row.items()), kind).tobytes()


def test_packed_rows_cross_the_pipe_of_a_reading_process() -> None:
    rows = [{number: 300 if number % 7 == 0 else 3, number + 5: 1} for number in range(200)]
    windows = made(FIO_LAYOUTS[0], [(0, number, number + 1, row) for number, row in enumerate(rows)])
    found = dict(fork_map(lambda item: iter([pack(windows.take(np.array(item)))]), [[0, 7, 8], [1, 2]], 2))
    assert found[0].blobs.each() == pack(windows.take(np.array([0, 7, 8]))).blobs.each()
    indptr, bins, counts = unpack(found[1].coding, found[1].blobs.each())
    assert (indptr.tolist(), bins.tolist(), counts.tolist()) == ([0, 2, 4], [1, 6, 2, 7], [3, 1, 3, 1])
