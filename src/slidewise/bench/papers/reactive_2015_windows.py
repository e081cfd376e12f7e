"""reactive-aggregator-2015, section 6, windows of other kinds: tumbling (Figure 8), growing and shrinking (Figure 9);
and memory (Figure 12). RA is `flatfat`, ISS is `recalc` (see reactive_2015.py).
"""

import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise

import slidewise.operators as library
from slidewise.bench.papers.curves import span
from slidewise.bench.papers.firings import Firings, counted
from slidewise.bench.papers.reactive_2015 import FUNCTIONS, NAMES, STANDS_IN, columns
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values
from slidewise.bench.timing import best_of, seconds


@dataclass(frozen=True)
class Sizes:
    powers: tuple[int, ...]
    seconds: float
    functions: tuple[str, ...] = ("max", "std")
    counted: int = 10


# ---- Figure 8: tumbling windows --------------------------------------------------------------------------------------

FULL_8, QUICK_8 = Sizes(tuple(range(0, 21, 2)), 0.05), Sizes((0, 4, 8, 12, 16), 0.005)
TINY = Sizes((1, 3, 5), 0.0005, ("collect",), 4)


def measure_8(sizes: Sizes, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in sizes.functions:
        op, X = FUNCTIONS[name].typed(), columns(name)
        for scheme in ("recalc", "flatfat"):
            for power in sizes.powers:
                n = 2**power
                progress(f"{name}, {scheme}, tumbling windows of {n:,}")
                ns = Firings(scheme, op, n, X).nanoseconds(n, sizes.seconds)
                count = counted(scheme, library.max(), n, n, 4) if power <= sizes.counted else None
                rows.append({"function": name, "scheme": scheme, "window": n, "us": ns / 1e3, "combines": count})
    return rows


def views_8(rows: list[Row]) -> list[View]:
    found = [
        View(f"{f}: µs a firing", "scheme", "window", "us", (("function", f),), "min") for f in values(rows, "function")
    ]
    first = (("function", rows[0]["function"]),)
    return [*found, View("combines a firing", "scheme", "window", "combines", first, "min", "{:.0f}".format)]


def claims_8(rows: list[Row]) -> list[Claim]:
    us = {(r["function"], r["scheme"], r["window"]): r["us"] for r in rows}
    ratios = {(f, w): us[f, "flatfat", w] / us[f, s, w] for f, s, w in us if s == "recalc" and w >= 16}
    count = {(r["scheme"], r["window"]): r["combines"] for r in rows if r["combines"] is not None}
    extra = [count["flatfat", w] - count["recalc", w] for s, w in count if s == "recalc"]
    whatever = [
        max(us["max", s, w], us["std", s, w]) / min(us["max", s, w], us["std", s, w])
        for f, s, w in us
        if f == "max" and w >= 16 and ("std", s, w) in us
    ]
    told = f"RA takes {span(ratios.values())} times as long, in windows of 16 and more" if ratios else ""
    return [
        claim(
            "where nothing can be reused, RA performs essentially no worse than recalculation",
            told,
            [x <= 1.25 for x in ratios.values()],
            "A leaf of the tree carries a count and a note for the update, which a bare loop does not; in the paper the "
            "cost of the streaming system hides the difference.",
        ),
        claim(
            "counted: both need the same n - 1 combines",
            f"RA needs {min(extra):.0f} to {max(extra):.0f} more" if extra else "",
            [x == 0 for x in extra],
            "Counted with the library's algorithms as they are.",
        ),
        claim(
            "the cost of a firing is about the same whatever the function",
            f"Max and StdDev are {span(whatever)} times apart" if whatever else "",
            [x < 1.5 for x in whatever],
            "Nothing here but the function itself takes time: the moments of StdDev are several times the work of a comparison.",
        ),
    ]


def plots_8(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f,
            "window",
            "us",
            "scheme",
            (("function", f),),
            x_label="window size",
            y_label="µs a firing",
            x_log=2,
            y_log=10,
            names=NAMES,
        )
        for f in values(rows, "function")
    ]
    return [Plot(panels, "Figure 8: tumbling windows")]


FIG_8 = Suite(
    name="reactive-aggregator-2015-fig-8",
    source="reactive-aggregator-2015 Figure 8",
    summary="tumbling windows, where nothing can be reused: recalculation against RA",
    run=lambda quick, progress: measure_8(QUICK_8 if quick else FULL_8, progress),
    tiny=lambda progress: measure_8(TINY, progress),
    views=views_8,
    plots=plots_8,
    claims=claims_8,
    stands_in=STANDS_IN,
)


