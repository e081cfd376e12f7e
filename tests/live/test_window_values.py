"""Odd values: what a window makes of dates, durations, narrow and huge numbers, and what it does after it has refused one."""

import copy
import pickle
import threading
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest

import slidewise as sw
from slidewise.live.values import Values

DAY = np.timedelta64(1, "D")


def answer(op, values, algorithm="recalc", times=None, **options):
    w = sw.Window(op, algorithm, **options)
    for t, v in zip(times or range(len(values)), values, strict=True):
        w.insert(t, v)
    return w.query()


# ---- dates and durations ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_durations_give_durations(unit):
    values = [np.timedelta64(k, unit) for k in (1, 5, 2)]
    assert answer(sw.sum(), values) == np.timedelta64(8, unit)
    assert answer(sw.max(), values) == np.timedelta64(5, unit)
    assert answer(sw.spread(), values) == np.timedelta64(4, unit)
    assert answer(sw.median(), values) == np.timedelta64(2, unit)
    assert type(answer(sw.sum(), values)) is np.timedelta64


def test_a_mean_of_days_may_end_at_noon():
    assert answer(sw.mean(), [DAY, 2 * DAY]) == np.timedelta64(36, "h")
    assert answer(sw.median(), [DAY, 2 * DAY]) == np.timedelta64(36, "h")
    assert answer(sw.mean(), [np.timedelta64(k, "M") for k in (1, 3)]) == np.timedelta64(2, "M")


def test_durations_that_add_up_to_more_than_there_is_room_for():
    with pytest.raises(sw.AggregateOverflowError):
        answer(sw.sum(), [np.timedelta64(2**62, "ns")] * 3)
    assert answer(sw.mean(), [np.timedelta64(2**62, "ns")] * 3) == np.timedelta64(2**62, "ns")


def test_moments_cannot_be_added_up():
    values = [np.datetime64("2026-01-01"), np.datetime64("2026-01-03")]
    assert answer(sw.spread(), values) == 2 * DAY
    assert answer(sw.max(), values) == values[1]
    for op in (sw.sum(), sw.mean(), sw.median(), sw.var(), sw.quantile(q=0.5), sw.bit_or(), sw.histogram(edges=[0, 1])):
        with pytest.raises(sw.InputTypeError, match=op.name):
            answer(op, values)
        with pytest.raises(sw.InputTypeError, match=op.name):
            sw.Window(op, dtype="M8[ns]")
    with pytest.raises(sw.InputTypeError, match="var"):
        answer(sw.var(), [DAY])


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
def test_moments_are_collected_as_what_they_are(unit):
    values = [np.datetime64("2026-01-01").astype(f"M8[{unit}]"), np.datetime64("2026-01-03").astype(f"M8[{unit}]")]
    assert answer(sw.collect(), values) == values
    assert answer(sw.collect_distinct(), [*values, values[0]]) == values
    assert answer(sw.top_k(k=1), values) == [values[1]]
    assert tuple(answer(sw.m4(), values)) == (values[0], values[1], values[0], values[1])
    assert answer(sw.min_count(), values) == 1
    assert all(type(v) is np.datetime64 for v in answer(sw.collect(), values))
    w = sw.Window(sw.collect(), "recalc")
    w.bulk_insert([1, 2], np.array(values))
    assert sw.Window.from_bytes(w.to_bytes(), sw.collect()).query() == values


def test_durations_of_python():
    assert answer(sw.sum(), [timedelta(1), timedelta(2)]) == timedelta(3)
    assert answer(sw.mean(), [timedelta(1), timedelta(2)]) == timedelta(1.5)


