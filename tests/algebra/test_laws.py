"""check_laws: a false operator for each law is caught, with a counter-example that can be read; true ones pass."""

import math
from typing import NamedTuple

import numpy as np
import pytest

import slidewise as sw


class Pair(NamedTuple):
    n: int
    total: float


def same(s):
    return s


def made(combine, identity=0, lift=same, **laws):
    return sw.operator(lift=lift, combine=combine, lower=same, identity=identity, name="false", **laws)


def append(a, b):
    a.extend(b)
    return a


def add_in_place(a, b):
    a += b
    return a


def pop_lower(s):
    return s.pop() if s else None


FALSE = {
    "is not associative": made(lambda a, b: a - b),
    "has an identity that is none": made(lambda a, b: a + b, identity=1),
    "is declared commutative and is not": made(lambda a, b: a + b, lift=str, identity="", commutative=True),
    "is declared selective and gives neither": made(lambda a, b: a + b, selective=True),
    "has an inverse that does not undo combine": made(max, identity=-(2**63), inverse=lambda t, o: t - o),
    "combine changes its arguments": made(append, lift=lambda x: [x], identity=[]),
}


@pytest.mark.parametrize("claim", sorted(FALSE))
def test_a_false_law_is_caught(claim):
    with pytest.raises(sw.LawError, match=claim) as raised:
        sw.check_laws(FALSE[claim])
    assert "lift(" in str(raised.value) or "changes" in claim
    assert isinstance(raised.value, ValueError)


def test_an_identity_on_one_side_only():
    with pytest.raises(sw.LawError, match=r"combine\(x, identity\)"):
        sw.check_laws(made(lambda a, b: b if b is not None else None, identity=None), samples=[1, 2])


def test_arrays_that_are_changed_in_place_are_seen():
    wide = made(add_in_place, lift=lambda x: np.array([1.0, x]), identity=np.zeros(2))
    with pytest.raises(sw.LawError, match="combine changes its arguments"):
        sw.check_laws(wide)


def test_lower_that_changes_the_state_is_seen():
    op = sw.operator(lift=lambda x: [x], combine=lambda a, b: a + b, lower=pop_lower, identity=[], name="false")
    with pytest.raises(sw.LawError, match="lower changes its arguments"):
        sw.check_laws(op)


def test_the_counter_example_is_small_and_readable():
    with pytest.raises(sw.LawError) as raised:
        sw.check_laws(made(lambda a, b: a - b))
    assert str(raised.value).splitlines() == [
        "operator 'false' is not associative:",
        "    x = lift(0) = 0",
        "    y = lift(0) = 0",
        "    z = lift(1) = 1",
        "    combine(combine(x, y), z) = -1",
        "    combine(x, combine(y, z)) = 1",
    ]


def test_true_operators_pass():
    mean = made(
        lambda a, b: Pair(a.n + b.n, a.total + b.total),
        lift=lambda x: Pair(1, x),
        identity=Pair(0, 0.0),
        commutative=True,
        inverse=lambda t, o: Pair(t.n - o.n, t.total - o.total),
    )
    report = sw.check_laws(mean)
    assert report.laws == ("associative", "identity", "untouched", "commutative", "inverse")
    assert report.trials > 1000
    assert "held in" in str(report)
    biggest = made(lambda a, b: a if a >= b else b, identity=float("-inf"), selective=True, commutative=True)
    assert "selective" in sw.check_laws(biggest).laws
    wide = made(lambda a, b: a + b, lift=lambda x: np.array([1.0, x]), identity=np.zeros(2), commutative=True)
    assert sw.check_laws(wide).laws[-1] == "commutative"


def test_samples_reach_what_generated_ones_do_not():
    """A maximum that forgets NaN: no law breaks on finite numbers."""
    careless = made(lambda a, b: a if a >= b else b, identity=float("-inf"), commutative=True)
    sw.check_laws(careless)
    with pytest.raises(sw.LawError, match="nan"):
        sw.check_laws(careless, samples=[1.0, float("nan"), 2.0])
    sw.check_laws(sw.max(), samples=[1.0, float("nan"), 2.0, float("inf")])


def test_subtraction_does_not_undo_an_infinity():
    careless = made(lambda a, b: a + b, identity=0.0, inverse=lambda t, o: t - o)
    with pytest.raises(sw.LawError, match="inverse"):
        sw.check_laws(careless, samples=[1.0, float("inf")])


def test_samples_of_several_inputs_and_of_other_types():
    sw.check_laws(sw.argmax(), samples=[(1, "a"), (2, "b"), (2, "c")])
    sw.check_laws(sw.concat(sep="-"))
    longest = made(lambda a, b: a if len(a) >= len(b) else b, identity="", selective=True)
    sw.check_laws(longest, samples=["x", "yy", "zz"])
    with pytest.raises(sw.InputError, match="takes 2 inputs"):
        sw.check_laws(sw.argmax(), samples=[1, 2])
    with pytest.raises(sw.InputError, match="samples is empty"):
        sw.check_laws(sw.max(), samples=[])
    with pytest.raises(sw.InputError, match="takes an operator"):
        sw.check_laws(max)


