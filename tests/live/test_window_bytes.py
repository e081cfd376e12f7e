"""What `to_bytes` has written comes back, whatever numbers a state is made of; what would not is refused by `to_bytes`."""

import dataclasses
import datetime
import hashlib
import json
import struct
import subprocess
import sys
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pytest

import slidewise as sw
from slidewise.live.snapshot import MAGIC, pack, unpack

NAMES = [info.name for info in sw.algorithms()]


@dataclasses.dataclass
class Sum:
    """A state with a `==` of its own, exact about a float that depends on the grouping."""

    total: float

    def __add__(self, other):
        return Sum(self.total + other.total)

    def __sub__(self, other):
        return Sum(self.total - other.total)


class Strict:
    """The same, and nobody can look inside."""

    def __init__(self, total):
        self.total = total

    def __add__(self, other):
        return Strict(self.total + other.total)

    def __sub__(self, other):
        return Strict(self.total - other.total)

    def __eq__(self, other):
        return self.total == other.total

    __hash__ = None  # type: ignore[assignment]


ADDED = {
    "float32": (lambda x: np.float32(x), np.float32(0), {}),
    "float16": (lambda x: np.float16(x), np.float16(0), {}),
    "Decimal": (lambda x: Decimal(repr(x)) / 3, Decimal(0), {}),
    "complex": (lambda x: complex(x, -x), 0j, {}),
    "dataclass": (Sum, Sum(0.0), {"encode": lambda s: s.total, "decode": Sum}),
    "class": (Strict, Strict(0.0), {"encode": lambda s: s.total, "decode": Strict}),
    "floats": (lambda x: x, 0.0, {}),
    "array": (lambda x: np.array([x, -x]), np.zeros(2), {}),
    "float32 array": (lambda x: np.array([x, -x], np.float32), np.zeros(2, np.float32), {}),
}


SLACK = dict.fromkeys(ADDED, 1e-12) | {"float32": 1e-5, "float32 array": 1e-5, "float16": 1.0, "Decimal": Decimal("1e-20")}
TREES = [info.name for info in sw.algorithms() if info.order == "any"]


def added(kind):
    lift, identity, more = ADDED[kind]
    return sw.operator(
        lift=lift, combine=lambda a, b: a + b, inverse=lambda t, o: t - o, identity=identity, name=kind, **more
    )


def total(result):
    return getattr(result, "total", result)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", sorted(ADDED))
def test_sound_windows_come_back(name, kind):
    """Some values are large, and leave: what is left behind of them by rounding is no damage."""
    rng = np.random.default_rng(3)
    values = [float(x) for x in rng.normal(size=90)]
    values[5:60:7] = [float(x) * 1e4 for x in values[5:60:7]]
    op = added(kind)
    try:
        w = sw.Window(op, name, dtype=object, insist=True)
        w.insert(0, values[0])
    except sw.UnsupportedError:
        return
    for t, v in enumerate(values[1:], 1):
        w.insert(t, v)
        if t > 40:
            w.evict()
        if t % 9 == 0:
            w.check()
            again = sw.Window.from_bytes(w.to_bytes(), op)
            again.check()
            found, wanted = total(again.query()), total(w.query())
            # a tree is built anew from its entries, in another grouping
            assert np.all(abs(found - wanted) <= (abs(wanted) + 10000) * SLACK[kind] if name in TREES else found == wanted)
            assert type(again.query()) is type(w.query())
            again.insert(t + 1, 1.0)


@pytest.mark.parametrize("name", [name for name in NAMES if not next(i for i in sw.algorithms() if i.name == name).needs])
def test_an_equality_that_rounding_does_not_meet_keeps_no_window_out(name):
    """`equal` is exact here, and partials are grouped in other ways than whoever adds them up again."""
    op = sw.operator(
        lift=lambda x: x, combine=lambda a, b: a + b, identity=0.0, name="strict", equal=lambda a, b: a == b, lower=float
    )
    w = sw.Window(op, name, dtype=object)
    for t, v in enumerate(np.random.default_rng(8).normal(size=60)):
        w.insert(t, float(v))
        if t > 30:
            w.evict()
        w.query()
        assert abs(sw.Window.from_bytes(w.to_bytes(), op).query() - w.query()) < 1e-12


@pytest.mark.parametrize("name", ["subtract_on_evict", "slick_deque"])
def test_what_an_insisted_subtraction_leaves_behind_is_no_damage(name):
    """A large value swallows small ones, and leaves: the answer is wrong from then on, as was asked for, and the window sound."""
    op = added("floats")
    w = sw.Window(op, name, dtype=object, insist=True)
    w.insert(0, 1e17)
    for t in range(1, 100):
        w.insert(t, 1.0)
        if t > 8:
            w.evict()
    assert w.query() != len(w), "or nothing was left behind"
    w.check()
    again = sw.Window.from_bytes(w.to_bytes(), op)
    again.check()
    assert again.query() == w.query()


