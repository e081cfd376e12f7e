"""The rungs: for one operator and its windows, the first algorithm that can serve it, and why the ones above could not.

A new rung is one entry in RUNGS. `choose` is the only place where algorithms are named on their way into a plan; engines take the
name from the plan.
"""

from collections.abc import Callable
from dataclasses import dataclass

from slidewise.algebra.typed import TypedOperator
from slidewise.algorithms import MODULES, algorithm


@dataclass(frozen=True)
class Rung:
    """One algorithm, and when to take it."""

    algorithm: str
    reason: str
    """Why it is taken where it can be."""
    refuse: Callable[[TypedOperator, str], str | None]
    """(operator, preference) -> why not, or None."""


@dataclass(frozen=True)
class Choice:
    algorithm: str
    reason: str
    rejected: tuple[tuple[str, str], ...]
    """Algorithms above it on the ladder, and why they could not serve."""


def _never(op: TypedOperator, prefer: str) -> str | None:
    return None


RUNGS: tuple[Rung, ...] = (
    Rung("two_stacks_lite", "amortised constant for any associative operator, and one array", _never),
    Rung("recalc", "serves everything", _never),
)


def choose(op: TypedOperator, prefer: str = "throughput", asked: str = "auto") -> Choice:
    """The first rung that can serve this operator; or the one asked for, if it can."""
    if asked != "auto":
        algorithm(asked)  # complains of unknown names
        return Choice(asked, "asked for", ())
    rejected = []
    for rung in RUNGS:
        why = f"{rung.algorithm} is not part of this build" if rung.algorithm not in MODULES else rung.refuse(op, prefer)
        if why is None:
            return Choice(rung.algorithm, rung.reason, tuple(rejected))
        rejected.append((rung.algorithm, why))
    raise AssertionError("the last rung serves everything")