# ---- missing values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [sw.sum(), sw.max(), sw.last(), sw.collect(), sw.any(), sw.median(), sw.top_k(k=1)], ids=repr)
@pytest.mark.parametrize("dtype", [object, None])
def test_what_pandas_calls_missing_is_missing(op, dtype):
    pd = pytest.importorskip("pandas")
    for value in (pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT", "s"), None):
        w = sw.Window(op, "recalc", dtype=dtype)
        with pytest.raises(sw.SlidewiseError, match=r"missing|NaT|takes numbers"):
            w.insert(0, value)
        with pytest.raises(sw.SlidewiseError, match=r"missing|NaT|takes numbers"):
            w.bulk_insert([0, 1], [value, value])
        assert len(w) == 0


# ---- values without an order, or without a sum -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "values"),
    [
        (sw.max(), [1, "a"]),
        (sw.min(), ["a", 1]),
        (sw.max(), [1j, 2j]),
        (sw.max(), [np.array([1, 2]), np.array([2, 1])]),
        (sw.argmax(), [(1, "a"), ("b", "b")]),
        (sw.spread(), [Decimal(1), date(2026, 1, 1)]),
        (sw.top_k(k=2), [1, "a"]),
        (sw.median(), [1, date(2026, 1, 1)]),
        (sw.median(), [datetime(2026, 1, 1), datetime(2026, 1, 2)]),
        (sw.sum(), [datetime(2026, 1, 1), datetime(2026, 1, 2)]),
        (sw.mean(), [Decimal(1), 0.5]),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_values_that_do_not_go_together_are_a_clear_error(op, values):
    for algorithm in ("recalc", "two_stacks", "fiba"):
        with pytest.raises(sw.InputTypeError):
            answer(op, values, algorithm, dtype=object)


@pytest.mark.parametrize("algorithm", ["recalc", "two_stacks", "daba", "flatfat", "fiba"])
@pytest.mark.parametrize("op", [sw.max(), sw.min_count(), sw.spread(), sw.top_k(k=2), sw.sum()], ids=lambda op: op.name)
def test_a_value_that_does_not_go_with_the_others_does_no_harm(op, algorithm):
    w = sw.Window(op, algorithm, dtype=object)
    for t in range(5):
        w.insert(t, Decimal(t))
    answered = w.query()
    for stranger in (date(2026, 1, 1), [1], object()):
        with pytest.raises(sw.InputTypeError):
            w.insert(9, stranger)
        with pytest.raises(sw.InputTypeError):
            w.bulk_insert([9, 10], [Decimal(1), stranger])
    assert w.query() == answered and len(w) == 5
    w.insert(9, Decimal(7))
    w.check()
    w.bulk_evict(9)
    w.insert(10, timedelta(1))  # among nothing, nothing is strange
    w.insert(11, timedelta(2))
    assert w.query() is not None


# ---- numbers of every width ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "u4", "u8", "i8", "f2", "f4", "?"])
def test_the_ends_of_every_type_of_numbers(dtype):
    kind = np.dtype(dtype)
    if kind.kind == "f":
        ends = [kind.type(np.finfo(kind).min), kind.type(np.finfo(kind).max)]
    else:
        ends = [kind.type(0), kind.type(1)] if kind.kind == "b" else [kind.type(end(kind)) for end in (low, high)]
    w = sw.Window(sw.max(), "recalc", dtype=object)  # the same questions, interpreted: one compiled type is enough
    for x in (w, sw.Window(sw.max(), "recalc")) if dtype == "u8" else (w,):
        for t, value in enumerate(ends):
            x.insert(t, value)
        assert x.query() == max(end.item() for end in ends)


def low(kind):
    return np.iinfo(kind).min


def high(kind):
    return np.iinfo(kind).max


# ---- after a refusal -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["recalc", "two_stacks", "daba_lite", "flatfat", "fiba"])
def test_a_refused_insert_leaves_everything_as_it_was(algorithm):
    w = sw.Window(sw.collect(), algorithm, dtype=object)
    refused = [(None, 1), (float("nan"), 1), ("a", 1), (1, None), (datetime(2026, 1, 1), 1), (True, 1)]
    for t, v in refused[:2] + refused[3:4] + refused[5:]:
        with pytest.raises(sw.SlidewiseError):
            w.insert(t, v)
        assert len(w) == 0 and w.query() == []
    for step in range(5):
        w.insert(step, step)
        for t, v in refused:
            with pytest.raises(sw.SlidewiseError):
                w.insert(t, v)
            with pytest.raises(sw.SlidewiseError):
                w.bulk_insert([step + 1, t], [0, v])
        w.check()
        assert w.query() == list(range(step + 1))


# ---- threads ---------------------------------------------------------------------------------------------------------


def test_windows_of_one_operator_in_several_threads():
    """Each thread has its own window; operators, compiled code and caches are shared."""
    failures = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            values = [int(v) for v in rng.integers(-100, 100, 300)]
            w, recent = sw.Window(sw.max(), "two_stacks_lite"), []
            op = sw.operator(lift=lambda x: (x,), combine=lambda a, b: a + b, identity=(), name="letters")
            text = sw.Window(op, "daba", dtype=object)
            for t, v in enumerate(values):
                w.insert(t, v)
                text.insert(t, v)
                recent.append(v)
                if len(recent) > 17:
                    w.evict()
                    text.evict()
                    recent.pop(0)
                assert w.query() == max(recent)
                assert text.query() == tuple(recent)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---- times -----------------------------------------------------------------------------------------------------------


def test_truth_values_are_no_times_in_a_bulk_either():
    for first in (1, 0.5):
        w = sw.Window(sw.count(), "recalc")
        w.insert(0 * first, None)
        with pytest.raises(sw.InputTypeError, match="True"):
            w.bulk_insert([first, True])
        with pytest.raises(sw.InputTypeError, match="True"):
            w.bulk_insert(np.array([True]))
        assert len(w) == 1


@pytest.mark.parametrize("t", [2**53 + 1, -(2**60) - 1, 10**400, np.int64(2**53 + 1), np.uint64(2**64 - 1)], ids=str)
def test_a_whole_number_that_is_no_float_is_not_moved(t):
    w = sw.Window(sw.count(), "recalc", time_dtype="f8")
    with pytest.raises(sw.InputError, match="time_dtype"):
        w.insert(t)
    for bulk in ([t], [0.5, t], [2**53, t, 0.5]):
        with pytest.raises(sw.InputError, match="time_dtype"):
            w.bulk_insert(bulk)
    w.insert(2**53)
    w.bulk_insert(np.array([2**60]))
    assert w.youngest == 2.0**60


def test_a_year_that_python_has_not_is_no_datetime():
    w = sw.Window(sw.count(), "recalc")
    w.insert(datetime.max)
    with pytest.raises(sw.InputError, match="20000-01-01 is no Python datetime"):
        w.insert(np.datetime64("20000-01-01"))
    with pytest.raises(sw.InputError, match="no Python datetime"):
        w.bulk_insert(np.array(["9999-12-31", "20000-01-01"], "M8[D]"))
    assert w.youngest == datetime.max


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "25ms"])
def test_times_and_values_of_every_unit_come_back(unit):
    moment = np.array(["2026-01-01"], f"M8[{unit}]")[0]
    w = sw.Window(sw.collect(), "recalc", dtype=object, time_dtype=f"M8[{unit}]")
    w.insert(moment, 1)
    assert sw.Window.from_bytes(w.to_bytes(), sw.collect()).oldest == moment
    empty = sw.Window(sw.max(), "recalc", dtype=f"M8[{unit}]").to_bytes()
    assert sw.Window.from_bytes(empty, sw.max()).to_bytes() == empty


