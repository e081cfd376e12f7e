"""Python-object states as bytes and back: plain types only, nothing that can run.

Each value is one tag byte and its body; lengths are unsigned 64-bit little-endian. Plain types: None, bool, int of any size,
float, complex, str, bytes, bytearray, tuple, list, dict, Counter, OrderedDict, set, frozenset, Decimal, Fraction, date, datetime,
time, timedelta, NumPy arrays and scalars of numbers, datetimes and text of fixed width. Exactly these: a value comes back as what
it was, so that one of a class made from them (a pandas Timestamp is a datetime) is refused, not cut down. NamedTuples come back
where the operator's identity shows them (`stripped`, `like`). Anything else needs the operator's own `encode` and `decode`.
"""

import re
import struct
from collections import Counter, OrderedDict
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import numpy as np

from slidewise.errors import StateError, UnsupportedError

_DEEPEST = 100
_LENGTH = struct.Struct("<Q")
_DOUBLE = struct.Struct("<d")
_SEQUENCES: dict[type, bytes] = {tuple: b"t", list: b"l", set: b"e", frozenset: b"z"}
_MAPPINGS: dict[type, bytes] = {dict: b"d", Counter: b"k", OrderedDict: b"o"}
_DTYPE = re.compile(r"[<>|=]([biufc]\d{1,2}|[mM]8(\[\d*[a-zA-Z]{1,2}\])?|[SU]\d{1,9})")
_FRACTION = re.compile(r"-?\d+/\d+")
_MADE = {tag: kind for kinds in (_SEQUENCES, _MAPPINGS) for kind, tag in kinds.items()}


def encode(value) -> bytes:
    """Bytes of a plain value; UnsupportedError for others."""
    out: list[bytes] = []
    _write(value, out, 0)
    return b"".join(out)


