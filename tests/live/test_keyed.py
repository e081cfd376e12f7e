"""The keyed engine against the oracle: exactly the rows that must come out, push by push."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.streams import Pair, make_spec, streams

from slidewise.windows import spec as w

WINDOWS = {
    "time": [w.time(10), w.time(25)],
    "slide": [w.time(12, slide=5), w.time(10, slide=4, offset=3)],
    "rows": [w.rows(3), w.rows(2, slide=2), w.rows(4, offset=1)],
    "tumbling": [w.tumbling(15)],
    "session": [w.session(6)],
    "delta": [w.delta("n", 2)],
    "punctuation": [w.punctuation("paid")],
    "lifetime": [w.lifetime()],
    "mixed": {"hour": w.time(10), "three": w.rows(3), "visit": w.session(6)},
}


@pytest.mark.parametrize("kind", WINDOWS)
@settings(max_examples=25)
@given(
    stream=streams(),
    closed=st.sampled_from(["right", "left", "both", "neither"]),
    ties=st.sampled_from(["peers", "arrival"]),
)
def test_eager_events(kind, stream, closed, ties):
    pair = Pair(make_spec(WINDOWS[kind], closed=closed, ties=ties, keep=1000))
    for part, watermark in stream:
        pair.push(part, watermark)


@pytest.mark.parametrize("kind", WINDOWS)
@settings(max_examples=25)
@given(stream=streams(), late=st.sampled_from(["side", "drop"]))
def test_final_events(kind, stream, late):
    pair = Pair(make_spec(WINDOWS[kind], results="final", late=late))
    for part, watermark in stream:
        pair.push(part, watermark)
    pair.advance(final=True)