def test_a_truth_value_is_no_first_time():
    with pytest.raises(sw.InputTypeError, match="the time True is a truth value, not a number or a datetime"):
        sw.Window(sw.count(), "recalc").insert(True)


@pytest.mark.parametrize("time", [int, "{:06}".format], ids=["coded", "objects"])
def test_a_window_that_goes_on_and_on_keeps_room_for_what_it_holds(time):
    w = sw.Window(sw.collect(), "two_stacks_lite", dtype=object)
    for t in range(1000):
        w.insert(time(t), t)
        if len(w) > 10:
            w.evict()
    assert w.query() == list(range(990, 1000))
    assert len(w._store.times.items) < 100


def test_an_arity_is_for_trees():
    with pytest.raises(sw.InputError, match=r"min_arity= is for trees .*, and daba is none"):
        sw.Window(sw.max(), "daba", min_arity=4)


# ---- small integers --------------------------------------------------------------------------------------------------

MINUS = sw.operator(lift=lambda x: -x, combine=lambda a, b: a + b, identity=0, name="minus")


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4"])
def test_small_integers_go_to_a_users_functions_as_int64(dtype):
    """Compiled, -x of a uint8 would be 156 or 2^64 - 100; of one of NumPy's own 156 too."""
    values = Values(MINUS, (np.dtype(dtype),))
    assert values.inputs == (np.int64,)
    assert type(values.row(100)[0]) is np.int64
    for many in (np.array([100], dtype), [100]):
        assert values.columns(many, 1)[0].dtype == np.int64
    with pytest.raises(sw.InputError, match="does not fit"):
        values.row(2**40)
    assert Values(sw.max(), (np.dtype(dtype),)).inputs == (dtype,)
    w = sw.Window(MINUS.with_(object_only=True), "recalc", dtype=dtype)
    w.insert(0, np.dtype(dtype).type(100))
    w.bulk_insert([1, 2], np.array([100, 100], dtype))
    assert w.query() == -300


def test_durations_as_times():
    """Comparable, and so a time, on the interpreted path; not an integer."""
    w = sw.Window(sw.collect(), "fiba")
    w.insert(np.timedelta64(2, "s"), "b")
    w.insert(np.timedelta64(1, "s"), "a")
    assert w.query() == ["a", "b"]
    whole = sw.Window(sw.collect(), "fiba", time_dtype="i8")
    with pytest.raises(sw.InputTypeError, match="integer"):
        whole.insert(np.timedelta64(1, "s"), "a")


def test_copies_are_independent_and_pickles_are_refused():
    w = sw.Window(sw.collect(), "two_stacks")
    w.insert(1, "a")
    for other in (w.copy(), copy.copy(w), copy.deepcopy(w)):
        other.insert(2, "b")
        other.evict()
        assert (w.query(), other.query()) == (["a"], ["b"])
    with pytest.raises(sw.UnsupportedError, match="to_bytes"):
        pickle.dumps(w)
