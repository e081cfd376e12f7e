"""The front door: `rolling`, `as_of` and `explain` for whatever kind of data comes in.

The engine is found by the kind of the data, without importing packages the caller has not imported.
"""

import sys

import pyarrow as pa

from slidewise.errors import InputTypeError
from slidewise.planner.plan import make_plan
from slidewise.planner.request import request


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
    if "pyspark" in sys.modules and type(data).__module__.startswith("pyspark.") and type(data).__name__ == "DataFrame":
        return "spark"
    raise InputTypeError(f"data must be a pandas, Polars or PySpark DataFrame or a pyarrow.Table, not {type(data).__name__}")


def rolling(data, *, time, by=None, windows, aggs, closed="right", ties="peers", order=None, emit="event",
            algorithm="auto", exclude_current=False, origin=None, prefer="throughput"):
    """Aggregates over the window of each row."""
    asked = request(time=time, by=by, windows=windows, aggs=aggs, closed=closed, ties=ties, order=order, emit=emit,
                    algorithm=algorithm, exclude_current=exclude_current, origin=origin, prefer=prefer)
    if kind_of(data) == "arrow":
        from slidewise.engines.local.run import run

        return run(make_plan(asked, data.schema), data)
    raise InputTypeError("only pyarrow.Table yet")
