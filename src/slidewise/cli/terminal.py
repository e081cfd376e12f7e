"""Where the output goes: tables and progress for people at a terminal, plain lines in a pipe, one JSON document for machines."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.table import Table


def console() -> Console:
    """Standard output, as wide as the terminal; wide enough for a table in a pipe."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False, soft_wrap=False)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the house style."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


class Progress:
    """One line on standard error that says how far a stream is; nothing where nobody looks."""

    def __init__(self, name: str, *, quiet: bool = False, total: int | None = None):
        self._name, self._total = name, total
        self._quiet = quiet or not sys.stderr.isatty()
        self._rows = self._batches = 0
        self._began = time.perf_counter()
        self._status: Status | None = None

    def __enter__(self) -> Progress:
        if not self._quiet:
            self._status = Console(stderr=True).status(f"{self._name}: starting")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def note(self, text: str) -> None:
        """Say something once, above the line."""
        if self._status is not None:
            self._status.console.print(f"{self._name}: {text}")

    def step(self, step: Any) -> None:
        """Another micro-batch has ended."""
        self._rows += step.rows
        self._batches += 1
        if self._status is None:
            return
        rate = step.rows / max(step.seconds, 1e-9)
        of = f" of {self._total:,}" if self._total else ""
        watermark = f", watermark {step.watermark[:19].replace('T', ' ')}" if step.watermark else ""
        self._status.update(
            f"{self._name}: {self._rows:,}{of} rows in {self._batches} micro-batches, {rate:,.0f} rows/s{watermark}"
        )
