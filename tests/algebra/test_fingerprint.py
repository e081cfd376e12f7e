"""Fingerprints: equal for the same code, different for anything compiled code would see."""

import collections
import dataclasses
import enum
import functools
import importlib
import math
import sys
import types

import numba
import numpy as np
import pytest

import slidewise as sw
from slidewise.algebra.fingerprint import fingerprint

SCALE = 2


def scaled(x):
    return x * SCALE


def outer(x):
    return scaled(x) + 1


def maker(k):
    return lambda x: x + k


def test_constants_closures_globals_and_defaults_count():
    assert fingerprint(maker(1)) == fingerprint(maker(1))
    assert fingerprint(maker(1)) != fingerprint(maker(2))
    assert fingerprint(lambda x: x + 1) != fingerprint(lambda x: x + 2)
    assert fingerprint(lambda x, y=1: x) != fingerprint(lambda x, y=2: x)
    assert fingerprint(maker(np.arange(3))) != fingerprint(maker(np.arange(4)))
    assert fingerprint(maker(1)) != fingerprint(maker(1.0)), "1 and 1.0 compile to different code"


def test_globals_are_followed_through_functions(monkeypatch):
    before = fingerprint(outer)
    monkeypatch.setitem(globals(), "SCALE", 3)
    assert fingerprint(outer) != before


def test_the_code_itself_counts():
    assert fingerprint(lambda x, y: x + y) != fingerprint(lambda x, y: x - y)
    assert fingerprint(lambda x: (x + 1) * 2) != fingerprint(lambda x: (x * 2) + 1)


def test_which_function_comes_again_counts():
    def f(x):
        return x + 1

    def g(x):
        return x * 2

    def three(a, b, c):
        return lambda x: a(b(c(x)))

    assert fingerprint(three(f, g, f)) != fingerprint(three(f, g, g))
    assert fingerprint(three(f, g, f)) == fingerprint(three(f, g, f))
    mixed = [sw.struct(a=sw.first(), b=sw.last(), c=c).typed((np.dtype("f8"),)) for c in (sw.first(), sw.last())]
    assert mixed[0]._numba_type_ != mixed[1]._numba_type_


def test_what_is_named_of_a_module_counts():
    settings = types.ModuleType("settings_of_somebody")
    settings.SCALE, settings.OTHER = 2.0, 1
    inner = types.ModuleType("settings_of_somebody.inner")
    inner.SCALE, settings.inner = 7.0, inner

    def of_settings():
        return lambda x: x * settings.SCALE

    def of_inner():
        return lambda x: x * settings.inner.SCALE

    before = fingerprint(of_settings()), fingerprint(of_inner())
    settings.OTHER = 9
    assert (fingerprint(of_settings()), fingerprint(of_inner())) == before, "what is not named does not count"
    inner.SCALE = 8.0
    assert fingerprint(of_inner()) != before[1]
    assert fingerprint(of_settings()) == before[0]
    settings.SCALE = 5.0
    assert fingerprint(of_settings()) != before[0]


def test_what_only_the_second_function_names_of_a_module_counts():
    settings = types.ModuleType("settings_of_somebody")
    inner = types.ModuleType("settings_of_somebody.inner")
    settings.A, settings.B, settings.inner, inner.A, inner.B = 1, 5, inner, 1, 5

    def helper(x):
        return x * settings.A * settings.inner.A

    def of_module():
        return lambda x: helper(x) + settings.B

    def of_inner():
        return lambda x: helper(x) + settings.inner.B

    before = fingerprint(of_module()), fingerprint(of_inner())
    settings.B = 7000
    assert fingerprint(of_module()) != before[0]
    inner.B = 7000
    assert fingerprint(of_inner()) != before[1]
    settings.B, inner.B = 5, 5
    assert (fingerprint(of_module()), fingerprint(of_inner())) == before


def test_a_function_that_calls_itself_has_one():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert fingerprint(factorial)


def test_what_has_no_stable_description_has_no_fingerprint():
    assert fingerprint(maker(object())) is None


