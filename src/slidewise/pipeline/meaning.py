"""What a job asks for, in the words of `sw.rolling`: windows, aggregates, and the columns that they need, each with its key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from slidewise.algebra.operator import Bound
from slidewise.errors import SlidewiseError
from slidewise.pipeline import operators
from slidewise.pipeline.positions import Path
from slidewise.pipeline.problems import Problem, listed
from slidewise.pipeline.reading import Document
from slidewise.pipeline.schema import Job, ReplaySource, WindowTable
from slidewise.windows import spec

_ROWS = re.compile(r"^\s*(\d+)\s*(?:r|rows?)\s*$")
KINDS = ("time", "rows", "tumbling", "session", "delta", "punctuation", "lifetime")


def names(value: str | list[str] | None) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def windows_of(job: Job, found: list[Problem]) -> list[spec.Window] | dict[str, spec.Window]:
    """The windows; what cannot be one is noted in `found`."""
    items = job.windows.items() if isinstance(job.windows, dict) else enumerate(job.windows)
    made: dict[Any, spec.Window] = {}
    for key, value in items:
        try:
            made[key] = _window(value)
            twice = next((k for k in made if k != key and isinstance(k, int) and made[k].label == made[key].label), None)
            if twice is not None:
                told = f'is windows[{twice}] again; leave one out, or give both names: windows = {{ a = "1h", b = "1h" }}'
                found.append(Problem(("windows", key), told))
        except SlidewiseError as error:
            found.append(Problem(("windows", key), str(error)))
    if not job.windows:
        found.append(Problem(("windows",), 'no windows; give at least one, such as windows = ["1h"]'))
    return made if isinstance(job.windows, dict) else list(made.values())


def _window(value: str | int | float | WindowTable) -> spec.Window:
    if isinstance(value, str) and (rows := _ROWS.match(value)):
        raise operators.wrong(f'cannot read "{value}"; did you mean {{ rows = {rows[1]} }}?')
    if not isinstance(value, WindowTable):
        return spec.window(value)
    given = [kind for kind in KINDS if getattr(value, kind) not in (None, False)]
    if len(given) != 1:
        raise operators.wrong(f"must have exactly one of {listed(KINDS)}, not {' and '.join(given) or 'none'}")
    kind = given[0]
    allowed = {"time": ("slide", "offset", "calendar"), "rows": ("slide", "offset"), "tumbling": ("calendar",), "delta": ("width",)}
    for key in ("width", "slide", "offset", "calendar"):
        if getattr(value, key) not in (None, False) and key not in allowed.get(kind, ()):
            raise operators.wrong(f"a window of {kind} takes no {key}")
    if kind == "time":
        return spec.time(value.time, value.slide, value.offset, calendar=value.calendar)
    if kind == "rows":
        return spec.rows(value.rows, value.slide, value.offset)
    if kind == "tumbling":
        return spec.tumbling(value.tumbling, calendar=value.calendar)
    if kind == "delta":
        if value.width is None:
            raise operators.wrong('a window of delta needs the key "width"')
        return spec.delta(str(value.delta), value.width)
    if kind == "lifetime":
        return spec.lifetime()
    return spec.session(value.session) if kind == "session" else spec.punctuation(str(value.punctuation))


def aggregates_of(document: Document, found: list[Problem], *, load: bool) -> dict[str, Bound]:
    """The aggregates; what cannot be one is noted in `found`. Those of Python files only with `load`."""
    made: dict[str, Bound] = {}
    for name, value in document.job.aggregates.items():
        if operators.names_file(value) and not load:
            continue
        try:
            made[name] = operators.bound(value, document.origin.file.parent)
        except SlidewiseError as error:
            key = getattr(error, "key", None) if isinstance(value, dict) else None
            found.append(Problem(("aggregates", name, *((key,) if key is not None and key in value else ())), str(error)))
    if not document.job.aggregates:
        found.append(Problem(("aggregates",), 'no aggregates; give at least one, such as total = "sum(amount)"'))
    return made


def needed(job: Job, windows: Any, aggregates: dict[str, Bound]) -> Iterator[tuple[Path, str]]:
    """Every column that the source must have, and the key that names it."""
    yield ("time",), job.time
    for key in ("by", "id", "order"):
        for column in names(getattr(job, key)):
            yield (key,), column
    for place, window in windows.items() if isinstance(windows, dict) else enumerate(windows):
        for column in window.needed:
            yield ("windows", place), column
    for name, bound in aggregates.items():
        for column in bound.needed:
            yield ("aggregates", name), column


def arguments(job: Job, windows: Any, aggregates: dict[str, Bound]) -> dict[str, Any]:
    """The arguments of `sw.rolling` and `sw.as_of` that the job gives, beyond the data; those of streams not."""
    given: dict[str, Any] = {
        "time": job.time,
        "by": names(job.by) or None,
        "windows": windows,
        "aggs": aggregates,
        "order": names(job.order) or None,
        "algorithm": job.algorithm,
        "origin": job.origin,
        "prefer": job.prefer,
    }
    given |= {"ties": job.ties, "emit": job.emit, "exclude_current": job.exclude_current}
    given["closed"] = job.closed or ("right" if job.as_of is None else "left")
    if job.as_of is not None:
        given |= {"query_time": job.as_of.time, "query_by": names(job.as_of.by) or None}
    return given


def stream_arguments(job: Job) -> dict[str, Any]:
    """The arguments that only a stream takes."""
    stream = job.stream
    assert stream is not None
    keys = ("watermark", "results", "late", "keep", "max_ahead", "ttl", "complete", "buckets")
    given = {key: getattr(stream, key) for key in keys}
    return {key: value for key, value in given.items() if value is not None} | {"id": names(job.id) or None}


def ends_here(job: Job) -> bool:
    """Whether the run is the stream's end: it gives the final results that still wait for the watermark, too."""
    stream = job.stream
    assert stream is not None
    if stream.results != "final" or stream.trigger != "available_now":
        return False
    return isinstance(job.source, ReplaySource) if stream.flush is None else stream.flush
