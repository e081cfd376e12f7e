"""Parts for threads join without a seam; an error or Ctrl-C stops the rest; progress is shown to people only."""

import io
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.algorithms import at_hand
from slidewise.engines.local import frames, sweeps, threads
from slidewise.engines.local import run as run_module
from slidewise.engines.local.run import run
from slidewise.engines.local.sweeps import ROWS_A_PART, cut
from slidewise.engines.local.threads import Progress, Workers
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request
from slidewise.planner.slices import shared_plan


@pytest.mark.parametrize("keys", [1, 40])
def test_parts_join_without_a_seam(keys):
    """Sums of whole numbers, by prefix sums: exact in any grouping, however the rows are cut."""
    n = 5 * ROWS_A_PART + 17
    rng = np.random.default_rng(0)
    k = np.sort(rng.integers(0, keys, n))
    x = rng.integers(-50, 50, n)
    table = pa.table({"t": np.arange(n), "k": k, "x": x.astype(np.float64), "i": x})
    windows = {"rows": sw.rows(700), "steps": sw.time(900, slide=300), "anew": sw.tumbling(500)}
    out = sw.rolling(table, time="t", by="k", windows=windows, aggs={"x": sw.sum("x"), "i": sw.sum("i")})
    total = np.concatenate([[0], np.cumsum(x)])
    first = np.searchsorted(k, k)
    last = np.arange(n)
    bounds = {
        "rows": (np.maximum(first, last - 699), last + 1),
        "steps": (np.maximum(first, last // 300 * 300 - 899), np.maximum(first, last // 300 * 300 + 1)),
        "anew": (np.maximum(first, (last - 1) // 500 * 500 + 1), last + 1),
    }
    for name, (start, end) in bounds.items():
        start = np.minimum(np.maximum(start, 0), end)
        expected = np.where(end > start, total[end] - total[start], 0)
        for column in (f"x_{name}", f"i_{name}"):
            assert (out.column(column).fill_null(0).to_numpy() == expected).all(), column


@pytest.mark.parametrize("technique", ["pairs", "cutty"])
def test_slices_join_without_a_seam(technique, monkeypatch):
    """Boundaries are cut into parts, and slices between two of them: sums of whole numbers, by prefix sums."""
    monkeypatch.setattr(sweeps, "ROWS_A_PART", 500)
    monkeypatch.setattr(threads, "SMALL", 500)
    n = 20_000
    x = np.random.default_rng(1).integers(-50, 50, n)
    table = pa.table({"t": np.arange(1, n + 1), "i": x})
    asked = request(time="t", windows={"w": sw.time(70, slide=4)}, aggs={"i": sw.sum("i")}, emit="slide")
    plan = make_plan(asked, table.schema)
    out = run(replace(plan, slices=shared_plan(plan.slices.queries, technique, plan.slices.closed)), table, threads=3)
    total, ends = np.concatenate([[0], np.cumsum(x)]), out.column("t").to_numpy()
    assert ends[0] == 4 and ends[-1] == n + 68
    assert (out.column("i_w").to_numpy() == total[np.minimum(ends, n)] - total[np.maximum(ends - 70, 0)]).all()


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
@pytest.mark.parametrize("ties", ["peers", "arrival"])
def test_frames_found_on_the_way_are_those_found_at_once(closed, ties, monkeypatch):
    """One aggregate finds its frames block by block, several find them first: the same to the bit, windows that grow included."""
    monkeypatch.setattr(sweeps, "BLOCK", 1000)
    rng = np.random.default_rng(0)
    n = 3 * ROWS_A_PART + 17
    pace = np.repeat([1, 9, 400], ROWS_A_PART + 6)[:n]
    table = pa.table(
        {
            "t": np.cumsum(rng.integers(0, 2, n) * pace)[::-1],
            "k": np.sort(rng.integers(0, 3, n)),
            "x": rng.normal(size=n),
        }
    )
    asked = dict(time="t", by="k", windows={"w": 3000, "o": sw.time(700, offset=50)}, closed=closed, ties=ties)
    alone = sw.rolling(table, aggs={"s": sw.sum("x")}, **asked)
    beside = sw.rolling(table, aggs={"s": sw.sum("x"), "m": sw.max("x")}, **asked)
    for column in ("s_w", "s_o"):
        assert alone.column(column).equals(beside.column(column))


@pytest.mark.parametrize("closed", ["right", "left"])
def test_a_mean_is_the_same_to_the_last_bit_wherever_it_is_computed(closed):
    """Alone and without nulls it is a sum over the length of a frame; beside a deviation it has a count of its own."""
    rng = np.random.default_rng(5)
    n = 3 * ROWS_A_PART
    table = pa.table({"t": np.sort(rng.integers(0, n, n)), "x": rng.normal(size=n)})
    asked = dict(time="t", windows={"w": 300, "o": sw.time(700, offset=50)}, closed=closed)
    alone = sw.rolling(table, aggs={"m": sw.mean("x")}, **asked)
    beside = sw.rolling(table, aggs={"m": sw.mean("x"), "n": sw.count("x")}, **asked)
    for column in ("m_w", "m_o"):
        assert alone.column(column).equals(beside.column(column))
    assert alone.column("m_o").null_count > 0


def test_cuts_depend_on_the_data_alone_and_prefer_the_start_of_a_key():
    n = 4 * ROWS_A_PART
    offsets = np.array([0, n // 4 + 5, n], np.int64)
    assert n // 4 + 5 in cut(n, lambda at: 0, offsets)
    assert cut(n, lambda at: at, np.array([0, n])) == [0, n], (
        "windows that reach back to the start would be read again and again"
    )
    assert cut(100, lambda at: 0, None) == [0, 100]
    n = 10**6
    assert cut(n, lambda at: n // 10, None) == [0, 550_000, n], "the second part reads a frame more than its own rows"
    assert cut(n, lambda at: n // 2, None) == [0, 750_000, n]
    assert cut(n, lambda at: n // 2 + 1, None) == [0, n]


def test_the_first_error_stops_the_others():
    done, begun = [], threading.Event()
    with pytest.raises(KeyboardInterrupt), Workers(2) as workers:

        def fail():
            begun.wait(5)
            raise KeyboardInterrupt

        def work():
            def piece(lo, hi):
                begun.set()
                done.append(lo)
                while not workers.stopped:
                    threading.Event().wait(0.001)

            workers.pieces(piece, 0, 100 * threads.PIECE)

        workers.each([fail, work])
    assert len(done) == 1, "no further piece was begun"


def test_pieces_that_take_long_get_smaller(monkeypatch):
    """Whatever a row costs, a piece is over soon; cheap rows go in large pieces."""
    now = [0.0]
    monkeypatch.setattr(threads.time, "monotonic", lambda: now[0])
    sizes = {}
    for name, cost in (("cheap", 1e-9), ("dear", 1e-3)):
        sizes[name] = []

        def part(lo, hi, name=name, cost=cost):
            sizes[name].append(hi - lo)
            now[0] += (hi - lo) * cost

        Workers(1).pieces(part, 5, 5 + 3_000_000)
        assert sum(sizes[name]) == 3_000_000
    assert max(sizes["cheap"]) == threads.PIECE and max(sizes["dear"][3:]) * 1e-3 < 1.1


def test_ctrl_c_stops_a_long_run():
    """recalc over long windows would take minutes: the signal is seen between two pieces."""
    code = """if True:
        import numpy as np, pyarrow as pa, slidewise as sw
        def frame(n): return pa.table({"t": np.arange(n), "x": np.ones(n)})
        def call(n): return sw.rolling(frame(n), time="t", windows=100_000, aggs={"s": sw.sum("x")}, algorithm="recalc")
        call(100)
        print("ready", flush=True)
        call(20_000_000)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=120)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in told


PASSES = {
    "on the way": dict(windows=50, aggs={"a": sw.sum("x")}),
    "with nulls": dict(windows=50, aggs={"a": sw.sum("y")}),
    "rows": dict(windows=sw.rows(50), aggs={"a": sw.max("x")}),
    "subtracted": dict(windows=50, aggs={"a": sw.sum("t")}),
    "one by one": dict(windows=50, aggs={"a": sw.max("x")}, algorithm="daba"),
    "around": dict(windows=50, aggs={"a": sw.max("x")}, exclude_current=True, by="tens"),
    "ranges": dict(windows=[50, 70], aggs={"a": sw.max("x")}, algorithm="slick_deque"),
    "runs": dict(windows=sw.tumbling(50), aggs={"a": sw.sum("x")}),
    "tree": dict(windows=50, aggs={"a": sw.max("x")}, algorithm="fiba"),
    "coarse tree": dict(windows=sw.time(50, slide=10), aggs={"a": sw.max("x")}, algorithm="fiba"),
    "slices": dict(windows=sw.time(5, slide=1), aggs={"a": sw.sum("x")}, emit="slide"),
    "shared slices": dict(windows=[sw.time(5, slide=1), sw.time(9, slide=1)], aggs={"a": sw.sum("x")}),
    "youngest": dict(windows=50, aggs={"a": sw.sum("x")}, emit="latest", by="t2"),
    "interpreted": dict(windows=50, aggs={"a": sw.collect("x")}),
}


@pytest.mark.parametrize("as_of", [False, True])
@pytest.mark.parametrize("name", PASSES)
def test_every_kind_of_pass_can_be_stopped(monkeypatch, name, as_of):
    """Every pass goes in pieces, between which Ctrl-C is seen and progress is told: one that comes after the second is."""
    asked = PASSES[name]
    if as_of and ("emit" in asked or "exclude_current" in asked):
        pytest.skip("a query is no row")
    monkeypatch.setattr(threads, "PIECE", 1 << 10)
    monkeypatch.setattr("slidewise.engines.local.sweeps.BLOCK", 1 << 10)
    monkeypatch.setenv("SLIDEWISE_THREADS", "1")
    n, told = 1 << 16, []

    def ran(self, rows):
        told.append(rows)
        if len(told) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "ran", ran)
    t = np.arange(n)
    y = pa.array(np.ones(n), mask=t % 3 == 0)
    table = pa.table({"t": t, "t2": t // 2, "tens": t // (n // 4), "x": np.ones(n), "y": y})
    with pytest.raises(KeyboardInterrupt):
        sw.as_of(table, table, time="t", **asked) if as_of else sw.rolling(table, time="t", **asked)
    assert len(told) == 2 and sum(told) < n


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_for_people(monkeypatch):
    for screen, shown in ((io.StringIO(), False), (Screen(), True)):
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setattr(Progress, "AFTER_SECONDS", -1.0)
        monkeypatch.setattr(Progress, "AGAIN_SECONDS", 0.0)
        progress = Progress(4, 100, "rolling")
        progress.step("total over 1h")
        progress.ran(40)
        progress.step("total over 2h")
        progress.close()
        told = screen.getvalue()
        assert (" 10 %" in told and " 25 %" in told and "total over 2h" in told) is shown
        assert not shown or told.endswith(" \r")


@pytest.mark.parametrize("algorithm", ["auto", "recalc", "fiba", "slick_deque"])
def test_one_long_pass_says_how_far_it_is(monkeypatch, algorithm):
    """A call of one pass is told of piece by piece, whatever the algorithm; what is over soon is not told of."""
    monkeypatch.setenv("SLIDEWISE_THREADS", "1")
    n = 3 * ROWS_A_PART
    table = pa.table({"t": np.arange(n), "x": np.ones(n)})
    windows = [50, 70] if algorithm == "slick_deque" else 50  # a deque passes once for both
    asked = dict(time="t", windows=windows, aggs={"top": sw.max("x")}, algorithm=algorithm)
    sw.rolling(table, **asked)  # compiled
    monkeypatch.setattr("sys.stderr", screen := Screen())
    monkeypatch.setattr(Progress, "AFTER_SECONDS", 3600.0)
    sw.rolling(table, **asked)
    assert screen.getvalue() == ""
    monkeypatch.setattr(Progress, "AFTER_SECONDS", -1.0)
    monkeypatch.setattr(Progress, "AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(threads, "PIECE", 1 << 13)
    monkeypatch.setattr(threads, "SMALL", 1 << 13)
    sw.rolling(table, **asked)
    shown = [int(text.split("%")[0]) for text in screen.getvalue().split("rolling")[1:]]
    assert shown[0] == 0 and shown[-1] == 100 and len(set(shown)) > 3 and shown == sorted(shown)


@pytest.mark.parametrize("count", ["1", "3"])
def test_nan_anywhere_in_a_large_column_is_a_null(monkeypatch, count):
    monkeypatch.setenv("SLIDEWISE_THREADS", count)
    for place in (0, threads.LARGE // 2, threads.LARGE + 4):
        values = np.ones(threads.LARGE + 5)
        values[place] = np.nan
        frame = pd.DataFrame({"t": np.arange(len(values)), "x": values})
        found = sw.rolling(frame, time="t", windows=1, aggs={"n": sw.count("x")})["n_1"]
        assert found[place] == 0 and found.sum() == len(values) - 1


OTHERWISE = {
    "as assumed": lambda t, x, i: None,
    "a tie": lambda t, x, i: t.__setitem__(i, t[i - 1]),
    "late": lambda t, x, i: t.__setitem__(i, t[i - 1] - 4000),
    "the first comes last": lambda t, x, i: t.__setitem__(-1, -5),
    "a null": lambda t, x, i: x.__setitem__(i, np.nan),
}


@pytest.mark.parametrize("otherwise", OTHERWISE)
@pytest.mark.parametrize("place", [1, 4095, 4096, 4097, 20_000, 59_999])
def test_rows_that_are_read_as_they_come(monkeypatch, otherwise, place):
    """Large frames are assumed to be sorted, without ties or nulls, and looked at on the way: whatever turns out otherwise,
    wherever it is, the answers are those of frames that are looked at first."""
    n = 60_000
    t, x = 3 * np.arange(n), np.random.default_rng(7).integers(0, 99, n).astype(float)
    OTHERWISE[otherwise](t, x, place)
    frame = pd.DataFrame({"t": t, "x": x})
    looked: list[int] = []
    arranged = run_module._arranged
    monkeypatch.setattr(run_module, "_arranged", lambda *given: looked.append(1) or arranged(*given))
    frame["yes"] = frame["t"] % 2 == 0
    for in_one_pass, asked in (
        (True, dict(aggs={"a": sw.sum("x")})),
        (False, dict(aggs={"a": sw.max("x")}, algorithm="daba_lite")),
        (False, dict(aggs={"a": sw.sum("x", where="yes")})),
    ):
        call = lambda asked=asked: sw.rolling(frame, time="t", windows=3000, **asked)
        at_first = call()
        looked.clear()
        with monkeypatch.context() as patch:
            patch.setattr(run_module, "LARGE", 0)
            patch.setattr(frames, "LARGE", 0)
            pd.testing.assert_frame_equal(call(), at_first)
        assert bool(looked) == (otherwise != "as assumed" or not in_one_pass)


@pytest.mark.parametrize("window", [sw.time(500), sw.time(500, offset=100)])
@pytest.mark.parametrize("ahead", [10**12, 50_000, -50_000, -(10**12)])
def test_a_wrong_clock_that_another_thread_would_see(monkeypatch, window, ahead):
    """Parts are run from the last to the first: those behind the wrong row run over rows that nobody has looked at. Compiled loops
    look at no bounds: no frame may begin before the one before it, or end so."""
    went_back: list[int] = []
    form = at_hand.form

    def watched(name, op):
        def loop(op, V, carry, X, starts, ends, OUT, OK, lo, hi):
            if starts[0] < carry[0] or ends[0] < carry[2]:
                went_back.append(int(starts[0]))
            form(name, op)(op, V, carry, X, starts, ends, OUT, OK, lo, hi)

        return None if form(name, op) is None else loop

    monkeypatch.setattr(at_hand, "form", watched)
    monkeypatch.setattr(Workers, "each", lambda self, tasks: [task() for task in tasks[::-1]])
    monkeypatch.setattr(sweeps, "BLOCK", 1 << 12)
    monkeypatch.setattr(run_module, "LARGE", 0)
    n = 1 << 18
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.integers(1, 9, n))
    for place in (n // 8, n // 2 - 1, n // 2, n // 2 + 1, n - 3):
        wrong = t.copy()
        wrong[place] += ahead
        table = pa.table({"t": wrong, "x": rng.normal(size=n)})
        asked = dict(time="t", windows={"w": window}, aggs={"max": sw.max("x")})
        with monkeypatch.context() as patch:
            patch.setattr(run_module, "LARGE", n + 1)
            expected = sw.rolling(table, **asked)
        assert sw.rolling(table, **asked).equals(expected)
        assert went_back == []


def test_an_error_of_rows_out_of_order_is_none(monkeypatch):
    """Frames found among rows that are not sorted may hold any rows: what goes wrong in them is tried again in order."""
    monkeypatch.setattr(Workers, "each", lambda self, tasks: [task() for task in tasks[::-1]])
    monkeypatch.setattr(run_module, "LARGE", 0)
    n = 1 << 18
    t = np.arange(n)
    t[n // 2] = 10**9
    table = pa.table({"t": t, "x": np.full(n, 2**60)})
    found = sw.rolling(table, time="t", windows=4, aggs={"s": sw.sum("x")})["s_4"].to_numpy()
    assert found.max() == 2**62 and (found == 2**62).sum() >= n - 10
    with pytest.raises(sw.SlidewiseError, match=r"overflow|int64"):
        sw.rolling(pa.table({"t": np.arange(n), "x": np.full(n, 2**62)}), time="t", windows=4, aggs={"s": sw.sum("x")})


def test_nan_in_columns_of_every_use(monkeypatch):
    """Keys, ties, deltas and values: the same answers whoever looks for NaN; in a time it is an error."""
    rng = np.random.default_rng(3)
    holes = lambda: np.where(rng.random(300) < 0.3, np.nan, rng.integers(0, 4, 300).astype(float))
    frame = pd.DataFrame({"t": rng.integers(0, 99, 300), "k": holes(), "o": holes(), "d": holes(), "x": holes()})
    labels = pd.DataFrame({"t": rng.integers(0, 99, 50), "k": frame["k"][:50]})
    asked = dict(time="t", by="k", order="o", windows={"w": sw.time(20), "d": sw.delta("d", 1)})
    aggs = {"sum": sw.sum("x"), "n": sw.count("x"), "last": sw.last("x"), "o": sw.first("o")}
    calls = [lambda emit=emit: sw.rolling(frame, **asked, aggs=aggs, emit=emit) for emit in ("event", "latest")]
    calls.append(lambda: sw.as_of(labels, frame, time="t", by="k", windows=20, aggs=aggs))
    at_first = [call() for call in calls]
    seen: list[list[str]] = []
    settled = frames.Unlooked.settled
    monkeypatch.setattr(frames, "LARGE", 0)
    monkeypatch.setattr(
        frames.Unlooked, "settled", lambda self, table: seen.append(sorted(self._floats)) or settled(self, table)
    )
    for call, expected in zip(calls, at_first, strict=True):
        pd.testing.assert_frame_equal(call(), expected)
    assert seen == [["x"], ["x"], ["o", "x"]]  # keys, and what is sorted by, are looked at first
    assert expected["n_20"].min() == 0
    with pytest.raises(ValueError, match="'x'"):
        sw.rolling(frame, time="x", windows=1, aggs={"n": sw.count("x")})


def test_how_many_threads(monkeypatch):
    monkeypatch.setenv("SLIDEWISE_THREADS", "7")
    assert threads.thread_count() == 7
    monkeypatch.setenv("SLIDEWISE_THREADS", "many")
    assert threads.thread_count() >= 1
