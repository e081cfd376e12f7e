"""Slidewise: exact sliding-window aggregation for data frames, live windows and Spark streams.

    import slidewise as sw

Everything public is here; it is imported on first use, so that `import slidewise` is quick and needs neither Spark, pandas
nor Polars.
"""

import importlib

__version__ = "0.1.0"

_WHERE = {
    "slidewise.errors": (
        "SlidewiseError",
        "InputError",
        "InputTypeError",
        "LawError",
        "UnsupportedError",
        "OutOfOrderError",
        "EmptyWindowError",
        "StateError",
        "AggregateOverflowError",
        "JobError",
        "RunError",
    ),
    "slidewise.algebra.operator": ("operator", "Operator"),
    "slidewise.algebra.laws": ("check_laws",),
    "slidewise.algebra.product": ("struct",),
    "slidewise.operators": (
        "all",
        "any",
        "approx_count",
        "approx_distinct",
        "argmax",
        "argmin",
        "bit_and",
        "bit_or",
        "bit_xor",
        "bloom",
        "collect",
        "collect_distinct",
        "concat",
        "correlation",
        "count",
        "covariance",
        "first",
        "geomean",
        "histogram",
        "last",
        "m4",
        "max",
        "max_count",
        "mean",
        "median",
        "min",
        "min_count",
        "naive_bayes",
        "nth_youngest",
        "product",
        "quantile",
        "slope",
        "spread",
        "std",
        "sum",
        "top_k",
        "var",
    ),
    "slidewise.algorithms": ("algorithms",),
    "slidewise.live.window": ("Window",),
    "slidewise.live.live": ("Live",),
    "slidewise.windows.spec": ("time", "rows", "tumbling", "session", "delta", "punctuation", "lifetime"),
    "slidewise.engines.dispatch": ("rolling", "as_of", "explain"),
    "slidewise.engines.spark.control": ("flush", "run_bounded"),
    "slidewise.engines.spark.metrics": ("StreamMetrics",),
}

_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str):
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'slidewise' has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(__all__))
