"""Results on disk: a CSV of the rows, and a JSON that also says with what and on what they were measured."""

import csv
import importlib.metadata
import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from slidewise import __version__
from slidewise.bench.suite import Result

PACKAGES = ("numpy", "numba", "llvmlite", "pyarrow", "pandas", "polars", "pyspark", "duckdb", "bottleneck", "river")


def versions() -> dict[str, str]:
    """Of Python, Slidewise, and of every package here that a suite may use."""
    found = {"python": platform.python_version(), "slidewise": __version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


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
        "suite": result.suite,
        "source": result.source,
        "quick": result.quick,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(result.seconds, 1),
        "versions": versions(),
        "machine": machine(),
        "verdicts": result.verdicts,
        "rows": result.rows,
    }
    whole.write_text(json.dumps(content, indent=1))
    return [table, whole]
