"""check_laws: try the laws that an operator declares, and show the counter-example where one fails.

A wrong law does not crash: it gives wrong answers on some algorithm and not on others. So laws are declared, never guessed, and
tried here on small examples: the identity, lifted samples, and what they combine to.

    associative   combine(combine(x, y), z) == combine(x, combine(y, z))      always
    identity      combine(e, x) == x == combine(x, e)                         always
    untouched     combine, inverse and lower leave their arguments alone      always
    commutative   combine(x, y) == combine(y, x)                              where declared
    selective     combine(x, y) is x or y                                     where declared
    inverse       inverse(combine(x, y), x) == y                              where declared

States are compared by the operator's `equal`, or part by part: floats within a bound that allows for rounding (relative to
the largest number in sight; what an inverse gives, to that number itself: what x took from it is gone), everything else exactly.
Where states have an order that their comparison does not see (dicts, sets), the results must not show it either. The
interpreted functions are tried; compiled ones have the same source.
"""

import cmath
import copy
import itertools
import random
from collections.abc import Iterable, Sized
from typing import Any, NamedTuple

import numpy as np

from slidewise.algebra.operator import Operator, dtype_of
from slidewise.errors import InputError, InputTypeError, LawError

_GENERATED: dict[str, list] = {
    "ints": [0, 1, -1, 2, 3, 3, 7, -5, 12],
    "floats": [0.0, 1.0, -1.0, 0.5, 2.5, 2.5, -7.75, 1000.125, 0.1],
    "strings": ["b", "a", "", "ab", "c", "b", "ba"],
}
_RELATIVE = 1e-11
_ROUGHLY = 1e-6  # of results: `lower` may magnify what was rounded
_INEXACT = (float, complex, np.inexact)
_TRIPLES = 1200


class Report(NamedTuple):
    """What was tried: the laws that held, on how many states, in how many trials."""

    operator: str
    laws: tuple[str, ...]
    states: int
    trials: int

    def __str__(self):
        return f"{self.operator}: {', '.join(self.laws)} held in {self.trials} trials on {self.states} states"


class _State(NamedTuple):
    text: str
    """How it came about: `combine(lift(3), lift(7))`."""
    value: Any


def check_laws(op: Operator, samples=None, *, seed: int = 0) -> Report:
    """Try the declared laws of an operator; LawError with a counter-example if one fails, a short report otherwise.

    `samples` are input values (tuples of them for several inputs). Without samples, small whole numbers and small finite
    floats are tried, and strings where neither can be lifted; give samples to try NaN, infinities, or types of your own.

    >>> import slidewise as sw
    >>> sw.check_laws(sw.max()).laws
    ('associative', 'identity', 'untouched', 'commutative', 'selective')
    >>> minus = sw.operator(lift=lambda x: x, combine=lambda a, b: a - b, identity=0, name="minus")
    >>> sw.check_laws(minus)
    Traceback (most recent call last):
        ...
    slidewise.errors.LawError: operator 'minus' is not associative:
        x = lift(0) = 0
        y = lift(0) = 0
        z = lift(1) = 1
        combine(combine(x, y), z) = -1
        combine(x, combine(y, z)) = 1
    """
    if not isinstance(op, Operator):
        raise InputError(f"check_laws takes an operator, not {op!r}")
    if samples is not None:
        if not isinstance(samples, Iterable):
            raise InputTypeError(f"check_laws: samples is a list of values, such as [1, 2, 3], not {samples!r}")
        events = [_event(op, sample) for sample in samples]
        if not events:
            raise InputError("check_laws: samples is empty; leave it out to have some generated")
        resolved = _resolved(op, events)
        reports = [_Trial(resolved, events, seed).run()]
    else:
        reports = _generated(op, seed)
    return Report(
        op.signature,
        reports[0].laws,
        sum(report.states for report in reports),
        sum(report.trials for report in reports),
    )


def _event(op: Operator, sample) -> tuple:
    if op.inputs == 1:
        return (sample,)
    if op.inputs == 0:
        return ()
    if not isinstance(sample, (tuple, list)) or len(sample) != op.inputs:
        raise InputError(f"check_laws: {op.name} takes {op.inputs} inputs, so a sample is a tuple of them, not {sample!r}")
    return tuple(sample)


def _resolved(op: Operator, events: list[tuple]) -> Operator:
    return op.resolved(tuple(dtype_of([event[k] for event in events]) for k in range(op.inputs or 0)))


def _generated(op: Operator, seed: int) -> list[Report]:
    reports: list[Report] = []
    reason: Exception | None = None
    for kind, values in _GENERATED.items():
        if kind == "strings" and reports:
            break
        count = op.inputs or 0
        events = [tuple(values[(j + 3 * k) % len(values)] for k in range(count)) for j in range(len(values))]
        try:
            resolved = _resolved(op, events)
            events = [event for event in events if _serves(resolved, event)]
        except TypeError as error:  # the operator refuses this type
            reason = error
            continue
        if not events:
            continue
        reports.append(_Trial(resolved, events, seed).run())
    if not reports:
        raise InputError(
            f"check_laws: {op.name} takes none of the generated samples{f' ({reason})' if reason else ''}; give samples="
        )
    return reports


