"""Fingerprints: equal for the same code, different for anything compiled code would see."""

import types

import numpy as np

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
