"""One step of the keyed engine: its inputs in the arena, its partials of runs (where the planner chose to keep some), and
answers for every aggregate read from them.

The kernels are in folds.py.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from slidewise.algebra.codec import decode, encode, like, stripped
from slidewise.algebra.kernel import leaf_values, twin
from slidewise.errors import StateError
from slidewise.live import folds
from slidewise.live.arena import FIRST, STALE, Arena
from slidewise.live.columns import input_dtype, input_name, input_values, mask_of
from slidewise.live.outputs import Answers, result_arrays
from slidewise.live.spec import Aggregate, Step
from slidewise.live.states import states_as_objects
from slidewise.live.structures import STRUCTURES
from slidewise.planner.sharing import View

if TYPE_CHECKING:
    from slidewise.algorithms.fiba_forest import Forest

_ALL = np.zeros(0, np.uint8)
_NO_COUNTS = np.zeros(0, np.int32)
_NO_BASES = np.zeros(0, np.int64)
NO_SKIPS = np.zeros(0, np.int64)


class Partials:
    """The partials of one step over all keys of a bucket."""

    def __init__(self, step: Step, aggregates: dict[str, Aggregate], arena: Arena, lifetime: bool = False):
        self.step = step
        self.members = [(view, aggregates[view.aggregate]) for view in step.views]
        self.op = step.typed
        self.runs = bool(STRUCTURES[step.choices.kept.algorithm].partials)
        """Whether partials of runs are kept; otherwise the events alone."""
        self.arena = arena
        self.inputs = [input_name(step, found) for found in step.inputs]
        self.mask = f"counts:{step.name}"
        self.masked = False
        for name, found in zip(self.inputs, step.inputs, strict=True):
            if name != "number" and name not in arena.columns:
                arena.add_column(name, input_dtype(name, found))
        self.kernels = folds if self.op.compiled else twin(folds)
        self.slots = 0
        self.V = self._blank(folds.SCRATCH)
        self.counts = _NO_COUNTS
        self.lifetime = lifetime
        self.bases = self._blank(0)
        self.based = np.zeros(0, np.int64)

    def _blank(self, slots: int):
        return self.op.state.alloc(slots) if self.op.compiled else [self.op.identity] * slots

    def read(self, column, into: dict, rows: np.ndarray) -> None:
        """Put this aggregate's columns of the batch's rows into `into`; column(name) gives an Arrow array."""
        for name, found in zip(self.inputs, self.step.inputs, strict=True):
            if name not in into:
                into[name] = input_values(name, found, column(found.column))[rows]
        mask = mask_of(self.step, column)
        if mask is not None and not self.masked:
            self._begin_mask()
        if self.masked:
            into[self.mask] = np.ones(len(rows), np.uint8) if mask is None else mask[rows]

    def _begin_mask(self) -> None:
        """The first row that does not count: from now on it is noted for each row, and counted for each run."""
        self.masked = True
        self.arena.add_column(self.mask, np.uint8)
        self.arena[self.mask][:] = 1
        self.counts = np.zeros(self.slots, np.int32)
        self.arena.keys[:, STALE] = 0

    def _fit(self) -> None:
        """As many state slots as the arena's size asks for."""
        wanted = folds.slots_for(self.arena.size)
        if wanted > self.slots:
            old, self.V = self.V, self._blank(wanted)
            if self.op.compiled:
                width = self.op.state.width or 1
                for a, b in zip(old, self.V, strict=True):
                    b[: self.slots * width] = a[: self.slots * width]
            else:
                self.V[: self.slots] = old[: self.slots]
            if self.masked:
                counts = np.zeros(wanted, np.int32)
                counts[: self.slots] = self.counts
                self.counts = counts
            self.slots = wanted

    def begin_anew(self) -> None:
        """The arena was laid out anew: nothing that was computed is in its place."""
        self.V, self.slots = self._blank(folds.SCRATCH), 0
        self.counts = np.zeros(0, np.int32)

    def refresh(self, touched: np.ndarray) -> None:
        """Bring the runs of these keys up to date."""
        if not self.runs:
            return
        self._fit()
        self.kernels.refresh(self.op, self._columns(), self._mask(), self.V, self.counts, self.arena.keys, touched)

    def answer(self, slots, los, his, skips=NO_SKIPS, lifetime: bool = False, answered=None) -> dict[str, Answers]:
        """The results of these frames, by aggregate. lifetime: with what was forgotten in front of them; answered: a byte for
        each frame that says whether it has an answer at all."""
        if lifetime:
            self._fit_bases()
        out, ok = result_arrays(self.op, len(slots))
        based = self.based if lifetime else _NO_BASES
        state = (self._columns(), self._mask(), self.V, self.counts, self.bases, based)
        self.kernels.answer(self.op, *state, self.arena.keys, slots, los, his, skips, self.runs, out, ok)
        if answered is not None:
            ok &= answered
        return self._views(out, ok, answered)

    def answer_stretch(self, slot: int, forest: "Forest", first: int, last: int) -> dict[str, Answers]:
        """The result of one stretch of times of a key that has a tree (late.py), both ends included."""
        out, ok = result_arrays(self.op, 1)
        if first > last or not forest.size() or not forest.query_range(0, first, last, out, ok):
            nothing = np.array([self.arena.keys[slot, FIRST]], np.int64)
            return self.answer(np.array([slot], np.int64), nothing, nothing)
        return self._views(out, ok, None)

    def _views(self, out, ok, answered) -> dict[str, Answers]:
        if len(self.members) == 1:
            return {aggregate.name: Answers(aggregate, out, ok) for _, aggregate in self.members}
        return {aggregate.name: self._view(view, aggregate, out, ok, answered) for view, aggregate in self.members}

    def _view(self, view: View, aggregate: Aggregate, out, ok, answered) -> Answers:
        """One of several results that were lowered together."""
        empty = aggregate.typed.operator.empty
        if not self.op.compiled:
            good = np.array(
                [o and (view.flag is None or bool(r[view.flag])) for r, o in zip(out, ok, strict=True)], np.uint8
            )
            values = [r[view.value] if g else None for r, g in zip(out, good, strict=True)]
            if empty is not None:
                values = [v if o else empty for v, o in zip(values, ok, strict=True)]
                good = np.ones(len(ok), np.uint8) if answered is None else answered
            return Answers(aggregate, values, good)
        values, good = out[view.value], ok
        if view.flag is not None:
            good = ok & out[view.flag]
        if empty is not None:  # a count of an empty window is 0, where there is an answer at all
            if not ok.all():
                values = np.where(ok != 0, values, values.dtype.type(empty))
            good = np.ones(len(ok), np.uint8) if answered is None else answered
        return Answers(aggregate, (values,), good)

    def _columns(self) -> tuple:
        return tuple(self.arena[name] for name in self.inputs)

    def _mask(self) -> np.ndarray:
        return self.arena[self.mask] if self.masked else _ALL

    # ---- lifetimes: one partial of what was forgotten ------------------------------------------------------------------------

    def _fit_bases(self) -> None:
        wanted = len(self.arena.keys)
        if wanted > len(self.based):
            old, self.bases = self.bases, self._blank(wanted)
            if self.op.compiled:
                for a, b in zip(old, self.bases, strict=True):
                    b[: len(a)] = a
            else:
                self.bases[: len(old)] = old
            self.based = np.concatenate([self.based, np.zeros(wanted - len(self.based), np.int64)])

    def collapse(self, slots, firsts, lasts, dropped) -> None:
        """Events of these positions are about to be forgotten; keys that are dropped begin anew."""
        self._fit_bases()
        self.kernels.collapse(
            self.op, self._columns(), self._mask(), self.V, self.bases, self.based, slots, firsts, lasts
        )
        self.based[dropped] = 0

    def stored_bases(self, slots) -> pa.Array:
        """Each key's partial of what was forgotten, as bytes; null where there is none."""
        self._fit_bases()
        picked = np.asarray(slots)
        if self.op.compiled:
            width = self.op.state.width or 1
            parts = tuple(a.reshape(-1, width)[picked].reshape(-1) for a in self.bases)
            objects = states_as_objects(self.op, parts) if len(picked) else []
        else:
            objects = [self.bases[slot] for slot in picked]
        encoder = self.op.operator.encode
        found = []
        for slot, state in zip(picked, objects, strict=True):
            count = int(self.based[slot])
            if self.op.compiled:
                state = tuple(leaf_values(state)) if isinstance(state, tuple) else state
            else:
                state = encoder(state) if encoder is not None else stripped(self.op.identity, state)
            found.append(None if count == 0 else encode((count, state)))
        return pa.array(found, pa.binary())

    def restore_bases(self, slots, stored: list) -> None:
        self._fit_bases()
        for slot, data in zip(slots, stored, strict=True):
            if data is None:
                continue
            value = decode(data)
            if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[0], int) or value[0] < 1:
                raise StateError(f"the stored lifetime of {self.step.name!r} is damaged")
            count, state = value
            try:
                put_state(self.op, self.bases, int(slot), state)
            except (TypeError, ValueError, IndexError) as error:
                raise StateError(
                    f"the stored lifetime of {self.step.name!r} does not fit {self.op!r}: {error}"
                ) from error
            self.based[slot] = count

    @property
    def nbytes(self) -> int:
        own = sum(part.nbytes for part in self.V) if self.op.compiled else 64 * len(self.V)
        return own + self.counts.nbytes


def put_state(op, V, slot: int, state) -> None:
    """A state as Python object into its slot."""
    if not op.compiled:
        decoder = op.operator.decode
        V[slot] = decoder(state) if decoder is not None else like(op.identity, state)
    elif op.kind == "wide":
        width = op.state.width
        V[0][slot * width : (slot + 1) * width] = np.asarray(state).reshape(width)
    else:
        leaves = leaf_values(state)
        if len(leaves) != len(V):
            raise ValueError(f"{len(leaves)} numbers, {len(V)} expected")
        for array, value in zip(V, leaves, strict=True):
            array[slot] = value