def _serves(op: Operator, event: tuple) -> bool:
    """Whether a generated event is in the operator's domain: it can be lifted, combined and lowered."""
    try:
        state = op.lift(*event)
        op.combine(op.combine(op.identity, state), state)
        if op.defined is None or op.defined(state):
            op.lower(state)
    except Exception:  # a user's function may refuse in any way
        return False
    return True


class _Trial:
    """The laws of one operator on one set of states."""

    def __init__(self, op: Operator, events: list[tuple], seed: int):
        self.op = op
        self.trials = 0
        self.random = random.Random(seed)
        lifted = [_State(f"lift({', '.join(map(repr, event))})", op.lift(*event)) for event in events]
        identity = _State("identity", op.identity)
        self.states = [*lifted, identity]
        for count in (2, 2, 3, 5):  # combinations, shortest first: so is the counter-example
            parts = [self.random.choice(lifted) for _ in range(count)]
            total = parts[0]
            for part in parts[1:]:
                total = _State(f"combine({total.text}, {part.text})", self.combine(total, part))
            self.states.append(total)

    def run(self) -> Report:
        op = self.op
        laws = ["associative", "identity", "untouched"]
        self.associative()
        self.identity()
        if op.commutative:
            laws.append("commutative")
            self.commutative()
        if op.selective:
            laws.append("selective")
            self.selective()
        if op.inverse is not None:
            laws.append("inverse")
            self.inverse()
        for x in self.states:
            if x.text != "identity" and (op.defined is None or op.defined(x.value)):
                self.untouched("lower", op.lower, x)
        return Report(op.signature, tuple(laws), len(self.states), self.trials)

    # ---- the laws ------------------------------------------------------------------------------------------------

    def identity(self) -> None:
        e = _State("identity", self.op.identity)
        for x in self.states:
            for text, value in (
                ("combine(identity, x)", self.combine(e, x)),
                ("combine(x, identity)", self.combine(x, e)),
            ):
                self.expect("has an identity that is none", {"x": x}, {text: value, "x": x.value})

    def associative(self) -> None:
        for x, y, z in self.tuples(3):
            left = self.combine(_State("", self.combine(x, y)), z)
            right = self.combine(x, _State("", self.combine(y, z)))
            self.expect(
                "is not associative",
                {"x": x, "y": y, "z": z},
                {"combine(combine(x, y), z)": left, "combine(x, combine(y, z))": right},
            )

    def commutative(self) -> None:
        for x, y in self.tuples(2):
            self.expect(
                "is declared commutative and is not",
                {"x": x, "y": y},
                {"combine(x, y)": self.combine(x, y), "combine(y, x)": self.combine(y, x)},
            )

    def selective(self) -> None:
        for x, y in self.tuples(2):
            both = self.combine(x, y)
            self.trials += 1
            if not self.equal(both, x.value, ()) and not self.equal(both, y.value, ()):
                self.fail("is declared selective and gives neither", {"x": x, "y": y}, {"combine(x, y)": both})

    def inverse(self) -> None:
        for x, y in self.tuples(2):
            total = _State("", self.combine(x, y))
            rest = self.untouched("inverse", self.op.inverse, total, x)
            self.expect(
                "has an inverse that does not undo combine",
                {"x": x, "y": y},
                {"inverse(combine(x, y), x)": rest, "y": y.value},
                beside=(),
            )

    # ---- tools ---------------------------------------------------------------------------------------------------

    def tuples(self, count: int):
        every = list(itertools.product(self.states, repeat=count))
        return every if len(every) <= _TRIPLES else every[: _TRIPLES // 2] + self.random.sample(every, _TRIPLES // 2)

    def combine(self, x: _State, y: _State):
        return self.untouched("combine", self.op.combine, x, y)

    def untouched(self, role: str, function, *states: _State):
        """Call a function and see that it leaves its arguments as they were."""
        before = [(_frozen(self.op, state.value), _copied(state.value)) for state in states]
        result = function(*(state.value for state in states))
        for state, (was, old) in zip(states, before):
            if _frozen(self.op, state.value) != was:
                shown = f"{state.text or 'a state'} = {old!r}" if old is not None else state.text or "a state"
                raise LawError(
                    f"operator {self.op.name!r}: {role} changes its arguments: {shown} is {state.value!r} afterwards; "
                    f"return a new state instead"
                )
        return result

    def expect(self, claim: str, given: dict[str, _State], sides: dict[str, Any], beside: tuple | None = None) -> None:
        """Two sides must be equal: as states, and as results where states hide an order. `beside`: what else rounding errors
        are relative to; by default all that is given."""
        self.trials += 1
        (left_text, left), (right_text, right) = sides.items()
        if not self.equal(left, right, tuple(state.value for state in given.values()) if beside is None else beside):
            self.fail(claim, given, sides)
        if _hides_order(left) or _hides_order(right):
            a, b = self.lowered(left), self.lowered(right)
            if a is not None and b is not None and not same(a, b, max(_magnitude(a), _magnitude(b)) * _ROUGHLY):
                self.fail(
                    f"{claim}: its results show the order that its states hide", given,
                    {f"lower({left_text})": a, f"lower({right_text})": b},
                )  # fmt: skip

    def lowered(self, state):
        """The result of a state, or None where it has none."""
        try:
            return self.op.lower(state) if self.op.defined is None or self.op.defined(state) else None
        except Exception:  # of a state without values: `lower` is not asked for those
            return None

    def equal(self, a, b, seen: tuple) -> bool:
        if self.op.equal is not None:
            return bool(self.op.equal(a, b))
        return same(a, b, max((_magnitude(value) for value in (a, b, *seen)), default=0.0) * _RELATIVE)

    def fail(self, claim: str, given: dict[str, _State], sides: dict[str, Any]) -> None:
        lines = [f"operator {self.op.name!r} {claim}:"]
        lines += [f"    {name} = {_show(state)}" for name, state in given.items()]
        lines += [f"    {text} = {value!r}" for text, value in sides.items() if text not in given]
        raise LawError("\n".join(lines))


def _show(state: _State) -> str:
    return f"{state.text} = {state.value!r}" if state.text else repr(state.value)


def _copied(value):
    """The value as it is now, to be shown later; None where it cannot be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return None


def _hides_order(value) -> bool:
    """Whether there are dicts or sets in it, which are equal in whatever order they were filled."""
    if isinstance(value, (tuple, list)):
        return any(map(_hides_order, value))
    return isinstance(value, (dict, set, frozenset))


def _frozen(op: Operator, value):
    """Something to compare with later: stored bytes where the operator has them, everything the value holds otherwise."""
    return repr(op.encode(value)) if op.encode is not None else _contents(value, {})


def _contents(value, seen: dict[int, tuple]):
    """All that is in a value, down to what has no parts: its own repr may be an address, or leave out what was changed."""
    if isinstance(value, np.ndarray):
        inner = _contents(value.tolist(), seen) if value.dtype.hasobject else value.tobytes()
        return value.dtype.str, value.shape, inner
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return repr(value)
    if id(value) in seen:
        return seen[id(value)][0]
    seen[id(value)] = len(seen), value  # kept, for another could take its id
    if isinstance(value, dict):
        return type(value), [(_contents(k, seen), _contents(v, seen)) for k, v in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(value)
    if isinstance(value, Iterable) and isinstance(value, Sized):
        return type(value), [_contents(part, seen) for part in value], _attributes(value, seen)
    attributes = _attributes(value, seen)
    return type(value), attributes if attributes else repr(value)


def _attributes(value, seen: dict[int, tuple]) -> list:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if hasattr(value, name)]
    held = {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})
    return [(name, _contents(held[name], seen)) for name in held]


def same(a, b, tolerance: float = 0.0) -> bool:
    """Whether two states are equal, part by part; floats within the tolerance, NaN equal to NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype.kind in "biu" and b.dtype.kind in "biu":
            return np.array_equal(a, b)
        return a.shape == b.shape and all(same(x, y, tolerance) for x, y in zip(a.tolist(), b.tolist()))
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key], tolerance) for key in a)
    if isinstance(a, _INEXACT) or isinstance(b, _INEXACT):
        if any(isinstance(part, (complex, np.complexfloating)) for part in (a, b)):
            return same(a.real, b.real, tolerance) and same(a.imag, b.imag, tolerance)
        try:
            x, y = float(a), float(b)
        except (TypeError, ValueError, OverflowError):
            return bool(a == b)
        return x == y or (x != x and y != y) or abs(x - y) <= tolerance
    return bool(a == b)


def _magnitude(value) -> float:
    """The largest finite float in a state: what rounding errors are relative to. Narrow floats weigh as much more as they are
    coarser."""
    if isinstance(value, np.ndarray):
        finite = value[np.isfinite(value)] if value.dtype.kind in "fc" else ()
        return float(np.abs(finite).max()) * _coarseness(value.dtype) if len(finite) else 0.0
    if isinstance(value, (tuple, list)):
        return max(map(_magnitude, value), default=0.0)
    if isinstance(value, dict):
        return max(map(_magnitude, value.values()), default=0.0)
    if isinstance(value, _INEXACT) and cmath.isfinite(value):
        return float(abs(complex(value))) * (_coarseness(value.dtype) if isinstance(value, np.generic) else 1.0)
    return 0.0


def _coarseness(dtype: np.dtype) -> float:
    return max(1.0, float(np.finfo(dtype).eps / np.finfo(np.float64).eps))
