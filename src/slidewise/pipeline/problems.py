"""What is wrong with a job file, where, and what may have been meant; and how that becomes one message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slidewise.errors import JobError
from slidewise.pipeline.positions import Path


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    path: Path
    """The key it is about: `("source", "path")`."""
    message: str

    @property
    def key(self) -> str:
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{_quoted(part)}" if text else _quoted(part)
        return text


_ELSEWHERE = {
    "file": "path", "folder": "path", "dir": "path", "aggs": "aggregates", "agg": "aggregates", "func": "operator",
    "group_by": "by", "groupby": "by", "key": "by", "keys": "by", "partition_by": "by", "timestamp": "time", "ts": "time",
    "event_time": "time", "type": "format", "bootstrap_servers": "servers", "brokers": "servers", "subscribe": "topic",
    "range": "time", "length": "time", "duration": "time", "size": "time", "config": "conf", "jars": "packages",
    "avg": "mean", "average": "mean", "stddev": "std", "variance": "var", "stdev": "std", "percentile": "quantile",
    "percentile_approx": "quantile", "corr": "correlation", "cov": "covariance", "nunique": "approx_distinct",
    "count_distinct": "approx_distinct", "approx_count_distinct": "approx_distinct", "n_unique": "approx_distinct",
    "collect_list": "collect", "collect_set": "collect_distinct", "prod": "product", "max_by": "argmax", "min_by": "argmin",
    "postgres": "jdbc", "postgresql": "jdbc", "mysql": "jdbc", "sqlite": "jdbc", "print": "console", "stdout": "console",
}  # fmt: skip
"""What things are called in pandas, Polars, SQL and Spark, and here."""


def meant(given: str, known: Iterable[str]) -> str:
    """`; did you mean "column"?` if something known is close or has this name elsewhere, otherwise what is known."""
    known = [str(word) for word in known]
    close = [k for k in known if k.lower() == given.lower() or k == _ELSEWHERE.get(given.lower())]
    close = close or difflib.get_close_matches(given, known, 1, cutoff=0.6)
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; there is {listed(known)}" if known else ""


def listed(words: Iterable[str]) -> str:
    """a, b or c."""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}" if words else "none"


def error(name: str, problems: list[Problem], lines: Mapping[Path, int], overridden: Mapping[Path, str]) -> JobError:
    """One error for all problems, each with its line and key."""
    places = sorted({p: (_line(p.path, lines), _where(p, lines, overridden)) for p in problems}.items(), key=lambda i: i[1][0])
    told = [f"{where}: {problem.message}" if where else problem.message for problem, (_, where) in places]
    if len(told) == 1:
        return JobError(f"{name}, {told[0]}")
    return JobError(f"{name} has {len(told)} problems\n" + "\n".join(f"  {one}" for one in told))


def _where(problem: Problem, lines: Mapping[Path, int], overridden: Mapping[Path, str]) -> str:
    for length in range(len(problem.path), 0, -1):
        if problem.path[:length] in overridden:
            return f"{overridden[problem.path[:length]]}, {problem.key}"
    line = _line(problem.path, lines)
    return ", ".join(part for part in (f"line {line}" if line else "", problem.key) if part)


def _line(path: Path, lines: Mapping[Path, int]) -> int:
    """The line of the key, or of the nearest table around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 0


def _quoted(part: str) -> str:
    return part if part.replace("_", "").replace("-", "").isalnum() else f'"{part}"'
