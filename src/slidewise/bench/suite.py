"""What a suite is: a function that gives rows, and how its rows are looked at, drawn and judged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
"""One measurement: what was measured (strings, integers) and what came out (numbers). All rows of a suite have the same keys."""

Progress = Callable[[str], None]
"""Told what is being measured now."""

Only = tuple[tuple[str, Any], ...]
"""Picks rows: those that have all of these values."""


@dataclass(frozen=True)
class View:
    """A table made of rows: one line for each `line`, one column for each `across`, `value` in the cells.

    `only` picks rows; `best` marks the best of a column."""

    title: str
    line: str
    across: str
    value: str
    only: Only = ()
    best: str = ""
    """`max`, `min` or nothing."""
    form: Callable[[Any], str] = "{:.3g}".format


@dataclass(frozen=True)
class Panel:
    """One pair of axes: `y` over `x`, a line (or bars, points) for each value of `line`. Rows without a y are left out.

    `draw(axes, rows)`, where given, draws whatever the paper's form asks for in place of that."""

    title: str
    x: str = ""
    y: str = ""
    line: str = ""
    only: Only = ()
    kind: str = "lines"
    """`lines`, `points` (a time series: no line between them), `bars` (x are categories)."""
    x_label: str = ""
    y_label: str = ""
    x_log: int = 0
    """The base of a logarithmic axis; 0 for a linear one."""
    y_log: int = 0
    times: float = 1.0
    """What y is multiplied by: 1e-6 shows millions."""
    base: float = 0.0
    """Where bars begin: 1 for ratios."""
    names: Mapping[Any, str] = field(default_factory=dict)
    """What to call a line in the legend."""
    draw: Callable[[Any, list[Row]], None] | None = None


@dataclass(frozen=True)
class Plot:
    """A figure in the paper's form: panels side by side under one legend. Filed as SUITE.svg, or SUITE-NAME.svg."""

    panels: Sequence[Panel]
    title: str = ""
    name: str = ""
    across: int = 3
    """Panels in a row."""


HOLDS = ("yes", "partly", "no", "unmeasured")


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and what came out here. `holds` is one of HOLDS, computed from the rows, never written by hand."""

    paper: str
    here: str
    holds: str
    why: str = ""
    """An explanation of what does not hold, or of what stands in another's place."""
    who: str = "the paper says"
    """Or `wanted:`, where it is our own."""

    def __post_init__(self):
        if self.holds not in HOLDS:
            raise ValueError(f"holds is one of {', '.join(HOLDS)}, not {self.holds!r}")


def claim(paper: str, here: str, tests: Iterable[bool], why: str = "", who: str = "the paper says") -> Claim:
    """A claim judged by tests on the rows: all true, it holds; none, it does not; some, partly; no test, nothing was measured.

    `why` is kept only where something does not hold."""
    found = [bool(test) for test in tests]
    if not found:
        return Claim(paper, "not measured at these sizes", "unmeasured", who=who)
    holds = "yes" if all(found) else "partly" if any(found) else "no"
    return Claim(paper, here, holds, "" if holds == "yes" else why, who)


def reasons(*told: tuple[object, str]) -> str:
    """An explanation that follows from the rows: of the sentences those whose condition they meet."""
    return " ".join(sentence for condition, sentence in told if condition)


def wanted(found: float, least: float, form: str = "{:g}") -> str:
    """Behind a figure: what we want of it, and whether it falls short."""
    return f" (at least {form.format(least)} wanted{'' if found >= least else ': missed'})"


@dataclass(frozen=True)
class Suite:
    """`run(quick, progress)` measures. `views` are shown on the terminal, `plots` are drawn beside the CSV.

    `claims(rows)` are the paper's sentences and how they came out; `verdicts(rows)` other sentences with their figures."""

    name: str
    source: str
    """The paper and the figure or table that this repeats."""
    summary: str
    run: Callable[[bool, Progress], list[Row]]
    views: Callable[[list[Row]], Sequence[View]] = field(default=lambda rows: ())
    verdicts: Callable[[list[Row]], list[str]] = field(default=lambda rows: [])
    plots: Callable[[list[Row]], Sequence[Plot]] = field(default=lambda rows: ())
    claims: Callable[[list[Row]], list[Claim]] = field(default=lambda rows: [])
    tiny: Callable[[Progress], list[Row]] | None = None
    """Everything at sizes of a second or two: what the tests run."""
    stands_in: str = ""
    """What here takes the place of a system or a data set of the paper that is not at hand."""


@dataclass(frozen=True)
class Result:
    suite: str
    source: str
    quick: bool
    rows: list[Row]
    verdicts: list[str]
    seconds: float
    claims: list[Claim] = field(default_factory=list)
    summary: str = ""
    stands_in: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Filled in when a result is filed; empty before."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the allocators: variables of the environment."""
    beside: Mapping[str, float] = field(default_factory=dict)
    """What else the machine had to do, as `beside.Watch` saw it; empty where it was not noted."""
    finished: str = ""


def picked(rows: list[Row], only: Only) -> list[Row]:
    return [row for row in rows if all(row[key] == wanted for key, wanted in only)]


def values(rows: list[Row], key: str) -> list:
    """The different values of a column, in the order in which they came."""
    return list(dict.fromkeys(row[key] for row in rows))


def with_ratio(rows: list[Row], value: str, against: tuple[str, Any], by: Sequence[str], name: str) -> None:
    """Add to each row how its `value` compares with the row that has `against` and agrees in `by`; None if there is none."""
    key, chosen = against
    base = {tuple(row[k] for k in by): row[value] for row in rows if row[key] == chosen}
    for row in rows:
        other = base.get(tuple(row[k] for k in by))
        row[name] = row[value] / other if other and row[value] is not None else None
