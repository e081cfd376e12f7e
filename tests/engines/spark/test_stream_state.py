"""Stored state: forks, damage, changed queries, other numbers of buckets. One session, real checkpoints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from tests.engines.spark.streaming import (
    PLAIN,
    PLAIN_DDL,
    cut,
    events,
    final,
    out,
    rows_of,
    run,
    sink_rows,
    source,
    table,
    total,
    write_batches,
)

import slidewise as sw

ASKED = {"time": "ts", "by": "card", "windows": ["10m"], "aggs": {"n": sw.count(), "total": sw.sum("amount")}}


def stream(spark, root: Path, **changes):
    asked = ASKED | {"watermark": "5m", "id": "id", "buckets": 4} | changes
    return sw.rolling(source(spark, root / "in", PLAIN_DDL), **asked)


def expected(rows: list[dict], **changes) -> dict[int, dict]:
    return {row["id"]: row for row in rows_of(sw.rolling(table(rows, PLAIN), **(ASKED | changes)))}


def assert_ends_at(root: Path, rows: list[dict], **changes) -> None:
    found = final(out(root))
    for number, row in expected(rows, **changes).items():
        assert {name: found[number][name] for name in row} == row


def test_a_copied_checkpoint_continued_differently(spark, tmp_path: Path) -> None:
    """Both run in the same session, so in the same Python workers, under the same query's name, with the same numbers.

    By turns, and one of them twice: then a worker meets the other's state whether it gets each run or every second one."""
    rows = events(160, seed=31, jitter=100)
    pieces = cut(rows, 1, 6)
    here, there = tmp_path / "here", tmp_path / "there"  # the sink's log holds absolute paths: the copy gets its own
    write_batches(here / "in", [table(piece, PLAIN) for piece in pieces[:2]])
    run(stream(spark, here), here)
    shutil.copytree(here / "checkpoint", there / "checkpoint")
    for number, one in ((2, here), (3, there), (4, here), (5, here)):
        # The same directory of files, as the checkpoint knows it; what comes next is another file each time.
        write_batches(here / "in", [table(pieces[number], PLAIN)], first=number)
        query = (
            stream(spark, here).writeStream.format("parquet").option("path", str(one / "out"))
            .option("checkpointLocation", str(one / "checkpoint")).trigger(availableNow=True).start()
        )  # fmt: skip
        query.awaitTermination()
        (here / "in" / f"{number:05}.parquet").unlink()
    begun = [row for row in out(here) if row["revision"] < 2]
    assert_same_as(here, [], [row for number in (0, 1, 2, 4, 5) for row in pieces[number]])
    assert_same_as(there, begun, [row for number in (0, 1, 3) for row in pieces[number]])


def assert_same_as(root: Path, before: list[dict], rows: list[dict]) -> None:
    found = final(before + out(root))
    for number, row in expected(rows).items():
        assert {name: found[number][name] for name in row} == row


