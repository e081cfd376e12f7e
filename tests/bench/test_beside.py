"""What else the machine did while a suite ran, from a made-up /proc and from the real one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from slidewise.bench import beside
from slidewise.bench.beside import Watch, told

TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Machine:
    """A /proc of processes that took so many seconds: {process: (parent, of its own, of its ended children)}."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.now = folder, 100.0
        monkeypatch.setattr(beside.time, "perf_counter", lambda: self.now)

    def tell(self, busy: float, stolen: float, processes: dict[int, tuple[int, float, float]]) -> None:
        user, idle, nice = int(busy * TICKS) - 2, 10**6, 1
        (self.folder / "stat").write_text(f"cpu  {user} {nice} 1 {idle} 7 0 9 {int(stolen * TICKS)} 0 0\ncpu0 1 2 3\n")
        for old in self.folder.glob("[0-9]*/stat"):
            old.unlink()
        for process, (parent, own, ended) in processes.items():
            (self.folder / str(process)).mkdir(exist_ok=True)
            times = " ".join(str(int(part * TICKS / 2)) for part in (own, own, ended, ended))
            (self.folder / str(process) / "stat").write_text(f"{process} (a) b) S {parent} 1 1 0 -1 0 0 0 0 0 {times} 20 0 1 0 0\n")


def test_others_are_those_that_are_not_below_us(tmp_path, monkeypatch):
    """Ten seconds: 6 were ours, of which 3 in a grandchild and 2 in a child that has ended; 4 were somebody else's."""
    machine, own = Machine(tmp_path, monkeypatch), os.getpid()
    machine.tell(50, 3, {1: (0, 10, 0), own: (1, 5, 0), 901: (own, 2, 0), 902: (own, 1, 0), 999: (1, 20, 0)})
    watch = Watch(tmp_path)
    machine.now += 10
    machine.tell(60, 5, {1: (0, 10, 0), own: (1, 6, 3), 901: (own, 2, 0), 903: (901, 3, 0), 999: (1, 24, 0)})
    assert watch.seen() == {"others": 0.4, "stolen": 0.2}


def test_whoever_nobody_waited_for_is_ours(tmp_path, monkeypatch):
    """A grandchild that took 4 of 10 seconds and was seen, then one by one it and its parent are gone; nobody has its time."""
    machine, own = Machine(tmp_path, monkeypatch), os.getpid()
    machine.tell(50, 0, {own: (1, 5, 0), 901: (own, 2, 0), 902: (901, 1, 0)})
    watch = Watch(tmp_path)
    machine.tell(54, 0, {own: (1, 5, 0), 901: (own, 2, 0), 903: (902, 0, 0), 902: (901, 5, 0)})
    watch._read()
    machine.tell(54, 0, {own: (1, 5, 0), 901: (own, 2, 0)})
    watch._read()
    machine.now += 10
    machine.tell(60, 0, {own: (1, 5, 2), 902: (1, 6, 0)})
    assert watch.seen() == {"others": 0.6, "stolen": 0.0}, "the new 902 is another one, and not below us"


def test_where_nothing_tells_nothing_is_noted(tmp_path):
    assert Watch(tmp_path).seen() == {}
    (tmp_path / "stat").write_text("cpu 1 2\n")
    assert Watch(tmp_path).seen() == {}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_a_child_is_ours():
    watch = Watch()
    before = watch._own()
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert (watch._own() - before) / TICKS >= 0.25
    assert set(watch.seen()) == {"others", "stolen"}


def test_the_sentence_names_who_was_not_alone():
    quiet, busy = {"others": 0.02, "stolen": 0.1}, {"others": 0.9, "stolen": 0.3}
    assert told({"a": quiet, "b": quiet}) == (
        "Nothing ran beside the suites: others took 0.02 cores at most, on average over a suite. "
        "The host kept 0.10 cores for itself in the median suite, 0.10 at most."
    )
    some = told({"a": quiet, "b": busy, "c": {}})
    assert "beside suites that are not named here" in some and "beside b (0.90)" in some and "Not noted for c." in some
    assert "Nothing ran" not in told({"b": busy})
    assert told({"c": {}}) == "What else ran on the machine was not noted."
