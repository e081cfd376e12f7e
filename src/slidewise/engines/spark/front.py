"""Where `sw.rolling`, `sw.as_of` and `sw.explain` meet Spark: a batch goes one way, a stream the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slidewise.errors import InputError, InputTypeError, UnsupportedError
from slidewise.planner.request import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rolling(df: DataFrame, asked: Request, **streaming: Any) -> DataFrame:
    """Aggregates over the window of each row of a batch DataFrame, or of each event of a streaming one."""
    if df.isStreaming:
        from slidewise.engines.spark.stream import rolling_stream

        return rolling_stream(df, asked, **streaming)
    _batch_only(streaming)
    from slidewise.engines.spark import batch

    return batch.rolling(df, asked)


def as_of(queries: DataFrame, df: DataFrame, asked: Request, *, query_time: str, query_by: tuple[str, ...],
          **streaming: Any) -> DataFrame:
    """The queries with aggregates over windows of `df` that end at each query's key and time."""
    for name, frame in (("queries", queries), ("data", df)):
        if frame.isStreaming:
            raise UnsupportedError(f"as_of: the {name} are a stream; as_of joins two batches. For windows of a stream's own "
                                   "events use rolling")
    _batch_only(streaming)
    from slidewise.engines.spark import batch

    return batch.as_of(queries, df, asked, query_time=query_time, query_by=query_by)


def explain(df: DataFrame, asked: Request, queries: DataFrame | None = None, query_time: str | None = None,
            query_by: str | tuple[str, ...] | None = None):
    """The plan in words; of a batch, the road to it too."""
    if df.isStreaming:
        from slidewise.engines.spark.stream import arrow_schema
        from slidewise.planner.explain import explain as told
        from slidewise.planner.plan import make_plan

        asked.check_columns(df.columns)
        return told(make_plan(asked, arrow_schema(df.schema)))
    from slidewise.engines.spark import batch

    by = asked.by if query_by is None else (query_by,) if isinstance(query_by, str) else tuple(query_by)
    return batch.explain(df, asked, queries, query_time or asked.time, by)


def _batch_only(given: dict[str, Any]) -> None:
    from slidewise.engines.dispatch import STREAMING

    for name in given:
        if name in STREAMING:
            raise InputError(f"{name}= is for streams; this DataFrame is a batch, and all of it is there")
        raise InputTypeError(f"no argument {name}=")
