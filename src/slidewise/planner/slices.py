"""Partial aggregation: panes, pairs and Cutty slices, and the shared plan of many queries (slickdeque-2018 sections 2.1, 2.3).

A query is a (range, slide): every `slide` it asks for the aggregate of the last `range`. A slice is a stretch of time that no
window begins or ends in, so that its rows can be aggregated once and used by every window that holds it.

    slide 4, range 6                 0       4       8      12
    panes   gcd of both: 2           |---|---|---|---|---|---|      2 a slide; a window holds 3
    pairs   slide - f2, f2: 2, 2     |---|---|---|---|---|---|      2 a slide; f2 = range mod slide
    Cutty   only where windows begin     |-------|-------|---       1 a slide; a window may end inside a slice

Several queries: the composite slide is the least common multiple of the slides; every slide is repeated to fill it, and all
their edges are marked in it. At an edge that is a multiple of a query's slide, that query answers.
"""

from dataclasses import dataclass
from math import gcd, lcm

from slidewise.errors import InputError

TECHNIQUES = ("panes", "pairs", "cutty")
MOST_EDGES = 4096
"""A composite slide with more edges is not written out: slides of 7 s and 1 h meet only after 7 h, but odd ones never do."""


@dataclass(frozen=True)
class Query:
    """Every `slide`, the aggregate of the last `range`."""

    name: str
    range: int
    slide: int
    origin: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Edge:
    """An end of a slice, as its place in the composite slide, and the queries that answer there."""

    at: int
    answers: tuple[str, ...]


@dataclass(frozen=True)
class SharedPlan:
    """Slices that serve a set of queries."""

    technique: str
    queries: tuple[Query, ...]
    composite: int
    """The composite slide: the pattern of edges repeats after it."""
    edges: tuple[Edge, ...]
    """Empty where there are too many to write out."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the slices of one composite slide, each ending at its edge."""
        if not self.edges:
            return ()
        before = (self.edges[-1].at - self.composite, *(edge.at for edge in self.edges[:-1]))
        return tuple(edge.at - start for edge, start in zip(self.edges, before))

    @property
    def window(self) -> int:
        """Slices that the longest window holds: what must be kept."""
        return max((self.slices_of(query) for query in self.queries), default=0)

    def slices_of(self, query: Query) -> int:
        """Slices in one window of a query, the most there are at any of its answers."""
        most = 0
        for answer in range(0, self.composite, query.slide):
            end = query.origin + answer - query.offset
            most = max(most, self._edges_between(end - query.range, end))
        return max(most, 1)

    def _edges_between(self, start: int, end: int) -> int:
        """Edges in (start, end]."""
        count = 0
        for edge in self.edges:
            count += (end - edge.at) // self.composite - (start - edge.at) // self.composite
        return count

    @property
    def separate(self) -> int:
        """Slices a composite slide would have if every query had its own."""
        return sum(_fragments(query, self.technique) * (self.composite // query.slide) for query in self.queries)


def shared_plan(queries, technique: str = "pairs") -> SharedPlan:
    """The slices that serve all these queries, by one of the techniques.

    >>> plan = shared_plan([Query("Q1", 6, 2), Query("Q2", 8, 4)])
    >>> plan.composite, plan.lengths, [edge.answers for edge in plan.edges]
    (4, (2, 2), [('Q1',), ('Q1', 'Q2')])
    """
    queries = tuple(queries)
    if technique not in TECHNIQUES:
        raise InputError(f"no slicing technique {technique!r}; there are {', '.join(TECHNIQUES)}")
    if not queries:
        raise InputError("a shared plan needs at least one query")
    composite = lcm(*(query.slide for query in queries))
    if sum(_fragments(query, technique) * (composite // query.slide) for query in queries) > MOST_EDGES:
        return SharedPlan(technique, queries, composite, ())
    marked: set[int] = set()
    for query in queries:
        for place in _starts_and_ends(query, technique):
            marked |= {(place + k * query.slide) % composite for k in range(composite // query.slide)}
    edges = []
    for place in sorted(place or composite for place in marked):
        answers = [q.name for q in queries if (place - q.origin + q.offset) % q.slide == 0]
        edges.append(Edge(place, tuple(answers)))
    return SharedPlan(technique, queries, composite, tuple(edges))


def best_plan(queries, ends_inside: bool = False) -> SharedPlan:
    """The plan with the fewest slices; Cutty only where a window may end inside a slice."""
    queries = tuple(queries)
    plans = [shared_plan(queries, technique) for technique in (TECHNIQUES if ends_inside else TECHNIQUES[:2])]
    return min(reversed(plans), key=lambda plan: len(plan.edges) or MOST_EDGES)


def _fragments(query: Query, technique: str) -> int:
    """Slices in one slide of a query."""
    if technique == "panes":
        return query.slide // gcd(query.range, query.slide)
    return 2 if technique == "pairs" and query.range % query.slide else 1


def _starts_and_ends(query: Query, technique: str) -> list[int]:
    """Edges of one query in its own slide."""
    end = (query.origin - query.offset) % query.slide
    start = (end - query.range) % query.slide
    if technique == "panes":
        pane = gcd(query.range, query.slide)
        return sorted((end + k * pane) % query.slide for k in range(query.slide // pane))
    if technique == "pairs":
        return sorted({start, end})
    return [start]
