"""What a timed turn is: as long as was asked for, of whole cycles, and with no clock in it. The clock here is made up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from slidewise.algebra.kernel import twin
from slidewise.algorithms import algorithm, drivers
from slidewise.algorithms.protocol import arrays, capacity_for
from slidewise.bench import timing
from slidewise.bench.papers import bulk_fiba_2023_rounds, bulk_fiba_2023_throughput, trees
from slidewise.bench.papers.rounds import COLLECT, Rounds
from slidewise.bench.papers.slickdeque_2018 import OPERATORS
from slidewise.bench.tree_rounds import UNTIMED, WHOLE


class Made:
    """Rounds that take so many seconds each, and a call that costs something beside them; some calls take longer, by number."""

    def __init__(self, monkeypatch, each: float, call: float = 1e-5, longer: dict[int, float] | None = None):
        self.now, self.each, self.call, self.longer = 0.0, each, call, longer or {}
        self.turns: list[int] = []
        monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: self.now))

    def run(self, rounds: int) -> None:
        self.now += self.call + rounds * self.each + self.longer.get(len(self.turns), 0.0)
        self.turns.append(rounds)


@pytest.mark.parametrize("each", [1e-9, 1e-7, 1e-4, 0.2])
@pytest.mark.parametrize("cycle", [1, 7, 4096])
def test_a_turn_is_as_long_as_asked_and_of_whole_cycles(monkeypatch, each, cycle):
    made = Made(monkeypatch, each)
    rounds = timing.rounds_for(0.05, made.run, cycle)
    assert rounds % cycle == 0
    least = max(1, 0.05 / each)
    assert 0.8 * least <= rounds <= 1.1 * least + cycle


def test_the_best_of_several_turns_and_of_one_where_a_cycle_is_long(monkeypatch):
    made = Made(monkeypatch, 1e-6)
    assert timing.per_round(0.01, made.run, repeats=3, cycle=1000) == pytest.approx(1e-6, rel=0.01)
    assert made.turns[-3:] == [made.turns[-1]] * 3
    made = Made(monkeypatch, 1e-3)
    timing.per_round(0.01, made.run, repeats=3, cycle=1000)
    assert made.turns.count(1000) == 2, "one to warm up, one that counts"


@pytest.mark.parametrize("call", [0, 1, 2, 3, 4], ids="call {} takes long".format)
@pytest.mark.parametrize("each", [1e-9, 1e-7, 1e-4])
def test_a_loop_that_is_compiled_or_held_up_leaves_no_short_turns(monkeypatch, each, call):
    """The first call compiles; any of the probe may meet something else that runs on the machine."""
    made = Made(monkeypatch, each, longer={call: 0.1})
    assert timing.per_round(0.05, made.run) == pytest.approx(each, rel=0.05)
    assert made.turns[-3:] == [made.turns[-1]] * 3
    assert made.turns[-1] * each > 0.05 / 4


def test_turns_that_stay_short_end(monkeypatch):
    """Whatever a clock says: the number of tries is bounded."""
    made = Made(monkeypatch, 1e-9, longer={call: 0.1 for call in range(0, 1000, 2)})
    assert timing.per_round(0.05, made.run) > 0
    assert len(made.turns) < 100


@pytest.mark.parametrize("name", ["two_stacks", "aba", "flatfit", "daba", "flatfat"])
def test_flips_are_in_every_turn(name, monkeypatch):
    made = Rounds(name, COLLECT.typed(), 48, (list(range(100)),))
    made.run(48)
    turns: list[int] = []
    run = Rounds.run

    def noted(self, rounds: int) -> None:
        turns.append(rounds)
        run(self, rounds)

    monkeypatch.setattr(Rounds, "run", noted)
    assert made.nanoseconds(1e-4) > 0
    assert turns[-1] >= 48 and turns[-1] % 48 == 0


def test_in_order_algorithms_run_whole_windows_of_bulks(monkeypatch):
    cycles: dict[tuple[str, int], int] = {}

    class Window:
        def __init__(self, name, *arguments):
            self.name = name

        def rounds_of(self, m, bulk_insert):
            self.m = m
            return self

    monkeypatch.setattr(bulk_fiba_2023_throughput, "Window", Window)
    monkeypatch.setattr(trees, "combines_a_round", lambda run, rounds: 1.0)
    monkeypatch.setattr(
        trees, "rounds_a_second", lambda run, seconds, cycle: cycles.setdefault((run.name, run.m), cycle) and 1.0
    )
    chosen = bulk_fiba_2023_throughput.over_m(None)
    bulk_fiba_2023_throughput.measure(chosen, False, lambda what: None)
    assert {m: cycles["twostacks_lite", m] * m for m in chosen.ms} == dict.fromkeys(chosen.ms, chosen.n)
    assert cycles["b_fiba4", 1] == 1, "a tree does no window's work at once"


@pytest.mark.parametrize("name", ["two_stacks_lite", "amta"])
def test_the_clock_is_read_only_where_rounds_are_timed(name, monkeypatch):
    """As over trees: a reading costs more than a round of these."""
    readings: list[int] = []
    loops = twin(bulk_fiba_2023_rounds)
    monkeypatch.setitem(vars(loops), "clock", SimpleNamespace(ticks=lambda: readings.append(0) or len(readings)))
    monkeypatch.setitem(vars(loops), "drivers", twin(drivers))
    op = OPERATORS["sum"]().typed((np.dtype(np.int64),)).as_object()
    alg, X, OUT, OK = algorithm(name), (list(range(8)),), [None], [0]
    H, W, V, mask, scratch = arrays(alg, op, capacity_for(8))
    steps = twin(drivers)
    steps.start(alg, op, H, W, V, mask)
    steps.step_insert_many(alg, op, H, W, V, mask, scratch, X, 0, 8)
    loop = loops.bulk_queue_rounds if name == "amta" else loops.queue_rounds
    loop(alg, op, H, W, V, mask, scratch, X, 7, 4, OUT, OK, WHOLE, UNTIMED, 3)
    assert not readings
    assert OUT[0] == sum(X[0][(2 + j) & 7] for j in range(4)) + sum(X[0][(1 + j) & 7] for j in range(4))
    least = np.full(3, 2**62)
    loop(alg, op, H, W, V, mask, scratch, X, 7, 4, OUT, OK, WHOLE, least, 3)
    assert len(readings) == 4 * 3 and (least == 3).all()