@pytest.mark.parametrize("kind", ["float32", "float32 array"])
def test_narrow_floats_come_back_compiled(kind):
    op = sw.operator(
        lift=(lambda x: x) if kind == "float32" else (lambda x: np.array([x, x], np.float32)),
        combine=lambda a, b: a + b,
        identity=0.0 if kind == "float32" else np.zeros(2, np.float32),
        name="narrow",
    )
    w = sw.Window(op, "two_stacks", dtype=np.float32)
    w.bulk_insert(np.arange(300), np.random.default_rng(5).normal(1e4, 1.0, 300).astype(np.float32))
    for _ in range(100):
        w.evict()
    w.check()
    assert w.compiled
    assert np.array_equal(sw.Window.from_bytes(w.to_bytes(), op).query(), w.query())


# ---- what comes back as something else is not written ----------------------------------------------------------------


class Event(NamedTuple):
    at: int
    what: str


def kept(lift, identity, combine=lambda a, b: a + b):
    return sw.operator(lift=lift, combine=combine, identity=identity, name="kept")


@pytest.mark.parametrize("name", ["recalc", "two_stacks", "fiba"])
@pytest.mark.parametrize(
    "op",
    [
        kept(lambda x: Counter([x]), Counter()),
        kept(lambda x: OrderedDict({x: 1}), OrderedDict(), lambda a, b: OrderedDict({**a, **b})),
        kept(lambda x: bytearray([x]), bytearray()),
        kept(lambda x: complex(x), 0j),
        kept(lambda x: np.str_(x), np.str_(""), lambda a, b: np.str_(a + b)),
        kept(
            lambda x: (Event(x, "a"), 1), (Event(0, ""), 0), lambda a, b: (Event(a[0].at + b[0].at, b[0].what), a[1] + b[1])
        ),
    ],
    ids=["Counter", "OrderedDict", "bytearray", "complex", "str_", "NamedTuple"],
)
def test_states_come_back_as_what_they_were(name, op):
    w = sw.Window(op, name, dtype=object)
    for t in range(12):
        w.insert(t, t % 5)
    again = sw.Window.from_bytes(w.to_bytes(), op)
    for t in range(12, 20):
        for x in (w, again):
            x.insert(t, t % 3)
            x.evict()
        assert again.query() == w.query()
        assert type(again.query()) is type(w.query())


class Stamp(datetime.datetime):
    """As a pandas Timestamp is: more than a datetime."""


@pytest.mark.parametrize(
    "value",
    [
        [Event(1, "a")],
        [defaultdict(list)],
        [Stamp(2026, 1, 1)],
        [np.ma.masked_array([1, 2], [True, False])],
        [Sum(1.0)],
        [lambda: None],
    ],
    ids=["NamedTuple", "defaultdict", "datetime", "masked", "dataclass", "function"],
)
def test_what_would_come_back_as_something_else_is_refused_when_it_is_written(value):
    w = sw.Window(kept(lambda x: [x], []), "recalc", dtype=object)
    w.insert(0, value[0])
    with pytest.raises(sw.UnsupportedError, match="encode= and decode="):
        w.to_bytes()
    assert len(w) == 1, "the window goes on"


# ---- descriptions that lie -------------------------------------------------------------------------------------------


def sealed(head: str, body: bytes = b"") -> bytes:
    data = MAGIC + struct.pack("<HI", 1, len(head)) + head.encode() + body
    return data + hashlib.sha256(data).digest()


@pytest.mark.parametrize("size", ["Infinity", "-Infinity", "NaN", "1e400", "1.5", '"3"', "null", "-1", "[]", "9" * 400])
def test_a_length_that_is_none_is_damage(size):
    with pytest.raises(sw.StateError, match="damaged"):
        unpack("window", sealed(f'{{"kind": "window", "sections": [["times", {size}]]}}', b"abc"))


def test_a_description_of_another_shape_is_damage():
    for head in ("[]", "1", "null", '"text"', "{}", '{"sections": 1}', '{"sections": [1]}', '{"sections": []}', "[" * 9000):
        with pytest.raises(sw.StateError):
            unpack("window", sealed(head))
    good = pack("window", {"a": 1}, {"x": b"abc"})
    assert unpack("window", good)[1] == {"x": b"abc"}
    assert json.loads(good[16 : good.index(b"abc")]) == {"a": 1, "kind": "window", "sections": [["x", 3]]}


# ---- states stay inside ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_result_may_be_changed_and_the_window_does_not_notice(name):
    op = sw.operator(lift=lambda x: np.array([1, x]), combine=lambda a, b: a + b, identity=np.zeros(2, int), name="wide")
    try:
        w = sw.Window(op, name, dtype=object)
        w.insert(0, 5)
    except sw.UnsupportedError:
        return
    w.insert(1, 7)
    for _ in range(2):
        answer = w.query()
        assert answer.tolist() == [2, 12]
        answer += 1000
    if "items" in next(info for info in sw.algorithms() if info.name == name).offers or name in ("fiba", "btree"):
        for _ in range(2):
            for _, state in w.items():
                state += 1000
        assert [state.tolist() for _, state in w.items()] == [[1, 5], [1, 7]]
    assert w.query().tolist() == [2, 12]
    assert op.identity.tolist() == [0, 0]


