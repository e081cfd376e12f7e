"""The road of a batch call in words: what is shipped, how it is cut into tasks, and the plan that runs in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slidewise.engines.spark.batch_skew import may_be_heavy, tasks_of
from slidewise.planner.explain import Explanation

if TYPE_CHECKING:
    from slidewise.engines.spark.batch import Road


@dataclass(frozen=True)
class SparkExplanation(Explanation):
    """A plan in words, and the road to it."""

    road: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict:
        return {**super().as_dict(), "spark": dict(self.road)}

    def __str__(self) -> str:
        lines = [f"  {word:<10} {text}" for word, text in self.road]
        return "\n".join([super().__str__(), "", "Spark", *lines])

    __repr__ = __str__


def explained(road: Road) -> SparkExplanation:
    """Looks at no data, and starts no job."""
    request, settings = road.job.plan.request, road.settings
    tasks = tasks_of(road)
    width, needed = len(road.shipped.kinds), len(road.job.needed)
    told = [
        ("shipped", f"{width} columns through Arrow: {needed} needed, {width - needed} only ride along"),
        ("results", f"{len(request.outputs)} columns"),
    ]
    if road.shipped.stand_ins:
        told.append(("keys", "compared by a text that Spark makes of them, for Arrow would compare otherwise"))
    if not request.by:
        cut = (f"no key: cut by time over {tasks} tasks, in one pass if windows are short against a task's share, otherwise in "
               f"two; one task if there are fewer than {2 * settings.paneRows:,} rows")
        told.append(("tasks", cut if tasks > 1 else "no key and one shuffle partition: one task"))
    else:
        told.append(("tasks", f"one shuffle by {', '.join(request.by)}; a key is in one task"))
        if tasks > 1 and settings.heavyRows:
            looks = "a sample of the keys is looked at first" if may_be_heavy(road) else "there are too few rows for one"
            told.append(("heavy keys", f"of more than {settings.heavyRows:,} rows are cut by time: {looks}"))
    if tasks > 1 and (not request.by or settings.heavyRows):
        told.append(("pieces", "of a key that is cut are passed over row by row for each window: no slices, no pass for several"))
    told.append(("sort", "in the task, by key and time, in compiled code; Spark does not sort"))
    told.append(("memory", f"a task holds {settings.heldBytes >> 20} MB of its rows, then goes through sorted runs on disk"))
    return SparkExplanation(road.job.plan, tuple(told))
