"""`Window`: one live window, event by event or in bulk, on any algorithm.

    >>> import slidewise as sw
    >>> w = sw.Window(sw.max())
    >>> for t, v in enumerate([2, 6, 3, 5, 3]):
    ...     w.insert(t, v)
    >>> w.query(), w.query(2, 4), len(w)
    (6, 5, 5)
    >>> w.bulk_evict(1)
    2
    >>> w.query(), w.oldest
    (5, 2)

Control path only: it turns times and values into what the compiled core takes, and its answers back into Python values.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from slidewise.algebra.codec import decode
from slidewise.algebra.operator import Bound, Operator
from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithm as algorithm_named
from slidewise.algorithms import serves
from slidewise.algorithms.protocol import Algorithm
from slidewise.errors import EmptyWindowError, InputError, InputTypeError, StateError, UnsupportedError
from slidewise.live.inorder import InOrder
from slidewise.live.snapshot import numbers, pack, told_apart, unpack
from slidewise.live.times import times_named, times_of
from slidewise.live.values import Values, _dtype, values_of
from slidewise.planner.ladder import Choice, Task, choose

if TYPE_CHECKING:
    from slidewise.live.explain import WindowExplanation

_DTYPE = re.compile(r"[<>|=]?([biuf][1248]|[mM]8\[\d*[a-zA-Z]{1,2}\])")


class Window:
    """A sliding window over one stream of events, kept up to date by one of the algorithms of `sw.algorithms()`.

    `algorithm="auto"` takes events in any order: the planner's ladder says by what (fiba), and `explain()` why. Types are fixed by
    the first value unless given: `dtype` for the values (a tuple for several inputs), `time_dtype` for the times. `insist=True`
    lets a declared inverse be used on floats.
    """

    def __init__(
        self,
        op: Operator,
        algorithm: str = "auto",
        dtype=None,
        time_dtype=None,
        *,
        insist: bool = False,
        min_arity: int | None = None,
    ):
        if isinstance(op, Bound):
            raise InputTypeError(f"a Window takes an operator without columns: sw.{op.operator.name}()")
        if not isinstance(op, Operator):
            raise InputTypeError(f"a Window takes an operator such as sw.sum(), not {op!r}")
        if not isinstance(algorithm, str):
            raise InputTypeError(f"algorithm is a name such as 'fiba', not {algorithm!r}")
        self._op = op
        self._auto = algorithm == "auto"
        # What becomes of a window is not known: events may come in any order. The ladder is asked again when the types are known.
        unknown = TypedOperator(op, (object,) * (op.inputs or 0), None, None, False, "its types are not known yet")
        self._choice = self._chosen(unknown) if self._auto else Choice(algorithm, "asked for")
        self._algorithm = algorithm_named(self._choice.algorithm)
        if min_arity is not None:
            from slidewise.algorithms.fiba_forest import checked_arity

            checked_arity(min_arity)
            if _keeper(self._algorithm) is InOrder:
                raise InputError(f"min_arity= is for trees (fiba, btree), and {self._algorithm.name} is none")
        self._insist, self._min_arity = insist, min_arity
        # None until the types are known; see _begin
        self._values: Any = None
        self._times: Any = None
        self._store: Any = None
        self._sample: Any = None
        if op.inputs == 0:
            self._values = Values(op, ())
        elif dtype is not None:
            self._values = values_of(op, None, dtype)
        if time_dtype is not None:
            self._times = times_of(None, time_dtype)
        if self._values is not None and self._times is not None:
            self._build()
        elif self._values is not None:
            self._refuse_if_needed(op.typed(self._values.inputs))

    # ---- set-up ----------------------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str:
        return self._algorithm.name

    @property
    def operator(self) -> Operator:
        return self._op

    @property
    def compiled(self) -> bool | None:
        """Whether it runs compiled; None while the types are not known."""
        return None if self._store is None else self._store.op.compiled

    @staticmethod
    def _chosen(typed: TypedOperator) -> Choice:
        return choose(Task(typed, order="any"))

    def explain(self) -> "WindowExplanation":
        """The algorithm, why it was taken, at which cost, and why not others: print it, or take `as_dict()`."""
        from slidewise.live.explain import WindowExplanation

        return WindowExplanation(self._op.signature, self._choice, None if self._store is None else self._store.op)

    def _refuse_if_needed(self, typed):
        reason = serves(self._algorithm.name, typed, insist=self._insist)
        if reason is not None:
            raise UnsupportedError(reason)

    def _build(self):
        """Types are known: make the structure."""
        typed = self._op.typed(self._values.inputs)
        if not typed.compiled and self._values.compiled and self._values.dtypes:
            self._values = self._values.as_objects()
        if typed.compiled and not self._times.compiled:
            typed = typed.as_object()
        if self._auto:
            self._choice = self._chosen(typed)
            self._algorithm = algorithm_named(self._choice.algorithm)
        self._refuse_if_needed(typed)
        kind = _keeper(self._algorithm)
        arity = (self._min_arity,) if kind is not InOrder else ()
        self._store = kind(self._algorithm, typed, self._times.compiled, *arity)

    @property
    def _whole_only(self) -> bool:
        """Whether floats must be kept out value by value: the algorithm subtracts, and an object may be one."""
        store = self._store
        subtracts = isinstance(store, InOrder) and hasattr(self._algorithm.module, "refuse") and not self._op.selective
        return subtracts and not self._insist and not store.op.compiled and not self._op.own

    def _refuse_floats(self, columns):
        if any(isinstance(value, (float, complex, np.inexact)) for column in columns for value in column):
            raise UnsupportedError(
                f"{self.algorithm} would subtract floating-point numbers for {self._op.name}: the error stays in the window, and "
                "so does a NaN or an infinity; two_stacks_lite and daba_lite do not subtract"
            )

    def _begin(self, t, v):
        """Fix the types by a first event, if it is a good one."""
        values = self._values if self._values is not None else values_of(self._op, v)
        times = self._times if self._times is not None else times_of(t).settled_by((t,))
        times.code(t)
        values.row(v)
        self._values, self._times = values, times
        self._build()

    @property
    def _types(self) -> tuple:
        return self._values, self._times, self._store, self._sample

    def _forget(self, before: tuple):
        """An event was refused: the types and the time zone that it would have fixed are open again."""
        if not isinstance(self._store, Broken):
            self._values, self._times, self._store, self._sample = before

    # ---- changes ---------------------------------------------------------------------------------------------------

    def insert(self, t, v=None) -> None:
        """Insert the value v at time t; several inputs: v is a tuple. Trees combine a repeated time on the right."""
        before = self._types
        try:
            self._insert(t, v)
        except BaseException:
            self._forget(before)
            raise

    def _insert(self, t, v):
        if self._store is None:
            self._begin(t, v)
        if self._times.open:
            self._times = self._times.settled_by((t,))
        code, row = self._times.code(t), self._values.row(v)
        if self._whole_only:
            self._refuse_floats((value,) for value in row)
        self._comparable(code)
        self._go_together((row,))
        try:
            self._store.insert(code, row)
        except BaseException as error:
            if not hasattr(error, "untouched") and not self._lift_fails(row):
                self._half_done(error)
            raise

    def bulk_insert(self, ts, vs=None) -> None:
        """Insert many events, in any order inside the bulk."""
        for what, given in (("times", ts), ("values", vs)):
            if not isinstance(given, Iterable) and not (what == "values" and given is None):
                raise InputTypeError(f"bulk_insert takes lists of times and of values; the {what} are {given!r}")
        ts = ts if isinstance(ts, np.ndarray) else list(ts)
        if vs is None and self._op.inputs:
            raise InputError(f"bulk_insert needs values: {self._op.name} takes {self._op.inputs} input(s)")
        if vs is not None and not isinstance(vs, (np.ndarray, tuple)):
            vs = list(vs)
        if len(ts) == 0:
            return
        before = self._types
        try:
            self._bulk_insert(ts, vs)
        except BaseException:
            self._forget(before)
            raise

    def _bulk_insert(self, ts, vs):
        if self._store is None:
            first = vs[0] if vs is not None and len(vs) else None
            if isinstance(vs, tuple) and (self._op.inputs or 0) > 1 and all(isinstance(c, np.ndarray) for c in vs):
                first = tuple(c[0] for c in vs)
            self._begin(ts[0], first)
        self._times = self._times.settled_by(ts)
        columns = self._values.columns(vs, len(ts))
        if self._whole_only:
            self._refuse_floats(columns)
        codes = self._times.codes(ts)
        if len(codes):
            self._comparable(*(codes if not self._times.compiled else ()))
        codes, columns = _in_order(codes, columns)
        self._go_together(zip(*columns, strict=True))
        if not self._op.own or not self._store.op.compiled:
            self._store.try_lifts(columns, len(codes))
        self._change(self._store.bulk_insert, codes, columns)

    def evict(self, t=None):
        """Remove the oldest event; with t, remove exactly time t and say whether it was there."""
        if t is None:
            if len(self) == 0:
                raise EmptyWindowError("the window is empty: there is nothing to evict")
            self._change(self._store.evict)
            return None
        if self._store is None:
            return False
        code = self._times.code(t)
        self._comparable(code)
        return self._change(self._store.evict_at, code)

    def bulk_evict(self, t) -> int:
        """Remove everything at or before time t; returns how many entries went."""
        if self._store is None:
            return 0
        code = self._times.code(t)
        self._comparable(code)
        return self._change(self._store.bulk_evict, code)

    def compact(self) -> None:
        """Give back memory that is not needed now."""
        if self._store is not None:
            self._change(self._store.compact)

    def _change(self, step, *arguments):
        """A step that changes the structure. Where a user's combine raises, it may be left half-way."""
        try:
            return step(*arguments)
        except BaseException as error:
            if not hasattr(error, "untouched"):
                self._half_done(error)
            raise

    def _comparable(self, *codes):
        """Times that are objects must be comparable with those that are there, and with each other."""
        if self._times.compiled or not codes:
            return
        first = self._store.oldest() if len(self._store) else codes[0]
        for code in codes:
            try:
                bool(code < first)
            except TypeError as error:
                raise InputTypeError(f"the time {code!r} cannot be compared with {first!r}") from error

    def _go_together(self, rows):
        """Objects that one of the library's operators cannot compare, or add up, with those before are refused before
        anything is changed."""
        op = self._store.op
        if op.compiled or not self._op.own:
            return
        sample = self._sample if len(self._store) else None
        for row in rows:
            state = op.operator.lift(*row)
            if sample is not None:
                op.operator.combine(sample, state)
            sample = state
        self._sample = sample

    def _lift_fails(self, row) -> bool:
        """Whether the value itself was refused, by `lift`, which is asked before anything is changed."""
        try:
            self._store.op.operator.lift(*row)
        except Exception:
            return True
        return False

    def _half_done(self, error: BaseException):
        self._store = Broken(f"{type(error).__name__}: {error}")

    def _answer(self, question, *arguments):
        """A question. Some algorithms put themselves in order for it: where it fails, what they are is looked at."""
        try:
            return question(*arguments)
        except BaseException as error:
            if hasattr(error, "untouched") or self._op.own:  # what the library's operators raise comes from `lower`
                raise
            try:
                self._store.check()
            except Exception:
                self._half_done(error)
            raise

    # ---- answers ---------------------------------------------------------------------------------------------------

    def query(self, t_from=None, t_to=None):
        """The lowered aggregate of the window, or of the inclusive range of times from t_from to t_to."""
        if self._store is None or len(self._store) == 0:
            return self._op.without_values()
        if t_from is None and t_to is None:
            return self._values.result(self._answer(self._store.query))
        code_from = self._store.oldest() if t_from is None else self._times.code(t_from)
        code_to = self._store.youngest() if t_to is None else self._times.code(t_to)
        self._comparable(code_from, code_to)
        result, any_event = self._answer(self._store.query_range, code_from, code_to)
        return self._values.result(result) if any_event else self._op.without_values()

    def items(self) -> list:
        """(time, lowered value) of every entry, oldest first."""
        if self._store is None:
            return []
        found = self._answer(lambda: list(self._store.items()))
        return [(self._times.time(code), self._values.result(value)) for code, value in found]

    def __len__(self) -> int:
        return 0 if self._store is None else len(self._store)

    @property
    def oldest(self):
        """The oldest time, or None."""
        return self._times.time(self._store.oldest()) if len(self) else None

    @property
    def youngest(self):
        """The youngest time, or None."""
        return self._times.time(self._store.youngest()) if len(self) else None

    def check(self) -> None:
        """Assert every invariant of the structure; for tests and bug reports."""
        if self._store is not None:
            self._store.check()

    def copy(self) -> "Window":
        """An independent copy."""
        other = object.__new__(Window)
        other.__dict__.update(self.__dict__)
        other._store = None if self._store is None else self._store.copy()
        return other

    def __copy__(self) -> "Window":
        return self.copy()

    def __deepcopy__(self, memo) -> "Window":
        return self.copy()

    def __reduce_ex__(self, protocol):
        raise UnsupportedError("a Window is not pickled: store w.to_bytes(), and read it with sw.Window.from_bytes(data, op)")

    def __repr__(self) -> str:
        if isinstance(self._store, Broken):
            return f"<Window {self._op.signature} on {self.algorithm}: half changed by {self._store.reason}>"
        span = f", {self.oldest} .. {self.youngest}" if len(self) else ""
        return f"<Window {self._op.signature} on {self.algorithm}: {len(self)} entries{span}>"

    # ---- bytes -----------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Times and partials as bytes: versioned, checksummed, nothing in them can run."""
        told_apart(self._op)
        description = {"operator": self._op.signature, "algorithm": self.algorithm, "built": self._store is not None}
        description["insist"] = self._insist
        description["dtypes"] = None if self._values is None else [_name(d) for d in self._values.dtypes]
        description["times"] = None if self._times is None else self._times.name
        if self._store is None:
            return pack("window", description, {})
        # What the operator was resolved for: values may be kept as objects where it runs interpreted on numbers.
        description["inputs"] = [_name(d) for d in self._store.op.inputs]
        description["layout"] = self._store.op.state.description if self._store.op.compiled else "object"
        own, sections = self._store.dump()
        return pack("window", description | own, sections)

    @classmethod
    def from_bytes(cls, data: bytes, op: Operator) -> "Window":
        """A window from stored bytes; StateError if they are damaged, or not of this operator, parameters and layout."""
        if not isinstance(op, Operator):
            raise InputTypeError(f"from_bytes takes the operator that the state is of, such as sw.sum(), not {op!r}")
        head, sections = unpack("window", data)
        if head.get("operator") != op.signature:
            unnamed = "" if op.named else "; an operator without name= is known by its code"
            raise StateError(f"stored state is of {head.get('operator')}, not of {op.signature}{unnamed}")
        try:
            dtypes = head["dtypes"]
            w = cls(op, str(head["algorithm"]), insist=bool(head["insist"]))
            w._choice = Choice(w.algorithm, "as it was stored")
            if dtypes is not None:
                w._values = Values(op, tuple(_stored_dtype(d) for d in dtypes))
                if len(dtypes) != op.inputs:
                    raise StateError(f"stored state has {len(dtypes)} inputs, {op.name} takes {op.inputs}")
            if head["times"] is not None:
                w._times = times_named(head["times"])
            if not head["built"]:
                return w
            typed = op.typed(tuple(_stored_dtype(d) for d in head["inputs"]))
            if w._values is None or w._times is None or not _fit(w._values, typed.inputs, head["layout"] == "object"):
                raise StateError("stored state is damaged: its types do not fit each other")
            kind = _keeper(w._algorithm)
            if head["layout"] == "object":
                typed = typed.as_object()
            elif not typed.compiled or head["layout"] not in kind.layouts(typed):
                raise StateError(f"stored partials are laid out as {head['layout']}, {op.name} now is {typed!r}")
            coded = w._times.compiled
            codes = numbers(sections, "times", np.int64, head["count"]) if coded else decode(sections.get("times", b""))
            if not w._times.are_codes(codes):
                raise StateError("stored state is damaged: a time is missing, or none of this window's")
            w._store = kind.load(w._algorithm, typed, coded, head, sections)
            return w
        except StateError:
            raise
        except Exception as error:  # whatever an operator's own functions raise for partials that are none of its
            raise StateError(f"stored state is damaged: {error}") from error


