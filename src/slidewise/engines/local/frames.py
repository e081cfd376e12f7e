"""pandas and Polars frames to Arrow and back: only the columns that are needed go over, and results join the caller's own frame.

A result keeps the ways of the columns it comes from: NumPy-backed pandas columns give NumPy-backed results (integers with
nulls become Int64, which loses nothing), nullable and Arrow-backed ones give their own kind, categories stay categories.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.algebra.cache import entry
from slidewise.engines.local.columns import alike, fixed_width, raw
from slidewise.engines.local.threads import LARGE, least, pool_of, thread_count
from slidewise.errors import InputError, InputTypeError
from slidewise.planner.request import Output, Request

NAT = np.iinfo(np.int64).min
COPIED = 1 << 23
"""Values of a frame, at most, that are copied before the results are there: more would lie beside all that the run needs."""


class ArrowFrame:
    """A pyarrow.Table: nothing to do, but for text views and run ends, which Arrow can neither sort nor pick from."""

    missing: int | None = None
    """The number that stands for a missing time in the table's time column, where nobody has looked for it yet."""
    unlooked: "Unlooked | None" = None
    """Columns of the table in which nobody has looked for nulls yet."""

    def __init__(self, data: pa.Table):
        self.data = data

    @property
    def columns(self) -> list[str]:
        return self.data.column_names

    def table(self, needed, later=()) -> pa.Table:
        """The columns that are needed, the time first. later: those whose nulls may be left to `unlooked`."""
        chosen = self.data.select(list(needed))
        for place, field in enumerate(chosen.schema):
            if pa.types.is_string_view(field.type) or pa.types.is_binary_view(field.type):
                kind = pa.large_string() if pa.types.is_string_view(field.type) else pa.large_binary()
                chosen = chosen.set_column(place, field.name, chosen.column(place).cast(kind))
            elif pa.types.is_run_end_encoded(field.type):
                chosen = chosen.set_column(place, field.name, pc.run_end_decode(chosen.column(place)))
        return chosen

    def joining(self) -> AbstractContextManager:
        """Around a run whose results will be joined."""
        return nullcontext()

    def joined(self, outputs: tuple[Output, ...], result: pa.Table, request: Request, data: "ArrowFrame | None" = None):
        """This frame with the results as further columns."""
        out = self.data
        for output in outputs:
            out = out.append_column(output.column, self._column(output, result, request, data or self))
        return out

    def listed(self, outputs: tuple[Output, ...], result: pa.Table, request: Request):
        """The results as a frame of their own: key, time, results."""
        kept = {name: result.column(name) for name in result.column_names}
        kept |= {name: _cast(result.column(name), self.data.schema.field(name).type) for name in request.by}
        return pa.table(kept | {o.column: self._column(o, result, request, self) for o in outputs})

    def _column(self, output: Output, result: pa.Table, request: Request, data: "ArrowFrame"):
        bound, column = request.aggs[output.aggregate], result.column(output.column)
        like = bound.operator.result_like
        if like is None:
            return column
        source = data.data.column(bound.columns[like])
        return _encoded(column, source) if pa.types.is_dictionary(source.type) else _cast(column, source.type)


def _cast(column, kind: pa.DataType):
    """A column as the view of text or the run ends it came from; others as they are."""
    if pa.types.is_run_end_encoded(kind):
        ends = kind.run_end_type  # int16 ends at row 32,767
        return pc.run_end_encode(column, run_end_type=pa.int32() if ends == pa.int16() and len(column) >= 2**15 else ends)
    return column.cast(kind) if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) else column


def _encoded(column, source: pa.ChunkedArray):
    """Values of a dictionary column, in its dictionary again."""
    source = source.unify_dictionaries()
    values = source.chunk(0).dictionary if source.num_chunks else pa.array([], source.type.value_type)
    codes = pc.index_in(_one(column), value_set=values).cast(source.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, values, ordered=source.type.ordered)


