"""Compiled code on disk: found by a second process, never used for changed code, safe among parallel processes."""

import importlib
import os
import subprocess
import sys
import textwrap

import numba
import pytest

import slidewise as sw

PROGRAM = """
import sys, warnings
import numpy as np
from typing import NamedTuple
import slidewise as sw
from slidewise.algebra import cache
from slidewise.algebra.kernel import combine as join, emit, get, lift as lifted, open_arrays, open_state, ptr, row

STEP = {step}

class Pair(NamedTuple):
    n: int
    s: float

def lift(x):
    return Pair(STEP, x)

def combine(a, b):
    return Pair(a.n + b.n, a.s + b.s)

def lower(p):
    return p.s / p.n

compiled = []
begin = cache._Progress.start
cache._Progress.start = classmethod(lambda cls, name: compiled.append(name))
op = sw.operator(lift=lift, combine=combine, lower=lower, identity=Pair(0, 0.0), name="mine")
typed = op.typed((np.dtype("f8"),))

@cache.entry
def fold(op, V_, X_, OUT_, OK_):
    V, X, OUT, OK = open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    total = lifted(op, get(op, V, 0), row(X, 0))
    for i in range(1, len(X_[0])):
        total = join(op, get(op, V, 1), total, lifted(op, get(op, V, 0), row(X, i)))
    emit(op, OUT, OK, 0, total)

@cache.entry
def youngest(op, V_, X_, OUT_, OK_):
    V, X, OUT, OK = open_state(op, V_), open_arrays(X_), open_arrays(OUT_), ptr(OK_)
    emit(op, OUT, OK, 0, lifted(op, get(op, V, 0), row(X, len(X_[0]) - 1)))

V, OUT, OK = typed.state.alloc(2), typed.result.alloc(1), np.zeros(1, np.uint8)
for loop in (fold, youngest)[: {loops}]:
    loop(typed, V, (np.arange(15.0, 20.0),), OUT, OK)
print(len(compiled), OUT[0][0])
"""


def run(folder, step=1, wait=True, loops=1):
    env = dict(os.environ, SLIDEWISE_CACHE_DIR=str(folder))
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(PROGRAM.format(step=step, loops=loops))],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return finish(process) if wait else process


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    compiled, answer = out.split()
    return int(compiled), float(answer)


def test_a_second_process_compiles_nothing_and_changed_code_compiles_anew(tmp_path):
    assert run(tmp_path) == (1, 17.0)
    assert run(tmp_path) == (0, 17.0)
    # a global constant that lift reads is part of the operator: the old code must not answer for it
    assert run(tmp_path, step=2) == (1, 8.5)
    assert run(tmp_path) == (0, 17.0)
    # damaged entries are no entries
    for entry in tmp_path.iterdir():
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 255
        entry.write_bytes(bytes(data))
    assert run(tmp_path) == (1, 17.0)
    assert run(tmp_path) == (0, 17.0)
    assert oct(tmp_path.stat().st_mode & 0o022) == oct(0)


def test_a_later_process_compiles_another_loop_for_an_operator_it_finds_compiled(tmp_path):
    """The state is a class of the program's own: each process has another one of that name."""
    assert run(tmp_path) == (1, 17.0)
    assert run(tmp_path, loops=2) == (1, 19.0)
    assert run(tmp_path, loops=2) == (0, 19.0)


def test_parallel_processes_do_not_mix_up_entries(tmp_path):
    processes = [run(tmp_path, step=1 + k % 2, wait=False) for k in range(4)]
    assert [finish(p)[1] for p in processes] == [17.0, 8.5, 17.0, 8.5]
    assert run(tmp_path, step=1) == (0, 17.0)
    assert run(tmp_path, step=2) == (0, 8.5)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".new-")]


