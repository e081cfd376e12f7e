"""A stream's folders belong to its checkpoint: micro-batches are numbered there, and a number may be written again.

A checkpoint that was removed would begin at 0 and write over the results of the old one, or leave some of them standing
among the new. So a folder notes which stream made it, and another one is refused. Folders of this machine only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from slidewise.pipeline import schema
from slidewise.pipeline.problems import Problem
from slidewise.pipeline.reading import Document, is_local

_MARK = "_slidewise.json"


def folders_of(document: Document) -> Iterator[tuple[tuple[str, ...], Path]]:
    """The folders that the stream writes results into."""
    job = document.job
    if isinstance(job.sink, schema.FileSink) and is_local(job.sink.path):
        yield ("sink", "path"), Path(document.path(job.sink.path))
    if job.dead_letters is not None and is_local(job.dead_letters.path):
        yield ("dead_letters", "path"), Path(document.path(job.dead_letters.path))


def check_owner(document: Document) -> None:
    """JobError if a folder holds something that is not this stream's."""
    stream = document.job.stream
    if stream is not None and stream.checkpoint is not None and not is_local(stream.checkpoint):
        return  # who that is cannot be seen from here
    own = _checkpoint_id(document)
    found = []
    for key, folder in folders_of(document):
        if not folder.exists():
            continue
        if folder.is_file() or (any(folder.iterdir()) and _owner(folder) is None):
            told = "holds files that are not this stream's; give it a new folder"
        elif _owner(folder) not in (None, own):
            told = "holds the results of a stream with another checkpoint; bring that back, or give a new folder"
        else:
            continue
        found.append(Problem(key, told))
    if found:
        raise document.origin.error(found)


def note_owner(document: Document, query: str) -> None:
    for _, folder in folders_of(document):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _MARK).write_text(json.dumps({"query": query}) + "\n", encoding="utf-8")


def _owner(folder: Path) -> str | None:
    try:
        return json.loads((folder / _MARK).read_text(encoding="utf-8"))["query"]
    except (OSError, ValueError, KeyError):
        return None


def _checkpoint_id(document: Document) -> str | None:
    stream = document.job.stream
    if stream is None or stream.checkpoint is None:
        return None
    try:
        return json.loads((Path(document.path(stream.checkpoint)) / "metadata").read_text(encoding="utf-8"))["id"]
    except (OSError, ValueError, KeyError):
        return None
