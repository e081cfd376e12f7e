"""A stream's plan in words: it is not the planner's, for events come in any order and results come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slidewise.live.spec import StreamSpec
from slidewise.planner.explain import rule
from slidewise.windows.duration import text_of

STRUCTURE = "partials of runs of events by rank, FlatFAT with wide nodes (reactive-aggregator-2015)"
BECAUSE = "events come in any order and results come again: any stretch of a key's events must be answered at any time"
COST = "an event: O(1) combines; an event d places late: O(d); a result over n events: O(log n)"


@dataclass(frozen=True)
class StreamExplanation:
    """A stream's plan in words."""

    spec: StreamSpec
    buckets: int | None = None

    def as_dict(self) -> dict[str, Any]:
        spec, asked = self.spec, self.spec.request
        count = len(asked.windows), len(asked.aggs)
        key = f"key {', '.join(asked.by)}" if asked.by else "one key"
        return {
            "call": f"stream: {count[0]} windows x {count[1]} aggregates; time {asked.time}, {key}, closed {asked.closed}, "
            f"ties {asked.ties}, emit {asked.emit}",
            "windows": {name: {"window": str(w), "rows": rule(w, asked)} for name, w in asked.windows.items()},
            "stream": self._stream(),
            "structure": STRUCTURE,
            "because": BECAUSE,
            "cost": COST,
            "steps": [self._step(step) for step in spec.steps],
        }

    def _stream(self) -> dict[str, str]:
        spec = self.spec
        told = {
            "results": "at once; again, with a higher revision, where a later event changes them"
            if spec.results == "eager"
            else "once, when the watermark has passed them",
            "watermark": f"{self._length(spec.delay)} behind the youngest event",
            "late": {
                "correct": f"correct results back to {self._length(spec.keep)} behind the watermark; older ones are put aside",
                "side": "put aside, untouched",
                "drop": "dropped and counted",
            }[spec.late],
            "kept": f"events back to {self._length(spec.keep + spec.reach)} behind the watermark, with the columns "
            f"{', '.join(spec.stored_columns)}",
        }
        if self.buckets is not None:
            told["state"] = f"in {self.buckets} buckets of keys"
        return told

    def _length(self, ticks: Any) -> str:
        if ticks is None:
            return "nothing"
        clock = self.spec.clock
        return text_of(int(ticks) * clock.tick_ns) if clock.kind == "instant" else f"{ticks:,}"

    def _step(self, step: Any) -> dict[str, Any]:
        reads = ", ".join(step.bound.columns) or "rows"
        where = f" where {step.bound.where}" if step.bound.where else ""
        typed = step.typed
        names = [view.aggregate for view in step.views]
        state = f"{typed.state.row_bytes} bytes a partial" if typed.compiled else "a Python object a partial"
        return {
            "results": f"{', '.join(names)} <- {step.bound.operator.name}({reads}){where}",
            "aggregates": names,
            "shared": f"one state for {len(names)} aggregates" if len(names) > 1 else "",
            "state": state,
            "compiled": "yes" if typed.compiled else f"no: {typed.reason}",
        }

    def __str__(self) -> str:
        told = self.as_dict()
        width = max(len(name) for name in told["windows"])
        lines = [told["call"], "", "Windows"]
        lines += [f"  {name:<{width}}  {window['window']}: {window['rows']}" for name, window in told["windows"].items()]
        lines += ["", "Stream", *(f"  {word:<10} {text}" for word, text in told["stream"].items())]
        lines += ["", "Structure", f"  {told['structure']}", f"  because    {told['because']}", f"  combines   {told['cost']}"]
        lines += ["", "Steps"]
        for number, step in enumerate(told["steps"], 1):
            lines.append(f"  {number}. {step['results']}")
            lines += [f"       {word:<10} {step[word]}" for word in ("shared", "state", "compiled") if step[word]]
        return "\n".join(lines)
