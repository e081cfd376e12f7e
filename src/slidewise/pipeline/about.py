"""Which key of a job file an engine's message is about: the engine is asked again for one part of the job at a time.

Engines know nothing of job files. What they refuse is refused in the same words when only the part that is wrong is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import slidewise as sw
from slidewise.errors import SlidewiseError
from slidewise.pipeline import schema
from slidewise.pipeline.positions import Path

Ask = Callable[[dict[str, Any], dict[str, Any]], None]
"""Arguments of `sw.rolling`, and those that only a stream takes."""
LENGTHS = ("watermark", "keep", "max_ahead", "ttl")


def about(message: str, job: schema.Job, ask: Ask, arguments: dict[str, Any], stream: dict[str, Any]) -> Path:
    """The key, or () for the job as a whole. ask raises what the engine says to a request."""
    lengths = {key: stream[key] for key in LENGTHS if key in stream}
    others = {key: value for key, value in stream.items() if key not in lengths}

    def same(changed: dict[str, Any], **lengths: Any) -> bool:
        try:
            ask({**arguments, **changed}, {**others, **lengths})
        except SlidewiseError as error:
            return str(error) == message
        return False

    named = _named(message, job)
    if named:
        return named
    if arguments["algorithm"] != "auto" and not same({"algorithm": "auto"}, **lengths):
        return ("algorithm",)
    rows = {"rows": sw.count()}
    simple: dict[str, Any] = {"windows": [sw.lifetime()]} | ({"emit": "event"} if "emit" in arguments else {})
    if same({"aggs": rows, **simple}):  # whatever the windows and aggregates are
        return next(((key,) for key in ("by", "order") if not same({"aggs": rows, key: None, **simple})), ("time",))
    for name, bound in arguments["aggs"].items():
        if same({"aggs": {name: bound}, **simple}):
            return ("aggregates", name)
    windows = arguments["windows"]
    for place, window in windows.items() if isinstance(windows, dict) else enumerate(windows):
        one = {place: window} if isinstance(windows, dict) else [window]
        if same({"aggs": rows, "windows": one}):
            return ("windows", place)
    for key, length in lengths.items():
        if same({"aggs": rows, **simple}, **{key: length}):
            return ("stream", key)
    return ("windows",) if message.startswith("the window") else ()


def _named(message: str, job: schema.Job) -> Path:
    """The key that a message begins with."""
    if message.startswith(("two results", "the result column")):
        return ("aggregates",)
    if "both the time and a key" in message:
        return ("by",)
    word = re.match(r"\w+", message)
    name = word.group() if word else ""
    if name in schema.Job.__struct_fields__:
        return (name,)
    return ("stream", name) if job.stream is not None and name in schema.StreamTable.__struct_fields__ else ()