def _keeper(algorithm: Algorithm) -> Any:
    """What keeps the window of an algorithm. Trees, a tenth of a second of imports, only where one is asked for."""
    if algorithm.info.order != "any":
        return InOrder
    from slidewise.live.tree import Tree

    return Tree


class Broken:
    """In place of a structure that an operator's error left half changed: what it would answer from now on is not known."""

    def __init__(self, reason: str):
        self.reason = reason

    def __len__(self):
        raise self._refusal()

    def __getattr__(self, name: str):
        raise self._refusal()

    def _refusal(self) -> StateError:
        return StateError(
            f"this window was left half changed when its operator raised {self.reason}; take a new one, or a copy or bytes "
            "made before"
        )


def _in_order(codes, columns):
    """Times and columns in the order of time, equal times as they came."""
    if isinstance(codes, np.ndarray):
        if len(codes) > 1 and (codes[1:] < codes[:-1]).any():
            order = np.argsort(codes, kind="stable")
            codes = codes[order]
            columns = tuple(c[order] if isinstance(c, np.ndarray) else [c[i] for i in order] for c in columns)
        return codes, columns
    order = sorted(range(len(codes)), key=codes.__getitem__)
    return [codes[i] for i in order], tuple([c[i] for i in order] for c in columns)


def _fit(values: Values, inputs: tuple, interpreted: bool) -> bool:
    """Whether values of these types can go where an operator was resolved for those: objects can, if it runs interpreted."""
    return values.inputs == inputs or (interpreted and values.inputs == (object,) * len(inputs))


def _stored_dtype(name):
    """The type stored under that name: only such names as `_name` gives, for NumPy reads whole programs out of others."""
    if name == "object":
        return object
    if not isinstance(name, str) or not _DTYPE.fullmatch(name):
        raise StateError(f"stored state has values of an unknown type {name!r}")
    return _dtype(name)


def _name(dtype) -> str:
    return "object" if dtype is object else dtype.str
