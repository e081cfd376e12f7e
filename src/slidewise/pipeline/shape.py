"""A parsed TOML document against the classes of `schema.py`: every unknown key, missing key and wrong value at once.

msgspec itself stops at the first, and suggests nothing; it has the last word all the same when the document is converted.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, get_args

from msgspec import inspect as kinds

from slidewise.pipeline import schema
from slidewise.pipeline.positions import Path
from slidewise.pipeline.problems import Problem, listed, meant
from slidewise.pipeline.secrets import STARS, is_secret

_WORDS: list[tuple[type, str]] = [
    (kinds.StrType, "text"),
    (kinds.BoolType, "true or false"),
    (kinds.IntType, "a whole number"),
    (kinds.FloatType, "a number"),
    (kinds.ListType, "a list"),
    (kinds.DictType, "a table"),
    (kinds.StructType, "a table"),
]


def problems_of(value: Any, kind: kinds.Type, path: Path = ()) -> Iterator[Problem]:
    """Everything about a value that its type does not allow."""
    if isinstance(kind, kinds.AnyType):
        return
    members = kind.types if isinstance(kind, kinds.UnionType) else (kind,)
    if isinstance(value, dict):
        yield from _table(value, members, path)
    elif isinstance(value, list):
        yield from _list(value, members, path)
    else:
        yield from _scalar(value, members, path)


def _table(value: dict, members: tuple[kinds.Type, ...], path: Path) -> Iterator[Problem]:
    structs = [member for member in members if isinstance(member, kinds.StructType)]
    tagged = [struct for struct in structs if struct.tag_field is not None]
    if tagged:
        yield from _tagged(value, tagged, path)
        return
    for member in members:
        if isinstance(member, kinds.StructType):
            yield from _struct(value, member, path)
            return
        if isinstance(member, kinds.DictType):
            for key, inner in value.items():
                yield from problems_of(inner, member.value_type, (*path, key))
            return
    yield Problem(path, f"must be {_wanted(members)}, not a table")


def _tagged(value: dict, structs: list[kinds.StructType], path: Path) -> Iterator[Problem]:
    word = structs[0].tag_field or ""
    known = {str(struct.tag): struct for struct in structs}
    if word not in value:
        yield Problem(path, f'needs the key "{word}": {listed(known)}')
        return
    chosen = value[word]
    if not isinstance(chosen, str) or chosen not in known:
        yield Problem((*path, word), f"{_shown(chosen)} is not known here{meant(str(chosen), known)}")
        return
    yield from _struct({key: inner for key, inner in value.items() if key != word}, known[chosen], path, tag=word)


def _struct(value: dict, struct: kinds.StructType, path: Path, tag: str | None = None) -> Iterator[Problem]:
    fields = {field.encode_name: field for field in struct.fields}
    hints = ""
    for key, inner in value.items():
        if key in fields:
            yield from problems_of(inner, fields[key].type, (*path, key))
        else:
            hint = meant(key, [*((tag,) if tag else ()), *fields])
            hint = hint if hint.endswith("?") else _belongs(key, path) or hint
            hints += hint
            yield Problem((*path, key), f"unknown key{hint}")
    for name, field in fields.items():
        # A key that was meant by another one is not missing as well.
        if field.required and name not in value and f'"{name}"?' not in hints:
            inside = [] if path else [table for table, inner in value.items() if isinstance(inner, dict) and name in inner]
            hint = f" above the first table; it stands in [{inside[0]}]" if inside else ""
            yield Problem(path, f'needs the key "{name}"{hint}')


def _belongs(key: str, path: Path) -> str:
    """Where a key stands that is none of this table: TOML takes it into whatever table was opened last."""
    if path and key in schema.Job.__struct_fields__:
        return "; it is a key of the job: put it above the first table"
    if path != ("stream",) and key in schema.StreamTable.__struct_fields__:
        return "; it belongs to [stream]"
    sinks = [str(kind.__struct_config__.tag) for kind in get_args(schema.Sink) if key in kind.__struct_fields__]
    return f"; only {', '.join(sinks[:-1])} and {sinks[-1]} have it" if path == ("sink",) and len(sinks) > 1 else ""


def _list(value: list, members: tuple[kinds.Type, ...], path: Path) -> Iterator[Problem]:
    for member in members:
        if isinstance(member, kinds.ListType):
            for number, inner in enumerate(value):
                yield from problems_of(inner, member.item_type, (*path, number))
            return
    yield Problem(path, f"must be {_wanted(members)}, not a list{_written(path)}")


def _scalar(value: Any, members: tuple[kinds.Type, ...], path: Path) -> Iterator[Problem]:
    for member in members:
        if _fits(value, member):
            yield from _bounds(value, member, path)
            return
    words = [str(word) for member in members if isinstance(member, kinds.LiteralType) for word in member.values]
    hint = meant(value, words) if isinstance(value, str) and words else ""
    shown = STARS if any(is_secret(str(part)) for part in path) else _shown(value)
    if any(isinstance(m, kinds.ListType) and not list(problems_of([value], m, path)) for m in members):
        hint = f"; did you mean [{shown}]?"
    if isinstance(value, datetime.date) and any(isinstance(member, kinds.StrType) for member in members):
        hint = f'; did you mean "{value}"?'
    yield Problem(path, f"must be {_wanted(members)}, not {shown}{hint if hint.endswith('?') else _written(path)}")


def _written(path: Path) -> str:
    return '; write it like { ts = "timestamp", amount = "double" }' if path[-1:] == ("schema",) else ""


def _fits(value: Any, kind: kinds.Type) -> bool:
    if isinstance(kind, kinds.LiteralType):
        return value in kind.values
    if isinstance(value, bool):
        return isinstance(kind, kinds.BoolType)
    if isinstance(kind, kinds.FloatType):
        return isinstance(value, (int, float))
    return (isinstance(kind, kinds.StrType) and isinstance(value, str)) or (
        isinstance(kind, kinds.IntType) and isinstance(value, int)
    )


def _bounds(value: Any, kind: kinds.Type, path: Path) -> Iterator[Problem]:
    if not isinstance(kind, kinds.IntType):
        return
    if kind.ge is not None and value < kind.ge:
        yield Problem(path, f"must be at least {kind.ge}, not {value}")
    if kind.le is not None and value > kind.le:
        yield Problem(path, f"must be at most {kind.le}, not {value}")


def _wanted(members: tuple[kinds.Type, ...]) -> str:
    words: list[str] = []
    for member in members:
        if isinstance(member, kinds.LiteralType):
            words += [f'"{value}"' for value in member.values]
        else:
            words += [word for kind, word in _WORDS if isinstance(member, kind)]
    if "a number" in words and "a whole number" in words:
        words.remove("a whole number")
    return listed(dict.fromkeys(words))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime.date, datetime.time)):
        return f"the date {value}"
    return f'"{value}"' if isinstance(value, str) else str(value)
