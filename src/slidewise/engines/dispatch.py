"""The front door: `rolling`, `as_of` and `explain` for whatever kind of data comes in.

The engine is found by the kind of the data, without importing packages the caller has not imported.
"""

import inspect
import sys
from contextlib import nullcontext
from typing import Any

import pyarrow as pa

from slidewise.errors import InputError, InputTypeError
from slidewise.planner.inputs import plain
from slidewise.planner.plan import Plan, make_plan
from slidewise.planner.request import Request, column_names, request

STREAMING = ("watermark", "id", "results", "late", "keep", "max_ahead", "history", "buckets", "ttl")
"""Arguments that only mean something on a stream; the Spark engine reads them."""
QUERYING = ("query_time", "query_by")
"""Arguments that only mean something beside queries."""


def kind_of(data) -> str:
    """arrow, pandas, polars or spark."""
    if isinstance(data, pa.Table):
        return "arrow"
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return "pandas"
    if polars is not None and isinstance(data, polars.DataFrame):
        return "polars"
    if polars is not None and isinstance(data, polars.LazyFrame):
        raise InputTypeError("this is a lazy Polars frame; collect() it first")
    if "pyspark" in sys.modules and type(data).__name__ == "DataFrame" and type(data).__module__.startswith("pyspark."):
        return "spark"
    raise InputTypeError(
        f"data must be a pandas, Polars or PySpark DataFrame or a pyarrow.Table, not {type(data).__module__}.{type(data).__name__}"
    )


def rolling(
    data,
    *,
    time: str,
    windows,
    aggs: dict,
    by=None,
    closed: str = "right",
    ties: str = "peers",
    order=None,
    emit: str = "event",
    algorithm: str = "auto",
    exclude_current: bool = False,
    origin=None,
    prefer: str = "throughput",
    **streaming: Any,
):
    """Aggregates over the window of each row (or key, or boundary); the same kind of frame comes back.

    data: pandas.DataFrame, polars.DataFrame, pyarrow.Table or PySpark DataFrame, in any order.
    time, by: the time column, and none, one or several key columns.
    windows: "1h", sw.time("1h", slide="5m"), sw.rows(100), sw.tumbling("1d"), sw.session("30m") ...: one, a list, or a dict.
    aggs: names and bound operators: {"total": sw.sum("amount")}. Result columns are named `total_1h`.
    closed: right (t - range, t], left, both, neither. ties: "peers" see each other, or "arrival".
    emit: "event", a row for each row; "slide", for each key and boundary; "latest", for each key.
    algorithm: "auto", or the name of one (sw.algorithms()) for every aggregate; streams keep "flatfat" or "recalc".
    prefer: throughput, latency or memory, for the choice of algorithms. Streams take more: see the docs.
    """
    asked = request(
        time=time,
        by=by,
        windows=windows,
        aggs=aggs,
        closed=closed,
        ties=ties,
        order=order,
        emit=emit,
        algorithm=algorithm,
        exclude_current=exclude_current,
        origin=origin,
        prefer=prefer,
    )
    kind = kind_of(data)
    if kind == "spark":
        from slidewise.engines.spark import front

        return front.rolling(data, asked, **streaming)
    _no_streaming(streaming)
    from slidewise.engines.local.run import run

    frame = _frame(kind, data, asked)
    with frame.joining() if asked.emit == "event" else nullcontext():
        plan, table = _planned(frame, asked)
        result = run(plan, table, missing=frame.missing, unlooked=frame.unlooked)
        return (frame.joined if asked.emit == "event" else frame.listed)(asked.outputs, result, asked)


def as_of(
    queries,
    data,
    *,
    time: str,
    windows,
    aggs: dict,
    by=None,
    closed: str = "left",
    ties: str = "peers",
    order=None,
    emit: str = "event",
    algorithm: str = "auto",
    exclude_current: bool = False,
    origin=None,
    prefer: str = "throughput",
    query_time: str | None = None,
    query_by=None,
    **streaming: Any,
):
    """The queries with aggregates over windows of `data` that end at each query's key and time.

    Takes the arguments of `rolling`. Strictly before by default (closed="left"): nothing of a label's own moment leaks into its
    features. query_time and query_by name the queries' columns where they differ from the data's. A query is no row of the data:
    what would need it to be one is refused (emit="slide" and "latest", exclude_current, ties="arrival" where closed="right" or
    "both" lets a query see its own moment).
    """
    asked = request(
        time=time,
        by=by,
        windows=windows,
        aggs=aggs,
        closed=closed,
        ties=ties,
        order=order,
        emit=emit,
        algorithm=algorithm,
        exclude_current=exclude_current,
        origin=origin,
        prefer=prefer,
        as_of=True,
    )
    kind = kind_of(data)
    _same_kind(queries, kind)
    query_time, query_by = _query_names(asked, query_time, query_by)
    if kind == "spark":
        from slidewise.engines.spark import front

        return front.as_of(queries, data, asked, query_time=query_time, query_by=query_by, **streaming)
    _no_streaming(streaming)
    from slidewise.engines.local.frames import KINDS
    from slidewise.engines.local.run import run_as_of

    asking = _asking(KINDS[kind](queries), query_time, query_by)
    frame = _frame(kind, data, asked, kept=asking.columns)
    plan, table = _planned(frame, asked)
    asked_for = asking.table(dict.fromkeys((query_time, *query_by)))
    names = dict(query_time=query_time, query_by=query_by)
    result = run_as_of(plan, asked_for, table, **names, missing=(asking.missing, frame.missing), unlooked=frame.unlooked)
    return asking.joined(asked.outputs, result, asked, frame)


