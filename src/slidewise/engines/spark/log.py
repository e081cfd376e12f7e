"""The durable log of one bucket: what its live engine is rebuilt from, and how a worker knows that it need not be.

Every micro-batch that changes a bucket appends one entry, the batch's accepted events as Arrow bytes. State traffic is then
proportional to what changed, not to the window. Entries are merged by size tiers into segments of a few MB, and
segments that lie whole behind the horizon (no window and no correction can need them) are dropped:

    head    format, bucket, signature, tip --------------------------------.
            segments: oldest ...                              youngest     |
              tier 2        tier 1   tier 1   tier 0  0  0  0  0           v
            [=========] <- [====] <- [====] <- [=] <- [=] <- [=]   uuid of the last = tip
            parent ^ uuid     each segment names the state it leads from (parent) and to (uuid)

A counter is not a version: a checkpoint that was copied and continued differently, or a batch whose commit failed after
Python was done, has the same numbers for other contents. So each state has a random uuid. A cached engine is used, or
caught up, only if its uuid is in the stored lineage; merging keeps the uuids of the ends.

Whatever is read is checked whole (checksum, place in the lineage, Arrow's full validation) before any other code sees it.
Nothing is written before `commit`. This module knows nothing of Spark: a `Store` is six functions.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import pyarrow as pa

from slidewise.errors import StateError

_ENTRY = struct.Struct("<4sIQ16s16sQ")
"""Magic, checksum of all that follows it, number, uuid, parent, length of the Arrow bytes."""
_MAGIC = b"SWE1"
_HEAD = struct.Struct("<4sI")
_HEAD_MAGIC = b"SWH1"
FORMAT = 1
NOTHING = b"\0" * 16
"""The state before the first entry."""
Span = tuple[bytes, bytes]


class Store(Protocol):
    """Where one bucket's log lies. `read` gives None for what is not there."""

    def read_head(self) -> bytes | None: ...
    def write_head(self, data: bytes) -> None: ...
    def read(self, number: int) -> bytes | None: ...
    def write(self, number: int, data: bytes) -> None: ...
    def remove(self, number: int) -> None: ...
    def has_entries(self) -> bool: ...


@dataclass(frozen=True)
class Limits:
    """When entries are merged. The defaults bound a head to a few KB and a value to a few MB."""

    fan: int = 8
    """So many neighbours of one tier become one segment of the next."""
    young: int = 8
    """So many of the youngest entries stay as they are: workers that missed a few batches catch up from them."""
    full: int = 4 << 20
    """Bytes at which a segment is merged no further."""
    slack: int = 1 << 16
    """So many stored rows beyond twice those alive are borne before everything is rewritten."""


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """One stored value: an entry, or several merged."""

    number: int
    uuid: bytes
    parent: bytes
    tier: int
    rows: int
    nbytes: int
    high: int | None
    """The youngest event time in it; None if it holds none."""
    checksum: int

    @property
    def span(self) -> tuple[bytes, bytes]:
        """From which state to which: says what is in it. The uuid alone does not, since merging keeps it."""
        return self.parent, self.uuid


class Head(msgspec.Struct, array_like=True):
    """What is read first, and written last."""

    format: int
    buckets: int
    label: int
    signature: bytes
    tip: bytes
    number: int
    note: bytes
    """A few bytes of the engine's glue: what must be known without the engine."""
    segments: list[Segment]


