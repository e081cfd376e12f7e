"""What a keyed stream is to do, in one object: windows, aggregates, lateness, and the schemas that go in, out and into the log.

`stream_spec(request, schema, ...)` checks everything once, where the stream is described; the engine (keyed.py) and whoever
hosts it read the result. It holds operators and types, no data and no compiled code, so it can be sent to other processes.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from slidewise.algebra.operator import Bound
from slidewise.algebra.typed import TypedOperator
from slidewise.errors import InputError, InputTypeError, UnsupportedError
from slidewise.live.outputs import result_type
from slidewise.live.structures import KEPT, LATE_TREES
from slidewise.planner.inputs import Input, input_of, plain, suited
from slidewise.planner.ladder import Choice, Task, choose
from slidewise.planner.request import Output, Request, column_names
from slidewise.planner.sharing import View, grouped
from slidewise.windows import spec as windows_
from slidewise.windows.bounds import room
from slidewise.windows.clock import DAY_NS, Clock, Ticks

RESULTS = ("eager", "final")
LATE = ("correct", "side", "drop")
BY_TIME = {"time", "tumbling"}
"""Windows whose boundaries are moments, not rows."""
REVISION, LATE_COLUMN, COMPLETE = "revision", "late", "complete"
HISTORY_COLUMN = "__slidewise_history"
"""In the log: whether a row only fills windows (it came from `history=`) and is never given out."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: an operator, how its columns reach it, and the type of its result."""

    name: str
    bound: Bound
    inputs: tuple[Input, ...]

    @cached_property
    def typed(self) -> TypedOperator:
        return self.bound.operator.typed(tuple(i.dtype for i in self.inputs))

    @cached_property
    def arrow(self) -> pa.DataType:
        return result_type(self.typed, self.inputs)

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k not in ("typed", "arrow")}


@dataclass(frozen=True)
class Choices:
    """The planner's choice of what a step is kept in (live/structures.py). The engine and `explain` read it here."""

    kept: Choice
    late: Choice | None = None
    """What is kept beside for keys that hold much and get late events one by one; None where they come in batches (streams)."""

    @property
    def tree(self) -> str | None:
        """The tree that such a key gets beside its events, if it gets one."""
        return self.late.algorithm if self.late is not None and self.late.algorithm in LATE_TREES else None


@dataclass(frozen=True)
class Step:
    """One state that is kept, and the aggregates read from it: count, sum, mean and std of a column share one."""

    bound: Bound
    inputs: tuple[Input, ...]
    views: tuple[View, ...]
    choices: Choices | None = None
    """What it is kept in; None only while that is being chosen."""

    @property
    def name(self) -> str:
        return "+".join(sorted(view.aggregate for view in self.views))  # whatever order they are asked in

    @cached_property
    def typed(self) -> TypedOperator:
        return self.bound.operator.typed(tuple(i.dtype for i in self.inputs))


