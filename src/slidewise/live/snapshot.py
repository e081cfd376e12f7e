"""The bytes of a stored window: versioned, checksummed, and nothing in them can run.

    "SLIDEWISE\\0"  version u16  length u32 of the description  description (JSON)  sections ...  SHA-256 of all before it

The description names the operator with its parameters, the types and layouts, and the length of every section; sections are raw
little-endian arrays, or plain Python objects in the form of `algebra.codec`. Reading checks the frame, the checksum, and every
length before anything is built from it.
"""

import hashlib
import json
import struct
from operator import index

import numpy as np

from slidewise.errors import StateError, UnsupportedError

MAGIC = b"SLIDEWISE\0"
VERSION = 1
_HEAD = struct.Struct("<HI")
_DIGEST = 32


def told_apart(op) -> None:
    """Refuse to store what could not be told from another operator's state."""
    if not op.told_apart:
        raise UnsupportedError(
            f"the operator {op.name!r} was given no name, and its functions hold what has no description: nothing "
            'would tell its stored windows from another\'s; give it one, as in sw.operator(..., name="mine")'
        )


def pack(kind: str, description: dict, sections: dict[str, bytes]) -> bytes:
    """One blob from a description and named sections."""
    head = dict(description, kind=kind, sections=[[name, len(body)] for name, body in sections.items()])
    text = json.dumps(head, sort_keys=True).encode()
    data = b"".join([MAGIC, _HEAD.pack(VERSION, len(text)), text, *sections.values()])
    return data + hashlib.sha256(data).digest()


def unpack(kind: str, data) -> tuple[dict, dict[str, bytes]]:
    """The description and sections of a blob; StateError unless it is whole, undamaged and of this kind."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise StateError(f"stored state must be bytes, not {type(data).__name__}")
    data = bytes(data)
    least = len(MAGIC) + _HEAD.size + _DIGEST
    if not data.startswith(MAGIC):
        raise StateError("these bytes are not a Slidewise state")
    if len(data) < least:
        raise StateError("stored state is cut short")
    version, length = _HEAD.unpack_from(data, len(MAGIC))
    if version != VERSION:
        raise StateError(f"stored state has version {version}, this program reads version {VERSION}")
    if hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise StateError("stored state is damaged or cut short (checksum does not match)")
    at = len(MAGIC) + _HEAD.size
    if at + length > len(data) - _DIGEST:
        raise StateError("stored state is damaged: its description is longer than the state")
    try:
        head = json.loads(data[at : at + length])
        wanted = [(str(name), index(size)) for name, size in head["sections"]]  # a whole number: not 1.5, not Infinity
        found = head["kind"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StateError(f"stored state is damaged: {error}") from error
    if found != kind:
        raise StateError(f"stored state is a {found}, not a {kind}")
    at += length
    sections = {}
    for name, size in wanted:
        if size < 0 or at + size > len(data) - _DIGEST:
            raise StateError(f"stored state is damaged: section {name!r} does not fit")
        sections[name] = data[at : at + size]
        at += size
    if at != len(data) - _DIGEST:
        raise StateError("stored state is damaged: bytes that belong to no section")
    return head, sections


def numbers(sections: dict[str, bytes], name: str, dtype, count: int) -> np.ndarray:
    """A section as exactly `count` numbers of a type."""
    dtype = np.dtype(dtype).newbyteorder("<")
    body = sections.get(name)
    if body is None:
        raise StateError(f"stored state has no section {name!r}")
    if len(body) != count * dtype.itemsize:
        raise StateError(f"stored state: section {name!r} has {len(body)} bytes, {count * dtype.itemsize} expected")
    return np.frombuffer(body, dtype).astype(dtype.newbyteorder("="))


def raw(array: np.ndarray) -> bytes:
    """An array as little-endian bytes."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
