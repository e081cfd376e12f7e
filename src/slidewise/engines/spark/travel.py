"""How plans and operators travel to the workers, and how compiled code gets there without a stampede.

A plan is pickled once on the driver (cloudpickle: a user's operators go by their code, the library's by name) and unpickled once in
each Python worker, not once a task: compiled code hangs on its objects.

Compiled code does not travel: it depends on the processor. The driver runs the plan on a few example rows before the job
starts, which files every function the plan needs in the disk cache; on one machine the workers then find everything there. On
another host the first worker does the same behind a lock, and the others wait for it instead of compiling the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from slidewise.algebra.cache import cache_dir, entry_name, read_entry, write_entry
from slidewise.planner.plan import Plan

_MOST = 16
_opened: OrderedDict[str, Any] = OrderedDict()


class Parcel:
    """Anything that is pickled once and opened once in each process."""

    def __init__(self, content: Any):
        from pyspark import cloudpickle

        self.data = cloudpickle.dumps(content)
        self.token = hashlib.sha256(self.data).hexdigest()

    def open(self) -> Any:
        if self.token not in _opened:
            from pyspark import cloudpickle

            _opened[self.token] = cloudpickle.loads(self.data)
            while len(_opened) > _MOST:
                _opened.popitem(last=False)
        _opened.move_to_end(self.token)
        return _opened[self.token]


def prepared(plan: Plan, prepare: Callable[[], Any], what: str = "rows") -> None:
    """Call `prepare`, which compiles what the plan needs, unless this host has done so; one process at a time.

    what: which of the things that can be done with a plan it is prepared for."""
    name = _marker(plan, what)
    if name is None or name in _done or cache_dir() is None:  # where nothing can be filed every process compiles for itself
        return
    if read_entry(name) is None:
        with alone(name):
            if read_entry(name) is None:
                prepare()
                write_entry(name, b"")
    _done.add(name)


_done: set[str] = set()


def _marker(plan: Plan, what: str) -> str | None:
    """The file that says that this host has compiled what the plan needs."""
    request = plan.request
    steps = [(getattr(step.typed, "key", step.typed.name), step.algorithm, [i.kind for i in step.inputs], step.bound.where is None)
             for step in plan.steps]
    if any("unfiled" in key for key, *_ in steps):
        return None
    windows = [(t.kind, bool(t.slide), bool(t.offset)) for t in plan.ticks.values()]
    return entry_name("prepared", what, steps, windows, request.emit, request.ties, request.closed, request.exclude_current,
                      request.as_of, len(request.by), bool(request.order), plan.clock.kind, sources())


def sources() -> str:
    """Digest of the sources of everything that is compiled: a new version of the package prepares anew."""
    global _digest
    if _digest is None:
        found = hashlib.sha256()
        package = Path(__file__).resolve().parent.parent.parent
        for folder in ("algebra", "operators", "algorithms", "windows", "live", "engines"):
            for path in sorted((package / folder).rglob("*.py")):
                found.update(path.read_bytes())
        _digest = found.hexdigest()
    return _digest


_digest: str | None = None


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold a lock that other processes of this host wait for. Where there are no such locks, go on without."""
    folder = cache_dir()
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(folder / f".lock-{name}", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


# ---- example rows ------------------------------------------------------------------------------------------------------


def examples(schema: pa.Schema, never_null: tuple[str, ...]) -> list[pa.Table]:
    """Small tables of this schema: sorted and not, with nulls (but in the columns named) and without."""
    whole = pa.table({field.name: pa.array([example(field.type, k) for k in (1, 1, 2)], field.type) for field in schema})
    holes = pa.array([0, 1, None])
    some_null = pa.table({
        name: whole.column(name) if name in never_null else whole.column(name).take(holes) for name in whole.column_names
    }) if whole.num_columns else whole
    back = pa.array([2, 1, 0])
    return [whole, whole.take(back), some_null, some_null.take(back)]


def example(kind: pa.DataType, k: int) -> Any:
    """A value of this type; no zero, which a user's function may divide by."""
    if pa.types.is_boolean(kind):
        return k % 2 == 1
    if pa.types.is_integer(kind):
        return k
    if pa.types.is_floating(kind):
        return float(k)
    if pa.types.is_decimal(kind):
        return Decimal(k).scaleb(-min(kind.scale, kind.precision - 1)) if kind.scale >= kind.precision else Decimal(k)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "abcdef"[k - 1]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return b"abcdef"[k - 1 : k]
    if pa.types.is_temporal(kind):
        return pa.scalar(k, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if pa.types.is_struct(kind):
        return {field.name: example(field.type, k) for field in kind}
    if pa.types.is_map(kind):
        return [(example(kind.key_type, k), example(kind.item_type, k))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [example(kind.value_type, k)]
    return None


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """What examples warn of says nothing about the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
