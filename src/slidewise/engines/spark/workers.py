"""Live engines that outlast a micro-batch: a cache in the Python worker, bounded by bytes.

Spark keeps Python workers between micro-batches, and their modules with them. But a partition may come to another worker
(on two cores half of them do), idle workers are ended after a minute, and a batch may be tried again or be continued from
another checkpoint. So an engine in the cache is only ever a shortcut to what the log says:

    its uuid is the log's tip                  hit: nothing is read
    its uuid is in the log's lineage           catch-up: only the entries that came since are read
    otherwise                                  replay: a new engine absorbs the whole log

While a batch runs, its engine is taken out; it goes back under its new uuid after the log has been written. A batch that
fails half-way leaves no half-changed engine behind.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from slidewise.engines.spark.log import Log, Span

DEFAULT_BYTES = 1 << 30


@dataclass
class Live:
    """An engine, the state it is in, and the young log entries it was made of (so that merging them reads nothing)."""

    engine: Any
    tip: bytes
    tail: dict[Span, pa.Table] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return int(self.engine.nbytes) + sum(table.nbytes for table in self.tail.values())


@dataclass
class Traffic:
    """What bringing engines to the present cost."""

    hits: int = 0
    catch_ups: int = 0
    replays: int = 0


class Cache:
    """Engines by bucket, least recently used first out."""

    def __init__(self, limit: int = DEFAULT_BYTES):
        self.limit = limit
        self._live: OrderedDict[Hashable, Live] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}

    @property
    def nbytes(self) -> int:
        return sum(self._sizes.values())

    def __len__(self) -> int:
        return len(self._live)

    def take(
        self,
        key: Hashable,
        log: Log,
        build: Callable[[], Any],
        traffic: Traffic,
        absorb: Callable[[Any, pa.Table], None] = lambda engine, table: engine.absorb(table),
    ) -> Live:
        """The engine of a bucket in the state that its log leads to; it is out of the cache until `give` is called."""
        live = self._live.pop(key, None)
        self._sizes.pop(key, None)
        missing = None if live is None else log.since(live.tip)
        if live is not None and missing == []:
            traffic.hits += 1
            return live
        if live is None or missing is None:
            live, missing = Live(build(), b""), log.head.segments
            traffic.replays += bool(missing)
        else:
            traffic.catch_ups += 1
        for segment in missing:
            table = log.read(segment)
            absorb(live.engine, table)
            if segment.nbytes < log.full:
                live.tail[segment.span] = table
        live.tail = log.put_together(live.tail)
        live.tip = log.tip
        return live

    def give(self, key: Hashable, live: Live, log: Log) -> None:
        """Put an engine (back) into the cache, after its log was written."""
        mergeable = {segment.span for segment in log.head.segments if segment.nbytes < log.full}
        live.tail = {span: table for span, table in live.tail.items() if span in mergeable}
        live.tip = log.tip
        self._live[key] = live
        self._sizes[key] = live.nbytes
        while self._live and self.nbytes > self.limit:
            oldest, _ = self._live.popitem(last=False)
            del self._sizes[oldest]

    def clear(self) -> None:
        self._live.clear()
        self._sizes.clear()


CACHE = Cache()
"""The one cache of this worker."""
