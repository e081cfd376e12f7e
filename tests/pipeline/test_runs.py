"""Jobs that run: batch and stream, sources and sinks, on the session of the tests. Small: what is computed is tested elsewhere."""

from __future__ import annotations

import contextlib
import os
import threading
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.pipeline.support import JOB, START, events, job

import slidewise as sw
from slidewise.errors import JobError, RunError
from slidewise.pipeline import Summary, explain, latest, load, run, running, schema
from slidewise.pipeline.sinks import StreamSink

REPLAY = ["mode=stream", "source.format=replay", "source.order_by=arrived", "source.step=3h"]
OPTIONS = '{ createTableColumnTypes = "card VARCHAR(20)" }'
RESULTS = ("payments_1h", "total_1h", "largest_1h", "payments_5r", "total_5r", "largest_5r")


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    aggs = {"payments": sw.count(), "total": sw.sum("amount"), "largest": sw.argmax("amount", "id", where="paid")}
    return sw.rolling(events(), time="ts", by="card", windows=["1h", sw.rows(5)], aggs=aggs, order="id").sort_by("id")


def same(found: pa.Table, expected: pa.Table) -> None:
    found = found.sort_by("id")
    for name in ("id", *RESULTS):
        assert found[name].to_pylist() == expected[name].to_pylist(), name


def start(folder: Path, *settings: str, text: str = JOB) -> Summary:
    return run(load(job(folder, text), ['order="id"', *settings]))


def files(folder: Path, kind: str = "parquet") -> pa.Table:
    return ds.dataset(folder, format=kind, partitioning="hive").to_table()


# ---- here, without Spark ------------------------------------------------------------------------------------------------


def test_local(tmp_path: Path, expected: pa.Table) -> None:
    summary = start(tmp_path, "engine=local")
    same(summary.table, expected)
    assert (summary.rows, summary.state) == (200, "finished")


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_local_files(tmp_path: Path, expected: pa.Table, kind: str) -> None:
    start(tmp_path, "engine=local", f"sink.format={kind}", "sink.path=out")
    same(files(tmp_path / "out", kind), expected)
    with pytest.raises(JobError, match="is there already"):
        start(tmp_path, "engine=local", f"sink.format={kind}", "sink.path=out")
    start(tmp_path, "engine=local", f"sink.format={kind}", "sink.path=out", "sink.mode=overwrite")
    assert files(tmp_path / "out", kind).num_rows == 200
    start(tmp_path, "engine=local", f"sink.format={kind}", "sink.path=out", "sink.mode=append")
    assert files(tmp_path / "out", kind).num_rows == 400


