"""One HTML page of everything that was filed: claims with their verdicts, figures, tables, the machine, the versions.

Nothing is left out: what does not hold is counted in the first lines and told with its explanation. The page stands alone,
with its figures inside.
"""

import base64
import html
from collections import Counter
from pathlib import Path

from slidewise.bench import plots, records
from slidewise.bench.beside import told
from slidewise.bench.suite import HOLDS, Claim, Result, Suite, View, picked, values
from slidewise.errors import InputError, UnsupportedError

WORDS = {"yes": "holds", "partly": "holds in part", "no": "does not hold", "unmeasured": "not measured at these sizes"}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 3rem; border-bottom: 1px solid #ccc; } h3 { margin-top: 2rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; } caption { text-align: left; font-weight: 600; }
td, th { padding: .15rem .6rem; border-bottom: 1px solid #e4e4e4; text-align: right; vertical-align: top; }
td:first-child, th:first-child, .claims td, .claims th { text-align: left; }
.wide { overflow-x: auto; } img { max-width: 100%; } .note { color: #555; } .best { font-weight: 700; }
.yes { color: #08703a; } .partly { color: #9a6700; } .no { color: #b3261e; } .unmeasured { color: #777; }
.yes, .partly, .no { font-weight: 600; white-space: nowrap; }
"""


def write(folder: Path, name: str = "report.html") -> Path:
    """Make the page of a folder of results; gives its path."""
    path = folder / name
    path.write_text(page(records.read_all(folder), folder))
    return path


def page(results: list[Result], folder: Path) -> str:
    """The whole page."""
    chapters = _chapters(results)
    body = [
        "<h1>Slidewise, measured</h1>",
        _summary(results),
        _claims_overview(results),
        _surroundings(results),
        "<h2>Contents</h2>",
        "".join(
            f"<p><b>{_text(chapter)}</b>: "
            + ", ".join(f'<a href="#{_text(r.suite)}">{_text(r.suite)}</a>' for r in those)
            for chapter, those in chapters.items()
        ),
    ]
    for chapter, those in chapters.items():
        body.append(f"<h2>{_text(chapter)}</h2>")
        body += [_section(result, folder) for result in those]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Slidewise, measured</title>'
        f"<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _chapters(results: list[Result]) -> dict[str, list[Result]]:
    """A chapter for each paper, and one for what is our own."""
    from slidewise.bench import PAPERS, SUITES

    found: dict[str, list[Result]] = {paper: [] for paper in PAPERS}
    own: list[Result] = []
    order = list(SUITES)
    for result in sorted(results, key=lambda r: (order.index(r.suite) if r.suite in order else len(order), r.suite)):
        paper = next((paper for paper in PAPERS if result.suite.startswith(f"{paper}-")), None)
        (own if paper is None else found[paper]).append(result)
    found["our own, and the peers"] = own
    return {chapter: those for chapter, those in found.items() if those}


def _summary(results: list[Result]) -> str:
    counts = Counter(claim.holds for result in results for claim in result.claims)
    told = ", ".join(f'<span class="{holds}">{counts[holds]} {WORDS[holds]}</span>' for holds in HOLDS if counts[holds])
    quick = sum(result.quick for result in results)
    sizes = (
        "all at full sizes"
        if not quick
        else "all at the short sizes of --quick"
        if quick == len(results)
        else (f"{quick} of them at the short sizes of --quick")
    )
    rows = sum(len(result.rows) for result in results)
    return (
        f"<p>{len(results)} suites, {rows:,} measurements, {sizes}. "
        f"{sum(counts.values())} claims, the papers' and our own: {told or 'none'}. "
        "A claim is judged by the rows of this run alone, and holds in part where some of its tests (each point that was measured, "
        "each function, both sides of a bound) came out and some did not; times are of this machine, counts of combines hold on "
        "any.</p>"
    )


def _claims_overview(results: list[Result]) -> str:
    """What does not hold comes first."""
    lines = []
    for holds in ("no", "partly", "yes", "unmeasured"):
        for result in results:
            for claim in result.claims:
                if claim.holds == holds:
                    link = f'<a href="#{_text(result.suite)}">{_text(result.suite)}</a>'
                    lines.append(f"<tr><td>{link}</td>{_told(claim)}</tr>")
    if not lines:
        return ""
    head = "<tr><th>suite</th><th>the paper says</th><th>here</th><th></th></tr>"
    return f'<h2>Claims</h2><div class="wide"><table class="claims">{head}{"".join(lines)}</table></div>'


def _told(claim: Claim) -> str:
    why = f'<br><span class="note">{_text(claim.why)}</span>' if claim.why else ""
    said = _text(claim.paper if claim.who == "the paper says" else f"{claim.who} {claim.paper}")
    return f'<td>{said}</td><td>{_text(claim.here)}{why}</td><td class="{claim.holds}">{WORDS[claim.holds]}</td>'


def _surroundings(results: list[Result]) -> str:
    """The machines and the versions; each line says which suites it is of, where not all agree."""
    lines = []
    for what in ("machine", "versions", "settings"):
        for key in dict.fromkeys(key for result in results for key in getattr(result, what)):
            by: dict[str, list[str]] = {}
            for result in results:
                by.setdefault(str(getattr(result, what).get(key, "-")), []).append(result.suite)
            said = [f"{value} ({', '.join(names)})" if len(by) > 1 else value for value, names in by.items()]
            lines.append(f"<tr><td>{_text(key)}</td><td>{'<br>'.join(map(_text, said))}</td></tr>")
    lines.append(f"<tr><td>beside</td><td>{_text(told({r.suite: r.beside for r in results}))}</td></tr>")
    times = sorted(result.finished for result in results)
    lines.append(f"<tr><td>measured</td><td>{_text(times[0])} to {_text(times[-1])}</td></tr>")
    return f'<h2>Machine and versions</h2><table class="claims">{"".join(lines)}</table>'


def _section(result: Result, folder: Path) -> str:
    known = _suite(result.suite)
    parts = [f'<h3 id="{_text(result.suite)}">{_text(result.suite)}{" (quick)" if result.quick else ""}</h3>']
    parts.append(f"<p>{_text(result.summary)}. After {_text(result.source)}.</p>")
    if result.stands_in:
        parts.append(f'<p class="note">{_text(result.stands_in)}</p>')
    if result.claims:
        head = "<tr><th>the paper says</th><th>here</th><th></th></tr>"
        told = "".join(f"<tr>{_told(claim)}</tr>" for claim in result.claims)
        parts.append(f'<div class="wide"><table class="claims">{head}{told}</table></div>')
    if result.verdicts:
        parts.append("<ul>" + "".join(f"<li>{_text(verdict)}</li>" for verdict in result.verdicts) + "</ul>")
    if known is not None:
        parts += _figures(known, result, folder)
        tables = "".join(_table(view, result.rows) for view in known.views(result.rows))
        parts.append(f"<details><summary>tables</summary>{tables}</details>" if tables else "")
    parts.append(
        f'<p class="note">{len(result.rows):,} measurements in {result.seconds:,.0f} s, {_text(result.finished)}: '
        f'<a href="{_text(result.suite)}.csv">CSV</a>, <a href="{_text(result.suite)}.json">JSON</a></p>'
    )
    return "".join(parts)


def _suite(name: str) -> Suite | None:
    """The suite, if this installation still has it and its packages."""
    from slidewise.bench import suite

    try:
        return suite(name)
    except (InputError, ImportError):
        return None


def _figures(suite: Suite, result: Result, folder: Path) -> list[str]:
    filed = folder / f"{result.suite}.json"
    found, paths = [], []
    try:
        for plot in suite.plots(result.rows):
            path = plots.file_of(suite, plot, folder)
            if not path.exists() or path.stat().st_mtime < filed.stat().st_mtime:  # the rows are newer than the picture
                plots.draw(plot, result.rows, path)
            paths.append(path)
    except UnsupportedError as error:
        return [f'<p class="note">No figures: {_text(str(error))}</p>']
    for path in paths:
        data = base64.b64encode(path.read_bytes()).decode()
        found.append(f'<p><img alt="{_text(path.stem)}" src="data:image/svg+xml;base64,{data}"></p>')
    return found


def _table(view: View, rows: list[dict]) -> str:
    rows = picked(rows, view.only)
    lines, across = values(rows, view.line), values(rows, view.across)
    cells = {(row[view.line], row[view.across]): row[view.value] for row in rows}
    pick = {"max": max, "min": min}.get(view.best)
    best = {}
    for column in across:
        there = [cells[line, column] for line in lines if cells.get((line, column)) is not None]
        best[column] = pick(there) if pick and there else None

    def cell(line, column) -> str:
        value = cells.get((line, column))
        if value is None:
            return "<td>-</td>"
        mark = ' class="best"' if value == best[column] else ""
        return f"<td{mark}>{_text(view.form(value))}</td>"

    head = f"<tr><th>{_text(view.line)}</th>" + "".join(f"<th>{_text(column)}</th>" for column in across) + "</tr>"
    body = "".join(
        f"<tr><td>{_text(line)}</td>" + "".join(cell(line, column) for column in across) + "</tr>" for line in lines
    )
    return f'<div class="wide"><table><caption>{_text(view.title)}</caption>{head}{body}</table></div>'


def _text(value) -> str:
    return html.escape(str(value))
