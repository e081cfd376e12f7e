"""The plan: what is computed from what, by which algorithm. Executors and `explain` read the same object.

    Plan
      request    what was asked
      clock      what the time column counts in; ticks: each window in its units
      steps      one for each state that is computed: operator, inputs, algorithm, passes, and the results it gives
      slices     how time is cut where windows slide (planner/slices.py), or None

A plan holds operators and types, no data and no compiled code: it can be sent to another process.
"""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from slidewise.algebra.operator import Bound
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithm
from slidewise.errors import InputTypeError, UnsupportedError
from slidewise.planner.inputs import Input, input_of, plain, suited
from slidewise.planner.ladder import Choice, Task, choose
from slidewise.planner.request import Request
from slidewise.planner.sharing import Group, View, grouped, may_join, side_by_side
from slidewise.planner.slices import Query, SharedPlan, best_plan
from slidewise.windows.bounds import end_rule
from slidewise.windows.clock import Clock, Ticks

ENTRIES = ("rows", "runs", "slices")
"""What an algorithm holds an entry for: each row; each run of rows that leave together; each slice of the shared plan."""


@dataclass(frozen=True)
class Pass:
    """One run over the rows: the windows it answers, and what is an entry."""

    windows: tuple[str, ...]
    entries: str


@dataclass(frozen=True)
class Step:
    """One operator over the windows, and the aggregates it gives."""

    bound: Bound
    inputs: tuple[Input, ...]
    views: tuple[View, ...]
    passes: tuple[Pass, ...]
    choice: Choice

    @cached_property
    def typed(self) -> TypedOperator:
        return self.bound.operator.typed(tuple(i.dtype for i in self.inputs))

    @property
    def aggregates(self) -> tuple[str, ...]:
        return tuple(view.aggregate for view in self.views)

    @property
    def algorithm(self) -> str:
        return self.choice.algorithm

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "typed"}


@dataclass(frozen=True)
class Plan:
    """Everything an executor needs beside the rows."""

    request: Request
    clock: Clock
    ticks: dict[str, Ticks]
    steps: tuple[Step, ...]
    slices: SharedPlan | None = None
    """What passes over "slices" cut the rows by; None where there are none."""


def make_plan(request: Request, schema: pa.Schema, beside: Clock | None = None) -> Plan:
    """Plan a request for data of this schema (only the needed columns are looked at). beside: what as_of's queries count in."""
    types = {name: schema.field(name).type for name in request.needed}
    clock = Clock.of(types[request.time], request.time).refined(request.windows.values())
    clock = clock if beside is None else clock.beside(beside)
    plainly = {name: plain(kind) for name, kind in types.items()}
    ticks = {name: clock.ticks(window, plainly) for name, window in request.windows.items()}
    _check_types(request, plainly, ticks)
    slices = _slices(request, clock, ticks)

    def inputs_of(bound: Bound) -> tuple[Input, ...]:
        return tuple(input_of(bound.operator, k, column, types[column]) for k, column in enumerate(bound.columns))

    leaves = {name: suited(bound, types) for name, bound in request.leaves.items()}
    groups = grouped(leaves, lambda bound: tuple(i.dtype for i in inputs_of(bound)))
    steps = [(group, _step(group, inputs_of(group.bound), request, ticks, slices)) for group in groups]
    joined = _joined(steps, request, ticks, slices)
    sliced = any(one.entries == "slices" for step in joined for one in step.passes)
    return Plan(request, clock, ticks, joined, slices if sliced else None)


def _check_types(request: Request, types: dict[str, pa.DataType], ticks: dict[str, Ticks]) -> None:
    """Complain of columns that cannot be what they are to be, whether or not there are rows."""
    truths = {f"where={bound.where!r}": bound.where for bound in request.leaves.values() if bound.where is not None}
    truths |= {f"sw.punctuation({w.column!r})": w.column for w in request.windows.values() if w.kind == "punctuation"}
    for what, name in truths.items():
        if not pa.types.is_boolean(types[name]):
            raise InputTypeError(f"{what} must be a column of truth values, not {types[name]}")
    if request.emit == "slide" and any(window.calendar for window in ticks.values()):
        raise UnsupportedError(
            'emit="slide" has boundaries a fixed time apart; local days (calendar=True) need emit="event" or "latest"'
        )


