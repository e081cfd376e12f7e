"""Another number of buckets for a checkpoint that exists: offline, by words that the query hears when it starts again.

The number of buckets is frozen in a checkpoint, like the key groups of other systems: keys live in the state of their bucket.
`rebucket` reads the state of a stopped query, sorts events and keys into new buckets with Spark's own hash, and writes
them into the query's control directory. The next start, with `buckets=` the new number, finds them in its first micro-batch:

    DROP   to each old bucket, with the uuid of the state that was read: if it has moved on since, StateError
    NOTES  to each new bucket: how far the stream had come, and for how many buckets this is meant
    KEYS, LOAD   to a new bucket: what is known of its keys, and its events

Nothing in the checkpoint is touched by hand, and a crash in between replays the words with their micro-batch.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from slidewise.engines.spark.log import Log, decode_head, from_ipc, to_ipc
from slidewise.engines.spark.packing import BLOB, DROP, KEYS, KIND, LABEL, LOAD, NOTES, PACKED, packed, table_of
from slidewise.errors import InputError, StateError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBER, _DATA = "number", "data"
_HEAD = -1
"""The head of a bucket's log, among its entries."""


def rebucket(
    data: DataFrame,
    *,
    checkpoint: str | os.PathLike[str],
    control: str | os.PathLike[str],
    to: int,
    operator: int = 0,
    **arguments: Any,
) -> int:
    """Prepare a stopped query for another number of buckets; returns how many events move.

    data: the stream that the query rolls over; arguments: those of the query's `sw.rolling`, control among them. operator:
    which of the query's stateful operators it is, counted from the sink. Start the query again with `buckets=to`.
    """
    from pyspark.sql import functions as F

    from slidewise.engines.spark.buckets import label_column, labels
    from slidewise.engines.spark.control import say
    from slidewise.engines.spark.stream import described
    from slidewise.engines.spark.travel import Parcel
    from slidewise.planner.request import request

    labels(to)  # a number that cannot be is refused before anything is read
    words = inspect.signature(request).parameters
    asked = request(**{name: value for name, value in arguments.items() if name in words})
    ignored = {"history", "buckets", "cache_bytes", "limits"}
    options = {name: value for name, value in arguments.items() if name not in words and name not in ignored}
    spec = described(data, asked, **options).spec
    stored = _stored(data.sparkSession, checkpoint, operator)
    heads = [(row[LABEL], decode_head(row[_DATA], f"stored state of bucket {row[LABEL]}"))
             for row in stored.where(F.col(_NUMBER) == _HEAD).collect()]  # fmt: skip
    if not heads:
        raise InputError(f"no state of Slidewise in {os.fspath(checkpoint)}; has the query run?")
    parcel = Parcel(spec)
    grouped = stored.groupBy(LABEL)
    said = [json.loads(bytes(row[BLOB])) for row in grouped.applyInArrow(_reader(parcel, NOTES), PACKED).collect()]
    notes = _together(said, spec)
    moved = [(int(label), DROP, head.tip) for label, head in heads]
    moved += [(label, NOTES, json.dumps({**notes, "buckets": to}).encode()) for label in labels(to)]
    count = 0
    for kind, schema in ((KEYS, keys_schema(spec)), (LOAD, spec.log_schema)):
        rows = grouped.applyInArrow(_reader(parcel, kind), _ddl(schema))
        for row in packed(rows, label_column(rows, spec.by, to), schema).toLocalIterator():
            blob = bytes(row[BLOB])
            moved.append((row[LABEL], kind, blob))
            count += pa.ipc.read_record_batch(pa.py_buffer(blob), schema).num_rows if kind == LOAD else 0
    say(control, moved)
    return count


def _stored(spark, checkpoint: str | os.PathLike[str], operator: int) -> DataFrame:
    """Heads and entries of all buckets: label, number, data."""
    from pyspark.sql import functions as F

    def read(variable: str) -> DataFrame:
        reader = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", variable)
        return reader.load(os.fspath(checkpoint))

    label = F.col(f"key.{LABEL}").alias(LABEL)
    heads = read("head").select(label, F.lit(_HEAD).cast("long").alias(_NUMBER), F.col("value.head").alias(_DATA))
    entries = read("log").select(
        label, F.col("user_map_key.number").alias(_NUMBER), F.col("user_map_value.entry").alias(_DATA)
    )
    return heads.unionAll(entries)


def _ddl(schema: pa.Schema):
    from slidewise.engines.spark.batch_types import result_schema, spark_type

    return result_schema([(field.name, spark_type(field.type, field.name)) for field in schema])


def _reader(parcel: Any, kind: int):
    """For `applyInArrow` by label: rebuilds a bucket's engine and hands out one part of what it retains.

    A plain function without hints: Spark would take those of a callable object for its own."""

    def read(table):
        return _part(parcel.open(), kind, table)

    return read


