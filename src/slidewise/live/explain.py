"""The plan of a stream, or of `Live`, in words. Reads the StreamSpec that the keyed engine runs on, with the planner's choice for
each step, and what the structures say of themselves (structures.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import algorithm
from slidewise.live.late import LARGE, PATIENCE
from slidewise.live.spec import Step, StreamSpec
from slidewise.live.structures import STRUCTURES
from slidewise.planner.explain import rule
from slidewise.planner.ladder import Choice
from slidewise.windows.duration import text_of


@dataclass(frozen=True)
class StreamExplanation:
    """The plan of a stream, or of `Live`, in words."""

    spec: StreamSpec
    buckets: int | None = None

    def as_dict(self) -> dict[str, Any]:
        spec, asked = self.spec, self.spec.request
        count = len(asked.windows), len(asked.aggs)
        key = f"key {', '.join(asked.by)}" if asked.by else "one key"
        what = "Live" if spec.arrival else "stream"
        return {
            "call": f"{what}: {count[0]} windows x {count[1]} aggregates; time {asked.time}, {key}, closed {asked.closed}, "
            f"ties {asked.ties}, {'asked for at any time' if spec.arrival else f'emit {asked.emit}'}",
            "windows": {name: {"window": str(w), "rows": rule(w, asked)} for name, w in asked.windows.items()},
            "stream": self._stream(),
            "steps": [self._step(step) for step in spec.steps],
        }

    def _stream(self) -> dict[str, str]:
        spec = self.spec
        if spec.arrival and spec.delay is None:
            return {"results": "when they are asked for", "late": "taken in however late they come", "kept": "until expire()"}
        told = {
            "results": "when they are asked for"
            if spec.arrival
            else "at once; again, with a higher revision, where a later event changes them"
            if spec.results == "eager"
            else "once, when the watermark has passed them",
            "watermark": f"{self._length(spec.delay)} behind the youngest event",
            "late": {
                "correct": f"correct results back to {self._length(spec.keep)} behind the watermark; older ones are "
                + ("counted and dropped" if spec.arrival else "put aside"),
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

    def _step(self, step: Step) -> dict[str, Any]:
        reads = ", ".join(step.bound.columns) or "rows"
        where = f" where {step.bound.where}" if step.bound.where else ""
        names = [view.aggregate for view in step.views]
        late = step.choices.late
        return {
            "results": f"{', '.join(names)} <- {step.bound.operator.name}({reads}){where}",
            "aggregates": names,
            "shared": f"one state for {len(names)} aggregates" if len(names) > 1 else "",
            **_kept_in(step.choices.kept, step),
            "compiled": "yes" if step.typed.compiled else f"no: {step.typed.reason}",
            "late": None if late is None else {"for": self._late_keys(step), **_kept_in(late, step)},
        }

    def _late_keys(self, step: Step) -> str:
        lifetime = any(window.kind == "lifetime" for window in self.spec.ticks.values())
        return _LATE_KEYS + (_UNTIL_EXPIRED if lifetime and step.choices.tree else "")

    def __str__(self) -> str:
        told = self.as_dict()
        width = max(len(name) for name in told["windows"])
        lines = [told["call"], "", "Windows"]
        lines += [f"  {name:<{width}}  {window['window']}: {window['rows']}" for name, window in told["windows"].items()]
        lines += ["", "Stream", *(f"  {word:<10} {text}" for word, text in told["stream"].items())]
        lines += ["", "Steps"]
        for number, step in enumerate(told["steps"], 1):
            lines.append(f"  {number}. {step['results']}")
            lines += _lines(step, ("shared", "algorithm", "structure", "because", "cost", "state", "compiled"))
            if step["late"] is not None:
                lines.append(f"     {step['late']['for']}")
                if step["late"]["name"] != step["name"]:
                    lines += _lines(step["late"], ("algorithm", "structure", "because", "cost", "state"))
                    continue
                why = {name: why for name, why in step["late"]["rejected"].items() if step["rejected"].get(name) != why}
                lines += _lines({"algorithm": f"{step['name']}, as others", "rejected": why}, ("algorithm",))
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True)
class WindowExplanation:
    """The plan of one live window in words."""

    operator: str
    choice: Choice
    typed: TypedOperator | None
    """None: types are not known before the first event."""

    def as_dict(self) -> dict[str, Any]:
        info, typed = algorithm(self.choice.algorithm).info, self.typed
        each = "partials" if typed is None else "Python objects"
        each = f"partials of {typed.state.row_bytes} bytes" if typed is not None and typed.compiled else each
        compiled = "" if typed is None else "yes" if typed.compiled else f"no: {typed.reason}"
        return {
            "call": f"window of {self.operator}; events come "
            + ("in any order" if info.order == "any" else "in the order of time"),
            "algorithm": f"{info.name} ({info.paper})",
            "name": info.name,
            "because": self.choice.reason,
            "cost": "combines: " + ", ".join(f"{operation} {count}" for operation, count in info.bounds.items()),
            "state": f"{info.stores} {each}, n entries in the window",
            "compiled": compiled,
            "rejected": dict(self.choice.rejected),
        }

    def __str__(self) -> str:
        told = self.as_dict()
        return "\n".join([told["call"], *_lines(told, ("algorithm", "because", "cost", "state", "compiled"))])

    __repr__ = __str__


_LATE_KEYS = f"a key of {LARGE:,} events and more, once late ones have moved {PATIENCE} times as many as it holds"
_UNTIL_EXPIRED = ", until expire() is called: what that lets go of still counts in a lifetime, and no tree would hold it"


def _kept_in(choice: Choice, step: Step) -> dict[str, Any]:
    """What a step is kept in, why, at which cost, and what was passed over."""
    structure, typed = STRUCTURES[choice.algorithm], step.typed
    each = f"partials of {typed.state.row_bytes} bytes" if typed.compiled else "Python objects"
    return {
        "algorithm": f"{choice.algorithm} ({choice.paper})",
        "name": choice.algorithm,
        "structure": structure.told,
        "because": choice.reason,
        "cost": "combines: " + ", ".join(f"{count} for {operation}" for operation, count in structure.cost.items()),
        "state": f"{structure.partials} {each} a key of n events" if structure.partials else "the events alone",
        "rejected": dict(choice.rejected),
    }


def _lines(told: dict[str, Any], words: tuple[str, ...]) -> list[str]:
    lines = [f"       {word:<10} {told[word]}" for word in words if told[word]]
    alike: dict[str, list[str]] = {}
    for name, why in told["rejected"].items():
        alike.setdefault(why, []).append(name)
    return lines + [f"       {'not':<10} {', '.join(names)}: {why}" for why, names in alike.items()]