class Log:
    """The log of one bucket in one micro-batch: opened, read where needed, appended to, committed."""

    def __init__(
        self,
        store: Store,
        *,
        label: int,
        buckets: int,
        signature: bytes,
        accept: Callable[[bytes], None] = lambda stored: None,
        merge: Callable[[Sequence[pa.Table]], pa.Table] | None = None,
        limits: Limits | None = None,
    ):
        """`accept(stored)` raises StateError if state with that signature cannot serve; `merge` makes one entry of several."""
        self._store = store
        self._signature = signature
        self._merge = merge or concatenated
        self._limits = limits or Limits()
        self._fresh: dict[int, bytes] = {}
        self._dead: set[int] = set()
        self._touched = False
        self.upgraded = False
        """Whether the signature is another than the stored one, and was accepted."""
        self.reads = self.bytes_read = self.writes = self.bytes_written = self.merges = 0
        data = store.read_head()
        self.exists = data is not None
        if data is None:
            if store.has_entries():
                raise StateError(
                    f"stored state of bucket {label}: its head is missing and entries are there; the checkpoint is damaged"
                )
            self.head = Head(FORMAT, buckets, label, signature, NOTHING, 0, b"", [])
        else:
            self.head = self._opened(data, label, buckets, accept)

    def _opened(self, data: bytes, label: int, buckets: int, accept: Callable[[bytes], None]) -> Head:
        where = f"stored state of bucket {label}"
        head = decode_head(data, where)
        if head.format != FORMAT:
            raise StateError(f"{where}: written in format {head.format}, this version reads format {FORMAT}")
        if head.buckets != buckets:
            raise StateError(
                f"{where}: the checkpoint has {head.buckets} buckets, this query {buckets}; their number is frozen when a "
                f"checkpoint is made. Pass buckets={head.buckets}, or rewrite the checkpoint with "
                f"slidewise.engines.spark.rebucket"
            )
        if head.label != label:
            raise StateError(f"{where}: it is that of bucket {head.label}; the state was moved or is foreign")
        previous = None
        for segment in head.segments:
            if previous is not None and segment.parent != previous.uuid:
                raise StateError(f"{where}: entry {segment.number} does not follow entry {previous.number}; it is damaged")
            previous = segment
        if previous is not None and previous.uuid != head.tip:
            raise StateError(f"{where}: the last entry does not lead to the stored tip; it is damaged")
        if head.signature != self._signature:
            accept(head.signature)
            head.signature = self._signature
            self._touched = self.upgraded = True
        return head

    # ---- reading ----------------------------------------------------------------------------------------------------

    @property
    def tip(self) -> bytes:
        """The uuid of the state that the log leads to."""
        return self.head.tip

    @property
    def full(self) -> int:
        """Bytes from which on a segment is merged no further."""
        return self._limits.full

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.head.segments)

    @property
    def nbytes(self) -> int:
        return sum(segment.nbytes for segment in self.head.segments)

    def since(self, uuid: bytes) -> list[Segment] | None:
        """The segments that lead from that state to the tip; None if that state is not in the lineage."""
        if uuid == self.head.tip:
            return []
        for i, segment in enumerate(self.head.segments):
            if segment.uuid == uuid:
                return self.head.segments[i + 1 :]
        return None

    def read(self, segment: Segment) -> pa.Table:
        """The events of a segment, checked whole."""
        data = self._fresh.get(segment.number)
        if data is None:
            data = self._store.read(segment.number)
            self.reads += 1
            self.bytes_read += len(data or b"")
        where = f"stored state of bucket {self.head.label}, entry {segment.number}"
        if data is None:
            raise StateError(f"{where}: it is missing; the checkpoint is damaged")
        table = decode_entry(bytes(data), segment, where)
        if table.num_rows != segment.rows:
            raise StateError(f"{where}: {table.num_rows} rows where {segment.rows} were written")
        return table

    # ---- writing ----------------------------------------------------------------------------------------------------

    def put_together(self, known: Mapping[Span, pa.Table]) -> dict[Span, pa.Table]:
        """The tables of segments that may still be merged, as far as they or their parts are known: another worker may have
        merged what this one has in parts."""
        follows = {parent: uuid for parent, uuid in known}
        found = {}
        for segment in self.head.segments:
            if segment.nbytes >= self.full:
                continue
            parts, at = [segment.span] if segment.span in known else [], segment.parent
            while not parts or parts[-1][1] != segment.uuid:
                if at not in follows or len(parts) > len(known):
                    parts = []
                    break
                parts.append((at, follows[at]))
                at = follows[at]
            if parts:
                tables = [known[span] for span in parts]
                found[segment.span] = tables[0] if len(tables) == 1 else self._merge(tables)
        return found

    def append(self, table: pa.Table, high: int | None) -> Segment:
        """One more entry; `high` is its youngest event time."""
        uuid = os.urandom(16)
        self.head.number += 1
        segment = self._write(self.head.number, uuid, self.head.tip, 0, table, high)
        self.head.segments.append(segment)
        self.head.tip = uuid
        return segment

    def trim(self, horizon: int | None) -> int:
        """Drop the oldest segments as long as all their events lie before `horizon`. Returns how many went.

        The last one stays in any case: its notes say how far the engine had come."""
        gone = 0
        segments = self.head.segments
        while horizon is not None and gone < len(segments) - 1 and _behind(segments[gone], horizon):
            self._drop(segments[gone])
            gone += 1
        del segments[:gone]
        return gone

    def compact(self, known: Mapping[Span, pa.Table] | None = None) -> dict[Span, pa.Table]:
        """Merge neighbours of one tier. `known` are tables at hand, by span: those need not be read again.

        Returns `known`, with merged segments that may be merged once more in the place of their parts."""
        known = dict(known or {})
        while (found := self._mergeable()) is not None:
            first, last, tier = found
            group = self.head.segments[first:last]
            table = self._merge([known[s.span] if s.span in known else self.read(s) for s in group])
            for segment in group:
                self._drop(segment)
                known.pop(segment.span, None)
            highs = [s.high for s in group if s.high is not None]
            merged = self._write(
                group[-1].number, group[-1].uuid, group[0].parent, tier, table, max(highs) if highs and len(table) else None
            )
            self.head.segments[first:last] = [merged]
            self.merges += 1
            if merged.nbytes < self._limits.full:
                known[merged.span] = table
        return known

    def _mergeable(self) -> tuple[int, int, int] | None:
        """The oldest run of neighbours that is due: first, behind the last, and the tier it becomes."""
        limits, segments = self._limits, self.head.segments
        old = len(segments) - limits.young
        first = 0
        while first < old:
            tier, total, last = segments[first].tier, 0, first
            while last < old and segments[last].tier == tier and last - first < limits.fan and total < limits.full:
                if segments[last].nbytes >= limits.full:
                    break
                total += segments[last].nbytes
                last += 1
            if last - first > 1 and (last - first == limits.fan or total >= limits.full):
                return first, last, tier + 1
            first = max(last, first + 1)
        return None

    def wasteful(self, alive: int) -> bool:
        """Whether most of what is stored is dead: a sparse key would pin its segment for ever otherwise."""
        return self.rows > 2 * alive + self._limits.slack

    def rewrite(self, parts: Sequence[tuple[pa.Table, int | None]]) -> dict[Span, pa.Table]:
        """Put these tables (each with its youngest time) in the place of all segments: the same state, without waste.

        Returns them by span, as `compact` wants to know them."""
        for segment in self.head.segments:
            self._drop(segment)
        self.head.segments = []
        parent = NOTHING
        for i, (table, high) in enumerate(parts):
            uuid = self.head.tip if i == len(parts) - 1 else os.urandom(16)
            self.head.number += 1
            self.head.segments.append(self._write(self.head.number, uuid, parent, 1, table, high))
            parent = uuid
        return {segment.span: table for segment, (table, _) in zip(self.head.segments, parts)}

    def note(self, data: bytes) -> None:
        """Keep a few bytes in the head."""
        self._touched |= data != self.head.note
        self.head.note = data

    def commit(self) -> None:
        """Write what changed: values first, the head last (the store's own commit makes it one step)."""
        for number, data in self._fresh.items():
            self._store.write(number, data)
        for number in self._dead - self._fresh.keys():
            self._store.remove(number)
        if self._fresh or self._dead or self._touched or not self.exists:
            data = encode_head(self.head)
            self._store.write_head(data)
            self.bytes_written += len(data)
        self.writes += len(self._fresh)
        self.bytes_written += sum(map(len, self._fresh.values()))
        self._fresh, self._dead, self._touched, self.exists = {}, set(), False, True

    def _write(self, number, uuid, parent, tier, table, high) -> Segment:
        data, checksum = encode_entry(number, uuid, parent, table)
        self._fresh[number] = data
        return Segment(number, uuid, parent, tier, table.num_rows, len(data), high, checksum)

    def _drop(self, segment: Segment) -> None:
        if self._fresh.pop(segment.number, None) is None:
            self._dead.add(segment.number)


