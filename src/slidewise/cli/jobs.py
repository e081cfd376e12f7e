"""`slidewise run` and `slidewise explain`: a job file, its progress, its summary."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

from slidewise.cli import terminal
from slidewise.cli.outcome import OK
from slidewise.errors import RunError
from slidewise.pipeline import Checked, Summary
from slidewise.pipeline import explain as explain_job
from slidewise.pipeline import load as load_job
from slidewise.pipeline import run as run_job


def run(file: str, settings: list[str], *, dry_run: bool, quiet: bool, as_json: bool) -> int:
    checked = load_job(file, settings)
    if dry_run:
        told = {"ok": True, "job": checked.document.shown()}
        terminal.print_json(told) if as_json else print(f"{file}: right. {_told(checked)}")
        return OK
    summary = run_checked(checked, quiet=quiet or as_json, console_out=not as_json)
    if as_json:
        terminal.print_json(summary.as_dict())
    elif not quiet:
        print(_ended(summary))
    return OK


def run_checked(checked: Checked, *, quiet: bool, console_out: bool = True) -> Summary:
    """Run it with progress on a terminal; Ctrl-C asks a stream to end and a batch to give up, a second one insists."""
    stop = threading.Event()
    progress = terminal.Progress(checked.document.name, quiet=quiet)

    def show(table: pa.Table, title: str) -> None:
        if console_out:
            with progress.aside():
                _show(table, title)

    with spark_log() as log, progress, asked_to_stop(stop, progress.note, at_once=not checked.streams) as install:
        try:
            summary = run_job(
                checked,
                on_step=progress.step,
                stop=stop,
                show=show,
                log=log.path,
                on_session=install,
                note=None if quiet else progress.part,
            )
            if summary.state == "stopped" and not checked.streams:
                raise KeyboardInterrupt
            return summary
        except RunError as error:
            raise RunError(f"{checked.document.name} failed: {error}{log.kept(checked.document.origin.secrets.hide)}") from error


def explain(file: str, settings: list[str], as_json: bool) -> int:
    plan = explain_job(load_job(file, settings, to_run=False))
    if as_json:
        terminal.print_json(plan.as_dict())
    else:
        print(plan)
    return OK


def _told(checked: Checked) -> str:
    job = checked.job
    results = len(checked.arguments["aggs"]) * len(checked.arguments["windows"])
    source, sink = job.source.__struct_config__.tag, job.sink.__struct_config__.tag
    return f"A {job.mode} from {source} to {sink}, {results} result column{'s' if results != 1 else ''}."


_COUNTS = {
    "touched": "given again",
    "corrected": "events out of order",
    "late": "late",
    "side": "put aside",
    "dropped": "dropped",
    "double": "seen before",
    "bad": "without a time",
    "ahead": "too far ahead",
}
"""The engine's counts in a reader's words, as they stand at the end of a run."""


def _ended(summary: Summary) -> str:
    if summary.mode == "stream" and summary.state == "finished" and not summary.steps:
        return f"{summary.name}: nothing new since the last run; results in {summary.sink}"
    rate = f" ({_rate(summary.rows / max(summary.seconds, 1e-9))} a second)" if summary.rows else ""
    counted = f", {summary.rows:,} row{'s' if summary.rows != 1 else ''}{rate}" if summary.rows else ", no rows"
    rows = "" if summary.rows is None else counted
    where = "" if summary.sink in ("console", "memory") else f"; results in {summary.sink}"
    text = f"{summary.name}: {summary.state} after {summary.seconds:.1f} s{rows}{where}"
    if summary.mode != "stream":
        return text
    told = ", ".join(f"{summary.counts[key]:,} {word}" for key, word in _COUNTS.items() if summary.counts.get(key))
    batches = "1 micro-batch" if len(summary.steps) == 1 else f"{len(summary.steps):,} micro-batches"
    text += f"\n{batches}, {summary.results:,} results{f'; {told}' if told else ''}"
    if summary.state == "stopped":
        return f"{text}\nRun it again to go on from here." if summary.goes_on else text
    if summary.waiting and summary.goes_on:
        text += "\nResults that the watermark has not passed yet come with the next run; if this was the last one, run it with "
        text += "--set stream.flush=true"
    elif summary.waiting:
        text += "\nResults that the watermark has not passed were not given; with --set stream.flush=true they are"
    return text


def _rate(a_second: float) -> str:
    return f"{a_second:,.0f}" if a_second >= 10 else f"{a_second:.1f}"


def _show(table: pa.Table, title: str) -> None:
    rows = [["null" if value is None else str(value) for value in row.values()] for row in table.to_pylist()]
    terminal.show(table.column_names, rows, title or None)


@contextlib.contextmanager
def asked_to_stop(stop: threading.Event, note: Any, *, at_once: bool = False) -> Iterator[Any]:
    """Signals set `stop`; gives a function that installs the handlers (again: Spark puts its own in their place).
    at_once: there are no micro-batches to end after, so only what runs in Java is asked; all else is cut off."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set() or (at_once and not _waits_for_java(frame)):
            raise KeyboardInterrupt
        stop.set()
        note(f"ending {'' if at_once else 'after this micro-batch '}(once more to stop at once)")

    def install() -> None:
        if threading.current_thread() is threading.main_thread():
            for number in before:
                signal.signal(number, handle)

    logging.getLogger().addFilter(_is_news)
    try:
        yield install
    finally:
        logging.getLogger().removeFilter(_is_news)
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


def _waits_for_java(frame: FrameType | None) -> bool:
    """Whether an answer is awaited here: whoever leaves without it cannot even tell Spark to stop."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("py4j."):
            return True
        frame = frame.f_back
    return False


def _is_news(record: logging.LogRecord) -> bool:
    """py4j shows a trace of every Ctrl-C that comes in its way."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")


class _Log:
    def __init__(self, path: Path):
        self.path, self.wanted = path, False

    def kept(self, hide: Callable[[str], str] = str) -> str:
        """A word on where Spark's own words are; the file then stays, without secrets."""
        if not self.path.exists() or not self.path.stat().st_size:
            return ""
        self.path.write_text(hide(self.path.read_text(encoding="utf-8", errors="replace")), encoding="utf-8")
        self.wanted = True
        return f"\nSpark's own words are in {self.path}"


@contextlib.contextmanager
def spark_log() -> Iterator[_Log]:
    """A file for what Spark would write on standard error; it stays only if something went wrong."""
    handle, name = tempfile.mkstemp(prefix="slidewise-", suffix=".log")
    os.close(handle)
    log = _Log(Path(name))
    try:
        yield log
    finally:
        if not log.wanted:
            log.path.unlink(missing_ok=True)
        sys.stderr.flush()