def test_damaged_state_is_a_clear_error(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.engines.spark.vandal import Vandal

    import slidewise.engines.spark.processor as processor

    pieces = cut(events(90, seed=1), 1, 3)
    write_batches(tmp_path / "in", [table(pieces[0], PLAIN)])
    run(stream(spark, tmp_path), tmp_path)
    write_batches(tmp_path / "in", [table(pieces[1], PLAIN)], first=1)
    with monkeypatch.context() as patched:
        patched.setattr(processor, "BucketProcessor", Vandal)
        run(stream(spark, tmp_path), tmp_path)
    before = len(out(tmp_path))
    write_batches(tmp_path / "in", [table(pieces[2], PLAIN)], first=2)
    # The workers that have the engine would not look at the entry: another token, another engine.
    with pytest.raises(StreamingQueryException, match=r"StateError: stored state of bucket .*checksum does not fit"):
        run(stream(spark, tmp_path, aggs=ASKED["aggs"] | {"peak": sw.max("amount")}), tmp_path)
    assert len(out(tmp_path)) == before, "nothing came out of it"


MISSING = r"CANNOT_READ_STREAMING_STATE_FILE.* of file:\S*/copy/state/0/\d+/\S* does not exist"


@pytest.mark.parametrize(("lost", "told"), [("[0-9]/*", MISSING), ("[0-9]", MISSING),
                                            ("*", r"FAILED_TO_READ_OPERATOR_METADATA.*\S*/copy/state/0 ")])  # fmt: skip
def test_lost_state_is_not_a_silent_beginning(spark, tmp_path: Path, lost: str, told: str) -> None:
    """The state store finds that out itself, and names what is missing."""
    pieces = cut(events(60, seed=1), 1, 2)
    write_batches(tmp_path / "in", [table(pieces[0], PLAIN)])
    run(stream(spark, tmp_path), tmp_path)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
    gone = list((tmp_path / "copy" / "state" / "0").glob(lost))
    assert gone
    for path in gone:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_batches(tmp_path / "in", [table(pieces[1], PLAIN)], first=1)
    query = (
        stream(spark, tmp_path).writeStream.format("parquet").option("path", str(tmp_path / "other" / "out"))
        .option("checkpointLocation", str(tmp_path / "copy")).trigger(availableNow=True).start()
    )  # fmt: skip
    with pytest.raises(StreamingQueryException, match=told):
        query.awaitTermination()
    assert out(tmp_path / "other") == [], "nothing came out of it"


def test_changed_queries(spark, tmp_path: Path) -> None:
    """Accepted: what the stored columns and their reach can serve. Refused, before anything is overwritten: the rest."""
    rows = events(160, seed=41, jitter=60)
    pieces = cut(rows, 2, 4)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces[:2]])
    run(stream(spark, tmp_path), tmp_path)
    write_batches(tmp_path / "in", [table(pieces[2], PLAIN)], first=2)
    for changes, message in (
        ({"windows": ["30m"]}, "reaches .* this query needs"),
        ({"by": "shop"}, "written with by"),
        ({"windows": ["10m", sw.rows(3)]}, "0 rows of a key are kept"),
        ({"windows": ["10m", sw.session("1m")]}, "session window"),
        ({"results": "final"}, "written with results"),
        ({"buckets": 8}, "the checkpoint has 4 buckets, this query 8"),
    ):
        before = sorted((tmp_path / "checkpoint" / "commits").iterdir())
        with pytest.raises(StreamingQueryException, match=f"StateError: stored state of bucket .*{message}"):
            run(stream(spark, tmp_path, **changes), tmp_path)
        assert sorted((tmp_path / "checkpoint" / "commits").iterdir()) == before
    changed = {"windows": ["5m", "10m"], "aggs": {"total": sw.sum("amount"), "peak": sw.max("price")}}
    run(stream(spark, tmp_path, **changed), tmp_path)
    found = sink_rows(tmp_path / "out", 2)
    whole = expected(pieces[0] + pieces[1] + pieces[2], **changed)
    assert {row["id"] for row in found} >= {row["id"] for row in pieces[2]}
    for row in found:
        assert {name: row[name] for name in whole[row["id"]]} == whole[row["id"]]


def test_a_longer_window_is_served_where_results_may_say_so(spark, tmp_path: Path) -> None:
    rows = events(200, seed=43, seconds=7200)
    pieces = cut(rows, 2, 4)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces[:3]])
    run(stream(spark, tmp_path, complete=True), tmp_path)
    write_batches(tmp_path / "in", [table(pieces[3], PLAIN)], first=3)
    longer = {"windows": ["10m", "40m"]}
    run(stream(spark, tmp_path, complete=True, **longer), tmp_path)
    found = [row for row in sink_rows(tmp_path / "out", 3) if not row["late"]]
    whole = expected(rows, **longer)
    assert {row["complete"] for row in found} == {True, False}
    for row in found:
        assert row["total_10m"] == whole[row["id"]]["total_10m"]
        if row["complete"]:
            assert row["total_40m"] == whole[row["id"]]["total_40m"]


def test_restart_hits_no_stale_engine_and_reads_the_log_once(spark, tmp_path: Path) -> None:
    rows = events(200, seed=47, jitter=30)
    pieces = cut(rows, 1, 8)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces])
    counts = run(stream(spark, tmp_path), tmp_path)
    hits = [c for c in counts if c["hits"]]
    assert hits, "some batches find their engine in the worker"
    assert all(c["entries_read"] == 0 for c in hits), "and those read no old entries"
    assert total(counts, "hits") + total(counts, "catch_ups") + total(counts, "replays") <= len(counts)
    assert_ends_at(tmp_path, rows)