def decode(data: bytes):
    """The value back; StateError if the bytes are not exactly one value."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.at != len(data):
        raise StateError(f"{len(data) - reader.at} bytes too many behind a stored value")
    return value


def _sized(tag: bytes, body: bytes, out: list[bytes]) -> None:
    out += (tag, _LENGTH.pack(len(body)), body)


def _write(value, out: list[bytes], depth: int) -> None:
    if depth > _DEEPEST:
        raise UnsupportedError(f"a state nested deeper than {_DEEPEST} levels cannot be stored")
    kind = type(value)
    if value is None:
        out.append(b"N")
    elif kind is bool:
        out.append(b"T" if value else b"F")
    elif kind is int:
        _sized(b"i", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True), out)
    elif kind is float:
        out += (b"f", _DOUBLE.pack(value))
    elif kind is complex:
        out += (b"j", _DOUBLE.pack(value.real), _DOUBLE.pack(value.imag))
    elif kind is str:
        _sized(b"s", value.encode("utf-8", "surrogatepass"), out)
    elif kind is bytes or kind is bytearray:
        _sized(b"b" if kind is bytes else b"B", bytes(value), out)
    elif kind in _SEQUENCES:
        items = _sorted_by_bytes(value, depth) if kind in (set, frozenset) else value
        out += (_SEQUENCES[kind], _LENGTH.pack(len(items)))
        for item in items:
            _write(item, out, depth + 1)
    elif kind in _MAPPINGS:
        out += (_MAPPINGS[kind], _LENGTH.pack(len(value)))
        for key, item in value.items():
            _write(key, out, depth + 1)
            _write(item, out, depth + 1)
    elif kind is np.ndarray and value.dtype.kind in "biufcmMSU":
        body = np.ascontiguousarray(value)
        _sized(b"a", f"{body.dtype.str};{','.join(map(str, value.shape))}".encode(), out)
        _sized(b"b", body.tobytes(), out)
    elif isinstance(value, np.generic) and value.dtype.kind in "biufcmM":
        _sized(b"g", value.dtype.str.encode(), out)
        _sized(b"b", value.tobytes(), out)
    elif kind is np.str_ or kind is np.bytes_:
        out.append(b"n")
        _write(value.item(), out, depth + 1)
    elif kind is datetime:
        offset = value.utcoffset()
        seconds = "" if offset is None else repr(offset.total_seconds())
        _sized(b"D", f"{value.replace(tzinfo=None).isoformat()}|{seconds}|{value.fold}".encode(), out)
    elif kind is date:
        _sized(b"Y", value.isoformat().encode(), out)
    elif kind is time and value.tzinfo is None:
        _sized(b"H", value.isoformat().encode(), out)
    elif kind is timedelta:
        _sized(b"L", f"{value.days}|{value.seconds}|{value.microseconds}".encode(), out)
    elif kind is Decimal:
        _sized(b"c", str(value).encode(), out)
    elif kind is Fraction:
        _sized(b"r", f"{value.numerator}/{value.denominator}".encode(), out)
    else:
        raise _not_plain(value)


def _sorted_by_bytes(items, depth: int) -> list:
    keyed = []
    for item in items:
        out: list[bytes] = []
        _write(item, out, depth + 1)
        keyed.append((b"".join(out), item))
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


def _not_plain(value) -> UnsupportedError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return UnsupportedError(f"a state holding {kind} cannot be stored: give the operator encode= and decode=")


class _Reader:
    def __init__(self, data: bytes):
        self.data = memoryview(data)
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise StateError("stored value is cut short")
        part = bytes(self.data[self.at : self.at + count])
        self.at += count
        return part

    def length(self) -> int:
        return _LENGTH.unpack(self.take(8))[0]

    def sized(self) -> bytes:
        return self.take(self.length())

    def text(self) -> str:
        try:
            return self.sized().decode("ascii")
        except UnicodeDecodeError as error:
            raise StateError("stored value is damaged") from error

    def value(self, depth: int):
        if depth > _DEEPEST:
            raise StateError("stored value is nested too deeply")
        tag = self.take(1)
        try:
            return self._body(tag, depth)
        except StateError:
            raise
        except (ValueError, TypeError, ArithmeticError, OverflowError, UnicodeDecodeError) as error:
            raise StateError(f"stored value is damaged: {error}") from error

    def _body(self, tag: bytes, depth: int):
        if tag in b"NTF":
            return {b"N": None, b"T": True, b"F": False}[tag]
        if tag == b"i":
            return int.from_bytes(self.sized(), "little", signed=True)
        if tag == b"f":
            return _DOUBLE.unpack(self.take(8))[0]
        if tag == b"s":
            return self.sized().decode("utf-8", "surrogatepass")
        if tag == b"b":
            return self.sized()
        if tag == b"j":
            return complex(_DOUBLE.unpack(self.take(8))[0], _DOUBLE.unpack(self.take(8))[0])
        if tag == b"B":
            return bytearray(self.sized())
        if tag in b"tlez":
            count = self.length()
            if count > len(self.data) - self.at:
                raise StateError("stored value is cut short")
            return _MADE[tag]([self.value(depth + 1) for _ in range(count)])
        if tag in b"dko":
            count = self.length()
            if 2 * count > len(self.data) - self.at:
                raise StateError("stored value is cut short")
            return _MADE[tag]({self.value(depth + 1): self.value(depth + 1) for _ in range(count)})
        if tag == b"a":
            dtype, _, shape = self.text().partition(";")
            sizes = tuple(int(part) for part in shape.split(",") if part)
            return np.frombuffer(self._bytes(), _number_dtype(dtype)).reshape(sizes).copy()
        if tag == b"g":
            kind = _number_dtype(self.text())
            values = np.frombuffer(self._bytes(), kind)
            if len(values) != 1:
                raise StateError("stored number is damaged")
            return values[0]
        if tag == b"n":
            text = self.value(depth + 1)
            if type(text) not in (str, bytes):
                raise StateError("stored text is damaged")
            return np.str_(text) if isinstance(text, str) else np.bytes_(text)
        if tag == b"D":
            stamp, offset, fold = self.text().split("|")
            value = datetime.fromisoformat(stamp).replace(fold=int(fold))
            return value.replace(tzinfo=timezone(timedelta(seconds=float(offset)))) if offset else value
        if tag == b"Y":
            return date.fromisoformat(self.text())
        if tag == b"H":
            return time.fromisoformat(self.text())
        if tag == b"L":
            days, seconds, micros = (int(part) for part in self.text().split("|"))
            return timedelta(days, seconds, micros)
        if tag == b"c":
            return Decimal(self.text())
        if tag == b"r":
            text = self.text()
            if not _FRACTION.fullmatch(text):  # a Fraction is read from "1e999999999" too, digit by digit
                raise StateError("stored fraction is damaged")
            return Fraction(text)
        raise StateError(f"stored value has an unknown tag {tag!r}")

    def _bytes(self) -> bytes:
        if self.take(1) != b"b":
            raise StateError("stored array is damaged")
        return self.sized()


def stripped(identity, state):
    """NamedTuples as plain tuples, where the identity has the same: there `like` makes them again."""
    if isinstance(state, tuple) and type(state) is type(identity) and len(state) == len(identity):
        return tuple(stripped(part, value) for part, value in zip(identity, state, strict=True))
    return state


def like(identity, stored):
    """Plain tuples back as the NamedTuples of the identity."""
    if isinstance(identity, tuple) and type(stored) is tuple and len(stored) == len(identity):
        parts = [like(part, value) for part, value in zip(identity, stored, strict=True)]
        return identity._make(parts) if hasattr(identity, "_make") else tuple(parts)
    return stored


def _number_dtype(text: str) -> np.dtype:
    """Only of such names as `dtype.str` gives, for NumPy reads whole programs out of others."""
    if not _DTYPE.fullmatch(text):
        raise StateError(f"stored array of unknown kind {text!r}")
    dtype = np.dtype(text)
    if dtype.kind not in "biufcmMSU" or dtype.hasobject:
        raise StateError(f"stored array of unknown kind {text!r}")
    return dtype
