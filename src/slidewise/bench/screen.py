"""Suites on the terminal."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from slidewise.bench.suite import Result, Suite, View

console = Console()
_errors = Console(stderr=True)


def begin(suite: Suite, quick: bool) -> None:
    console.print(f"[bold]{suite.name}[/bold]{' (quick)' if quick else ''}: {escape(suite.summary)}")
    console.print(f"  after {escape(suite.source)}", style="dim")


def progress(what: str) -> None:
    """What is being measured: a line that the next one writes over, on a terminal only."""
    if console.is_terminal:
        console.print(f"  {escape(what)}"[: console.width - 1].ljust(console.width - 1), end="\r", style="dim")


def show(suite: Suite, result: Result) -> None:
    if console.is_terminal:
        console.print(" " * (console.width - 1), end="\r")
    for view in suite.views(result.rows):
        console.print(table(view, result.rows))
    for verdict in result.verdicts:
        console.print(f"  {escape(verdict)}")
    console.print(f"  {len(result.rows)} measurements in {result.seconds:.0f} s", style="dim")


def table(view: View, rows: list[dict]) -> Table:
    rows = [row for row in rows if all(row[key] == wanted for key, wanted in view.only)]
    lines = list(dict.fromkeys(row[view.line] for row in rows))
    across = list(dict.fromkeys(row[view.across] for row in rows))
    cells = {(row[view.line], row[view.across]): row[view.value] for row in rows}
    pick = {"max": max, "min": min}.get(view.best)
    shown = Table(title=view.title, title_justify="left", title_style="bold")
    shown.add_column(view.line)
    for column in across:
        shown.add_column(f"{column}", justify="right")
    best = {}
    for column in across:
        values = [cells[line, column] for line in lines if cells.get((line, column)) is not None]
        best[column] = pick(values) if pick and values else None
    for line in lines:
        texts = []
        for column in across:
            value = cells.get((line, column))
            text = "-" if value is None else view.form(value)
            texts.append(f"[bold green]{text}[/]" if value is not None and value == best[column] else text)
        shown.add_row(f"{line}", *texts)
    return shown


def filed(paths: list[Path]) -> None:
    console.print(f"  filed in {', '.join(escape(str(path)) for path in paths)}", style="dim")


def listing(suites: list[Suite]) -> None:
    shown = Table()
    for heading in ("suite", "measures", "after"):
        shown.add_column(heading)
    for suite in suites:
        shown.add_row(suite.name, suite.summary, suite.source)
    console.print(shown)


def wrong(error: Exception) -> None:
    _errors.print(f"slidewise bench: {escape(str(error))}")
