"""The longest run ending at each row in which a column stays within a width: the one loop of delta windows."""

from slidewise.algebra.cache import inlined


@inlined
def delta_run(values, valid, first, last, stale, shift, width, largest, smallest, begun):
    """begun[p] = shift + where the run of row p began, for the rows stale .. last - 1 of a key; no run of theirs began before
    `first`. Largest less smallest stays within `width`.

    Two monotone queues over positions, `largest` and `smallest`, with room for last - first each. A null (valid: a byte for each
    row, or none at all) neither widens nor ends a run; a NaN is within nothing but NaN.
    """
    nulls = len(valid) > 0
    start = behind = first  # behind: the row after the last that was no null
    l0 = l1 = s0 = s1 = 0
    seen = not_a_number = False
    for p in range(first, last):
        if not nulls or valid[p]:
            x = values[p]
            if seen and (x != x) != not_a_number:
                start = behind
                l0 = l1 = s0 = s1 = 0
            not_a_number = x != x
            seen = True
            behind = p + 1
            if not not_a_number:
                while l1 > l0 and values[largest[l1 - 1]] <= x:
                    l1 -= 1
                largest[l1] = p
                l1 += 1
                while s1 > s0 and values[smallest[s1 - 1]] >= x:
                    s1 -= 1
                smallest[s1] = p
                s1 += 1
                while not _within(values[largest[l0]], values[smallest[s0]], width):
                    if largest[l0] < smallest[s0]:
                        start = largest[l0] + 1
                        l0 += 1
                    else:
                        start = smallest[s0] + 1
                        s0 += 1
        if p >= stale:
            begun[p] = shift + start


@inlined
def _within(high, low, width):
    """high - low <= width, where the difference may leave int64; infinities are within anything of themselves."""
    difference = high - low
    return high == low or (difference <= width and difference >= 0)
