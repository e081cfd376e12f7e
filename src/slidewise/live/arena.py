"""Events of many keys, each key's sorted by time in one block of a common arena: the columns of the keyed engine.

    keys     START  FIRST      LAST       START + CAP
    block    |......| e e e e e e |...........|          a block is CAP = 2^j positions of every column
             free    sorted by (time, order)   room to append

Positions are the same in every column (times, row numbers, inputs), so a column is one NumPy array and a batch of events is
merged by one plan of moves for all of them. In order, an event is an append: no moves. Out of order, the events of its key
behind it move up by one: d moves of a word a column for an event that is d places late, once a batch, however many
events of the key came late with it. A block that is full moves to one twice as large; freed blocks are used again.

The *rank* of an event is its place among all events its key ever had, those long evicted too: RANK0 is the rank of a
block's first position. Ranks do not depend on the order of arrival, nor on when old events were evicted; partials are grouped by
rank (folds.py), so that answers do not depend on those either, to the last bit. RANK0 and START are multiples of
ALIGN.

Costs of a batch of n events over k keys: O(n log w) to find places, O(moves) to make room, O(n) to write.
"""

from itertools import pairwise

import numpy as np

from slidewise.algebra.cache import entry
from slidewise.windows.positions import lower_position

ALIGN = 8
SMALLEST = 8
START, FIRST, LAST, CAP, RANK0, STALE, CHANGED = range(7)
"""Columns of the key table: positions of the block and of its events, the block's size, the rank of position START, the rank
from which on partials must be computed again, and that of the first event that changed."""
NEVER = np.iinfo(np.int64).max


