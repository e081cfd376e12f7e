"""What the operators give, against plain Python, NumPy and `statistics`; NaN, infinities and objects."""

import math
import statistics
from collections import Counter
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.operators.support import squares

import slidewise as sw
from slidewise.operators.rope import LEAF, Rope, decode, encode, join, size, values

UNIT = 2.0**-53
numbers = st.lists(st.integers(-1000, 1000), min_size=1, max_size=30)
floats = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=30)
wild = st.lists(st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, 0.0]), min_size=1, max_size=12)


def above(x):
    """A sort key with NaN above everything."""
    return (x != x, 0 if x != x else x)


def equal(a, b):
    return a == b or (a != a and b != b)


@given(numbers)
def test_integers(xs):
    assert sw.count().fold(rows=len(xs)) == len(xs)
    assert sw.sum().fold(xs) == sum(xs)
    assert sw.mean().fold(xs) == sum(xs) / len(xs)
    assert sw.min().fold(xs) == min(xs)
    assert sw.max().fold(xs) == max(xs)
    assert sw.spread().fold(xs) == max(xs) - min(xs)
    assert sw.min_count().fold(xs) == xs.count(min(xs))
    assert sw.max_count().fold(xs) == xs.count(max(xs))
    assert sw.first().fold(xs) == xs[0]
    assert sw.last().fold(xs) == xs[-1]
    assert sw.m4().fold(xs) == (min(xs), max(xs), xs[0], xs[-1])
    assert sw.argmax().fold(xs, list(range(len(xs)))) == xs.index(max(xs))
    assert sw.argmin().fold(xs, list(range(len(xs)))) == xs.index(min(xs))
    assert sw.collect().fold(xs) == xs
    assert sw.collect_distinct().fold(xs) == list(dict.fromkeys(xs))
    assert sw.top_k(k=3).fold(xs) == sorted(xs, reverse=True)[:3]
    assert sw.median().fold(xs) == statistics.median(xs)
    assert sw.any().fold(xs) == any(xs)
    assert sw.all().fold(xs) == all(xs)
    assert sw.bit_and().fold(xs) == np.bitwise_and.reduce(np.array(xs))
    assert sw.bit_or().fold(xs) == np.bitwise_or.reduce(np.array(xs))
    assert sw.bit_xor().fold(xs) == np.bitwise_xor.reduce(np.array(xs))
    assert sw.concat(sep="|").fold([str(x) for x in xs]) == "|".join(map(str, xs))
    for n in (1, 2, 5):
        assert sw.nth_youngest(n=n).fold(xs) == (xs[-n] if len(xs) >= n else None)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=60))
def test_product_of_integers(xs):
    exact = math.prod(xs)
    if abs(exact) < 2**63:
        assert sw.product().fold(xs) == exact
    else:
        with pytest.raises(sw.AggregateOverflowError):
            sw.product().fold(xs)


@given(wild)
def test_order_of_floats(xs):
    """NaN is above +inf: max gives it if there is one, min only if there is nothing else."""
    ordered = sorted(xs, key=above)
    assert equal(sw.min().fold(xs), ordered[0])
    assert equal(sw.max().fold(xs), ordered[-1])
    assert all(map(equal, sw.top_k(k=4).fold(xs), ordered[::-1]))
    places = list(range(len(xs)))
    assert equal(xs[sw.argmax().fold(xs, places)], ordered[-1])
    assert sw.argmax().fold(xs, places) == next(i for i in places if equal(xs[i], ordered[-1]))
    assert sw.argmin().fold(xs, places) == next(i for i in places if equal(xs[i], ordered[0]))
    assert sw.max_count().fold(xs) == sum(equal(x, ordered[-1]) for x in xs)
    assert sw.min_count().fold(xs) == sum(equal(x, ordered[0]) for x in xs)
    assert sw.quantile(q=0).fold(xs) == pytest.approx(ordered[0], nan_ok=True, abs=0, rel=0)
    assert sw.quantile(q=1).fold(xs) == pytest.approx(ordered[-1], nan_ok=True, abs=0, rel=0)


@given(floats)
def test_sums_and_means_of_floats_are_within_the_stated_bound(xs):
    n, exact = len(xs), sum(map(Fraction, xs))
    bound = n * Fraction(UNIT) * sum(abs(Fraction(x)) for x in xs)
    assert abs(Fraction(sw.sum().fold(xs)) - exact) <= bound
    assert abs(Fraction(sw.mean().fold(xs)) - exact / n) <= (bound + abs(exact) * Fraction(UNIT)) / n * 2


@given(floats)
def test_variance_is_within_the_stated_bound(xs):
    n, (deviations, all_squares) = len(xs), squares(xs)
    if n == 1:
        assert sw.var().fold(xs) is None
        assert sw.std().fold(xs) is None
        return
    found = sw.var(ddof=0).fold(xs) * n
    # n k 2^-53 relative is n 2^-53 sqrt(deviations * squares), to first order; the second order is (n 2^-53)^2 * squares.
    first = 8 * n * UNIT * math.sqrt(float(deviations)) * math.sqrt(float(all_squares))
    second = (8 * n * UNIT) ** 2 * float(all_squares)
    assert abs(found - float(deviations)) <= first + second + 1e-300
    assert sw.std(ddof=0).fold(xs) == math.sqrt(sw.var(ddof=0).fold(xs))
    assert sw.var().fold(xs) == pytest.approx(found / (n - 1), rel=1e-14, abs=1e-300)


