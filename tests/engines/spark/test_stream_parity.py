"""What a stream gives and when: what changed comes again, final results once, slides, the latest, quiet keys, equal keys.

(That its last word is what a frame says at once: test_parity.)"""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from tests.engines.spark.streaming import (
    PLAIN,
    PLAIN_DDL,
    SECOND,
    cut,
    events,
    out,
    rows_of,
    run,
    source,
    table,
    ties,
    total,
    without,
    write_batches,
)
from tests.engines.spark.test_parity import WINDOWS

import slidewise as sw
from slidewise.engines.spark.control import flush

AGGS = {
    "n": sw.count(),
    "total": sw.sum("amount", where="paid"),
    "sure": sw.sum("price", exact=True),
    "peak": sw.max("price"),
    "who": sw.argmax("price", "shop"),
    "tail": sw.last("shop"),
}


def at_once(rows: list[dict], **asked) -> dict[int, dict]:
    """What the local engine says of all events."""
    return {row["id"]: row for row in rows_of(sw.rolling(table(rows, PLAIN), **asked))}


def test_exactly_the_rows_whose_result_changed_come_again(spark, tmp_path: Path) -> None:
    """Of every window kind, for events that come out of order, behind the watermark, and at the time of another.

    Many an event comes into a window and changes nothing there: it is not paid, lower than others, and not the last."""
    rows = events(120, seed=7, jitter=400)
    asked = {"time": "ts", "by": "card", "windows": WINDOWS, "order": "id",
             "aggs": {"total": sw.sum("amount", where="paid"), "peak": sw.max("price"), "tail": sw.last("shop")}}  # fmt: skip
    pieces = cut(rows, 3, 6)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces])
    stream = sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **asked, watermark="1m", keep="20m", id="id", ttl="1d")
    counts = run(stream, tmp_path)
    assert ties(rows) > 15 and total(counts, "late") > 10
    found = out(tmp_path)
    before: dict[int, dict] = {}
    again = 0
    for number in range(len(pieces)):
        after = at_once([row for piece in pieces[: number + 1] for row in piece], **asked)
        due = {i for i, row in after.items() if row != before.get(i)}
        batch = [row for row in found if row["revision"] == number]
        assert sorted(row["id"] for row in batch) == sorted(due)
        assert {row["id"]: without(row, "revision", "late") for row in batch} == {i: after[i] for i in due}
        again += len(due) - len(pieces[number])
        before = after
    assert again > 30, "the events are meant to change results"


def test_final_results_come_once_and_flush_gives_the_rest(spark, tmp_path: Path) -> None:
    rows = events(150, seed=3, jitter=200)
    asked = {"time": "ts", "by": "card", "windows": WINDOWS, "aggs": AGGS, "order": "id"}
    for piece in (pieces := cut(rows, 2, 5)):
        random.Random(len(piece)).shuffle(piece)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces])

    def result():
        return sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **asked, watermark="4m", id="id", results="final",
                          ttl="1d", control=tmp_path / "control")  # fmt: skip

    run(result(), tmp_path)
    early = out(tmp_path)
    assert 0 < len(early) < len(rows), "some results wait for the watermark"
    flush(tmp_path / "control")
    run(result(), tmp_path)
    found = out(tmp_path)
    assert len(found) == len(rows), "each result once"
    expected = at_once(rows, **asked)
    assert {row["id"]: without(row, "revision", "late") for row in found} == expected
    assert {row["id"] for row in early} <= {row["id"] for row in found}


