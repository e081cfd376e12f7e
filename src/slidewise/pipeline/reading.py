"""A job file from its text: TOML, `--set`, `${NAME}` from the environment, shape; then the checks of `checking.py`.

Nothing is run and nothing is started here, but a Python file that the job names for an operator is loaded, once
everything else is right.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from slidewise.errors import JobError
from slidewise.pipeline import problems
from slidewise.pipeline.positions import Path as Key
from slidewise.pipeline.positions import lines_of
from slidewise.pipeline.problems import Problem
from slidewise.pipeline.schema import Job
from slidewise.pipeline.secrets import Secrets, masked
from slidewise.pipeline.shape import problems_of

_VARIABLE = re.compile(r"\$\$|\$\{(?P<name>[^}]*)\}")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True)
class Origin:
    """Where a job comes from: what is needed to speak of it."""

    file: Path
    lines: Mapping[Key, int]
    overridden: Mapping[Key, str]
    secrets: Secrets

    def error(self, found: list[Problem]) -> JobError:
        told = problems.error(self.file.name, found, self.lines, self.overridden)
        return JobError(self.secrets.hide(str(told)))


@dataclass(frozen=True, repr=False)
class Document:
    """A job file as read."""

    job: Job
    raw: dict[str, Any]
    """As it is written, with `--set` and without what the environment holds: `${NAME}` stays what it is."""
    origin: Origin

    def __repr__(self) -> str:
        return f"Document({str(self.origin.file)!r}, {self.shown()})"

    @property
    def name(self) -> str:
        return self.job.name or self.origin.file.stem

    def path(self, text: str) -> str:
        """A path of the job file as an absolute one; addresses with a scheme are left alone."""
        return str((self.origin.file.parent / Path(text).expanduser()).absolute()) if is_local(text) else text

    def shown(self) -> dict[str, Any]:
        """The document without its secrets: those in it, and those of the environment."""
        return masked(self.raw)


def is_local(path: str) -> bool:
    """Whether a path is one of this machine, and not an address such as s3a://bucket/key."""
    return _SCHEME.match(path) is None


def read(file: str | os.PathLike[str], settings: Sequence[str] = ()) -> Document:
    """The job in a file, with `settings` such as `sink.path=out` over it. Checks shape and types, nothing else."""
    path = Path(file)
    text = _text(path)
    raw = _parsed(path, text)
    lines = lines_of(text)
    overridden = dict(_override(raw, setting) for setting in settings)
    found: list[Problem] = []
    taken: set[str] = set()
    full = _with_environment(raw, (), found, taken)
    origin = Origin(path, lines, overridden, Secrets(full, taken))
    found += (_of_the_old(problem, overridden) for problem in problems_of(full, msgspec.inspect.type_info(Job)))
    if found:
        raise origin.error(found)
    try:
        return Document(msgspec.convert(full, Job), raw, origin)
    except msgspec.ValidationError as error:
        raise origin.error([Problem((), str(error))]) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise JobError(f"no job file {path}{_neighbours(path)}") from None
    except IsADirectoryError:
        raise JobError(f"{path} is a folder, not a job file{_neighbours(path / 'x')}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        told = f"not UTF-8 text (a byte {error.object[error.start]:#04x}); save it in that encoding"
        raise JobError(f"{path.name}, line {line}: {told}") from None
    except OSError as error:
        raise JobError(f"cannot read {path}: {error.strerror}") from None


def _neighbours(path: Path) -> str:
    folder = path.parent
    names = sorted(p.name for p in folder.glob("*.toml")) if folder.is_dir() else []
    hint = problems.meant(path.name, names)
    return hint if len(names) <= 10 or hint.endswith("?") else ""


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"^(.*) \(at (?:line (\d+), column (\d+)|end of document)\)$", str(error), re.S)
        what, line = (match[1], match[2] or text.count("\n") + 1) if match else (str(error), "?")
        hint = "; text stands in quotes" if what == "Invalid value" else ""
        raise JobError(f"{path.name}, line {line}: not TOML: {what[0].lower()}{what[1:]}{hint}") from None


def _override(raw: dict[str, Any], setting: str) -> tuple[Key, str]:
    """Put `key=value` into the document; the value is TOML if it can be read so, otherwise text. Values may be secret, so
    only the key is ever shown."""
    name, equals, text = setting.partition("=")
    told = f"--set {name.strip()}"
    try:
        key = _key_of(name)
    except tomllib.TOMLDecodeError:
        key = ()
    if not equals or not key:
        raise JobError(f"{told}: write it as key=value, such as --set sink.path=out or --set mode=stream")
    try:
        value = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    at: Any = raw
    for depth, part in enumerate(key):
        if isinstance(at, list) and str(part).isdigit() and int(part) < len(at):
            part = int(part)
        elif not isinstance(at, dict):
            raise JobError(f"{told}: there is nothing at {'.'.join(map(str, key[: depth + 1]))}")
        if depth == len(key) - 1:
            at[part] = value
        else:
            at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
    return key, told


def _of_the_old(problem: Problem, overridden: dict[Key, str]) -> Problem:
    """A format that was set leaves the other keys of its table as they stand in the file."""
    left = len(problem.path) == 2 and (problem.path[0], "format") in overridden and problem.path not in overridden
    if not left or not problem.message.startswith("unknown key"):
        return problem
    whole = f"--set '{problem.path[0]}={{ format = \"...\" }}'"
    return Problem(problem.path, f"{problem.message}; it stands in the file: {whole} sets the whole table")


def _key_of(name: str) -> Key:
    found: Any = tomllib.loads(f"{name.strip()} = 0")
    key: list[str] = []
    while isinstance(found, dict):
        part, found = next(iter(found.items()))
        key.append(part)
    return tuple(key)


def _with_environment(value: Any, path: Key, found: list[Problem], taken: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_environment(inner, (*path, key), found, taken) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_environment(inner, (*path, number), found, taken) for number, inner in enumerate(value)]
    if not isinstance(value, str):
        return value

    def put(match: re.Match) -> str:
        if match["name"] is None:
            return "$"
        name = match["name"].strip()
        if name not in os.environ:
            found.append(Problem(path, f"the environment has no variable {name}; set it, or write $$ for a dollar sign"))
            return ""
        taken.add(os.environ[name])
        return os.environ[name]

    return _VARIABLE.sub(put, value)
