"""Long keys, piece by piece: cut anywhere, every window gives what it gives on the whole. No Spark here."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from tests.engines.spark.batch_support import ALL_KINDS, FAMILIES, differences, random_table

import slidewise as sw
from slidewise.engines.local.order import ranks_of
from slidewise.engines.local.run import run, run_as_of
from slidewise.engines.spark import batch_worker
from slidewise.engines.spark.chunk import Work
from slidewise.engines.spark.chunk_stream import LongKey
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request

ORDER = ["n", "x", "word", "flag", "id"]


def planned(table: pa.Table, **asked):
    return make_plan(request(time="t", order=ORDER, **asked), table.schema)


def sorted_rows(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.lexsort([ranks_of(table.column(name)) for name in ("t", *ORDER)][::-1])))


def cut(rng, table: pa.Table, pieces: int) -> list[pa.Table]:
    """Pieces of sorted rows, rows of one time together."""
    times = table.column("t").to_numpy()
    edges = sorted({int(np.searchsorted(times, t)) for t in rng.choice(times, pieces)} | {0, len(times)}) if len(times) else [0, 0]
    return [table.slice(a, b - a) for a, b in pairwise(edges) if b > a]


def streamed(plan, pieces: list[pa.Table]) -> pa.Table:
    """What LongKey gives for the pieces, as the local engine shows it."""
    work = Work.of(plan, pieces[0].schema)
    key, parts = LongKey(work), []
    for number, piece in enumerate(pieces):
        following = pieces[number + 1].column("t")[0].as_py() if number + 1 < len(pieces) else None
        found = key.push(piece, following)
        if plan.request.emit == "event":
            out = piece
        else:
            times = found.moments if found.moments is not None else piece.column("t").to_numpy()[found.rows]
            out = pa.table({"t": pa.array(times, pa.int64())})
        for name, column in found.columns:
            out = out.append_column(name, column)
        parts.append(out)
    return pa.concat_tables(parts, promote_options="permissive")


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("ties", ["peers", "arrival"])
def test_rows_cut_anywhere_have_the_same_windows(closed, ties):
    rng = np.random.default_rng(hash((closed, ties)) % 2**32)
    for trial in range(6):
        table = sorted_rows(random_table(rng, int(rng.integers(1, 60))))
        for exclude_current in (False, True):
            windows = ALL_KINDS | {"steps": sw.time(5, slide=2, offset=1)}  # two that slide: whole keys have common slices
            plan = planned(table, windows=windows, aggs=FAMILIES, closed=closed, ties=ties, exclude_current=exclude_current)
            wanted = run(plan, table, threads=1)
            found = streamed(plan, cut(rng, table, 1 + trial * 3))
            assert not differences(found, wanted)


def test_the_youngest_row_of_a_long_key():
    rng = np.random.default_rng(5)
    for trial in range(6):
        table = sorted_rows(random_table(rng, int(rng.integers(1, 60))))
        plan = planned(table, windows=ALL_KINDS, aggs=FAMILIES, emit="latest")
        assert not differences(streamed(plan, cut(rng, table, 1 + trial * 3)), run(plan, table, threads=1))


SLIDES = [
    {"a": sw.time(8, slide=3), "b": sw.time(5, slide=2, offset=1), "c": sw.tumbling(4)},
    {"a": sw.time(50, slide=7)},
    {"a": sw.rows(4, slide=3)},
    {"a": sw.session(2)},
    {"a": sw.punctuation("flag")},
]


@pytest.mark.parametrize("windows", SLIDES, ids=lambda w: ", ".join(map(str, w.values())))
@pytest.mark.parametrize("closed", ["right", "left"])
def test_boundaries_of_a_long_key(windows, closed):
    rng = np.random.default_rng(6)
    for trial in range(6):
        table = sorted_rows(random_table(rng, int(rng.integers(1, 60))))
        plan = planned(table, windows=windows, aggs=FAMILIES, emit="slide", closed=closed)
        assert not differences(streamed(plan, cut(rng, table, 1 + trial * 3)), run(plan, table, threads=1))


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_queries_between_the_pieces_of_a_long_key(closed):
    rng = np.random.default_rng(7)
    for trial in range(6):
        table = sorted_rows(random_table(rng, int(rng.integers(1, 60))))
        plan = planned(table, windows=ALL_KINDS, aggs=FAMILIES, closed=closed, as_of=True)
        queries = pa.table({"t": pa.array(np.sort(rng.integers(-3, 60, 30)))})
        wanted = run_as_of(plan, queries, table, threads=1)
        pieces = cut(rng, table, 1 + trial * 3)
        key, parts = LongKey(Work.of(plan, table.schema)), []
        moments, begin = queries.column("t").to_numpy(), -(10**9)
        for number, piece in enumerate(pieces):
            following = pieces[number + 1].column("t")[0].as_py() if number + 1 < len(pieces) else None
            here = (moments >= begin) & (moments < (10**9 if following is None else following))
            found = key.push(piece, following, moments[here])
            parts.append(pa.table({"t": pa.array(moments[here]), **dict(found.columns)}))
            begin = following
        assert not differences(pa.concat_tables(parts, promote_options="permissive"), wanted)


@pytest.mark.parametrize("by", ["key", "x", ("key", "word")], ids=str)
def test_keys_go_some_at_a_time(monkeypatch, by):
    """Where rows are easily moved, a task works on some keys after the other: all rows of a key together, none lost."""
    table = random_table(np.random.default_rng(5), 300, keys=12)
    asked = request(time="t", by=by, order=ORDER, windows={"time": sw.time(7), "rows": sw.rows(5)}, aggs=FAMILIES)
    plan = make_plan(asked, table.schema)
    wanted = run(plan, table)
    places = {name: table.column_names.index(name) for name in asked.needed}
    types = pa.schema([table.schema.field(name) for name in places])
    results = tuple((output.column, wanted.schema.field(output.column).type) for output in asked.outputs)
    job = batch_worker.Job(plan, places, types, tuple(range(table.num_columns)), results)
    monkeypatch.setattr(batch_worker, "PART_ROWS", 40)
    parts = list(batch_worker.answers(job, table))
    keys = [{str(row[name]) for row in part.select([table.column_names.index(asked.by[0])]).to_pylist() for name in row}
            if len(asked.by) == 1 else set() for part in parts]
    assert len(parts) > 3 and sum(map(len, keys)) == len(set().union(*keys)), "no key is in two parts"
    found = pa.concat_tables(parts).rename_columns(wanted.column_names)
    assert not differences(found.sort_by("id"), wanted.sort_by("id"))
