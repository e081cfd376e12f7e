"""The numbers that delta windows go by: exact, and the same in frames and in Live."""

from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest

import slidewise as sw

MOMENTS = [datetime(2024, 1, 1, 0), datetime(2024, 1, 1, 1), datetime(2024, 1, 1, 1, 10)]
DAYS = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 4)]
CASES = {
    **{unit: (pa.array(MOMENTS, pa.timestamp(unit)), "1h", [1, 2, 2]) for unit in ("s", "ms", "us", "ns")},
    "finer than the column": (pa.array(MOMENTS, pa.timestamp("s")), "3599999ms", [1, 1, 2]),
    "duration": (pa.array([0, 3600, 4200], pa.duration("s")), "1h", [1, 2, 2]),
    "time": (pa.array([time(1), time(2), time(2, 10)], pa.time32("s")), "1h", [1, 2, 2]),
    "date32": (pa.array(DAYS, pa.date32()), "36h", [1, 2, 1]),
    "date64": (pa.array(DAYS, pa.date64()), "36h", [1, 2, 1]),
    "decimal": (pa.array([None, "0.6", "0.8", "1.1"]).cast(pa.decimal128(2, 1)), 0.3, [1, 2, 3, 2]),
    "decimal256": (pa.array([Decimal("0.6"), Decimal("0.8"), Decimal("-9")], pa.decimal256(5, 3)), 0.2, [1, 2, 1]),
    "longer decimals": (pa.array([Decimal(1), Decimal(3), Decimal(4)], pa.decimal128(38, 18)), 2, [1, 2, 2]),
    "large integers": (pa.array([2**60, 2**60 + 1, 2**60 + 3]), 1.5, [1, 2, 1]),
    "uint64": (pa.array([2**63, None, 2**63 + 2, 2**63 + 5, 0, 1], pa.uint64()), 3, [1, 2, 3, 3, 1, 2]),
    "int8": (pa.array([-100, 27, 127], pa.int8()), 127, [1, 2, 2]),
    "float32": (pa.array([1.0, None, -1e30], pa.float32()), 1e40, [1, 2, 3]),
    "infinite": (pa.array([1.0, -1e300, 5.0]), float("inf"), [1, 2, 3]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_the_width_is_in_the_unit_of_the_column(case):
    column, width, counts = case
    table = pa.table({"t": range(len(column) + 1), "x": pa.concat_arrays([column[:1], column])}).slice(1)  # an offset in the memory
    asked = dict(time="t", windows={"w": sw.delta("x", width)}, aggs={"n": sw.count()})
    assert sw.rolling(table, **asked)["n_w"].to_pylist() == counts
    live = sw.Live(**asked)
    found = []
    for i in range(len(table)):
        live.push(table.slice(i, 1))
        found.append(live.query()["n_w"])
    assert found == counts


def test_as_of_with_a_finer_clock_keeps_the_width():
    data = pa.table({"t": pa.array(MOMENTS, pa.timestamp("s"))})
    asked = pa.table({"t": pa.array([datetime(2024, 1, 2)], pa.timestamp("ms"))})
    assert sw.as_of(asked, data, time="t", windows={"w": sw.delta("t", "1h")}, aggs={"n": sw.count()})["n_w"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("column", "width", "kind", "words"),
    [
        (pa.array([1, 2]), "5s", TypeError, "holds numbers"),
        (pa.array(MOMENTS), 5, TypeError, "holds times"),
        (pa.array([True, False]), 1, TypeError, "numbers or times"),
        (pa.array([1, 2]), float("inf"), ValueError, "more than any difference"),
    ],
)
def test_widths_that_do_not_fit_the_column(column, width, kind, words):
    table = pa.table({"t": range(len(column)), "x": column})
    asked = dict(time="t", windows={"w": sw.delta("x", width)}, aggs={"n": sw.count()})
    for ask in (lambda: sw.rolling(table, **asked), lambda: sw.Live(**asked).push(table), lambda: sw.explain(table, **asked)):
        with pytest.raises(kind, match=words) as caught:
            ask()
        assert isinstance(caught.value, sw.SlidewiseError)
