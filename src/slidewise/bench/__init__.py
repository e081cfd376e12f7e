"""Measurements: one suite for each experiment, run from the command line as `slidewise bench [SUITE ...] [--quick]`.

    __init__.py   the list of suites, groups of them, and running them
    papers/       the experiments of the papers, one suite each
    suite.py      what a suite is: rows, tables, plots, claims
    plots.py      plots in the papers' form
    counting.py   combines counted, not timed
    tally.py      combines counted in compiled code
    tree_rounds.py   the papers' loops over trees: rounds, bulks, time windows
    data.py       streams of real shape: flights, bike rides
    records.py    CSV and JSON with versions and machine
    report.py     one HTML page of everything that was filed
    compare.py    two runs side by side
    screen.py     tables on the terminal
    clock.py      a clock that compiled loops can read
    timing.py     best of several
    beside.py     what else the machine did meanwhile
    start.py      until a process has its first answers
    fifo.py       in-order algorithms: throughput and latency over window sizes
    fiba.py       trees: throughput and latency over distances from the young end, single and in bulk
    memory.py     trees: bytes an entry
    rolling.py    data frames, against pandas, Polars and DuckDB
    peers.py      windows of n rows, against bottleneck and River too
    spark_batch.py   batches on Spark, against its own frames
    spark_stream.py   streams on Spark, against plain per-key state and native hopping windows

A new suite is one new file and one line in `SUITES` (experiments of the papers: in `papers/__init__.py`).
"""

import argparse
import importlib
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from slidewise.bench import papers, records, screen
from slidewise.bench.beside import Watch
from slidewise.bench.suite import Result, Suite
from slidewise.errors import InputError, SlidewiseError

SUITES = {
    "start": "slidewise.bench.start",
    "fifo": "slidewise.bench.fifo",
    "fiba": "slidewise.bench.fiba",
    "memory": "slidewise.bench.memory",
    "spark-batch": "slidewise.bench.spark_batch",
    "spark-stream": "slidewise.bench.spark_stream",
    "rolling": "slidewise.bench.rolling",
    "peers": "slidewise.bench.peers",
    **papers.SUITES,
}
"""Name -> module, or module:NAME where that is not SUITE. Loaded when asked for: some need packages that others do not."""

PAPERS = ("daba-2015", "slickdeque-2018", "reactive-aggregator-2015", "fiba-2019", "bulk-fiba-2023")


def suite(name: str) -> Suite:
    """The suite of that name."""
    if name not in SUITES:
        raise InputError(f"no suite {name!r}; there are {', '.join([*SUITES, *groups()])}")
    module, _, attribute = SUITES[name].partition(":")
    return getattr(importlib.import_module(module), attribute or "SUITE")


def groups() -> dict[str, list[str]]:
    """Names for several suites: `papers`, and each paper."""
    found = {paper: [name for name in SUITES if name.startswith(f"{paper}-")] for paper in PAPERS}
    found["papers"] = [name for names in found.values() for name in names]
    return {group: names for group, names in found.items() if names}


def expanded(names: Iterable[str]) -> list[str]:
    """Names of suites, with those of groups in place of the group's; each once."""
    known = groups()
    return list(dict.fromkeys(one for name in names for one in known.get(name, [name])))


def run(names: Iterable[str] = (), quick: bool = False, out_dir: str | Path | None = None) -> dict[str, Result]:
    """Run suites (all of them by default), show their tables, and file them in `out_dir` if there is one."""
    results = {}
    for chosen in [suite(name) for name in (expanded(names) or SUITES)]:  # a wrong name fails before anything runs
        results[chosen.name] = run_one(chosen, quick, None if out_dir is None else Path(out_dir))
    return results


def run_one(chosen: Suite, quick: bool, out_dir: Path | None) -> Result:
    """Measure, judge, show and file one suite."""
    screen.begin(chosen, quick)
    watch = Watch()
    began = time.perf_counter()
    rows = chosen.run(quick, screen.progress)
    spent = time.perf_counter() - began
    result = replace(judged(chosen, rows, quick, spent), beside=watch.seen())
    screen.show(chosen, result)
    if out_dir is not None:
        screen.filed([*records.write(result, out_dir), *drawn(chosen, rows, out_dir)])
    return result


def judged(chosen: Suite, rows: list, quick: bool, seconds: float) -> Result:
    """Rows with what they say."""
    return Result(
        chosen.name,
        chosen.source,
        quick,
        rows,
        chosen.verdicts(rows),
        seconds,
        chosen.claims(rows),
        summary=chosen.summary,
        stands_in=chosen.stands_in,
    )


def drawn(chosen: Suite, rows: list, out_dir: Path) -> list[Path]:
    """The plots of a suite; without matplotlib there are none, and the run says so."""
    from slidewise.bench import plots

    try:
        return plots.draw_all(chosen, rows, out_dir)
    except SlidewiseError as error:
        screen.note(f"no plots: {error}")
        return []


def _all_that_go(names: list[str], quick: bool, out_dir: Path) -> int:
    """Every suite, whatever becomes of the others, and at the end which of them failed; 1 if one did."""
    failed: dict[str, Exception] = {}
    chosen = expanded(names) or list(SUITES)
    for name in chosen:
        if name not in SUITES:
            suite(name)  # says what there is, before anything runs
    for name in chosen:
        try:
            run_one(suite(name), quick, out_dir)
        except Exception as error:  # one that fails, or whose packages are not here, must not cost the results of the others
            screen.failed(name, error)
            failed[name] = error
    if failed and len(chosen) > 1:
        screen.note(f"{len(failed)} of {len(chosen)} suites failed:")
        for name, error in failed.items():
            screen.failed(name, error)
    return 1 if failed else 0


def main(args: list[str] | None = None) -> int:
    """`slidewise bench`: 0; 1 if a suite failed; 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="slidewise bench",
        description="Measure: suites of benchmarks, and the experiments of the papers.",
        epilog="`slidewise bench report` makes one page of all that was filed; `slidewise bench compare A B` compares two runs "
        "(folders or .json files).",
    )
    parser.add_argument(
        "suites", nargs="*", metavar="SUITE", help=f"all by default; or {', '.join([*SUITES, *groups()])}"
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes: minutes instead of hours")
    parser.add_argument("--list", action="store_true", help="what there is, and stop")
    parser.add_argument("--report", action="store_true", help="then make the page of all that is filed there")
    parser.add_argument("--out", default="bench-results", metavar="DIR", help="where results are (bench-results)")
    try:
        options = parser.parse_args(args)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    out_dir, word = Path(options.out), options.suites[0] if options.suites else ""
    try:
        if options.list:
            screen.listing([suite(name) for name in SUITES])
        elif word == "report":
            _report(out_dir)
        elif word == "compare":
            from slidewise.bench import compare

            compare.show(*_two(options.suites[1:]))
        else:
            code = _all_that_go(options.suites, options.quick, out_dir)
            if options.report:
                _report(out_dir)
            return code
    except InputError as error:
        screen.wrong(error)
        return 2
    return 0


def _report(out_dir: Path) -> None:
    from slidewise.bench import report

    screen.filed([report.write(out_dir)])


def _two(paths: list[str]) -> tuple[Path, Path]:
    if len(paths) != 2:
        raise InputError(f"compare takes two runs (folders or .json files), not {len(paths)}")
    return Path(paths[0]), Path(paths[1])
