"""The plan in words. Reads the Plan that executors read, and nothing else: what is not in the plan is not said.

`explain(plan)` gives an Explanation: print it, or take `as_dict()`.
"""

from dataclasses import dataclass

from slidewise.algorithms import algorithm
from slidewise.planner.plan import Pass, Plan, Step
from slidewise.planner.request import Request
from slidewise.planner.slices import SharedPlan
from slidewise.windows.bounds import CLOSED
from slidewise.windows.duration import text_of
from slidewise.windows.spec import Window

ENTRIES = {
    "rows": "an entry for each row",
    "runs": "rows that leave together are one entry",
    "slices": "an entry for each slice",
}


@dataclass(frozen=True)
class Explanation:
    """A plan in words."""

    plan: Plan

    def as_dict(self) -> dict:
        request = self.plan.request
        return {
            "call": _call(self.plan),
            "windows": {
                name: {"window": str(window), "rows": rule(window, request)}
                for name, window in request.windows.items()
            },
            "slices": None if self.plan.slices is None else slices_as_dict(self.plan.slices, self.plan),
            "steps": [step_as_dict(step, self.plan) for step in self.plan.steps],
        }

    def __str__(self) -> str:
        told = self.as_dict()
        lines = [told["call"], "", "Windows"]
        width = max(len(name) for name in told["windows"])
        for name, window in told["windows"].items():
            lines.append(f"  {name:<{width}}  {window['window']}: {window['rows']}")
        if told["slices"]:
            lines += ["", "Slices", *(f"  {line}" for line in told["slices"]["told"])]
        lines += ["", "Steps"]
        for number, step in enumerate(told["steps"], 1):
            lines.append(f"  {number}. {step['results']}")
            for word in ("shared", "runs", "algorithm", "because", "entries", "cost", "state", "compiled"):
                if step.get(word):
                    lines.append(f"       {word:<10} {step[word]}")
            for name, why in step["rejected"].items():
                lines.append(f"       {'not':<10} {name}: {why}")
        return "\n".join(lines)

    __repr__ = __str__


def explain(plan: Plan) -> Explanation:
    """What will be done, by which algorithm, at which cost, and why not otherwise."""
    return Explanation(plan)


def _call(plan: Plan) -> str:
    request = plan.request
    keys = f"key {', '.join(request.by)}" if request.by else "one key"
    what = "as_of" if request.as_of else "rolling"
    parts = [
        f"time {request.time} ({plan.clock.kind}{f', {plan.clock.zone}' if plan.clock.zone else ''})",
        keys,
        f"closed {request.closed}",
        *(() if request.as_of else (f"ties {request.ties}", f"emit {request.emit}")),
        f"prefer {request.prefer}",
    ]
    if request.order:
        parts.append(f"order {', '.join(request.order)}")
    if request.exclude_current:
        parts.append("without the row itself")
    count = len(request.windows), len(request.aggs)
    return (
        f"{what}: {count[0]} window{'s' if count[0] != 1 else ''} x {count[1]} aggregate{'s' if count[1] != 1 else ''}; "
        + ", ".join(parts)
    )


def rule(window: Window, request: Request) -> str:
    """The rows of a window, as an interval or in words."""
    left, right = CLOSED[request.closed]
    opening, closing = "[" if left else "(", "]" if right else ")"
    if window.kind in ("time", "tumbling"):
        return _time_rule(window, request, opening, closing)
    if window.kind == "rows":
        return _rows_rule(window, request)
    if window.kind == "lifetime":
        return f"everything up to t{closing}"
    if window.kind == "session":
        whole = request.emit == "slide"  # a session is given when it is over
        return f"since the last silence of more than {window.range.text}" + ("" if whole else f", up to t{closing}")
    if request.as_of:
        until = f"up to t{closing}"
    else:
        until = "up to the row" if right else "without the row"
    if window.kind == "delta":
        return f"while {window.column} stays within {window.range.text}, {until}"
    return f"{'from' if left else 'behind'} the last row with {window.column}{' on' if left else ''}, {until}"


def _time_rule(window: Window, request: Request, opening: str, closing: str) -> str:
    stepwise, back = window.kind == "tumbling" or window.slide is not None, window.range.text
    step = window.slide.text if window.slide else back
    end = "b" if stepwise else "t"
    end = f"{end} - {window.offset.text}" if window.offset else end
    days = " of local days" if window.calendar else ""
    multiple = f"multiple of {step}{'' if window.origin is None else f' from {window.origin}'}{days}"
    if request.emit == "slide":
        return f"{opening}{end} - {back}, {end}{closing}, b = every {multiple}"
    if window.kind == "tumbling":
        return f"{opening}b, t{closing}, b = the last {multiple} {'at or before' if opening == '[' else 'before'} t"
    tail = f", b = the last {multiple} at or before t" if window.slide else days
    return f"{opening}{end} - {back}, {end}{closing}{tail}"


