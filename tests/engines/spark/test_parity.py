"""The same events on a frame, in a Spark batch and in a Spark stream: every window kind with every operator, one answer.

The events have ties of time, nulls, NaN (in keys too, where 0.0 is -0.0), and come out of order; micro-batches are cut at random
and shuffled. Exact operators agree to the last bit, the others within rounding."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from tests.engines.spark.streaming import (
    PLAIN,
    PLAIN_DDL,
    cut,
    events,
    final,
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

import slidewise as sw
from slidewise.engines.spark.control import flush
from slidewise.operators.making import REGISTRY

WINDOWS = {
    "near": "2m",
    "far": "10m",
    "slid": sw.time("5m", slide="1m"),
    "moved": sw.time("3m", offset="1m"),
    "five": sw.rows(5),
    "leap": sw.rows(6, slide=2),
    "cup": sw.tumbling("4m"),
    "visit": sw.session("40s"),
    "band": sw.delta("price", 3.0),
    "mark": sw.punctuation("paid"),
    "life": sw.lifetime(),
}
SCHEMA = PLAIN.append(pa.field("few", pa.int64())).append(pa.field("odd", pa.float64())).append(pa.field("part", pa.float64()))
DDL = PLAIN_DDL + ", few long, odd double, part double"


class Range(NamedTuple):
    low: float
    high: float


reach = sw.operator(
    lift=lambda x: Range(x, x),
    combine=lambda a, b: Range(min(a.low, b.low), max(a.high, b.high)),
    lower=lambda s: s.high - s.low,
    identity=Range(math.inf, -math.inf),
    name="reach",
)
path = sw.operator(lift=lambda s: s, combine=lambda a, b: a + b, lower=lambda s: s, identity="", name="path")

FAMILIES = {
    "words": {
        "n": sw.count(),
        "seen": sw.count("amount"),
        "total": sw.sum("amount"),
        "paid": sw.sum("amount", where="paid"),
        "average": sw.mean("amount"),
        "times": sw.product("few"),
        "peak": sw.max("odd"),
        "low": sw.min("odd"),
        "width": sw.spread("amount"),
    },
    "more words": {
        "lows": sw.min_count("few"),
        "highs": sw.max_count("few"),
        "some": sw.any("paid"),
        "every": sw.all("paid"),
        "ands": sw.bit_and("few"),
        "ors": sw.bit_or("few"),
        "xors": sw.bit_xor("few"),
    },
    "in order": {
        "who": sw.argmax("price", "shop"),
        "least": sw.argmin("few", "id"),
        "tail": sw.last("shop"),
        "head": sw.first("amount"),
        "second": sw.nth_youngest("few", n=2),
        "chart": sw.m4("price"),
    },
    "exact floats": {"sure": sw.sum("price", exact=True), "middle": sw.mean("price", exact=True), "odd": sw.sum("odd", exact=True)},
    "lists": {
        "all": sw.collect("shop"),
        "kinds": sw.collect_distinct("shop"),
        "top": sw.top_k("amount", k=3),
        "line": sw.concat("shop", sep="-"),
        "half": sw.median("price"),
        "model": sw.naive_bayes("shop", "few"),
    },
    "sketches": {
        "bars": sw.histogram("price", edges=[0.0, 2.5, 5.0, 10.0]),
        "most": sw.quantile("price", q=0.9),
        "about": sw.approx_distinct("amount"),
        "often": sw.approx_count("few", item=2),
        "filter": sw.bloom("amount", bits=512),
    },
    "own": {"reach": reach("price"), "path": path("shop"), "pair": sw.struct(n=sw.count("few"), last=sw.last("id"))},
    "floats": {
        "mean": sw.mean("price"),
        "sum": sw.sum("price"),
        "var": sw.var("price"),
        "dev": sw.std("amount"),
        "geo": sw.geomean("price"),
        "line": sw.slope("amount", "price"),
        "both": sw.covariance("amount", "price"),
        "like": sw.correlation("amount", "price"),
    },
}
ASKED = {
    "words": {},
    "more words": {"closed": "both", "by": ["card", "part"]},
    "in order": {"ties": "arrival", "by": "part"},
    "exact floats": {"closed": "left"},
    "lists": {"closed": "neither"},
    "sketches": {"exclude_current": True},
    "own": {},
    "floats": {"closed": "left", "ties": "arrival"},
}
"""One way of taking ends, ties, keys and the row itself for each family, so that all of them are met."""


def test_no_operator_is_left_out() -> None:
    met = set()
    for family in FAMILIES.values():
        for bound in family.values():
            met |= {bound.operator.name} if hasattr(bound, "operator") else {"struct"}
    assert set(REGISTRY) <= met, sorted(set(REGISTRY) - met)


def arrived(seed: int) -> list[dict]:
    rows, rng = events(160, seed=seed, jitter=300), random.Random(seed)
    for row in rows:
        row["few"] = rng.choice([None, -1, 1, 2, 2])
        row["odd"] = rng.choice([None, math.nan, *(i / 8 for i in range(40))])
        row["part"] = rng.choice([None, math.nan, 0.0, -0.0])
    clock, behind = -1, 0
    for row in rows:
        behind += row["ts"] < clock
        clock = max(clock, row["ts"])
    assert ties(rows) > 20 and behind > 40
    return rows


def same(found, expected, exact: bool) -> bool:
    if isinstance(found, float) and isinstance(expected, float):
        if exact or math.isnan(found) or math.isnan(expected):
            return found.hex() == expected.hex() or (math.isnan(found) and math.isnan(expected))
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[k], expected[k], exact) for k in expected)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(same(a, b, exact) for a, b in zip(found, expected))
    return found == expected


def assert_same(found: dict[int, dict], expected: dict[int, dict], exact: bool) -> None:
    assert found.keys() == expected.keys()
    for number, row in expected.items():
        mine = found[number]
        assert mine.keys() == row.keys()
        assert same(mine, row, exact), {n: (mine[n], row[n]) for n in row if not same(mine[n], row[n], exact)}


@pytest.mark.parametrize("family", FAMILIES)
def test_frame_batch_and_stream_agree(spark, tmp_path: Path, family: str) -> None:
    rows = arrived(seed=list(FAMILIES).index(family))
    exact = family != "floats"
    asked = {"time": "ts", "by": "card", "windows": WINDOWS, "aggs": FAMILIES[family], "order": "id", **ASKED[family]}
    expected = {row["id"]: row for row in rows_of(sw.rolling(table(rows, SCHEMA), **asked))}

    for piece in (pieces := cut(rows, 1, 5)):
        random.Random(len(piece)).shuffle(piece)
    write_batches(tmp_path / "in", [table(piece, SCHEMA) for piece in pieces])
    batch = sw.rolling(spark.read.schema(DDL).parquet(str(tmp_path / "in")).repartition(3), **asked)
    assert_same({row["id"]: row for row in rows_of(batch.toArrow())}, expected, exact)

    stream = sw.rolling(source(spark, tmp_path / "in", DDL), **asked, watermark="1m", keep="20m", id="id", ttl="1d")
    assert stream.isStreaming
    counts = run(stream, tmp_path)
    found = out(tmp_path)
    assert total(counts, "in") == total(counts, "accepted") == len(rows)
    assert total(counts, "late") > 10, "some come behind the watermark, and are taken in"
    assert total(counts, "out") == len(found)
    assert total(counts, "touched") == len(found) - len(rows) > 0
    assert_same({i: without(row, "revision", "late") for i, row in final(found).items()}, expected, exact)


EVERYTHING = {f"{name}{place}": bound for place, family in enumerate(FAMILIES.values()) for name, bound in family.items()}
ROUNDED = (*(f"{name}{list(FAMILIES).index('floats')}_" for name in FAMILIES["floats"]), "floats_")
SOME = {f"{family}_{name}": bound for family, bounds in FAMILIES.items() for name, bound in [*bounds.items()][:1]}
EAGER, FINAL = {"watermark": "1m", "keep": "20m"}, {"watermark": "6m", "results": "final"}
MODES = {
    "boundaries": {"emit": "slide", "closed": "left", "windows": {"slid": sw.time("5m", slide="1m"), "cup": sw.tumbling("4m"),
                   "moved": sw.time("3m", slide="2m", offset="1m")}, "stream": EAGER},
    "rows": {"emit": "slide", "windows": {"leap": sw.rows(6, slide=2)}, "stream": FINAL},
    "sessions": {"emit": "slide", "windows": {"visit": sw.session("40s")}, "stream": FINAL},
    "marks": {"emit": "slide", "windows": {"mark": sw.punctuation("paid")}, "stream": FINAL},
    "latest": {"emit": "latest", "windows": {name: WINDOWS[name] for name in ("near", "five", "visit")}, "stream": EAGER},
    "latest of each kind": {"emit": "latest", "windows": WINDOWS, "stream": EAGER},
}  # fmt: skip


def by_place(rows: list[dict], emit: str) -> dict[tuple, list[dict]]:
    """The rows of each key and boundary (the latest: of each key): of the last micro-batch that gave some."""
    found: dict[tuple, list[dict]] = {}
    for row in sorted(rows, key=lambda row: row.get("revision", 0)):
        place = (row["card"], row["ts"]) if emit == "slide" else (row["card"],)
        if place in found and found[place][0].get("revision") != row.get("revision"):
            del found[place]
        found.setdefault(place, []).append(row)
    exact = lambda row: repr([value for name, value in row.items() if not name.startswith(ROUNDED)])  # two may end at one moment
    return {place: sorted((without(row, "revision", "late") for row in some), key=exact) for place, some in found.items()}


def assert_same_places(found: dict[tuple, list[dict]], expected: dict[tuple, list[dict]]) -> None:
    assert found.keys() == expected.keys()
    for place, rows in expected.items():
        for mine, row in zip(found[place], rows, strict=True):
            assert mine.keys() == row.keys()
            wrong = {n: (mine[n], row[n]) for n in row if not same(mine[n], row[n], not n.startswith(ROUNDED))}
            assert not wrong, (place, wrong)


@pytest.mark.parametrize("mode", MODES)
def test_slides_and_the_latest_agree(spark, tmp_path: Path, mode: str) -> None:
    """A row for each boundary and for each key: every operator; of windows that end with rows, one of each family."""
    aggs = EVERYTHING if mode in ("boundaries", "latest") else SOME
    asked = {"time": "ts", "by": "card", "aggs": aggs, "order": "id", **MODES[mode]}
    given, emit = asked.pop("stream"), asked["emit"]
    rows = arrived(seed=20 + list(MODES).index(mode))
    expected = by_place(rows_of(sw.rolling(table(rows, SCHEMA), **asked)), emit)
    assert len(expected) >= 7

    pieces = cut(rows, 2, 3)
    if emit == "latest":  # the last to come is not the youngest of its key, and changes what that one sees
        young = max(rows, key=lambda row: row["ts"])
        late = max((row for row in rows if row["card"] == young["card"] and row["ts"] < young["ts"]), key=lambda row: row["ts"])
        pieces = [*([row for row in piece if row is not late] for piece in pieces), [late]]
    for piece in pieces:
        random.Random(len(piece)).shuffle(piece)
    write_batches(tmp_path / "in", [table(piece, SCHEMA) for piece in pieces])
    batch = sw.rolling(spark.read.schema(DDL).parquet(str(tmp_path / "in")).repartition(3), **asked)
    assert_same_places(by_place(rows_of(batch.toArrow()), emit), expected)

    def streamed() -> list[dict]:
        asks = {**asked, **given, "id": "id", "ttl": "1d", "control": tmp_path / "control"}
        return run(sw.rolling(source(spark, tmp_path / "in", DDL), **asks), tmp_path)

    counts = streamed()
    if asked["emit"] == "slide":  # the latest comes at once, the others wait for time to go on
        flush(tmp_path / "control")
        streamed()
    assert total(counts, "in") == total(counts, "accepted") == len(rows)
    assert_same_places(by_place(out(tmp_path), emit), expected)
