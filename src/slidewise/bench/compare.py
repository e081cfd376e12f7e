"""Two runs side by side: ratios row by row, and what differs between the machines and the versions.

Rows belong together where their strings agree, and the whole numbers that stand before the first measured figure: that is what
was measured. Where that leaves rows of one run that cannot be told apart, so do fractions that both runs have (days, the edges of a
histogram). Strings of which the runs share none came out, as the other numbers did, and those are compared.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from rich.markup import escape
from rich.table import Table

from slidewise.bench import records, screen
from slidewise.bench.suite import Result, Row
from slidewise.errors import InputError


@dataclass(frozen=True)
class Pair:
    """A row of both runs: what was measured, and of each figure (a, b)."""

    what: dict[str, Any]
    figures: dict[str, tuple[float, float]]

    def ratios(self) -> dict[str, float]:
        """b over a, where there is one."""
        return {name: b / a for name, (a, b) in self.figures.items() if a}


@dataclass(frozen=True)
class Comparison:
    suite: str
    a: Result
    b: Result
    pairs: list[Pair]
    only_a: int
    """Rows that the other run does not have."""
    only_b: int

    def means(self) -> dict[str, float]:
        """Of each figure, the geometric mean of b over a."""
        found: dict[str, list[float]] = {}
        for pair in self.pairs:
            for name, ratio in pair.ratios().items():
                if ratio > 0:
                    found.setdefault(name, []).append(ratio)
        return {name: geometric_mean(ratios) for name, ratios in found.items()}

    def surroundings(self) -> dict[str, tuple[str, str]]:
        """What differs between machines, versions and settings; `-` where a run does not tell: older ones have no commit."""
        a, b = ({**result.machine, **result.versions, **result.settings} for result in (self.a, self.b))
        return {k: (str(a.get(k, "-")), str(b.get(k, "-"))) for k in {**a, **b} if a.get(k) != b.get(k)}


def load(path: Path) -> dict[str, Result]:
    """Suite -> result, of a folder or of one file."""
    found = records.read_all(path) if path.is_dir() else [records.read(path)]
    return {result.suite: result for result in found}


def compared(a: Result, b: Result) -> Comparison:
    first, second = _by_what(a, _what(a, b)), _by_what(b, _what(a, b))
    pairs = [
        Pair(dict(what), {name: (one[name], second[what][name]) for name in one if _both(one, second[what], name)})
        for what, one in first.items()
        if what in second
    ]
    return Comparison(a.suite, a, b, pairs, len(first) - len(pairs), len(second) - len(pairs))


def _both(one: Row, other: Row, name: str) -> bool:
    return one[name] is not None and other.get(name) is not None


def _what(a: Result, b: Result) -> list[str]:
    """The columns that say what was measured."""
    rows, found, measured, fractions = [*a.rows, *b.rows], [], False, []
    for name in a.rows[0] if a.rows else {}:
        held = [row[name] for row in rows if name in row]
        if len(held) < len(rows):
            continue  # only one of the runs has it
        shared = {row[name] for row in a.rows} & {row[name] for row in b.rows}
        if all(isinstance(value, str) for value in held):
            found += [name] if shared else []
            continue
        measured = measured or any(value is None or isinstance(value, float) for value in held)
        if not measured:
            found.append(name)
        elif shared and None not in held:
            fractions.append(name)
    while fractions and not all(_told_apart(result, found) for result in (a, b)):
        found.append(fractions.pop(0))
    return found


def _told_apart(result: Result, names: list[str]) -> bool:
    return len({tuple(row[name] for name in names) for row in result.rows}) == len(result.rows)


def _by_what(result: Result, names: list[str]) -> dict[tuple, Row]:
    """What was measured -> what came out."""
    found: dict[tuple, Row] = {}
    for row in result.rows:
        key = tuple((name, row[name]) for name in names)
        found[key] = {name: value for name, value in row.items() if name not in names and _is_number(value)}
    return found


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def show(a: Path, b: Path) -> None:
    """Both runs on the terminal, suite by suite."""
    first, second = load(a), load(b)
    shared = [name for name in first if name in second]
    if not shared:
        raise InputError(f"{a} and {b} have no suite in common ({', '.join(first)}; {', '.join(second)})")
    for name in shared:
        tell(compared(first[name], second[name]))
    for where, names in ((a, set(first) - set(second)), (b, set(second) - set(first))):
        if names:
            screen.note(f"only in {where}: {', '.join(sorted(names))}")


def tell(found: Comparison) -> None:
    console = screen.console
    console.print(
        f"[bold]{escape(found.suite)}[/]: A of {found.a.finished}, B of {found.b.finished}; ratios are B over A"
    )
    if found.a.quick != found.b.quick:
        screen.note("one of them is a quick run: only rows of the same sizes are compared")
    for what, (one, other) in found.surroundings().items():
        screen.note(f"{what}: A {one}, B {other}")
    if not found.surroundings():
        screen.note("same machine, same versions: " + _told(found.a))
    if not found.pairs:
        screen.note("no row was measured in both")
        return
    console.print(_table(found))
    for name, mean in found.means().items():
        console.print(f"  {escape(name)}: B is {mean:.3g} times A in the geometric mean")
    changed = _changed(found)
    for line in changed:
        console.print(f"  {escape(line)}")
    if found.only_a or found.only_b:
        screen.note(f"rows of A alone: {found.only_a}, of B alone: {found.only_b}")


def _changed(found: Comparison) -> list[str]:
    """Claims that one run holds otherwise than the other, or that only one of them was judged by."""
    before, after = ({claim.paper: claim.holds for claim in result.claims} for result in (found.a, found.b))
    return [
        f"{claim}: {before.get(claim, 'not there')} in A, {after.get(claim, 'not there')} in B"
        for claim in {**before, **after}
        if before.get(claim) != after.get(claim)
    ]


def _told(result: Result) -> str:
    return ", ".join(f"{key} {value}" for key, value in {**result.machine, **result.versions, **result.settings}.items())


def _table(found: Comparison) -> Table:
    names = list(dict.fromkeys(name for pair in found.pairs for name in pair.figures))
    shown = Table()
    for name in found.pairs[0].what:
        shown.add_column(name)
    for name in names:
        shown.add_column(f"{name}\nA, B, B/A", justify="right")
    for pair in found.pairs:
        ratios = pair.ratios()
        cells = [
            f"{pair.figures[name][0]:.3g}, {pair.figures[name][1]:.3g}, {_ratio(ratios.get(name))}"
            if name in pair.figures
            else "-"
            for name in names
        ]
        shown.add_row(*(escape(str(value)) for value in pair.what.values()), *cells)
    return shown


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"
