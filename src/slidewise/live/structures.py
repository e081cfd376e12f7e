"""What the keyed engine keeps beside a key's events, by the algorithm it is built on: what the planner may choose from for a stream
or `Live`, and what each costs there. Partials (partials.py) and late trees (late.py) run what is chosen; explain.py tells it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Structure:
    """One structure, in words for people."""

    told: str
    cost: dict[str, str]
    """Combines for each operation."""
    partials: str
    """How many partials it holds for a key of n events; empty: none."""


STRUCTURES = {
    "flatfat": Structure(
        "partials of runs of 8, 64, 512 ... events by rank: FlatFAT with wide nodes",
        {"an event": "1", "one that comes d places late": "d (once a batch)", "an answer": "O(log n)"},
        "n / 7",
    ),
    "recalc": Structure(
        "the events alone, combined again for each answer",
        {"an event": "0", "one that comes d places late": "0", "an answer": "n - 1"},
        "",
    ),
    "fiba": Structure(
        "a finger B-tree of the key's events by time",
        {"an event": "amortised O(1)", "one that comes d places late": "amortised O(log d)", "an answer": "O(log n)"},
        "n + n / mu",
    ),
    "btree": Structure(
        "a B-tree of the key's events by time",
        {"an event": "amortised O(log n)", "one that comes d places late": "amortised O(log n)", "an answer": "O(log n)"},
        "n + n / mu",
    ),
}
KEPT = ("flatfat", "recalc")
"""What any key's partials are kept in."""
LATE_TREES = ("fiba", "btree")
"""What keys that hold much and get late events one by one may have beside it."""