class Arena:
    """The blocks of all keys of one bucket. Columns are added by name and grow together."""

    def __init__(self):
        self.keys = np.zeros((0, 7), np.int64)
        self.columns: dict[str, np.ndarray] = {}
        self.size = 0
        self.top = 0
        self.free: dict[int, list[int]] = {}
        self.entries = 0

    def add_column(self, name: str, dtype) -> None:
        self.columns[name] = np.zeros(self.size, dtype)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def reserve_keys(self, count: int) -> None:
        """Room in the key table for slots below `count`."""
        if count > len(self.keys):
            grown = np.zeros((max(count, 2 * len(self.keys), 64), 7), np.int64)
            grown[: len(self.keys)] = self.keys
            self.keys = grown

    def merge(self, touched, bounds, places, new: dict[str, np.ndarray]) -> np.ndarray:
        """Put new events in, and give their positions.

        touched: key slots; bounds: touched[j]'s new events are bounds[j] .. bounds[j + 1]; places: the position that each goes
        before, never going back within a key; new: the columns of the new events.
        """
        wanted, moves = np.empty(len(touched), np.int64), np.empty(len(touched), np.int64)
        plan_space(self.keys, touched, bounds, places, wanted, moves)
        homes = self._allocate(wanted)
        total = int(moves.sum())
        sources, targets = np.empty(total, np.int64), np.empty(total, np.int64)
        written = np.empty(len(places), np.int64)
        left = lay_out(self.keys, touched, bounds, places, wanted, homes, sources, targets, written)
        for name, column in self.columns.items():
            if total:
                column[targets] = column[sources]
            column[written] = new[name]
        for j in np.flatnonzero(left[:, 1]):
            self._release(int(left[j, 0]), int(left[j, 1]))
        self.entries += len(places)
        return written

    def _allocate(self, wanted: np.ndarray) -> np.ndarray:
        homes = np.full(len(wanted), -1, np.int64)
        for size in np.unique(wanted):
            if size == 0:
                continue
            which = np.flatnonzero(wanted == size)
            free = self.free.get(int(size), [])
            reused = min(len(free), len(which))
            if reused:
                homes[which[:reused]] = free[len(free) - reused :]
                del free[len(free) - reused :]
            fresh = len(which) - reused
            homes[which[reused:]] = self.top + size * np.arange(fresh)
            self.top += int(size) * fresh
        if self.top > self.size:
            self._grow(max(self.top, self.size + self.size // 2, 1024))
        return homes

    def _grow(self, size: int) -> None:
        size = -(-size // 64) * 64
        for name, column in self.columns.items():
            grown = np.empty(size, column.dtype)
            grown[: self.top if self.top < len(column) else len(column)] = column[: self.top]
            self.columns[name] = grown
        self.size = size

    def _release(self, start: int, size: int) -> None:
        self.free.setdefault(size, []).append(start)

    def evict(self, slots: np.ndarray, firsts: np.ndarray) -> int:
        """Forget the events of these keys before these positions; a key without events gives its block back."""
        keys = self.keys
        gone = int((firsts - keys[slots, FIRST]).sum())
        if self._objects and gone:
            olds = keys[slots, FIRST]
            for name in self._objects:
                for a, b in zip(olds.tolist(), firsts.tolist(), strict=True):
                    self.columns[name][a:b] = None
        keys[slots, FIRST] = firsts
        empty = slots[(firsts == keys[slots, LAST]) & (keys[slots, CAP] > 0)]
        for slot in empty.tolist():
            row = keys[slot]
            self._release(int(row[START]), int(row[CAP]))
            rank = row[RANK0] + row[FIRST] - row[START]
            # The next block begins with this rank, on an aligned position.
            row[:] = 0
            row[RANK0] = rank
        self.entries -= gone
        return gone

    def wasteful(self) -> bool:
        """Whether most positions belong to nobody, or to keys that have shrunk."""
        return self.top > 8 * self.entries + SMALLEST * int((self.keys[:, CAP] > 0).sum()) + 4096

    def compact(self) -> None:
        """Lay all blocks out anew, none larger than its events ask for. All partials are stale afterwards."""
        slots = np.flatnonzero(self.keys[:, CAP] > 0)
        rows = self.keys[slots]
        counts = rows[:, LAST] - rows[:, FIRST]
        ranks = rows[:, RANK0] + rows[:, FIRST] - rows[:, START]
        phases = ranks % ALIGN
        need = phases + counts
        sizes = np.maximum(SMALLEST, 1 << np.ceil(np.log2(np.maximum(need + (need >> 2), 1))).astype(np.int64))
        starts = np.cumsum(sizes) - sizes
        sources, targets = ranges(rows[:, FIRST], counts), ranges(starts + phases, counts)
        self.free, self.top = {}, int(sizes.sum())
        self.size = max(-(-self.top // 64) * 64, 1024)
        for name, column in self.columns.items():
            laid = np.zeros(self.size, column.dtype) if column.dtype != object else np.full(self.size, None, object)
            laid[targets] = column[sources]
            self.columns[name] = laid
        rows[:, START], rows[:, CAP], rows[:, RANK0] = starts, sizes, ranks - phases
        rows[:, FIRST] = starts + phases
        rows[:, LAST] = rows[:, FIRST] + counts
        rows[:, STALE] = ranks
        self.keys[slots] = rows

    @property
    def _objects(self) -> list[str]:
        return [name for name, column in self.columns.items() if column.dtype == object]

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values()) + self.keys.nbytes

    def live(self, slots: np.ndarray) -> np.ndarray:
        """Positions of all events of these keys, in the order given."""
        counts = self.keys[slots, LAST] - self.keys[slots, FIRST]
        return ranges(self.keys[slots, FIRST], counts)

    def check(self) -> None:
        """Assert every invariant."""
        taken = []
        times = self.columns.get("time")
        for row in self.keys[self.keys[:, CAP] > 0]:
            assert row[START] % ALIGN == 0, "blocks begin at aligned positions"
            assert row[RANK0] % ALIGN == 0, "and at aligned ranks"
            assert row[START] <= row[FIRST] <= row[LAST] <= row[START] + row[CAP], "events lie inside their block"
            taken.append((row[START], row[CAP]))
            if times is not None:
                part = times[row[FIRST] : row[LAST]]
                assert (part[1:] >= part[:-1]).all(), "a key's events are sorted by time"
        taken += [(start, size) for size, starts in self.free.items() for start in starts]
        taken.sort()
        assert sum(size for _, size in taken) == self.top, "every position below the top belongs to one block"
        for (a, size), (b, _) in pairwise(taken):
            assert a + size == b, "blocks do not overlap"
        assert self.entries == int((self.keys[:, LAST] - self.keys[:, FIRST]).sum()), "entries are counted"


def ranges(firsts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """firsts[0], firsts[0] + 1, ... for each of the counts, one behind the other."""
    total = int(counts.sum())
    if total == 0:
        return np.zeros(0, np.int64)
    ends = np.cumsum(counts)
    return np.arange(total) + np.repeat(firsts - (ends - counts), counts)


@entry
def locate(keys, times, touched, bounds, new_times, lows, highs):
    """For each new event the positions of its key's events at the same time, [low, high): where it may go."""
    for j in range(len(touched)):
        k = touched[j]
        first, last = keys[k, FIRST], keys[k, LAST]
        at = first
        for i in range(bounds[j], bounds[j + 1]):
            t = new_times[i]
            if last == first or times[last - 1] < t:
                at = last
                lows[i] = highs[i] = last
                continue
            at = lower_position(times, at, last, t, False)
            lows[i] = at
            end = at
            while end < last and times[end] == t:
                end += 1
            highs[i] = end


@entry
def plan_space(keys, touched, bounds, places, wanted, moves):
    """Which keys need another block (wanted: its size, or 0), and how many of their events move."""
    for j in range(len(touched)):
        k = touched[j]
        first, last, cap = keys[k, FIRST], keys[k, LAST], keys[k, CAP]
        fresh = bounds[j + 1] - bounds[j]
        count = last - first
        wanted[j] = 0
        if cap > 0 and last + fresh <= keys[k, START] + cap:
            moves[j] = last - places[bounds[j]]
            continue
        moves[j] = count
        phase = (keys[k, RANK0] + first - keys[k, START]) % ALIGN
        need = phase + count + fresh
        if need + (need >> 2) <= cap:
            continue
        size = SMALLEST
        while size < need + (need >> 2):
            size *= 2
        wanted[j] = size


@entry
def lay_out(keys, touched, bounds, places, wanted, homes, sources, targets, written):
    """Where every moved and every new event goes; the key table follows. Gives the blocks that were left (start, size)."""
    left = np.zeros((len(touched), 2), np.int64)
    m = 0
    for j in range(len(touched)):
        k = touched[j]
        start, first, last, cap = keys[k, START], keys[k, FIRST], keys[k, LAST], keys[k, CAP]
        lo, hi = bounds[j], bounds[j + 1]
        rank = keys[k, RANK0] + first - start
        keys[k, CHANGED] = min(keys[k, CHANGED], rank + places[lo] - first)
        if wanted[j] == 0 and last + (hi - lo) <= start + cap:
            to = first
            at = places[lo]
            keys[k, STALE] = min(keys[k, STALE], rank + at - first)
        else:
            if wanted[j] > 0:
                left[j, 0], left[j, 1] = start, cap
                start = homes[j]
                keys[k, START], keys[k, CAP] = start, wanted[j]
            phase = rank % ALIGN
            keys[k, RANK0] = rank - phase
            to = start + phase
            keys[k, FIRST] = to
            keys[k, STALE] = rank
            at = first
        keys[k, LAST] = to + (last - first) + (hi - lo)
        # Stored events from `at` on and the new ones, in order; `to` is where the first stored event lies now.
        i = lo
        for p in range(at, last):
            while i < hi and places[i] <= p:
                written[i] = to + (places[i] - first) + (i - lo)
                i += 1
            sources[m] = p
            targets[m] = to + (p - first) + (i - lo)
            m += 1
        while i < hi:
            written[i] = to + (last - first) + (i - lo)
            i += 1
    return left
