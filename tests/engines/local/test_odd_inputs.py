"""Columns, frames and options that are seldom seen: they work and keep their types, or are refused in words."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import slidewise as sw

TABLE = pa.table({"t": [1, 2, 3, 3], "k": ["a", "a", "b", "a"], "x": pa.array([1.0, None, 3.0, 4.0])})
ASKED = dict(time="t", by="k", windows={"w": 2}, aggs={"n": sw.count("x"), "top": sw.max("x"), "last": sw.last("x")})


def with_column(name, values):
    return TABLE.set_column(TABLE.column_names.index(name), name, values)


# ---- run ends and dictionaries ------------------------------------------------------------------------------------------


def run_ends(values):
    """In three chunks, one of them empty."""
    whole = pa.array(values)
    return pa.chunked_array([pc.run_end_encode(part) for part in (whole[:3], whole[:0], whole[3:])])


@pytest.mark.parametrize("emit", ["event", "latest"])
@pytest.mark.parametrize("column", ["t", "k", "x"])
def test_run_ends_are_read_and_given_back(column, emit):
    encoded = with_column(column, run_ends(TABLE[column].to_pylist()))
    found, plain = (sw.rolling(one, **ASKED, emit=emit) for one in (encoded, TABLE))
    found.validate(full=True)
    assert found.to_pydict() == plain.to_pydict()
    kinds = {name: found.schema.field(name).type for name in found.column_names}
    if column == "x":
        assert kinds["top_w"] == kinds["last_w"] == encoded.schema.field("x").type
    if column == "k" or emit == "event":
        assert kinds.get(column, encoded.schema.field(column).type) == encoded.schema.field(column).type
    queries = encoded.select(["t", "k"])
    assert sw.as_of(queries, encoded, **ASKED).to_pydict() == sw.as_of(TABLE.select(["t", "k"]), TABLE, **ASKED).to_pydict()


def test_run_ends_that_count_no_further():
    """int16 ends at row 32,767: a longer result counts its ends in int32."""
    n = 40_000
    values = pa.chunked_array([pc.run_end_encode(pa.array([7] * 20_000), run_end_type=pa.int16())] * 2)
    found = sw.rolling(pa.table({"t": np.arange(n), "x": values}), time="t", windows={"w": 3}, aggs={"m": sw.max("x")})
    assert found["m_w"].type == pa.run_end_encoded(pa.int32(), pa.int64()) and found["m_w"].to_pylist() == [7] * n


@pytest.mark.parametrize(
    "arguments",
    [
        dict(aggs={"n": sw.count("x", where="y")}),
        dict(windows={"w": sw.punctuation("y")}),
        dict(windows={"w": sw.delta("d", 1)}),
        dict(order="d"),
    ],
)
def test_run_ends_where_rows_are_chosen_by_them(arguments):
    more = TABLE.append_column("y", pa.array([True, None, False, True])).append_column("d", pa.array([2, None, 1, 3]))
    encoded = more.set_column(3, "y", run_ends([True, None, False, True])).set_column(4, "d", run_ends([2, None, 1, 3]))
    assert sw.rolling(encoded, **{**ASKED, **arguments}).to_pydict() == sw.rolling(more, **{**ASKED, **arguments}).to_pydict()


def test_an_empty_dictionary_column_has_the_type_of_a_full_one():
    full = pa.table({"t": [1, 2], "x": pa.array([1, 2], pa.timestamp("s")).dictionary_encode()})
    asked = dict(time="t", windows={"w": 2}, aggs={"a": sw.any("x"), "c": sw.collect("x"), "m": sw.max("x")})
    assert sw.rolling(full.slice(0, 0), **asked).schema == sw.rolling(full, **asked).schema


# ---- values Arrow does not compare --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(20, 2)])
def test_decimals_of_any_width_have_an_order(kind):
    table = with_column("x", pa.array([Decimal("1.10"), None, Decimal(3), Decimal(-4)], kind))
    aggs = {"low": sw.min("x"), "top": sw.max("x"), "at": sw.argmin("x", "t")}
    found = sw.rolling(table, time="t", by="k", windows={"w": 9}, aggs=aggs)
    assert found.schema.field("low_w").type == found.schema.field("top_w").type == kind
    assert found["low_w"].to_pylist() == [Decimal("1.10"), Decimal("1.10"), Decimal(3), Decimal(-4)]
    assert found["top_w"].to_pylist() == [Decimal("1.10"), Decimal("1.10"), Decimal(3), Decimal("1.10")]
    assert found["at_w"].to_pylist() == [1, 1, 3, 3]


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_structs_have_no_order_however_many_there_are(rows):
    table = with_column("x", pa.array([{"a": 1}, None, {"a": 2}, {"a": 3}])).slice(0, rows)
    for bound in (sw.max("x"), sw.argmin("x", "k"), sw.max_count("x"), sw.top_k("x", k=2)):
        with pytest.raises(sw.InputTypeError, match=r"'x': values of struct.* have no order"):
            sw.rolling(table, time="t", windows={"w": 9}, aggs={"a": bound})
    carried = sw.rolling(table, time="t", windows={"w": 9}, aggs={"a": sw.argmax("t", "x")})
    assert carried["a_w"].to_pylist() == [{"a": 1}, None, {"a": 2}, {"a": 2}][:rows]


# ---- pandas frames ------------------------------------------------------------------------------------------------------


class Own(pd.DataFrame):
    _metadata = ("note",)

    @property
    def _constructor(self):
        return Own


@pytest.mark.parametrize("copy_on_write", [False, True])
def test_attrs_flags_and_class_of_a_pandas_frame_are_kept(copy_on_write):
    frame = Own(TABLE.to_pandas())
    frame.attrs["source"], frame.note = {"of": "us"}, "mine"
    frame.flags.allows_duplicate_labels = False
    frame.columns.name = "field"
    queries = frame[["t", "k"]].copy()
    queries.attrs["source"] = {"of": "them"}
    with pd.option_context("mode.copy_on_write", copy_on_write):
        made = [sw.rolling(frame, **ASKED, emit=emit) for emit in ("event", "latest")] + [sw.as_of(queries, frame, **ASKED)]
    for found, of in zip(made, ("us", "us", "them"), strict=True):
        assert type(found) is Own and found.note == "mine" and not found.flags.allows_duplicate_labels
        assert found.attrs == {"source": {"of": of}}
    assert made[0].columns.name == made[2].columns.name == "field"
    made[0].attrs["source"]["of"] = "changed"
    assert frame.attrs["source"] == {"of": "us"}


def test_columns_of_several_levels_are_refused():
    frame = TABLE.to_pandas()
    frame.columns = pd.MultiIndex.from_tuples([(name, "") for name in frame.columns])
    with pytest.raises(sw.InputError, match=r"2 levels.*join the levels"):
        sw.rolling(frame, **ASKED)
    with pytest.raises(sw.InputError, match="2 levels"):
        sw.as_of(frame, TABLE.to_pandas(), **ASKED)


@pytest.mark.parametrize(
    "values",
    [
        [2**60 + 1, None, 2**60, 2**60 + 1],
        [1.5, None, -2.0, 1.5],
        [True, None, False, True],
        ["a", None, "b", "a"],
        list(pd.to_datetime(["2024-03-30", None, "2024-01-01", "2024-03-30"]).tz_localize("Europe/Berlin")),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_categories_stay_categories_whatever_they_are(values, ordered):
    kept = [value for value in dict.fromkeys(values) if not pd.isna(value)]
    column = pd.Categorical(values, categories=pd.Index(kept), ordered=ordered)
    frame = pd.DataFrame({"t": [1, 2, 3, 4], "x": column})
    found = sw.rolling(frame, time="t", windows={"w": 1}, aggs={"last": sw.last("x"), "top": sw.max("x")})
    for name in ("last_w", "top_w"):
        assert found[name].dtype == column.dtype
        pd.testing.assert_series_equal(found[name], frame["x"], check_names=False)


def test_arrow_backed_dictionaries_stay_dictionaries():
    kind = pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))
    frame = pd.DataFrame({"t": [1, 2, 3], "x": pd.array(["a", None, "b"], dtype=kind)})
    found = sw.rolling(frame, time="t", windows={"w": 1}, aggs={"last": sw.last("x")})
    assert found["last_w"].dtype == kind and found["last_w"].isna().tolist() == [False, True, False]


# ---- options ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(windows=b"1h"), "not a window: b'1h'"),
        (dict(exclude_current="no"), "exclude_current= must be True or False, not 'no'"),
        (dict(exclude_current=0), "exclude_current= must be True or False, not 0"),
        (dict(exclude_current=None), "exclude_current= must be True or False"),
        (dict(by=b"k"), "by= takes names of columns, not b'k'"),
    ],
)
def test_options_of_another_type(arguments, words):
    with pytest.raises(sw.InputTypeError, match=words):
        sw.rolling(TABLE, **{**ASKED, **arguments})


def test_truth_values_of_numpy_and_calendars():
    found = sw.rolling(TABLE, **ASKED, exclude_current=np.bool_(True))
    assert found["n_w"].to_pylist() == sw.rolling(TABLE, **ASKED, exclude_current=True)["n_w"].to_pylist()
    for make in (sw.time, sw.tumbling):
        with pytest.raises(sw.InputTypeError, match="calendar= must be True or False, not 'no'"):
            make("1d", calendar="no")