def _rows_rule(window: Window, request: Request) -> str:
    left, right = CLOSED[request.closed]
    n = window.range.value
    by = "by (time, order)"
    moved = f"{window.offset.text} rows back" if window.offset else ""
    if window.slide:
        moved = f"the last of each {window.slide.text} rows" + (f", {moved}" if moved else "")
    if request.as_of:
        seen = f"the last {n} rows {by} up to t{']' if right else ')'}"
        return seen + (f", counted from {moved}" if moved else "")
    words = {
        (False, True): f"the last {n} rows {by}",
        (True, True): f"the row and the {n} before it {by}",
        (True, False): f"the {n} rows before the row {by}",
        (False, False): f"the {n - 1} rows before the row {by}",
    }[left, right]
    return words + (f", counted from {moved}" if moved else "")


def slices_as_dict(slices: SharedPlan, plan: Plan) -> dict:
    def text(ticks: int) -> str:
        if not ticks:
            return "the moment of an edge alone"
        return text_of(ticks * plan.clock.tick_ns) if plan.clock.kind == "instant" else f"{ticks:,}"

    edges, inside = (
        [{"at": e.at, "answers": list(e.answers), "beyond": e.beyond} for e in found] for found in (slices.edges, slices.inside)
    )
    told = [f"{slices.technique}: the pattern repeats every {text(slices.composite)} (the composite slide)"]
    if slices.edges:
        told.append(
            f"{len(slices.edges)} slice(s) of {', '.join(map(text, dict.fromkeys(slices.lengths)))} in it; "
            f"{slices.separate} if each window had its own"
        )
        for query in slices.queries:
            told.append(f"{query.name}: {slices.slices_of(query):,} slices a window")
    if slices.technique == "cutty":
        told.append("cut only where windows begin; a window that ends inside a slice takes what is there of it")
    return {
        "technique": slices.technique,
        "composite": slices.composite,
        "edges": edges,
        "inside": inside,
        "lengths": list(slices.lengths),
        "told": told,
    }


def step_as_dict(step: Step, plan: Plan) -> dict:
    typed, info = step.typed, algorithm(step.algorithm).info
    reads = ", ".join(step.bound.columns) or "rows"
    where = f" where {step.bound.where}" if step.bound.where else ""
    shared = ""
    if len(step.views) > 1:
        shared = f"one state for {len(step.views)} aggregates: {', '.join(v.bound.operator.name for v in step.views)}"
    together = [p for p in step.passes if len(p.windows) > 1]
    if together:
        shared += ("; " if shared else "") + "; ".join(f"one pass for {', '.join(p.windows)}" for p in together)
    return {
        "results": f"{', '.join(step.aggregates)} <- {step.bound.operator.name}({reads}){where}",
        "aggregates": list(step.aggregates),
        "shared": shared,
        "algorithm": f"{step.algorithm} ({info.paper})",
        "name": step.algorithm,
        "because": step.choice.reason,
        "entries": "; ".join(f"{', '.join(p.windows)}: {ENTRIES[p.entries]}" for p in _merged(step.passes)),
        "cost": _cost(step, info),
        "state": _state(step, info),
        "compiled": "" if typed.compiled else f"no: {typed.reason}",
        "rejected": dict(step.choice.rejected),
        "passes": [{"windows": list(p.windows), "entries": p.entries} for p in step.passes],
    }


def _merged(passes: tuple[Pass, ...]) -> list[Pass]:
    by_entries: dict[str, list[str]] = {}
    for one in passes:
        by_entries.setdefault(one.entries, []).extend(one.windows)
    return [Pass(tuple(names), entries) for entries, names in by_entries.items()]


def _cost(step: Step, info) -> str:
    bounds = ", ".join(f"{operation} {count}" for operation, count in info.bounds.items())
    merged = _merged(step.passes)
    parts = []
    for one in merged:
        for_ = "" if len(merged) == 1 else f"for {', '.join(one.windows)} "
        if one.entries == "slices":
            whom = "all windows" if len(merged) == 1 else "all of them"
            parts.append(f"{for_}1 combine an event, for {whom}; then for each window, a slice: {bounds}")
        elif one.entries == "runs":
            parts.append(f"{for_}1 combine an event and 1 an answer; then for each run: {bounds}")
        elif any(len(p.windows) > 1 for p in step.passes if p.entries == "rows"):
            parts.append(f"{for_}combines: {bounds}")
        else:
            parts.append(f"{for_}combines for each window: {bounds}")
    return "; ".join(parts)


def _state(step: Step, info) -> str:
    if not step.typed.compiled:
        return f"{info.stores} Python objects a key, n entries in the window"
    return f"{info.stores} partials of {step.typed.state.row_bytes} bytes a key, n entries in the window"
