"""Execute a plan on Arrow tables.

    1. sort once by (key, time, order)                                  order.py
    2. the targets and their frames, once for all aggregates             targets.py, windows/bounds.py
    3. one compiled sweep for each step and window, over all keys at once   sweeps.py
    4. results back in the order of the rows                            columns.py

`run` and `run_as_of` take and give Arrow tables: what other engines call inside their workers.
"""

import numpy as np
import pyarrow as pa

from slidewise.algorithms import algorithm
from slidewise.engines.local.columns import Column, object_array, one_array, result_array, truth_bytes
from slidewise.engines.local.keys import Keys, encode, times_of
from slidewise.engines.local.order import Ordered, arrange
from slidewise.engines.local.sweeps import sweep, sweep_around
from slidewise.engines.local.targets import Frames, Targets, for_boundaries, for_queries, for_rows, for_youngest
from slidewise.engines.local.threads import Progress, Workers
from slidewise.errors import InputTypeError
from slidewise.planner.inputs import Input, plain
from slidewise.planner.plan import Plan, Step


def run(plan: Plan, table: pa.Table, *, threads: int | None = None) -> pa.Table:
    """emit="event": the table with one more column for each result. "slide", "latest": key, time and results."""
    with Workers(threads) as workers:
        keys = encode([table.column(name) for name in plan.request.by])
        ordered = _arranged(plan, table, keys, workers)
        make = {"event": for_rows, "latest": for_youngest, "slide": for_boundaries}[plan.request.emit]
        return _fill(plan, table, ordered, make(plan, table, ordered))


def run_as_of(plan: Plan, queries: pa.Table, table: pa.Table, *, query_time: str | None = None,
              query_by: tuple[str, ...] | None = None, threads: int | None = None) -> pa.Table:
    """The queries with one more column for each result: windows of the table that end at each query's key and time."""
    request = plan.request
    query_time, query_by = query_time or request.time, request.by if query_by is None else query_by
    with Workers(threads) as workers:
        n = len(table)
        both = [_joined(table.column(a), queries.column(b), a, b) for a, b in zip(request.by, query_by)]
        keys = encode(both)
        split = (lambda part: Keys(None if keys.codes is None else keys.codes[part], keys.count))
        ordered = _arranged(plan, table, split(slice(None, n)), workers)
        moments = times_of(_same_type(queries.column(query_time), table.column(request.time).type, query_time), plan.clock,
                           query_time)
        asked = arrange(moments, split(slice(n, None)), [], workers)
        return _fill(plan, table, ordered, for_queries(plan, queries, asked, table, ordered))


def _arranged(plan: Plan, table: pa.Table, keys: Keys, workers: Workers) -> Ordered:
    request = plan.request
    times = times_of(table.column(request.time), plan.clock, request.time)
    return arrange(times, keys, [table.column(name) for name in request.order], workers)


def _joined(data, queries, name: str, query_name: str):
    """A key column of both tables as one."""
    chunks = [one_array(data), one_array(_same_type(queries, plain(data.type), query_name))]
    return pa.chunked_array(chunks)


def _same_type(column, kind: pa.DataType, name: str):
    if plain(column.type) == plain(kind):
        return column
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputTypeError(f"column {name!r} of the queries is {column.type}, the data's is {kind}: {error}") from None


def _fill(plan: Plan, table: pa.Table, ordered: Ordered, targets: Targets) -> pa.Table:
    columns = Columns(table, ordered)
    results: dict[tuple[str, str], pa.Array] = {}
    progress = Progress(len(plan.steps) * len(plan.ticks), "rolling")
    try:
        for step in plan.steps:
            for name in step.windows:
                progress.step(f"{step.aggregate} over {name}")
                results[step.aggregate, name] = _result(step, columns, targets, targets.frames[name])
            columns.forget()
    finally:
        progress.close()
    out = targets.table
    for output in plan.request.outputs:
        out = out.append_column(output.column, results[output.aggregate, output.window])
    return out


class Columns:
    """The columns operators read, converted and sorted once."""

    def __init__(self, table: pa.Table, ordered: Ordered):
        self.table, self.ordered = table, ordered
        self._columns: dict[Input, Column] = {}
        self._sorted: dict[Input, object] = {}
        self._where: dict[str, np.ndarray] = {}

    def column(self, spec: Input) -> Column:
        if spec not in self._columns:
            self._columns[spec] = Column(spec, one_array(self.table.column(spec.column)))
        return self._columns[spec]

    def sorted(self, spec: Input):
        if spec not in self._sorted:
            self._sorted[spec] = self.ordered.sorted(self.column(spec).values)
        return self._sorted[spec]

    def mask(self, step: Step) -> np.ndarray | None:
        """A byte for each sorted place that says whether the row counts; None where all do."""
        op = step.bound.operator
        parts = []
        for place, spec in enumerate(step.inputs):
            kept = place in op.carried and len(op.carried) < len(step.inputs)
            if not kept and self.column(spec).valid is not None:
                parts.append(self.column(spec).valid)
        where = step.bound.where
        if where is not None:
            if where not in self._where:
                self._where[where] = truth_bytes(one_array(self.table.column(where)), f"where={where!r}")
            parts.append(self._where[where])
        if not parts:
            return None
        mask = parts[0]
        for more in parts[1:]:
            mask = mask & more
        return self.ordered.sorted(mask)

    def forget(self) -> None:
        """Let go of what is large and quickly made again."""
        self._sorted = {spec: values for spec, values in self._sorted.items() if not isinstance(values, list)}


def _result(step: Step, columns: Columns, targets: Targets, frames: Frames) -> pa.Array:
    typed = step.typed
    alg = algorithm(step.algorithm)
    X = tuple(columns.sorted(spec) for spec in step.inputs)
    if not typed.compiled:
        X = tuple(values if isinstance(values, list) else values.tolist() for values in X)
    arguments = (columns.ordered.workers, alg, typed, X, columns.mask(step))
    if frames.behind is None:
        out, ok = sweep(*arguments, frames.starts, frames.ends, targets.offsets)
    else:
        out, ok = sweep_around(*arguments, (frames.starts, frames.ends), frames.behind, targets.offsets)
    if frames.answered is not None:
        ok = ok & frames.answered
    like = typed.operator.result_like
    if not typed.compiled:
        values = targets.restored([value if good else None for value, good in zip(out, ok.tolist())])
        kind = None if like is None or step.inputs[like].kind != "object" else columns.column(step.inputs[like]).array.type
        return object_array(values, kind, step.bound.operator.signature)
    out, ok = tuple(targets.restored(part, typed.result.width) for part in out), targets.restored(ok)
    if like is not None:
        return columns.column(step.inputs[like]).give_back(out[0], ok)
    return result_array(typed.result, out, ok)
