"""bulk-fiba-2023, section 7.4 and Figure 15: what real data looks like in a window of a day.

Histograms of the window size n, of how many events an event pushes out (m), and of the out-of-order distance d. The rides are
drawn (bench/data.py): their claims say how near they are to what the papers report; the flights are as they were.
"""

import numpy as np

from slidewise.bench import data
from slidewise.bench.papers.fiba_2019_real import stream
from slidewise.bench.plots import with_zero
from slidewise.bench.suite import Claim, Panel, Plot, Progress, Row, Suite, View, claim, picked, values


def measure(rides: int, flights: bool, progress: Progress) -> list[Row]:
    """Bins of the three histograms, and the figures that the papers tell."""
    rows: list[Row] = []
    for kind in ("flights", "bikes")[0 if flights else 1 :]:
        progress(kind)
        of = stream(kind, rides)
        sizes, bulks = data.sizes_and_bulks(of, data.DAY)
        for what, found in (("n", sizes), ("m", bulks), ("d", data.distances(of))):
            top = int(found.max()) + 1
            edges = (
                np.linspace(0, top, 41)
                if what == "n"
                else np.concatenate([[0], 2.0 ** np.arange(int(np.log2(top)) + 2)])
            )
            counts, _ = np.histogram(found, edges)
            told = {
                "mean": float(found.mean()),
                "p50": float(np.quantile(found, 0.5)),
                "p99": float(np.quantile(found, 0.99)),
                "p99_99": float(np.quantile(found, 0.9999)),
                "most": int(found.max()),
                "thousands": int((found >= 1000).sum()),
                "tens_of_thousands": int(((found >= 10_000) & (found < 100_000)).sum()),
            }
            for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist()):
                rows.append({
                    "data": kind, "what": what, "events": len(of), "low": low, "high": high, "count": count, **told,
                })  # fmt: skip
    return rows


LABELS = {"n": "window size n", "m": "pushed out by one event, m", "d": "out-of-order distance d"}


def _bars(axes, rows: list[Row]) -> None:
    linear = rows[0]["what"] == "n"
    left = [r["low"] if linear or r["low"] else 0.5 for r in rows]
    axes.bar(
        left,
        [r["count"] for r in rows],
        [r["high"] - low for r, low in zip(rows, left)],
        align="edge",
        color="#0072b2",
        edgecolor="white",
        linewidth=0.4,
    )
    if not linear:
        axes.set_xscale("log", base=2)
        with_zero(axes)
        axes.set_yscale("log", base=10)
        axes.set_ylim(bottom=0.7)


def plots(rows: list[Row]) -> list[Plot]:
    panels = [
        Panel(
            f"{kind}: {what}", only=(("data", kind), ("what", what)), x_label=LABELS[what],
            y_label="events", draw=_bars,
        )
        for kind in values(rows, "data")
        for what in LABELS
    ]  # fmt: skip
    return [Plot(panels, "Figure 15: window sizes, bulks and distances, window of a day", across=3)]


def views(rows: list[Row]) -> list[View]:
    return [
        View(f"{kind}: {column}", "what", "data", column, (("data", kind),), form="{:,.2f}".format)
        for kind in values(rows, "data")
        for column in ("mean", "p50", "p99", "p99_99", "most", "thousands")
    ]


def claims(rows: list[Row]) -> list[Claim]:
    def told(kind: str, what: str) -> Row:
        return picked(rows, (("data", kind), ("what", what)))[0]

    d, m = told("bikes", "d"), told("bikes", "m")
    scale = d["events"] / data.RIDES
    broad = {kind: _between(rows, kind) for kind in values(rows, "data")}
    shares = {kind: [_share(rows, kind, "m", low, high) for low, high in ((0, 1), (1, 2))] for kind in values(rows, "data")}
    far = d.get("tens_of_thousands")  # results that were filed without have bins from powers of two on
    near = sum(r["count"] for r in picked(rows, (("data", "bikes"), ("what", "d"))) if 2**13 <= r["low"] < 2**17)
    told_far = f"{near:,} of {d['events']:,} rides from 8,192 to 131,071" if far is None else (
        f"{far:,} of {d['events']:,} rides from 10,000 to 99,999")
    found = [
        claim(
            "99 % of the rides have d <= 9, the mean is 56.47, the last 0.01 % have d >= 150,000, the most is "
            "about a million",
            f"99 % have d <= {d['p99']:.0f}, mean {d['mean']:.1f}, the last 0.01 % from {d['p99_99']:,.0f} on, "
            f"most {d['most']:,} "
            f"({d['events']:,} rides: distances that stand for days are {scale:.3g} of the paper's)",
            [d["p99"] <= 10, d["p99_99"] > 1e5 * scale]
            + [0.5 < d["mean"] / (1 + 52 * scale) < 2, 0.5 < d["most"] / (1e6 * scale) < 2],
            "The rides are drawn to this shape; a short run has few of the rare ones.",
        ),
        claim(
            "most insertions cause only a single eviction",
            ", ".join(
                f"{kind}: {one:.0%} push out one, {none:.0%} none; of those that push out any, {one / (1 - none):.0%} push out one"
                for kind, (none, one) in shares.items()
            ),
            [one / (1 - none) > 0.5 for none, one in shares.values()],
            "Events that come at uneven distances push out none about as often as one, and then several. Flights are heard of when "
            "they land, long after they left: only the few that left last push out anything.",
        ),
        claim(
            "but there are bulk evicts of hundreds or thousands of entries",
            f"the most: {m['most']:,} rides at once; {m['thousands']} times a thousand or more, of {m['events']:,}",
            [m["most"] >= 1000 * scale, m["thousands"] > 0 or scale < 1],
            "The rides are drawn: nights and storms between them decide how many leave at once.",
        ),
        claim(
            "hundreds of insertions have a distance in the tens of thousands",
            told_far,
            [100 <= (near if far is None else far) < 10_000] if scale == 1 else [],
            "The rides are drawn, and the late ones among them.",
        ),
        claim(
            "the window size ranges broadly, as event rates are uneven",
            ", ".join(f"{kind}: 95 % are below {high:,.0f}, 5 % below {low:,.0f}" for kind, (low, high) in broad.items()),
            [high > 1.5 * low for low, high in broad.values()],
            "Flights are scheduled: a day has as many of them as the next but for holidays and storms.",
        ),
    ]  # fmt: skip
    return found


def _share(rows: list[Row], kind: str, what: str, low: float, high: float) -> float:
    mine = picked(rows, (("data", kind), ("what", what)))
    return sum(r["count"] for r in mine if low <= r["low"] and r["high"] <= high) / sum(r["count"] for r in mine)


def _between(rows: list[Row], kind: str) -> tuple[float, float]:
    """Window sizes below which 5 % and 95 % are, to a bin of the histogram."""
    mine = picked(rows, (("data", kind), ("what", "n")))
    seen = np.cumsum([r["count"] for r in mine]) / sum(r["count"] for r in mine)
    return mine[int(np.searchsorted(seen, 0.05))]["high"], mine[int(np.searchsorted(seen, 0.95))]["high"]


FIG_15 = Suite(
    name="bulk-fiba-2023-fig-15",
    source="bulk-fiba-2023 Figure 15, fiba-2019 section 5.2",
    summary="real data: histograms of window sizes, bulks and distances",
    run=lambda quick, progress: measure(200_000 if quick else data.RIDES, True, progress),
    tiny=lambda progress: measure(20_000, False, progress),
    views=views,
    plots=plots,
    claims=claims,
    stands_in="The flights out of New York in 2013; rides drawn in the shape that the papers report of the bike data.",
)
