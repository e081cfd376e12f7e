"""Execute a plan on Arrow tables.

    1. sort once by (key, time, order)                      order.py
    2. the frames of each window, once for all aggregates   windows/bounds.py
    3. one compiled sweep for each aggregate and window, over all keys at once
    4. results back in the order of the rows
"""

import numpy as np
import pyarrow as pa

from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithm, drivers
from slidewise.algorithms.protocol import SCRATCH, Algorithm
from slidewise.engines.local.columns import Column, one_array
from slidewise.engines.local.order import Ordered, sort
from slidewise.errors import InputTypeError
from slidewise.planner.plan import Plan, Step
from slidewise.windows.bounds import frames

_ALL = np.zeros(0, np.uint8)


def run(plan: Plan, table: pa.Table) -> pa.Table:
    """The table with one more column for each result."""
    request = plan.request
    ordered = sort(table, request.time, request.by, request.order, plan.clock)
    results = {}
    for name, ticks in plan.ticks.items():
        starts, ends = frames(ticks, ordered.times, ordered.offsets, closed=request.closed, ties=request.ties)
        for step in plan.steps:
            results[step.aggregate, name] = _sweep(step, table, ordered, starts, ends)
    for output in request.outputs:
        table = table.append_column(output.column, results[output.aggregate, output.window])
    return table


def _sweep(step: Step, table: pa.Table, ordered: Ordered, starts, ends) -> pa.Array:
    columns = [Column(spec, one_array(table.column(spec.column))) for spec in step.inputs]
    mask = _mask(step, table, columns)
    typed = step.typed
    n = len(starts)
    if typed.compiled:
        values = tuple(ordered.take(column.values) for column in columns)
        out, ok = typed.result.alloc(n), np.empty(n, np.uint8)
        sorted_mask = _ALL if mask is None else ordered.take(mask)
        sweep(algorithm(step.algorithm), typed, values, sorted_mask, starts, ends, out, ok)
        out = tuple(ordered.give_back(part) for part in out)
        ok = ordered.give_back(ok)
        return _result(step, typed, columns, out, ok)
    raise InputTypeError("interpreted operators")


def sweep(alg: Algorithm, typed: TypedOperator, X, mask, starts, ends, OUT, OK) -> None:
    """Results of every frame, by a compiled driver."""
    n = len(starts)
    room = 1 << int(max(int((ends - starts).max(initial=0)), 1) - 1).bit_length()
    module = alg.module
    slots = module.RINGS * room + module.EXTRAS
    H, W = np.zeros(module.HEADER, np.int64), np.zeros(max(module.WORDS * room, 1), np.int64)
    V = typed.state.alloc(slots + SCRATCH)
    drivers.run_frames(alg, typed, H, W, V, room - 1, slots, X, mask, starts, ends, OUT, OK, 0, n)


def _mask(step: Step, table: pa.Table, columns: list[Column]) -> np.ndarray | None:
    """A byte for each row that says whether it counts; None where all do."""
    op = step.bound.operator
    mask = None
    for place, column in enumerate(columns):
        if column.valid is None or (place in op.carried and len(op.carried) < len(columns)):
            continue
        mask = column.valid if mask is None else mask & column.valid
    if step.bound.where is not None:
        chosen = one_array(table.column(step.bound.where))
        if not pa.types.is_boolean(chosen.type):
            raise InputTypeError(f"where={step.bound.where!r} must be a column of truth values, not {chosen.type}")
        yes = chosen.to_numpy(zero_copy_only=False) if chosen.null_count == 0 else chosen.fill_null(False).to_numpy(
            zero_copy_only=False)
        mask = yes.view(np.uint8) if mask is None else mask & yes.view(np.uint8)
    return mask


def _result(step: Step, typed: TypedOperator, columns: list[Column], out, ok) -> pa.Array:
    missing = None if ok.all() else ok
    like = typed.operator.result_like
    if like is not None:
        return columns[like].give_back(out[0], missing)
    mask = None if missing is None else missing == 0
    values = out[0].view(np.bool_) if typed.result.leaves[0].dtype == np.bool_ else out[0]
    return pa.array(values, mask=mask)