# ---- Figure 9: windows that grow and shrink --------------------------------------------------------------------------

FULL_9, QUICK_9 = Sizes(tuple(range(3, 21)), 0.05), Sizes((4, 8, 12, 16), 0.01)
TINY_9 = Sizes((3, 5), 0.0005, ("collect",))


def oscillate(window: Firings, n: int, turns: int = 1) -> None:
    """From n events in a capacity of 2 n: half leave, the capacity halves; as many come, one by one, and it doubles again."""
    for _ in range(turns):
        window.fire(n // 2, 0, 1)
        window.resize(n)
        window.fire(0, 1, n // 2)
        window.resize(2 * n)


def measure_9(sizes: Sizes, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in sizes.functions:
        op, X = FUNCTIONS[name].typed(), columns(name)
        for power in sizes.powers:
            n = 2**power
            progress(f"{name}, capacity {n:,} and back")
            fixed = Firings("flatfat", op, n, X).nanoseconds(1, sizes.seconds)
            window = Firings("flatfat", op, n, X)
            window.resize(2 * n)
            oscillate(window, n)
            probe = best_of(2, lambda window=window, n=n: oscillate(window, n))
            turns = max(1, int(sizes.seconds / probe))
            spent = best_of(3, lambda window=window, n=n, turns=turns: oscillate(window, n, turns)) / turns
            grown = Firings("flatfat", op, n, X)
            resize = seconds(lambda grown=grown, n=n: grown.resize(2 * n))
            common = {"function": name, "window": n, "resize_us": resize * 1e6}
            rows.append({**common, "capacity": "fixed", "us": fixed / 1e3})
            rows.append({**common, "capacity": "oscillating", "us": spent / (n // 2) * 1e6})
    return rows


def views_9(rows: list[Row]) -> list[View]:
    found = [
        View(f"{f}: µs an event", "capacity", "window", "us", (("function", f),)) for f in values(rows, "function")
    ]
    first = (("capacity", "fixed"),)
    return [*found, View("µs for doubling the capacity", "function", "window", "resize_us", first)]


PAPER_RESIZE = 9_400 / 2**20
"""Microseconds for each event when the capacity doubles, in the paper."""


def claims_9(rows: list[Row]) -> list[Claim]:
    us = {(r["function"], r["capacity"], r["window"]): r["us"] for r in rows}
    every = {(f, w): us[f, "oscillating", w] / us[f, "fixed", w] for f, c, w in us if c == "fixed"}
    ratios = {key: x for key, x in every.items() if key[1] >= 256}
    below = [x for key, x in every.items() if key not in ratios]
    resize = {(r["function"], r["window"]): r["resize_us"] for r in rows}
    windows = sorted(values(rows, "window"))
    last, middle = windows[-1], windows[len(windows) // 2]
    names = values(rows, "function")
    each = {f: resize[f, last] / last for f in names}
    linear = [0.25 < each[f] / (resize[f, middle] / middle) < 4 for f in names]
    return [
        claim(
            "the cost of resizing is amortised: oscillating windows are even faster, having fewer events in them",
            f"an event takes {span(ratios.values())} times as long as with a fixed capacity, in windows of 256 and more"
            + (f"; below, {span(below)} times, which is not judged" if below else "")
            if ratios
            else "",
            [x <= 1.0 for x in ratios.values()],
            "Resizing allocates new arrays, whose pages the system hands out zeroed at the first touch; at small windows the calls "
            "from Python around a resize count too, and below 256 hardly anything else does.",
        ),
        claim(
            "doubling is linear but rare: 4.2 µs from 256 to 512 events, 9.4 ms from 1 M to 2 M (StdDev)",
            ", ".join(
                f"{f}: " + ", ".join(f"{resize[f, n]:,.0f} µs from {n:,}" for n in (256, last) if (f, n) in resize) for f in names
            ),
            linear + [x <= 2 * PAPER_RESIZE for x in each.values()],
            reasons(
                (all(linear) and max(each.values()) > 2 * PAPER_RESIZE, "Linear it is, but an event costs more than in the paper:"),
                (max(each.values()) > 2 * PAPER_RESIZE, "the new arrays also hold counts and notes for each node, on fresh pages."),
                (not all(linear), "Small arrays are handed out again by the allocator, large ones are fresh pages."),
            ),
        ),
    ]  # fmt: skip


def plots_9(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(f, "window", "us", "capacity", (("function", f),), x_label="n", y_label="µs an event", x_log=2)
        for f in values(rows, "function")
    ]
    return [Plot(panels, "Figure 9: capacity n, or between n and 2 n")]


FIG_9 = Suite(
    name="reactive-aggregator-2015-fig-9",
    source="reactive-aggregator-2015 Figure 9",
    summary="a capacity that stays, and one that oscillates between n and 2 n",
    run=lambda quick, progress: measure_9(QUICK_9 if quick else FULL_9, progress),
    tiny=lambda progress: measure_9(TINY_9, progress),
    views=views_9,
    plots=plots_9,
    claims=claims_9,
)


# ---- Figure 12: memory -----------------------------------------------------------------------------------------------

CHILD = """
import sys
from slidewise.bench.papers.reactive_2015 import FUNCTIONS, columns
from slidewise.bench.papers.firings import Firings
window = Firings(sys.argv[1], FUNCTIONS[sys.argv[2]].typed(), int(sys.argv[3]), columns(sys.argv[2]))
window.fire(1, 1, 1000)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def measure_12(windows: tuple[int, ...], progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for scheme in ("recalc", "flatfat"):

        def child(window: int, scheme: str = scheme) -> subprocess.CompletedProcess:
            return subprocess.run([sys.executable, "-c", CHILD, scheme, "max", str(window)], capture_output=True, text=True)

        child(windows[0])  # compiled now, and filed: a compiler takes memory too
        for window in windows:
            if scheme == "recalc" and window > 4096:  # as in the paper: beyond, it is very slow
                continue
            progress(f"{scheme}, window {window:,}, in a process of its own")
            told = child(window)
            found = float(told.stdout) / 1e3 if told.returncode == 0 else None
            rows.append({"function": "max", "scheme": scheme, "window": window, "megabytes": found})
    return rows


def claims_12(rows: list[Row]) -> list[Claim]:
    mb = {(r["scheme"], r["window"]): r["megabytes"] for r in rows if r["megabytes"] is not None}
    small = [mb["flatfat", w] / mb["recalc", w] for s, w in mb if s == "flatfat" and w <= 4096 and ("recalc", w) in mb]
    windows = sorted(w for s, w in mb if s == "flatfat")
    grown = (mb["flatfat", windows[-1]] - mb["flatfat", windows[0]]) * 1e6 / windows[-1] if len(windows) > 1 else None
    minor = [mb["flatfat", w] / mb["flatfat", windows[0]] for w in windows if w <= 4096]
    large = [w for w in windows if w >= 2**16]
    slopes = [(mb["flatfat", b] - mb["flatfat", a]) * 1e6 / (b - a) for a, b in pairwise(large)]
    return [
        claim(
            "up to windows of 4 K the size of the window is minor against the process itself",
            f"RA's process takes {min(small):.2f} to {max(small):.2f} times the memory of ISS's, and {max(minor):.2f} times that "
            f"of a window of {windows[0]:,}" if small else "",
            [0.9 < x < 1.1 for x in small + minor],
            "The process is Python's with a compiler in it: what it holds beside the window moves by some megabytes.",
        ),
        claim(
            "beyond, RA takes space linear in the window",
            f"{grown:.0f} bytes an event from {windows[0]:,} to {windows[-1]:,}"
            + (f"; between windows of 2^16 and more {min(slopes):.0f} to {max(slopes):.0f}" if slopes else "")
            if grown
            else "",
            [0 < min(slopes), max(slopes) < 1.5 * min(slopes)] if len(slopes) > 1 else [],
            "What the process holds beside the window moves by some megabytes, which shows between the smaller ones.",
        ),
    ]  # fmt: skip


def plots_12(rows: list[Row]) -> list[Plot]:
    panel = Panel(
        "Max", "window", "megabytes", "scheme", x_label="window size", y_label="resident MB", x_log=2, names=NAMES
    )
    return [Plot([panel], "Figure 12: memory of the whole process")]


FIG_12 = Suite(
    name="reactive-aggregator-2015-fig-12",
    source="reactive-aggregator-2015 Figure 12",
    summary="memory of a process that keeps a window: recalculation against RA",
    run=lambda quick, progress: measure_12(
        (16, 4096, 2**16, 2**18, 2**20) if quick else (4, 64, 1024, 4096, 2**16, 2**18, 2**20, 2**22), progress
    ),
    tiny=lambda progress: measure_12((16,), progress),
    views=lambda rows: [View("resident MB", "scheme", "window", "megabytes", form="{:.1f}".format)],
    plots=plots_12,
    claims=claims_12,
    stands_in=STANDS_IN + " The process is Python's with a compiler in it, in place of a runtime for SPL.",
)
