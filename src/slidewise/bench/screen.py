"""Suites on the terminal."""

import sys
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from slidewise.bench.suite import Claim, Result, Suite, View, picked, values

console = Console(width=None if sys.stdout.isatty() else 132)
"""As wide as the terminal; wide enough for a table in a pipe."""
_errors = Console(stderr=True)


def begin(suite: Suite, quick: bool) -> None:
    console.print(f"[bold]{suite.name}[/bold]{' (quick)' if quick else ''}: {escape(suite.summary)}")
    console.print(f"  after {escape(suite.source)}", style="dim")
    if suite.stands_in:
        console.print(f"  {escape(suite.stands_in)}", style="dim")


def progress(what: str) -> None:
    """What is being measured: a line that the next one writes over, on a terminal only."""
    if console.is_terminal:
        console.print(f"  {escape(what)}"[: console.width - 1].ljust(console.width - 1), end="\r", style="dim")


def show(suite: Suite, result: Result) -> None:
    if console.is_terminal:
        console.print(" " * (console.width - 1), end="\r")
    for view in suite.views(result.rows):
        console.print(f"[bold]{escape(view.title)}[/]")
        console.print(table(view, result.rows))
    for claim in result.claims:
        tell(claim)
    for verdict in result.verdicts:
        console.print(f"  {escape(verdict)}")
    console.print(f"  {len(result.rows)} measurements in {result.seconds:.0f} s", style="dim")


WORDS = {
    "yes": "[bold green]holds[/]",
    "partly": "[bold yellow]holds in part[/]",
    "no": "[bold red]does not hold[/]",
}


def tell(claim: Claim) -> None:
    """The paper says ... / here ...: holds."""
    console.print(f"  {claim.who} {escape(claim.paper)}")
    verdict = f": {WORDS[claim.holds]}" if claim.holds != "unmeasured" else ""
    console.print(f"    / here {escape(claim.here)}{verdict}")
    if claim.why:
        console.print(f"      {escape(claim.why)}", style="dim")


def table(view: View, rows: list[dict]) -> Table:
    rows = picked(rows, view.only)
    lines, across = values(rows, view.line), values(rows, view.across)
    cells = {(row[view.line], row[view.across]): row[view.value] for row in rows}
    pick = {"max": max, "min": min}.get(view.best)
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column(view.line, no_wrap=True)
    for column in across:
        shown.add_column(_heading(column), justify="right", no_wrap=True)
    best = {}
    for column in across:
        there = [cells[line, column] for line in lines if cells.get((line, column)) is not None]
        best[column] = pick(there) if pick and there else None
    for line in lines:
        texts = []
        for column in across:
            value = cells.get((line, column))
            text = "-" if value is None else view.form(value)
            texts.append(f"[bold green]{text}[/]" if value is not None and value == best[column] else text)
        shown.add_row(f"{line}", *texts)
    return shown


def _heading(value: object) -> str:
    """A value as the head of a column: large powers of two as such."""
    if isinstance(value, int) and value >= 1024 and value & (value - 1) == 0:
        return f"2^{value.bit_length() - 1}"
    return f"{value}"


def filed(paths: list[Path]) -> None:
    console.print(f"  filed in {', '.join(escape(str(path)) for path in paths)}", style="dim")


def listing(suites: list[Suite]) -> None:
    shown = Table()
    for heading in ("suite", "measures", "after"):
        shown.add_column(heading)
    for suite in suites:
        shown.add_row(suite.name, suite.summary, suite.source)
    console.print(shown)


def note(text: str) -> None:
    console.print(f"  {escape(text)}", style="dim")


def failed(name: str, error: Exception) -> None:
    _errors.print(f"{name} failed: {type(error).__name__}: {escape(str(error))}")


def wrong(error: Exception) -> None:
    _errors.print(f"slidewise bench: {escape(str(error))}")
