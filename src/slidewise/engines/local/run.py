"""Execute a plan on Arrow tables.

    1. sort once by (key, time, order)                                  order.py
    2. the targets and their frames, once for all aggregates             targets.py, windows/bounds.py
    3. one compiled sweep for each step and window, over all keys at once   sweeps.py, slicing.py
    4. results back in the order of the rows                            columns.py

`run` and `run_as_of` take and give Arrow tables: what other engines call inside their workers.
"""

import numpy as np
import pyarrow as pa

from slidewise.algorithms import algorithm
from slidewise.engines.local.columns import (
    Column,
    all_set,
    fixed_width,
    one_array,
    ordered_categories,
    result_array,
    truth_bytes,
    truths,
)
from slidewise.engines.local.frames import Unlooked
from slidewise.engines.local.keys import Keys, encode, missing_time, times_of
from slidewise.engines.local.order import Ordered, arrange, as_they_come
from slidewise.engines.local.slicing import Cut, Slices
from slidewise.engines.local.sweeps import (
    Job,
    can_pass,
    sweep,
    sweep_around,
    sweep_passing,
    sweep_ranges,
    sweep_runs,
    sweep_tree,
)
from slidewise.engines.local.targets import Passing, Targets, for_boundaries, for_queries, for_rows, for_youngest
from slidewise.engines.local.threads import LARGE, Progress, Workers
from slidewise.errors import InputTypeError, UnsupportedError
from slidewise.live.outputs import frame_type, objects
from slidewise.planner.inputs import Input, is_ordered, plain
from slidewise.planner.plan import Plan, Step, make_plan
from slidewise.planner.request import Request
from slidewise.planner.sharing import View
from slidewise.windows.clock import Clock


def run(
    plan: Plan,
    table: pa.Table,
    *,
    threads: int | None = None,
    missing: int | None = None,
    unlooked: Unlooked | None = None,
) -> pa.Table:
    """emit="event": the table with one more column for each result. "slide", "latest": key, time and results.

    missing: the number that stands for a missing time, if nobody has looked for it yet. unlooked: columns that only aggregates
    read, if nobody has looked for nulls in them."""
    if _one_pass(plan, table):
        with Workers(threads) as workers:
            times = times_of(table.column(plan.request.time), plan.clock, plan.request.time, missing)
            ordered = as_they_come(times, None if unlooked is None else unlooked.whole, workers)
            if ordered is not None and times[0] != missing:
                try:
                    return _fill(plan, table, ordered, for_rows(plan, table, ordered))
                except Exception:  # NotAsAssumed; and what rows in a wrong order bring about says nothing of them in the right one
                    pass
    table = table if unlooked is None else unlooked.settled(table)
    with Workers(threads) as workers:
        keys = encode([table.column(name) for name in plan.request.by])
        ordered = _arranged(plan, table, keys, workers, missing)
        make = {"event": for_rows, "latest": for_youngest, "slide": for_boundaries}[plan.request.emit]
        return _fill(plan, table, ordered, make(plan, table, ordered))


def _one_pass(plan: Plan, table: pa.Table) -> bool:
    """Whether all rows are one key and are passed over but once, compiled: then even a look whether they are sorted is dear."""
    request = plan.request
    plain = request.emit == "event" and not (request.by or request.exclude_current or plan.slices)
    return plain and len(table) >= LARGE and [len(step.passes) for step in plan.steps if step.typed.compiled] == [1]


