"""A partition that is larger than what a task may hold: sorted runs on disk, merged as they are read back.

    batches --held, full--> sort by key and time --> a run on disk
    runs --some rows of each--> what is before every row still on disk --> tables in order
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_ROWS = 1 << 16
"""Rows of a run that are read at once."""


class Runs:
    """Rows on disk, in sorted runs. Use with `with`: the files go when it ends."""

    def __init__(self, by: list[int]):
        self.by = by
        self._files = ExitStack()
        self._paths: list[Path] = []
        self._folder: Path | None = None

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *error) -> None:
        self._files.close()

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, table: pa.Table) -> None:
        """Sort these rows and write them."""
        if self._folder is None:
            local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
            local = local if local is not None and os.path.isdir(local) else None
            folder = tempfile.TemporaryDirectory(prefix="slidewise-", dir=local)
            self._folder = Path(self._files.enter_context(folder))
        path = self._folder / f"{len(self._paths)}.arrow"
        ordered = table.take(self._order(table))
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(ordered, max_chunksize=_ROWS)
        self._paths.append(path)

    def _order(self, table: pa.Table) -> pa.Array:
        keys = pa.table([table.column(k) for k in self.by], names=[str(k) for k in range(len(self.by))])
        return pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names])

    def merged(self) -> Iterator[pa.Table]:
        """All rows in order, some at a time."""
        readers = [self._files.enter_context(pa.ipc.open_file(pa.memory_map(str(path)))) for path in self._paths]
        unread = [iter(range(reader.num_record_batches)) for reader in readers]
        heads: list[pa.Table | None] = [None] * len(readers)
        open_runs = set(range(len(readers)))
        while True:
            for run in sorted(open_runs):
                if heads[run] is None or not len(heads[run]):
                    number = next(unread[run], None)
                    if number is None:
                        open_runs.discard(run)
                        heads[run] = None
                    else:
                        heads[run] = pa.Table.from_batches([readers[run].get_batch(number)])
            held = [run for run, head in enumerate(heads) if head is not None and len(head)]
            if not held:
                return
            table = pa.concat_tables([heads[run] for run in held])
            order = self._order(table).to_numpy()
            ends = np.cumsum([len(heads[run]) for run in held])
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            # Rows behind the last one held of some run may come after rows of that run that are still on disk.
            safe = int(min(place[end - 1] for end in ends)) + 1
            yield table.take(pa.array(order[:safe]))
            given = np.searchsorted(ends, order[:safe], side="right")
            for k, run in enumerate(held):
                heads[run] = heads[run].slice(int((given == k).sum()))
