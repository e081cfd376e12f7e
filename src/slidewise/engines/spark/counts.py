"""How counts travel from the workers to the driver: as text in a hidden column of the results.

Accumulators do not work in Python's stateful operators. So the first row that a bucket hands out in a micro-batch carries the
bucket's counts (`+...`), or a row of their own does where it hands out none (`-...`, removed before anybody sees it).
`observe` collects the texts; Spark counts an observation once for each task that succeeds and reports it with the
micro-batch's progress, so a task that was tried twice or a batch that was replayed is not counted twice.
"""

from __future__ import annotations

METRICS = "__slidewise_counts"
OBSERVED = "slidewise"

ENGINE = ("in", "accepted", "out", "late", "corrected", "touched", "side", "dropped", "double", "bad", "ahead")
GLUE = (
    "hits",
    "catch_ups",
    "replays",
    "entries_read",
    "bytes_written",
    "state_bytes",
    "state_entries",
    "live_events",
    "live_keys",
    "live_bytes",
)
COUNTS = ENGINE + GLUE


def as_text(label: int, batch: int, counts: dict[str, int]) -> str:
    return ",".join(map(str, (label, batch, *(int(counts[name]) for name in COUNTS))))


def from_text(text: str) -> dict[str, int]:
    """The counts of one bucket in one micro-batch, with `label` and `batch`."""
    return dict(zip(("label", "batch", *COUNTS), map(int, text[1:].split(","))))