def test_it_can_be_switched_off(tmp_path):
    env = dict(os.environ, SLIDEWISE_CACHE_DIR="off", HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    code = "from slidewise.algebra import cache; cache.write_entry('a', b'b'); print(cache.cache_dir(), cache.read_entry('a'))"
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["None", "None"]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_others_can_write_is_not_used(tmp_path, monkeypatch):
    from slidewise.algebra import cache

    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("SLIDEWISE_CACHE_DIR", str(folder))
    with pytest.warns(RuntimeWarning, match="written by others"):
        assert cache.cache_dir() is None
    monkeypatch.setenv("SLIDEWISE_CACHE_DIR", str(tmp_path / "own"))
    assert cache.cache_dir() == tmp_path / "own"
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700


def test_a_full_disk_costs_nothing_but_speed(tmp_path, monkeypatch):
    from slidewise.algebra import cache

    monkeypatch.setenv("SLIDEWISE_CACHE_DIR", str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", full)
    cache.write_entry("x", b"body")
    assert cache.read_entry("x") is None
    assert list(tmp_path.iterdir()) == []


CHANGING = """
import sys
import slidewise as sw

SCALE = float(sys.argv[1])

def scaled(x):
    return x * SCALE

def largest(a, b):
    return a if a >= b else b

def made():
    op = sw.operator(lift=scaled, combine=largest, identity=float("-inf"), name="scaled")
    return sw.struct(a=op) if sys.argv[3] == "struct" else op

def answer(op):
    w = sw.Window(op, "recalc")
    w.insert(0, 1.0)
    found = w.query()
    return found.a if sys.argv[3] == "struct" else found

first = made()
print(answer(first))
if sys.argv[2] != "same":
    SCALE = float(sys.argv[2])
    print(answer(made()))
    print(answer(first))
"""


@pytest.mark.parametrize("kind", ["operator", "struct"])
def test_a_global_that_changes_in_one_process_misleads_no_other(tmp_path, kind):
    def answers(before, after="same"):
        command = [sys.executable, "-W", "error", "-c", CHANGING, str(before), str(after), kind]
        env = dict(os.environ, SLIDEWISE_CACHE_DIR=str(tmp_path))
        out = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
        assert out.returncode == 0, out.stderr
        return [float(line) for line in out.stdout.split()]

    # an operator is what it was when it was first used; one that is made later takes the new value
    assert answers(2, 3) == [2.0, 3.0, 2.0]
    assert answers(3) == [3.0]
    assert answers(2) == [2.0]
    assert answers(5, 3) == [5.0, 3.0, 5.0]


def test_an_operator_whose_globals_changed_is_not_compiled_any_further(tmp_path, monkeypatch):
    """Its insert has the old value in it: a query with the new one would be another operator's."""
    monkeypatch.setenv("SLIDEWISE_CACHE_DIR", str(tmp_path))
    space = {"SCALE": 2.0, "__name__": __name__}
    exec("def lift(x):\n    return x\ndef lower(s):\n    return s * SCALE\ndef combine(a, b):\n    return a + b", space)
    op = sw.operator(lift=space["lift"], combine=space["combine"], lower=space["lower"], identity=0.0, name="scaled")
    w = sw.Window(op, "recalc")
    w.insert(0, 1.0)
    entries = set(tmp_path.iterdir())
    space["SCALE"] = 3.0
    with pytest.raises(sw.InputError, match="make a new operator"):
        w.query()
    assert set(tmp_path.iterdir()) == entries
    space["SCALE"] = 2.0
    assert w.query() == 2.0, "nothing was changed"


def test_an_operator_with_a_helper_that_nobody_can_describe_is_never_filed(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIDEWISE_CACHE_DIR", str(tmp_path))

    def made(k):
        add = numba.vectorize(lambda x: x + k)
        return sw.operator(lift=lambda x: add(x), combine=lambda a, b: a + b, identity=0.0, name="vectorized")

    for k in (1.0, 2.0):
        w = sw.Window(made(k), "recalc")
        w.insert(0, 1.0)
        assert w.compiled
        assert w.query() == 1.0 + k
    assert list(tmp_path.iterdir()) == []


def test_a_state_whose_class_the_identity_does_not_show(tmp_path):
    """lift gives a NamedTuple, the identity is a plain tuple: the second process must find out again."""
    code = """
import numpy as np
from typing import NamedTuple
import slidewise as sw

class Pair(NamedTuple):
    n: int
    s: float

op = sw.operator(lift=lambda x: Pair(1, x), combine=lambda a, b: Pair(a.n + b.n, a.s + b.s), lower=lambda p: p.s / p.n,
                 identity=(0, 0.0), name="mine")
w = sw.Window(op, "recalc")
w.insert(0, 4.0)
print(w.compiled, w.query())
"""
    env = dict(os.environ, SLIDEWISE_CACHE_DIR=str(tmp_path))
    for _ in range(2):
        out = subprocess.run([sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True, timeout=300)
        assert out.stdout.split() == ["True", "4.0"], out.stderr


def test_code_with_a_helper_from_a_cache_of_numba_s_is_never_filed(tmp_path, monkeypatch):
    """What that cache gives was compiled while a global may have been another one, and only shows up with the compile."""
    monkeypatch.setenv("SLIDEWISE_CACHE_DIR", str(tmp_path / "ours"))
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "numba's"))
    monkeypatch.syspath_prepend(tmp_path)
    source = "from numba import njit\nSCALE = 2.0\n@njit(cache=True)\ndef cached(x):\n    return x * SCALE\n"
    (tmp_path / "helper_of_cache.py").write_text(source)
    importlib.import_module("helper_of_cache").cached(1.0)
    del sys.modules["helper_of_cache"]
    cached = importlib.import_module("helper_of_cache").cached
    w = sw.Window(sw.operator(lift=lambda x: cached(x), combine=lambda a, b: a + b, identity=0.0, name="cached"), "recalc")
    w.insert(0, 1.0)
    assert w.compiled and w.query() == 2.0
    assert sum(cached.stats.cache_hits.values()) > 0, "or nothing is shown"
    assert not [entry.name for entry in (tmp_path / "ours").iterdir() if entry.name.startswith("code-")]
