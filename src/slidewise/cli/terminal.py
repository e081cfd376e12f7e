"""Where the output goes: tables and progress for people at a terminal, plain lines in a pipe, one JSON document for machines."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from slidewise.pipeline import Step


def console() -> Console:
    """Standard output, as wide as the terminal; wide enough for a table in a pipe."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False, soft_wrap=False)


def command_name() -> str:
    """How this command was called, for a line that can be copied: `slidewise`, or its path where it is not on the PATH."""
    called = Path(sys.argv[0])
    return "slidewise" if called.name != "slidewise" or shutil.which("slidewise") else str(called)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the house style."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def show(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A line a row; where that is wider than the terminal, a block a row with a line for each column."""
    rows = list(rows)
    shown, out = table(*columns, title=title), console()
    for row in rows:
        shown.add_row(*map(Text, row))
    wide = Console(width=1_000_000).measure(shown).maximum
    if not sys.stdout.isatty():
        out.width = max(out.width, wide)  # nobody folds it there
    elif wide > out.width:
        shown = table("", "", title=title)
        shown.show_header = False
        for row in rows:
            for name, value in zip(columns, row):
                shown.add_row(Text(name, style="bold"), Text(value))
            shown.add_row()
    out.print(shown)


class Progress:
    """One line on standard error that says how far the work is; nothing where nobody looks."""

    def __init__(self, name: str, *, quiet: bool = False):
        self._name = name
        self._rows = self._batches = 0
        self._shown = None if quiet or not sys.stderr.isatty() else _bar()
        self._task = None if self._shown is None else self._shown.add_task(f"{name}: starting", total=None, rate="")

    def __enter__(self) -> Progress:
        if self._shown is not None:
            self._shown.start()
            self._before, sys.stderr = sys.stderr, _Taken(sys.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            sys.stderr = self._before
            self._shown.stop()
            if self._shown.console.file is not sys.stderr:
                self._shown.console.file.close()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Without the line, while others write on the terminal: theirs would begin in the midst of it."""
        if self._shown is not None:
            self._shown.stop()
        try:
            yield
        finally:
            if self._shown is not None:
                self._shown.start()

    def expect(self, rows: int) -> None:
        """So many rows will come."""
        if self._shown is not None:
            self._shown.update(self._task, total=rows)

    def part(self, text: str) -> None:
        """What is being done now."""
        if self._shown is not None:
            self._shown.update(self._task, description=f"{self._name}: {text}")

    def note(self, text: str) -> None:
        """Say something once, above the line."""
        if self._shown is not None:
            self._shown.console.print(f"{self._name}: {text}")

    def step(self, step: Step) -> None:
        """Another micro-batch has ended."""
        self._rows += step.rows
        self._batches += 1
        if self._shown is None:
            return
        known = step.watermark is not None and not step.watermark.startswith("1970")  # the first micro-batch has none
        watermark = f", watermark {str(step.watermark)[:16].replace('T', ' ')}" if known else ""
        told = f"{self._rows:,} rows, {step.rows / max(step.seconds, 1e-9):,.0f}/s{watermark}"
        self.part(f"micro-batch {self._batches}")
        self._shown.update(self._task, completed=self._rows, rate=told)


class _Taken:
    """Standard error while a line of progress is shown on it: others, who show theirs only on a terminal, keep quiet."""

    def __init__(self, stream: Any):
        self._stream = stream

    def isatty(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _bar() -> Bars:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=28), TextColumn("{task.fields[rate]}"))
    return Bars(*columns, TimeElapsedColumn(), console=Console(file=_screen()), transient=True)


def _screen() -> Any:
    """The terminal itself: while Spark starts, standard error is a file, and the clock is to go on."""
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace")
    except OSError:  # no file at all, as in tests
        return sys.stderr
