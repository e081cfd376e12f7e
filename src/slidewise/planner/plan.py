"""The plan: what is computed from what, by which algorithm. Executors and `explain` read the same object.

    Plan
      request    what was asked
      clock      what the time column counts in; ticks: each window in its units
      steps      one for each state that is computed: operator, inputs, algorithm, windows it serves, results it gives

A plan holds operators and types, no data and no compiled code: it can be sent to another process.
"""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from slidewise.algebra.operator import Bound
from slidewise.algebra.typed import TypedOperator
from slidewise.planner.inputs import Input, input_of
from slidewise.planner.ladder import Choice, choose
from slidewise.planner.request import Request
from slidewise.windows.clock import Clock, Ticks


@dataclass(frozen=True)
class Step:
    """One operator over one or more windows."""

    aggregate: str
    bound: Bound
    inputs: tuple[Input, ...]
    windows: tuple[str, ...]
    choice: Choice

    @cached_property
    def typed(self) -> TypedOperator:
        return self.bound.operator.typed(tuple(i.dtype for i in self.inputs))

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


def make_plan(request: Request, schema: pa.Schema) -> Plan:
    """Plan a request for data of this schema (only the needed columns are looked at)."""
    types = {name: schema.field(name).type for name in request.needed}
    clock = Clock.of(types[request.time], request.time).refined(request.windows.values())
    ticks = {name: clock.ticks(window) for name, window in request.windows.items()}
    steps = []
    for name, bound in request.aggs.items():
        inputs = tuple(input_of(bound.operator, k, c, types[c]) for k, c in enumerate(bound.columns))
        typed = bound.operator.typed(tuple(i.dtype for i in inputs))
        steps.append(Step(name, bound, inputs, tuple(request.windows), choose(typed, request.prefer, request.algorithm)))
    return Plan(request, clock, ticks, tuple(steps))
