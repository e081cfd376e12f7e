"""What must not be printed: passwords, tokens, addresses that hold them, and whatever a job took from the environment.

    masked(options)       the same with *** for values whose names say that they are secret
    Secrets.hide(text)    the same text with *** for every secret that is known
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

STARS = "***"
_NAMES = re.compile(
    r"pass(word|wd|phrase|code)?$|pwd$|secret|token|credential|(private|access|api|account|keystore).?key|jaas|sas\b|"
    r"connection.?string|authorization",
    re.I,
)
_IN_ADDRESS = re.compile(r"(?P<scheme>://)(?P<user>[^/@:\s]+):(?P<word>[^/@\s]+)@")
_IN_QUERY = re.compile(r"(?P<name>[?&;](?:user|password|pwd|token|sig|secret|accesskey)=)(?P<word>[^&;\s]+)", re.I)


def is_secret(name: str) -> bool:
    """Whether a key's name says that its value is secret."""
    return _NAMES.search(name) is not None


def masked(value: Any, name: str = "") -> Any:
    """A copy of a document with everything secret replaced."""
    if isinstance(value, dict):
        return {key: masked(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, name) for inner in value]
    if is_secret(name) or (isinstance(value, str) and value.lower().startswith("jdbc:")):
        return STARS
    return _without_passwords(value) if isinstance(value, str) else value


def _without_passwords(text: str) -> str:
    text = _IN_ADDRESS.sub(rf"\g<scheme>\g<user>:{STARS}@", text)
    return _IN_QUERY.sub(rf"\g<name>{STARS}", text)


class Secrets:
    """Values that were found secret in one job."""

    def __init__(self, document: dict, from_environment: set[str]):
        found = set(from_environment) | set(_secret_values(document, ""))
        # The longest first: one secret may be part of another. Very short ones would black out ordinary words.
        self._values = sorted((value for value in found if len(value) >= 4), key=len, reverse=True)

    def hide(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, STARS)
        return _without_passwords(text)


def _secret_values(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _secret_values(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _secret_values(inner, name)
    elif is_secret(name) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, str):
        if value.lower().startswith("jdbc:"):
            yield value
        for pattern in (_IN_ADDRESS, _IN_QUERY):
            yield from (match["word"] for match in pattern.finditer(value))