def test_quiet_buckets_give_their_final_results_too(spark, tmp_path: Path) -> None:
    """One card is heard of once, and then only others are: its result comes with the watermark, not with its next event."""
    rows = events(120, seed=5, cards=12)
    first = [row for row in rows if row["card"] == "card 0"][:1]
    others = [row for row in rows if row["card"] == "card 1" and row["ts"] > first[0]["ts"]]
    assert others[3]["ts"] > first[0]["ts"] + 31 * SECOND
    pieces = [first + others[:2], others[2:4], others[4:]]
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in pieces])
    result = sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), time="ts", by="card", windows="10m",
                        aggs={"n": sw.count()}, watermark="30s", id="id", results="final", buckets=16)  # fmt: skip
    counts = run(result, tmp_path)
    assert len({c["label"] for c in counts if c["in"]}) == 2, "the two cards have buckets of their own"
    assert any(c["out"] and not c["in"] for c in counts), "and one gave a result in a micro-batch without events for it"
    assert [row["n_10m"] for row in out(tmp_path) if row["id"] == first[0]["id"]] == [1]


@pytest.mark.parametrize("results", ["eager", "final"])
def test_slides_and_latest(spark, tmp_path: Path, results: str) -> None:
    rows = events(140, seed=11, jitter=100)
    write_batches(tmp_path / "in", [table(piece, PLAIN) for piece in cut(rows, 4, 4)])
    base = {"time": "ts", "by": "card", "order": "id"}
    cases = {
        "slide": {"windows": [sw.time("5m", slide="1m"), sw.tumbling("1m")], "aggs": {"n": sw.count(), "t": sw.sum("amount")}},
        "latest": {"windows": ["5m", sw.rows(4)], "aggs": {"n": sw.count(), "t": sw.sum("amount")}},
    }
    for emit, more in cases.items():
        def result(emit=emit, more=more):
            return sw.rolling(source(spark, tmp_path / "in", PLAIN_DDL), **base, **more, emit=emit, watermark="3m", id="id",
                              results=results, control=tmp_path / emit / "control")  # fmt: skip

        run(result(), tmp_path / emit)
        flush(tmp_path / emit / "control")
        run(result(), tmp_path / emit)
        expected = {(row["card"], row["ts"]): row for row in rows_of(sw.rolling(table(rows, PLAIN), **base, **more, emit=emit))}
        found: dict = {}
        for row in sorted(out(tmp_path / emit), key=lambda row: row["revision"]):
            found[(row["card"], row["ts"]) if emit == "slide" else row["card"]] = without(row, "revision", "late")
        if emit == "latest":
            expected = {card: row for (card, _), row in expected.items()}
        assert found == expected


def test_keys_are_equal_as_spark_says(spark, tmp_path: Path) -> None:
    """0.0 and -0.0 are one key, all NaN are one, null is one; upper and lower case are where the collation says so."""
    import pyarrow as pa

    schema = pa.schema([("id", pa.int64()), ("k", pa.float64()), ("word", pa.string()), ("ts", pa.int64())])
    keys = [0.0, -0.0, float("nan"), -float("nan"), None, 1.5]
    words = ["Ab", "aB", None, "c"]
    rng = random.Random(1)
    rows = [{"id": i, "k": rng.choice(keys), "word": rng.choice(words), "ts": i} for i in range(80)]
    write_batches(tmp_path / "in", [table(piece, schema) for piece in cut(rows, 1, 3)])
    stream = source(spark, tmp_path / "in", "id long, k double, word string collate UTF8_LCASE, ts long")
    result = sw.rolling(stream, time="ts", by=["k", "word"], windows={"all": 1000}, aggs={"n": sw.count()}, watermark=10,
                        id="id", buckets=32)  # fmt: skip
    run(result, tmp_path)

    def normal(row):
        k = row["k"]
        k = "nan" if k is not None and math.isnan(k) else k if k is None else k + 0.0
        return k, None if row["word"] is None else row["word"].lower()

    found = out(tmp_path)
    assert {row["id"]: (row["word"], str(row["k"])) for row in found} == {r["id"]: (r["word"], str(r["k"]).lstrip("-") if
            r["k"] != r["k"] else str(r["k"])) for r in rows}  # fmt: skip
    for row in found:
        assert row["n_all"] == sum(normal(other) == normal(row) and other["id"] <= row["id"] for other in rows)