def _behind(segment: Segment, horizon: int) -> bool:
    return segment.high is None or segment.high < horizon


def concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Several entries as one: the rows of all, the notes (schema metadata) of the last."""
    return pa.concat_tables(tables).combine_chunks().replace_schema_metadata(tables[-1].schema.metadata)


# ---- bytes --------------------------------------------------------------------------------------------------------------


def to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue().to_pybytes()


def from_ipc(data: bytes | pa.Buffer, where: str) -> pa.Table:
    """A table from bytes that may be damaged: everything is checked before it is handed on."""
    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, EOFError) as error:
        raise StateError(f"{where}: not readable as Arrow data ({error}); the checkpoint is damaged") from error
    return table


def encode_entry(number: int, uuid: bytes, parent: bytes, table: pa.Table) -> tuple[bytes, int]:
    body = to_ipc(table)
    rest = _ENTRY.pack(_MAGIC, 0, number, uuid, parent, len(body))[8:]
    checksum = zlib.crc32(body, zlib.crc32(rest))
    return _MAGIC + checksum.to_bytes(4, "little") + rest + body, checksum


def decode_entry(data: bytes, segment: Segment, where: str) -> pa.Table:
    if len(data) < _ENTRY.size:
        raise StateError(f"{where}: truncated to {len(data)} bytes; the checkpoint is damaged")
    magic, checksum, number, uuid, parent, length = _ENTRY.unpack_from(data)
    if magic != _MAGIC:
        raise StateError(f"{where}: not an entry of Slidewise's log; the state is foreign or damaged")
    if length != len(data) - _ENTRY.size:
        raise StateError(f"{where}: {len(data) - _ENTRY.size} bytes where {length} were written; the checkpoint is damaged")
    if zlib.crc32(memoryview(data)[8:]) != checksum:
        raise StateError(f"{where}: the checksum does not fit; the checkpoint is damaged")
    if (number, uuid, parent, checksum) != (segment.number, segment.uuid, segment.parent, segment.checksum):
        raise StateError(f"{where}: it belongs to another history than its head; checkpoints were mixed")
    return from_ipc(pa.py_buffer(data)[_ENTRY.size :], where)


def encode_head(head: Head) -> bytes:
    body = msgspec.msgpack.encode(head)
    return _HEAD.pack(_HEAD_MAGIC, zlib.crc32(body)) + body


def decode_head(data: bytes, where: str) -> Head:
    data = bytes(data)
    if len(data) < _HEAD.size or data[:4] != _HEAD_MAGIC:
        raise StateError(f"{where}: not a head of Slidewise's log; the state is foreign or damaged")
    body = data[_HEAD.size :]
    if zlib.crc32(body) != _HEAD.unpack_from(data)[1]:
        raise StateError(f"{where}: the checksum of its head does not fit; the checkpoint is damaged")
    try:
        return msgspec.msgpack.decode(body, type=Head)
    except msgspec.MsgspecError as error:
        raise StateError(f"{where}: its head cannot be read ({error})") from error
