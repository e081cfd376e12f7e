"""`Window` as a user meets it: every algorithm behind one face, types, errors and bytes."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import slidewise as sw

pytestmark = pytest.mark.filterwarnings("ignore::slidewise.algebra.typed.InterpretedWarning")

LISTS = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="sequence")
NAMES = [info.name for info in sw.algorithms()]
IN_ORDER = [info.name for info in sw.algorithms() if info.order == "in"]
ANY_ORDER = [info.name for info in sw.algorithms() if info.order == "any"]
SERVING = [n for n in NAMES if n not in ("subtract_on_evict", "slick_deque")]


COMPILED = ("two_stacks_lite", "slick_deque", "fiba")
"""Algorithms that these tests also run compiled; the others share all that is tested here, and compiling takes time."""


def dtype_of(name):
    return "i8" if name in (*COMPILED, "subtract_on_evict") else object


def offers(name, what):
    return what in next(i for i in sw.algorithms() if i.name == name).offers


@pytest.mark.parametrize("name", SERVING)
@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("insert"), st.integers(0, 3)),
            st.just(("evict", 0)),
            st.tuples(st.just("bulk_evict"), st.integers(0, 4)),
            st.just(("copy", 0)),
            st.just(("bytes", 0)),
            st.just(("compact", 0)),
        ),
        max_size=40,
    )
)
def test_every_algorithm_is_a_queue_with_an_aggregate(name, steps):
    w = sw.Window(LISTS, algorithm=name)
    model: list[tuple[int, int]] = []
    clock = 0
    for count, (what, amount) in enumerate(steps):
        if what == "insert":
            clock += amount + (1 if name in ANY_ORDER else 0)
            w.insert(clock, count)
            model.append((clock, count))
        elif what == "evict" and model:
            w.evict()
            model.pop(0)
        elif what == "bulk_evict" and model:
            t = model[0][0] + amount
            gone = [e for e in model if e[0] <= t]
            assert w.bulk_evict(t) == len(gone)
            model = model[len(gone) :]
        elif what == "copy":
            other, w = w, w.copy()
            if model:
                other.evict()
        elif what == "bytes":
            w = sw.Window.from_bytes(w.to_bytes(), LISTS)
        elif what == "compact":
            w.compact()
        w.check()
        assert len(w) == len(model)
        assert (w.query() or ()) == tuple(v for _, v in model)
        assert w.oldest == (model[0][0] if model else None)
        assert w.youngest == (model[-1][0] if model else None)
    if offers(name, "items"):
        assert w.items() == [(t, (v,)) for t, v in model]
    else:
        with pytest.raises(sw.UnsupportedError, match="items"):
            if model:
                w.items()
            else:
                raise sw.UnsupportedError("items of nothing")


@pytest.mark.parametrize("name", [n for n in SERVING if offers(n, "query_range")])
def test_a_range_is_inclusive(name):
    w = sw.Window(LISTS, algorithm=name)
    for t in range(10, 20):
        w.insert(t, t)
    assert w.query(12, 14) == (12, 13, 14)
    assert w.query(0, 100) == tuple(range(10, 20))
    assert w.query(18) == (18, 19)
    assert w.query(None, 11) == (10, 11)
    assert w.query(14, 12) is None
    assert w.query(30, 40) is None


def test_a_range_up_to_the_youngest_is_a_suffix():
    """What `query_youngest` in sw.algorithms() means: a range that ends with the window."""
    w = sw.Window(LISTS, algorithm="flatfit")
    for t in range(10, 20):
        w.insert(t, t)
    assert w.query(18) == w.query(18, 30) == (18, 19)
    assert w.query(0, 19) == w.query()
    assert w.query(25) is None
    w.evict()
    w.insert(20, 20)
    assert w.query(11) == tuple(range(11, 21))
    with pytest.raises(sw.UnsupportedError, match=r"flatfit does not offer query_range; .*b_int"):
        w.query(12, 14)


@pytest.mark.parametrize("name", SERVING)
def test_a_window_has_every_operation_that_is_listed(name):
    calls = {
        "items": lambda w: w.items()[0] == (0, (0,)),
        "query_range": lambda w: w.query(1, 2) == (1, 2),
        "query_youngest": lambda w: w.query(3) == (3, 4),
        "evict_at": lambda w: w.evict(2) and w.query() == (0, 1, 3, 4),
        "bulk_evict": lambda w: w.bulk_evict(2) == 3,
        "bulk_insert": lambda w: w.bulk_insert([6, 5], [6, 5]) is None and w.query(4, 6) == (4, 5, 6),
    }
    for what in next(i for i in sw.algorithms() if i.name == name).offers:
        w = sw.Window(LISTS, algorithm=name)
        w.bulk_insert(range(5), range(5))
        assert calls[what](w)


def test_flatfat_gives_back_room():
    """reactive-aggregator-2015 section 5.1.1: half of it, when less than a quarter lives and not before; wherever events leave."""
    w = sw.Window(sw.collect(), "flatfat")
    w.bulk_insert(range(300), range(300))
    capacity = w._store.m + 1
    assert capacity == 512
    for t in [*range(150, 300), *range(150)]:
        w.evict(t)
        capacity = max(8, capacity // 2) if 4 * len(w) < capacity else capacity
        assert w._store.m + 1 == capacity
    assert capacity == 8


@pytest.mark.parametrize("name", ANY_ORDER)
def test_trees_take_any_order_and_combine_a_repeated_time_on_the_right(name):
    w = sw.Window(LISTS, algorithm=name)
    for t, v in [(5, "a"), (1, "b"), (3, "c"), (5, "d"), (1, "e")]:
        w.insert(t, v)
    assert w.query() == ("b", "e", "c", "a", "d")
    assert len(w) == 3
    assert w.evict(3) is True
    assert w.evict(3) is False
    assert w.query() == ("b", "e", "a", "d")
    w.bulk_insert([4, 2, 2, 9], ["x", "y", "z", "last"])
    assert w.query() == ("b", "e", "y", "z", "x", "a", "d", "last")


@pytest.mark.parametrize("name", IN_ORDER)
def test_in_order_algorithms_refuse_an_older_event_and_stay_as_they_were(name):
    op = sw.sum() if name == "subtract_on_evict" else sw.max()
    w = sw.Window(op, algorithm=name, dtype=dtype_of(name))
    w.insert(5, 1)
    with pytest.raises(sw.OutOfOrderError, match="fiba"):
        w.insert(4, 2)
    with pytest.raises(sw.OutOfOrderError):
        w.bulk_insert([6, 4], [1, 1])
    assert (len(w), w.query()) == (1, 1)
    w.insert(5, 3)
    assert len(w) == 2


def test_evicting_from_an_empty_window_is_a_clear_error():
    w = sw.Window(sw.sum(), algorithm="recalc")
    with pytest.raises(sw.EmptyWindowError, match="empty"):
        w.evict()
    w.insert(1, 1)
    w.evict()
    with pytest.raises(IndexError):
        w.evict()


def test_empty_windows_give_what_the_operator_says():
    assert sw.Window(sw.sum(), algorithm="recalc").query() is None
    assert sw.Window(sw.count(), algorithm="recalc").query() == 0
    w = sw.Window(sw.count(), algorithm="recalc")
    w.insert(1)
    assert w.query() == 1
    w.evict()
    assert w.query() == 0


def test_types_are_fixed_by_the_first_value():
    w = sw.Window(sw.max(), algorithm="recalc")
    w.insert(1, 3)
    with pytest.raises(sw.InputTypeError, match="int64"):
        w.insert(2, 1.5)
    with pytest.raises(sw.InputTypeError):
        w.insert(2, "three")
    with pytest.raises(sw.InputTypeError):
        w.insert(1.5, 3)
    with pytest.raises(sw.InputError):
        w.insert(2, None)
    with pytest.raises(sw.InputError):
        w.insert(2, 2**70)
    assert w.query() == 3
    f = sw.Window(sw.max(), algorithm="recalc", dtype=float)
    f.insert(1, 3)
    f.insert(2, 3.5)
    assert f.query() == 3.5


@pytest.mark.parametrize("bad", [None, float("nan"), np.datetime64("NaT"), True])
def test_a_missing_time_is_an_error(bad):
    w = sw.Window(sw.sum(), algorithm="recalc")
    with pytest.raises((sw.InputError, sw.InputTypeError)):
        w.insert(bad, 1)
    w.insert(1.0, 1)
    with pytest.raises((sw.InputError, sw.InputTypeError)):
        w.insert(bad, 1)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
@settings(deadline=None)
def test_float_times_keep_their_order(times):
    w = sw.Window(LISTS, algorithm="recalc")
    w.bulk_insert(times, list(range(len(times))))
    assert [t for t, _ in w.items()] == sorted(times)


def test_datetimes_come_back_as_they_went_in():
    base = datetime(2026, 1, 1)
    w = sw.Window(sw.sum(), algorithm="recalc")
    for k in range(3):
        w.insert(base + timedelta(hours=k), k)
    assert (w.oldest, w.youngest) == (base, base + timedelta(hours=2))
    assert w.query(base + timedelta(hours=1), base + timedelta(hours=2)) == 3
    again = sw.Window.from_bytes(w.to_bytes(), sw.sum())
    assert again.oldest == base
    with pytest.raises(sw.InputTypeError, match="zone"):
        w.insert(datetime(2026, 1, 2, tzinfo=UTC), 1)
    n = sw.Window(sw.sum(), algorithm="recalc", time_dtype="datetime64[ms]")
    n.insert(np.datetime64("2026-01-01T00:00:00.001"), 1)
    assert n.oldest == np.datetime64("2026-01-01T00:00:00.001", "ms")
    with pytest.raises(sw.InputError, match="finer"):
        n.insert(np.datetime64("2026-01-01T00:00:00.002001", "us"), 1)


def test_datetimes_of_all_centuries():
    w = sw.Window(sw.max(), algorithm="fiba", dtype=dtype_of("fiba"))
    times = [datetime(2024, 5, 1), datetime(1500, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime(1, 1, 1)]
    for j, t in enumerate(times):
        w.insert(t, j)
    assert [t for t, _ in w.items()] == sorted(times)
    assert w.query(datetime(1400, 1, 1), datetime(1600, 1, 1)) == 1


def test_an_operator_that_the_algorithm_cannot_serve_is_refused_with_a_way_out():
    with pytest.raises(sw.UnsupportedError, match=r"fiba|two_stacks_lite|daba"):
        sw.Window(sw.max(), algorithm="subtract_on_evict", dtype="i8")
    with pytest.raises(sw.UnsupportedError):
        sw.Window(sw.mean(), algorithm="slick_deque", dtype="f8")
    with pytest.raises(sw.InputError, match="two_stacks_lite"):
        sw.Window(sw.max(), algorithm="quantum")
    with pytest.raises(sw.InputTypeError, match=r"sw\.max"):
        sw.Window(sw.max("amount"))


# ---- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("op", [sw.sum(), sw.max(), LISTS], ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [object, "i8"])
def test_bytes_go_round(name, op, dtype):
    if dtype == "i8" and (op.name != "max" or name not in COMPILED):
        return
    try:
        w = sw.Window(op, algorithm=name, dtype=dtype)
        for t in range(20):
            w.insert(t, t % 7)
    except sw.UnsupportedError:
        return
    for _ in range(7):
        w.evict()
    again = sw.Window.from_bytes(w.to_bytes(), op)
    assert again.query() == w.query()
    for t in range(20, 60):
        for x in (w, again):
            x.insert(t, t % 5)
            x.evict()
        again.check()
        assert again.query() == w.query()


def test_bytes_of_another_operator_or_parameter_are_refused():
    w = sw.Window(sw.sum(), algorithm="recalc")
    w.insert(1, 1)
    with pytest.raises(sw.StateError, match="sum"):
        sw.Window.from_bytes(w.to_bytes(), sw.max())
    with pytest.raises(sw.StateError):
        sw.Window.from_bytes(b"something else", sw.sum())
    with pytest.raises(sw.StateError):
        sw.Window.from_bytes("text", sw.sum())


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_never_load(name):
    rng = np.random.default_rng(7)
    op = sw.max()
    try:
        w = sw.Window(op, algorithm=name, dtype=dtype_of(name))
        w.bulk_insert(np.arange(9), rng.integers(0, 9, 9))
    except sw.UnsupportedError:
        return
    data = w.to_bytes()
    for _ in range(150):
        broken = bytearray(data)
        broken[rng.integers(len(broken))] ^= int(rng.integers(1, 256))
        with pytest.raises(sw.StateError):
            sw.Window.from_bytes(bytes(broken), op)
    for cut in rng.integers(0, len(data), 60):
        with pytest.raises(sw.StateError):
            sw.Window.from_bytes(data[:cut], op)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_with_a_true_checksum_and_a_false_content_never_crash(name):
    """A foreign writer can compute the checksum too: then every field is checked before compiled code sees it."""
    import hashlib

    rng = np.random.default_rng(11)
    op = sw.sum() if name == "subtract_on_evict" else sw.max()
    w = sw.Window(op, algorithm=name, dtype=dtype_of(name))
    w.bulk_insert(np.arange(9), rng.integers(0, 9, 9))
    for _ in range(4):
        w.evict()
    data = w.to_bytes()[:-32]
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            broken[rng.integers(len(broken))] = int(rng.integers(0, 256))
        broken = bytes(broken)
        try:
            again = sw.Window.from_bytes(broken + hashlib.sha256(broken).digest(), op)
        except sw.StateError:
            continue
        again.check()
        while len(again):
            again.query()
            again.evict()


def test_the_list_of_algorithms_can_be_asked_for_at_any_time():
    import slidewise.algorithms.fiba  # noqa: F401  (makes the room an attribute of the package)

    assert {"recalc", "daba_lite", "fiba"} <= {info.name for info in sw.algorithms()}
