"""Write docs/performance.md and its pictures from results of `slidewise bench`, and from it the README's figures.

python scripts/performance_page.py [FOLDER]

Full-size results of the folder are filed in docs/performance/results first, in place of older ones of the same suites; the page is
of all that is filed there. So a suite can be measured again alone, and `slidewise bench compare` has something to compare with.
A full run, filed and shown: `slidewise bench --out FOLDER && python scripts/performance_page.py FOLDER`.
"""

import json
import shutil
import sys
import textwrap
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import front_table

from slidewise import bench
from slidewise.bench import beside, plots, records
from slidewise.bench.rolling import COLUMN
from slidewise.bench.suite import HOLDS, Claim, Result, Row, View, picked, values

DOCS = Path(__file__).resolve().parent.parent / "docs"
RESULTS = DOCS / "performance" / "results"
WORDS = {"yes": "holds", "partly": "in part", "no": "**does not hold**", "unmeasured": "not measured"}

HEAD = """# Performance

What the papers promise, what came out here, and how others do on the same rows. Everything on this page was measured by
`slidewise bench`; the page is written by `scripts/performance_page.py` from the results, and every verdict is computed from
their rows.

- `make bench` runs all suites at their short sizes and leaves one page, `bench-results/report.html`;
  `slidewise bench daba-2015-table-1` runs one at its full size, `slidewise bench daba-2015` all of a paper,
  `slidewise bench --list` tells what there is, and `slidewise bench compare A B` puts two runs side by side.
- "In part" means: a claim is judged by several tests (each point that was measured, each function, both sides of a bound), of which
  some came out and some did not.
- What a paper compares with and is not at hand is named with what stands in its place. Verdicts are computed; the explanations
  in italics are readings of the code and of the counts, not profiles.
"""

PAPERS = {
    "daba-2015": "Constant-time sliding-window aggregation (daba-2015)",
    "slickdeque-2018": "SlickDeque (slickdeque-2018)",
    "reactive-aggregator-2015": "The Reactive Aggregator (reactive-aggregator-2015)",
    "fiba-2019": "Out-of-order windows (fiba-2019)",
    "bulk-fiba-2023": "Bulk operations (bulk-fiba-2023)",
    "": "Our own suites, and the peers",
}


def page(results: list[Result], figures: dict[str, list[str]]) -> str:
    order = {name: place for place, name in enumerate(bench.SUITES)}
    results = sorted(results, key=lambda result: order.get(result.suite, len(order)))
    parts = [HEAD + how(results), surroundings(results), summary(results), does_not_hold(results)]
    for paper, title in PAPERS.items():
        mine = [r for r in results if paper_of(r) == paper]
        if mine:
            parts.append(f"## {title}\n")
            parts += [section(result, figures.get(result.suite, [])) for result in mine]
    return "\n".join(parts)


def paper_of(result: Result) -> str:
    return next((paper for paper in PAPERS if paper and result.suite.startswith(f"{paper}-")), "")


def how(results: list[Result]) -> str:
    """More of the head: what depends on which results there are."""
    one = len({machine(result) for result in results}) == 1
    told = [
        f"Times are the best of several turns on the machine{'s' * (not one)} below, unless a suite says otherwise; ratios are "
        "taken within one run.\n  Combines are counted, not timed: those figures hold on any machine.",
        allocators(results),
        textwrap.fill(beside.told({result.suite: result.beside for result in results}), 128, subsequent_indent="  "),
        *[two_ways(result.rows) for result in results if result.suite == "rolling"],
    ]
    return "".join(f"- {sentence}\n" for sentence in told)


def allocators(results: list[Result]) -> str:
    """Whether what is freed is kept; results without a commit are older than the note of it."""
    known = [bool(result.settings) for result in results if "commit" in result.versions]
    if not any(known):
        noted = "" if len(known) == len(results) else ", as far as it was noted"
        return (
            f"Allocators are as they come{noted}, for all systems alike: large frames come on fresh pages, which the system\n"
            "  zeroes at the first touch."
        )
    where = "All suites" if len(known) == len(results) and all(known) else "Suites with settings below"
    return (
        f"{where} ran with allocators that keep what is freed, for all systems alike: large frames would else come on\n  fresh "
        "pages, which the system zeroes at the first touch."
    )


def two_ways(rows: list[Row]) -> str:
    both = COLUMN in values(rows, "system")
    return (
        'pandas in `rolling` is measured in two ways: as it is by default, where both sides give back a copy of the frame with\n'
        '  one more column, and, "column only", giving back just the column, with copy-on-write, which spares Slidewise the copy.'
        if both
        else "pandas in `rolling` gives back just the column, and copy-on-write spares Slidewise a copy of the frame: by default, "
        "sums and\n  means over 1 M rows gain less."
    )


def machine(result: Result) -> str:
    found = result.machine
    cores = f"{found['cores']} core{'s' * (found['cores'] != 1)}"
    return f"{found['processor']}, {cores}, {found.get('memory_mb', 0) / 1024:.0f} GB, {found['system']}"


