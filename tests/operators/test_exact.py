"""Exact sums: equal to `math.fsum` bit for bit, the same state whatever the grouping, and nothing left of what has left."""

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.operators.support import compiled_results

import slidewise as sw
from slidewise.operators.exact import FIRST, WIDTH

FLOAT = np.dtype(np.float64)
SUM = sw.sum(exact=True).resolved((FLOAT,))
MEAN = sw.mean(exact=True).resolved((FLOAT,))
LARGEST, TINY = 1.7976931348623157e308, 5e-324

finite = st.floats(allow_nan=False, allow_infinity=False)
patterns = st.integers(0, 2**64 - 1).map(lambda word: struct.unpack("<d", struct.pack("<Q", word))[0]).filter(math.isfinite)
adversarial = st.lists(finite | patterns | st.sampled_from([TINY, -TINY, LARGEST, -LARGEST, 2.0**-1022, 1.0, 2.0**53]), max_size=40)


def nearest(xs, divisor: int = 1) -> float:
    """The float64 nearest to the exact sum divided by a number, by fractions; infinite beyond the largest."""
    exact = sum(map(Fraction, xs), Fraction(0)) / divisor
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fold(op, xs):
    state = op.identity
    for x in xs:
        state = op.combine(state, op.lift(x))
    return state


def same_bits(a: float, b: float) -> bool:
    return struct.pack("<d", a) == struct.pack("<d", b) or (a != a and b != b)


@given(adversarial)
@example([1e100, 1.0, -1e100])
@example([LARGEST, LARGEST, -LARGEST, -LARGEST, TINY])
@example([1.0, 2.0**-53])
@example([1.0, 2.0**-53, TINY])
@example([1.0 + 2.0**-52, 2.0**-53])
@example([2.0**-1022, -TINY])
@example([LARGEST, 2.0**969])
@example([LARGEST, 2.0**970])
@example([-0.0, -0.0])
@example([0.1, 8.4, 2.6])
@example([LARGEST, LARGEST])
@example([TINY, TINY, TINY, 0.0])
@example([TINY, 0.0])
@example([3 * TINY, 0.0])
def test_equals_fsum(xs):
    found = SUM.lower(fold(SUM, xs))
    assert same_bits(found, nearest(xs)) or (found == 0 == nearest(xs))
    try:
        assert same_bits(found, math.fsum(xs))
    except OverflowError:  # fsum gives up where an intermediate sum overflows
        pass
    if xs:
        mean = MEAN.lower(fold(MEAN, xs))
        assert same_bits(mean, nearest(xs, len(xs))) or (mean == 0 == nearest(xs, len(xs)))


@given(adversarial.filter(len), st.randoms(use_true_random=False))
def test_compiled_equals_fsum_in_every_grouping(xs, random):
    items = [(x,) for x in xs]
    for found in compiled_results(sw.sum(exact=True), (FLOAT,), items, lambda count: random.randrange(count)):
        assert same_bits(found, nearest(xs))


@given(adversarial.filter(len), st.randoms(use_true_random=False))
@example([0.1, 8.4, 2.6], random.Random(1))
def test_compiled_means_are_rounded_once(xs, random):
    items = [(x,) for x in xs]
    for found in compiled_results(sw.mean(exact=True), (FLOAT,), items, lambda count: random.randrange(count)):
        assert same_bits(found, nearest(xs, len(xs))) or (found == 0 == nearest(xs, len(xs)))


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.int32, np.bool_])
@given(data=st.data())
def test_exact_means_of_whole_numbers_are_rounded_once(kind, data):
    largest = 1 if kind is np.bool_ else np.iinfo(kind).max
    least = 0 if kind is np.bool_ else np.iinfo(kind).min
    xs = data.draw(st.lists(st.integers(least, largest) | st.sampled_from([least, largest, largest // 3]), min_size=1, max_size=12))
    found = compiled_results(sw.mean(exact=True), (np.dtype(kind),), [(kind(x),) for x in xs], lambda count: count // 2)
    op = sw.mean(exact=True).resolved((np.dtype(kind),))
    for mean in [*found, op.lower(fold(op, xs))]:
        assert same_bits(mean, nearest(xs, len(xs))), xs


@given(adversarial, adversarial)
def test_the_state_depends_on_nothing_but_the_values(xs, ys):
    """Any order and grouping: the same bytes. So `inverse` is exact to the byte, too."""
    x, y = fold(SUM, xs), fold(SUM, ys)
    both = SUM.combine(x, y)
    assert both.tobytes() == fold(SUM, [*ys[::-1], *xs]).tobytes()
    assert SUM.inverse(both, x).tobytes() == y.tobytes()
    assert not SUM.inverse(both, both).any()


@given(st.lists(st.floats() | st.sampled_from([math.inf, -math.inf]), min_size=1, max_size=20), adversarial)
@example([math.inf, -math.inf], [1.0])
def test_nan_and_infinities_leave_no_trace(wild, xs):
    """Once they have left, the sum of the rest is what it was."""
    rest = fold(SUM, xs)
    poisoned = SUM.combine(fold(SUM, wild), rest)
    infinite = [w for w in wild if math.isinf(w)]
    if any(math.isnan(w) for w in wild) or len(set(infinite)) == 2:
        assert math.isnan(SUM.lower(poisoned))
    elif infinite:
        assert SUM.lower(poisoned) == infinite[0]
    healed = poisoned
    for w in wild:
        healed = SUM.inverse(healed, SUM.lift(w))
    assert healed.tobytes() == rest.tobytes()


def test_beyond_the_largest_float_is_infinity():
    assert SUM.lower(fold(SUM, [LARGEST, LARGEST])) == math.inf
    assert SUM.lower(fold(SUM, [-LARGEST, -LARGEST, -1.0])) == -math.inf
    assert SUM.lower(fold(SUM, [LARGEST] * 1000 + [-LARGEST] * 999)) == LARGEST


def test_the_longest_carry():
    """A limb of all ones and one more: the carry runs through the whole state."""
    xs = [math.ldexp(1.0, e) for e in range(-1074, 971)]
    assert SUM.lower(fold(SUM, [*xs, TINY])) == math.ldexp(1.0, 971)
    assert SUM.lower(fold(SUM, [-x for x in [*xs, TINY]])) == -math.ldexp(1.0, 971)


def test_too_many_values_for_a_limb_are_an_error():
    state = SUM.lift(1.0)
    for _ in range(31):
        state = SUM.combine(state, state)
    with pytest.raises(sw.AggregateOverflowError, match="2\\^31"):
        SUM.lower(state)


def test_the_state_is_small():
    assert WIDTH - FIRST == 66
    assert SUM.identity.nbytes == 560


@pytest.mark.parametrize("op", [sw.sum(exact=True), sw.mean(exact=True)])
def test_integers_stay_integers(op):
    """Exact already: `exact=True` changes nothing for them."""
    assert op.resolved((np.dtype(np.int64),)).invertible
    assert op.fold([2**62, 2**62, -(2**62)]) == (2**62 if op.name == "sum" else 2**62 / 3)


def test_many_random_floats_of_all_sizes():
    rng = np.random.default_rng(7)
    xs = (rng.standard_normal(100_000) * 10.0 ** rng.integers(-150, 150, 100_000)).tolist()
    state = np.sum([SUM.lift(x) for x in xs], axis=0)
    assert same_bits(SUM.lower(state), math.fsum(xs))
