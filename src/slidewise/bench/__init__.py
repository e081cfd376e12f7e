"""Measurements: one suite for each experiment, run from the command line as `slidewise bench [SUITE ...] [--quick]`.

    __init__.py   the list of suites, and running them
    suite.py      what a suite is: rows, tables, verdicts
    records.py    CSV and JSON with versions and machine
    screen.py     tables on the terminal
    clock.py      a clock that compiled loops can read
    timing.py     best of several
    fifo.py       in-order algorithms: throughput and latency over window sizes
    rolling.py    data frames, against pandas, Polars and DuckDB
    spark_batch.py   batches on Spark, against its own frames

A new suite is one new file and one line in `SUITES`.
"""

import argparse
import importlib
import time
from collections.abc import Iterable
from pathlib import Path

from slidewise.bench import records, screen
from slidewise.bench.suite import Result, Suite
from slidewise.errors import InputError

SUITES = {
    "fifo": "slidewise.bench.fifo",
    "spark-batch": "slidewise.bench.spark_batch",
    "spark-stream": "slidewise.bench.spark_stream",
    "rolling": "slidewise.bench.rolling",
}
"""Name -> module. The module's `SUITE` is loaded when it is asked for: some need packages that others do not."""


def suite(name: str) -> Suite:
    """The suite of that name."""
    if name not in SUITES:
        raise InputError(f"no suite {name!r}; there are {', '.join(SUITES)}")
    return importlib.import_module(SUITES[name]).SUITE


def run(names: Iterable[str] = (), quick: bool = False, out_dir: str | Path | None = None) -> dict[str, Result]:
    """Run suites (all of them by default), show their tables, and file them in `out_dir` if there is one."""
    results = {}
    for chosen in [suite(name) for name in (list(names) or SUITES)]:  # a wrong name fails before anything runs
        screen.begin(chosen, quick)
        began = time.perf_counter()
        rows = chosen.run(quick, screen.progress)
        result = Result(chosen.name, chosen.source, quick, rows, chosen.verdicts(rows), time.perf_counter() - began)
        screen.show(chosen, result)
        if out_dir is not None:
            screen.filed(records.write(result, Path(out_dir)))
        results[chosen.name] = result
    return results


def main(args: list[str] | None = None) -> int:
    """`slidewise bench`: 0, or 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="slidewise bench", description="Measure: suites of benchmarks.")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"all of them by default: {', '.join(SUITES)}")
    parser.add_argument("--quick", action="store_true", help="smaller sizes: minutes instead of hours")
    parser.add_argument("--list", action="store_true", help="what there is, and stop")
    parser.add_argument("--out", default="bench-results", metavar="DIR", help="where CSV and JSON go (bench-results)")
    try:
        options = parser.parse_args(args)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    try:
        if options.list:
            screen.listing([suite(name) for name in SUITES])
        else:
            run(options.suites, options.quick, options.out)
    except InputError as error:
        screen.wrong(error)
        return 2
    return 0
