"""Compiled code before the first events, once a host: workers that start together would all compile the same for a minute.

The first worker of a host runs the engine on a few example rows behind a lock, which files every function that it needs in the
disk cache; the others wait for it and load what they find. Where nothing can be filed, each compiles for itself as it goes.
"""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa

from slidewise.algebra.cache import cache_dir, entry_name, read_entry, write_entry
from slidewise.engines.spark.travel import alone, examples, quietly, sources

_done: set[str] = set()


def warmed(token: str, spec: Any) -> None:
    """See to it that this host has compiled what the specification needs."""
    if token in _done or cache_dir() is None:
        return
    name = entry_name("stream", token, sources())
    if read_entry(name) is None:
        with alone(name):
            if read_entry(name) is None:
                run_examples(spec)
                write_entry(name, b"")
    _done.add(token)


def run_examples(spec: Any) -> None:
    """Push, correct, replay and end a stream of a few rows. A user's function may fail on examples: then it is compiled
    when its own data comes."""
    from slidewise.live.keyed import Keyed

    try:
        with quietly():
            engine, again = Keyed(spec), Keyed(spec)
            for number, batch in enumerate(_batches(spec)):
                again.absorb(engine.push(batch, watermark=None, batch=number).log)
            engine.advance(watermark=None, batch=9, final=True)
            Keyed(spec).absorb(again.retained())
    except Exception:
        return


def _batches(spec: Any) -> list[pa.Table]:
    """The examples, each event with an id of its own, later ones first: the second batch corrects the first."""
    found, count = [], 0
    for batch in examples(spec.schema, (spec.time,)):
        for name in spec.id:
            kind = spec.schema.field(name).type
            with contextlib.suppress(pa.ArrowException):  # an id that no number can be cast to: its events count once
                ids = pa.array(range(count, count + len(batch)), pa.int64()).cast(kind)
                batch = batch.set_column(batch.schema.get_field_index(name), name, ids)
        count += len(batch)
        found.append(batch)
    return found[::-1]