@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(-99, 99)), min_size=2, max_size=30))
def test_two_columns(pairs):
    xs, ys = [float(x) for x, _ in pairs], [float(y) for _, y in pairs]
    assert sw.covariance().fold(xs, ys) == pytest.approx(statistics.covariance(xs, ys), abs=1e-9)
    constant_x, constant_y = len(set(xs)) == 1, len(set(ys)) == 1
    if constant_x:
        assert sw.slope().fold(xs, ys) is None
    else:
        assert sw.slope().fold(xs, ys) == pytest.approx(statistics.linear_regression(xs, ys).slope, abs=1e-9)
    if constant_x or constant_y:
        assert sw.correlation().fold(xs, ys) is None
    else:
        found = sw.correlation().fold(xs, ys)
        assert found == pytest.approx(statistics.correlation(xs, ys), abs=1e-9)
        assert -1 <= found <= 1


@given(st.floats(-1e300, 1e300), st.integers(2, 50))
def test_a_constant_window_has_no_variance(x, n):
    assert sw.var().fold([x] * n) == 0.0
    assert sw.std().fold([x] * n) == 0.0


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=30))
def test_geometric_mean(xs):
    bound = 2.0**-52 * (1 + sum(abs(math.log(x)) for x in xs))
    exact = math.exp(math.fsum(math.log(x) for x in xs) / len(xs))
    assert abs(sw.geomean().fold(xs) / exact - 1) <= 2 * bound


def test_geometric_mean_at_the_edges():
    assert sw.geomean().fold([4.0, 0.0]) == 0.0
    assert math.isnan(sw.geomean().fold([4.0, -1.0]))
    assert sw.geomean().fold([math.inf, 2.0]) == math.inf
    largest = np.finfo(np.float64).max.item()
    assert sw.geomean().fold([largest] * 3) == pytest.approx(largest, rel=1e-12)


@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_histogram_is_numpys(xs):
    edges = [-math.inf, -1.0, 0.0, 2.5, 1e9]
    finite = [x for x in xs if x == x]
    expected = [
        sum(edges[k] <= x and (x < edges[k + 1] or (k == 3 and x == edges[4])) for x in finite) for k in range(4)
    ]
    assert sw.histogram(edges=edges).fold(xs).tolist() == expected
    small = [x for x in finite if abs(x) < 1e6]
    assert sw.histogram(edges=[-5, 0, 5]).fold(small or [9]).tolist() == np.histogram(small, [-5, 0, 5])[0].tolist()


@given(st.lists(st.floats(-100, 100) | st.just(math.nan), min_size=1, max_size=40))
def test_median_of_floats(xs):
    ordered = sorted(xs, key=above)
    n = len(xs)
    low, high = ordered[(n - 1) // 2], ordered[n // 2]
    assert equal(sw.median().fold(xs), low if n % 2 else (low + high) / 2)


def test_median_does_not_overflow():
    assert sw.median().fold([1.7e308, 1.7e308]) == 1.7e308
    assert sw.median().fold([math.inf, -math.inf, 3.0]) == 3.0
    assert sw.median().fold([2**63 - 1, 2**63 - 3]) == float(2**63 - 2)


@pytest.mark.parametrize(
    ("op", "xs", "expected"),
    [
        (sw.sum(), [1.0, math.nan], math.nan),
        (sw.sum(), [math.inf, -math.inf], math.nan),
        (sw.mean(), [1.0, math.inf], math.inf),
        (sw.product(), [0.0, math.inf], math.nan),
        (sw.var(), [1.0, 2.0, math.inf], math.nan),
        (sw.var(ddof=0), [math.inf], math.nan),
        (sw.std(), [1.0, math.nan, 2.0], math.nan),
        (sw.spread(), [1.0, math.nan], math.nan),
        (sw.any(), [math.nan], True),
        (sw.all(), [math.nan, 0.0], False),
    ],
)
def test_nan_and_infinity_propagate(op, xs, expected):
    assert equal(op.fold(xs), expected)


def test_values_equal_to_an_identity_are_values():
    assert sw.max().fold([-math.inf]) == -math.inf
    assert math.isnan(sw.min().fold([math.nan, math.nan]))
    assert sw.max().fold([-(2**63)]) == -(2**63)
    assert sw.min().fold([2**63 - 1]) == 2**63 - 1
    assert sw.max_count().fold([-math.inf, -math.inf]) == 2
    assert sw.min_count().fold([math.nan]) == 1
    assert sw.argmax().fold([-math.inf], [7]) == 7
    assert sw.first().fold([0]) == 0
    assert math.copysign(1, sw.sum().fold([-0.0])) == -1


def test_python_objects():
    words = ["pear", "fig", "apple", "fig"]
    assert sw.min().fold(words) == "apple"
    assert sw.max().fold(words) == "pear"
    assert sw.argmax().fold(words, [1, 2, 3, 4]) == 1
    assert sw.max_count().fold(words) == 1
    assert sw.nth_youngest(n=3).fold(words) == "fig"
    assert sw.m4().fold(words) == ("apple", "pear", "pear", "fig")
    assert sw.top_k(k=2).fold(words) == ["pear", "fig"]
    prices = [Decimal("1.10"), Decimal("2.20"), Decimal("3.30")]
    assert sw.sum().fold(prices) == Decimal("6.60")
    assert sw.mean().fold(prices) == Decimal("2.20")
    assert sw.median().fold(prices) == Decimal("2.20")
    assert sw.spread().fold(prices) == Decimal("2.20")
    assert sw.product().fold([Fraction(1, 3), Fraction(3, 5)]) == Fraction(1, 5)
    assert sw.max().fold([date(2024, 1, 2), date(2023, 5, 6)]) == date(2024, 1, 2)
    assert sw.spread().fold([date(2024, 1, 2), date(2024, 1, 5)]).days == 3
    assert sw.var().fold([Decimal(1), Decimal(3)]) == 2.0
    assert sw.max().fold([Decimal(1), Decimal("NaN")]).is_nan()


def test_numpy_scalars_among_objects_do_not_wrap():
    assert sw.sum().fold([np.int8(100), 2**70, np.int8(100), -(2**70)]) == 200
    with pytest.raises(sw.AggregateOverflowError):
        sw.sum().fold([2**70, 1])


@pytest.mark.parametrize(
    ("op", "column"),
    [
        (sw.sum(), ["a", "b"]),
        (sw.mean(), ["a"]),
        (sw.product(), [b"a"]),
        (sw.median(), ["a"]),
        (sw.bit_and(), [1.5]),
        (sw.bit_xor(), ["a"]),
        (sw.concat(), [1, 2]),
        (sw.concat(), [None, date(2024, 1, 1)]),
        (sw.collect_distinct(), [[1], [2]]),
        (sw.approx_distinct(), [object()]),
    ],
)
def test_values_of_a_wrong_type_are_refused(op, column):
    with pytest.raises(sw.InputTypeError, match=op.name if op.name != "approx_distinct" else "sketch"):
        op.fold(column)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=1, max_size=30))
