"""Arrays of states outside compiled code: blank ones, copies, and their Python form."""

import numpy as np

from slidewise.algebra.codec import decode, encode, like, stripped
from slidewise.algebra.kernel import leaf_values
from slidewise.algebra.layout import Leaf
from slidewise.algebra.typed import TypedOperator
from slidewise.errors import StateError
from slidewise.live.snapshot import numbers, raw


def blank_states(op: TypedOperator, slots: int):
    """That many slots, each holding the identity: nothing of the past, and nothing uninitialised, is ever stored."""
    if not op.compiled:
        return [op.identity] * slots
    arrays = op.state.alloc(slots)
    if op.kind == "wide":
        arrays[0].reshape(slots, op.state.width)[:] = op.identity
    else:
        for array, value in zip(arrays, leaf_values(op.identity), strict=True):
            array[:] = value
    return arrays


def copy_states(op: TypedOperator, V):
    return tuple(array.copy() for array in V) if op.compiled else list(V)


def states_as_objects(op: TypedOperator, V) -> list:
    """Every slot as the Python object that the interpreted path would hold."""
    if not op.compiled:
        return list(V)
    if op.kind == "wide":
        return list(V[0].reshape(-1, op.state.width))
    columns = [array.tolist() for array in V]

    def build(shape, k):
        if isinstance(shape, Leaf):
            column = columns.pop(0)
            return [bool(v) for v in column] if shape.dtype == np.bool_ else column
        parts = [build(part, k) for part in shape[1:]]
        maker = tuple if shape[0] is None else shape[0]._make
        return [maker(fields) for fields in zip(*parts, strict=True)]

    return build(op.state.shape, 0)


def store_states(op: TypedOperator, V) -> dict[str, bytes]:
    """States as sections of a snapshot."""
    if op.compiled:
        return {f"states{k}": raw(array) for k, array in enumerate(V)}
    encoder = op.operator.encode
    items = [encoder(s) if encoder is not None else stripped(op.identity, s) for s in V]
    return {"states": encode(items)}


def read_states(op: TypedOperator, sections: dict[str, bytes], slots: int):
    """States back from a snapshot's sections; StateError unless there are exactly that many."""
    if op.compiled:
        leaves = op.state.leaves
        return tuple(
            numbers(sections, f"states{k}", leaf.stored, slots * (op.state.width or 1)) for k, leaf in enumerate(leaves)
        )
    items = decode(sections.get("states", b""))
    if not isinstance(items, list) or len(items) != slots:
        raise StateError(f"stored state does not hold {slots} partials")
    decoder = op.operator.decode
    if decoder is None:
        return [like(op.identity, item) for item in items]
    try:
        return [decoder(item) for item in items]
    except Exception as error:
        raise StateError(f"{op.name}: decode cannot read a stored partial: {error}") from error
