"""A call of `rolling` or `as_of`, checked as far as it can be without data. The same for every engine."""

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from slidewise.algebra.operator import Bound, Operator
from slidewise.algebra.product import BoundStruct
from slidewise.errors import InputError, InputTypeError
from slidewise.windows.bounds import TIES, sides
from slidewise.windows.spec import Window, named_windows, truth

EMITS = ("event", "slide", "latest")
PREFERENCES = ("throughput", "latency", "memory")


@dataclass(frozen=True)
class Output:
    """One result column: an aggregate over a window."""

    column: str
    aggregate: str
    window: str


@dataclass(frozen=True)
class Request:
    """What was asked for. Built by `request`, which checks it."""

    time: str
    by: tuple[str, ...]
    windows: dict[str, Window]
    aggs: dict[str, Bound | BoundStruct]
    closed: str = "right"
    ties: str = "peers"
    order: tuple[str, ...] = ()
    emit: str = "event"
    algorithm: str = "auto"
    exclude_current: bool = False
    prefer: str = "throughput"
    as_of: bool = False
    """Whether the windows end at the rows of another table."""

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The result columns, window by window in the order given."""
        return tuple(Output(f"{a}_{w}", a, w) for w in self.windows for a in self.aggs)

    @property
    def leaves(self) -> dict[str, Bound]:
        """Every operator that is computed by itself: the members of a bound struct are `name.member`."""
        found: dict[str, Bound] = {}
        for name, bound in self.aggs.items():
            found |= bound.leaves(name) if isinstance(bound, BoundStruct) else {name: bound}
        return found

    def put_together(self, aggregate: str, leaf: Callable[[str], Any], join: Callable[[dict[str, Any]], Any]):
        """What belongs to an aggregate, from what belongs to its leaves; join(values by member) makes one of a struct's."""
        bound = self.aggs[aggregate]
        return bound.put_together(aggregate, leaf, join) if isinstance(bound, BoundStruct) else leaf(aggregate)

    @property
    def needed(self) -> tuple[str, ...]:
        """Every column of the data that must be at hand, each once."""
        return tuple(dict.fromkeys([*self._ordering, *(name for bound in self.aggs.values() for name in bound.needed)]))

    @property
    def aggregated(self) -> set[str]:
        """The columns that nothing but aggregates read."""
        return set(self.needed) - set(self._ordering)

    @property
    def _ordering(self) -> list[str]:
        """What rows are sorted and windows are found by."""
        return [self.time, *self.by, *self.order, *(name for window in self.windows.values() for name in window.needed)]

    def check_columns(self, columns, *, kept=None) -> None:
        """Complain of columns that are not there, and of result names that are there already.

        kept: the columns that come back beside the results (by default those of the data)."""
        columns = list(columns)
        for name in self.needed:
            if name not in columns:
                close = difflib.get_close_matches(name, columns, 1)
                raise InputError(
                    f"no column {name!r} in the data; it has {', '.join(map(repr, columns)) or 'none'}"
                    + (f". Did you mean {close[0]!r}?" if close else "")
                )
            if columns.count(name) > 1:
                raise InputError(f"the data has {columns.count(name)} columns named {name!r}; rename all but one")
        if kept is None:
            kept = columns if self.emit == "event" else (*self.by, self.time)
        for output in self.outputs:
            if output.column in kept:
                raise InputError(
                    f"the result column {output.column!r} is a column of the data already; rename the "
                    f"aggregate {output.aggregate!r} or the window {output.window!r}"
                )


