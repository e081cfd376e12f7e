"""Stored FiBA windows under attack: every byte flipped, every length cut, every field forged under a true checksum.

A snapshot that was changed never loads. One that a foreign writer made, with a checksum of his own, is refused or is a window that
is sound in every respect; it never reaches compiled code otherwise, which has no bounds checks.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

import slidewise as sw
from slidewise.algebra.codec import encode
from slidewise.live.snapshot import MAGIC

HEAD = struct.Struct("<HI")
DIGEST = 32


def _filled(op, dtype, times, values):
    w = sw.Window(op, algorithm="fiba", dtype=dtype)
    for t, x in zip(times, values):
        w.insert(t, x)
    w.evict()
    return w


def _compiled():
    return sw.max(), _filled(sw.max(), "i8", [5, 3, 9, 1, 7, 8, 2], range(7))


def _narrow():
    """Partials of one word, which may be laid out in two."""
    return sw.sum(), _filled(sw.sum(), "i8", [5, 3, 9, 1, 7, 8, 2], range(7))


def _interpreted():
    op = sw.collect()
    return op, _filled(op, object, [5, 3, 9, 1, 7], ["a", "b", "", "d", "e"])


def _objects_as_times():
    op = sw.concat(sep="")
    return op, _filled(op, object, ["m", "c", "x", "k"], "stuv")


def _datetimes():
    op = sw.max()
    return op, _filled(op, "i8", [datetime(2024, 1, 1) + timedelta(hours=h) for h in (5, 3, 9)], range(3))


def _float_times():
    """In the order of the floats, which is not that of their bits."""
    return sw.max(), _filled(sw.max(), "i8", [0.5, -3.25, float("inf"), -0.0, 1e300, -1e-300, -7.0], range(7))


def _struct():
    """Sums that may not fit in one word: a state of two."""
    large = 2**62
    w = _filled(sw.sum(), "i8", [5, 3, 9, 1, 7], [large, -large, large, -large, 5])
    assert w._store.op.kind == "struct"
    return sw.sum(), w


EXTREMES = sw.operator(
    lift=lambda x: np.array([x, x]),
    combine=lambda a, b: np.array([min(a[0], b[0]), max(a[1], b[1])]),
    identity=np.array([2**62, -(2**62)]),
    name="extremes",
)


def _wide():
    w = _filled(EXTREMES, "i8", [5, 3, 9, 1, 7], range(5))
    assert w._store.op.kind == "wide"
    return EXTREMES, w


WINDOWS = [_compiled, _narrow, _interpreted, _objects_as_times, _datetimes, _float_times, _struct, _wide]


def _sealed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).digest()


def _taken_apart(data: bytes) -> tuple[dict, bytes]:
    version, length = HEAD.unpack_from(data, len(MAGIC))
    at = len(MAGIC) + HEAD.size
    return json.loads(data[at : at + length]), data[at + length : -DIGEST]


def _forged(head: dict, body: bytes) -> bytes:
    text = json.dumps(head, sort_keys=True).encode()
    return _sealed(MAGIC + HEAD.pack(1, len(text)) + text + body)


def _refused_or_sound(data: bytes, op) -> bool:
    """Whether it was refused. What loads is asked for everything it offers."""
    try:
        w = sw.Window.from_bytes(data, op)
    except sw.StateError:
        return True
    w.check()
    try:
        entries = w.items()
    except sw.AggregateOverflowError:  # a sum by itself
        assert op is sw.sum()
        entries = []
    else:
        assert len(entries) == len(w)
    try:
        w.query()
    except sw.AggregateOverflowError:  # what was forged adds up to more than there is room for
        assert op is sw.sum()
    if entries:
        assert (w.oldest, w.youngest) == (entries[0][0], entries[-1][0])
        try:
            w.query(w.oldest, w.youngest)
        except sw.AggregateOverflowError:
            pass
        except sw.SlidewiseError:  # a moment beyond Python's datetimes comes back as a number, which is none
            assert not isinstance(w.oldest, datetime) or not isinstance(w.youngest, datetime)
    while len(w):
        w.evict()
    return False


@pytest.mark.parametrize("make", WINDOWS)
def test_what_was_stored_loads(make):
    op, w = make()
    again = sw.Window.from_bytes(w.to_bytes(), op)
    again.check()
    assert repr(again.items()) == repr(w.items())
    assert again.to_bytes() == w.to_bytes()


@pytest.mark.parametrize("make", WINDOWS)
def test_a_flipped_byte_never_loads(make):
    op, w = make()
    data, rnd = w.to_bytes(), random.Random(1)
    for at in range(len(data)):
        for flip in {1, 0x80, 0xFF, rnd.randrange(1, 256)}:
            broken = bytearray(data)
            broken[at] ^= flip
            with pytest.raises(sw.StateError):
                sw.Window.from_bytes(bytes(broken), op)


@pytest.mark.parametrize("make", WINDOWS)
def test_a_snapshot_of_another_length_never_loads(make):
    op, w = make()
    data = w.to_bytes()
    for length in range(len(data)):
        with pytest.raises(sw.StateError):
            sw.Window.from_bytes(data[:length], op)
    for longer in (data + b"\0", data + data, b"\0" + data, data[:40] + b"\0" + data[40:]):
        with pytest.raises(sw.StateError):
            sw.Window.from_bytes(longer, op)


@pytest.mark.parametrize("make", WINDOWS)
def test_a_flipped_byte_under_a_true_checksum_is_refused_or_sound(make):
    op, w = make()
    body, rnd = w.to_bytes()[:-DIGEST], random.Random(2)
    refused = 0
    for at in range(len(body)):
        for flip in (1, rnd.randrange(1, 256)):
            broken = bytearray(body)
            broken[at] ^= flip
            refused += _refused_or_sound(_sealed(bytes(broken)), op)
    assert refused > len(body) // 2, "most of a snapshot is not a value that could be any other"


@pytest.mark.parametrize("make", WINDOWS)
def test_many_changes_under_a_true_checksum_are_refused_or_sound(make):
    op, w = make()
    body, rnd = w.to_bytes()[:-DIGEST], random.Random(3)
    for _ in range(300):
        broken = bytearray(body)
        for _ in range(rnd.randrange(1, 6)):
            at = rnd.randrange(len(broken))
            what = rnd.randrange(4)
            if what == 0:
                del broken[at : at + rnd.randrange(1, 9)]
            elif what == 1:
                broken[at:at] = rnd.randbytes(rnd.randrange(1, 9))
            else:
                broken[at] = rnd.randrange(256)
        _refused_or_sound(_sealed(bytes(broken)), op)


FORGERIES = [0, -1, 1, 3, 5, 2**31, 2**63, 2**70, 1.5, True, None, "", "x", [], {}, [[]], float("nan")]


@pytest.mark.parametrize("make", WINDOWS)
def test_a_forged_field_is_refused_or_sound(make):
    """Each field of the description, with everything that it must not be."""
    op, w = make()
    head, body = _taken_apart(w.to_bytes())
    assert _forged(head, body) == w.to_bytes()
    assert not _refused_or_sound(_forged(head, body), op)
    for key in head:
        for value in FORGERIES:
            if type(value) is type(head[key]) and value == head[key]:
                continue
            _refused_or_sound(_forged(head | {key: value}, body), op)
        less = {k: v for k, v in head.items() if k != key}
        assert _refused_or_sound(_forged(less, body), op), f"without {key}"
    for count in (0, 1, head["count"] - 1, head["count"] + 1, 2**40):
        assert _refused_or_sound(_forged(head | {"count": count}, body), op), "a false size"
    for arity in (-2, 0, 1, 3, 5, 6, 7, 32, 2**40):
        assert _refused_or_sound(_forged(head | {"min_arity": arity}, body), op), "an arity that there is not"
    assert _refused_or_sound(_sealed(MAGIC + HEAD.pack(1, 40_000) + b"[" * 40_000), op), "nested beyond all measure"


def test_times_out_of_order_never_load():
    """The one thing compiled search relies on and no length shows."""
    op, w = _compiled()
    head, body = _taken_apart(w.to_bytes())
    sizes = dict(head["sections"])
    assert next(iter(sizes)) == "times"
    times = np.frombuffer(body[: sizes["times"]], "<i8")
    for other in (times[::-1], np.roll(times, 1), np.full_like(times, 7), np.append(times[:-1], times[-2])):
        forged = _forged(head, np.ascontiguousarray(other).tobytes() + body[sizes["times"] :])
        with pytest.raises(sw.StateError, match="order"):
            sw.Window.from_bytes(forged, op)


@pytest.mark.parametrize("algorithm", ["fiba", "recalc"])
def test_times_that_are_none_never_load(algorithm):
    """A NaN, a second zero beside 0.0, a NaT, a None, a year that Python has not: no window takes them in, and bytes bring none."""

    def forged(time, code) -> bytes:
        w = sw.Window(sw.collect(), algorithm, dtype=object)
        w.insert(time, 1)
        head, body = _taken_apart(w.to_bytes())
        sizes = dict(head["sections"])
        names = list(sizes)
        at = sum(sizes[name] for name in names[: names.index("times")])
        head["sections"] = [[name, len(code) if name == "times" else sizes[name]] for name in names]
        return _forged(head, body[:at] + code + body[at + sizes["times"] :])

    nat, far = np.int64(-(2**63)), np.int64(2**62)
    for time, codes in (
        (1.5, [np.int64(2**63 - 1), nat, np.int64(-1)]),
        (np.datetime64("2026-01-01", "us"), [nat]),
        (datetime(2026, 1, 1), [nat, far]),
        (datetime(2026, 1, 1, tzinfo=UTC), [nat, far, -far]),
    ):
        sw.Window.from_bytes(forged(time, np.int64(7).tobytes()), sw.collect())
        for code in codes:
            with pytest.raises(sw.StateError, match="a time is missing"):
                sw.Window.from_bytes(forged(time, code.tobytes()), sw.collect())
    sw.Window.from_bytes(forged("a", encode(["b"])), sw.collect())
    for missing in (None, float("nan")):
        with pytest.raises(sw.StateError, match="a time is missing"):
            sw.Window.from_bytes(forged("a", encode([missing])), sw.collect())


@pytest.mark.parametrize("partial", [(), (1,), [1], 7, None, {}], ids=repr)
def test_partials_that_the_operator_cannot_combine_never_load(partial):
    """Whatever its `combine` raises for them: here a user's own, which looks at two fields."""
    op = sw.operator(lift=lambda x: (x, 1), combine=lambda a, b: (a[0] + b[0], a[1] + b[1]), identity=(0, 0), name="pairs")
    head, body = _taken_apart(_filled(op, object, [5, 3, 9, 1], range(4)).to_bytes())
    sizes = dict(head["sections"])
    assert list(sizes) == ["times", "states"]
    code = encode([partial] * head["count"])
    forged = _forged(head | {"sections": [["times", sizes["times"]], ["states", len(code)]]}, body[: sizes["times"]] + code)
    with pytest.raises(sw.StateError):
        sw.Window.from_bytes(forged, op)