class PolarsFrame:
    """A polars.DataFrame."""

    missing: int | None = None
    unlooked: "Unlooked | None" = None

    def __init__(self, data):
        self.data = data

    @property
    def columns(self) -> list[str]:
        return self.data.columns

    def table(self, needed, later=()) -> pa.Table:
        import polars as pl

        chosen = self.data.select(list(needed))
        for name, kind in chosen.schema.items():
            if kind == pl.Object:
                raise InputError(
                    f"column {name!r} holds Python objects, which Polars cannot hand over; convert it first"
                )
        for name in chosen.columns:
            try:
                chosen[name].clear().to_arrow()
            except pa.ArrowInvalid as error:
                kind = chosen.schema[name]
                raise InputTypeError(f"column {name!r} of type {kind} has no Arrow type; cast it first ({error})") from None
        return chosen.to_arrow()

    def joining(self) -> AbstractContextManager:
        return nullcontext()

    def joined(self, outputs, result: pa.Table, request: Request, data=None):
        return self.data.hstack(self._series(outputs, result, request, data or self))

    def listed(self, outputs, result: pa.Table, request: Request):
        import polars as pl

        kept = [
            pl.Series(name, result.column(name)) for name in result.column_names if name in (*request.by, request.time)
        ]
        kept = [s.cast(self.data.schema[s.name]) if s.name in request.by else s for s in kept]
        return pl.DataFrame([*kept, *self._series(outputs, result, request, self)])

    def _series(self, outputs, result: pa.Table, request: Request, data: "PolarsFrame") -> list:
        import polars as pl

        found = []
        for output in outputs:
            series = pl.Series(output.column, result.column(output.column))
            bound = request.aggs[output.aggregate]
            like = bound.operator.result_like
            if like is not None and series.dtype != data.data.schema[bound.columns[like]]:
                series = series.cast(data.data.schema[bound.columns[like]])
            found.append(series)
        return found


class Unlooked:
    """Float columns of a table in which NaN stands for a null, and nobody has looked for it yet: looking costs as much as a good
    part of a sum, and whoever reads the numbers anyway can look on the way."""

    def __init__(self, floats: dict[str, np.ndarray]):
        self._floats = floats

    def whole(self, lo: int, hi: int) -> bool:
        """Whether none of the rows [lo, hi) has a null."""
        return not any(np.isnan(numbers[lo:hi].min()) for numbers in self._floats.values())

    def settled(self, table: pa.Table) -> pa.Table:
        """The table with the nulls that there are."""
        for name, numbers in self._floats.items():
            array = _without_nan(numbers)
            if array.null_count:
                table = table.set_column(table.schema.get_field_index(name), name, array)
        return table


