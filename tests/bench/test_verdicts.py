"""Verdicts follow the rows: what is filed is corrupted in plausible ways, and every claim must turn by at least one of them, with
an explanation for what does not hold then. Made-up rows are in test_verdicts_made_up.py. No test looks at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from slidewise import bench
from slidewise.bench import records
from slidewise.bench.suite import Row

FILED = Path(__file__).resolve().parents[2] / "docs" / "performance" / "results"
JUDGED = [result for result in records.read_all(FILED) if result.claims]
GROUPS = ("algorithm", "scheme", "system", "capacity", "kind", "data", "function", "operator", "what", "label")
"""Columns that say whose row it is."""


# ---- corruptions of what is filed ------------------------------------------------------------------------------------


def measured(rows: list[Row]) -> list[str]:
    """Columns that came out: numbers after the first fraction, or after a gap."""
    names = list(rows[0])
    given = ("days", "low", "high", "at")
    floats = [k for k in names if k not in given and any(isinstance(r[k], float) or r[k] is None for r in rows)
              and not any(isinstance(r[k], str) for r in rows)]
    first = names.index(floats[0]) if floats else len(names)
    return [k for k in names if k in floats or (names.index(k) > first and any(type(r[k]) is int for r in rows)) or k in (
        "agrees", "count", "most", "partials", "break_even", "ten_times")]  # fmt: skip


SIZES = ("window", "n", "m", "d", "x", "slide", "small", "days", "round")


def size_of(row: Row, name: str) -> float:
    return 1 if isinstance(row[name], str) else 1 + row[name]


def changes(rows: list[Row]) -> Iterator[tuple[str, Callable[[Row, float], float | None]]]:
    """What is done to a figure of a row, by name."""
    yield "all alike", lambda row, x: 1.0
    yield "upside down", lambda row, x: 1 / x if x else 1.0
    yield "exaggerated", lambda row, x: float(abs(x)) ** 4
    yield "levelled", lambda row, x: float(abs(x)) ** 0.1
    yield "nothing", lambda row, x: None
    yield "zero", lambda row, x: 0.0
    for size in [name for name in SIZES if name in rows[0]]:
        largest = max(size_of(row, size) for row in rows)
        yield f"times {size}", lambda row, x, size=size: x * size_of(row, size)
        yield f"over {size}", lambda row, x, size=size: x / size_of(row, size)
        yield f"the logarithm of {size}", lambda row, x, size=size: float(np.log2(1 + size_of(row, size)))
        yield f"one over the logarithm of {size}", lambda row, x, size=size: 1 / float(np.log2(1 + size_of(row, size)))
        yield f"more at the largest {size}", lambda row, x, size=size, most=largest: (
            1000 * (1 + x) if size_of(row, size) == most else x
        )
    for pair in itertools.combinations([name for name in SIZES if name in rows[0]], 2):
        corner = max(tuple(size_of(row, size) for size in pair) for row in rows)
        yield f"more at the largest {' and '.join(pair)}", lambda row, x, pair=pair, corner=corner: (
            1000 * (1 + x) if tuple(size_of(row, size) for size in pair) == corner else x
        )
    for group in [name for name in GROUPS if name in rows[0]]:
        names = list(dict.fromkeys(row[group] for row in rows))
        yield f"in the order of {group}", lambda row, x, group=group, names=names: 2.0 ** names.index(row[group])
        yield f"against the order of {group}", lambda row, x, group=group, names=names: 2.0 ** -names.index(row[group])
        for whose in names:
            yield f"{whose} upside down", lambda row, x, group=group, whose=whose: 1 / x if x and row[group] == whose else x
            for factor in (1e-3, 0.5, 0.9, 1.1, 2.0, 1e3):
                yield f"{whose} by {factor}", lambda row, x, group=group, whose=whose, factor=factor: (
                    x * factor if row[group] == whose else x
                )


def corrupted(rows: list[Row], columns: list[str], change: Callable[[Row, float], float | None]) -> list[Row]:
    return [{**row, **{k: change(row, row[k]) for k in columns if row[k] is not None}} for row in rows]


def corruptions(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """One figure after the other, and all of them together."""
    columns = measured(rows)
    for some in [*([column] for column in columns), *([columns] if len(columns) > 1 else [])]:
        for what, change in changes(rows):
            yield f"{', '.join(some)}: {what}", corrupted(rows, some, change)


@pytest.mark.parametrize("result", JUDGED, ids=lambda result: result.suite)
def test_every_verdict_turns_and_every_miss_is_explained(result):
    suite = bench.suite(result.suite)
    before = suite.claims(result.rows)
    still = {c.paper: c.holds for c in before if c.holds != "unmeasured"}
    for what, rows in corruptions(result.rows):
        try:
            found = suite.claims(rows)
        except (ValueError, TypeError, KeyError, ZeroDivisionError, OverflowError, np.linalg.LinAlgError):
            continue  # no measurement is like these
        for was, now in zip(before, found, strict=True):
            assert now.why or now.holds in ("yes", "unmeasured"), (result.suite, now.paper, what)
            # What holds in part has several sides, and a single change may turn one of them only: the sentence must follow.
            if now.holds not in (was.holds, "unmeasured") or (was.holds == "partly" and now.here != was.here):
                still.pop(was.paper, None)
    assert not still, f"{result.suite}: nothing turns {still}"
