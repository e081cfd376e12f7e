"""Batches on their way in: rows of each key by time, whatever their order in the batch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slidewise.live.intake import group, sort_groups


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=200), st.booleans())
def test_rows_of_each_key_by_time_and_stable(events, backwards):
    """Long groups in reverse too: those go another way than rows that are a little out of place."""
    events = sorted(events, key=lambda e: -e[1]) if backwards else events
    codes = np.array([code for code, _ in events], np.int64)
    times = np.array([time for _, time in events], np.int64)
    rows, bounds = group(codes, 4, times)
    sort_groups(times, rows, bounds)
    for code in range(4):
        mine = [i for i in range(len(events)) if codes[i] == code]
        assert rows[bounds[code] : bounds[code + 1]].tolist() == sorted(mine, key=lambda i: times[i])