class PandasFrame:
    """A pandas.DataFrame. NaN in a float column is a null, as pandas has it. The index, attrs, flags and class are kept."""

    def __init__(self, data):
        if data.columns.nlevels > 1:
            raise InputError(
                f"the columns of this frame have {data.columns.nlevels} levels, and a column is found by one name; join the levels "
                'first, such as frame.columns = ["_".join(name) for name in frame.columns]'
            )
        self.data = data
        self.missing: int | None = None
        self.unlooked: Unlooked | None = None
        self._copies: list[Future] = []

    @property
    def columns(self) -> list[str]:
        names = [name for name in self.data.columns if isinstance(name, str)]
        return names + [name for name in self.data.index.names if isinstance(name, str) and name not in names]

    def source(self, name: str):
        """A column, or a level of the index."""
        return self.data[name] if name in self.data.columns else self.data.index.get_level_values(name).to_series()

    def table(self, needed, later=()) -> pa.Table:
        """The first column is the time: a NaT there is left to whoever sorts it, who sees it without looking at every row."""
        arrays: dict[str, pa.Array] = {}
        floats: dict[str, np.ndarray] = {}
        for name in needed:
            series = self.source(name)
            if not arrays:
                self.missing = NAT if _unit(series.dtype) is not None else None
            try:
                if name in later and series.dtype == np.float64 and len(series) >= LARGE:
                    floats[name] = np.ascontiguousarray(series.to_numpy())
                    arrays[name] = pa.array(floats[name])
                else:
                    arrays[name] = _arrow(series, look=bool(arrays))
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise InputError(f"column {name!r} holds values of different kinds: {error}") from None
            except pa.ArrowNotImplementedError as error:
                raise InputTypeError(
                    f"column {name!r} of type {series.dtype} has no Arrow type; convert it first ({error})"
                ) from None
            kind = arrays[name].type
            if pa.types.is_dictionary(kind) and isinstance(kind.value_type, pa.BaseExtensionType):
                kind = series.dtype.categories.dtype
                raise InputTypeError(f"column {name!r} has categories of type {kind}, which have no Arrow type; convert it to text")
        self.unlooked = Unlooked(floats) if floats else None
        return pa.table(arrays)

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Where the frame must be copied to be joined with results, threads that have nothing to do yet begin with it."""
        rows, threads = len(self.data), thread_count()
        if threads > 1 and rows >= LARGE and rows * len(self.data.columns) <= COPIED and not _shares():
            self._copies = [pool_of(threads).submit(column.copy) for _, column in self.data.items()]
            time.sleep(0)  # they need Python for a moment, to begin
        try:
            yield
        finally:  # after an error, nobody reads the caller's memory any more
            for copy in self._copies:
                copy.cancel()
            wait(self._copies)

    def joined(self, outputs, result: pa.Table, request: Request, data=None):
        import pandas as pd

        found = {output.column: self._column(output, result, request, data or self) for output in outputs}
        if _shares():
            joined = pd.concat([self.data, pd.DataFrame(found, index=self.data.index, copy=False)], axis=1)
        else:  # concat would copy results too, which are new. Columns go by their places: names may be there twice. As Series
            # they keep their types: pandas would take bare objects for the times they may be
            mine = [copy.result() for copy in self._copies] or [column.copy() for _, column in self.data.items()]
            joined = pd.DataFrame(dict(enumerate([*mine, *found.values()])), index=self.data.index, copy=False)
        joined.columns = self.data.columns.append(pd.Index(list(found), name=self.data.columns.name))
        return self._like(joined)

    def _like(self, made):
        """A new frame with the class, attrs and flags of this one."""
        make = self.data._constructor  # where pandas lets subclasses say how they are made
        return (made if make is type(made) else make(made)).__finalize__(self.data)

    def listed(self, outputs, result: pa.Table, request: Request):
        import pandas as pd

        columns = {}
        for name in (*request.by, request.time):
            columns[name] = _to_pandas(result.column(name), self.source(name).dtype, name in request.by)
        for output in outputs:
            columns[output.column] = self._column(output, result, request, self)
        return self._like(pd.DataFrame(columns))

    def _column(self, output: Output, result: pa.Table, request: Request, data: "PandasFrame"):
        bound = request.aggs[output.aggregate]
        like = bound.operator.result_like
        source = (
            data.source(bound.columns[like if like is not None else 0]).dtype if bound.columns else np.dtype(np.int64)
        )
        return _to_pandas(result.column(output.column), source, like is not None)


def _shares() -> bool:
    """Whether frames share their columns, as with pandas' copy-on-write."""
    import pandas as pd

    return pd.get_option("mode.copy_on_write") is True


def _unit(kind) -> str | None:
    """The unit of a pandas dtype of times or durations that lie in memory as numbers."""
    if isinstance(kind, np.dtype):
        return np.datetime_data(kind)[0] if kind.kind in "mM" else None
    return getattr(kind, "unit", None)


def _zone_name(zone) -> str:
    """A time zone as Arrow writes it: by its name, or how far it is ahead of UTC."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)  # zoneinfo, pytz
    ahead = zone.utcoffset(None)
    if name is not None or ahead is None:
        return name or pa.lib.tzinfo_to_string(zone)
    minutes, rest = divmod(int(ahead.total_seconds()), 60)
    if rest:
        raise InputTypeError(f"the time zone {zone} is no whole number of minutes ahead of UTC; convert these times first")
    return "UTC" if not minutes else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def _arrow(series, look: bool) -> pa.Array:
    """A pandas column, without a copy where its memory is already as Arrow's. NaN and NaT are nulls; look: NaT among them."""
    kind = series.dtype
    if not isinstance(kind, np.dtype) and hasattr(series, "sparse"):
        series = series.sparse.to_dense()
        kind = series.dtype
    if isinstance(kind, np.dtype) and kind.kind in "iub":
        return pa.array(series.to_numpy())
    if isinstance(kind, np.dtype) and kind.kind == "f":
        return _without_nan(np.ascontiguousarray(series.to_numpy()))
    unit = _unit(kind)
    if unit is not None:
        ticks = np.ascontiguousarray(series.array.view(np.int64))
        missing = look and len(ticks) and least(ticks) == NAT  # NaT is the lowest number
        zone = getattr(kind, "tz", None)
        found = (
            pa.duration(unit)
            if getattr(kind, "kind", "") == "m"
            else pa.timestamp(unit, None if zone is None else _zone_name(zone))
        )
        return fixed_width(ticks, (ticks != NAT).view(np.uint8) if missing else None, found)
    found = _one(pa.array(series.array, from_pandas=True))
    if pa.types.is_run_end_encoded(found.type):
        found = pc.run_end_decode(found)
    if not pa.types.is_floating(found.type):
        return found
    if found.null_count == 0:
        return _without_nan(found.to_numpy(zero_copy_only=False))
    return pc.if_else(pc.is_nan(found), pa.scalar(None, found.type), found)


