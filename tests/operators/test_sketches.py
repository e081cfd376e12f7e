"""Sketches: within their stated error, mergeable, never changed by a combine, and the same in every process."""

import math
import random
import struct

import datasketches
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slidewise as sw
from slidewise.operators.hashing import hash_bytes, hash_object, hash_real, hash_whole
from slidewise.operators.hll import hll_bytes

INT = np.dtype(np.int64)


def merged(op, items, parts):
    """The state of some items, lifted and combined in that many interleaved parts."""
    states = []
    for k in range(parts):
        state = op.identity
        for item in items[k::parts]:
            state = op.combine(state, op.lift(item))
        states.append(state)
    total = states[0]
    for state in states[1:]:
        total = op.combine(total, state)
    return total


# ---- the hash ----------------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=40) | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=True))
@settings(max_examples=200)
def test_the_hash_is_that_of_datasketches(value):
    """A fresh HLL sketch of one value holds its coupon: the low 26 bits of one half, the leading zeros of the other."""
    sketch = datasketches.hll_sketch(11)
    sketch.update(value)
    coupon = struct.unpack("<I", sketch.serialize_compact()[-4:])[0]
    low, high = hash_object(value)
    assert coupon == ((min(64 - high.bit_length(), 62) + 1) << 26) | (low & (2**26 - 1))


def test_the_hash_is_stable():
    """Written down: these numbers are in stored states."""
    assert hash_bytes(b"slidewise") == (12225952253896992860, 11131338184977607087)
    assert hash_whole(-1) == hash_bytes(b"\xff" * 8)
    assert hash_real(-0.0) == hash_real(0.0) == hash_bytes(bytes(8))
    assert hash_real(math.nan) == hash_real(-math.nan)


# ---- approx_distinct ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distinct", [0, 1, 10, 500, 5_000, 60_000])
def test_distinct_count_is_within_its_error(distinct):
    op = sw.approx_distinct(lg_k=12).resolved((INT,))
    registers = np.zeros(4096, np.uint8)
    for k in range(distinct):
        np.maximum(registers, op.lift(k * k + 17), out=registers)
    found = op.lower(registers)
    assert abs(found - distinct) <= 4 * 1.04 / 64 * distinct + 1  # four standard errors; one collision among few


def test_registers_are_those_of_datasketches():
    op = sw.approx_distinct(lg_k=9).resolved((INT,))
    sketch = datasketches.hll_sketch(9)
    state = op.identity
    for k in range(3000):
        state = op.combine(state, op.lift(k))
        sketch.update(k)
    assert sketch.serialize_updatable()[40:] == state.tobytes()
    read = datasketches.hll_sketch.deserialize(hll_bytes(state))
    union = datasketches.hll_union(9)
    union.update(read)
    union.update(sketch)
    assert union.get_estimate() == pytest.approx(read.get_estimate())
    assert op.lower(state) == pytest.approx(sketch.get_estimate(), rel=2 * 1.04 / math.sqrt(512)), "two estimators of the same"
    assert op.lower(state) == pytest.approx(3000, rel=4 * 1.04 / math.sqrt(512))


def test_the_sketch_itself_can_be_asked_for():
    words = [f"word {k % 700}" for k in range(2000)]
    body = sw.approx_distinct(lg_k=12, sketch=True).fold(words)
    assert datasketches.hll_sketch.deserialize(body).get_estimate() == pytest.approx(700, rel=0.07)
    assert sw.approx_distinct(lg_k=12).fold(words) == pytest.approx(700, rel=0.07)


# ---- approx_count ------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.integers(0, 50))
@settings(max_examples=30)
def test_count_is_never_too_low(xs, item):
    found = sw.approx_count(item=item, width=32, depth=4).fold(xs)
    assert xs.count(item) <= found <= len(xs)


def test_count_is_within_its_error():
    rng = random.Random(3)
    xs = [rng.randrange(1000) for _ in range(20_000)]
    total = np.zeros(4 * 256, np.int64)
    op = sw.approx_count(item=0).resolved((INT,))
    for x in xs:
        total += op.lift(x)
    too_high = 0
    for item in range(200):
        asked = sw.approx_count(item=item).resolved((INT,))
        too_high += asked.lower(total) - xs.count(item) > math.e / 256 * len(xs)
    assert too_high <= 200 * math.exp(-4) * 2


def test_count_is_as_good_as_that_of_datasketches():
    """Same width and depth, same data: the same stated bound, kept by both, and no larger errors on the whole."""
    rng = random.Random(5)
    xs = [int(rng.paretovariate(0.7)) for _ in range(20_000)]  # a few values are most of them
    theirs, total = datasketches.count_min_sketch(4, 256), np.zeros(4 * 256, np.int64)
    op = sw.approx_count(item=0, width=256, depth=4).resolved((INT,))
    for x in xs:
        theirs.update(x)
        total += op.lift(x)
    bound = theirs.get_relative_error() * len(xs)
    assert bound == pytest.approx(math.e / 256 * len(xs))
    items = sorted(set(xs))[:400]
    errors = {"ours": [], "theirs": []}
    for item in items:
        errors["ours"].append(sw.approx_count(item=item).resolved((INT,)).lower(total) - xs.count(item))
        errors["theirs"].append(theirs.get_estimate(item) - xs.count(item))
    for found in errors.values():
        assert min(found) >= 0
        assert sum(error > bound for error in found) <= 400 * math.exp(-4)
    assert sum(errors["ours"]) <= 1.5 * sum(errors["theirs"])