@dataclass(frozen=True)
class StreamSpec:
    """A stream's windows and rules. Lengths and times are in ticks of `clock`; build it with `stream_spec`."""

    request: Request
    schema: pa.Schema
    clock: Clock
    ticks: dict[str, Ticks]
    aggregates: tuple[Aggregate, ...]
    """Every operator with a result of its own; the members of a struct are `name.member`."""
    id: tuple[str, ...]
    results: str
    late: str
    keep: int | float
    delay: int | float | None
    """How long out-of-order events are waited for (`watermark=`), for whoever computes the watermark."""
    max_ahead: int | float | None
    ttl: int | float | None
    """How long an idle key's events serve windows that do not end with time (rows, delta, punctuation, lifetime)."""
    known_from: int | float | None
    """What is known begins here; None: with the first event."""
    complete: bool
    arrival: bool = False
    """Whether ties that `order=` leaves go by arrival, as on a frame (`Live`). On a stream nothing may depend on it."""
    stored: tuple[str, ...] = field(default=())
    """Columns that are kept with an event; others ride along once and are null when a result comes again."""
    known_until: int | float | None = None
    """The youngest event of all of the history; None: of that which this engine is given."""
    choices: tuple[Choices, ...] = ()
    """For each of the steps; travels with the spec, so that every process runs what was explained."""

    @property
    def time(self) -> str:
        return self.request.time

    @property
    def by(self) -> tuple[str, ...]:
        return self.request.by

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.request.outputs

    @property
    def emit(self) -> str:
        return self.request.emit

    @property
    def idle(self) -> int | float | None:
        """A key is gone where the watermark is further ahead than this of all its events; None: never.

        However short `ttl` is, windows that end with time need a key's events as long as they do; and an event that comes late
        but is still taken in finds what it would have found in time."""
        return None if self.ttl is None else self.keep + max(self.ttl, self.reach)

    @cached_property
    def tie_columns(self) -> tuple[str, ...]:
        """What orders events of one key and time: `order=`, then arrival; on a stream the columns looked at, then the id."""
        if self.arrival:
            return self.request.order
        names = list(self.request.order)
        for aggregate in self.aggregates:
            names += aggregate.bound.needed
        for window in self.request.windows.values():
            names += window.needed
        names += self.id
        return tuple(name for name in dict.fromkeys(names) if name != self.time and name not in self.by)

    @cached_property
    def stored_columns(self) -> tuple[str, ...]:
        """Columns of the log, in the order of the input."""
        kept = {self.time, *self.by, *self.id, *self.tie_columns, *self.stored}
        return tuple(name for name in self.schema.names if name in kept)

    @cached_property
    def log_schema(self) -> pa.Schema:
        fields = [self.schema.field(name) for name in self.stored_columns]
        return pa.schema([*fields, pa.field(HISTORY_COLUMN, pa.bool_())])

    @cached_property
    def riding_columns(self) -> tuple[str, ...]:
        """Columns of the input that come out again: all of them for each event, otherwise key and time."""
        if self.emit == "event":
            return tuple(self.schema.names)
        return (*self.by, self.time)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The states that are kept."""
        by_name = {a.name: a for a in self.aggregates}
        by_bound = {id(a.bound): a.inputs for a in self.aggregates}
        groups = grouped(
            {a.name: a.bound for a in self.aggregates}, lambda bound: tuple(i.dtype for i in by_bound[id(bound)])
        )
        chosen = self.choices or (None,) * len(groups)
        return tuple(
            Step(group.bound, by_name[group.views[0].aggregate].inputs, group.views, choices)
            for group, choices in zip(groups, chosen, strict=True)
        )

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k not in ("steps", "no_results")}

    @cached_property
    def output_schema(self) -> pa.Schema:
        leaves = {a.name: a.arrow for a in self.aggregates}
        struct = lambda parts: pa.struct(list(parts.items()))
        types = {name: self.request.put_together(name, leaves.__getitem__, struct) for name in self.request.aggs}
        fields = [pa.field(name, self.schema.field(name).type) for name in self.riding_columns]
        fields += [pa.field(output.column, types[output.aggregate]) for output in self.outputs]
        fields.append(pa.field(REVISION, pa.int64()))
        if self.late != "drop":
            fields.append(pa.field(LATE_COLUMN, pa.bool_()))
        if self.complete:
            fields.append(pa.field(COMPLETE, pa.bool_()))
        return pa.schema(fields)

    @cached_property
    def no_results(self) -> pa.Table:
        """To make an empty table takes Arrow as long as a single event takes the engine."""
        return self.output_schema.empty_table()

    @cached_property
    def reach(self) -> int | float:
        """How far behind its row a window looks that ends with time: what is older serves no such window."""
        found: int | float = 0
        for ticks in self.ticks.values():
            if ticks.kind in ("time", "tumbling", "session"):
                found = max(found, ticks.range + ticks.offset + ticks.slide)
        return found

    @cached_property
    def room(self) -> tuple:
        """(lowest, highest) time at which every window can be counted."""
        found = [room(ticks, self.clock.dtype, self.emit == "slide") for ticks in self.ticks.values()]
        return max(low for low, _ in found), min(high for _, high in found)

    @cached_property
    def endless(self) -> bool:
        """Whether some window does not end with time, so that an idle key's last events still serve it."""
        return any(ticks.kind in ("rows", "delta", "punctuation", "lifetime") for ticks in self.ticks.values())