def _part(spec: Any, kind: int, table: pa.Table) -> pa.Table:
    from slidewise.engines.spark import upgrade
    from slidewise.live.keyed import Keyed, read_meta

    store = _Found(table)
    label = table[LABEL][0].as_py()
    where = f"stored state of bucket {label}"

    def accept(stored: bytes) -> None:
        upgrade.check(stored, spec, label)

    buckets = decode_head(store.read_head(), where).buckets
    log = Log(cast(Any, store), label=label, buckets=buckets, signature=upgrade.encoded(spec), accept=accept)
    engine = Keyed(spec)
    for segment in log.head.segments:
        engine.absorb(upgrade.conformed(log.read(segment), spec))
    retained = engine.retained()
    notes = read_meta(retained)
    keys = from_ipc(base64.b64decode(notes.pop("keys")), where)
    if kind == KEYS:
        return keys
    if kind == LOAD:
        return retained.replace_schema_metadata(None)
    text = json.dumps(notes).encode()
    return pa.table({LABEL: pa.array([label], pa.int32()), KIND: pa.array([NOTES], pa.int32()), BLOB: pa.array([text])})


class _Found:
    """A store of what was read: nothing is written."""

    def __init__(self, table: pa.Table):
        self._data = dict(zip(table[_NUMBER].to_pylist(), table[_DATA].to_pylist()))

    def read_head(self) -> bytes:
        if _HEAD not in self._data:
            raise StateError("stored state: entries without a head; the checkpoint is damaged")
        return bytes(self._data[_HEAD])

    def read(self, number: int) -> bytes | None:
        return self._data.get(number)

    def has_entries(self) -> bool:
        return bool(self._data)

    def write_head(self, data: bytes) -> None:
        raise StateError("this state is only read")

    def write(self, number: int, data: bytes) -> None:
        raise StateError("this state is only read")

    def remove(self, number: int) -> None:
        raise StateError("this state is only read")


def keys_schema(spec: Any) -> pa.Schema:
    """The schema of what is known of keys, beside their events."""
    from slidewise.live.keyed import Keyed, read_meta

    return from_ipc(base64.b64decode(read_meta(Keyed(spec).retained())["keys"]), "an empty engine").schema


def _together(said: list[dict[str, Any]], spec: Any) -> dict[str, Any]:
    """How far all buckets together have come. All are visited in each micro-batch, so up to the watermark there was nothing in
    between to give where they differ. Eager boundaries are given as far as the bucket's own youngest event: those that only
    some buckets have given come from these once more."""
    found: dict[str, Any] = {}
    for notes in said:
        found |= notes
    for name in ("watermark", "given", "clock"):
        found[name] = max(_values(said, name), default=None)
    if spec.emit == "slide" and spec.results == "eager" and found["given"] is not None:
        reached = [max(_values([notes, found], "watermark") + _values([notes], "given"), default=None) for notes in said]
        found["given"] = None if None in reached else min(reached)
    found["known_from"] = min(_values(said, "known_from"), default=None)
    found["ended"] = any(notes.get("ended") for notes in said)
    return found


def _values(said: list[dict[str, Any]], name: str) -> list[Any]:
    return [notes[name] for notes in said if notes.get(name) is not None]


# ---- in the query -----------------------------------------------------------------------------------------------------------


def received(processor: Any, label: int, words: dict[int, list[bytes]], timer: Any) -> None:
    """A bucket hears that state moves: what it has goes, what is its own from now on comes."""
    where = f"stored state of bucket {label}"
    for tip in words.get(DROP, ()):
        data = processor.store.read_head()
        if data is None or decode_head(data, where).tip != bytes(tip):
            raise StateError(f"{where}: it has moved on since rebucket read it; stop the query, and run rebucket again")
        processor.store.clear()
        processor.gone.add(label)
    for data in words.get(NOTES, ()):
        notes = json.loads(bytes(data))
        wanted = notes.pop("buckets")
        if wanted != processor.plan.buckets:
            raise StateError(f"{where}: rebucket was run for {wanted} buckets, this query has {processor.plan.buckets}; "
                             f"pass buckets={wanted}")  # fmt: skip
        processor.load(label, lambda engine, notes=notes: _entry(processor.spec, notes, words), timer)
        processor.gone.discard(label)


def _entry(spec: Any, notes: dict[str, Any], words: dict[int, list[bytes]]) -> pa.Table:
    from slidewise.engines.spark.processor import noted

    keys = table_of(words.get(KEYS, ()), keys_schema(spec))
    events = table_of(words.get(LOAD, ()), spec.log_schema).combine_chunks()
    return noted(events, notes | {"keys": base64.b64encode(to_ipc(keys)).decode()})