def test_modules_that_import_each_other_have_one():
    package, settings = types.ModuleType("somebody"), types.ModuleType("somebody.settings")
    package.settings, settings.package, settings.SCALE = settings, package, 2.0
    settings.settings = settings

    def scaled_by():
        return lambda x: x * package.settings.SCALE + settings.package.settings.SCALE

    before = fingerprint(scaled_by())
    assert before == fingerprint(scaled_by())
    settings.SCALE = 3.0
    assert fingerprint(scaled_by()) != before


# ---- values that look alike and are not ------------------------------------------------------------------------------


def color(value, kind=enum.Enum):
    """An Enum of one name, whose only member is worth this."""
    return kind("Color", {"RED": value}, module=__name__, qualname="Color")


def pair(**defaults):
    made = collections.namedtuple("Pair", ["a", "b"], defaults=defaults.values(), module=__name__)
    made.__qualname__ = "Pair"
    return made


def other(name, *fields):
    return collections.namedtuple(name, fields, module=__name__)


@dataclasses.dataclass(repr=False)
class Quiet:
    x: int


class Silent:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return "Silent()"


class Named(enum.Enum):
    """Members show their names only."""

    def __repr__(self):
        return self.name


class Louder(float):
    def __repr__(self):
        return "1.0"


LOOK_ALIKES = {
    "members of enums": (color(1).RED, color(2).RED),
    "members of whole enums": (color(1, enum.IntEnum).RED, color(2, enum.IntEnum).RED),
    "members that do not show what they are worth": (color(1, Named).RED, color(2, Named).RED),
    "a member and its number": (color(1, enum.IntEnum).RED, 1),
    "enums": (color(1), color(2)),
    "named tuples and tuples": (pair()(1, 2), (1, 2)),
    "named tuples": (pair()(1, 2), pair()(1, 3)),
    "names of named tuples": (other("P", "a")(1), other("Q", "a")(1)),
    "fields of named tuples": (other("P", "a")(1), other("P", "b")(1)),
    "defaults of named tuples": (pair(a=1, b=2), pair(a=1, b=3)),
    "records": (np.array([(1,)], [("a", "i4")]), np.array([(1,)], [("b", "i4")])),
    "types of fields": (np.array([(1,)], [("a", "i4")]), np.array([(1,)], [("a", "u4")])),
    "places of fields": tuple(
        np.zeros(1, {"names": ["a", "b"], "formats": ["i2", "i2"], "offsets": places, "itemsize": 8})
        for places in ([0, 2], [0, 4])
    ),
    "single records": tuple(np.array([(1,)], [(name, "i4")])[0] for name in "ab"),
    "orders of bytes": (np.array([1], ">i4"), np.array([1 << 24], "<i4")),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "zeros": (0.0, -0.0),
    "zeros in arrays": (np.array([0.0]), np.array([-0.0])),
    "zeros of complex numbers": (complex(0.0, 0.0), complex(0.0, -0.0)),
    "a number and its negative NaN": (math.nan, -math.nan),
    "truth and 1": (True, 1),
    "1 and 1.0": (1, 1.0),
    "scalars": (np.int64(1), 1),
    "widths": (np.int64(1), np.int32(1)),
    "truth values": (np.True_, True),
    "float64 and float": (np.float64(1.0), 1.0),
    "text and bytes": ("a", b"a"),
    "text and code that says it": ("a", "'a'"),
    "one text and two": (("a", "b"), ("a','b",)),
    "lists and tuples": ([1], (1,)),
    "nested tuples": ((1, (2, 3)), ((1, 2), 3)),
    "sets": (frozenset({1}), {1}),
    "nothing and its name": (None, "None"),
    "units": (np.timedelta64(1, "s"), np.timedelta64(1, "m")),
    "dtypes": (np.dtype("i4"), np.dtype("i8")),
    "functions": (scaled, outer),
}


@pytest.mark.parametrize("what", sorted(LOOK_ALIKES))
def test_values_that_look_alike_and_are_not(what):
    one, two = LOOK_ALIKES[what]
    assert fingerprint(one) is not None and fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(two)
    assert fingerprint(maker(one)) != fingerprint(maker(two))


HIDDEN = {
    "dataclass": Quiet(1),
    "class": Silent(1),
    "float": Louder(2),
    "partial": functools.partial(scaled, 1),
    "bound": [].append,
}


