"""Progress: one line for people at a terminal, nothing where nobody looks."""

import dataclasses
import io
import os
import re
import sys
import threading
from types import SimpleNamespace

import pyarrow as pa
import pytest

import slidewise as sw
from slidewise.cli import terminal
from slidewise.cli.app import algorithms
from slidewise.cli.jobs import _ended, _show
from slidewise.pipeline import Step, Summary
from slidewise.pipeline.progress import tasks_told

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


def test_it_is_the_only_one_that_talks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever would show progress of his own on a terminal finds none; words are still heard, and it ends with the line."""
    stderr = Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", stderr)
    with terminal.Progress("flights"):
        assert not sys.stderr.isatty()
        print("a warning", file=sys.stderr)
    assert sys.stderr is stderr
    assert "a warning" in stderr.getvalue()


def written_to(leader: int) -> bytes:
    """All that waits to be read: a terminal hands it out in pieces."""
    os.set_blocking(leader, False)
    found = b""
    try:
        while piece := os.read(leader, 1 << 16):
            found += piece
    except OSError:  # nothing more
        pass
    return found


def test_it_goes_on_while_standard_error_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Spark's JVM gets a file as standard error when it is started, which takes some seconds."""
    monkeypatch.setenv("TERM", "xterm-256color")
    leader, follower = os.openpty()
    with os.fdopen(follower, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        elsewhere = os.open(tmp_path / "spark.log", os.O_CREAT | os.O_RDWR)
        with terminal.Progress("flights") as progress:
            os.dup2(elsewhere, stderr.fileno())
            progress.part("starting Spark")
            progress.note("still there")
    assert os.fstat(elsewhere).st_size == 0
    assert b"still there" in written_to(leader)
    os.close(elsewhere)
    os.close(leader)


def test_it_makes_room_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows on the same terminal begin at the left, not behind the line."""
    screen = Terminal()
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "160")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", screen)
    with terminal.Progress("flights") as progress, progress.aside():
        print("rows", file=screen)
    before = screen.getvalue().split("rows")[0]
    assert "flights: starting" in before
    assert before.endswith("\x1b[1A\x1b[2K"), "the line is taken away first"


def test_a_stream_that_has_no_watermark_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    first = dataclasses.replace(STEP, watermark="1970-01-01T00:00:00.000Z")
    monkeypatch.setattr(sys.modules[__name__], "STEP", first)
    assert "watermark" not in told(Terminal(), monkeypatch)


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


def test_a_batch_tells_its_tasks() -> None:
    """Of the stages that are active; one that has just ended is no longer known."""
    stages = {4: SimpleNamespace(numTasks=40, numCompletedTasks=12), 5: SimpleNamespace(numTasks=2, numCompletedTasks=0), 6: None}
    tracker = SimpleNamespace(getActiveStageIds=lambda: list(stages), getStageInfo=stages.get)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))
    said: list[str] = []
    heard = threading.Event()
    with tasks_told(spark, lambda text: (said.append(text), heard.set())):
        assert heard.wait(60)
    assert said[0] == "computing, 12 of 42 tasks"
    count = len(said)
    stages.clear()
    assert len(said) == count, "nothing more is said when the batch has ended"


WIDE = pa.table({f"a_long_name_{n}": ["some text that is not short"] * 2 for n in range(12)})


def test_rows_that_are_wider_than_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line each all the same: nobody folds it there."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    _show(WIDE, "")
    head, *rows = sys.stdout.getvalue().splitlines()
    assert head.split() == WIDE.column_names
    assert len(rows) == 2


def test_rows_that_are_wider_than_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block each, with a line for each column; narrow ones are a table."""
    for table, lines in ((WIDE, 2 * 12 + 2), (WIDE.select([0]), 3)):
        monkeypatch.setattr(sys, "stdout", Terminal())
        for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "80"), ("NO_COLOR", "1")):
            monkeypatch.setenv(name, value)
        _show(table, "")
        shown = sys.stdout.getvalue().splitlines()
        assert len(shown) == lines
        assert all(len(line) < 100 for line in shown)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_algorithms_in_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """No word is cut in two, however narrow it is."""
    monkeypatch.setattr(sys, "stdout", Terminal())
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", str(width)), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    algorithms()
    shown = re.sub(r"\x1b\[[0-9;]*m", "", sys.stdout.getvalue())
    assert max(map(len, shown.splitlines())) <= width
    for info in sw.algorithms():
        assert all(word in shown for word in (info.name, *info.offers, *info.stores.split(), *info.paper.split()))


def test_what_a_batch_ends_with() -> None:
    summary = Summary("features", "batch", "parquet out", rows=0, seconds=2.0)
    assert _ended(summary) == "features: finished after 2.0 s, no rows; results in parquet out"
    summary.rows = 300
    assert _ended(summary) == "features: finished after 2.0 s, 300 rows (150 a second); results in parquet out"
    summary.rows = 1
    assert "1 row (0.5 a second)" in _ended(summary)
    assert _ended(Summary("features", "batch", "console", rows=None, seconds=2.0)) == "features: finished after 2.0 s"


def test_what_a_stream_ends_with() -> None:
    summary = Summary("flights", "stream", "parquet out")
    assert _ended(summary.ended()) == "flights: nothing new since the last run; results in parquet out"
    summary.steps.append(Step(0, 1200, 0.5, None, {"in": 1200, "out": 1300, "touched": 100, "bad": 0}))
    summary.rows = 1200
    told = _ended(summary.ended())
    assert "1 micro-batch, 1,300 results; 100 given again" in told
    assert "stream.flush" not in told
    summary.waiting = True
    assert "not given; with --set stream.flush=true" in _ended(summary)
    assert "Run it again" not in _ended(summary.ended("stopped")), "nothing remembers how far it came"
    summary.goes_on = True
    assert "come with the next run" in _ended(summary.ended())
    assert _ended(summary.ended("stopped")).endswith("Run it again to go on from here.")


def test_what_was_put_aside_is_no_result() -> None:
    summary = Summary("flights", "stream", "parquet out", rows=10)
    summary.steps.append(Step(0, 10, 0.5, None, {"in": 10, "out": 11, "touched": 3, "side": 2, "bad": 1}))
    assert "1 micro-batch, 9 results; 3 given again, 2 put aside, 1 without a time" in _ended(summary.ended())
    assert summary.as_dict()["results"] == 9


def test_null_is_not_empty_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    _show(pa.table({"a": ["", None], "b": [1, 2]}), "")
    assert [line.split() for line in sys.stdout.getvalue().splitlines()] == [["a", "b"], ["1"], ["null", "2"]]
