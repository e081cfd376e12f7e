"""Fingerprints: equal for the same code, different for anything compiled code would see."""

import numpy as np

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


def test_a_function_that_calls_itself_has_one():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert fingerprint(factorial)


def test_what_has_no_stable_description_has_no_fingerprint():
    assert fingerprint(maker(object())) is None