def test_an_operator_with_a_narrow_domain_is_tried_inside_it():
    logs = made(lambda a, b: a + b, lift=lambda x: math.log(x), identity=0.0, commutative=True)
    assert sw.check_laws(logs).trials > 100
    nothing = made(lambda a, b: a, lift=lambda x: x.missing)
    with pytest.raises(sw.InputError, match="give samples="):
        sw.check_laws(nothing)


def test_equal_is_respected():
    """A list as a set: equal up to order, which only `equal` knows."""
    unordered = sw.operator(
        lift=lambda x: [x],
        combine=lambda a, b: a + b,
        identity=[],
        commutative=True,
        name="bag",
        equal=lambda a, b: sorted(a) == sorted(b),
    )
    assert "commutative" in sw.check_laws(unordered).laws
    with pytest.raises(sw.LawError, match="commutative"):
        sw.check_laws(unordered.with_(equal=None))


class Holder:
    """A state without a repr, a copy or a `==` of its own."""

    def __init__(self, items):
        self.items = items


class Quiet(Holder):
    def __repr__(self):
        return "Quiet"


class Slotted:
    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


@pytest.mark.parametrize("kind", [Holder, Quiet, Slotted])
def test_states_that_do_not_show_what_they_hold(kind):
    def alike(a, b):
        return a.items == b.items

    def careless(a, b):
        a.items.extend(b.items)
        return kind(list(a.items))

    good = made(lambda a, b: kind(a.items + b.items), lift=lambda x: kind([x]), identity=kind([]), equal=alike)
    assert "untouched" in sw.check_laws(good).laws
    bad = made(careless, lift=lambda x: kind([x]), identity=kind([]), equal=alike)
    with pytest.raises(sw.LawError, match="combine changes its arguments"):
        sw.check_laws(bad)


def test_an_item_inside_that_is_changed_is_seen():
    def careless(a, b):
        a[0]["n"] += 0  # no change
        b[0]["seen"] = True
        return ({"n": a[0]["n"] + b[0]["n"]},)

    bad = made(careless, lift=lambda x: ({"n": x},), identity=({"n": 0},), equal=lambda a, b: a[0]["n"] == b[0]["n"])
    with pytest.raises(sw.LawError, match="combine changes its arguments"):
        sw.check_laws(bad)


def test_floats_of_every_width_are_compared_within_what_they_can_tell():
    samples = [0.1, 0.7, 1e3, -3.3, 2.5]
    add = made(lambda a, b: a + b, identity=np.float32(0), commutative=True)
    sw.check_laws(add, samples=[np.float32(x) for x in samples])
    complexes = made(lambda a, b: a + b, identity=0j, commutative=True)
    sw.check_laws(complexes, samples=[complex(x, x / 3) for x in samples])
    wide = made(lambda a, b: a + b, lift=lambda x: np.array([x, 1], np.complex64), identity=np.zeros(2, np.complex64))
    sw.check_laws(wide, samples=samples)
    crooked = made(lambda a, b: (a + b).conjugate(), identity=0j)
    with pytest.raises(sw.LawError):
        sw.check_laws(crooked, samples=[1 + 1j, 2 - 1j])


def merged(a, b):
    return {**a, **{key: a.get(key, 0) + n for key, n in b.items()}}


def taken(total, old):
    rest = {key: n - old.get(key, 0) for key, n in total.items()}
    return {key: n for key, n in rest.items() if n}


def test_an_order_that_states_hide_and_results_show_is_caught():
    counts = dict(lift=lambda x: {x: 1}, combine=merged, identity={}, name="counts")
    shown = sw.operator(lower=list, commutative=True, **counts)
    with pytest.raises(sw.LawError, match=r"(?s)declared commutative and is not.*lower\(combine\(y, x\)\) = \["):
        sw.check_laws(shown)
    with pytest.raises(sw.LawError, match=r"(?s)inverse that does not undo.*lower\(y\) = \["):
        sw.check_laws(sw.operator(lower=list, inverse=taken, **counts), samples=[1, 2])
    sw.check_laws(sw.operator(lower=sorted, commutative=True, inverse=taken, **counts))
    sw.check_laws(sw.operator(lower=list, **counts))


def test_an_inverse_that_loses_small_floats_beside_large_ones_is_caught():
    floats = made(lambda a, b: a + b, identity=0.0, inverse=lambda total, old: total - old)
    with pytest.raises(sw.LawError, match=r"(?s)does not undo combine.*x = lift\(1e\+16\).*y = lift\(1.0\)"):
        sw.check_laws(floats, samples=[1e16, 1.0])
    sw.check_laws(floats, samples=[0.5, 0.25, 3.0])


def test_changed_arguments_are_shown_before_and_after():
    with pytest.raises(sw.LawError, match=r"combine changes its arguments: lift\(1\) = \[1\] is \[1, 1\] afterwards"):
        sw.check_laws(FALSE["combine changes its arguments"], samples=[1])


def test_samples_are_a_list():
    with pytest.raises(sw.InputTypeError, match="samples is a list of values"):
        sw.check_laws(sw.sum(), samples=3)
