"""The line of each key of a TOML text: what `tomllib` knows while it reads, and does not tell.

Only texts that `tomllib` has accepted come here, so nothing is checked; a path is a tuple of keys and, inside arrays, of
indices: `("windows", 2, "rows")`.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)+")
_SCALAR = re.compile(r"[^,\]}#\n]*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'', re.S)


def lines_of(text: str) -> dict[Path, int]:
    """The line (from 1) at which each key, table and array element first stands."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.found: dict[Path, int] = {}
        self.counts: dict[Path, int] = {}
        """Elements so far of each array of tables."""

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip_blank():
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.found

    def _header(self) -> Path:
        several = self.text.startswith("[[", self.at)
        start = self.at
        self.at += 2 if several else 1
        name = self._inside_arrays(self._key())
        if several:
            number = self.counts.get(name, 0)
            self.counts[name] = number + 1
            self._note(name, start)
            name = (*name, number)
        for length in range(1, len(name) + 1):
            self._note(name[:length], start)
        self.at = self.text.index("]", self.at) + (2 if several else 1)
        return name

    def _inside_arrays(self, key: Path) -> Path:
        """`[[a]]` then `[a.b]`: b belongs to the last element of a."""
        path: Path = ()
        for part in key[:-1]:
            path = (*path, part)
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        return (*path, key[-1])

    def _pair(self, table: Path) -> None:
        start = self.at
        key = self._key()
        for length in range(1, len(key) + 1):
            self._note((*table, *key[:length]), start)
        self.at += 1  # the equals sign
        self._value((*table, *key))

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip_spaces()
            quoted = _STRING.match(self.text, self.at) if self.text[self.at] in "\"'" else None
            match = quoted or _BARE.match(self.text, self.at)
            assert match is not None
            self.at = match.end()
            parts.append(match.group()[1:-1] if quoted else match.group())
            self._skip_spaces()
            if self.text[self.at] != ".":
                return tuple(parts)
            self.at += 1

    def _value(self, path: Path) -> None:
        self._skip_spaces()
        first = self.text[self.at]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline(path)
        else:
            match = (_STRING if first in "\"'" else _SCALAR).match(self.text, self.at)
            assert match is not None
            self.at = match.end()

    def _array(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self._skip_blank() and self.text[self.at] != "]":
            self._note((*path, number), self.at)
            self._value((*path, number))
            number += 1
            if self._skip_blank() and self.text[self.at] == ",":
                self.at += 1
        self.at += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        while self._skip_blank() and self.text[self.at] != "}":
            self._pair(path)
            if self._skip_blank() and self.text[self.at] == ",":
                self.at += 1
        self.at += 1

    def _note(self, path: Path, at: int) -> None:
        self.found.setdefault(path, self.text.count("\n", 0, at) + 1)

    def _skip_blank(self) -> bool:
        match = _BLANK.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return self.at < len(self.text)

    def _skip_spaces(self) -> None:
        while self.text[self.at] in " \t":
            self.at += 1
