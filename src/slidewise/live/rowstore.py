"""The stored columns of events, as Arrow chunks: what results that come again, the log and carried values are read from.

Every event has a number that never changes. Chunks are in the order of numbers; small neighbours are joined as they come
(each row is copied O(log) times), and when more rows are dead than alive the living ones are copied together.
"""

import numpy as np
import pyarrow as pa

JOIN = 8
"""This many neighbours of about the same size become one chunk."""

LARGEST = 2**28
"""Bytes of a chunk: beyond that nothing is gained, and text columns have offsets of 32 bits."""


class RowStore:
    """Rows by number."""

    def __init__(self, schema: pa.Schema):
        self.schema = schema
        self.next = 0
        self.rows = 0
        self.live = 0
        self._tables: list[pa.Table] = []
        self._numbers: list[np.ndarray] = []

    def append(self, table: pa.Table) -> np.ndarray:
        """Keep these rows; their numbers."""
        numbers = np.arange(self.next, self.next + table.num_rows)
        if table.num_rows:
            self.next += table.num_rows
            self.rows += table.num_rows
            self.live += table.num_rows
            self._tables.append(table.combine_chunks())
            self._numbers.append(numbers)
            self._join()
        return numbers

    def _join(self) -> None:
        while len(self._tables) >= JOIN:
            sizes = [len(numbers) for numbers in self._numbers[-JOIN:]]
            if max(sizes) > JOIN * sizes[-1] or sum(table.nbytes for table in self._tables[-JOIN:]) > LARGEST:
                return
            self._tables[-JOIN:] = [pa.concat_tables(self._tables[-JOIN:]).combine_chunks()]
            self._numbers[-JOIN:] = [np.concatenate(self._numbers[-JOIN:])]

    def forget(self, count: int) -> bool:
        """So many rows are dead; whether it is time to `keep` only the others."""
        self.live -= count
        return self.rows > 2 * self.live + 256

    def keep(self, numbers: np.ndarray) -> None:
        """Copy the rows that are still wanted together; numbers stay."""
        numbers = np.sort(numbers)
        table = self.take(numbers).combine_chunks()
        self._tables, self._numbers = ([table], [numbers]) if len(numbers) else ([], [])
        self.rows = self.live = len(numbers)

    def take(self, numbers: np.ndarray, columns: list[str] | None = None) -> pa.Table:
        """Rows by number, in the order of the numbers given."""
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        if len(numbers) == 0 or not self._tables:
            return schema.empty_table()
        order = None
        if len(numbers) > 1 and not (numbers[1:] >= numbers[:-1]).all():
            order = np.argsort(numbers, kind="stable")
            numbers = numbers[order]
        firsts = np.array([chunk[0] for chunk in self._numbers])
        which = np.searchsorted(firsts, numbers, side="right") - 1
        cuts = np.flatnonzero(np.diff(which)) + 1
        parts = []
        for part, chunk in zip(np.split(numbers, cuts), which[np.concatenate([[0], cuts])], strict=True):
            table = self._tables[chunk] if columns is None else self._tables[chunk].select(columns)
            parts.append(table.take(pa.array(np.searchsorted(self._numbers[chunk], part))))
        found = pa.concat_tables(parts)
        if order is not None:
            back = np.empty(len(order), np.int64)
            back[order] = np.arange(len(order))
            found = found.take(pa.array(back))
        return found

    @property
    def nbytes(self) -> int:
        return sum(table.nbytes for table in self._tables) + sum(numbers.nbytes for numbers in self._numbers)
