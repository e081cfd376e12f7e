"""What `Live.push` is given, as Arrow tables: frames of every kind, and the types in which their columns are kept."""

import pyarrow as pa
import pyarrow.compute as pc

from slidewise.errors import InputError, InputTypeError
from slidewise.planner.inputs import plain


def as_table(events, columns: list[str]) -> pa.Table:
    """Events as Arrow; of a pandas frame only these columns and levels of the index, whatever Arrow thinks of the others."""
    if isinstance(events, pa.Table):
        return events
    if isinstance(events, pa.RecordBatch):
        return pa.Table.from_batches([events])
    if hasattr(events, "__arrow_c_stream__"):
        pandas = type(events).__module__.startswith("pandas.") and hasattr(events, "columns")
        if pandas:
            if levels := [name for name in events.index.names if name in columns and name not in events.columns]:
                events = events.reset_index(levels)  # as in `rolling`, a column may be a level of the index
            check_columns(columns, list(events.columns))
        try:
            if pandas:
                sparse = {n: events[n].sparse.to_dense() for n in columns if type(events[n].dtype).__name__ == "SparseDtype"}
                return pa.table(events[columns].assign(**sparse))
            # Polars' own way gives categories whose text Arrow can cast
            return events.to_arrow() if type(events).__module__.startswith("polars.") else pa.table(events)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputTypeError(f"a column of these events has no Arrow type: {error}") from error
    raise InputTypeError(
        f"push takes a dict, a list of dicts, or a pandas, Polars or PyArrow frame, not {type(events).__name__}"
    )


def check_columns(wanted: list[str], names: list[str]) -> None:
    for name in wanted:
        if name not in names:
            raise InputError(f"no column {name!r} in the events; they have {', '.join(map(repr, names))}")
        if names.count(name) > 1:
            raise InputError(f"the events have {names.count(name)} columns named {name!r}; rename all but one")


def kept_as(name: str, kind: pa.DataType, key: bool) -> pa.DataType:
    """The type in which a column is kept: a plain one, and one in which Arrow can take rows, compare keys and write bytes."""
    kind = plain(kind)
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if key and isinstance(kind, pa.BaseExtensionType):
        stored = kind.storage_type
        if pa.types.is_nested(stored) or kept_as(name, stored, key) != stored:
            raise InputTypeError(f"the key column {name!r} is {kind}, which Live does not compare; cast it to {stored}")
    if key and pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return pa.float32() if key and pa.types.is_float16(kind) else kind


def cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        if pa.types.is_run_end_encoded(column.type):
            column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], plain(column.type))
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputTypeError(f"these events do not fit the types of the first ones: column {field.name!r}: {error}") from error


def inferred(rows, columns) -> pa.Schema:
    """The types of the columns by the first rows."""
    fields = []
    for name in columns:
        values = [row.get(name) for row in rows]
        try:
            kind = pa.array(values).type
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
            raise InputTypeError(f"column {name!r}: no one type holds these values: {error}") from error
        if not any(name in row for row in rows):
            raise InputError(f"no {name!r} in the first event; it has {', '.join(map(repr, rows[0]))}")
        if pa.types.is_null(kind):
            raise type_unknown(name, "as the first event has none")
        fields.append(pa.field(name, kind))
    return pa.schema(fields)


def type_unknown(name: str, why: str) -> InputError:
    return InputError(f'the type of {name!r} is not known, {why}; give schema=, such as schema=[("{name}", pa.float64()), ...]')
