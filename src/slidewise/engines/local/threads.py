"""Compiled loops over both cores, in pieces small enough that Ctrl-C is seen, with a note when it takes long.

Where rows are cut depends on the data only, never on the machine: results are the same to the bit on one core and on many.
"""

import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

import numpy as np

PIECE = 1 << 20
"""Rows a compiled loop runs over, at most, before it looks whether it should stop ..."""
SHORT = 0.05
"""... and seconds that is meant to take."""
SMALL = 1 << 14
"""Rows below which a thread costs more than it gives ..."""
LARGE = 1 << 18
"""... and numbers, where all that is done is to look at them."""


def thread_count() -> int:
    """$SLIDEWISE_THREADS, or the processors this process may use."""
    setting = os.environ.get("SLIDEWISE_THREADS", "")
    if setting.isdigit() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="slidewise")


def pool_of(threads: int) -> ThreadPoolExecutor:
    """The threads of this process: starting them costs more than a small frame. A forked process has none of its parent's."""
    return _pool(threads, os.getpid())


def least(values: np.ndarray):
    """The smallest value; NaN if there is one. Large arrays are looked at by all threads."""
    threads = thread_count()
    if len(values) < LARGE or threads == 1:
        return values.min()
    mine, *parts = np.array_split(values, threads)
    others = [pool_of(threads).submit(np.min, part) for part in parts]
    return np.min([mine.min(), *(other.result() for other in others)])


class Workers:
    """Runs parts of a loop, at the same time where that helps."""

    def __init__(self, threads: int | None = None):
        self.threads = threads or thread_count()
        self.stopped = False
        self.progress: Progress | None = None
        """Told of the rows that `pieces` has run over."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stopped = True

    def each(self, tasks: list[Callable[[], None]]) -> None:
        """Run all tasks, in this thread and in others; the first error (or Ctrl-C) stops the rest at their next piece."""
        left = iter(tasks)

        def work() -> None:
            try:
                for task in left:
                    if self.stopped:
                        break
                    task()
            except BaseException:
                self.stopped = True
                raise

        others = [pool_of(self.threads).submit(work) for _ in range(min(self.threads, len(tasks)) - 1)]
        try:
            work()
            for other in others:
                other.result()
        except BaseException:
            self.stopped = True
            for other in others:
                other.cancel()
            wait(others)  # nothing goes on behind the caller's back
            raise

    def spread(self, part: Callable[[int, int], None], count: int) -> None:
        """part(lo, hi) over [0, count), for loops that may be cut anywhere."""
        if count <= SMALL or self.threads == 1:
            self._pieces(part, 0, count, LARGE)
            return
        cuts = [count * k // self.threads for k in range(self.threads + 1)]
        self.each([lambda lo=lo, hi=hi: self._pieces(part, lo, hi, LARGE) for lo, hi in itertools.pairwise(cuts)])

    def every(self, test: Callable[[int, int], bool], count: int) -> bool:
        """Whether test(lo, hi) holds for every part of [0, count)."""
        failed: list[int] = []

        def part(lo, hi):
            if not failed and not test(lo, hi):
                failed.append(lo)

        self.spread(part, count)
        return not failed

    def pieces(self, part: Callable[[int, int], None], lo: int, hi: int, rows: int = SMALL) -> None:
        """part over [lo, hi), piece by piece: between two pieces Python can stop it, and progress is told. rows: of the first."""

        def told(i, j):
            part(i, j)
            if self.progress is not None:
                self.progress.ran(j - i)

        self._pieces(told, lo, hi, rows)

    def _pieces(self, part: Callable[[int, int], None], lo: int, hi: int, rows: int) -> None:
        """Pieces grow while they take little time: a row costs nanoseconds or, where whole windows are combined again,
        milliseconds. No more of them than needed: after each, a thread may have to wait until another lets Python go."""
        while lo < hi and not self.stopped:
            began = time.monotonic()
            part(lo, min(hi, lo + rows))
            lo += rows
            spent = time.monotonic() - began
            rows = min(4 * rows, PIECE) if spent < SHORT else max(rows // 4, 1) if spent > 4 * SHORT else rows


class Progress:
    """A line on stderr that says how far it is, when it takes long and somebody is looking."""

    AFTER_SECONDS, AGAIN_SECONDS = 2.0, 0.2

    def __init__(self, passes: int, rows: int, what: str):
        self.passes, self.rows, self.what = max(passes, 1), max(rows, 1), what
        self.begun, self.run, self.label = 0, 0, ""
        self.next = time.monotonic() + self.AFTER_SECONDS
        self.shown = False
        self.looking = (
            sys.stderr is not None and sys.stderr.isatty() and threading.current_thread() is threading.main_thread()
        )

    def step(self, label: str) -> None:
        """A pass begins."""
        self.begun, self.run, self.label = self.begun + 1, 0, label
        self._show()

    def ran(self, rows: int) -> None:
        """So many rows more of this pass are done: called by any thread."""
        self.run += rows
        self._show()

    def _show(self) -> None:
        if not self.looking or time.monotonic() < self.next:
            return
        self.next = time.monotonic() + self.AGAIN_SECONDS
        self.shown = True
        done = (self.begun - 1 + min(self.run / self.rows, 1.0)) / self.passes
        sys.stderr.write(f"\rslidewise: {self.what} {int(100 * done):3d} %  {self.label:<40.40}")
        sys.stderr.flush()

    def close(self) -> None:
        self.looking = False
        if self.shown:
            sys.stderr.write("\r" + " " * 90 + "\r")
            sys.stderr.flush()
