"""Aggregates of a job file as bound operators: of the library by name, or of a Python file that the job names.

    "sum(amount)"   "quantile(delay, q=0.95, where=landed)"   { operator = "sum", column = "amount", exact = true }
    "features.py:regression(x, y)"                            { operator = "features.py:regression", columns = ["x", "y"] }

A Python file is loaded only because the job names it, and only when the rest of the job is right.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from slidewise.algebra.operator import Bound, Operator
from slidewise.errors import InputError, SlidewiseError
from slidewise.operators import OPERATORS
from slidewise.pipeline.problems import meant

_CALL = re.compile(r"^\s*(?P<name>[^()]+?)\s*(?:\((?P<arguments>.*)\))?\s*$", re.S)
_WORD = re.compile(r"^[^\W\d]\w*$")
OWN_KEYS = ("operator", "column", "columns", "where")


def bound(value: str | dict[str, Any], folder: Path) -> Bound:
    """One aggregate; InputError with what is wrong about it, and in `.key` the key that it is about, if it is one."""
    told = _from_text(value) if isinstance(value, str) else dict(value)
    name = told.pop("operator", None)
    if not isinstance(name, str):
        raise wrong('needs the key "operator", such as operator = "sum"')
    columns = _columns(told)
    where = told.pop("where", None)
    if where is not None and not isinstance(where, str):
        raise wrong("must name a column of truth values", "where")
    if ".py:" in name:
        return _of_file(name, folder, told)(*columns, where=where)
    maker = _of_library(name)
    _check_parameters(name, maker, told)
    made = maker(*columns, where=where, **told)
    return made() if isinstance(made, Operator) else made


def names_file(value: str | dict[str, Any]) -> bool:
    """Whether an aggregate's operator is one of a Python file."""
    return ".py:" in str(value if isinstance(value, str) else value.get("operator", "")).partition("(")[0]


def wrong(message: str, key: str | None = None) -> InputError:
    error = InputError(message)
    error.key = key  # type: ignore[attr-defined]
    return error


def _columns(told: dict[str, Any]) -> list[str]:
    if "column" in told and "columns" in told:
        raise wrong("give column or columns, not both", "column")
    key = "column" if "column" in told else "columns"
    value = told.pop(key, [])
    columns = [value] if isinstance(value, str) else value
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise wrong("must be the name of a column, or a list of names", key)
    return columns


def _check_parameters(name: str, maker: Operator | Callable, given: dict[str, Any]) -> None:
    known = [] if isinstance(maker, Operator) else list(inspect.signature(maker).parameters)
    for parameter in given:
        if parameter not in known:
            hint = meant(parameter, [*(p for p in known if p not in OWN_KEYS), *OWN_KEYS])
            raise wrong(f'{name} has no parameter "{parameter}"{hint}', parameter)


def _of_library(name: str) -> Callable:
    if name not in OPERATORS:
        if percentile := re.fullmatch(r"[pP](\d\d)", name):
            raise wrong(f'no operator "{name}"; did you mean "quantile(..., q=0.{percentile[1]})"?', "operator")
        raise wrong(f'no operator "{name}"{meant(name, [*OPERATORS, "file.py:name"])}', "operator")
    return OPERATORS[name]


# ---- operators of a user's own ------------------------------------------------------------------------------------------


def _of_file(name: str, folder: Path, parameters: dict[str, Any]) -> Operator:
    """The operator of that name in a file, or what a function of that name makes from the parameters."""
    file, _, attribute = name.rpartition(":")
    path = (folder / Path(file).expanduser()).absolute()
    if not path.is_file():
        raise wrong(f"no file {file}{_neighbour(path)}", "operator")
    module = load(path)
    if not hasattr(module, attribute):
        offered = [key for key, value in vars(module).items() if isinstance(value, Operator)]
        raise wrong(f'{file} has no "{attribute}"{meant(attribute, offered)}', "operator")
    found = getattr(module, attribute)
    if callable(found):
        _check_parameters(name, found, parameters)
    if not isinstance(found, Operator) and callable(found):
        try:
            found = found(**parameters)
        except Exception as error:
            raise wrong(f"{name} raised {type(error).__name__}: {error}{_line_in(path, error)}", "operator") from error
    if not isinstance(found, Operator):
        raise wrong(f"{name} must be, or return, an operator made by sw.operator(...), not {type(found).__name__}", "operator")
    return found


def _neighbour(path: Path) -> str:
    names = [p.name for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
    hint = meant(path.name, names)
    return hint if hint.endswith("?") else ""


def load(path: Path) -> ModuleType:
    """A Python file as a module, loaded once. Its functions travel to Spark's workers by their code: the file need not be there."""
    name = f"slidewise_job_{re.sub(r'[^0-9A-Za-z]', '_', str(path))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        told = str(error) if isinstance(error, SlidewiseError) else f"{type(error).__name__}: {error}"
        raise wrong(f"{path.name} cannot be loaded: {told}{_line_in(path, error)}", "operator") from error
    if importlib.util.find_spec("pyspark") is not None:
        from pyspark import cloudpickle

        cloudpickle.register_pickle_by_value(module)
    return module


def _line_in(path: Path, error: Exception) -> str:
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None and line is None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" (line {line} of {path.name})" if line else ""


# ---- "quantile(delay, q=0.95)" ------------------------------------------------------------------------------------------


def _from_text(text: str) -> dict[str, Any]:
    match = _CALL.match(text)
    if match is None:
        raise wrong(f'cannot read "{text}"; write it like "sum(amount)" or "quantile(delay, q=0.95)"')
    told: dict[str, Any] = {"operator": match["name"], "columns": []}
    for part in _split(match["arguments"] or ""):
        name, equals, value = part.partition("=")
        if not equals or not _WORD.match(name.strip()):
            told["columns"].append(_column(_read(part.strip(), text), match["name"], text))
        elif name.strip() in told:
            raise wrong(f'"{name.strip()}" stands twice in "{text}"')
        else:
            told[name.strip()] = _read(value.strip(), text)
    return told


def _column(value: Any, name: str, whole: str) -> str:
    if isinstance(value, str):
        return value
    maker = OPERATORS.get(name)
    known = [] if maker is None or isinstance(maker, Operator) else list(inspect.signature(maker).parameters.values())
    own = [parameter.name for parameter in known if parameter.name not in OWN_KEYS and parameter.kind == parameter.KEYWORD_ONLY]
    hint = f", such as {own[0]}=..." if own else ""
    raise wrong(f'"{whole}": {value} is no column, and parameters are given by name{hint}')


def _split(arguments: str) -> Iterator[str]:
    """At commas that stand neither in quotes nor in brackets."""
    depth, quote, start = 0, "", 0
    for at, letter in enumerate(arguments):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        elif letter == "," and not depth:
            yield arguments[start:at]
            start = at + 1
    if arguments[start:].strip():
        yield arguments[start:]


def _read(text: str, whole: str) -> Any:
    if text in ("True", "False"):
        raise wrong(f'"{whole}": write {text.lower()}, as everywhere in a job file, or quotes around the name of a column')
    if _WORD.match(text) and text not in ("true", "false", "inf", "nan"):
        return text
    if text == "*":
        raise wrong(f'"{whole}": give a column; rows are counted by "count()"')
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        told = "aggregates and where= take columns, so let the source have one with that in it"
        raise wrong(f'cannot read {text!r} in "{whole}"; {told}; names with spaces or signs stand in quotes') from None