def explain(data, other=None, **arguments: Any):
    """The plan of a call of `rolling` (or, with queries and data, of `as_of`) and why: print it, or take `as_dict()`.

    Takes the same arguments and refuses the same; an empty frame with the right columns is enough.
    """
    from slidewise.planner.explain import explain as told

    queries, data = (None, data) if other is None else (data, other)
    call = inspect.signature(rolling if queries is None else as_of).parameters.values()
    names = [parameter.name for parameter in call if parameter.kind is parameter.KEYWORD_ONLY]
    if missing := [name for name in ("time", "windows", "aggs") if name not in arguments]:
        raise InputTypeError(f"explain needs {', '.join(f'{name}=' for name in missing)} as the call itself does")
    query_time, query_by = (arguments.pop(name, None) if queries is not None else None for name in QUERYING)
    if queries is not None:
        arguments = {"closed": "left", **arguments}
    streaming = {name: arguments.pop(name) for name in [*arguments] if name not in names}
    asked = request(**arguments, as_of=queries is not None)
    kind = kind_of(data)
    if queries is not None:
        query_time, query_by = _query_names(asked, query_time, query_by)
        _same_kind(queries, kind)
    if kind == "spark":
        from slidewise.engines.spark import front

        return front.explain(data, asked, queries, query_time, query_by, **streaming)
    _no_streaming(streaming)
    from slidewise.engines.local.frames import KINDS

    if queries is None:
        return told(_planned(_frame(kind, data, asked), asked)[0])
    from slidewise.engines.local.run import explained_for

    asking = _asking(KINDS[kind](queries), query_time, query_by)
    plan, table = _planned(_frame(kind, data, asked, asking.columns), asked)
    return told(explained_for(plan, asking.table(dict.fromkeys((query_time, *query_by))), table, query_time, query_by))


def _same_kind(queries, kind: str) -> None:
    if kind_of(queries) != kind:
        raise InputTypeError(f"queries and data must be frames of one kind, not {kind_of(queries)} and {kind}")


def _query_names(asked: Request, query_time: str | None, query_by) -> tuple[str, tuple[str, ...]]:
    """What the queries call time and key."""
    keys = asked.by if query_by is None else column_names("query_by", query_by)
    if len(keys) != len(asked.by):
        raise InputError(f"by= names {len(asked.by)} key column(s), query_by= {len(keys)}")
    return query_time or asked.time, keys


def _asking(frame, query_time: str, query_by: tuple[str, ...]):
    for name in (query_time, *query_by):
        if name not in frame.columns:
            raise InputError(f"no column {name!r} in the queries; they have {', '.join(map(repr, frame.columns))}")
        if frame.columns.count(name) > 1:
            raise InputError(f"the queries have {frame.columns.count(name)} columns named {name!r}; rename all but one")
    return frame


def _frame(kind: str, data, asked: Request, kept=None):
    from slidewise.engines.local.frames import KINDS

    frame = KINDS[kind](data)
    asked.check_columns(frame.columns, kept=kept)
    return frame


def _planned(frame, asked: Request) -> tuple[Plan, pa.Table]:
    from slidewise.engines.local.keys import check_key

    table = frame.table(asked.needed, later=asked.aggregated)
    for name in asked.by:
        check_key(plain(table.schema.field(name).type))
    return make_plan(asked, table.schema), table


def _no_streaming(given: dict) -> None:
    for name in given:
        if name in STREAMING:
            raise InputError(f"{name}= is for streams (a streaming PySpark DataFrame); this frame is all there")
        if name in QUERYING:
            raise InputError(f"{name}= is for as_of: give the queries too")
        raise InputTypeError(f"no argument {name}=")