def request(
    *,
    time,
    windows,
    aggs,
    by=None,
    closed="right",
    ties="peers",
    order=None,
    emit="event",
    algorithm="auto",
    exclude_current=False,
    origin=None,
    prefer="throughput",
    as_of=False,
) -> Request:
    """Check the arguments of a call and bring them into one form."""
    if not isinstance(time, str):
        raise InputTypeError(f"time= is the name of the time column, not {time!r}")
    sides(closed)
    _one_of("ties", ties, TIES)
    _one_of("emit", emit, EMITS)
    _one_of("prefer", prefer, PREFERENCES)
    if not isinstance(algorithm, str):
        raise InputTypeError(f'algorithm= is "auto" or the name of one (sw.algorithms()), not {algorithm!r}')
    keys = column_names("by", by)
    if time in keys:
        raise InputError(f"{time!r} is both the time and a key; a window over one moment of time holds only its ties")
    found = Request(
        time=time,
        by=keys,
        windows=named_windows(windows, origin),
        aggs=_aggregates(aggs),
        closed=closed,
        ties=ties,
        order=column_names("order", order),
        emit=emit,
        algorithm=algorithm,
        exclude_current=truth(exclude_current, "exclude_current="),
        prefer=prefer,
        as_of=as_of,
    )
    _check_emit(found)
    seen: dict[str, Output] = {}
    for output in found.outputs:
        if output.column in seen:
            other = seen[output.column]
            raise InputError(
                f"two results would be named {output.column!r}: {other.aggregate!r} over {other.window!r} and "
                f"{output.aggregate!r} over {output.window!r}; rename one"
            )
        seen[output.column] = output
    return found


def _check_emit(found: Request) -> None:
    if found.as_of and found.ties == "arrival" and sides(found.closed)[1]:
        raise InputError(
            'as_of: a query did not arrive among the rows of its moment: it sees all of them or none, so ties="arrival" has no '
            f'meaning with closed={found.closed!r}; take ties="peers" (all, the default) or closed="left" (none)'
        )
    if found.as_of and found.emit != "event":
        raise InputError(f"as_of gives a row for each query; emit={found.emit!r} has no meaning there")
    if found.as_of and found.exclude_current:
        raise InputError(
            'as_of: a query is not a row of the data, so there is none to exclude; closed="left" (the default) '
            "leaves out its whole moment"
        )
    if found.emit != "slide":
        return
    if found.exclude_current:
        raise InputError('exclude_current leaves out the row itself; with emit="slide" there is no such row')
    for name, window in found.windows.items():
        if not window.slides:
            raise InputError(
                f'emit="slide" needs boundaries, and the window {name!r} has none: give it a slide, such as '
                f'sw.time("1h", slide="5m"), or take emit="event"'
            )
    by_rows = {window.by_position for window in found.windows.values()}
    kinds = {window.kind for window in found.windows.values()}
    if len(by_rows) > 1 or (len(kinds) > 1 and not kinds <= {"time", "tumbling"}):
        raise InputError(
            f'emit="slide": windows of the kinds {", ".join(sorted(kinds))} have boundaries of different kinds; '
            "ask for them in separate calls"
        )
    if (
        (by_rows == {True} or "session" in kinds)
        and len(found.windows) > 1
        and len({(w.kind, w.slide, w.column, w.range if w.kind == "session" else None) for w in found.windows.values()})
        > 1
    ):
        raise InputError('emit="slide": these windows end at different rows; ask for them in separate calls')


def _one_of(name: str, value, allowed) -> None:
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def column_names(what: str, value) -> tuple[str, ...]:
    """by=, order=: none, one or several names of columns."""
    if value is None:
        return ()
    names = (value,) if isinstance(value, (str, bytes)) or not isinstance(value, Iterable) else tuple(value)
    for name in names:
        if not isinstance(name, str):
            raise InputTypeError(f"{what}= takes names of columns, not {name!r}")
    if len(set(names)) != len(names):
        raise InputError(f"{what}= names a column twice: {', '.join(names)}")
    return names


def _aggregates(aggs) -> dict[str, Bound | BoundStruct]:
    if not isinstance(aggs, dict):
        raise InputTypeError('aggs= is a dict of names and aggregates, such as {"total": sw.sum("amount")}')
    if not aggs:
        raise InputError('no aggregates; give at least one, such as aggs={"total": sw.sum("amount")}')
    found: dict[str, Bound | BoundStruct] = {}
    for name, value in aggs.items():
        if not isinstance(name, str):
            raise InputTypeError(f"aggs=: a name is text, not {name!r}")
        if isinstance(value, Operator):
            if value.inputs:
                raise InputError(
                    f'aggs=: {name!r} is not bound to a column; write {value.name}("amount") for the column amount'
                )
            value = value()
        if not isinstance(value, (Bound, BoundStruct)):
            raise InputTypeError(
                f'aggs=: {name!r} must be an operator bound to columns, such as sw.sum("amount"), not {value!r}'
            )
        found[name] = value
    return found
