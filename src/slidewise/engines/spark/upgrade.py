"""Whether stored state can serve a query that was changed: other windows, other aggregates, other columns.

The log keeps events, not partials, so it serves whatever can be computed from the columns that were stored, as far back as
they were kept. What it cannot serve is refused with `StateError`, before anything is overwritten. A window that reaches further
back than what is stored is refused as well, unless the query asks for `complete`: then it is served, and its results say
that they are not complete until what is missing has grown old.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa

from slidewise.errors import StateError


class Signature(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What state was stored for."""

    columns: dict[str, str]
    by: list[str]
    time: str
    id: list[str]
    clock: str
    results: str
    emit: str
    kept: int | float
    """How far behind the watermark events are kept."""
    keep: int | float
    """How far behind it results are corrected."""
    rows: int
    session: int | float
    """The longest gap of a session window; 0: none."""
    runs: list[str]
    """Windows that must have been kept to be there: delta, punctuation."""
    lifetime: list[str]
    """Aggregates over whole lifetimes, whose oldest events are gone; those that share a state together."""
    ttl: int | float | None = None
    """How long idle keys are kept for windows that do not end with time; None: for ever, or no such window. (Earlier versions did
    not write it.)"""


def signature_of(spec: Any) -> Signature:
    ticks = spec.ticks.values()
    lifetime = any(t.kind == "lifetime" for t in ticks)
    return Signature(
        columns={field.name: str(field.type) for field in spec.log_schema},
        by=list(spec.by),
        time=spec.time,
        id=list(spec.id),
        clock=f"{spec.clock.kind} {spec.clock.tick_ns} {spec.clock.scale}",
        results=spec.results,
        emit=spec.emit,
        kept=spec.keep + spec.reach,
        keep=spec.keep,
        rows=max((t.range + t.offset + t.slide for t in ticks if t.kind == "rows"), default=0),
        session=max((t.range for t in ticks if t.kind == "session"), default=0),
        runs=sorted(f"{t.kind} {t.column} {t.range}" for t in ticks if t.kind in ("delta", "punctuation")),
        lifetime=sorted(_shared(step, spec) for step in spec.steps) if lifetime else [],
        ttl=spec.idle if spec.endless else None,
    )


def encoded(spec: Any) -> bytes:
    return msgspec.json.encode(signature_of(spec))


def check(stored: bytes, spec: Any, label: int) -> int | float | None:
    """Raise StateError if what is stored cannot serve this query. Returns how far behind the watermark it reaches where
    that is not far enough, and the query wants to know (`complete`)."""
    where = f"stored state of bucket {label}"
    try:
        old = msgspec.json.decode(stored, type=Signature)
    except msgspec.MsgspecError as error:
        raise StateError(f"{where}: its signature cannot be read ({error}); another version wrote it") from error
    new = signature_of(spec)
    for what in ("by", "time", "id", "clock", "results", "emit"):
        if getattr(old, what) != getattr(new, what):
            raise StateError(
                f"{where}: written with {what} {getattr(old, what)!r}, now it is {getattr(new, what)!r}; start with a new "
                f"checkpoint (history= fills its windows)"
            )
    for name, kind in new.columns.items():
        if name not in old.columns:
            raise StateError(f"{where}: the column {name!r} was not stored; start with a new checkpoint")
        if old.columns[name] != kind:
            raise StateError(f"{where}: the column {name!r} was {old.columns[name]}, now it is {kind}")
    if new.rows > old.rows:
        raise StateError(f"{where}: {old.rows} rows of a key are kept, this query needs {new.rows}")
    if new.session > old.session:
        raise StateError(f"{where}: it was not kept for a session window with a gap as long")
    for what in ("runs", "lifetime"):
        missing = set(getattr(new, what)) - set(getattr(old, what))
        if missing:
            raise StateError(f"{where}: it was not kept for {', '.join(sorted(missing))}")
    if new.keep > old.keep and (new.rows or new.session or new.runs or new.lifetime):
        raise StateError(
            f"{where}: results are corrected {old.keep} ticks behind the watermark, with this query's keep= {new.keep}; rows, runs "
            f"and lifetimes in front of those are gone"
        )
    if spec.endless and old.ttl is not None and (new.ttl is None or new.ttl > old.ttl):
        wanted = "for ever" if new.ttl is None else f"for {new.ttl}"
        raise StateError(
            f"{where}: idle keys are kept for {old.ttl} ticks (ttl=, or the longest window of time where that is more, and keep=), "
            f"this query wants them {wanted}, and some may be gone; take what is no longer, or start with a new checkpoint "
            f"(history= fills its windows)"
        )
    if new.kept <= old.kept:
        return None
    if not spec.complete:
        raise StateError(
            f"{where}: it reaches {old.kept} ticks behind the watermark, this query needs {new.kept}; take a shorter window "
            f"or keep=, or ask for complete=True: then results say whether their windows are whole"
        )
    return old.kept


def conformed(entry: pa.Table, spec: Any) -> pa.Table:
    """A stored entry with the columns of this query: earlier ones may have kept more."""
    if entry.schema.names == spec.log_schema.names:
        return entry
    return entry.select(spec.log_schema.names)


def _shared(step: Any, spec: Any) -> str:
    """The aggregates that are read from one state, and the order of ties that is in it."""
    members = {view.aggregate for view in step.views}
    names = " with ".join(sorted(_aggregate(a) for a in spec.aggregates if a.name in members))
    if step.bound.operator.commutative:
        return names
    columns = list(spec.tie_columns)
    read = {name for a in spec.aggregates if a.name in members for name in a.bound.needed}
    ends = [  # rows that differ in nothing it reads are the same to it; behind an id nothing is left to decide
        1 + max((columns.index(name) for name in given if name in columns), default=-1) for given in (read, spec.id) if given
    ]
    columns = columns[: min(ends, default=len(columns))]
    return f"{names} in the order of {', '.join(columns)}"


def _aggregate(aggregate: Any) -> str:
    bound = aggregate.bound
    return f"{aggregate.name}={bound.operator.signature} of {', '.join(bound.columns)} where {bound.where}"