def _joined(steps: list[tuple[Group, Step]], request: Request, ticks: dict[str, Ticks], slices) -> tuple[Step, ...]:
    """Steps that read the same column and would run alike, as one."""
    alike: dict[tuple, list[tuple[Group, Step]]] = {}
    for number, (group, step) in enumerate(steps):
        types = tuple(i.dtype for i in step.inputs)
        shared = step.algorithm != "slick_deque" and may_join(group, types)  # a deque serves many windows, but one operator
        key = (step.inputs, step.bound.where, step.algorithm, step.passes) if shared else (number,)
        alike.setdefault(key, []).append((group, step))
    found = []
    for members in alike.values():
        inputs = members[0][1].inputs
        groups = side_by_side([group for group, _ in members], tuple(i.dtype for i in inputs))
        found += [_step(group, inputs, request, ticks, slices) for group in groups]
    return tuple(found)


def _step(group: Group, inputs: tuple[Input, ...], request: Request, ticks: dict[str, Ticks], slices) -> Step:
    typed = group.bound.operator.typed(tuple(i.dtype for i in inputs))
    sliced = {query.name: ticks[query.name] for query in slices.queries} if slices is not None else {}
    others = {name: window for name, window in ticks.items() if name not in sliced}
    together: list[tuple[str, ...]] = [(name,) for name in others]
    if not request.exclude_current:
        together = _same_ends(request, others)
    task = Task(typed, max((len(names) for names in together), default=1), request.prefer)
    choice = choose(task, request.algorithm)
    if algorithm(choice.algorithm).info.order == "any":
        sliced, others = {}, ticks
    passes = [Pass((name,), "slices") for name in sliced]
    if choice.algorithm == "slick_deque" and not request.exclude_current:
        passes += [Pass(names, "rows") for names in together]
    else:
        passes += [Pass((name,), _entries(window, request)) for name, window in others.items()]
    return Step(group.bound, inputs, group.views, tuple(passes), choice)


def _entries(window: Ticks, request: Request) -> str:
    """Rows that leave together are one entry: always where a window begins anew, and where it slides in steps."""
    if request.exclude_current or request.as_of:
        return "rows"
    stepwise = window.kind in ("tumbling", "session", "punctuation", "lifetime") or (
        window.kind == "time" and window.slide
    )
    return "runs" if stepwise else "rows"


def _same_ends(request: Request, ticks: dict[str, Ticks]) -> list[tuple[str, ...]]:
    """The windows by what their ends depend on: those of one group can be answered in one pass."""
    found: dict[tuple, list[str]] = {}
    for name, window in ticks.items():
        rule = end_rule(window, request.ties, request.closed)
        if request.as_of and rule[0] == "row":
            rule = ("moment", 0, 0, 0)
        found.setdefault(rule, []).append(name)
    return [tuple(names) for names in found.values()]


def _slices(request: Request, clock: Clock, ticks: dict[str, Ticks]) -> SharedPlan | None:
    """The slices of windows that slide, for clocks that count in whole ticks: of all with emit="slide"; otherwise rows and queries
    take the value at their last boundary, and it is worth it where several windows share them."""
    listed = request.emit == "slide"
    kinds = ("time", "tumbling") if listed else ("time",)
    cut = {n: w for n, w in ticks.items() if clock.kind != "real" and w.kind in kinds and w.slide and not w.calendar}
    if len(cut) < (len(ticks) if listed else 2) or request.exclude_current:
        return None
    queries = [Query(name, int(w.range), int(w.slide), int(w.origin), int(w.offset)) for name, w in cut.items()]
    return best_plan(queries, request.closed)