def surroundings(results: list[Result]) -> str:
    """Machines, versions and settings of the allocators: those of most suites, then which suites had others."""

    def versions(result: Result) -> str:
        return ", ".join(f"{name} {version}" for name, version in result.versions.items())

    def settings(result: Result) -> str:
        if "commit" not in result.versions:
            return "not stored with results as old as these"
        set_ = " ".join(f"{name}={value}" for name, value in result.settings.items())
        return f"`{set_}`" if set_ else "the allocators as they are"

    told = []
    for start, of in (("Measured on", machine), ("With", versions), ("Settings:", settings)):
        by: dict[str, list[str]] = {}
        for result in results:
            by.setdefault(of(result), []).append(result.suite)
        first, *others = sorted(by, key=lambda what: -len(by[what]))
        told.append(f"{start} {first}" + "".join(f"; {', '.join(by[other])}: {other}" for other in others) + ".")
    quick = [result.suite for result in results if result.quick]
    sizes = [f"At the short sizes of `--quick`: {', '.join(quick)}."] if quick else []
    return "\n\n".join([*told, *sizes]) + "\n"


def summary(results: list[Result]) -> str:
    lines = [
        "## In short\n",
        f"| paper | claims | {' | '.join(WORDS[holds].strip('*') for holds in HOLDS)} |",
        "| --- " * 6 + "|",
    ]
    for paper, title in PAPERS.items():
        found = Counter(claim.holds for r in results if paper_of(r) == paper for claim in r.claims)
        if found:
            lines.append(f"| {title} | {sum(found.values())} | {' | '.join(str(found[holds]) for holds in HOLDS)} |")
    return "\n".join(lines) + "\n"


def does_not_hold(results: list[Result]) -> str:
    lines = [
        "What does not hold, or only in part, and why:\n",
        "| suite | claimed | here | |",
        "| --- | --- | --- | --- |",
    ]
    for holds in ("no", "partly"):
        lines += [f"| {r.suite} | {said(c)} |" for r in results for c in r.claims if c.holds == holds]
    return "\n".join(lines) + "\n"


def said(claim: Claim) -> str:
    who = "" if claim.who == "the paper says" else f"{claim.who} "
    why = f" *{claim.why}*" if claim.why else ""
    return " | ".join(plain(text) for text in (f"{who}{claim.paper}", f"{claim.here}{why}", WORDS[claim.holds]))


def plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def section(result: Result, figures: list[str]) -> str:
    lines = [
        f"### {result.suite}{' (quick)' if result.quick else ''}\n",
        f"{result.summary[:1].upper()}{result.summary[1:]}; after {result.source}.\n",
    ]
    if result.stands_in:
        lines.append(f"{result.stands_in}\n")
    lines += [f"![{name.removesuffix('.svg')}](performance/{name})\n" for name in figures]
    if result.claims:
        lines += ["| claimed | here | |", "| --- | --- | --- |"]
        lines += [f"| {said(claim)} |" for claim in result.claims]
        lines.append("")
    lines += [f"- {plain(verdict)}" for verdict in result.verdicts]
    if not figures:
        lines += [table(view, result.rows) for view in bench.suite(result.suite).views(result.rows)]
    return "\n".join(lines) + "\n"


def table(view: View, rows: list[dict]) -> str:
    rows = picked(rows, view.only)
    lines, across = values(rows, view.line), values(rows, view.across)
    cells = {(row[view.line], row[view.across]): row[view.value] for row in rows}
    found = [
        f"\n{view.title}\n",
        f"| {view.line} | {' | '.join(map(str, across))} |",
        "| --- " * (len(across) + 1) + "|",
    ]
    for line in lines:
        told = ["-" if cells.get((line, x)) is None else view.form(cells[line, x]) for x in across]
        found.append(f"| {line} | {' | '.join(told)} |")
    return "\n".join(found) if rows else ""


def judged(result: Result) -> Result:
    """With the claims that follow from its rows by the suite of today."""
    again = bench.judged(bench.suite(result.suite), result.rows, result.quick, result.seconds)
    kept = {name: getattr(result, name) for name in ("versions", "machine", "settings", "beside", "finished")}
    return replace(again, **kept)


def file(folder: Path) -> None:
    """Keep the folder's full-size results, and say what is not filed."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    full = {result.suite for result in records.read_all(folder) if not result.quick}
    for name in sorted(full):
        shutil.copy(folder / f"{name}.json", RESULTS)
    print(f"{len(full)} full-size results of {folder} filed")
    if left := [name for name in bench.SUITES if name not in full]:
        print(f"as they were filed before: {', '.join(left)}")


def main(folder: str | None = None) -> None:
    if folder is not None:
        file(Path(folder))
    results = [judged(result) for result in records.read_all(RESULTS) if result.suite in bench.SUITES]
    for result in results:  # what is filed says what the page says
        path = RESULTS / f"{result.suite}.json"
        claims = [asdict(claim) for claim in result.claims]
        said = {"stands_in": result.stands_in, "claims": claims, "verdicts": result.verdicts}
        path.write_text(json.dumps({**json.loads(path.read_text()), **said}, indent=1))
    pictures = DOCS / "performance"
    for old in pictures.glob("*.svg"):
        old.unlink()
    figures = {r.suite: [p.name for p in plots.draw_all(bench.suite(r.suite), r.rows, pictures)] for r in results}
    (DOCS / "performance.md").write_text(page(results, figures), encoding="utf-8")
    front_table.write()


if __name__ == "__main__":
    main(*sys.argv[1:2])