def _one(column) -> pa.Array:
    """A column as one array; combine_chunks would copy even where there is but one chunk."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _without_nan(numbers: np.ndarray) -> pa.Array:
    if numbers.dtype not in (np.float32, np.float64):
        numbers = numbers.astype(np.float64)
    if not (len(numbers) and np.isnan(least(numbers))):  # a NaN makes the least of all NaN
        return pa.array(numbers)
    return fixed_width(numbers, (~np.isnan(numbers)).view(np.uint8), pa.from_numpy_dtype(numbers.dtype))


def _to_pandas(column, source, same: bool):
    """A result as pandas has it. source: the dtype of the column it comes from; same: whether it keeps that type."""
    import pandas as pd

    array = _one(column)
    if isinstance(source, pd.ArrowDtype):
        if same and pa.types.is_dictionary(source.pyarrow_dtype) and not pa.types.is_dictionary(array.type):
            array = array.dictionary_encode().cast(source.pyarrow_dtype)
        elif same:
            array = _cast(array, source.pyarrow_dtype)
        return pd.Series(array, dtype=pd.ArrowDtype(array.type)).array
    if same and isinstance(source, pd.CategoricalDtype):
        return pd.Categorical(array.to_pandas(types_mapper=_nullable()), dtype=source)
    masked = (
        isinstance(source, pd.api.extensions.ExtensionDtype)
        and hasattr(source, "numpy_dtype")
        and hasattr(source, "type")
        and getattr(source, "base", None) is None
    )
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        if array.null_count == 0 and not masked:
            return _writable(array)
        return pd.array(array.to_pandas(types_mapper=_nullable()), dtype=_nullable()(kind))
    if pa.types.is_floating(kind):
        if masked:
            return pd.array(array.to_pandas(types_mapper=_nullable()), dtype=_nullable()(kind))
        return _writable(array).astype(np.float16 if same and source == np.float16 else array.type.to_pandas_dtype(), copy=False)
    values = array.to_pandas()
    if same and values.dtype != source:
        values = values.astype(source)
    elif getattr(source, "tz", None) is not None and hasattr(values.dtype, "tz"):
        values = values.dt.tz_convert(source.tz)  # a zone without a name comes back as another object
    return values.array


def _writable(array: pa.Array) -> np.ndarray:
    """The numbers as a NumPy array of the caller's own; a float null is NaN."""
    if pa.types.is_boolean(array.type):
        return array.to_numpy(zero_copy_only=False)
    numbers = raw(array, array.type.to_pandas_dtype())  # results are new arrays: nobody else has them
    if array.null_count:
        write_nan(numbers, alike(np.frombuffer(array.buffers()[0], np.uint8)), array.offset)
    return numbers


@entry
def write_nan(numbers, bits, offset):
    """NaN where a bit of Arrow's is not set; eight rows that are all there are passed at once."""
    i = 0
    while i < len(numbers):
        place = offset + i
        if place & 7 == 0 and bits[place >> 3] == 255:
            i += 8
            continue
        if not (bits[place >> 3] >> (place & 7)) & 1:
            numbers[i] = np.nan
        i += 1


def _nullable():
    import pandas as pd

    kinds = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.float32(): pd.Float32Dtype(),
        pa.float64(): pd.Float64Dtype(),
    }
    return kinds.get


KINDS: dict[str, Any] = {"arrow": ArrowFrame, "pandas": PandasFrame, "polars": PolarsFrame}
