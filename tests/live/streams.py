"""Random streams for the keyed engine, and how its rows are compared with those of the oracle."""

import pyarrow as pa
from hypothesis import strategies as st
from tests.live.naive_keyed import NaiveKeyed, plain

import slidewise.operators as ops
from slidewise.live.keyed import Keyed
from slidewise.live.spec import stream_spec
from slidewise.planner.request import request

SCHEMA = pa.schema(
    [
        ("card", pa.string()),
        ("ts", pa.int64()),
        ("x", pa.float64()),
        ("n", pa.int64()),
        ("shop", pa.string()),
        ("paid", pa.bool_()),
        ("id", pa.int64()),
        ("note", pa.string()),
    ]
)
AGGS = {
    "count": ops.count(),
    "total": ops.sum("x"),
    "peak": ops.max("x", where="paid"),
    "who": ops.argmax("x", "shop"),
    "tail": ops.last("n"),
    "shops": ops.collect("shop"),
}


def make_spec(
    windows,
    aggs=None,
    *,
    schema=SCHEMA,
    by="card",
    closed="right",
    ties="peers",
    emit="event",
    exclude_current=False,
    order=None,
    id="id",
    **options,
):
    asked = request(
        time="ts",
        by=by,
        windows=windows,
        aggs=aggs or AGGS,
        closed=closed,
        ties=ties,
        emit=emit,
        exclude_current=exclude_current,
        order=order,
    )
    return stream_spec(asked, schema, id=id, **options)


@st.composite
def rows(draw, count, horizon=60, keys=3, doubles=True):
    """Events with many ties, nulls and, now and then, one that comes twice."""
    found = []
    for number in range(count):
        if doubles and found and draw(st.integers(0, 9)) == 0:
            found.append(dict(draw(st.sampled_from(found))))
            continue
        shop = draw(st.sampled_from(["a", "b", None]))
        found.append(
            {
                "card": draw(st.sampled_from(["p", "q", None][:keys])),
                "ts": draw(st.integers(0, horizon)),
                "x": draw(st.one_of(st.none(), st.integers(-3, 9).map(float))),
                "n": draw(st.one_of(st.none(), st.integers(0, 5))),
                "shop": shop,
                "paid": draw(st.sampled_from([True, True, False, None])),
                "id": number,
                "note": f"note {number}",
            }
        )
    return found


@st.composite
def streams(draw, most=24, **options):
    """Batches of events, with the watermark in front of each: what was seen so far, less a delay."""
    events = draw(rows(draw(st.integers(1, most)), **options))
    delay = draw(st.integers(0, 30))
    batches, at, youngest = [], 0, None
    while at < len(events):
        size = draw(st.integers(1, 6))
        part = events[at : at + size]
        batches.append((part, None if youngest is None else youngest - delay))
        youngest = max([e["ts"] for e in part] + ([] if youngest is None else [youngest]))
        at += size
    return batches


def table_of(batch, schema=SCHEMA) -> pa.Table:
    return pa.Table.from_pylist(batch, schema=schema)


class Pair:
    """The engine and the oracle side by side."""

    def __init__(self, spec, engine=Keyed):
        self.spec = spec
        self.engine = engine(spec)
        self.naive = NaiveKeyed(spec)
        self.log = []
        self.batch = -1
        self.out: list[dict] = []

    def push(self, part, watermark, shuffle=None):
        """Push a batch into both and compare all that comes out."""
        self.batch += 1
        sent = list(part) if shuffle is None else [part[i] for i in shuffle]
        before = self.naive.arrived
        outcome = self.engine.push(table_of(sent, self.spec.schema), watermark=watermark, batch=self.batch)
        wanted = self.naive.push(sent, watermark)
        self.compare(outcome, wanted)
        counts = outcome.counts
        assert counts["in"] == len(part)
        assert counts["in"] == counts["accepted"] + counts["side"] + counts["dropped"] + counts["double"]
        assert counts["double"] == len(wanted["double"])
        assert counts["side"] == len(wanted["side"])
        assert counts["dropped"] == len(wanted["dropped"])
        assert counts["late"] == wanted["late"]
        assert counts["touched"] == len(wanted["again"])
        assert self.naive.arrived == before + len(part)
        self.log.append(outcome.log)
        return outcome

    def advance(self, watermark=None, final=False):
        self.batch += 1
        outcome = self.engine.advance(watermark=watermark, batch=self.batch, final=final)
        self.compare(outcome, self.naive.advance(watermark, final))
        self.log.append(outcome.log)
        return outcome

    def compare(self, outcome, wanted):
        self.engine.check()
        outcome.rows.validate(full=True)
        rows = self.naive.all_rows
        given = [(row["id"], row.get("late", False), self.results(row)) for row in outcome.rows.to_pylist()]
        expected = [
            (rows[uid]["id"], False, results) for part in ("new", "again") for uid, results in wanted[part].items()
        ]
        nothing = (None,) * len(self.spec.outputs)
        expected += [(rows[uid]["id"], True, nothing) for uid in wanted["side"]]
        assert sorted(given, key=repr) == sorted(expected, key=repr)
        for row in outcome.rows.to_pylist():
            assert row["revision"] == self.batch
            assert row["note"] == f"note {row['id']}"
        self.out.append(outcome)

    def results(self, row: dict) -> tuple:
        return tuple(plain(row[output.column]) for output in self.spec.outputs)
