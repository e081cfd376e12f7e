"""The rungs: for one operator and its windows, the first algorithm that can serve it, and why the ones above could not.

A new rung is one entry in RUNGS; the last serves everything. This is the only place where algorithms are named on their way into
a plan: engines take the name from there. What an algorithm can serve, it says itself (`algorithms.serves`); what it is good for is
said here, by preference:

    throughput   least time an event over a whole run; for compiled operators that is time measured, not combines counted
    latency      least work for the worst single event
    memory       fewest partials
"""

from collections.abc import Callable
from dataclasses import dataclass

from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import MODULES, algorithm, serves
from slidewise.errors import UnsupportedError


@dataclass(frozen=True)
class Task:
    """What an algorithm is wanted for."""

    operator: TypedOperator
    windows: int = 1
    """How many windows share their ends, and so could share one pass."""
    prefer: str = "throughput"
    order: str = "in"
    """`in`: events come (or were sorted) by time; `any`: they come as they come."""
    kept: bool = False
    """Whether the events of a key are kept beside it, sorted (streams, `Live`): what lies behind a late one can be computed again,
    and any stretch of them is asked for."""
    single: bool = False
    """Whether late events come one by one, to a key that holds many, and answers are asked for in between."""
    places: str = ""
    """What goes by the places of events, so that no stretch of times says it; empty where nothing does."""
    folded: str = ""
    """What still counts events that are kept no more, so that a tree would not hold them; empty where nothing does."""
    longest: int | None = None
    """The most events a window can hold, where that is known."""
    among: tuple[str, ...] = ()
    """The algorithms that whoever asks has a structure for; empty: all."""


@dataclass(frozen=True)
class Rung:
    """One algorithm, and when to take it."""

    algorithm: str
    because: Callable[[Task], str]
    """Why it is taken where it can be."""
    refuse: Callable[[Task], str | None]
    """Why it is not the right one here, or None."""


@dataclass(frozen=True)
class Choice:
    """The algorithm of a step, and how it came to it."""

    algorithm: str
    reason: str
    rejected: tuple[tuple[str, str], ...] = ()
    """Algorithms above it on the ladder, and why they were passed over."""

    @property
    def paper(self) -> str:
        return algorithm(self.algorithm).info.paper


def _wrong_order(rung: Rung, task: Task) -> str | None:
    if rung.algorithm not in MODULES:
        return "not part of this build"
    info = algorithm(rung.algorithm).info
    if task.order == "any" and info.order == "in" and not task.kept:
        return "events come out of order, and it only takes them in order"
    if task.kept and "query_range" not in info.offers:
        return "it answers for its whole window, and any stretch of a key's events is asked for, late ones among them"
    return None


def _not_there(rung: Rung, task: Task) -> str | None:
    return "no structure of this engine is built on it" if task.among and rung.algorithm not in task.among else None


def _tree(task: Task) -> str | None:
    if task.order == "in":
        return "events are in order: an algorithm that only appends is cheaper than a tree"
    if task.kept and not task.single:
        return (
            "the events are kept in order anyhow, and late ones merged once a batch: a tree for each key would hold them again, "
            "and groups numbers by arrival, so that the last bits of floats could differ after a restart"
        )
    if task.places:
        return f"{task.places} goes by the places of events, and a tree is searched by time"
    if task.folded:
        return f"{task.folded} counts events that the watermark has let go of, and a tree would not hold them"
    return None


def _runs(task: Task) -> str | None:
    if not task.kept:
        return "it can answer for any range, and only whole windows are asked for"
    if task.longest is not None and task.longest <= FEW_EVENTS:
        return f"no window holds more than {task.longest} events: partials of them would save nothing"
    return None


def _recalc(task: Task) -> str:
    if task.kept and task.longest is not None:
        return f"a window is at most {task.longest} events, combined again for each answer; nothing is kept beside them"
    return "serves everything"


def _always(task: Task) -> str | None:
    return None


def _deque(task: Task) -> str | None:
    if task.prefer == "latency":
        return "one event may drop all candidates at once: worst n"
    if task.prefer == "throughput" and task.operator.compiled and task.windows < MANY_WINDOWS:
        return (
            "its drops are hard to predict for a processor; for a compiled operator and fewer than "
            f"{MANY_WINDOWS} windows plain combines are faster"
        )
    return None


def _stacks(task: Task) -> str | None:
    return "the event that turns the stack costs n combines" if task.prefer == "latency" else None


MANY_WINDOWS = 6
"""From this many windows on, one deque for all beats a pass for each."""

FEW_EVENTS = 8
"""So few events are combined again as fast as any partials of them are found."""

RUNGS: tuple[Rung, ...] = (
    Rung("fiba", lambda t: "events come in any order: amortised O(log d) for one that is d late", _tree),
    Rung(
        "subtract_on_evict",
        lambda t: "exactly invertible: one combine in, one inverse out, no combine to answer",
        _always,
    ),
    Rung(
        "slick_deque",
        lambda t: (
            "selective: fewer than two combines an event"
            + (f", shared by {t.windows} windows" if t.windows > 1 else "")
        ),
        _deque,
    ),
    Rung("two_stacks_lite", lambda t: "any associative operator in amortised three combines and one array", _stacks),
    Rung("daba_lite", lambda t: "any associative operator; no single event costs more than a constant", _always),
    Rung(
        "flatfat",
        lambda t: (
            "any stretch of a key's events, by time or by place, from partials of runs beside them; grouped by rank alone, so that "
            "neither the order of arrival nor a restart changes a bit"
        ),
        _runs,
    ),
    Rung("recalc", _recalc, _always),
)


def choose(task: Task, asked: str = "auto") -> Choice:
    """The first rung that can serve; or the algorithm asked for, if it can."""
    if asked != "auto":
        algorithm(asked)  # complains of unknown names
        if task.among and asked not in task.among:
            raise UnsupportedError(
                f"no structure of this engine is built on {asked}; take {' or '.join(task.among)}, or leave the choice to \"auto\""
            )
        if why := serves(asked, task.operator, insist=True):
            raise UnsupportedError(why)
        return Choice(asked, "asked for")
    rejected: list[tuple[str, str]] = []
    for rung in RUNGS:
        why = (
            _wrong_order(rung, task)
            or serves(rung.algorithm, task.operator)
            or rung.refuse(task)
            or _not_there(rung, task)
        )
        if why is None:
            return Choice(rung.algorithm, rung.because(task), tuple(rejected))
        rejected.append((rung.algorithm, why))
    raise UnsupportedError(f"no algorithm serves {task.operator.name}")
