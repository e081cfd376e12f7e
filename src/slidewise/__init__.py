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
    ),
    "slidewise.algebra.operator": ("operator", "Operator"),
    "slidewise.algebra.laws": ("check_laws",),
    "slidewise.algebra.product": ("struct",),
    "slidewise.operators": (
        "argmax",
        "argmin",
        "count",
        "first",
        "geomean",
        "last",
        "max",
        "max_count",
        "mean",
        "min",
        "min_count",
        "spread",
        "std",
        "sum",
        "var",
    ),
    "slidewise.algorithms": ("algorithms",),
    "slidewise.live.window": ("Window",),
    "slidewise.windows.spec": ("time", "rows", "tumbling", "session", "delta", "punctuation", "lifetime"),
    "slidewise.engines.dispatch": ("rolling", "as_of"),
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
