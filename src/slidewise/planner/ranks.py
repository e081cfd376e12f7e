"""The order of values that Arrow does not compare, lists and structs: by their parts, as Spark has it."""

import numpy as np


def ranks_by_parts(values: list) -> np.ndarray:
    """The place of each value among the distinct ones."""
    keys = [_by_parts(value) for value in values]
    place = {key: number for number, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys], np.uint64)


def _by_parts(value) -> tuple:
    """A Python value as tuples that sort: nulls first, NaN above all numbers."""
    if value is None:
        return (0,)
    if isinstance(value, dict):
        return (1, tuple(_by_parts(part) for part in value.values()))
    if isinstance(value, (list, tuple)):
        return (1, tuple(_by_parts(part) for part in value))
    return (2,) if value != value else (1, value)
