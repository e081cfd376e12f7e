"""reactive-aggregator-2015, section 6: coarse-grained sliding (Figure 10), and RA against Arasu and Widom's B-Int (Figure 11,
Table 4). RA is `flatfat`, AW is `b_int`.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np

import slidewise.operators as library
from slidewise.bench.papers.curves import is_logarithmic, log_fit, span
from slidewise.bench.papers.firings import Firings, counted
from slidewise.bench.papers.reactive_2015 import FUNCTIONS, NAMES, columns
from slidewise.bench.papers.reactive_2015_windows import TINY, Sizes
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, reasons, values

# ---- Figure 10: coarse-grained sliding; Figure 11: against B-Int ------------------------------------------------------

SLIDES = ("1", "4", "64", "n/16", "n/4", "n")
"""m as a number, or as a part of n."""


def slide_of(word: str, n: int) -> int | None:
    """m for a window of n; None where there is none."""
    m = {"n": n, "n/4": n // 4, "n/16": n // 16}.get(word)
    m = int(word) if m is None else m
    return m if 1 <= m <= n else None


FULL_10 = Sizes(tuple(range(23)), 0.03, ("std",), 8)
QUICK_10 = Sizes((0, 4, 8, 12, 16), 0.005, ("std",), 6)
FULL_11 = Sizes(tuple(range(0, 23, 2)), 0.03, ("max",), 8)
QUICK_11 = Sizes((2, 4, 8, 12, 16), 0.005, ("max",), 6)


def measure_slides(schemes: tuple[str, ...], words: tuple[str, ...], sizes: Sizes, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    name = sizes.functions[0]
    op, X = FUNCTIONS[name].typed(), columns(name)
    for scheme in schemes:
        for power in sizes.powers:
            n = 2**power
            window = Firings(scheme, op, n, X)
            for word in words:
                m = slide_of(word, n)
                if m is None:
                    continue
                progress(f"{name}, {scheme}, window {n:,}, slide {m:,}")
                ns = window.nanoseconds(m, sizes.seconds) / m
                count = counted(scheme, library.max(), n, m, 8) / m if power <= sizes.counted else None
                told = {"slide": m, "us": ns / 1e3, "combines": count}
                rows.append({"function": name, "scheme": scheme, "m": word, "window": n, **told})
    return sorted(rows, key=lambda row: (schemes.index(row["scheme"]), words.index(row["m"]), row["window"]))


def views_slides(rows: list[Row]) -> list[View]:
    found = []
    for scheme in values(rows, "scheme"):
        only = (("scheme", scheme),)
        found.append(View(f"{NAMES[scheme]}: µs an event", "m", "window", "us", only))
        found.append(View(f"{NAMES[scheme]}: combines an event", "m", "window", "combines", only, form="{:.2f}".format))
    return found


def claims_10(rows: list[Row]) -> list[Claim]:
    def line(word: str, least: int) -> list[Row]:
        return [r for r in rows if r["m"] == word and r["window"] >= least]

    fits, exact, timed, counted_straight = {}, {}, [], []
    for m in ("1", "4", "64"):
        mine = line(m, 1)
        if len(mine) > 2:
            xs, ys = [r["window"] for r in mine], [r["us"] for r in mine]
            fits[m] = log_fit(xs, ys)
            timed.append(is_logarithmic(xs, ys))
        some = [r for r in mine if r["combines"] is not None]
        if len(some) > 2:
            xs, ys = [r["window"] for r in some], [r["combines"] for r in some]
            exact[m] = log_fit(xs, ys)
            counted_straight.append(is_logarithmic(xs, ys))
    flat, falls, at_last = {}, {}, []
    for m in ("n/16", "n/4", "n"):
        us = [r["us"] for r in line(m, 2**8)]
        if len(us) > 1:
            flat[m] = max(us) / min(us)
            at_last.append(us[-1] > 0.9 * max(us))
        counts = [r["combines"] for r in line(m, 16) if r["combines"] is not None]
        if m != "n" and len(counts) > 1:
            falls[m] = counts[0] / counts[-1]
    counted_ = [r for r in rows if r["combines"] is not None and r["window"] > 1]
    within = [r["combines"] * r["slide"] <= _theorem(r["window"], r["slide"]) for r in counted_]
    return [
        claim(
            "for constant m the cost of an event is logarithmic in n: straight lines",
            ", ".join(f"m = {m}: R² {r2:.2f}" for m, (_, _, r2) in fits.items())
            + "".join(f"; counted, m = {m}: R² {r2:.2f}" for m, (_, _, r2) in exact.items()),
            timed + counted_straight,
            reasons(
                (all(counted_straight), "Counted they are straight."),
                (not all(timed), "Of the time for m = 64 only log(n / 64) grows, a small part of a cost that is mostly constant, "
                 "and times of large trees are those of memory."),
                (not all(counted_straight), "For m = 64 few windows are small enough to be counted."),
            ),
        ),
        claim(
            "for m a fraction of n it is constant, for windows large enough",
            ", ".join(f"m = {m}: greatest over least {x:.2f} from 256 on" for m, x in flat.items()),
            [x <= 1.6 for x in flat.values()],
            reasons(
                (any(at_last), "At the largest windows the tree leaves the caches."),
                (not all(at_last), "Where a smaller window is the slowest, an event takes some nanoseconds, and what is in the "
                 "caches moves it."),
            ),
        ),
        claim(
            "on small windows it falls: the walk up the tree, about log n a firing, is shared by more events as m grows",
            "counted, " + ", ".join(f"m = {m}: {x:.1f} times fewer combines an event at the largest" for m, x in falls.items())
            if falls
            else "",
            [x > 1.1 for x in falls.values()],
            "Counted with the library's algorithm as it is.",
        ),
        claim(
            "counted: O(m + m log(n / m)) combines a firing",
            f"{sum(within)} of {len(within)} sizes within 2 m (1 + ceil(log2(n / 2 m))) + 2 log2 n",
            within,
            "Counted with the library's algorithm as it is.",
        ),
    ]  # fmt: skip


def _theorem(n: int, m: int) -> float:
    """Theorem 4.2 for m events that leave and m that come: at most min(n, 2 m) leaves change; and the look-up where inverted."""
    changes = min(n, 2 * m)
    return changes * (1 + math.ceil(math.log2(n / changes))) + 2 * math.log2(n)


def plots_10(rows: list[Row]) -> list[Plot]:
    common: dict[str, Any] = {
        "x": "window",
        "line": "m",
        "x_label": "window size n",
        "x_log": 2,
        "names": {m: f"m = {m}" for m in SLIDES},
    }
    return [
        Plot(
            [
                Panel("time", y="us", y_label="µs an event", **common),
                Panel("combines (counted)", y="combines", y_label="combines an event", **common),
            ],
            "Figure 10: coarse-grained sliding by m events (StdDev)",
        )
    ]


FIG_10 = Suite(
    name="reactive-aggregator-2015-fig-10",
    source="reactive-aggregator-2015 Figure 10",
    summary="coarse-grained sliding: the cost of an event when m leave and m come between firings",
    run=lambda quick, progress: measure_slides(("flatfat",), SLIDES, QUICK_10 if quick else FULL_10, progress),
    tiny=lambda progress: measure_slides(("flatfat",), SLIDES, TINY, progress),
    views=views_slides,
    plots=plots_10,
    claims=claims_10,
)


def claims_11(rows: list[Row]) -> list[Claim]:
    us = {(r["scheme"], r["m"], r["window"]): r["us"] for r in rows}
    ratios = [us["b_int", m, w] / us["flatfat", m, w] for s, m, w in us if s == "flatfat" and w >= 4]
    least = [us["b_int", "1", w] / us["flatfat", "1", w] for s, m, w in us if (s, m) == ("flatfat", "1") and w >= 4]
    counts = {(r["scheme"], r["m"], r["window"]): r["combines"] for r in rows if r["combines"]}
    fewer = [counts["b_int", *key] / c for (s, *key), c in counts.items() if s == "flatfat" and ("b_int", *key) in counts]
    grown = [(s, m) for s, m in dict.fromkeys((s, m) for s, m, _ in us) if m == "1"]
    lines = {s: ([w for t, m, w in us if (t, m) == (s, "1")], [us[k] for k in us if k[:2] == (s, "1")]) for s, _ in grown}
    fits = {s: log_fit(*line) for s, line in lines.items()}
    return [
        claim(
            "both have the same complexity: the cost of an event is logarithmic",
            ", ".join(f"{NAMES[s]}: R² {r2:.2f}" for s, (_, _, r2) in fits.items()),
            [is_logarithmic(*line, 0.8) for line in lines.values()],
            "B-Int writes the intervals that end at a position when it comes, amortised O(1), and only the look-up is logarithmic; "
            "times of large trees are those of memory.",
        ),
        claim(
            "RA is faster by a constant factor",
            f"AW takes {span(ratios)} times as long; for m = 1 {span(least)}"
            + (f"; counted, {span(fewer)} times RA's combines" if fewer else ""),
            [x > 1 for x in ratios] + ([max(least) < 2 * min(least)] if least else []),
            reasons(
                (fewer and max(fewer) <= 1, "Counted, an event never takes RA fewer combines: it has a path to update, and a "
                 "look-up where the ring is inverted."),
                (True, "AW is one flat array here too, writes its intervals as events come, amortised O(1), and only looks up."),
            ),
        ),
    ]  # fmt: skip


def plots_11(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f"m = {m}",
            "window",
            "us",
            "scheme",
            (("m", m),),
            x_label="window size n",
            y_label="µs an event",
            x_log=2,
            names=NAMES,
        )
        for m in values(rows, "m")
    ]
    count = Panel(
        "combines, m = 1 (counted)", "window", "combines", "scheme", (("m", "1"),), x_label="window size n",
        y_label="combines an event", x_log=2, names=NAMES,
    )  # fmt: skip
    return [Plot([*panels, count], "Figure 11: RA against Arasu and Widom (Max)", across=2)]


FIG_11 = Suite(
    name="reactive-aggregator-2015-fig-11",
    source="reactive-aggregator-2015 Figure 11",
    summary="RA against Arasu and Widom's base intervals, Max, sliding by m",
    run=lambda quick, progress: measure_slides(
        ("flatfat", "b_int"), ("1", "4", "64"), QUICK_11 if quick else FULL_11, progress
    ),
    tiny=lambda progress: measure_slides(("flatfat", "b_int"), ("1", "4"), TINY, progress),
    views=views_slides,
    plots=plots_11,
    claims=claims_11,
)


# ---- Table 4 ---------------------------------------------------------------------------------------------------------

FIVE = ("sum", "max", "mean", "min_count", "std(ddof=0)")
FULL_T4 = Sizes((3, 13, 23), 0.05, FIVE)
QUICK_T4 = Sizes((3, 13), 0.005, ("sum", "max"))
TINY_T4 = Sizes((3, 5), 0.0005, ("collect",))


def measure_table_4(sizes: Sizes, progress: Progress) -> list[Row]:
    rows: list[Row] = []
    for name in sizes.functions:
        op, X = FUNCTIONS[name].typed(), columns(name)
        for power in sizes.powers:
            progress(f"{name}, window 2^{power}")
            times = {s: Firings(s, op, 2**power, X).nanoseconds(1, sizes.seconds, 5) for s in ("flatfat", "b_int")}
            told = {"ra_ns": times["flatfat"], "aw_ns": times["b_int"], "aw_over_ra": times["b_int"] / times["flatfat"]}
            rows.append({"function": name, "window": 2**power, **told})
    return rows


def claims_table_4(rows: list[Row]) -> list[Claim]:
    ratios = [r["aw_over_ra"] for r in rows]
    by = {w: [r["aw_over_ra"] for r in rows if r["window"] == w] for w in values(rows, "window")}
    means = [float(np.mean(x)) for x in by.values()]
    return [
        claim(
            "AW takes 1.02 to 1.39 times as long as RA",
            f"{min(ratios):.2f} to {max(ratios):.2f} times",
            [1 < x < 1.25 * 1.39 for x in ratios],
            "RA has a path to update for an event, and a look-up where the ring is inverted. AW, here one flat array too, writes "
            "its intervals as events come, amortised O(1), and only looks up (Figure 11 counts the combines).",
        ),
        claim(
            "for the same window the choice of the function makes little difference to the ratio",
            ", ".join(f"{w:,}: {min(x):.2f} to {max(x):.2f}" for w, x in by.items()),
            [max(x) < 1.25 * min(x) for x in by.values() if len(x) > 1],
            "States of one, two or three words are read and written at costs of their own, with nothing around to hide them.",
        ),
        claim(
            "the gap widens with the window: 1.04, 1.24, 1.37 in the mean for 8, 8 K, 8 M",
            ", ".join(f"{w:,}: {x:.2f}" for w, x in zip(by, means)),
            [b > max(a, 1) for a, b in pairwise(means)],
            reasons(
                (max(means) <= 1, "There is no such gap here: AW is the faster of the two."),
                (True, "What leaves the caches first decides at 8 M, and the structures are of the same size here."),
            ),
        ),
    ]


def plots_table_4(rows: list[Row]) -> list[Plot]:
    panel = Panel(
        "above 1 RA is faster",
        "function",
        "aw_over_ra",
        "window",
        kind="bars",
        y_label="time of AW over time of RA",
        base=1.0,
        names={window: f"n = {window:,}" for window in values(rows, "window")},
    )
    return [Plot([panel], "Table 4")]


TABLE_4 = Suite(
    name="reactive-aggregator-2015-table-4",
    source="reactive-aggregator-2015 Table 4",
    summary="Arasu and Widom's base intervals over RA, one event at a time",
    run=lambda quick, progress: measure_table_4(QUICK_T4 if quick else FULL_T4, progress),
    tiny=lambda progress: measure_table_4(TINY_T4, progress),
    views=lambda rows: [View("time of AW over time of RA", "function", "window", "aw_over_ra", form="{:.2f}".format)],
    plots=plots_table_4,
    claims=claims_table_4,
)
