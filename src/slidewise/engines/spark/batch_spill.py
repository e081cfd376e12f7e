"""A partition that is larger than what a task may hold: sorted runs on disk, merged as they are read back.

    batches --held, full--> sort by key and time --> a run on disk; many runs --merged--> one
    runs --some rows of each--> what is before every row still on disk --> tables in order

Of each run a part is held, a sixteenth of what was held when it was written. Sixteen runs are merged into a larger one, sixteen
of these again: so there are never more than some tens, and a row is written two or three times at most. Files are read and not
mapped: a limit on a worker's memory counts what it maps.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FAN = 16
"""Runs of a level that are merged into one of the next; the parts that a run is read in."""


class Runs:
    """Rows on disk, in sorted runs. Use with `with`: the files go when it ends."""

    def __init__(self, by: list[int]):
        self.by = by
        self._files = ExitStack()
        self._levels: list[list[Path]] = [[]]
        """Runs, those that were merged, those that were merged twice ..."""
        self._written = 0
        self._folder: Path | None = None

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *error) -> None:
        self._files.close()

    def __len__(self) -> int:
        return sum(map(len, self._levels))

    def add(self, table: pa.Table) -> None:
        """Sort these rows and write them."""
        step = max(1, len(table) // _FAN)
        self._levels[0].append(self._written_to(table.schema, [table.take(self._order(table))], step))
        for level, paths in enumerate(self._levels):
            if len(paths) == _FAN:
                self._levels[level] = []
                if level + 1 == len(self._levels):
                    self._levels.append([])
                self._levels[level + 1].append(self._written_to(table.schema, self._merged(paths), step))

    def _written_to(self, schema: pa.Schema, tables: Iterable[pa.Table], step: int) -> Path:
        if self._folder is None:
            local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
            local = local if local is not None and os.path.isdir(local) else None
            folder = tempfile.TemporaryDirectory(prefix="slidewise-", dir=local)
            self._folder = Path(self._files.enter_context(folder))
        self._written += 1
        path = self._folder / f"{self._written}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for table in tables:
                writer.write_table(table, max_chunksize=step)
        return path

    def _order(self, table: pa.Table) -> pa.Array:
        keys = pa.table([table.column(k) for k in self.by], names=[str(k) for k in range(len(self.by))])
        return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])

    def merged(self) -> Iterator[pa.Table]:
        """All rows in order, some at a time."""
        return self._merged([path for paths in self._levels for path in paths])

    def _merged(self, paths: list[Path]) -> Iterator[pa.Table]:
        with ExitStack() as files:
            parts = []
            for path in paths:
                reader = files.enter_context(pa.ipc.open_file(files.enter_context(pa.OSFile(str(path)))))
                parts.append(map(reader.get_batch, range(reader.num_record_batches)))
            yield from self._in_order([(pa.Table.from_batches([batch]) for batch in run) for run in parts])
        for path in paths:
            path.unlink()

    def _in_order(self, runs: list[Iterator[pa.Table]]) -> Iterator[pa.Table]:
        heads = {run: table for run, rest in enumerate(runs) if (table := next(rest, None)) is not None}
        while heads:
            held = list(heads)
            alone = self._alone(list(heads.values()))
            if alone is not None:
                given = {held[alone]: len(heads[held[alone]])}
                yield heads[held[alone]]
            else:
                table = pa.concat_tables(heads.values())
                order = self._order(table).to_numpy()
                ends = np.cumsum([len(head) for head in heads.values()])
                place = np.empty(len(order), np.int64)
                place[order] = np.arange(len(order))
                # Rows behind the last one held of some run may come after rows of that run that are still on disk.
                safe = int(min(place[end - 1] for end in ends)) + 1
                yield table.take(pa.array(order[:safe]))
                counts = np.bincount(np.searchsorted(ends, order[:safe], side="right"), minlength=len(held))
                given = dict(zip(held, counts.tolist()))
            for run, count in given.items():
                head = heads[run].slice(count)
                following = head if len(head) else next(runs[run], None)
                if following is None:
                    del heads[run]
                else:
                    heads[run] = following

    def _alone(self, heads: list[pa.Table]) -> int | None:
        """The head that lies before all others, if there is one: sorted input gives runs that follow each other."""
        order = self._order(pa.concat_tables([part for head in heads for part in (head.slice(0, 1), head.slice(len(head) - 1))]))
        first, second = order[0].as_py() // 2, order[1].as_py() // 2 if len(order) > 1 else 0
        return first if first == second else None
