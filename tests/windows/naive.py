"""Every window kind straight from its definition in docs/boundaries.md: a loop over all rows, nothing clever.

Rows are sorted by (key, time, order) and are given as lists. `members(window, rows, i)` gives the places of the rows in row i's
window; `members_at(window, rows, key, moment)` those of a window that ends at a moment of a key.
"""

from dataclasses import dataclass, field


@dataclass
class Rows:
    """Sorted rows: their keys, their times, and the column a delta or punctuation window goes by."""

    keys: list
    times: list
    column: list = field(default_factory=list)


LEFT, RIGHT = ("left", "both"), ("right", "both")


def floor_to(t, slide, origin):
    return origin + ((t - origin) // slide) * slide


def members(window, rows: Rows, i: int, closed="right", ties="peers") -> list[int]:
    key, t = rows.keys[i], rows.times[i]
    same = [j for j in range(len(rows.times)) if rows.keys[j] == key]
    if window.kind == "rows":
        return _last_rows(window, same, same.index(i), closed)
    if window.kind in ("delta", "punctuation"):
        seen = [j for j in same if (j <= i if closed in RIGHT else j < i)]
    elif ties == "arrival" and closed in RIGHT and not (window.kind == "time" and (window.slide or window.offset)):
        seen = [j for j in same if j <= i]
    else:
        seen = _seen(window, rows, same, t, closed)
    return _from_start(window, rows, seen, t, closed)


def members_at(window, rows: Rows, key, moment, closed="left") -> list[int]:
    same = [j for j in range(len(rows.times)) if rows.keys[j] == key]
    if window.kind == "rows":
        seen = [j for j in same if (rows.times[j] <= moment if closed in RIGHT else rows.times[j] < moment)]
        end = len(seen) // window.slide * window.slide if window.slide else len(seen)
        end = max(0, end - window.offset)
        return seen[max(0, end - window.range) : end]
    return _from_start(window, rows, _seen(window, rows, same, moment, closed), moment, closed)


def _seen(window, rows, same, t, closed):
    if window.kind == "time":
        t = (floor_to(t, window.slide, window.origin) if window.slide else t) - window.offset
    return [j for j in same if (rows.times[j] <= t if closed in RIGHT else rows.times[j] < t)]


def _last_rows(window, same, place, closed):
    if window.slide:
        place = (place + 1) // window.slide * window.slide - 1
    place -= window.offset
    first = place - window.range + (0 if closed in LEFT else 1)
    last = place if closed in RIGHT else place - 1
    return [same[p] for p in range(first, last + 1) if 0 <= p < len(same) and place >= 0]


def _from_start(window, rows, seen, t, closed):
    times = rows.times
    if window.kind == "lifetime":
        return seen
    if window.kind == "time":
        low = (floor_to(t, window.slide, window.origin) if window.slide else t) - window.offset - window.range
        return [j for j in seen if (times[j] >= low if closed in LEFT else times[j] > low)]
    if window.kind == "tumbling":
        edge = floor_to(t, window.range, window.origin)
        if closed not in LEFT and edge == t:
            edge -= window.range
        return [j for j in seen if (times[j] >= edge if closed in LEFT else times[j] > edge)]
    if not seen:
        return []
    if window.kind == "session":
        if t - times[seen[-1]] > window.range:
            return []
        start = len(seen) - 1
        while start > 0 and times[seen[start]] - times[seen[start - 1]] <= window.range:
            start -= 1
        return seen[start:]
    if window.kind == "punctuation":
        start = len(seen) - 1
        if closed in LEFT:
            while start > 0 and not rows.column[seen[start]]:
                start -= 1
        else:
            while start > 0 and not rows.column[seen[start - 1]]:
                start -= 1
        return seen[start:]
    if window.kind == "delta":
        best = len(seen) - 1
        for start in range(len(seen) - 1, -1, -1):
            values = [rows.column[j] for j in seen[start:] if rows.column[j] is not None]
            if values and max(values) - min(values) > window.range:
                break
            best = start
        return seen[best:]
    raise AssertionError(window.kind)
