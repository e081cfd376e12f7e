"""Memory of a FiBA window: bytes an entry, growth slack apart, and the largest window that a machine of this size should hold.

Sums of int64, n entries, as rounds leave them (a window of rounds after the fill, so that every node is one that the rounds made):

    in order        d = 0, evict the oldest, insert the youngest
    out of order    d = 16 and 1,024 places from the young end
    random order    n single inserts, no order at all

`bytes_entry` counts the arena up to the last unit ever used: nodes that are free now are part of it. 16 bytes are the time and
the value. The bounds are for sums in one word: what a window has while the magnitudes of its values add up to less than 2^63
(algebra/narrow.py), and what the C++ reference has, which wraps beyond. There, a window goes over to two words rather than
give a wrong sum; what that takes is shown beside, without a bound.

The large window holds 200 million entries where there is memory for it, and as many as fit in half of what there is elsewhere.
"""

import ctypes
import gc
import os
from pathlib import Path

import numpy as np

import slidewise.operators as library
from slidewise.algebra.narrow import fitting
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms.fiba_forest import Forest, default_arity
from slidewise.bench.suite import Panel, Plot, Progress, Row, Suite, View
from slidewise.bench.timing import seconds
from slidewise.bench.tree_rounds import BATCH, Rounds

ONE, TWO = "one word", "two words"
WIDE = "no bound: for values whose sum may not fit in an int64"
ONES = (np.ones(BATCH, np.int64),)

CASES: dict[str, tuple[int | None, int]] = {
    "in order": (0, 24),
    "distance 16": (16, 40),
    "distance 1024": (1024, 40),
    "random order": (None, 40),
}
"""Name -> distance from the young end (None: at random), and the most bytes an entry may take with sums in one word."""

LARGE = "large window"
LARGE_ENTRIES = 200_000_000
LARGE_DISTANCE = 16
MOST_BYTES = 48
"""An entry of the large window for certain takes no more."""


def _sum(state: str, n: int) -> TypedOperator:
    """The sum as a window keeps it that holds n ones, or as one that holds large values."""
    op = library.sum().typed((np.dtype(np.int64),))
    return fitting(op, ONES, n) if state == ONE else op


def _row(case: str, state: str, forest: Forest, d: int | None, bound: int | None, rate: float | None) -> Row:
    n = forest.size()
    return {
        "case": case,
        "state": state,
        "min_arity": forest.shape.min_arity,
        "n": n,
        "d": -1 if d is None else d,
        "bytes_entry": forest.bytes_used / n,
        "bound": bound,
        "height": forest.height(),
        "throughput": rate,
        "resident_gb": None,
    }


def sliding(op: TypedOperator, X: tuple, n: int, d: int) -> tuple[Forest, float]:
    """A window of n entries, n rounds later; and rounds a second."""
    tree = Rounds(op, default_arity(op), True, X, n, d)
    return tree.forest, n / seconds(lambda: tree.run(n))


def at_random(op: TypedOperator, X: tuple, n: int) -> tuple[Forest, float]:
    """A window filled one by one in random order; and inserts a second."""
    forest, OUT, OK = Forest(op), op.result.alloc(BATCH), np.zeros(BATCH, np.uint8)
    times, nothing = np.random.default_rng(40).permutation(n), np.empty(0, np.uint8)

    def fill():
        for done in range(0, n, BATCH):
            T = times[done : done + BATCH]
            forest.run("run_rows", 0, T, X, nothing, n, OUT, OK)

    Forest(op).run("run_rows", 0, times[:1], X, nothing, n, OUT, OK)  # compiled now
    return forest, n / seconds(fill)


CGROUP = Path("/sys/fs/cgroup")


def memory_bytes() -> int:
    """Of the machine; where it does not tell, little."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if "SC_PHYS_PAGES" in os.sysconf_names else 2**32


def available_bytes() -> int:
    """What processes can still have of it without swapping, in a container what it leaves them; where nothing tells, all."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        free = memory_bytes()
    try:
        most, used = ((CGROUP / f"memory.{what}").read_text() for what in ("max", "current"))
        return max(0, min(free, int(most) - int(used)))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free


