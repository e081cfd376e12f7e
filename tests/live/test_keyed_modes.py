"""emit="slide" and emit="latest" on streams, against the oracle and against `rolling` on the whole."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.live.naive_keyed import NaiveLatest, NaiveSlides
from tests.live.streams import AGGS, Pair, make_spec, streams, table_of

import slidewise as sw
import slidewise.operators as ops
from slidewise.errors import UnsupportedError
from slidewise.live.keyed import Keyed
from slidewise.windows import spec as w

SLIDES = {
    "one": [w.time(12, slide=5)],
    "offset": [w.time(7, slide=3, offset=2)],
    "two": {"a": w.time(12, slide=4), "b": w.time(5, slide=6)},
    "tumbling": [w.tumbling(10)],
    "sparse": [w.time(3, slide=10)],
}


class ByKey(Pair):
    """Rows are told apart by key (and boundary), not by id."""

    oracle = NaiveSlides

    def __init__(self, spec):
        super().__init__(spec)
        self.naive = self.oracle(spec)

    def compare(self, outcome, wanted):
        self.engine.check()
        outcome.rows.validate(full=True)
        given_ = [(row["card"], row["ts"], row["late"], self.results(row)) for row in outcome.rows.to_pylist()]
        expected = [self.expect(place, found) for part in ("new", "again") for place, found in wanted[part].items()]
        nothing = (None,) * len(self.spec.outputs)
        for uid in wanted["side"]:
            row = self.naive.all_rows[uid]
            expected.append((row["card"], row["ts"], True, nothing))
        assert sorted(given_, key=repr) == sorted(expected, key=repr)
        assert all(row["revision"] == self.batch for row in outcome.rows.to_pylist())

    def expect(self, place, found):
        (card,), boundary = place
        return card, boundary, False, found


class Latest(ByKey):
    oracle = NaiveLatest

    def expect(self, place, found):
        return place[0], found[0], False, found[1]


@pytest.mark.parametrize("kind", SLIDES)
@settings(max_examples=25)
@given(
    stream=streams(),
    closed=st.sampled_from(["right", "left", "both", "neither"]),
    results=st.sampled_from(["eager", "final"]),
)
def test_slides(kind, stream, closed, results):
    keep = {"keep": 1000} if results == "eager" else {}
    pair = ByKey(make_spec(SLIDES[kind], closed=closed, emit="slide", results=results, **keep))
    for part, watermark in stream:
        pair.push(part, watermark)
    pair.advance(final=True)


@settings(max_examples=40)
@given(stream=streams(), results=st.sampled_from(["eager", "final"]), ties=st.sampled_from(["peers", "arrival"]))
def test_latest(stream, results, ties):
    keep = {"keep": 1000} if results == "eager" else {}
    pair = Latest(make_spec([w.time(10), w.rows(3)], emit="latest", results=results, ties=ties, **keep))
    for part, watermark in stream:
        pair.push(part, watermark)
    pair.advance(final=True)


@pytest.mark.parametrize("window", [w.rows(3, slide=2), w.session(6), w.punctuation("paid")], ids=lambda x: x.kind)
@settings(max_examples=25)
@given(stream=streams(doubles=False))
def test_windows_that_end_with_a_row(window, stream):
    from slidewise import rolling

    spec = make_spec([window], emit="slide", results="final")
    engine = Keyed(spec)
    tables, late = [], set()
    for n, (part, watermark) in enumerate(stream):
        tables.append(engine.push(table_of(part), watermark=watermark, batch=n).rows)
        late |= {e["id"] for e in part if watermark is not None and e["ts"] < watermark}
    tables.append(engine.advance(final=True).rows)
    found = [row for row in pa.concat_tables(tables).to_pylist() if not row["late"]]
    taken = table_of([e for part, _ in stream for e in part if e["id"] not in late])
    whole = rolling(
        taken, time="ts", by="card", windows=[window], aggs=AGGS, emit="slide", order=list(spec.tie_columns)
    )
    columns = whole.column_names
    assert sorted(([row[c] for c in columns] for row in found), key=repr) == sorted(
        ([row[c] for c in columns] for row in whole.to_pylist()), key=repr
    )


def test_ending_rows_are_never_given_early():
    with pytest.raises(UnsupportedError, match="final"):
        make_spec([w.session(5)], emit="slide")


@pytest.mark.parametrize("results", ["eager", "final"])
@pytest.mark.parametrize("closed", ["right", "left"])
def test_every_event_of_float_times_is_in_one_tumbling_window(closed, results):
    """Boundaries such as 3 * 0.1 and ranges such as 0.1 are rounded, and no event may fall between two windows."""
    schema = pa.schema([("ts", pa.float64()), ("id", pa.int64())])
    aggs = {"n": ops.count()}
    engine = Keyed(make_spec([w.tumbling(0.1)], aggs, schema=schema, by=None, closed=closed, emit="slide", results=results))
    events = pa.table({"ts": [k * 0.1 for k in range(60)], "id": range(60)}, schema=schema)
    found = []
    for k in range(0, 60, 6):
        part = events.slice(k, 6)
        found += engine.push(part, watermark=part["ts"][0].as_py()).rows.to_pylist()
    found += engine.advance(final=True).rows.to_pylist()
    last = {row["ts"]: row["n_tumbling_0.1"] for row in found}
    assert list(last.values()) == [1] * 60
    whole = sw.rolling(events, time="ts", windows=sw.tumbling(0.1), aggs=aggs, closed=closed, emit="slide")
    assert list(last) == whole["ts"].to_pylist()
