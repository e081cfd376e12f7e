"""Best of several: on a machine with other work to do, the least time is the one that says something about the code."""

import math
import time
from collections.abc import Callable


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def best_of(repeats: int, call: Callable[[], object]) -> float:
    """The least time of that many calls."""
    return min(seconds(call) for _ in range(repeats))


MOST = 2**28
"""Rounds that a turn may have, where they cost nothing."""

TRIES = 5
"""How often rounds are chosen, while turns come out short."""


def rounds_for(wanted: float, run: Callable[[int], object], cycle: int = 1) -> int:
    """How many rounds take about that many seconds: whole cycles, and at least one.

    An algorithm that does a window's work at once now and then has a cycle as long as the window: a turn that is shorter may
    miss it, and of several turns the best surely would. The probe grows until it takes a tenth of the turn, so that what
    a call costs beside its rounds is no part of the guess. The first call is not timed: a loop is compiled or loaded in it."""
    run(1)
    rounds, spent = 1, seconds(lambda: run(1))
    while spent < wanted / 10 and rounds < MOST:
        rounds *= max(2, min(16, int(wanted / 10 / max(spent, 1e-9))))
        spent = seconds(lambda count=rounds: run(count))
    return max(1, math.ceil(min(MOST, rounds * wanted / spent) / cycle)) * cycle


def per_round(wanted: float, run: Callable[[int], object], repeats: int = 3, cycle: int = 1) -> float:
    """Seconds of one round: the best of several turns of about that many seconds, each of whole cycles; of one turn alone
    where a cycle takes twenty times as long as was asked for.

    Something else that ran during the probe makes rounds seem long, and a turn of few rounds would then say what a call costs:
    a first turn that is much too short has its rounds chosen again."""
    for _ in range(TRIES):
        rounds = rounds_for(wanted, run, cycle)
        run(min(rounds, max(cycle, rounds // 8)))  # warm
        first = seconds(lambda count=rounds: run(count))
        if first >= wanted / 4 or rounds >= MOST:
            break
    again = repeats - 1 if first < 20 * wanted or rounds > cycle else 0
    return min([first, *(seconds(lambda: run(rounds)) for _ in range(again))]) / rounds
