"""The Spark suites without Spark: what is fed in is what is said, and verdicts follow from the rows."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.bench import spark_batch, spark_stream
from slidewise.bench.suite import picked
from slidewise.engines.spark.log import Log
from slidewise.errors import SlidewiseError


def test_one_event_in_ten_is_out_of_order_by_up_to_ten_minutes():
    rng = np.random.default_rng(1)
    tables = [spark_stream.events(rng, 20_000, batch) for batch in range(2)]
    assert len(set(tables[0]["id"].to_pylist()) & set(tables[1]["id"].to_pylist())) == 0
    times = tables[0]["ts"].cast("int64").to_numpy()
    back = np.maximum.accumulate(times) - times
    assert 0.08 < (back > 1_000_000).mean() < 0.11
    assert 500_000_000 < back.max() <= 600_000_000 + spark_stream.SPAN // 1000
    assert 8_000 < len(tables[0]["card"].unique()) <= spark_stream.KEYS


def test_the_rate_is_that_of_warm_micro_batches():
    progress = [{"numInputRows": 100, "durationMs": {"triggerExecution": ms}} for ms in (9000, 1000, 500, 500, 400)]
    assert spark_stream.rate(progress, 2) == 200.0


def batch_rows(**rates: float) -> list[dict]:
    names = {"(c) ours": 500.0, "(a) frames, segment tree": 100.0, "(b) frames, re-aggregated": 10.0, "(d) pass-through": 625.0,
             "hopping, ours": 40.0, "hopping, Spark's window()": 10.0, "wide rows, all columns ride": 9.0,
             "wide rows, joined back": 8.0, "wide rows, pass-through": 10.0}  # fmt: skip
    kinds = ("time", "rows", "session", "pass-through", "time, by=", "rows, by=", "session, by=")
    names |= {f"one key, {kind}, {tasks}": 50.0 * int(tasks[0]) for kind in kinds for tasks in ("1 task", "2 tasks")}
    return [{"what": name, "rows": 1, "seconds": 1.0, "rows_s": rate} for name, rate in (names | rates).items() if rate]


def test_verdicts_of_batches():
    said = spark_batch.verdicts(batch_rows())
    assert "5.0 times Spark's frames with the segment tree (at least 5 wanted), 80% of pass-through (at least 80% wanted" in said[0]
    assert "wanted: missed), 80%" in spark_batch.verdicts(batch_rows(**{"(a) frames, segment tree": 101.0}))[0]
    assert "50 times Spark's frames without" in said[1] and "for 1 of the rows" in said[1]
    assert "4.0 times Spark's window()" in said[2]
    ends = ["2.00 times that with 1" + " (at least 1.5 wanted)" * (k != 3) for k in range(7)]
    assert all(line.endswith(end) for line, end in zip(said[3:10], ends, strict=True))
    assert said[6].startswith("one key, pass-through: 100 rows/s with 2 tasks")
    assert said[9].startswith("one key, session windows, by=: 100 rows/s with 2 tasks")
    ended = spark_batch.verdicts(batch_rows(**{"(b) frames, re-aggregated": 0}))
    assert "did not end within" in ended[1]
    rates = {f"(c) ours{spark_batch.NO_LIMIT}": 600.0, f"(d) pass-through{spark_batch.NO_LIMIT}": 800.0}
    assert "ours 600 rows/s: 6.0 times" in spark_batch.verdicts(batch_rows(**rates))[1]
    assert "75% of pass-through (at least 80% wanted: missed)" in spark_batch.verdicts(batch_rows(**rates))[1]
    few = spark_batch.verdicts([*batch_rows(**{spark_batch.FEW: 300.0}), {"what": spark_batch.ANSWERS, "rows": 7, "rows_s": None}])
    assert "on the 1 rows of a few keys ours 300 rows/s, 30 times Spark's frames without" in few[1], "on the same rows"
    assert few[-1] == "answers compared on 7 rows, ours and Spark's own: the same"


def test_tables_of_batches_show_ratios_first_and_have_no_gaps():
    parts = {"(c) ours": "frames", "(a) frames, segment tree": "frames", "hopping, ours": "hopping"}
    parts |= {"hopping, Spark's window()": "hopping", "wide rows, pass-through": "wide rows"}
    rows = [{"part": parts[row["what"]], **row} for row in batch_rows() if row["what"] in parts]
    rows.append({"part": spark_batch.ANSWERS, "what": spark_batch.ANSWERS, "rows": 7, "seconds": None, "rows_s": None})
    rows = spark_batch.with_times(rows)
    assert {row["what"]: row["times"] for row in rows}["(c) ours"] == 5.0
    views = spark_batch.views(rows)
    assert [view.value for view in views] == ["times", "rows_s"] * 3
    for view in views:
        assert all(row[view.value] is not None for row in picked(rows, view.only))
    assert spark_batch.views(batch_rows())[0].value == "rows_s", "results that were filed before there were parts"


def test_answers_of_batches_that_differ_end_the_suite():
    ours = pa.table({"key": [1, 0], "ts": [5, 5], "sum_w": [0.3, 2.0], "count_w": [1, 2]})
    theirs = pa.table({"ts": [5, 5], "key": [0, 1], "count_w": [2, 1], "sum_w": [2.0, 0.1 + 0.2]})
    assert spark_batch.same(ours, theirs, ["key", "ts"], "frames") == 2, "in any order, and to the last digits"
    with pytest.raises(SlidewiseError, match="frames: count_w differs in 1 of 2 rows; first where key = 1, ts = 5: ours 1, Spark"):
        spark_batch.same(ours, theirs.set_column(2, "count_w", [[2, 3]]), ["key", "ts"], "frames")
    with pytest.raises(SlidewiseError, match="frames: sum_w differs"):
        spark_batch.same(ours, theirs.set_column(3, "sum_w", [[2.001, 0.3]]), ["key", "ts"], "frames")
    with pytest.raises(SlidewiseError, match="2 rows of ours, 1 of Spark's"):
        spark_batch.same(ours, theirs.slice(1), ["key", "ts"], "frames")


def test_answers_of_streams_that_differ_end_the_suite():
    given = pa.concat_tables([spark_stream.events(np.random.default_rng(b), 50, b, keys=3) for b in range(3)])
    columns = spark_stream.cut_out(given)
    right = pa.table({"id": np.arange(150), "revision": np.full(150, 2), **columns})
    early = pa.table({"id": np.arange(50), "revision": np.zeros(50, np.int64), **{k: 0 * c[:50] for k, c in columns.items()}})
    assert spark_stream.same(pa.concat_tables([right, early]), given) == 150, "what was revised does not count"
    plain = sw.rolling(given, time="ts", by="card", windows=spark_stream.WINDOWS, aggs=spark_stream.AGGS).sort_by("id")
    assert all(np.allclose(plain[name].to_numpy(), column) for name, column in columns.items())
    with pytest.raises(SlidewiseError, match="peak_day differs in 150 of 150"):
        spark_stream.same(right.set_column(right.column_names.index("peak_day"), "peak_day", [columns["peak_day"] + 1]), given)
    with pytest.raises(SlidewiseError, match="answers for 149 events, not for the 150"):
        spark_stream.same(right.slice(1), given)


def test_verdicts_of_streams():
    def row(what: str, size: int, **values: float) -> dict:
        return {"what": what, "rows_a_batch": size, **values}

    rows = [row("plain", 20_000, rows_s=10.0), row("latency at 5,000 rows/s", 5_000, p50_s=1.0, p99_s=2.0),
            row("hopping", spark_stream.HOPS, rows_s=1.0), row("our hopping", spark_stream.HOPS, rows_s=30.0)]  # fmt: skip
    for size in (20_000, 200_000):
        rows += [row("through", size, rows_s=500.0),
                 row("ours", size, rows_s=250.0, **spark_stream.state([size * 40] * 60, size))]  # fmt: skip
    said = spark_stream.verdicts(rows)
    assert "ours 250 rows/s, 50% of the pass-through's 500" in said[0]
    assert "40 bytes of state an event, written 1.0 times over" in said[1]
    assert said[1].endswith("in proportion to the events, not to the window")
    assert any("ours is 25.0 times plain per-key state (10 rows/s) (at least 20 wanted)" in line for line in said)
    assert any("ours 30 rows/s, 30.0 times Spark's window()" in line for line in said)
    assert not any("answers compared" in line for line in said)
    rows += [row(spark_stream.BESIDE_PLAIN, 20_000, rows_s=50.0)]
    rows.append(row(spark_stream.ANSWERS, 2_000, rows_s=None))
    said = spark_stream.verdicts(rows)
    assert any("ours in the same micro-batches is 5.0 times plain per-key state" in line for line in said)
    assert any("(at least 20 wanted: missed)" in line for line in said)
    assert "ours 250 rows/s, 50% of the pass-through's 500" in said[0], "over all of its own"
    assert said[-1].startswith("answers compared on 2,000 rows")
    assert any("p50 1.00 s, p99 2.00 s" in line for line in said)


@pytest.mark.parametrize("suite", [spark_batch, spark_stream])
def test_suites_tell_where_they_come_from(suite):
    assert suite.SUITE.name.startswith("spark-") and "Spark" in suite.SUITE.source


def verdict_of(written: list[int]) -> str:
    return spark_stream._proportion(spark_stream.state(written, 1)).rsplit(": ", 1)[1]


@pytest.mark.parametrize("batches", [6, 12, 14, 60])
def test_whoever_writes_windows_is_told_from_whoever_writes_events(batches):
    """Whole windows, a tenth of them with every micro-batch, all of them with every tenth; and the log itself, with its tiers."""
    held = [min(k + 1, 48) for k in range(batches)]
    assert verdict_of([40] * batches) == "in proportion to the events, not to the window"
    assert verdict_of([40 * h for h in held]) == "growing with the window"
    if batches == 60:
        assert verdict_of([40 + 4 * h for h in held]) == "growing with the window"
        assert verdict_of([40 + 40 * h * (k % 10 == 9) for k, h in enumerate(held)]) == "growing with the window"


@pytest.mark.parametrize(("batches", "rows"), [(60, 5_000), (14, 50_000)])
def test_the_log_writes_events(batches, rows):
    """Four buckets share the 20,000 and the 200,000 rows of a micro-batch."""
    kept: dict = {}
    store = SimpleNamespace(read_head=lambda: kept.get("head"), write_head=lambda data: kept.update(head=data), read=kept.get,
                            write=kept.__setitem__, remove=kept.pop, has_entries=lambda: bool(kept))  # fmt: skip
    table = pa.table({name: np.random.default_rng(1).integers(0, 1 << 60, rows) for name in ("card", "ts", "amount")})
    log, written = Log(store, label=0, buckets=4, signature=b""), []
    for k in range(batches):
        before = log.bytes_written
        log.append(table, k)
        log.trim(k - 48)
        log.compact()
        log.commit()
        written.append(log.bytes_written - before)
    assert verdict_of(written) == "in proportion to the events, not to the window"
