"""Plots in the papers' form, drawn from rows by matplotlib and written as SVG or PNG.

A line keeps its colour and marker in every plot: an algorithm is recognised across figures.
"""

import math
from collections.abc import Iterable
from pathlib import Path

from slidewise.bench.suite import Panel, Plot, Row, Suite, picked, values
from slidewise.errors import UnsupportedError

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c564b", "#7f7f7f", "#bcbd22")
MARKERS = "os^Dv<>pPX*h"

KNOWN = (
    "two_stacks two_stacks_lite daba daba_lite flatfat flatfit recalc aba b_int slick_deque "
    "subtract_on_evict amta btree fiba"
).split()
"""Always in this order of colours and markers, so that neighbours differ."""

PANEL = 4.2, 3.1
"""Inches."""


def places(lines: Iterable) -> dict:
    """A place in the order of colours and markers for each line of a figure. Those that are no algorithms of the library get what
    its algorithms in the figure leave, the colours that are there once first."""
    found = {line: KNOWN.index(line) for line in lines if line in KNOWN}
    taken = {place % len(COLOURS) for place in found.values()}
    free = [place for place in range(5, 5 + len(COLOURS)) if place % len(COLOURS) not in taken]
    others = [line for line in dict.fromkeys(lines) if line not in found]
    more = range(2 * len(COLOURS), 2 * len(COLOURS) + len(others))
    return found | dict(zip(others, [place % len(COLOURS) for place in free] + list(more)))


def style(line, known: dict) -> dict:
    """Colour and marker of a line, by its place; dashed where the colour is there for the second time."""
    order = known[line]
    dash = {"linestyle": "--"} if order >= len(COLOURS) else {}
    return {"color": COLOURS[order % len(COLOURS)], "marker": MARKERS[order % len(MARKERS)], **dash}


LOOKS = {"font.size": 9, "axes.titlesize": 10, "svg.hashsalt": "slidewise", "svg.fonttype": "none"}
"""Text stays text: the files are small and can be searched."""


def draw(plot: Plot, rows: list[Row], path: Path) -> Path:
    """Draw it into that file; the suffix says which format."""
    try:
        import matplotlib
    except ImportError as error:
        raise UnsupportedError('plots need matplotlib: pip install "slidewise[bench]"') from error
    with matplotlib.rc_context(LOOKS):
        drawn(plot, rows).savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    return path


def drawn(plot: Plot, rows: list[Row]):
    """The figure, ready to be saved."""
    from matplotlib.figure import Figure

    count = len(plot.panels)
    across = min(plot.across, count)
    down = -(-count // across)
    figure = Figure(figsize=(max(PANEL[0] * across, 5.2), PANEL[1] * down + 0.7), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    lines = [line for panel in plot.panels if panel.line for line in values(picked(rows, panel.only), panel.line)]
    known = places([*lines, None])
    for panel, here in zip(plot.panels, axes):
        _panel(panel, rows, here, known)
    for here in axes[count:]:
        here.set_visible(False)
    if plot.title:
        figure.suptitle(plot.title, fontsize=11)
    _legend(figure, axes[:count])
    return figure


def _legend(figure, axes) -> None:
    found = {}
    for here in axes:
        handles, labels = here.get_legend_handles_labels()
        for handle, label in zip(handles, labels):
            found.setdefault(label, handle)
    if found:
        width = figure.get_size_inches()[0]
        longest = max(len(label) for label in found)
        columns = max(1, min(len(found), int(width / (0.075 * longest + 0.55))))
        figure.legend(
            list(found.values()), list(found), loc="outside lower center", ncols=columns, fontsize=8, frameon=False
        )


def _panel(panel: Panel, rows: list[Row], axes, known: dict) -> None:
    rows = picked(rows, panel.only)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label or panel.x)
    axes.set_ylabel(panel.y_label or panel.y)
    axes.grid(True, color="#e0e0e0", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.03)
    if panel.draw is not None:
        panel.draw(axes, rows)
        return
    rows = [row for row in rows if row[panel.y] is not None and (row[panel.y] > 0 or not panel.y_log)]
    lines = values(rows, panel.line) if panel.line else [None]
    if panel.kind == "bars":
        _bars(panel, rows, lines, axes, known)
    else:
        for line in lines:
            mine = [row for row in rows if panel.line == "" or row[panel.line] == line]
            xs, ys = [row[panel.x] for row in mine], [row[panel.y] * panel.times for row in mine]
            look = style(line, known)
            if panel.kind == "points":
                look["linestyle"] = "none"
                axes.plot(xs, ys, label=_name(panel, line), markersize=2, rasterized=True, **look)
            else:
                axes.plot(xs, ys, label=_name(panel, line), linewidth=1.3, markersize=4, **look)
    if panel.x_log and panel.kind != "bars":
        axes.set_xscale("log", base=panel.x_log)
        if rows and min(row[panel.x] for row in rows) == ZERO:
            with_zero(axes)
    if panel.y_log:
        axes.set_yscale("log", base=panel.y_log)
        _plain_numbers(axes, panel.y_log)
    elif panel.kind != "points":
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), max(high, 1.1 * panel.base))


