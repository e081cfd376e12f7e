"""Both passes over a giant key on a handful of example rows: afterwards everything they need is compiled and filed."""

from __future__ import annotations

import contextlib

import numpy as np
import pyarrow as pa

from slidewise.engines.spark.chunk import Before, Piece, Work, answer, answer_moments
from slidewise.engines.spark.chunk_stream import LongKey
from slidewise.engines.spark.giant_panes import summary_of
from slidewise.engines.spark.giant_zones import Key
from slidewise.engines.spark.travel import example, prepared, quietly
from slidewise.planner.plan import Plan


def prepare_pieces(plan: Plan, types: pa.Schema) -> None:
    """Compile what pieces of a key need, unless this host has done so."""
    prepared(plan, lambda: rehearse(plan, types), what="pieces")


def rehearse(plan: Plan, types: pa.Schema) -> None:
    work = Work.of(plan, types)
    with quietly(), contextlib.suppress(Exception):  # a user's function may not like the examples
        tables = [pa.table({f.name: pa.array([example(f.type, k) for k in rows], f.type) for f in types})
                  for rows in ((1, 1, 2), (3, 3, 4), (5, 5, 6))]
        bounds = [0, 2, 3]
        summaries = [summary_of(work, k, table, work.times(table), bounds, (work.times(table)[0], work.times(table)[-1]))
                     for k, table in enumerate(tables)]
        key = Key(work, summaries)
        long = LongKey(work)
        for number, table in enumerate(tables):
            times, needs = work.times(table), key.needs(number)
            piece = Piece(table, times, needs.position, needs.begins, needs.ends, needs.next_time)
            before = {
                name: Before(tables[0] if number and need.left else None, need.middle) for name, need in needs.windows.items()
            }
            moments = np.unique(times) if plan.request.as_of else None
            if moments is None:
                answer(work, piece, before)
            else:
                answer_moments(work, piece, before, moments)
            long.push(table, needs.next_time, moments)