@pytest.mark.parametrize(
    "lift",
    [
        lambda x: [x],
        lambda x: {"n": [x]},
        lambda x: {x},
        lambda x: ([x], 1),
        lambda x: Event([x], "a"),
        lambda x: Counter([x]),
        lambda x: bytearray([x]),
    ],
    ids=["list", "dict", "set", "tuple", "NamedTuple", "Counter", "bytearray"],
)
def test_parts_of_a_result_may_be_changed_too(lift):
    w = sw.Window(sw.operator(lift=lift, combine=lambda a, b: b, identity=lift(0), name="last"), "recalc", dtype=object)
    w.insert(0, 3)
    answer = w.query()
    for part in [answer, *(answer if isinstance(answer, tuple) else ()), *(answer.values() if type(answer) is dict else ())]:
        if hasattr(part, "clear"):
            part.clear()
    assert w.query() == lift(3)


def test_a_buffer_that_is_filled_again_is_copied():
    w = sw.Window(
        sw.operator(lift=lambda x: x, combine=lambda a, b: a + b, identity=np.zeros(2), name="vectors"), "daba", dtype=object
    )
    buffer = np.zeros(2)
    for t in range(3):
        buffer[:] = t
        w.insert(t, buffer)
    w.bulk_insert([3, 4], [buffer, buffer])
    buffer[:] = 1000
    assert w.query().tolist() == [0 + 1 + 2 + 2 + 2] * 2


def test_a_broken_window_says_so():
    def combine(a, b):
        if b == 13:
            raise RuntimeError("no luck")
        return a + b

    w = sw.Window(sw.operator(lift=lambda x: x, combine=combine, identity=0, name="unlucky"), "two_stacks", dtype=object)
    w.insert(0, 1)
    with pytest.raises(RuntimeError):
        w.insert(1, 13)
    assert repr(w) == "<Window unlucky() on two_stacks: half changed by RuntimeError: no luck>"
    with pytest.raises(sw.StateError, match="half changed"):
        w.query()


# ---- operators without a name ------------------------------------------------------------------------------------------


def unnamed(combine, lift=lambda x: x, **more):
    return sw.operator(lift=lift, combine=combine, identity=0, **more)


def test_operators_without_a_name_are_told_apart():
    stored = sw.Window(unnamed(lambda a, b: a + b), dtype=object, time_dtype="int64")
    stored.bulk_insert([1, 2], [3, 4])
    data = stored.to_bytes()
    assert sw.Window.from_bytes(data, unnamed(lambda a, b: a + b)).query() == 7
    step = 2
    others = [unnamed(lambda a, b: a * b), unnamed(lambda a, b: a + b, lift=lambda x: step * x)]
    for other in [*others, sw.struct(a=unnamed(lambda a, b: a + b)), unnamed(lambda a, b: a + b, name="lambda")]:
        with pytest.raises(sw.StateError, match="stored state is of lambda"):
            sw.Window.from_bytes(data, other)
    one, two = (sw.struct(a=unnamed(combine)) for combine in (lambda a, b: a + b, lambda a, b: a * b))
    assert one.signature != two.signature


SAME_SOURCE = """
import sys
import slidewise as sw
op = sw.operator(lift=lambda x: x * 3, combine=lambda a, b: max(a, b), identity=0)
if len(sys.argv) > 1:
    print(sw.Window.from_bytes(bytes.fromhex(sys.argv[1]), op).query())
else:
    w = sw.Window(op, dtype=object, time_dtype="int64")
    w.insert(1, 5)
    print(w.to_bytes().hex())
"""


def test_an_operator_without_a_name_is_the_same_in_another_process():
    run = lambda *more: subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SAME_SOURCE, *more], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert run(run()) == "15"


def test_an_operator_without_a_name_or_a_description_cannot_be_stored():
    class Scale:
        def __call__(self, x):
            return x

    scale = Scale()
    make = lambda **name: sw.operator(lift=lambda x: scale(x), combine=lambda a, b: a + b, identity=0, **name)
    w = sw.Window(make(), dtype=object, time_dtype="int64")
    w.insert(1, 2)
    with pytest.raises(sw.UnsupportedError, match="give it one"):
        w.to_bytes()
    with pytest.raises(sw.UnsupportedError, match="give it one"):
        sw.Window(sw.struct(a=make())).to_bytes()
    sw.Window(make(name="scaled")).to_bytes()


@pytest.mark.parametrize("wrong", [{"name": 3}, {"name": ""}, {"equal": 3}, {"encode": 1, "decode": 2}, {"commutative": "yes"}])
def test_wrong_arguments_of_an_operator(wrong):
    with pytest.raises(sw.InputTypeError, match=next(iter(wrong))):
        unnamed(lambda a, b: a + b, **wrong)


@pytest.mark.parametrize("bulk", [(1, 2), ([1], 2), (None, [1]), (1, None)])
def test_a_bulk_is_lists(bulk):
    w = sw.Window(sw.sum())
    with pytest.raises(sw.InputTypeError, match="takes lists of times and of values"):
        w.bulk_insert(*bulk)
    assert len(w) == 0
