"""Where `sw.rolling`, `sw.as_of` and `sw.explain` meet Spark: a batch goes one way, a stream the other."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from slidewise.errors import InputError, InputTypeError, UnsupportedError
from slidewise.planner.request import Request

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rolling(df: DataFrame, asked: Request, **streaming: Any) -> DataFrame:
    """Aggregates over the window of each row of a batch DataFrame, or of each event of a streaming one."""
    if df.isStreaming:
        from slidewise.engines.spark.stream import rolling_stream

        _known(rolling_stream, streaming)
        return rolling_stream(df, asked, **streaming)
    _batch_only(streaming)
    from slidewise.engines.spark import batch

    return batch.rolling(df, asked)


def as_of(queries: DataFrame, df: DataFrame, asked: Request, *, query_time: str, query_by: tuple[str, ...],
          **streaming: Any) -> DataFrame:
    """The queries with aggregates over windows of `df` that end at each query's key and time."""
    _both_batches(queries, df)
    _batch_only(streaming)
    from slidewise.engines.spark import batch

    return batch.as_of(queries, df, asked, query_time=query_time, query_by=query_by)


def explain(df: DataFrame, asked: Request, queries: DataFrame | None, query_time: str | None, query_by: tuple[str, ...] | None,
            **streaming: Any):
    """The plan in words: of a batch with the road to it, of a stream with what becomes of late events."""
    if queries is not None:
        _both_batches(queries, df)
    elif df.isStreaming:
        from slidewise.engines.spark.stream import explained, rolling_stream

        _known(rolling_stream, streaming)
        return explained(df, asked, **streaming)
    _batch_only(streaming)
    from slidewise.engines.spark import batch

    return batch.explain(df, asked, queries, query_time or asked.time, asked.by if query_by is None else query_by)


def _both_batches(queries: DataFrame, df: DataFrame) -> None:
    for name, frame in (("queries", queries), ("data", df)):
        if frame.isStreaming:
            raise UnsupportedError(f"as_of: the {name} are a stream; as_of joins two batches. For windows of a stream's own "
                                   "events use rolling")


def _known(call: Callable[..., Any], given: dict[str, Any]) -> None:
    for name in given:
        if name not in inspect.signature(call).parameters:
            raise InputTypeError(f"no argument {name}=")


def _batch_only(given: dict[str, Any]) -> None:
    from slidewise.engines.dispatch import STREAMING

    for name in given:
        if name in STREAMING:
            raise InputError(f"{name}= is for streams; this DataFrame is a batch, and all of it is there")
        raise InputTypeError(f"no argument {name}=")
