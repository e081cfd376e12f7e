"""The public face of the library: names, parameters, binding, sameness, travel, and the table for the docs."""

import copy
import doctest
import inspect
import pickle

import numpy as np
import pytest
from tests.operators.support import DTYPES, EVERY, resolved

import slidewise as sw
import slidewise.algebra.laws
import slidewise.algebra.operator
import slidewise.algebra.product
import slidewise.operators
from slidewise.algebra.codec import decode, encode, like, stripped
from slidewise.algebra.laws import same
from slidewise.operators import OPERATORS, table
from slidewise.operators.making import REGISTRY

CONTRACT = (
    "count sum product mean geomean var std min max spread min_count max_count argmin argmax first last nth_youngest collect "
    "collect_distinct concat any all bit_and bit_or bit_xor covariance correlation slope m4 top_k histogram quantile median "
    "approx_distinct approx_count bloom naive_bayes"
).split()


def test_every_operator_of_the_contract_is_public():
    assert sorted(OPERATORS) == sorted(CONTRACT)
    for name in CONTRACT:
        assert getattr(sw, name) is OPERATORS[name]
        assert name in dir(sw)


@pytest.mark.parametrize("name", CONTRACT)
def test_unbound_and_bound(name):
    function, example = OPERATORS[name], REGISTRY[name].example
    op = function(**example)
    assert isinstance(op, sw.Operator)
    assert op.name == name
    assert function(**example) is op, "the same call gives the same operator"
    columns = [f"c{k}" for k in range(max(op.inputs, 1))]
    bound = function(*columns, where="flag", **example)
    assert bound.columns == tuple(columns)
    assert bound.where == "flag"
    assert bound.needed == (*columns, "flag")
    if name != "count":
        assert bound.operator is op
        assert op(*columns, where="flag") == bound
    assert list(inspect.signature(function).parameters)[:2] == ["columns", "where"]
    assert function.__doc__
    assert function.__name__ == name


@pytest.mark.parametrize("name", sorted(EVERY))
def test_operators_travel_by_name(name):
    """Never by their code: a pickle holds the name and the parameters."""
    op = EVERY[name]
    body = pickle.dumps(op)
    assert pickle.loads(body) is op
    assert copy.deepcopy(op) is op
    assert len(body) < 300


def test_parameters_are_part_of_an_operator():
    assert sw.quantile(q=0.95).signature == "quantile(q=0.95, k=200)"
    assert sw.var().signature == "var(ddof=1)"
    assert sw.var(ddof=0) is not sw.var()
    assert sw.sum(exact=True).signature == "sum(exact=True)"
    assert sw.histogram(edges=[0, 1]) is sw.histogram(edges=(0.0, 1.0))
    assert sw.approx_count(item=1) is not sw.approx_count(item=1.0)


def test_count_has_two_forms():
    assert sw.count().inputs == 0
    assert sw.count("x").operator.inputs == 1
    assert sw.count(where="flag").columns == ()
    assert sw.count("x").operator is not sw.count()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sw.quantile(), "quantile needs the parameter q="),
        (lambda: sw.quantile("x"), "quantile needs the parameter q="),
        (lambda: sw.quantile(q=1.5), "q must be between 0 and 1"),
        (lambda: sw.quantile(q="high"), "q must be a number between 0 and 1"),
        (lambda: sw.quantile(q=float("nan")), "q must be between"),
        (lambda: sw.quantile(q=0.5, k=3), "k must be between 8 and 65535"),
        (lambda: sw.max(ddof=1), "max has no parameter 'ddof'"),
        (lambda: sw.var(dof=1), "var has no parameter 'dof'; its parameters: ddof="),
        (lambda: sw.count(columns=3), "count has no parameter 'columns'"),
        (lambda: sw.var(ddof=-1), "ddof must be at least 0"),
        (lambda: sw.var(ddof=1.0), "ddof must be a whole number"),
        (lambda: sw.std(ddof=True), "ddof must be a whole number"),
        (lambda: sw.nth_youngest(n=0), "n must be at least 1"),
        (lambda: sw.top_k(k="3"), "k must be a whole number"),
        (lambda: sw.histogram(edges=[1]), "at least two"),
        (lambda: sw.histogram(edges=[1, 1]), "rise strictly"),
        (lambda: sw.histogram(edges=[1, float("nan")]), "rise strictly"),
        (lambda: sw.histogram(edges="abc"), "list of numbers"),
        (lambda: sw.histogram(edges=["a", "b"]), "must be numbers"),
        (lambda: sw.histogram(edges=3), "list of numbers"),
        (lambda: sw.concat(sep=1), "sep must be a string"),
        (lambda: sw.bloom(bits=100), "power of two"),
        (lambda: sw.bloom(bits=32), "between 64 and"),
        (lambda: sw.bloom(hashes=0), "hashes must be"),
        (lambda: sw.approx_count(item=1, width=100), "power of two"),
        (lambda: sw.approx_count(width=8), "approx_count needs the parameter item="),
        (lambda: sw.approx_distinct(lg_k=3), "lg_k must be between 4 and 18"),
        (lambda: sw.approx_distinct(sketch=1), "sketch must be True or False"),
        (lambda: sw.sum(exact="yes"), "exact must be True or False"),
        (lambda: sw.naive_bayes(smoothing=-1), "smoothing must be"),
        (lambda: sw.max("a", "b"), "max reads 1 column, got 2"),
        (lambda: sw.argmax("a"), "argmax reads 2 columns, got 1"),
        (lambda: sw.max(3), "columns are given by name"),
        (lambda: sw.max("a", where=3), "columns are given by name"),
        (lambda: sw.max().fold([1], [2]), "takes 1 column"),
    ],
)
def test_wrong_calls_are_refused_with_reasons(call, message):
    with pytest.raises(sw.SlidewiseError, match=message) as raised:
        call()
    assert isinstance(raised.value, (ValueError, TypeError))


