"""One aggregate of the keyed engine: its inputs in the arena, its partials of runs, its answers. Kernels in folds.py."""

import numpy as np
import pyarrow as pa

from slidewise.algebra.codec import decode, encode
from slidewise.algebra.kernel import leaf_values, twin
from slidewise.errors import StateError
from slidewise.live import folds
from slidewise.live.arena import STALE, Arena
from slidewise.live.columns import input_dtype, input_name, input_values, mask_of
from slidewise.live.outputs import Answers
from slidewise.live.spec import Aggregate
from slidewise.live.states import states_as_objects

_ALL = np.zeros(0, np.uint8)
_NO_COUNTS = np.zeros(0, np.int32)
_NO_BASES = np.zeros(0, np.int64)
NO_SKIPS = np.zeros(0, np.int64)


class Partials:
    """The partials of one aggregate over all keys of a bucket."""

    def __init__(self, aggregate: Aggregate, arena: Arena, lifetime: bool = False):
        self.aggregate = aggregate
        self.op = aggregate.typed
        self.arena = arena
        self.inputs = [input_name(aggregate, found) for found in aggregate.inputs]
        self.mask = f"counts:{aggregate.name}"
        self.masked = False
        for name, found in zip(self.inputs, aggregate.inputs, strict=True):
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
        for name, found in zip(self.inputs, self.aggregate.inputs, strict=True):
            if name not in into:
                into[name] = input_values(name, found, column(found.column))[rows]
        mask = mask_of(self.aggregate, column)
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

    def refresh(self, touched: np.ndarray) -> None:
        """Bring the runs of these keys up to date."""
        self._fit()
        self.kernels.refresh(self.op, self._columns(), self._mask(), self.V, self.counts, self.arena.keys, touched)

    def answer(self, slots, los, his, skips=NO_SKIPS, lifetime: bool = False) -> Answers:
        """The results of these frames; lifetime: with what was forgotten in front of them."""
        if lifetime:
            self._fit_bases()
        aggregate = self.aggregate
        found = Answers(self.op, aggregate.inputs, aggregate.arrow, len(slots))
        self.kernels.answer(
            self.op,
            self._columns(),
            self._mask(),
            self.V,
            self.counts,
            self.bases,
            self.based if lifetime else _NO_BASES,
            self.arena.keys,
            slots,
            los,
            his,
            skips,
            found.out,
            found.ok,
        )
        return found

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
            state = encoder(state) if encoder is not None and not self.op.compiled else state
            found.append(None if count == 0 else encode((count, state)))
        return pa.array(found, pa.binary())

    def restore_bases(self, slots, stored: list) -> None:
        self._fit_bases()
        for slot, data in zip(slots, stored, strict=True):
            if data is None:
                continue
            value = decode(data)
            if not isinstance(value, tuple) or len(value) != 2 or not isinstance(value[0], int) or value[0] < 1:
                raise StateError(f"the stored lifetime of {self.aggregate.name!r} is damaged")
            count, state = value
            try:
                put_state(self.op, self.bases, int(slot), state)
            except (TypeError, ValueError, IndexError) as error:
                raise StateError(
                    f"the stored lifetime of {self.aggregate.name!r} does not fit {self.op!r}: {error}"
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


def like(identity, state):
    """Plain tuples back to the NamedTuple of the identity, if it is one."""
    if hasattr(identity, "_make") and isinstance(state, tuple) and len(state) == len(identity):
        return identity._make(like(part, value) for part, value in zip(identity, state, strict=True))
    return state