def test_more_rows_never_count_higher():
    xs = [k % 40 for k in range(400)]
    found = {depth: [sw.approx_count(item=item, width=16, depth=depth).fold(xs) for item in range(40)] for depth in (1, 4)}
    assert all(four <= one for four, one in zip(found[4], found[1], strict=True))
    assert sum(found[4]) < sum(found[1])


def test_an_item_is_hashed_as_its_column_is():
    assert sw.approx_count(item=3).fold([3.0, 3.0, 1.0]) == 2
    assert sw.approx_count(item=3.0).fold([3, 1]) == 1
    assert sw.approx_count(item="x").fold(["x", "y"]) == 1
    assert sw.approx_count(item=True).fold([True, False, True]) == 2
    with pytest.raises(sw.InputError, match="cannot occur"):
        sw.approx_count(item=1.5).fold([1, 2])
    with pytest.raises(sw.InputError, match="cannot occur"):
        sw.approx_count(item="x").fold([1.0, 2.0])


# ---- bloom -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=100))
@settings(max_examples=30)
def test_a_bloom_filter_never_denies_what_it_has_seen(xs):
    for item in xs[:5]:
        assert sw.bloom(bits=256, item=item).fold(xs) is True


def test_a_bloom_filter_counts():
    for distinct in (0, 1, 20, 500):
        xs = [k * 31 for k in range(distinct)] * 2
        assert sw.bloom(bits=8192).fold(xs) == pytest.approx(distinct, rel=0.05, abs=0)
    full = sw.bloom(bits=64).fold(list(range(5000)))
    assert full == round(-(64 / 4) * math.log(0.5 / 64))


def test_false_positives_are_as_rare_as_stated():
    rows = list(range(500))
    op = sw.bloom(bits=8192, hashes=4).resolved((INT,))
    state = np.bitwise_or.reduce([op.lift(k) for k in rows])
    share = sum(bin(word).count("1") for word in state.tolist()) / 8192
    wrong = sum(sw.bloom(bits=8192, item=k).resolved((INT,)).lower(state) for k in range(10_000, 12_000))
    assert wrong <= 2000 * share**4 * 4 + 3


# ---- quantile ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.0, 0.01, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("parts", [1, 7])
def test_quantile_is_within_its_rank_error(q, parts):
    rng = random.Random(11)
    xs = [rng.gauss(0, 1) for _ in range(4000)]
    op = sw.quantile(q=q)
    found = op.lower(merged(op, xs, parts))
    rank = sum(x <= found for x in xs) / len(xs)
    assert abs(rank - q) <= 2 * 0.0133 + 1 / len(xs)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=128), st.floats(0, 1))
def test_quantile_of_few_values_is_exact(xs, q):
    rank = max(math.ceil(q * len(xs)), 1)
    assert sw.quantile(q=q).fold(xs) == sorted(xs)[rank - 1]


@pytest.mark.parametrize("sizes", [(3, 200), (200, 3), (200, 300), (0, 200), (100, 100)])
def test_a_combine_never_changes_a_sketch(sizes):
    """By their bytes: DataSketches' objects are mutable."""
    op = sw.quantile(q=0.5)
    a, b = (merged(op, [float(k) for k in range(size)], 1) for size in sizes)
    before = repr((op.encode(a), op.encode(b)))
    both = op.combine(a, b)
    op.combine(both, a)
    op.lower(both)
    assert repr((op.encode(a), op.encode(b))) == before
    assert sum(sizes) == (len(both.values) if both.sketch is None else both.sketch.n)


def test_nan_is_the_greatest_for_a_quantile():
    xs = [float(k) for k in range(300)] + [math.nan] * 100
    op = sw.quantile(q=0.5)
    assert op.lower(merged(op, xs, 3)) == pytest.approx(200, abs=2 * 0.0133 * 400)
    high = sw.quantile(q=0.9)
    assert math.isnan(high.lower(merged(high, xs, 3)))


def test_stored_sketches_come_back():
    op = sw.quantile(q=0.5)
    for size in (0, 5, 1000):
        state = merged(op, [float(k) for k in range(size)], 1)
        assert repr(op.encode(op.decode(op.encode(state)))) == repr(op.encode(state))
    with pytest.raises(Exception, match=r"damaged|deserial|memory|size"):
        op.decode(([], b"\x05\x01\x0f", 0))
    with pytest.raises(sw.StateError):
        op.decode(([1], None, 0))
