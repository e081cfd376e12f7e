"""Keys of `Live` that hold much and get late events one by one: trees by time beside their events.

In a key's block (arena.py) an event that comes d places late moves d others, and partials behind it are computed again. A batch
pays that once; single events with questions in between pay it each. Once late events have moved PATIENCE times as many events
as a key of LARGE or more holds, which costs as much as building trees does, the key gets one for each step, of the algorithm that
the planner chose for such keys, and from then on

    event     ->  the trees, O(log d)
              ->  waiting, in order of arrival  ->  the block, all at once: when there are many, or something is asked that
                                                    the trees do not know (every key's results, a snapshot, what to forget)
    question  ->  the trees: each window is a stretch of times, O(log n)

The trees hold the events of the block and those that wait, so either answers alike: bit for bit where the operator is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from slidewise.algorithms import algorithm
from slidewise.live.arena import FIRST, LAST, locate
from slidewise.live.frames import stretch
from slidewise.live.intake import Intake
from slidewise.live.outputs import Answers
from slidewise.live.partials import Partials
from slidewise.live.spec import StreamSpec
from slidewise.live.times import float_codes

if TYPE_CHECKING:
    from slidewise.algorithms.fiba_forest import Forest

LARGE = 1 << 16
"""Events of a key from which on moving some of them costs more than taking a single one in does."""
PATIENCE = 4
"""A key gets trees when late events have moved so many times what it holds."""
WAITING = 1 << 12
"""So many events may wait, or one for each SHARE that keys with trees hold: a constant number of moves an event."""
SHARE = 64


class LateKeys:
    """The keys with trees, and the events that are in these and not yet in the arena."""

    def __init__(self, spec: StreamSpec, engine: Any):
        self.spec, self.engine = spec, engine
        self.lifetime = any(window.kind == "lifetime" for window in spec.ticks.values())
        self.trees: dict[int, list[Forest]] = {}
        self.youngest: dict[int, Any] = {}
        self.moved: dict[int, int] = {}
        self.waiting: list[tuple[int, dict[str, np.ndarray]]] = []
        self.count = 0
        self.fallen = False
        """Whether events wait of a key that has trees no more."""

    def __contains__(self, slot: int) -> bool:
        return slot in self.trees

    # ---- events --------------------------------------------------------------------------------------------------------------

    def out_of_order(self, intake: Intake) -> int:
        """New events that come before one their key has."""
        lasts = self.engine.arena.keys[intake.touched, LAST]
        late = intake.places < np.repeat(lasts, np.diff(intake.bounds))
        for j in np.flatnonzero(self._have_trees(intake.touched)):
            part = slice(intake.bounds[j], intake.bounds[j + 1])
            late[part] = intake.times[part] < self.youngest[int(intake.touched[j])]
        return int(late.sum())

    def _have_trees(self, slots: np.ndarray) -> np.ndarray:
        return np.isin(slots, list(self.trees)) if self.trees else np.zeros(len(slots), bool)

    def take(self, intake: Intake, new: dict[str, np.ndarray]) -> None:
        """Take new events in: into trees where their key has some, otherwise into the arena."""
        held = self._have_trees(intake.touched)
        for j in np.flatnonzero(held):
            part = slice(intake.bounds[j], intake.bounds[j + 1])
            self._hold(int(intake.touched[j]), {name: column[part] for name, column in new.items()})
        if held.any():
            counts = np.diff(intake.bounds)
            which = np.flatnonzero(np.repeat(~held, counts))
            touched, bounds = intake.touched[~held], np.concatenate([[0], np.cumsum(counts[~held])])
            places, new = intake.places[which], {name: column[which] for name, column in new.items()}
        else:
            touched, bounds, places = intake.touched, intake.bounds, intake.places
        if len(touched):
            due = self._note_moves(touched, places[bounds[:-1]])
            self.engine.arena.merge(touched, bounds, places, new)
            for slot in due:
                self._plant(slot)
        if self.count >= max(WAITING, sum(self._held(slot) for slot in self.trees) // SHARE):
            self.settle()

    def _held(self, slot: int) -> int:
        row = self.engine.arena.keys[slot]
        return int(row[LAST] - row[FIRST])

    def _note_moves(self, touched: np.ndarray, firsts: np.ndarray) -> list[int]:
        """How many events the new ones will move; the keys that are to have trees."""
        keys = self.engine.arena.keys
        held, moves = keys[touched, LAST] - keys[touched, FIRST], keys[touched, LAST] - firsts
        due = []
        for j in np.flatnonzero((moves > 0) & (held >= LARGE)):
            slot = int(touched[j])
            self.moved[slot] = self.moved.get(slot, 0) + int(moves[j])
            if self.moved[slot] >= PATIENCE * held[j] and self._served():
                due.append(slot)
        return due

    def _served(self) -> bool:
        """Whether trees can answer all that is asked: what was forgotten of a lifetime is in none. With a `watermark=` the plan
        has no trees for it; here is what no plan knows, that expire() was called."""
        forgets = self.engine.frontier.watermark is not None
        return all(step.choices.tree for step in self.spec.steps) and not (self.lifetime and forgets)

    def _plant(self, slot: int) -> None:
        """Trees of all events of a key."""
        from slidewise.algorithms.fiba_forest import Forest  # a tenth of a second of imports, only where one is wanted

        arena = self.engine.arena
        first, last = arena.keys[slot, FIRST], arena.keys[slot, LAST]
        columns = {name: column[first:last] for name, column in arena.columns.items()}
        planted = [
            Forest(step.typed, fingers=algorithm(step.choices.tree).module.FINGERS) for step in self.spec.steps
        ]
        if self._insert(planted, columns):
            self.trees[slot], self.youngest[slot] = planted, columns["time"][-1]
        self.moved.pop(slot, None)

    def _hold(self, slot: int, new: dict[str, np.ndarray]) -> None:
        self.waiting.append((slot, new))
        self.count += len(new["time"])
        self.youngest[slot] = max(self.youngest[slot], new["time"][-1])
        whole = False
        try:
            whole = self._insert(self.trees[slot], new)
        finally:
            if not whole:
                self._fell(slot)
                self.fallen = True

    def _insert(self, trees: list[Forest], columns: dict[str, np.ndarray]) -> bool:
        """Whether all of it went in. An operator that raises has its say where answers are made of the block."""
        codes = self._codes(columns["time"])
        try:
            for partials, forest in zip(self.engine.partials, trees, strict=True):
                self._insert_into(partials, forest, codes, columns)
        except Exception:
            return False
        return True

    @staticmethod
    def _insert_into(partials: Partials, forest: Forest, codes: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        X = tuple(columns[name] for name in partials.inputs)
        if partials.masked:
            which = np.flatnonzero(columns[partials.mask])
            codes, X = codes[which], tuple(column[which] for column in X)
        if len(codes):
            forest.bulk_insert(0, codes if partials.op.compiled else codes.tolist(), X)

    def _codes(self, times) -> np.ndarray:
        return float_codes(times) if self.spec.clock.kind == "real" else np.asarray(times)

    def _fell(self, slot: int) -> None:
        del self.trees[slot], self.youngest[slot]

    # ---- answers -------------------------------------------------------------------------------------------------------------

    def answers(self, slot: int, tick) -> dict[tuple[str, str], Answers]:
        """Results of the windows that end at a moment (None: the key's youngest event), by aggregate and window."""
        tick = self.youngest[slot] if tick is None else tick
        dtype, closed = self.engine.arena["time"].dtype, self.spec.request.closed
        found = {}
        for name, window in self.spec.ticks.items():
            first, beyond_first, last, beyond_last = stretch(window, tick, dtype, closed)
            low, high = int(self._codes(first)) + beyond_first, int(self._codes(last)) - (not beyond_last)
            for partials, forest in zip(self.engine.partials, self.trees[slot], strict=True):
                for aggregate, answers in partials.answer_stretch(slot, forest, low, high).items():
                    found[aggregate, name] = answers
        return found

    # ---- into the arena, and out of it ---------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Put all that waits into the arena. Trees stay: they hold it already."""
        self.fallen = False
        if not self.waiting:
            return
        arena = self.engine.arena
        slots = np.repeat([slot for slot, _ in self.waiting], [len(new["time"]) for _, new in self.waiting])
        columns = {
            # Before the first null of a step's column every event counts.
            name: np.concatenate([new[name] if name in new else np.ones(len(new["time"]), dtype) for _, new in self.waiting])
            for name, dtype in ((name, column.dtype) for name, column in arena.columns.items())
        }
        self.waiting, self.count = [], 0
        order = np.lexsort((columns["time"], slots))  # stable: events of one time as they came
        columns = {name: column[order] for name, column in columns.items()}
        touched, begins = np.unique(slots[order], return_index=True)
        bounds = np.concatenate([begins, [len(order)]])
        lows, places = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
        locate(arena.keys, arena["time"], touched, bounds, columns["time"], lows, places)
        arena.merge(touched, bounds, places, columns)

    def swept(self) -> None:
        """Events were forgotten: trees forget them too."""
        arena = self.engine.arena
        for slot, trees in list(self.trees.items()):
            if self._held(slot) < LARGE or not self._served():
                self._fell(slot)
                continue
            before = int(self._codes(arena["time"][arena.keys[slot, FIRST]])) - 1
            for forest in trees:
                forest.bulk_evict(0, before)
        self.moved.clear()

    def dropped(self, slots) -> None:
        for slot in np.asarray(slots).tolist():
            if slot in self.trees:
                self._fell(slot)

    @property
    def nbytes(self) -> int:
        return sum(forest.bytes_used for trees in self.trees.values() for forest in trees)
