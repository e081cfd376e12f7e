"""What else the machine had to do while a suite ran: nothing, if times are to say something about the code.

Told by the system's own counters, where there are any (Linux): the processors' time that went to processes other than ours and
those we started, and the time that the host of a virtual machine kept for itself.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

PROC = Path("/proc")
QUIET = 0.1
"""Cores: with less beside it a suite ran alone."""


class Watch:
    """Begins when it is made; `seen()` tells what happened since."""

    def __init__(self, proc: Path = PROC):
        self.proc = proc
        self.began = self._read()

    def seen(self) -> dict[str, float]:
        """`others` and `stolen`, in cores on average; empty where nothing tells."""
        now = self._read()
        if self.began is None or now is None:
            return {}
        spent, all_of_it, own, stolen = (b - a for a, b in zip(self.began, now))
        if spent <= 0:
            return {}
        return {"others": round(max(0.0, all_of_it - own) / spent, 3), "stolen": round(stolen / spent, 3)}

    def _read(self) -> tuple[float, float, float, float] | None:
        """The time, and since the start: processors' time of all processes, of our own, and what was stolen; in seconds."""
        try:
            ticks = os.sysconf("SC_CLK_TCK")
            user, nice, system, *_, stolen = map(int, (self.proc / "stat").read_text().split(maxsplit=9)[1:9])
            return time.perf_counter(), (user + nice + system) / ticks, self._own() / ticks, stolen / ticks
        except (OSError, AttributeError, ValueError):
            return None

    def _own(self) -> int:
        """Of this process and those below it, with what their ended children took."""
        spent: dict[int, int] = {}
        below: dict[int, list[int]] = {}
        for path in self.proc.glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()  # a program's name may hold anything
            except OSError:  # it has just ended
                continue
            process = int(path.parent.name)
            spent[process] = sum(map(int, fields[11:15]))
            below.setdefault(int(fields[1]), []).append(process)
        total, found = 0, [os.getpid()]
        while found:
            process = found.pop()
            total += spent.get(process, 0)
            found += below.get(process, [])
        return total


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