ZERO = 0.5
"""Where 0 stands on a logarithmic axis."""


def with_zero(axes) -> None:
    """Say 0 where it stands, left of 1."""
    from matplotlib.ticker import FixedLocator, FuncFormatter

    low, high = (math.log2(x) for x in axes.get_xlim())
    step = max(1, round((high - low) / 6))
    powers = range(step if step > 1 else 0, int(high) + 1, step)
    axes.xaxis.set_major_locator(FixedLocator([ZERO, *(2.0**p for p in powers)]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: "0" if x == ZERO else f"$2^{{{round(math.log2(x))}}}$"))


def _plain_numbers(axes, base: int) -> None:
    """0.1, 1, 10 in place of powers, where that is short; between them only where there are few."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    low, high = axes.get_ylim()
    if base != 10 or low <= 0:
        return
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    if low >= 1e-3 and high < 1e5:
        axes.yaxis.set_major_formatter(plain)
    axes.yaxis.set_minor_formatter(plain if high / low < 15 else NullFormatter())


def _bars(panel: Panel, rows: list[Row], lines: list, axes, known: dict) -> None:
    across = values(rows, panel.x)
    width = 0.8 / max(1, len(lines))
    for k, line in enumerate(lines):
        mine = {row[panel.x]: row[panel.y] * panel.times for row in rows if panel.line == "" or row[panel.line] == line}
        places = [i + (k - (len(lines) - 1) / 2) * width for i, x in enumerate(across) if x in mine]
        heights = [mine[x] - panel.base for x in across if x in mine]
        colour = style(line, known)["color"]
        axes.bar(places, heights, width, panel.base, label=_name(panel, line), color=colour)
    many = len(across) > 4
    axes.set_xticks(range(len(across)), [str(x) for x in across], rotation=30 * many, ha="right" if many else "center")
    axes.grid(False, axis="x")
    if panel.base:
        axes.axhline(panel.base, color="#222222", linewidth=0.8)


def _name(panel: Panel, line) -> str | None:
    return None if line is None else panel.names.get(line, str(line))


def draw_all(suite: Suite, rows: list[Row], out_dir: Path, suffix: str = ".svg") -> list[Path]:
    """Every plot of a suite, as SUITE.svg or SUITE-NAME.svg."""
    return [draw(plot, rows, file_of(suite, plot, out_dir, suffix)) for plot in suite.plots(rows)]


def file_of(suite: Suite, plot: Plot, out_dir: Path, suffix: str = ".svg") -> Path:
    return out_dir / f"{suite.name}{'-' if plot.name else ''}{plot.name}{suffix}"
