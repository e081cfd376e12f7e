"""What else the machine had to do while a suite ran: nothing, if times are to say something about the code.

Told by the system's own counters, where there are any (Linux): the processors' time that went to processes other than ours and
those we started, and the time that the host of a virtual machine kept for itself.
"""

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

PROC = Path("/proc")
QUIET = 0.1
"""Cores: with less beside it a suite ran alone."""
EVERY_SECONDS = 1.0
"""Processes are looked at so often: of one that nobody waits for, as Spark's Python workers, nothing is left when it ends."""


class Watch:
    """Begins when it is made; `seen()` ends it and tells what happened."""

    def __init__(self, proc: Path = PROC):
        self.proc = proc
        self.last: dict[tuple[int, int], tuple[bool, int]] = {}
        """By number and start of a process below us: whether it is a child of ours, and its time when it was seen last."""
        self.began = self._read()
        self.ended = threading.Event()
        self.looking = threading.Thread(target=self._look_on, name="slidewise-beside", daemon=True)
        self.looking.start()

    def seen(self) -> dict[str, float]:
        """`others` and `stolen`, in cores on average; empty where nothing tells."""
        self.ended.set()
        self.looking.join()
        now = self._read()
        if self.began is None or now is None:
            return {}
        spent, all_of_it, own, stolen = (b - a for a, b in zip(self.began, now))
        if spent <= 0:
            return {}
        return {"others": round(max(0.0, all_of_it - own) / spent, 3), "stolen": round(stolen / spent, 3)}

    def _look_on(self) -> None:
        while not self.ended.wait(EVERY_SECONDS):
            self._read()

    def _read(self) -> tuple[float, float, float, float] | None:
        """The time, and since the start: processors' time of all processes, of our own, and what was stolen; in seconds."""
        try:
            ticks = os.sysconf("SC_CLK_TCK")
            user, nice, system, *_, stolen = map(int, (self.proc / "stat").read_text().split(maxsplit=9)[1:9])
            return time.perf_counter(), (user + nice + system) / ticks, self._own() / ticks, stolen / ticks
        except (OSError, AttributeError, ValueError):
            return None

    def _own(self) -> int:
        """Of this process, of its children that have ended, and of all others that were ever seen below it."""
        times: dict[int, tuple[int, int, int]] = {}
        below: dict[int, list[int]] = {}
        for path in self.proc.glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()  # a program's name may hold anything
            except OSError:  # it has just ended
                continue
            process = int(path.parent.name)
            own, ended = (sum(map(int, fields[a : a + 2])) for a in (11, 13))
            times[process] = own, ended, int(fields[19])
            below.setdefault(int(fields[1]), []).append(process)
        me = os.getpid()
        own, ended, _ = times.get(me, (0, 0, 0))
        found = [(True, process) for process in below.get(me, [])]
        there = {(process, times[process][2]) for _, process in found}
        self.last = {key: seen for key, seen in self.last.items() if not seen[0] or key in there}  # we waited for the others
        while found:
            child, process = found.pop()
            self.last[process, times[process][2]] = child, times[process][0]
            found += [(False, grandchild) for grandchild in below.get(process, [])]
        return own + ended + sum(spent for _, spent in self.last.values())


def told(noted: Mapping[str, Mapping[str, float]]) -> str:
    """What ran beside suites, given by their names: which of them were not alone, and what the host took."""
    known = {suite: beside for suite, beside in noted.items() if beside}
    if not known:
        return "What else ran on the machine was not noted."
    busy = {suite: beside["others"] for suite, beside in known.items() if beside["others"] >= QUIET}
    quiet = [beside["others"] for suite, beside in known.items() if suite not in busy]
    said = []
    if quiet:
        which = "the suites" if len(quiet) == len(noted) else "suites that are not named here"
        said.append(f"Nothing ran beside {which}: others took {max(quiet):.2f} cores at most, on average over a suite.")
    if busy:
        said.append(f"Others took more beside {', '.join(f'{suite} ({cores:.2f})' for suite, cores in busy.items())}.")
    stolen = sorted(beside["stolen"] for beside in known.values())
    said.append(f"The host kept {stolen[len(stolen) // 2]:.2f} cores for itself in the median suite, {stolen[-1]:.2f} at most.")
    if unknown := [suite for suite in noted if suite not in known]:
        said.append(f"Not noted for {', '.join(unknown)}.")
    return " ".join(said)
