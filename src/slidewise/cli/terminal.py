"""Where the output goes: tables and progress for people at a terminal, plain lines in a pipe, one JSON document for machines."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
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
