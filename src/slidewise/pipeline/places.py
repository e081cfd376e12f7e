"""Paths that must not meet: what is written must not lie in what is read, nor be written over it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from slidewise.pipeline import schema
from slidewise.pipeline.problems import Problem
from slidewise.pipeline.reading import Document, is_local


def paths_that_meet(document: Document) -> Iterator[Problem]:
    texts = _texts(document.job)
    places = {key: _place(document, text) for key, text in texts.items()}
    written = [key for key in texts if key[0] in ("sink", "dead_letters", "stream")]
    for number, key in enumerate(written):
        for other in texts:
            if other in written[: number + 1]:
                continue
            ours, theirs = places[key], places[other]
            if ours == theirs:
                yield Problem(key, f'is also {".".join(other)}: "{texts[key]}"; give each a folder of its own')
            elif _inside(ours, theirs) and _is_read_with(document, ours, texts[other]):
                yield Problem(key, f'lies inside {".".join(other)} ("{texts[other]}"); give each a folder of its own')
            elif _inside(theirs, ours):
                yield Problem(key, f'{".".join(other)} ("{texts[other]}") lies inside it; give each a folder of its own')


def _texts(job: schema.Job) -> dict[tuple[str, ...], str]:
    streams = job.mode == "stream"
    found = {
        ("source", "path"): getattr(job.source, "path", None),
        ("history", "path"): getattr(job.history, "path", None),
        ("as_of", "queries", "path"): job.as_of.queries.path if job.as_of else None,
        ("sink", "path"): getattr(job.sink, "path", None),
        ("dead_letters", "path"): job.dead_letters.path if job.dead_letters and streams else None,
        ("stream", "checkpoint"): job.stream.checkpoint if job.stream and streams else None,
    }
    return {key: text for key, text in found.items() if text is not None}


def _place(document: Document, text: str) -> str:
    """The folder a path is about, whatever way leads there; of a pattern, the one in which it begins."""
    parts = document.path(text).split("/")
    plain = next((number for number, part in enumerate(parts) if set(part) & set("*?[{")), len(parts))
    path = "/".join(parts[:plain]).rstrip("/")
    return os.path.realpath(path) if is_local(text) else path


def _inside(path: str, other: str) -> bool:
    return path.startswith(f"{other}/")


def _is_read_with(document: Document, path: str, text: str) -> bool:
    """Whether whoever reads `text` reads what lies at `path` below it, too; a pattern may leave it out."""
    pattern = document.path(text)
    return not set(pattern) & set("*?[{") or any(fnmatch(str(p), pattern) for p in (Path(path), *Path(path).parents))


def there_already(document: Document) -> Iterator[Problem]:
    """What a run would write over; whoever only asks how it would be computed need not be told."""
    sink = document.job.sink
    if document.job.mode == "batch" and isinstance(sink, schema.FileSink) and sink.mode == "error" and is_local(sink.path):
        folder = Path(document.path(sink.path))
        if folder.exists() and (folder.is_file() or any(folder.iterdir())):
            told = f'"{sink.path}" is there already; take mode = "overwrite" or "append", or another path'
            yield Problem(("sink", "path"), told)
