"""The Spark suites without Spark: what is fed in is what is said, and verdicts follow from the rows."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from slidewise.bench import spark_batch, spark_stream
from slidewise.engines.spark.log import Log


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
    assert "5.0 times Spark's frames with the segment tree, 80% of pass-through" in said[0]
    assert "50 times Spark's frames without" in said[1] and "for 1 of the rows" in said[1]
    assert "4.0 times Spark's window()" in said[2]
    assert all(line.endswith("2.00 times that with 1") for line in said[3:10])
    assert said[6].startswith("one key, pass-through: 100 rows/s with 2 tasks")
    assert said[9].startswith("one key, session windows, by=: 100 rows/s with 2 tasks")
    ended = spark_batch.verdicts(batch_rows(**{"(b) frames, re-aggregated": 0}))
    assert "did not end within" in ended[1]


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
    assert any("ours is 25 times plain per-key state" in line for line in said)
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
