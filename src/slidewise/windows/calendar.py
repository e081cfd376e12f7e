"""Local days: `sw.time("1d", calendar=True)` reaches back to the same time of the day before, `sw.tumbling("1d", calendar=True)` to
local midnight, whether the days between have 23, 24 or 25 hours.

A moment is taken to local time, moved there by whole days, and taken back. A local time that happens twice means the first, one
that is skipped means the moment of the change. When an hour happens again a bound would go back: it stays where the first time
through that hour had brought it, so that frames slide one way only.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slidewise.algebra.cache import entry
from slidewise.windows.clock import DAY_NS, Ticks

_UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))


def day_bounds(window: Ticks, moments: np.ndarray, offsets: np.ndarray, left: bool) -> np.ndarray:
    """Where the window of each moment begins, in ticks; never going back within a key."""
    unit, ns = next((unit, ns) for unit, ns in _UNITS if window.tick_ns % ns == 0)
    scale = window.tick_ns // ns
    day = DAY_NS // ns
    instants = pa.array((moments - window.offset) * scale).view(pa.timestamp(unit, window.zone))
    local = _local(instants)
    days = window.range * window.tick_ns // DAY_NS
    if window.kind == "tumbling":
        moved = local // (days * day) * (days * day)
        if not left:
            moved = np.where(moved == local, moved - days * day, moved)
    else:
        moved = _once(instants, local) - days * day
    back = pc.assume_timezone(
        pa.array(moved).view(pa.timestamp(unit)), window.zone, ambiguous="earliest", nonexistent="latest"
    )
    bounds = back.view(pa.int64()).to_numpy() // scale
    bounds = np.array(bounds, np.int64)
    never_back(bounds, offsets)
    return bounds


def _local(instants: pa.Array) -> np.ndarray:
    """What clocks show, as if it were UTC."""
    return pc.local_timestamp(instants).cast(pa.timestamp(instants.type.unit)).view(pa.int64()).to_numpy()


def _repeats(instants: np.ndarray, kind: pa.TimestampType) -> np.ndarray:
    """How long ago clocks showed the same; 0 where they did not."""
    shown = pa.array(_local(pa.array(instants).view(kind))).view(pa.timestamp(kind.unit))
    return instants - pc.assume_timezone(shown, kind.tz, ambiguous="earliest", nonexistent="latest").view(pa.int64()).to_numpy()


def _once(instants: pa.Array, local: np.ndarray) -> np.ndarray:
    """Local times; where clocks show a time again, that at which they were put back, so that none is before an earlier one."""
    kind, ticks = instants.type, instants.view(pa.int64()).to_numpy()
    ago = _repeats(ticks, kind)
    again = np.flatnonzero(ago > 0)
    if not len(again):
        return local
    low, high = ticks[again] - ago[again], ticks[again]  # clocks were put back in (low, high]
    while (high - low > 1).any():
        middle = low + (high - low) // 2
        back = _repeats(middle, kind) > 0
        low, high = np.where(back, low, middle), np.where(back, middle, high)
    local = local.copy()
    local[again] = _local(pa.array(high).view(kind)) + ago[again]
    return local


@entry
def never_back(bounds, offsets):
    for key in range(len(offsets) - 1):
        for i in range(offsets[key] + 1, offsets[key + 1]):
            bounds[i] = max(bounds[i], bounds[i - 1])