@pytest.mark.parametrize("value", HIDDEN.values(), ids=HIDDEN.keys())
def test_what_does_not_show_what_it_holds_has_no_fingerprint(value):
    assert fingerprint(value) is None
    assert fingerprint(maker(value)) is None


def numba_helpers(k):
    """Functions that are compiled in other ways than by @njit, and do not show what they do."""

    @numba.vectorize
    def dynamic(x):
        return x + k

    @numba.vectorize(["f8(f8)"])
    def eager(x):
        return x + k

    @numba.cfunc("f8(f8)")
    def callback(x):
        return x + k

    @numba.guvectorize(["f8[:], f8[:]"], "(n)->(n)")
    def general(x, out):
        out[:] = x + k

    return dynamic, eager, callback, general


def test_ufuncs_and_callbacks_of_one_s_own_have_no_fingerprint():
    assert [fingerprint(maker(helper)) for helper in numba_helpers(1)] == [None] * 4
    assert fingerprint(maker(np.sin)) not in (None, fingerprint(maker(np.cos)))


def test_options_of_the_compiler_count():
    def add(x):
        return x + 1.0

    plain, fast = numba.njit(add), numba.njit(fastmath=True)(add)
    assert fingerprint(maker(plain)) not in (None, fingerprint(maker(fast)))


def overloaded(k):
    """A function with another meaning in compiled code."""

    def meaning(x):
        return x

    @numba.extending.overload(meaning)
    def compiled(x):
        return lambda x: x + k

    return meaning


def test_what_an_overload_says_counts():
    assert fingerprint(maker(overloaded(1))) == fingerprint(maker(overloaded(1)))
    assert fingerprint(maker(overloaded(1))) != fingerprint(maker(overloaded(2)))


def test_where_errors_are_caught_counts():
    sources = ["try:\n        a = x\n        b = 1\n    except Exception:\n        b = 2\n    return b"] * 2
    sources[1] = sources[1].replace("        a = x\n", "").replace("    try:", "    a = x\n    try:")
    made = []
    for source in sources:
        space: dict = {}
        exec(f"def f(x):\n    {source}", space)
        made.append(fingerprint(space["f"]))
    assert made[0] != made[1]


def test_attributes_that_are_named_by_a_string_count():
    settings = types.ModuleType("settings_by_string")
    settings.SCALE = 1

    def reader():
        return lambda x: x * getattr(settings, "SCALE")  # noqa: B009

    before = fingerprint(reader())
    settings.SCALE = 2
    assert fingerprint(reader()) != before


# ---- code that is compiled already -----------------------------------------------------------------------------------


def compiled_helper(space):
    """A function of a module of its own, jitted, and one that calls it."""
    exec("def helper(x):\n    return x * SCALE", space)
    helper = numba.njit(space["helper"])
    return helper, lambda x: helper(x) + 1


def test_a_helper_that_was_compiled_under_another_global_has_no_fingerprint():
    space = {"SCALE": 2.0, "__name__": "somebodys_module"}
    helper, outside = compiled_helper(space)
    before = fingerprint(outside)
    assert helper(1.0) == 2.0
    assert fingerprint(outside) == before is not None
    space["SCALE"] = 3.0
    assert helper(1.0) == 2.0, "Numba has frozen it"
    assert fingerprint(outside) is None
    helper(1)  # another type: compiled with the new value
    space["SCALE"] = 2.0
    assert fingerprint(outside) is None, "one of its forms has the old value, one the new"


def test_a_helper_read_from_a_cache_of_numba_s_has_no_fingerprint(tmp_path, monkeypatch):
    """That cache looks at the file's date, not at globals."""
    (tmp_path / "cached_helper.py").write_text(
        "from numba import njit\nSCALE = 2.0\n@njit(cache=True)\ndef helper(x):\n    return x * SCALE\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path))
    for compiles in (True, False):
        module = importlib.import_module("cached_helper")
        assert module.helper(1.0) == 2.0
        assert (fingerprint(maker(module.helper)) is not None) is compiles
        del sys.modules["cached_helper"]