def run_as_of(
    plan: Plan,
    queries: pa.Table,
    table: pa.Table,
    *,
    query_time: str | None = None,
    query_by: tuple[str, ...] | None = None,
    threads: int | None = None,
    missing: tuple[int | None, int | None] = (None, None),
    unlooked: Unlooked | None = None,
) -> pa.Table:
    """The queries with one more column for each result: windows of the table that end at each query's key and time."""
    request = plan.request
    query_time, query_by = query_time or request.time, request.by if query_by is None else query_by
    table = table if unlooked is None else unlooked.settled(table)
    plan = for_both(plan, table.schema, queries.column(query_time).type, query_time)
    with Workers(threads) as workers:
        n = len(table)
        both = [_joined(table.column(a), queries.column(b), a, b) for a, b in zip(request.by, query_by)]
        keys = encode(both)
        split = lambda part: Keys(None if keys.codes is None else keys.codes[part], keys.count)
        ordered = _arranged(plan, table, split(slice(None, n)), workers, missing[1])
        asked = _sorted(queries.column(query_time), plan.clock, query_time, split(slice(n, None)), [], workers, missing[0])
        return _fill(plan, table, ordered, for_queries(plan, queries, asked, table, ordered))


def _arranged(plan: Plan, table: pa.Table, keys: Keys, workers: Workers, missing: int | None) -> Ordered:
    request = plan.request
    ties = [table.column(name) for name in request.order]
    return _sorted(table.column(request.time), plan.clock, request.time, keys, ties, workers, missing)


def _sorted(column, clock: Clock, name: str, keys: Keys, ties: list, workers: Workers, missing: int | None) -> Ordered:
    times = times_of(column, clock, name, missing)
    ordered = arrange(times, keys, ties, workers)
    begins = ordered.offsets[:-1][np.diff(ordered.offsets) > 0]
    if missing is not None and len(begins) and ordered.times[begins].min() == missing:  # the lowest number is sorted to the front
        raise missing_time(name, times == missing)
    return ordered


def for_both(plan: Plan, schema: pa.Schema, queries: pa.DataType, name: str) -> Plan:
    """The plan with a clock that counts the times of both tables: dates and timestamps, seconds and nanoseconds, whole
    numbers and fractions. Nothing is rounded: a query at noon is not one at midnight."""
    data, queries = plain(schema.field(plan.request.time).type), plain(queries)
    if data == queries:
        return plan
    clock = Clock.of(queries, name)
    zones = [getattr(kind, "tz", None) is not None for kind in (data, queries)]
    lengths = [pa.types.is_duration(kind) for kind in (data, queries)]
    numbers = [Clock.of(data, plan.request.time).kind == "instant", clock.kind == "instant"]
    if any(a != b for a, b in (zones, lengths, numbers)):
        raise InputTypeError(
            f"column {name!r} of the queries is {queries}, the data's {plan.request.time!r} is {data}: they do not count the same "
            "thing; convert one of them" + (" (one has a time zone, the other has none)" if zones[0] != zones[1] else "")
        )
    return make_plan(plan.request, schema, beside=clock)


def explained_for(plan: Plan, queries: pa.Table, table: pa.Table, query_time: str, query_by: tuple[str, ...]) -> Plan:
    """The plan that `run_as_of` would run, or what it would refuse of these types; no row is looked at."""
    for mine, theirs in zip(plan.request.by, query_by):
        _joined(table.column(mine).slice(0, 0), queries.column(theirs).slice(0, 0), mine, theirs)
    return for_both(plan, table.schema, queries.schema.field(query_time).type, query_time)


def _joined(data, queries, name: str, query_name: str):
    """A key column of both tables as one, in a type that holds the values of both."""
    mine, theirs = plain(data.type), plain(queries.type)
    try:
        kind = mine if mine == theirs else _common(mine, theirs)
        return pa.chunked_array([one_array(column).cast(kind) for column in (data, queries)])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputTypeError(
            f"key column {query_name!r} of the queries is {queries.type}, the data's {name!r} is {data.type}: {error}"
        ) from None