def stream_spec(
    request: Request,
    schema: pa.Schema,
    *,
    id=None,
    results: str = "eager",
    late: str | None = None,
    keep=None,
    watermark=None,
    max_ahead=None,
    ttl=None,
    known_from=None,
    complete: bool = False,
    arrival: bool = False,
    stored=None,
) -> StreamSpec:
    """Check a streaming request and bring it into the form the engine runs on.

    Lengths (keep, watermark, max_ahead, ttl) are as in `windows=`: "10m", a timedelta, or a number for number columns. late:
    "correct" where results are eager, otherwise "side". stored: columns to keep beside the needed ones (None: all).
    """
    request.check_columns(schema.names)
    if results not in RESULTS:
        raise InputError(f"results must be one of {', '.join(map(repr, RESULTS))}, not {results!r}")
    if late is None:
        late = "correct" if results == "eager" else "side"
    if late not in LATE:
        raise InputError(f"late must be one of {', '.join(map(repr, LATE))}, not {late!r}")
    if results == "final" and late == "correct":
        raise InputError(
            'late="correct" gives results again, and results="final" gives each once; take results="eager", '
            'or late="side" or "drop"'
        )
    ids = column_names("id", id)
    for name in ids:
        if name not in schema.names:
            raise InputError(f"id: no column {name!r} in the data; it has {', '.join(map(repr, schema.names))}")
    for name in stored or ():
        if name not in schema.names:
            raise InputError(f"stored: no column {name!r} in the data; it has {', '.join(map(repr, schema.names))}")
    schema = pa.schema([pa.field(f.name, plain(f.type)) for f in schema])
    if request.emit != "event":  # key, time and results come out: nothing else need be taken along
        wanted = {*request.needed, *ids, *(stored or ())}
        schema = pa.schema([f for f in schema if f.name in wanted])
    types = {name: schema.field(name).type for name in schema.names}
    for name in request.by:
        if pa.types.is_nested(types[name]):
            raise InputError(f"a key of type {types[name]} is not supported; take its fields apart")
    for window in request.windows.values():
        if window.calendar:
            raise InputError(f"the window {window}: calendar days are not served on streams; take a fixed length")
    kinds = {window.kind for window in request.windows.values()}
    if request.emit == "slide" and results == "eager" and not kinds <= BY_TIME:
        raise UnsupportedError(
            f'emit="slide" with {", ".join(sorted(kinds))} windows: which row ends a window is only certain when no late event can '
            'come; take results="final" (or emit="event")'
        )
    lengths = {"keep": keep, "watermark": watermark, "max_ahead": max_ahead, "ttl": ttl}
    said = {name: windows_._length(value, name, zero=True) for name, value in lengths.items() if value is not None}
    extra = [windows_.Window("time", length) for length in said.values()]
    clock = Clock.of(types[request.time], request.time).refined([*request.windows.values(), *extra])
    ticks = {name: clock.ticks(window, types) for name, window in request.windows.items()}
    measured = {name: clock.ticks(windows_.Window("time", length)).range for name, length in said.items()}
    largest = max((t.range + t.offset for t in ticks.values() if t.kind in ("time", "tumbling", "session")), default=0)
    kept = measured.get("keep", largest) if late == "correct" else 0
    lifetime = any(t.kind == "lifetime" for t in ticks.values())
    found = StreamSpec(
        request=request,
        schema=schema,
        clock=clock,
        ticks=ticks,
        aggregates=tuple(_aggregate(name, bound, types, lifetime) for name, bound in request.leaves.items()),
        id=ids,
        results=results,
        late=late,
        keep=kept,
        delay=measured.get("watermark"),
        max_ahead=measured.get("max_ahead"),
        ttl=measured.get("ttl"),
        known_from=known_from,
        complete=bool(complete),
        arrival=arrival,
        stored=tuple(schema.names) if stored is None else tuple(stored),
    )
    if results == "final" and found.emit == "event" and set(found.stored_columns) != set(schema.names):
        raise InputError('results="final" gives rows out later, so all their columns must be stored; leave out stored=')
    _ = found.room  # there is some
    tick = DAY_NS // clock.tick_ns if pa.types.is_date64(types[request.time]) else clock.scale
    between = tick > 1 and any(t.slide % tick or t.origin % tick for t in ticks.values())
    if found.emit == "slide" and between:
        raise InputError(
            f"boundaries fall between the ticks of the time column {request.time!r}; cast it to a finer unit first"
        )
    taken = set(found.riding_columns) | {o.column for o in found.outputs}
    for name in (REVISION, LATE_COLUMN, COMPLETE):
        if name in taken and name in found.output_schema.names[len(found.riding_columns) + len(found.outputs) :]:
            raise InputError(
                f"the stream adds a column {name!r}, and the data or the results have one already; rename it"
            )
    return replace(found, choices=tuple(_choices(found, step) for step in found.steps))


def _choices(spec: StreamSpec, step: Step) -> Choices:
    """What the ladder says for a step."""
    windows, ticks = spec.request.windows, spec.ticks
    closed_in = 1 if spec.request.closed == "both" else 0
    counted = [int(window.range) + closed_in for window in ticks.values() if window.kind == "rows"]
    task = Task(
        step.typed,
        len(ticks),
        spec.request.prefer,
        order="any",
        kept=True,
        longest=max(counted) if len(counted) == len(ticks) else None,
        among=KEPT,
    )
    kept = choose(task, spec.request.algorithm)
    if not spec.arrival:
        return Choices(kept)
    places = [str(windows[name]) for name, window in ticks.items() if window.kind not in BY_TIME | {"lifetime"}]
    places += ["order="] if spec.request.order else []
    places += ["exclude_current=True"] if spec.request.exclude_current else []
    folded = [str(windows[name]) for name, window in ticks.items() if window.kind == "lifetime" and spec.delay is not None]
    late = replace(task, single=True, places=", ".join(places), folded=", ".join(folded), among=KEPT + LATE_TREES)
    return Choices(kept, choose(late))


def _aggregate(name: str, bound: Bound, types: dict, lifetime: bool) -> Aggregate:
    inputs = []
    bound = suited(bound, types)
    for place, column in enumerate(bound.columns):
        found = input_of(bound.operator, place, column, types[column])
        # Ranks among all values are not known on a stream; a lifetime outlives the rows that positions point to.
        if found.kind == "rank" or (found.kind == "position" and lifetime):
            found = Input(column, found.arrow, "object")
        inputs.append(found)
    if bound.where is not None and not pa.types.is_boolean(types[bound.where]):
        raise InputTypeError(f"where={bound.where!r} must be a column of truth values, not {types[bound.where]}")
    return Aggregate(name, bound, tuple(inputs))