def resident_bytes() -> int | None:
    """Memory that this process has now; None where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def give_back() -> None:
    """Free memory goes back to the system, where the C library can: what is allocated next then counts whole."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        pass


def large(n: int, progress: Progress) -> Row:
    """A window as large as memory allows, filled, slid by a twentieth of itself, queried, and held against the sum it must have."""
    op = _sum(ONE, n)
    progress(f"{LARGE}, {n} entries")
    give_back()
    before = resident_bytes()
    tree = Rounds(op, default_arity(op), True, ONES, n, LARGE_DISTANCE)
    rounds = max(1, n // 20)
    spent = seconds(lambda: tree.run(rounds))
    tree.forest.query(0, tree.OUT, tree.OK)
    if tree.forest.size() != n or int(tree.OUT[0][0]) != n:
        raise AssertionError(f"a window of {n} ones sums to {tree.OUT[0][0]}, and has {tree.forest.size()} entries")
    found = _row(LARGE, ONE, tree.forest, LARGE_DISTANCE, None, rounds / spent)
    after = resident_bytes()
    return found | {"resident_gb": None if before is None or after is None else (after - before) / 1e9}


def measure(n: int, entries: int, progress: Progress) -> list[Row]:
    rows = []
    for state in (ONE, TWO):
        op = _sum(state, n)
        for case, (d, bound) in CASES.items():
            progress(f"{case}, {state}, {n} entries")
            d = None if d is None else min(d, n // 4)
            forest, rate = at_random(op, ONES, n) if d is None else sliding(op, ONES, n, d)
            rows.append(_row(case, state, forest, d, bound if state == ONE else None, rate))
    return [*rows, large(min(entries, memory_bytes() // 2 // MOST_BYTES), progress)]


def run(quick: bool, progress: Progress) -> list[Row]:
    return measure(2**18, 2**21, progress) if quick else measure(2**22, LARGE_ENTRIES, progress)


def tiny(progress: Progress) -> list[Row]:
    return measure(2**12, 2**13, progress)


def views(rows: list[Row]) -> list[View]:
    return [
        View("bytes an entry", "state", "case", "bytes_entry", (), "", "{:.1f}".format),
        View(
            "million rounds (inserts) a second", "state", "case", "throughput", (), "", lambda rate: f"{rate / 1e6:.3g}"
        ),
    ]


def plots(rows: list[Row]) -> list[Plot]:
    return [
        Plot(
            [Panel("bytes an entry", "case", "bytes_entry", "state", (), "bars", "", "bytes")],
            "memory of a FiBA window",
        )
    ]


def verdicts(rows: list[Row]) -> list[str]:
    found = []
    for row in rows:
        if row["case"] != LARGE:
            took, bound = row["bytes_entry"], row["bound"]
            judged = WIDE if bound is None else f"{'holds' if took <= bound else 'MISSED'}: at most {bound}"
            found.append(f"{row['case']}, sums in {row['state']}, {row['n']} entries: {took:.1f} bytes an entry ({judged})")
    for row in rows:
        if row["case"] == LARGE:
            memory = "" if row["resident_gb"] is None else f"{row['resident_gb']:.2f} GB in memory, "
            found.append(
                f"a window of {row['n']:,} entries: {row['bytes_entry']:.1f} bytes an entry, {memory}"
                f"{row['throughput'] / 1e6:.3g} million rounds a second"
            )
    return found


SUITE = Suite(
    name="memory",
    source="fiba-2019 section 5, bulk-fiba-2023 section 7 (the C++ reference takes 64 to 70 bytes an entry)",
    summary="bytes an entry of a FiBA window, and a window of 200 million entries",
    run=run,
    views=views,
    verdicts=verdicts,
    plots=plots,
    tiny=tiny,
)