def _common(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """A type for keys of both; the number 1 and the text "1" are no equal keys."""
    if pa.types.is_null(a) or pa.types.is_null(b):
        return b if pa.types.is_null(a) else a
    for family, kind in (
        ((pa.types.is_integer,), pa.int64()),
        ((pa.types.is_integer, pa.types.is_floating), pa.float64()),
        ((pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view), pa.large_string()),
        ((pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view), pa.large_binary()),
    ):
        if all(any(test(one) for test in family) for one in (a, b)):
            return kind
    if pa.types.is_timestamp(a) and pa.types.is_timestamp(b) and (a.tz is None) == (b.tz is None):
        finest = max((a, b), key=lambda kind: ("s", "ms", "us", "ns").index(kind.unit))
        return pa.timestamp(finest.unit, a.tz)
    if pa.types.is_decimal(a) and pa.types.is_decimal(b):
        scale = max(a.scale, b.scale)
        digits = max(a.precision - a.scale, b.precision - b.scale) + scale
        return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(min(digits, 76), scale)
    raise pa.ArrowInvalid("no value of the one equals one of the other; convert one of them")


def _fill(plan: Plan, table: pa.Table, ordered: Ordered, targets: Targets) -> pa.Table:
    columns = Columns(table, ordered)
    results: dict[tuple[str, str], pa.Array] = {}
    progress = Progress(
        sum(len(step.passes) for step in plan.steps), len(targets.table), "as_of" if plan.request.as_of else "rolling"
    )
    ordered.workers.progress = progress
    try:
        cut = None
        if plan.slices is not None:
            cut = Cut(plan.slices, ordered.times, ordered.offsets, targets.frames)
        for step in plan.steps:
            _run_step(step, columns, targets, results, progress, cut)
            columns.forget()
    finally:
        progress.close()
    out = targets.table
    for name, array in output_columns(plan.request, results):
        out = out.append_column(name, array)
    return out


def output_columns(request: Request, results: dict[tuple[str, str], pa.Array]):
    """(name, array) for each result column, from the results by (aggregate, window)."""
    for output in request.outputs:
        found = lambda leaf, window=output.window: results[leaf, window]
        yield output.column, request.put_together(output.aggregate, found, structs)


def structs(parts: dict[str, pa.Array]) -> pa.Array:
    """The results of a struct's members as one column."""
    return pa.StructArray.from_arrays(list(parts.values()), list(parts))


def _run_step(
    step: Step, columns: "Columns", targets: Targets, results: dict, progress: Progress, cut: Cut | None
) -> None:
    """Every pass of a step; the results of each aggregate and window."""
    X = tuple(columns.sorted(spec) for spec in step.inputs)
    job = Job(columns.ordered.workers, algorithm(step.algorithm), step.typed, X, columns.mask(step))
    slices = None
    for run_over in step.passes:
        progress.step(f"{', '.join(step.aggregates)} over {', '.join(run_over.windows)}")
        frames = [targets.frames[name] for name in run_over.windows]
        if run_over.entries == "slices":
            slices = slices or Slices(job, cut)
            found = [slices.sweep(run_over.windows[0])]
        elif len(frames) > 1:
            found = _split(
                sweep_ranges(job, [f.starts for f in frames], frames[0].ends, targets.offsets), len(frames), step
            )
        elif isinstance(frames[0], Passing) and run_over.entries == "rows" and can_pass(job):
            found = [sweep_passing(job, frames[0], targets.offsets)]
        elif frames[0].behind is not None and job.alg.info.order == "any":
            raise UnsupportedError(
                f"{step.algorithm} answers one frame at a time, and exclude_current among rows of the same time has two for each "
                'row; take "auto", or ties="arrival"'
            )
        elif job.alg.info.order == "any":
            found = [sweep_tree(job, frames[0].starts, frames[0].ends, run_over.entries == "runs")]
        elif frames[0].behind is not None:
            found = [sweep_around(job, (frames[0].starts, frames[0].ends), frames[0].behind, targets.offsets)]
        else:
            over = sweep_runs if run_over.entries == "runs" else sweep
            found = [over(job, frames[0].starts, frames[0].ends, targets.offsets)]
        for name, frame, (out, ok) in zip(run_over.windows, frames, found):
            if frame.answered is not None:
                ok = frame.answered if ok is None else ok & frame.answered
            for view, array in step_results(step, columns, targets, out, ok, frame.answered):
                results[view.aggregate, name] = array


def _split(found, windows: int, step: Step) -> list:
    """The results of a pass over several windows, window by window."""
    out, ok = found

    def part(values, q):
        size = len(values) // windows
        return values[size * q : size * (q + 1)]

    return [
        (
            tuple(part(leaf, q) for leaf in out) if step.typed.compiled else part(out, q),
            None if ok is None else part(ok, q),
        )
        for q in range(windows)
    ]


class Columns:
    """The columns operators read, converted and sorted once."""

    def __init__(self, table: pa.Table, ordered: Ordered):
        self.table, self.ordered = table, ordered
        self._columns: dict[Input, Column] = {}
        self._sorted: dict[Input, object] = {}
        self._where: dict[str, np.ndarray] = {}

    def column(self, spec: Input) -> Column:
        if spec not in self._columns:
            column = self.table.column(spec.column)
            by_category = spec.kind == "rank" and is_ordered(spec.arrow)
            self._columns[spec] = Column(
                spec, ordered_categories(column, spec.column) if by_category else one_array(column)
            )
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


def step_results(step: Step, columns: Columns, targets: Targets, out, ok, answered):
    """(view, array) for each aggregate of a step."""
    typed = step.typed
    if not typed.compiled:
        yield from _object_results(step, columns, targets, out, ok)
        return
    if len(step.views) == 1:
        leaves, ok = tuple(targets.restored(leaf, typed.result.width) for leaf in out), _restored_flags(targets, ok)
        like = typed.operator.result_like
        if like is not None:
            yield step.views[0], columns.column(step.inputs[like]).give_back(leaves[0], ok)
        else:
            yield step.views[0], result_array(typed.result, leaves, ok)
        return
    some = _restored_flags(targets, ok)
    for view in step.views:
        values = targets.restored(out[view.value])
        good = some
        if view.flag is not None:
            flags = out[view.flag]
            good = _restored_flags(targets, flags if ok is None else flags & ok)
        if (
            view.bound.operator.empty is not None
        ):  # a count of an empty window is 0, where the window has an answer at all
            if some is not None:
                values[some == 0] = view.bound.operator.empty
            good = None if answered is None else targets.restored(answered)
        yield view, _one_result(view, step, columns, values, good)


def _one_result(view: View, step: Step, columns: Columns, values: np.ndarray, good: np.ndarray | None) -> pa.Array:
    like = view.bound.operator.result_like
    if like is not None:
        return columns.column(step.inputs[like]).give_back(values, good)
    if step.typed.result.leaves[view.value].dtype == np.bool_:
        return truths(values, good)
    return fixed_width(values, good, pa.from_numpy_dtype(values.dtype))


def _restored_flags(targets: Targets, ok) -> np.ndarray | None:
    """A byte for each row of the table; None where all are set."""
    return None if ok is None or all_set(ok) else targets.restored(ok)


def _object_results(step: Step, columns: Columns, targets: Targets, out, ok):
    values = targets.restored([value if good else None for value, good in zip(out, ok.tolist())])
    if len(step.views) == 1:
        yield step.views[0], _objects(step.views[0], step, columns, values)
        return
    for view in step.views:
        empty = view.bound.operator.empty
        found = [empty if r is None else r[view.value] if view.flag is None or r[view.flag] else None for r in values]
        yield view, _objects(view, step, columns, found)


def _objects(view: View, step: Step, columns: Columns, values: list) -> pa.Array:
    """The results of one aggregate as the column a user expects."""
    like = view.bound.operator.result_like
    spec = None if like is None else step.inputs[like]
    if spec is None or spec.kind == "object":
        op = view.bound.operator
        some = any(value is not None for value in values)
        kind = plain(spec.arrow) if spec else frame_type(op.typed(tuple(i.dtype for i in step.inputs)), step.inputs, some)
        return objects(values, kind, op.signature)
    good = np.array([value is not None for value in values], np.uint8)
    numbers = np.array([0 if value is None else value for value in values], spec.dtype)
    return columns.column(spec).give_back(numbers, good)