@pytest.mark.parametrize("name", sorted(EVERY))
def test_states_can_be_stored(name):
    """Plain types, or through encode and decode; what comes back combines as before."""
    op = EVERY[name]
    kind = next(kind for kind in ("float", "int", "object") if resolved(op, kind) is not None)
    op = resolved(op, kind)
    samples = {"float": [0.5, 3.0, -1.0], "int": [5, 3, 3], "object": ["a", "b", "c"]}[kind]
    state = op.lift(*[samples[0]] * op.inputs)
    for sample in samples[1:]:
        state = op.combine(state, op.lift(*[sample] * op.inputs))
    stored = decode(encode(stripped(op.identity, state) if op.encode is None else op.encode(state)))
    back = like(op.identity, stored) if op.decode is None else op.decode(stored)
    assert (op.equal or same)(back, state)
    assert (op.equal or same)(op.combine(back, state), op.combine(state, state))
    assert same(op.lower(back), op.lower(state))


@pytest.mark.parametrize("name", sorted(EVERY))
def test_identity_and_empty_fit(name):
    """An operator that gives something for an empty window gives it as the result of its identity."""
    for kind in DTYPES:
        op = resolved(EVERY[name], kind)
        if op is not None and op.empty is not None:
            found = op.lower(op.identity)
            assert np.array_equal(found, op.empty)


def test_what_a_result_keeps():
    assert [sw.max().result_like, sw.argmax().result_like, sw.first().result_like, sw.sum().result_like] == [0, 1, 0, None]
    assert sw.argmax().carried == (1,)
    assert sw.count("x").operator.carried == (0,)


def test_table():
    rows = {row.name: row for row in table()}
    assert sorted(rows) == sorted(CONTRACT)
    assert rows["sum"].laws == "invertible, commutative; floats: commutative"
    assert rows["max"].laws == "commutative, selective"
    assert rows["first"].laws == "selective"
    assert rows["collect"].laws == "none"
    assert rows["count"].empty == "0"
    assert rows["max"].empty == "null"
    assert rows["histogram"].empty == "zeros"
    assert rows["collect"].kind == "object"
    assert rows["approx_distinct"].kind == "wide (2048 bytes)"
    assert rows["var"].kind == "struct"
    assert rows["max"].kind == "scalar"
    assert rows["quantile"].parameters == "q: float, k: int = 200"
    assert "1.33" in rows["quantile"].accuracy
    assert rows["max"].accuracy == "exact"
    assert all(row.summary for row in rows.values())


@pytest.mark.parametrize(
    "module",
    [slidewise.operators, slidewise.algebra.operator, slidewise.algebra.laws, slidewise.algebra.product],
    ids=lambda module: module.__name__,
)
def test_examples_in_the_documentation(module):
    found = doctest.testmod(module, extraglobs={"sw": sw})
    assert found.attempted > 0
    assert found.failed == 0


def test_every_operator_has_an_example():
    for name in CONTRACT:
        assert f"sw.{name}(" in OPERATORS[name].__doc__.partition(">>>")[2], name
