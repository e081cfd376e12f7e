"""Ten million floats with NaN and infinities pass through: once they have left, nothing of them is left behind.

One compiled operator carries a float sum (grouping matters, within its bound) and a maximum (exact), so that each algorithm is
compiled once. Each algorithm is compared with recalc at sampled rows, and everywhere with the true sums, which a superaccumulator
gives. Those are compared with `math.fsum` at sampled rows: all ten million would take minutes.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from tests.algorithms.support import IN_ORDER

import slidewise as sw
from slidewise.algorithms import algorithm, drivers, serves
from slidewise.algorithms.protocol import arrays, capacity_for

ROWS = 10_000_000
WINDOW = 1000
EPS = 2.0**-53


class Both(NamedTuple):
    total: float
    peak: float


def _combine(a, b):
    # NaN orders above everything, as in sw.max
    if a.peak != a.peak or a.peak >= b.peak:
        return Both(a.total + b.total, a.peak)
    return Both(a.total + b.total, b.peak)


BOTH = sw.operator(
    lift=lambda x: Both(x, x), combine=_combine, identity=Both(-0.0, -math.inf), commutative=True, name="sum_and_max"
)
FLOAT = (np.dtype(np.float64),)


@pytest.fixture(scope="module")
def xs() -> np.ndarray:
    rng = np.random.default_rng(10)
    xs = rng.standard_normal(ROWS) * 10.0 ** rng.integers(-12, 12, ROWS)
    wild = rng.choice(ROWS, 3000, replace=False)
    xs[wild] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324], len(wild))
    return xs


@pytest.fixture(scope="module")
def rows(xs) -> np.ndarray:
    """Sampled rows, and all those whose window has just been left by something wild."""
    rng = np.random.default_rng(11)
    wild = np.flatnonzero(~np.isfinite(xs))
    after = wild[wild + WINDOW < ROWS] + WINDOW
    return np.unique(np.concatenate([rng.integers(0, ROWS, 2000), after, [0, ROWS - 1]]))


def run(name: str, op, xs, starts, ends):
    alg = algorithm(name)
    H, W, V, m, scratch = arrays(alg, op, capacity_for(WINDOW + 1))
    OUT, OK = op.result.alloc(len(ends)), np.zeros(len(ends), np.uint8)
    nobody, carry = np.empty(0, np.uint8), np.full(2, starts[0], np.int64)
    drivers.run_frames(alg, op, H, W, V, m, scratch, carry, (xs,), nobody, starts, ends, OUT, OK, 0, len(ends))
    assert OK.all()
    return OUT


def frames(rows):
    return np.maximum(0, rows + 1 - WINDOW).astype(np.int32), (rows + 1).astype(np.int32)


@cache
def everywhere():
    return frames(np.arange(ROWS))


@pytest.fixture(scope="module")
def recalc(xs, rows):
    return run("recalc", BOTH.typed(FLOAT), xs, *frames(rows))


@pytest.fixture(scope="module")
def peaks(xs):
    """The maximum of every window, from an algorithm that is checked against recalc like the others."""
    return run("two_stacks_lite", BOTH.typed(FLOAT), xs, *everywhere())[1]


@pytest.fixture(scope="module")
def totals(xs):
    """The true sum of every window, rounded once; from an algorithm that is checked against `math.fsum` like the others."""
    return run("two_stacks_lite", sw.sum(exact=True).typed(FLOAT), xs, *everywhere())[0]


@pytest.fixture(scope="module")
def bounds(xs):
    """n * eps * sum |x| of every window: what sums may differ by from the true ones."""
    sizes = run("two_stacks_lite", BOTH.typed(FLOAT), np.abs(xs), *everywhere())[0]
    starts, ends = everywhere()
    return (ends - starts) * EPS * sizes


def assert_same_sums(found, expected, bounds):
    finite = np.isfinite(bounds)
    assert (np.abs(found[finite] - expected[finite]) <= bounds[finite]).all()
    # what is not finite in the window decides alone: NaN, or the one infinity there is
    assert ((found[~finite] == expected[~finite]) | (np.isnan(found[~finite]) & np.isnan(expected[~finite]))).all()


@pytest.mark.parametrize("name", [name for name in IN_ORDER if name != "recalc" and not algorithm(name).info.needs])
def test_nothing_wild_is_left_behind(name, xs, rows, recalc, bounds, peaks, totals):
    total, peak = run(name, BOTH.typed(FLOAT), xs, *everywhere())
    assert peak[rows].tobytes() == recalc[1].tobytes(), "the maximum is exact, to the bit"
    assert peak.tobytes() == peaks.tobytes(), "on every row, not on sampled ones only"
    assert_same_sums(total[rows], recalc[0], bounds[rows])
    assert_same_sums(total, totals, bounds)
    clean = np.isfinite(bounds)
    assert 0 < clean.sum() < ROWS, "windows with and without something wild"
    assert np.isfinite(total[clean]).all()


def test_slick_deque(xs, rows, recalc, peaks):
    op = sw.max().typed(FLOAT)
    (peak,) = run("slick_deque", op, xs, *everywhere())
    for found, expected in ((peak[rows], recalc[1]), (peak, peaks)):
        assert (np.isnan(found) == np.isnan(expected)).all()
        assert found[~np.isnan(found)].tobytes() == expected[~np.isnan(expected)].tobytes()


@pytest.mark.parametrize("name", ["two_stacks_lite", "subtract_on_evict", "slick_deque", "daba_lite"])
def test_exact_sums_equal_fsum(name, xs, rows, totals):
    """A superaccumulator has an exact inverse: even subtraction leaves nothing behind."""
    op = sw.sum(exact=True).typed(FLOAT)
    assert op.compiled
    assert serves(name, op) is None
    total = totals if name == "two_stacks_lite" else run(name, op, xs, *everywhere())[0]
    assert ((total == totals) | (np.isnan(total) & np.isnan(totals))).all(), "on every row"
    for i in rows.tolist():
        window = xs[max(0, i + 1 - WINDOW) : i + 1]
        if np.isfinite(window).all():
            assert total[i] == math.fsum(window)
        else:
            with np.errstate(invalid="ignore"):
                expected = window[~np.isfinite(window)].sum()
            assert total[i] == expected or (np.isnan(total[i]) and np.isnan(expected))