def test_local_text_files_are_read_as_declared(tmp_path: Path) -> None:
    text = JOB.replace('format = "parquet"\npath = "events.parquet"', 'format = "csv"\npath = "in/*.csv"').replace(
        "[stream]", '[source.schema]\nid = "long"\nts = "timestamp"\ncard = "string"\namount = "double"\npaid = "boolean"\n[stream]'
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(
        "id,ts,card,amount,paid\n1,2024-01-01 00:00:00,a,5,true\n2,2024-01-01T00:30:00Z,a,7,\n", encoding="utf-8"
    )
    (tmp_path / "in" / "b.csv").write_text("id,ts,card,amount,paid\n3,2024-01-01T02:00:00+01:00,a,1,true\n", encoding="utf-8")
    found = start(tmp_path, "engine=local", text=text).table.sort_by("id")
    assert found["total_1h"].to_pylist() == [5.0, 12.0, 8.0]
    assert found["largest_5r"].to_pylist() == [1, 1, 1]
    (tmp_path / "in" / "b.csv").write_text("id,ts,card,amount,paid\n3,yesterday,a,1,true\n", encoding="utf-8")
    with pytest.raises(RunError, match="cannot be read"):
        start(tmp_path, "engine=local", text=text)


def test_a_local_file_without_one_of_the_columns(tmp_path: Path) -> None:
    """Nothing would be computed from nothing, and nobody told."""
    text = JOB.replace('format = "parquet"\npath = "events.parquet"', 'format = "csv"\npath = "in/*.csv"').replace(
        "[stream]", '[source.schema]\nid = "long"\nts = "timestamp"\ncard = "string"\namount = "long"\npaid = "boolean"\n[stream]'
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("paid,id,ts,card,amount\ntrue,1,2024-01-01 00:00:00,a,5\n", encoding="utf-8")
    assert start(tmp_path, "engine=local", text=text).table["total_1h"].to_pylist() == [5], "by name, in any order"
    (tmp_path / "in" / "b.csv").write_text("id,ts,card,Amount,paid\n2,2024-01-01 00:00:00,a,5,true\n", encoding="utf-8")
    with pytest.raises(RunError, match=r'b\.csv has no column "amount"; did you mean "Amount"'):
        start(tmp_path, "engine=local", text=text)


def test_local_as_of(tmp_path: Path) -> None:
    queries = events(20, seed=2).select(["ts", "card"]).rename_columns(["asked", "who"])
    pq.write_table(queries, tmp_path / "queries.parquet")
    as_of = '[as_of]\ntime = "asked"\nby = "who"\nqueries = { format = "parquet", path = "queries.parquet" }\n'
    found = start(tmp_path, "engine=local", "ties=arrival", text=JOB + as_of).table  # strictly before: ties say nothing
    aggs = {"total": sw.sum("amount")}
    by_hand = sw.as_of(queries, events(), time="ts", by="card", windows=["1h"], aggs=aggs, query_time="asked", query_by="who")
    assert found["total_1h"].to_pylist() == by_hand["total_1h"].to_pylist()
    assert found.num_rows == 20
    assert "total" in str(explain(load(job(tmp_path, JOB + as_of))))


def test_an_operator_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import slidewise as sw\n"
        "twice = sw.operator(lift=lambda x: 2.0 * x, combine=lambda a, b: a + b, identity=0.0, commutative=True, name='twice')\n",
        encoding="utf-8",
    )
    found = start(tmp_path, "engine=local", 'aggregates={twice = "mine.py:twice(amount)", total = "sum(amount)"}').table
    assert found["twice_1h"].to_pylist() == [2.0 * x for x in found["total_1h"].to_pylist()]


# ---- on Spark -----------------------------------------------------------------------------------------------------------


def test_batch(spark, tmp_path: Path, expected: pa.Table) -> None:
    before = spark.conf.get("spark.sql.parquet.outputTimestampType")
    said: list[str] = []
    checked = load(job(tmp_path), ['order="id"', "sink.format=parquet", "sink.path=out"])
    summary = run(checked, note=said.append)
    assert said[0] == "starting Spark"
    found = files(tmp_path / "out")
    same(found, expected)
    assert found["ts"].type == pa.timestamp("us", tz="UTC")
    assert summary.rows == 200
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") == before


def test_stream_of_a_replay(spark, tmp_path: Path, expected: pa.Table) -> None:
    summary = start(tmp_path, *REPLAY, "sink.format=parquet", "sink.path=out")
    found = files(tmp_path / "out")
    same(latest(found, "id"), expected)
    assert summary.rows == 200
    assert [step.number for step in summary.steps] == [0, 1, 2]
    assert summary.counts["in"] == 200
    assert summary.counts["out"] == found.num_rows > 200
    assert latest(spark.read.parquet(str(tmp_path / "out")), "id").count() == 200


def test_a_stream_goes_on_where_it_stopped(spark, tmp_path: Path, expected: pa.Table) -> None:
    text = JOB.replace('path = "events.parquet"', 'path = "incoming"')
    arrived = events().sort_by("arrived")
    (tmp_path / "incoming").mkdir()
    pq.write_table(arrived.slice(0, 120), tmp_path / "incoming" / "1.parquet")
    settings = ("mode=stream", "stream.watermark=1m", "sink.format=json", "sink.path=out")
    settings += ("stream.late=side", 'dead_letters={path="late"}')
    first = start(tmp_path, *settings, text=text)
    pq.write_table(arrived.slice(120), tmp_path / "incoming" / "2.parquet")
    second = start(tmp_path, *settings, text=text)
    assert [step.number for step in first.steps + second.steps] == [0, 1]
    assert (first.rows, second.rows) == (120, 80)
    found = spark.read.json(str(tmp_path / "out"))
    late = spark.read.json(str(tmp_path / "late"))
    assert set(late.columns) == {*events().column_names, "batch"}
    assert "late" not in found.columns
    assert late.count() == second.counts["late"] > 0
    assert {row.id for row in late.collect()} | {row.id for row in found.collect()} == set(range(200))


def test_a_replay_ends_with_all_final_results(spark, tmp_path: Path, expected: pa.Table) -> None:
    summary = start(tmp_path, *REPLAY, "stream.results=final", "stream.watermark=31m", "sink.format=parquet", "sink.path=out")
    found = files(tmp_path / "out")
    assert found.num_rows == 200, "each result once, the last ones too"
    same(found, expected)
    assert (summary.counts["in"], summary.counts["out"], summary.waiting) == (200, 200, False)


def test_final_results_of_a_folder_wait_until_a_run_is_the_last(spark, tmp_path: Path, expected: pa.Table) -> None:
    text = JOB.replace('path = "events.parquet"', 'path = "incoming"')
    arrived = events().sort_by("arrived")
    settings = ("mode=stream", "stream.results=final", "stream.watermark=31m", "sink.format=parquet", "sink.path=out")
    settings += ("source.max_files=1",)
    (tmp_path / "incoming").mkdir()
    for number in (0, 1):
        file = tmp_path / "incoming" / f"{number}.parquet"
        pq.write_table(arrived.slice(60 * number, 60), file)
        os.utime(file, (1_700_000_000 + number,) * 2)  # Spark takes the older one first
    first = start(tmp_path, *settings, text=text)
    assert 0 < first.counts["out"] < 120, "not the ones that the next run's events may change"
    assert first.waiting
    pq.write_table(arrived.slice(120), tmp_path / "incoming" / "2.parquet")
    last = start(tmp_path, *settings, "stream.flush=true", text=text)
    assert not last.waiting
    assert first.counts["out"] + last.counts["out"] == 200
    same(files(tmp_path / "out"), expected)


def test_final_results_without_a_checkpoint(spark, tmp_path: Path, expected: pa.Table) -> None:
    text = JOB.replace('checkpoint = "state"\n', "")
    assert text != JOB
    same(start(tmp_path, *REPLAY, "stream.results=final", "stream.watermark=31m", text=text).table, expected)


def test_results_of_another_checkpoint_are_not_mixed_in(spark, tmp_path: Path) -> None:
    start(tmp_path, *REPLAY, "sink.format=parquet", "sink.path=out")
    with pytest.raises(JobError, match=r"sink.path: holds the results of a stream with another checkpoint"):
        start(tmp_path, *REPLAY, "sink.format=parquet", "sink.path=out", "stream.checkpoint=other")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("x", encoding="utf-8")
    with pytest.raises(JobError, match="holds files that are not this stream's"):
        start(tmp_path, *REPLAY, "sink.format=parquet", "sink.path=mine", "stream.checkpoint=other")


def test_memory_keeps_the_latest_revision(spark, tmp_path: Path, expected: pa.Table) -> None:
    summary = start(tmp_path, *REPLAY, "sink.merge=true")
    assert summary.table.num_rows == 200
    same(summary.table, expected)


def test_a_database_keeps_the_latest_revision(spark, tmp_path: Path, expected: pa.Table) -> None:
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    settings = ["sink.format=jdbc", f"sink.url='{url}'", "sink.table=features", "sink.merge=true"]
    start(tmp_path, *REPLAY, *settings)
    found = spark.read.format("jdbc").option("url", url).option("dbtable", "features").load().toArrow()
    assert found.num_rows == 200
    same(found, expected)


@pytest.mark.parametrize("sink", ["memory", "jdbc"])
def test_a_late_event_takes_the_place_of_no_result(spark, tmp_path: Path, sink: str) -> None:
    """With `emit = "latest"` it has the key of a row that is there."""
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    place = [] if sink == "memory" else [f"sink={{format='jdbc', url='{url}', table='features', options={OPTIONS}}}"]
    straggling = events(3).set_column(1, "ts", pa.array([START] * 3, pa.timestamp("us", tz="UTC")))
    straggling = straggling.set_column(2, "arrived", pa.array([START + timedelta(hours=10)] * 3, pa.timestamp("us", tz="UTC")))
    straggling = straggling.set_column(3, "card", pa.array(["c0", "c1", "c2"])).set_column(0, "id", pa.array([200, 201, 202]))
    path = job(tmp_path, table=pa.concat_tables([events(), straggling]))
    late = ['order="id"', "emit=latest", "stream.watermark=1h", "stream.late=side", "sink.merge=true"]
    summary = run(load(path, [*REPLAY, *place, *late]))
    found = summary.table
    if sink == "jdbc":
        found = spark.read.format("jdbc").option("url", url).option("dbtable", "features").load().toArrow()
    assert summary.counts["late"] == summary.counts["side"] == 3
    assert sorted(found["card"].to_pylist()) == ["c0", "c1", "c2"]
    assert None not in found["payments_1h"].to_pylist()


def test_history_fills_the_windows(spark, tmp_path: Path, expected: pa.Table) -> None:
    whole = events()
    start_of_stream = whole["ts"][100]
    pq.write_table(whole.filter(pc.less(whole["ts"], start_of_stream)), tmp_path / "history.parquet")
    live = whole.filter(pc.greater_equal(whole["ts"], start_of_stream))
    text = JOB + '[history]\nformat = "parquet"\npath = "history.parquet"\n'
    path = job(tmp_path, text, live)
    summary = run(load(path, ['order="id"', *REPLAY, "sink.merge=true"]))
    same(summary.table, expected.filter(pc.greater_equal(expected["ts"], start_of_stream)))


def test_as_of_on_spark(spark, tmp_path: Path) -> None:
    queries = events(20, seed=2).select(["ts", "card"])
    pq.write_table(queries, tmp_path / "queries.parquet")
    text = JOB + '[as_of.queries]\nformat = "parquet"\npath = "queries.parquet"\n'
    on_spark = start(tmp_path, text=text).table.sort_by([("ts", "ascending"), ("card", "ascending")])
    here = start(tmp_path, "engine=local", text=text).table.sort_by([("ts", "ascending"), ("card", "ascending")])
    assert on_spark["total_1h"].to_pylist() == here["total_1h"].to_pylist()


class Query:
    """A stream that ends at once, in this way."""

    id, isActive = "1", False

    def __init__(self, error: str | None, batches: int):
        self.error = error
        self.recentProgress = [
            {"batchId": n, "numInputRows": 1, "batchDuration": 1, "durationMs": {"addBatch": 1}} for n in range(batches)
        ]

    def awaitTermination(self, seconds: float) -> bool:
        if self.error:
            raise RuntimeError(self.error)
        return True


@pytest.mark.parametrize(
    ("error", "batches", "starts"),
    [(None, 0, 1), ("worker failed to connect back", 0, 5), ("worker failed to connect back", 1, 1), ("no room", 0, 1)],
)
def test_a_stream_that_never_got_going_is_started_again(tmp_path: Path, error: str | None, batches: int, starts: int) -> None:
    """On a busy machine Spark's first Python comes up too late; a stream that has begun is not begun again."""
    begun: list[Query] = []

    def start_one() -> Query:
        begun.append(Query(error, batches))
        return begun[-1]

    reporter = running._Reporter(Summary("job", "stream", "memory"), lambda step: None)
    with contextlib.nullcontext() if error is None else pytest.raises(RuntimeError, match=error):
        running._follow(load(job(tmp_path)).document, start_one, reporter, threading.Event(), SimpleNamespace(begun=-1))
    assert len(begun) == starts


def test_a_stop_waits_for_the_micro_batch_that_runs() -> None:
    """Also where the one before has ended since anybody looked: what the sink got is told of."""
    told = [{"batchId": n, "durationMs": {"addBatch": 1}, "numInputRows": 10, "batchDuration": 5} for n in range(3)]
    looks = iter((told[:1], told[:2], told[:2], told))

    class Query:
        isActive, status = True, {"isTriggerActive": True}
        recentProgress = property(lambda self: next(looks))

    summary = Summary("job", "stream", "memory")
    reporter = running._Reporter(summary, lambda step: None)
    running._wait_for_the_batch(Query(), reporter, SimpleNamespace(begun=2))
    assert [step.number for step in summary.steps] == [0, 1, 2]


def test_the_console_shows_the_first_rows() -> None:
    """And says so; of nothing, nothing."""
    table = pa.table({"a": list(range(105))})
    shown: list[tuple[int, str]] = []
    checked = SimpleNamespace(job=SimpleNamespace(sink=schema.ConsoleSink(rows=5), dead_letters=None), document=None)
    sink = StreamSink(checked, lambda table, title: shown.append((table.num_rows, title)))
    for number, rows in enumerate((table, table.slice(0, 0), table.slice(0, 5))):
        sink(SimpleNamespace(toArrow=lambda rows=rows: rows), number)
    assert shown == [(5, "micro-batch 0: 5 of 105 rows"), (5, "micro-batch 2")]


def test_what_fails_is_told_in_words(spark, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import slidewise as sw\n"
        "bad = sw.operator(lift=str, combine=lambda a, b: a + b if len(a) < 12 else [][1], identity='', name='bad')\n",
        encoding="utf-8",
    )
    with pytest.raises(RunError) as caught:
        start(tmp_path, *REPLAY, 'aggregates={bad = "mine.py:bad(amount)"}')
    assert "list index out of range" in str(caught.value)
    assert "\n" not in str(caught.value)
