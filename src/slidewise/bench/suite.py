"""What a suite is: a function that gives rows, and how its rows are looked at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
"""One measurement: what was measured (strings, integers) and what came out (numbers). All rows of a suite have the same keys."""

Progress = Callable[[str], None]
"""Told what is being measured now."""


@dataclass(frozen=True)
class View:
    """A table made of rows: one line for each `line`, one column for each `across`, `value` in the cells.

    `only` picks rows; `best` marks the best of a column."""

    title: str
    line: str
    across: str
    value: str
    only: tuple[tuple[str, Any], ...] = ()
    best: str = ""
    """`max`, `min` or nothing."""
    form: Callable[[Any], str] = "{:.3g}".format


@dataclass(frozen=True)
class Suite:
    """`run(quick, progress)` measures. `views` are shown on the terminal; `verdicts(rows)` are sentences with their figures."""

    name: str
    source: str
    """The paper and the figure or table that this repeats."""
    summary: str
    run: Callable[[bool, Progress], list[Row]]
    views: Callable[[list[Row]], Sequence[View]] = field(default=lambda rows: ())
    verdicts: Callable[[list[Row]], list[str]] = field(default=lambda rows: [])


@dataclass(frozen=True)
class Result:
    suite: str
    source: str
    quick: bool
    rows: list[Row]
    verdicts: list[str]
    seconds: float


def with_ratio(rows: list[Row], value: str, against: tuple[str, Any], by: Sequence[str], name: str) -> None:
    """Add to each row how its `value` compares with the row that has `against` and agrees in `by`; None if there is none."""
    key, chosen = against
    base = {tuple(row[k] for k in by): row[value] for row in rows if row[key] == chosen}
    for row in rows:
        other = base.get(tuple(row[k] for k in by))
        row[name] = row[value] / other if other and row[value] is not None else None
