"""Giant keys: chunks in one pass or two, panes and states between tasks. Without Spark: tasks are calls, the shuffle is a dict."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.engines.spark.batch_support import ALL_KINDS, FAMILIES, differences, random_table

import slidewise as sw
from slidewise.engines.local.run import run, run_as_of
from slidewise.engines.spark import giant_once
from slidewise.engines.spark.batch_worker import Job, answer
from slidewise.engines.spark.chunk import Work
from slidewise.engines.spark.giant_once import Chunks, reach_of
from slidewise.engines.spark.giant_pack import Cuts, Pack, without
from slidewise.engines.spark.giant_panes import NEEDED, SUMMARY, chunk_panes
from slidewise.engines.spark.giant_pieces import piece_results
from slidewise.engines.spark.giant_zones import Key
from slidewise.engines.spark.travel import Parcel
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request

ORDER = ["n", "x", "word", "flag", "id"]
SLIDES = [
    {"a": sw.time(8, slide=3), "b": sw.time(5, slide=2, offset=1), "c": sw.tumbling(4)},
    {"a": sw.time(50, slide=7)},
    {"a": sw.rows(4, slide=3)},
    {"a": sw.session(2)},
    {"a": sw.punctuation("flag")},
]
LONG = {
    "time": sw.time(25),
    "offset": sw.time(20, offset=9),
    "slide": sw.time(18, slide=4),
    "rows": sw.rows(30),
    "rows_slide": sw.rows(25, slide=7, offset=3),
    "delta": sw.delta("x", 7),
    "tumbling": sw.tumbling(30),
    "session": sw.session(4),
}
"""Windows longer than chunks: most of what they hold comes as states."""


def job_for(table: pa.Table, **asked) -> tuple[Job, pa.Table]:
    plan = make_plan(request(time="t", order=ORDER, **asked), table.schema)
    types = pa.schema([table.schema.field(name) for name in plan.request.needed])
    wanted = run(plan, table, threads=1)
    event = plan.request.emit == "event"
    results = [] if event else [("t", pa.int64())]
    results += [(o.column, wanted.schema.field(o.column).type) for o in plan.request.outputs]
    job = Job(plan, {name: table.column_names.index(name) for name in types.names}, types,
              tuple(range(table.num_columns)) if event else (), tuple(results))
    return job, wanted


def both_passes(job: Job, table: pa.Table, cuts: np.ndarray, pane_rows: int, times=None) -> tuple[pa.Table, list]:
    """What comes out, and for each chunk how many rows it was sent and how many are its own."""
    times = table.column("t").to_numpy() if times is None else times
    chunk = np.searchsorted(cuts, times, side="right")
    summaries, packed = [], {}
    for label in np.unique(chunk):
        part = table.filter(pa.array(chunk == label)).append_column("label", pa.nulls(int((chunk == label).sum()), pa.int32()))
        for kind, pane, blob in chunk_panes(job, part, int(label), pane_rows):
            if kind == SUMMARY:
                summaries.append(blob)
            else:
                packed.setdefault((int(label), kind, pane), []).append(pa.py_buffer(blob))
    key = Key(Work.of(job.plan, job.types), summaries)
    sizes = {(s.label, pane): int(rows) for s in summaries for pane, rows in enumerate(s.rows)}
    parts, sent = [], []
    for number, summary in enumerate(summaries):
        needs = key.needs(number)
        mine = {k: v for k, v in packed.items() if k[0] == summary.label or (k[1] == NEEDED and k[::2] in needs.panes)}
        parts.append(piece_results(job, summary.label, needs, mine))
        sent.append((sum(sizes[k[::2]] for k in mine if k[1] == NEEDED), int(summary.rows.sum())))
    return pa.concat_tables([part for part in parts if len(part)] or parts[:1]), sent


def cuts_for(rng, trial: int) -> np.ndarray:
    return np.unique(rng.integers(1, 40, trial * 2))


@pytest.mark.parametrize("windows", [ALL_KINDS, LONG], ids=["short", "long"])
@pytest.mark.parametrize(("closed", "ties", "exclude_current"), [
    ("right", "peers", False), ("left", "peers", True), ("both", "arrival", False), ("neither", "peers", False),
    ("right", "arrival", True), ("left", "arrival", False),
])
def test_chunks_in_many_tasks_give_what_one_table_gives(windows, closed, ties, exclude_current):
    rng = np.random.default_rng(1)
    for trial in range(1, 7):
        table = random_table(rng, int(rng.integers(1, 90)))
        job, wanted = job_for(table, windows=windows, aggs=FAMILIES, closed=closed, ties=ties, exclude_current=exclude_current)
        found, _ = both_passes(job, table, cuts_for(rng, trial), pane_rows=trial)
        found = found.rename_columns([*table.column_names, *(name for name, _ in job.results)])
        assert not differences(found.sort_by("id"), wanted.sort_by("id"))


@pytest.mark.parametrize("windows", SLIDES, ids=lambda w: ", ".join(map(str, w.values())))
def test_boundaries_of_a_giant_key(windows):
    rng = np.random.default_rng(2)
    for trial in range(1, 7):
        table = random_table(rng, int(rng.integers(1, 90)))
        job, wanted = job_for(table, windows=windows, aggs=FAMILIES, emit="slide")
        found, _ = both_passes(job, table, cuts_for(rng, trial), pane_rows=trial)
        assert not differences(found.rename_columns(wanted.column_names), wanted)


def test_the_youngest_row_of_a_giant_key():
    rng = np.random.default_rng(3)
    for trial in range(1, 7):
        table = random_table(rng, int(rng.integers(1, 90)))
        job, wanted = job_for(table, windows=ALL_KINDS | LONG, aggs=FAMILIES, emit="latest")
        found, _ = both_passes(job, table, cuts_for(rng, trial), pane_rows=trial)
        assert not differences(found.rename_columns(wanted.column_names), wanted)


@pytest.mark.parametrize("closed", ["left", "right", "both"])
def test_queries_on_a_giant_key(closed):
    rng = np.random.default_rng(4)
    for trial in range(1, 7):
        data = random_table(rng, int(rng.integers(1, 90)))
        queries = pa.table({"t": pa.array(rng.integers(-3, 60, 30)), "label": pa.array(np.arange(30))})
        plan = make_plan(request(time="t", order=ORDER, windows=ALL_KINDS | LONG, aggs=FAMILIES, closed=closed, as_of=True),
                         data.schema)
        wanted = run_as_of(plan, queries, data, threads=1)
        types = pa.schema([data.schema.field(name) for name in plan.request.needed])
        upper = {"q_t": queries.column("t"), "q_label": queries.column("label"), "query": pa.array([True] * len(queries)),
                 **{name: queries.column("t") if name == "t" else pa.nulls(len(queries), types.field(name).type)
                    for name in types.names}}
        lower = {"q_t": pa.nulls(len(data), pa.int64()), "q_label": pa.nulls(len(data), pa.int64()),
                 "query": pa.array([False] * len(data)), **{name: data.column(name) for name in types.names}}
        table = pa.concat_tables([pa.table(upper), pa.table(lower)])
        results = tuple((o.column, wanted.schema.field(o.column).type) for o in plan.request.outputs)
        job = Job(plan, {name: table.column_names.index(name) for name in types.names}, types, (0, 1), results, query=2)
        found, _ = both_passes(job, table, cuts_for(rng, trial), pane_rows=trial, times=table.column("t").to_numpy())
        assert not differences(found.rename_columns(wanted.column_names).sort_by("label"), wanted)


def test_a_chunk_is_not_sent_whole_windows():
    """A window of 30 chunks: a chunk is sent about one chunk of left ends, and the rest as a state."""
    n = 3000
    table = pa.table({"t": pa.array(np.arange(n)), "n": pa.array(np.arange(n) % 7)})
    plan = make_plan(request(time="t", windows={"long": sw.time(1500), "rows": sw.rows(1500), "session": sw.session(5)},
                             aggs={"total": sw.sum("n")}), table.schema)
    job = Job(plan, {"t": 0, "n": 1}, table.schema, (0, 1), tuple((o.column, pa.int64()) for o in plan.request.outputs))
    found, sent = both_passes(job, table, np.arange(50, n, 50), pane_rows=10)
    wanted = run(plan, table, threads=1)
    assert not differences(found.rename_columns(wanted.column_names), wanted)
    assert all(own == 50 for _, own in sent)
    assert max(rows for rows, _ in sent) <= 50 + 50 + 2 * 10 + 10


# ---- one pass --------------------------------------------------------------------------------------------------------------

SHORT = {name: window for name, window in (ALL_KINDS | LONG).items() if name not in ("delta", "lifetime", "rows_slide")}
"""Windows whose beginning can be told from rows before it."""


def one_pass(job: Job, table: pa.Table, cuts: np.ndarray, since: np.ndarray, rng, ordered: bool = False,
             key: dict | None = None) -> tuple[pa.Table, int]:
    """What comes out, and how many rows were sent. Rows come in batches from several tasks, blobs in any order.

    ordered: of each task in the order of time, and no task's times among another's; key: columns that are left out, by place."""
    key = key or {}
    pack = Pack(Parcel((without(job, key), [Cuts(cuts, tuple(range(len(cuts) + 1)), since)])))
    rows = np.argsort(table.column("t").to_numpy(), kind="stable") if ordered else rng.permutation(len(table))
    table = table.select([k for k in range(table.num_columns) if k not in key])
    blobs = [row for part in np.array_split(rows, 3)
             for batch in pack(table.take(pa.array(part)).to_batches(max_chunksize=7)) for row in batch.to_pylist()]
    rng.shuffle(blobs)
    packed = pa.RecordBatch.from_pylist(blobs, pa.schema({"slidewise_label": pa.int32(), "slidewise_kind": pa.int32(),
                                                          "slidewise_blob": pa.binary()}))
    sent = sum(len(pa.ipc.open_stream(row["slidewise_blob"]).read_all()) for row in blobs)
    return pa.Table.from_batches(Chunks(Parcel((job, {0}, dict.fromkeys(range(len(cuts) + 1), key))))([packed])), sent


@pytest.mark.parametrize(("closed", "ties", "exclude_current"), [
    ("right", "peers", False), ("left", "peers", True), ("both", "arrival", False), ("neither", "peers", False),
])
@pytest.mark.parametrize("ordered", [False, True], ids=["in any order", "in order"])
def test_chunks_with_the_rows_before_them_give_what_one_table_gives(monkeypatch, closed, ties, exclude_current, ordered):
    """Rows that come in order go in parts."""
    rng, parts = np.random.default_rng(5), []
    monkeypatch.setattr(giant_once, "_PART_ROWS", 12)
    monkeypatch.setattr(giant_once, "_LOOK_AT", 9)
    monkeypatch.setattr(giant_once, "answer", lambda job, table: parts.append(len(table)) or answer(job, table))
    told = 0
    for trial in range(40):
        table = random_table(rng, int(rng.integers(60, 120)), times=120)
        key = {0: pa.scalar("a"), 3: pa.scalar(None, pa.int32())}
        for place, value in key.items():
            table = table.add_column(place, f"key {place}", pa.repeat(value, len(table)))
        name = list(SHORT)[trial % len(SHORT)]
        windows = {name: SHORT[name], "time": sw.time(3)}
        job, wanted = job_for(table, windows=windows, aggs=FAMILIES, closed=closed, ties=ties, exclude_current=exclude_current)
        cuts = np.array([70]) if trial % 2 else np.array([50, 90])
        since = reach_of(Work.of(job.plan, job.types), cuts, table.select(job.types.names))
        if since is None or (since[1:] < cuts[:-1]).any():
            continue
        told += 1
        found, sent = one_pass(job, table, cuts, since, rng, ordered, key if trial % 3 else None)
        found = found.rename_columns([*table.column_names, *(name for name, _ in job.results)])
        assert not differences(found.sort_by("id"), wanted.sort_by("id"))
        times = table.column("t").to_numpy()
        assert sent == len(table) + sum(int(((times >= a) & (times < b)).sum()) for a, b in zip(since, cuts))
    assert told > 25
    assert (len(parts) > 4 * told) == ordered


def test_where_a_window_begins_is_told_only_by_rows_that_are_seen():
    table = pa.table({"t": pa.array([1, 2, 3, 9, 10, 11]), "flag": [False, True, False, False, False, False]})
    cut = np.array([12])

    def since(window, rows):
        plan = make_plan(request(time="t", windows={"w": window}, aggs={"n": sw.count()}), table.schema)
        found = reach_of(Work.of(plan, table.schema), cut, rows)
        return None if found is None else found.tolist()

    assert since(sw.session(4), table) == [3] and since(sw.session(4), table.slice(4)) is None
    assert since(sw.rows(2), table) == [3] and since(sw.rows(5), table) is None
    assert since(sw.punctuation("flag"), table) is not None and since(sw.punctuation("flag"), table.slice(2)) is None
    assert since(sw.time(5), None) == [7]


def test_rows_that_changed_since_the_look_are_refused():
    table = pa.table({"t": pa.array(range(20)), "n": pa.array(range(20))})
    plan = make_plan(request(time="t", windows={"w": sw.rows(3)}, aggs={"total": sw.sum("n")}), table.schema)
    job = Job(plan, {"t": 0, "n": 1}, table.schema, (0, 1), (("total_w", pa.int64()),))
    cuts, rng = np.array([10]), np.random.default_rng(6)
    since = reach_of(Work.of(plan, table.schema), cuts, table)
    assert one_pass(job, table, cuts, since, rng)[0].num_rows == 20
    with pytest.raises(sw.InputError, match="cache or checkpoint"):
        one_pass(job, table.filter(pa.array([t not in (7, 8) for t in range(20)])), cuts, since, rng)
