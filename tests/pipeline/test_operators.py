"""Aggregates as text, as tables and from Python files."""

from pathlib import Path

import pytest

from slidewise.errors import InputError, SlidewiseError
from slidewise.pipeline.operators import bound

OWN = """\
import slidewise as sw

total = sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=0.0, name="total")


def power(p=2):
    1 / p
    return sw.operator(lift=lambda x: x**p, combine=lambda a, b: a + b, identity=0.0, name=f"power{p}")


def nothing():
    return 5
"""


@pytest.mark.parametrize(
    ("value", "operator", "columns", "where"),
    [
        ("count()", "count", (), None),
        ("count", "count", (), None),
        ("sum(amount)", "sum", ("amount",), None),
        (" argmax( amount , shop ) ", "argmax", ("amount", "shop"), None),
        ('sum("odd name")', "sum", ("odd name",), None),
        ("sum(amount, where=paid)", "sum", ("amount",), "paid"),
        ({"operator": "sum", "column": "amount"}, "sum", ("amount",), None),
        ({"operator": "argmax", "columns": ["amount", "shop"], "where": "paid"}, "argmax", ("amount", "shop"), "paid"),
    ],
)
def test_forms(value, operator, columns, where) -> None:
    found = bound(value, Path())
    assert (found.operator.name, found.columns, found.where) == (operator, columns, where)


@pytest.mark.parametrize(
    "value",
    ["quantile(x, q=0.9)", "quantile(x,q = 0.9 )", {"operator": "quantile", "column": "x", "q": 0.9}],
)
def test_parameters(value) -> None:
    assert dict(bound(value, Path()).operator.params)["q"] == 0.9


def test_parameters_of_every_kind() -> None:
    assert dict(bound("concat(x, sep=', ')", Path()).operator.params)["sep"] == ", "
    assert dict(bound("histogram(x, edges=[0.0, 1.5, 10.0])", Path()).operator.params)["edges"] == (0.0, 1.5, 10.0)
    assert dict(bound("var(x, ddof=0)", Path()).operator.params)["ddof"] == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sum(amount", "cannot read"),
        ("sum(a b)", "cannot read 'a b'"),
        ("quantile(x, q=0.5, q=0.6)", "stands twice"),
        ({"column": "x"}, 'needs the key "operator"'),
        ({"operator": "sum", "column": "x", "columns": ["y"]}, "column or columns, not both"),
        ({"operator": "sum", "column": 5}, "the name of a column"),
        ({"operator": "sum", "column": "x", "were": "paid"}, 'no parameter "were"; did you mean "where"'),
        ("quantile(x)", "needs the parameter q"),
    ],
)
def test_what_is_wrong(value, message) -> None:
    with pytest.raises(SlidewiseError, match=message):
        bound(value, Path())


def test_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    assert bound("own.py:total(x)", tmp_path).operator.name == "total"
    assert bound("own.py:power(x)", tmp_path).operator.name == "power2"
    assert bound({"operator": "own.py:power", "column": "x", "p": 3}, tmp_path).operator.name == "power3"
    with pytest.raises(InputError, match="must be, or return, an operator"):
        bound("own.py:nothing(x)", tmp_path)
    with pytest.raises(InputError, match='no parameter "q"'):
        bound("own.py:power(x, q=3)", tmp_path)
    with pytest.raises(InputError, match=r"power raised ZeroDivisionError.*line 7 of own.py"):
        bound("own.py:power(x, p=0)", tmp_path)
