"""Partial aggregation: panes, pairs and Cutty slices, and the shared plan of many queries (slickdeque-2018 sections 2.1, 2.3).

A query is a (range, slide): every `slide` it asks for the aggregate of the last `range`. A slice is a stretch of time that no
window begins or ends in, so that its rows can be aggregated once and used by every window that holds it.

    slide 4, range 6                 0       4       8      12
    panes   gcd of both: 2           |---|---|---|---|---|---|      2 a slide; a window holds 3
    pairs   slide - f2, f2: 2, 2     |---|---|---|---|---|---|      2 a slide; f2 = range mod slide
    Cutty   only where windows begin     |-------|-------|---       1 a slide; a window may end inside a slice

Several queries: the composite slide is the least common multiple of the slides; every slide is repeated to fill it, and all
their edges are marked in it. At an edge that is a multiple of a query's slide, that query answers; with Cutty slices it may
answer between two edges. Executors cut rows at the marks (`SharedPlan.marks`), which say the same without being written out.

A row at the moment of an edge lies behind it or before it, as `closed` says. With "both" and "neither" that is not the same
where windows begin and where they end: such a moment is cut on both sides, and is a slice of its own.
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import gcd, lcm

from slidewise.errors import InputError
from slidewise.windows.bounds import sides

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
    beyond: bool = True
    """Whether a row at the edge's own moment lies before it."""


@dataclass(frozen=True, order=True)
class Mark:
    """An edge at `at` and at every `every` ticks from there, because windows begin or end there."""

    at: int
    every: int
    beyond: bool
    """Whether rows at the edge's own moment lie before it."""


@dataclass(frozen=True)
class SharedPlan:
    """Slices that serve a set of queries."""

    technique: str
    queries: tuple[Query, ...]
    composite: int
    """The composite slide: the pattern of edges repeats after it."""
    edges: tuple[Edge, ...]
    """Empty where there are too many to write out."""
    inside: tuple[Edge, ...] = ()
    """Places inside a slice at which queries answer: Cutty."""
    closed: str = "right"

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Where the slices are cut: what `edges` writes out for one composite slide."""
        return tuple(sorted({mark for query in self.queries for mark in _marks(query, self.technique, self.closed)}))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the slices of one composite slide, each ending at its edge; 0: the moment of an edge alone."""
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
        left, right = sides(self.closed)
        places = sorted((edge.at % self.composite, edge.beyond) for edge in self.edges)

        def begun_before(t: int, beyond: bool) -> int:
            """Slices that begin before such an edge at t, counted from 0 on."""
            return t // self.composite * len(places) + bisect_left(places, (t % self.composite, beyond))

        ends = range(query.origin - query.offset, query.origin - query.offset + self.composite, query.slide)
        return max(begun_before(end, right) - begun_before(end - query.range, not left) for end in ends)

    @property
    def separate(self) -> int:
        """Slices a composite slide would have if every query had its own."""
        return _separate(self.queries, self.composite, self.technique, self.closed)


def shared_plan(queries, technique: str = "pairs", closed: str = "right") -> SharedPlan:
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
    if _separate(queries, composite, technique, closed) > MOST_EDGES:
        return SharedPlan(technique, queries, composite, (), closed=closed)
    _, right = sides(closed)
    places = {place for q in queries for mark in _marks(q, technique, closed) for place in _repeated(mark, composite)}
    ends = {place for q in queries for place in _repeated(Mark(q.origin - q.offset, q.slide, right), composite)}

    def edges(of: set[tuple[int, bool]]) -> tuple[Edge, ...]:
        found = sorted((at or composite, beyond) for at, beyond in of)
        return tuple(Edge(at, _answering(queries, at) if beyond == right else (), beyond) for at, beyond in found)

    return SharedPlan(technique, queries, composite, edges(places), edges(ends - places), closed)


def _repeated(mark: Mark, composite: int) -> list[tuple[int, bool]]:
    return [(at % composite, mark.beyond) for at in range(mark.at, mark.at + composite, mark.every)]


def _answering(queries: tuple[Query, ...], at: int) -> tuple[str, ...]:
    return tuple(q.name for q in queries if (at - q.origin + q.offset) % q.slide == 0)


def best_plan(queries, closed: str = "right") -> SharedPlan:
    """The plan with the fewest slices. Panes are never fewer than pairs, and pairs never fewer than Cutty slices; of equals
    pairs, whose windows end with a slice: a window that ends inside one costs a combine more to answer."""
    queries = tuple(queries)
    pairs, cutty = shared_plan(queries, "pairs", closed), shared_plan(queries, "cutty", closed)
    return cutty if cutty.edges and len(cutty.edges) < (len(pairs.edges) or MOST_EDGES) else pairs


def _separate(queries: tuple[Query, ...], composite: int, technique: str, closed: str) -> int:
    """Slices in a composite slide if every query had its own."""
    return sum(composite // mark.every for query in queries for mark in _marks(query, technique, closed))


def _marks(query: Query, technique: str, closed: str) -> set[Mark]:
    """Where one query's windows cut time."""
    left, right = sides(closed)
    end = (query.origin - query.offset) % query.slide
    start = (end - query.range) % query.slide
    if technique == "panes":
        pane = gcd(query.range, query.slide)
        return {Mark(start % pane, pane, not left), Mark(end % pane, pane, right)}
    if technique == "pairs":
        return {Mark(start, query.slide, not left), Mark(end, query.slide, right)}
    return {Mark(start, query.slide, not left)}