def test_naive_bayes(pairs):
    labels, features = [label for label, _ in pairs], [feature for _, feature in pairs]
    counts = Counter(pairs)
    assert sw.naive_bayes().fold(labels, features) == [
        {"label": label, "feature": feature, "count": counts[label, feature]} for label, feature in sorted(counts)
    ]
    kinds = len(set(features))
    odds = {
        label: labels.count(label) / len(labels) * (counts[label, 1] + 1) / (labels.count(label) + kinds)
        for label in sorted(set(labels))
    }
    best = sw.naive_bayes(given=1).fold(labels, features)
    assert odds[best] == pytest.approx(max(odds.values()), rel=1e-12)


def test_distinct_nans_are_one_value():
    other = float("nan")
    found = sw.collect_distinct().fold([math.nan, 1.0, other, np.float64("nan"), 1.0])
    assert len(found) == 2
    state = sw.collect_distinct().resolved((object,)).lift(other)
    stored = sw.collect_distinct().decode([float("nan")])
    assert len(sw.collect_distinct().combine(state, stored)) == 1


@given(st.integers(0, 400), st.randoms(use_true_random=False))
def test_ropes_keep_order_and_stay_shallow(count, random):
    """However a rope is put together, it holds the same values in the same order; small pieces become leaves."""
    xs = list(range(count))
    parts = [(x,) for x in xs] or [()]
    while len(parts) > 1:
        k = random.randrange(len(parts) - 1)
        parts[k : k + 2] = [join(parts[k], parts[k + 1])]
    assert values(parts[0]) == xs
    assert size(parts[0]) == len(xs)
    assert values(decode(encode(parts[0]))) == xs
    back = front = ()
    for x in xs:
        back = join(back, (x,))
        front = join((-x,), front)
    assert values(back) == xs
    assert values(front) == [-x for x in reversed(xs)]
    for r in (back, front):
        nodes, todo = 0, [r]
        while todo:
            part = todo.pop()
            if type(part) is Rope:
                nodes += 1
                todo += [part.left, part.right]
        assert nodes <= 2 * len(xs) / LEAF + 1


def test_a_long_chain_of_ropes_neither_recurses_nor_forgets():
    op = sw.collect()
    state = op.identity
    for k in range(200_000):
        state = op.combine(state, op.lift(k))
    assert op.lower(state) == list(range(200_000))
    del state


@given(numbers)
def test_results_are_the_callers_own(xs):
    """A result that is changed afterwards does not change the state it came from."""
    assume(len(xs) > 1)
    for op in (sw.collect(), sw.top_k(k=2), sw.histogram(edges=[0, 1, 2]), sw.collect_distinct()):
        resolved = op.resolved((np.dtype(np.int64),))
        state = resolved.combine(resolved.lift(1), resolved.lift(1))
        first = resolved.lower(state)
        first[0] = 99
        assert resolved.lower(state)[0] != 99
