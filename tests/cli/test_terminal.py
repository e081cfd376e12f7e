"""Progress: one line for people at a terminal, nothing where nobody looks."""

import io
import sys

import pytest

from slidewise.cli import terminal
from slidewise.cli.jobs import _ended
from slidewise.pipeline import Step, Summary

STEP = Step(number=0, rows=1200, seconds=0.5, watermark="2013-01-01T10:30:00.000Z", counts={})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stderr: io.StringIO, monkeypatch: pytest.MonkeyPatch, *, quiet: bool = False) -> str:
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "160")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stderr)
    progress = terminal.Progress("flights", quiet=quiet)
    with progress:
        progress.expect(2400)
        progress.part("starting Spark")
        progress.step(STEP)
        progress.note("ending after this micro-batch")
    return stderr.getvalue()


def test_a_terminal_sees_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = told(Terminal(), monkeypatch)
    for words in ("flights: micro-batch 1", "1,200 rows, 2,400/s, watermark 2013-01-01 10:30", "ending after this micro-batch"):
        assert words in seen


def test_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(io.StringIO(), monkeypatch) == ""
    assert told(Terminal(), monkeypatch, quiet=True) == ""


def test_a_command_that_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/slidewise"])
    monkeypatch.setattr(terminal.shutil, "which", lambda name: None)
    assert terminal.command_name() == ".venv/bin/slidewise"
    monkeypatch.setattr(terminal.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert terminal.command_name() == "slidewise"
    monkeypatch.setattr(sys, "argv", ["/somewhere/slidewise/__main__.py"])
    assert terminal.command_name() == "slidewise"


def test_what_a_stream_ends_with() -> None:
    summary = Summary("flights", "stream", "parquet out")
    assert _ended(summary.ended()) == "flights: nothing new since the last run; results in parquet out"
    summary.steps.append(Step(0, 1200, 0.5, None, {"in": 1200, "out": 1300, "touched": 100, "bad": 0}))
    summary.rows = 1200
    told = _ended(summary.ended())
    assert "1 micro-batch, 1,300 results; touched 100" in told
    assert "stream.flush" not in told
    summary.waiting = True
    assert "--set stream.flush=true" in _ended(summary)
    assert _ended(summary.ended("stopped")).endswith("Run it again to go on from here.")
