"""The boundary rule against every window's definition, and its timelines drawn."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.windows.naive import Rows, members, members_at

from slidewise.errors import InputError
from slidewise.windows.boundaries import answers, ending_there, moments_by_key
from slidewise.windows.bounds import CLOSED, frames, frames_as_of
from slidewise.windows.clock import Ticks

WINDOWS = [
    Ticks("time", 5),
    Ticks("time", 1),
    Ticks("time", 5, offset=2),
    Ticks("time", 5, slide=3),
    Ticks("time", 4, slide=2, origin=1),
    Ticks("time", 2, slide=5, offset=3, origin=2),
    Ticks("rows", 3),
    Ticks("rows", 4, slide=3),
    Ticks("rows", 2, offset=2),
    Ticks("tumbling", 4, slide=4),
    Ticks("tumbling", 3, slide=3, origin=1),
    Ticks("session", 2),
    Ticks("delta", 3, column="x"),
    Ticks("punctuation", column="x"),
    Ticks("lifetime"),
]


@st.composite
def sorted_rows(draw):
    """A few keys, many ties, some gaps; keys without rows too."""
    counts = draw(st.lists(st.integers(0, 12), min_size=1, max_size=4))
    keys, times = [], []
    for key, count in enumerate(counts):
        t = draw(st.integers(-10, 5))
        for _ in range(count):
            t += draw(st.sampled_from([0, 0, 1, 1, 2, 3, 7]))
            keys.append(key)
            times.append(t)
    column = draw(st.lists(st.integers(0, 6), min_size=len(keys), max_size=len(keys)))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Rows(keys, times, column), offsets


def column_of(window, rows, dtype=np.int64):
    if window.kind == "punctuation":
        return [x % 3 == 0 for x in rows.column], (np.array([x % 3 == 0 for x in rows.column], np.uint8), None)
    return rows.column, (np.array(rows.column, dtype), None)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(case=sorted_rows(), closed=st.sampled_from(list(CLOSED)), ties=st.sampled_from(["peers", "arrival"]))
def test_frames_follow_the_definition(window, case, closed, ties):
    rows, offsets = case
    plain, column = column_of(window, rows)
    starts, ends = frames(window, np.array(rows.times, np.int64), offsets, closed=closed, ties=ties, column=column)
    for i in range(len(rows.times)):
        expected = members(window, Rows(rows.keys, rows.times, plain), i, closed, ties)
        assert list(range(starts[i], ends[i])) == expected
    assert (np.diff(starts) >= 0).all(), "starts never go back"
    assert (np.diff(ends) >= 0).all(), "ends never go back"


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@given(case=sorted_rows(), closed=st.sampled_from(list(CLOSED)), data=st.data())
def test_frames_as_of_follow_the_definition(window, case, closed, data):
    rows, offsets = case
    moments = [sorted(data.draw(st.lists(st.integers(-12, 30), max_size=6))) for _ in range(len(offsets) - 1)]
    moment_offsets = np.concatenate([[0], np.cumsum([len(m) for m in moments])]).astype(np.int64)
    flat = np.array([m for key in moments for m in key], np.int64)
    plain, column = column_of(window, rows)
    starts, ends = frames_as_of(
        window, flat, moment_offsets, np.array(rows.times, np.int64), offsets, closed=closed, column=column
    )
    place = 0
    for key, of_key in enumerate(moments):
        for moment in of_key:
            expected = members_at(window, Rows(rows.keys, rows.times, plain), key, moment, closed)
            assert list(range(starts[place], ends[place])) == expected
            place += 1


@pytest.mark.parametrize("window", [w for w in WINDOWS if w.kind in ("time", "tumbling", "session")], ids=str)
@given(case=sorted_rows(), closed=st.sampled_from(list(CLOSED)))
def test_float_times_follow_the_same_rule(window, case, closed):
    rows, offsets = case
    whole = frames(window, np.array(rows.times, np.int64), offsets, closed=closed)
    real = frames(window, np.array(rows.times, np.float64), offsets, closed=closed)
    assert [x.tolist() for x in whole] == [x.tolist() for x in real]


@given(case=sorted_rows(), data=st.data())
def test_parts_join_without_a_seam(case, data):
    """Frames may be computed part by part, cut anywhere."""
    rows, offsets = case
    times = np.array(rows.times, np.int64)

    def in_parts(part, n):
        cuts = [0, *sorted(data.draw(st.lists(st.integers(0, n), max_size=3))), n]
        for lo, hi in itertools.pairwise(cuts):
            part(lo, hi)

    for window in (
        Ticks("time", 5),
        Ticks("time", 4, slide=3, offset=1),
        Ticks("rows", 3),
        Ticks("tumbling", 4, slide=4),
        Ticks("session", 2),
    ):
        whole, cut = frames(window, times, offsets), frames(window, times, offsets, run=in_parts)
        assert [x.tolist() for x in whole] == [x.tolist() for x in cut]


def test_times_at_the_ends_of_int64():
    """A range that reaches below the lowest time reaches everything, and does not wrap around."""
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    times, offsets = np.array([low, low + 1, 0, high]), np.array([0, 4])
    starts, ends = frames(Ticks("time", high), times, offsets, closed="both")
    assert starts.tolist() == [0, 0, 1, 2]
    assert ends.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("closed", list(CLOSED))
@pytest.mark.parametrize("window", [Ticks("time", 2**63 - 1), Ticks("time", 10, offset=2**62), Ticks("time", 2**63 - 1, offset=1)])
def test_rows_at_the_ends_of_int64_follow_the_definition(window, closed):
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for times in ([low, low, low + 1, -5, -5], [low + 9, 0, high], [low, 2**62 + low, 2**62 + low + 1]):
        if window.range + window.offset > high and times[-1] == high:
            continue
        starts, ends = frames(window, np.array(times), np.array([0, len(times)]), closed=closed)
        rows = Rows(["k"] * len(times), times)
        for i in range(len(times)):
            assert list(range(starts[i], ends[i])) == members(window, rows, i, closed)


@pytest.mark.parametrize(
    ("window", "times", "listed"),
    [
        (Ticks("time", 5, slide=3), [0, 2**63 - 2], False),
        (Ticks("time", 5, slide=3), [-(2**63) + 1, 0], False),
        (Ticks("tumbling", 10, slide=10), [-(2**63) + 1], False),
        (Ticks("time", 2**62, slide=2**40), [0, 2**62 + 5], True),
        (Ticks("time", 2**64), [-(2**63), 2**63 - 1], False),
        (Ticks("session", 2**64), [-(2**63), 2**63 - 1], False),
        (Ticks("time", 5.0, slide=1.0), [0.0, 1e17], False),
    ],
    ids=str,
)
def test_times_without_room_for_the_window_are_refused(window, times, listed):
    """Neither wrapped around nor counted for ever."""
    times = np.array(times)
    with pytest.raises(InputError, match="can be counted from"):
        if listed:
            moments_by_key([window], times, np.array([0, len(times)]), "right")
        else:
            frames(window, times, np.array([0, len(times)]))
    with pytest.raises(InputError, match="can be counted from"):
        moments_by_key([window], times, np.array([0, len(times)]), "right")


@pytest.mark.parametrize("rows", [[], [0]])
@pytest.mark.parametrize(
    ("window", "dtype"),
    [
        (Ticks("tumbling", 2**64, slide=2**64), np.int64),
        (Ticks("time", 2**63, slide=1), np.int64),
        (Ticks("time", 1, slide=1, offset=2**63), np.int64),
        (Ticks("time", 1e300, slide=0.001), np.float64),
    ],
    ids=str,
)
def test_windows_without_room_for_any_time_are_refused_without_rows_too(window, dtype, rows):
    times, offsets = np.array(rows, dtype), np.array([0, len(rows)])
    with pytest.raises(InputError, match="leaves no time"):
        moments_by_key([window], times, offsets, "right")
    if window.slide == 2**64:
        with pytest.raises(InputError, match="leaves no time"):
            frames(window, times, offsets)


def test_more_boundaries_than_anybody_reads_are_refused():
    with pytest.raises(InputError, match="4,611,686,018,427,387,904 boundaries"):
        moments_by_key([Ticks("time", 2**62, slide=1)], np.array([0]), np.array([0, 1]), "right")


@pytest.mark.parametrize("slide", [0.1, 0.3, 1 / 3])
def test_boundaries_of_floats_do_not_drift(slide):
    """Each is origin + k * slide, rounded once, whether it is listed or looked for."""
    moments, offsets = moments_by_key([Ticks("time", 1000.0, slide=slide)], np.array([0.05]), np.array([0, 1]), "right")
    assert offsets.tolist() == [0, len(moments)] and len(moments) > 2900
    assert (moments == np.arange(1, len(moments) + 1) * slide).all()
    assert answers(Ticks("time", 1000.0, slide=slide), moments).all()
    starts, ends = frames(Ticks("time", slide / 2, slide=slide), moments, offsets)
    assert (starts == np.arange(len(moments))).all() and (ends == starts + 1).all()


@pytest.mark.parametrize("closed", list(CLOSED))
@pytest.mark.parametrize(
    "window",
    [
        Ticks("time", 2.1, slide=0.3, origin=-0.1),
        Ticks("time", 0.1, slide=0.1),
        Ticks("time", 0.7, slide=0.3, offset=0.1),
        Ticks("time", 0.1, slide=0.3, offset=0.6, origin=0.7),
        Ticks("tumbling", 0.1, slide=0.1),
        Ticks("tumbling", 0.3, slide=0.3, origin=-0.1),
    ],
    ids=str,
)
def test_the_boundaries_of_floats_that_are_listed_are_those_whose_frames_hold_rows(window, closed):
    for t in (2.9000000000000004, *(k * 0.1 for k in range(-30, 60)), *(0.3 + k / 10 for k in range(20))):
        times, offsets = np.array([t]), np.array([0, 1])
        moments = moments_by_key([window], times, offsets, closed)[0]
        every = window.origin + np.arange(-140.0, 140.0) * window.slide
        starts, ends = frames_as_of(ending_there(window), every, np.array([0, len(every)]), times, offsets, closed=closed)
        assert moments.tolist() == every[ends > starts].tolist()
        if window.kind == "tumbling":
            edge = (every == t).any()
            assert len(moments) == {"both": 1 + edge, "neither": 1 - edge}.get(closed, 1), "none is lost or counted twice"


def test_listed_boundaries_follow_the_definition():
    times, offsets = np.array([1, 3, 3, 20, -4, 50]), np.array([0, 4, 4, 6])
    for closed in CLOSED:
        for window in (Ticks("time", 5, slide=2, offset=1, origin=1), Ticks("time", 2, slide=7), Ticks("tumbling", 4, slide=4)):
            moments, found = moments_by_key([window], times, offsets, closed)
            still = Ticks("time", window.range, offset=window.offset)
            for key in range(3):
                rows = Rows([0] * (offsets[key + 1] - offsets[key]), times[offsets[key] : offsets[key + 1]].tolist())
                wanted = [
                    b
                    for b in range(-20, 80)
                    if (b - window.origin) % window.slide == 0 and members_at(still, rows, 0, b, closed)
                ]
                assert moments[found[key] : found[key + 1]].tolist() == wanted


def test_the_timeline_of_the_docs():
    """
    time     1       3  3           7   8
    place    0       1  2           3   4         range 4, at the row of time 7

    right          (3   .   .   .   7]            only 7: the left end, 3, is out
    left           [3   .   .   .   7)            3 and 3: the right end, 7, is out
    both           [3   .   .   .   7]
    neither        (3   .   .   .   7)            nothing
    """
    times, offsets = np.array([1, 3, 3, 7, 8]), np.array([0, 5])
    found = {closed: frames(Ticks("time", 4), times, offsets, closed=closed) for closed in CLOSED}
    assert {closed: (int(s[3]), int(e[3])) for closed, (s, e) in found.items()} == {
        "right": (3, 4),
        "left": (1, 3),
        "both": (1, 4),
        "neither": (3, 3),
    }


def test_nan_and_infinity_in_a_delta_column():
    """A NaN is within nothing but NaN; two infinities of one sign are within anything."""
    values = np.array([1.0, np.nan, np.nan, 2.0, np.inf, np.inf, 5.0])
    times, offsets = np.arange(7), np.array([0, 7])
    starts, _ = frames(Ticks("delta", 3.0, column="x"), times, offsets, column=(values, None))
    assert starts.tolist() == [0, 1, 1, 3, 4, 4, 6]


def test_a_null_after_a_nan_is_in_the_next_delta_run():
    values, valid = np.array([np.nan, 0.0, 1.0, 0.0, np.nan]), np.array([1, 0, 1, 0, 1], np.uint8)
    starts, _ = frames(Ticks("delta", 3.0, column="x"), np.arange(5), np.array([0, 5]), column=(values, valid))
    assert starts.tolist() == [0, 0, 1, 1, 3], "as after a number that is too far away"


def test_a_null_neither_widens_nor_ends_a_delta_run():
    values, valid = np.array([1, 99, 2, 9]), np.array([1, 0, 1, 1], np.uint8)
    starts, _ = frames(Ticks("delta", 3, column="x"), np.arange(4), np.array([0, 4]), column=(values, valid))
    assert starts.tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("closed", list(CLOSED))
@pytest.mark.parametrize("gaps", [(1,), (0, 0, 1, 7), (0, 1, 400)], ids=["even", "ragged", "bursts"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_long_keys_of_even_and_of_ragged_pace(closed, gaps, dtype):
    """How starts are looked for depends on the pace at which rows leave: every way finds what a search finds."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 3000, 3000, 3003, 6000], np.int64)
    times = np.cumsum(rng.choice(gaps, 6000)).astype(dtype)
    times[3003:] -= times[3003]
    left = closed in ("left", "both")
    for reach in (1, 5, 60, 1500):
        starts, ends = frames(Ticks("time", reach), times, offsets, closed=closed)
        cut, cut_ends = frames(
            Ticks("time", reach), times, offsets, closed=closed, run=lambda part, n: [part(0, 700), part(700, n)]
        )
        assert (starts == cut).all() and (ends == cut_ends).all()
        for a, b in itertools.pairwise(offsets):
            own = times[a:b]
            side = "right" if closed in ("right", "both") else "left"
            assert (ends[a:b] == a + np.searchsorted(own, own, side=side)).all()
            found = a + np.searchsorted(own, own - reach, side="left" if left else "right")
            assert (starts[a:b] == np.minimum(found, ends[a:b])).all()


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("closed", CLOSED)
def test_long_keys_at_every_pace(closed, real):
    """Rows that leave one by one, in bursts, at random and not at all; keys short and long, cut anywhere: by binary search."""
    rng = np.random.default_rng(7)
    paces = [np.full(700, 3), rng.integers(0, 7, 700), np.full(300, 0), np.full(900, 3), np.tile([0, 6], 200), np.full(80, 3)]
    paces[3][500:540] = 4
    counts = [sum(map(len, paces)), *rng.integers(0, 40, 60), 2000]
    steps = np.concatenate([*paces, rng.integers(0, 9, sum(counts[1:-1])), np.full(2000, 5)])
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    times = np.concatenate([np.cumsum(steps[a:b]) for a, b in itertools.pairwise(offsets)]).astype("f8" if real else "i8")
    left, right = CLOSED[closed]
    for window in (Ticks("time", 30), Ticks("time", 300), Ticks("time", 7, offset=2), Ticks("time", 10**5)):

        def parts(part, count):
            cuts = [0, 1, 333, 1000, 1001, count - 50, count]
            for a, b in itertools.pairwise(cuts):
                part(a, b)

        starts, ends = frames(window, times, offsets, closed=closed, run=parts)
        for a, b in itertools.pairwise(offsets):
            own, last = times[a:b], times[a:b] - window.offset
            end = np.searchsorted(own, last, "right" if right else "left")
            start = np.searchsorted(own, last - window.range, "left" if left else "right")
            assert (ends[a:b] == a + end).all() and (starts[a:b] == a + np.minimum(start, end)).all()
