"""Results of many frames at once: the arrays that kernels write them into, whether two differ, and their Arrow columns."""

from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.algebra.layout import Layout, Leaf
from slidewise.algebra.typed import TypedOperator
from slidewise.errors import AggregateOverflowError, InputTypeError
from slidewise.planner.inputs import Input, is_fine, plain

FLOATS = frozenset("product geomean var std covariance correlation slope quantile".split())
"""Operators of the library that give a float64 of anything but integers."""


def result_type(op: TypedOperator, inputs: tuple[Input, ...]) -> pa.DataType:
    """The Arrow type of an operator's results, known before there are any."""
    like = op.operator.result_like
    if like is not None:
        return inputs[like].arrow
    if op.compiled:
        return _layout_type(op.result)
    found = _by_column(op.name, *(plain(i.arrow) for i in inputs)) if op.operator.own and inputs else None
    if found is not None:
        return found
    samples = [tuple(_sample(plain(i.arrow)) for i in inputs)] * 2
    try:
        states = [op.operator.lift(*sample) for sample in samples]
        value = op.operator.lower(op.operator.combine(*states))
        found = pa.infer_type([record(value)])
    except Exception as error:
        raise InputTypeError(
            f"{op.name}: the type of its result on {', '.join(str(i.arrow) for i in inputs)} is not known "
            f"beforehand: {error}"
        ) from error
    if pa.types.is_null(found) or (pa.types.is_list(found) and pa.types.is_null(found.value_type)):
        raise InputTypeError(f"{op.name}: the type of its result is not known beforehand")
    return found


def _by_column(name: str, kind: pa.DataType, *others: pa.DataType) -> pa.DataType | None:
    """What the types of the columns alone decide, for the library's interpreted operators."""
    if name == "naive_bayes":
        return pa.list_(pa.struct([("label", kind), ("feature", others[0]), ("count", pa.int64())]))
    if name in ("collect", "collect_distinct", "top_k"):
        return pa.list_(kind)
    if name in FLOATS and not pa.types.is_null(kind):
        return pa.float64()
    if name == "m4" and not pa.types.is_null(kind):
        return pa.struct([(part, kind) for part in ("min", "max", "first", "last")])
    if name not in ("sum", "mean", "median", "spread"):
        return None
    if pa.types.is_decimal(kind):
        make, most = (pa.decimal256, 76) if kind.bit_width == 256 else (pa.decimal128, 38)
        if name == "sum":
            return make(most, kind.scale)
        if name == "spread":
            return make(min(kind.precision + 1, most), kind.scale)
        more = min(4, most - kind.precision)  # digits behind the point, as Spark has them
        return make(kind.precision + more, kind.scale + more)
    if pa.types.is_temporal(kind):
        return pa.duration("ns" if is_fine(kind) else "us")
    return None


def frame_type(op: TypedOperator, inputs: tuple[Input, ...], some: bool) -> pa.DataType | None:
    """The type of an operator's results on a frame; None where results tell better than an example would, and there are some."""
    found = _by_column(op.name, *(plain(i.arrow) for i in inputs)) if op.operator.own and inputs else None
    if found is not None or some:
        return found
    try:
        return result_type(op, inputs)
    except InputTypeError:
        return None


def objects(values, kind: pa.DataType | None, name: str) -> pa.Array:
    """Results of an interpreted operator as a column of this type (None: of the type they have)."""
    if kind is not None and pa.types.is_decimal(kind):
        last, exact = Decimal(1).scaleb(-kind.scale), Context(prec=100)
        values = [None if value is None else exact.quantize(value, last) for value in values]
    elif kind == pa.float64():  # a product of decimals is a decimal of as many digits as there are
        values = [float(value) if isinstance(value, Decimal) else value for value in values]
    try:
        return pa.array(map(record, values), kind, from_pandas=False)
    except OverflowError as error:
        raise AggregateOverflowError(f"a result of {name} left the range of {kind}") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputTypeError(
            f"the results of {name} have no common Arrow type: {error}; let its lower give numbers, text, "
            "lists or dicts of one type"
        ) from None


def record(value):
    """A NamedTuple by its names: a struct in Arrow, as it is where the operator runs compiled."""
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else value


def _layout_type(layout: Layout) -> pa.DataType:
    if layout.width is not None:
        return pa.list_(pa.from_numpy_dtype(layout.shape.dtype), layout.width)

    def walk(shape):
        if isinstance(shape, Leaf):
            return pa.from_numpy_dtype(shape.dtype)
        names = getattr(shape[0], "_fields", None) or [str(i) for i in range(len(shape) - 1)]
        return pa.struct([pa.field(n, walk(part)) for n, part in zip(names, shape[1:], strict=True)])

    return walk(layout.shape)


def _sample(kind: pa.DataType):
    """Some value of a column's type."""
    checks = (
        (pa.types.is_boolean, True),
        (pa.types.is_integer, 1),
        (pa.types.is_floating, 1.0),
        (pa.types.is_timestamp, datetime(2000, 1, 1)),
        (pa.types.is_date, date(2000, 1, 1)),
        (pa.types.is_duration, timedelta(1)),
        (pa.types.is_time, time()),
        (pa.types.is_decimal, Decimal(1)),
        (lambda k: pa.types.is_binary(k) or pa.types.is_large_binary(k) or pa.types.is_fixed_size_binary(k), b"a"),
        (pa.types.is_list, []),
        (pa.types.is_struct, {}),
    )
    return next((value for check, value in checks if check(kind)), "a")


def result_arrays(op: TypedOperator, count: int):
    """(OUT, OK): what kernels write that many results into."""
    if op.compiled:
        return op.result.alloc(count), np.zeros(count, np.uint8)
    return [None] * count, np.zeros(count, np.uint8)


class Answers:
    """Results of one aggregate for a number of frames: `out` as a kernel wrote them, `ok` which of them are defined."""

    def __init__(self, aggregate, out, ok: np.ndarray):
        self.aggregate = aggregate
        self.op, self.inputs, self.kind = aggregate.typed, aggregate.inputs, aggregate.arrow
        self.out, self.ok, self.count = out, ok, len(ok)

    def pick(self, which) -> "Answers":
        """Those at these places (an array or a slice)."""
        if not self.op.compiled:
            out = self.out[which] if isinstance(which, slice) else [self.out[i] for i in which]
        elif self.op.result.width is None:
            out = tuple(part[which] for part in self.out)
        else:
            out = (self.out[0].reshape(self.count, self.op.result.width)[which].reshape(-1),)
        return Answers(self.aggregate, out, self.ok[which])

    def arrow(self, lookup) -> pa.Array:
        """The column of results; lookup(column, row numbers) fetches values that were only carried by position."""
        mask = None if self.ok.all() else self.ok == 0
        like = self.op.operator.result_like
        if like is not None and self.inputs[like].kind == "position":
            return lookup(self.inputs[like].column, np.asarray(self._one(), np.int64), mask)
        if not self.op.compiled:
            given = zip(self.out, self.ok, strict=True)
            return objects([value if ok else None for value, ok in given], self.kind, self.op.name)
        if like is not None:
            return _like(np.asarray(self.out[0]), mask, self.inputs[like])
        return _columns(self.op.result, self.out, mask, self.kind)

    def _one(self):
        if self.op.compiled:
            return self.out[0]
        return [value if ok else 0 for value, ok in zip(self.out, self.ok, strict=True)]


def _like(values: np.ndarray, mask, like: Input) -> pa.Array:
    if pa.types.is_boolean(like.arrow):
        return pa.array(values != 0, mask=mask)
    if like.kind == "ticks":
        width = pa.int32() if like.arrow.bit_width == 32 else pa.int64()
        return pa.array(values, mask=mask).cast(width).view(like.arrow)
    found = pa.array(values, mask=mask)
    return found if found.type == like.arrow else found.cast(like.arrow)


def _columns(layout: Layout, out, mask, kind: pa.DataType) -> pa.Array:
    if layout.width is not None:
        flat = pa.array(out[0])
        missing = None if mask is None else pa.array(mask)
        return pa.FixedSizeListArray.from_arrays(flat, layout.width, mask=missing)
    leaves = iter(out)

    def walk(shape, kind, mask):
        if isinstance(shape, Leaf):
            values = next(leaves)
            return pa.array(values.view(np.bool_) if shape.dtype == np.bool_ else values, mask=mask)
        parts = [walk(part, kind.field(i).type, None) for i, part in enumerate(shape[1:])]
        missing = None if mask is None else pa.array(mask)
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=missing)

    return walk(layout.shape, kind, mask)


def differ(old: Answers, new: Answers, lookup) -> np.ndarray:
    """Where two rows of results are not the same: numbers by their bits, other values by equality."""
    changed = old.ok != new.ok
    both = (old.ok != 0) & (new.ok != 0)
    like = old.op.operator.result_like
    if like is not None and old.inputs[like].kind == "position":
        other = np.asarray(old._one(), np.int64) != np.asarray(new._one(), np.int64)
        which = np.flatnonzero(changed | (both & other))  # another row, or none: perhaps with the same value, or null
        if len(which):
            a, b = (found.pick(which).arrow(lookup) for found in (old, new))
            changed[which] = ~_equal(a, b)
        return changed
    if not old.op.compiled:
        for i in np.flatnonzero(both):  # results, not states: the operator's `equal` has no say here
            changed[i] = not _same(old.out[i], new.out[i])
        return changed
    for a, b in zip(old.out, new.out, strict=True):
        a, b = _bits(a), _bits(b)
        other = a != b if old.op.result.width is None else (a != b).reshape(old.count, old.op.result.width).any(axis=1)
        changed |= both & other
    return changed


def _equal(a: pa.Array, b: pa.Array) -> np.ndarray:
    """Where two columns have the same value: null is null, NaN is NaN, of lists and structs all parts."""
    if pa.types.is_nested(a.type) or pa.types.is_floating(a.type):
        return np.array([_same(x, y) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)], bool)
    same = pc.fill_null(pc.equal(a, b), False).to_numpy(zero_copy_only=False)
    return same | (pc.is_null(a).to_numpy(zero_copy_only=False) & pc.is_null(b).to_numpy(zero_copy_only=False))


def _bits(values: np.ndarray) -> np.ndarray:
    """Floats by their bits, one NaN for all: which one a sum of infinities gives is nobody's business."""
    if values.dtype.kind != "f":
        return values
    return np.where(np.isnan(values), values.dtype.type(np.nan), values).view(f"u{values.dtype.itemsize}")


def _same(a, b) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _same(np.asarray(a).tolist(), np.asarray(b).tolist())
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    return bool(a == b) or (a != a and b != b)
