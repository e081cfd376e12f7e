"""What went wrong, in one line: Spark's errors hold pages of Java, with the line that says something in their midst."""

from __future__ import annotations

import re
from pathlib import Path

from slidewise.pipeline.packages import DRIVERS, coordinates

_OURS = re.compile(r"^(?:\S*\s)?slidewise\.errors\.(?P<kind>\w+): (?P<message>.*)$", re.M)
_PYTHON = re.compile(r"^(?P<kind>(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)): (?P<message>.+)$", re.M)
_JAVA = re.compile(r"^(?:: |Exception in thread \"main\" )(?:[\w.$]+\.)?(?P<kind>[A-Z]\w*): (?P<message>.+)$", re.M)
_CAUSE = re.compile(
    r"^Caused by: (?:[\w.$]+\.)?(?P<kind>[A-Z]\w*): (?P<message>.+?)(?=^\s+at |^Caused by|^\s+\.\.\. |\Z)", re.M | re.S
)
_STREAM = re.compile(r"\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: ")
_HOLLOW = re.compile(r"Exception thrown in awaitResult|Job aborted|FAILED_READ_FILE|Encountered error while reading file")
"""What Spark says when something below it went wrong."""
_FILE = re.compile(r"Encountered error while reading file (?P<file>\S+?)\.?(?:\s|$)")
_MALFORMED = re.compile(
    r"Malformed records are detected in record parsing: (?P<record>.*?)\.?\s+"
    r"Parse Mode: FAILFAST\..*?'PERMISSIVE'\.(?P<why>[^\n]*)",
    re.S,
)
_NO_SOURCE = re.compile(r"Failed to find (?:the )?data source: (?P<kind>\w+)")
_NO_DRIVER = re.compile(r"SQLException: No suitable driver|ClassNotFoundException: (?P<name>[\w.]+(?:Driver|JDBC))\b")
_SHOWN = 300
"""Letters of a record that are shown."""
_UNRESOLVED = re.compile(r"unresolved dependency: (?P<group>[^#\s]+)#(?P<artifact>[^;\s]+);(?P<version>[^:\s]+): (?P<why>[^],]+)")


def words(error: BaseException, log: Path | None = None) -> str:
    """One readable message from Spark's. log: what it wrote, for the case that it died before it could speak to us."""
    text = str(error)
    if isinstance(error, ModuleNotFoundError) and error.name == "pyspark":
        return 'Spark is not installed here: pip install "slidewise[spark]", or take engine = "local" for a batch of files'
    if "JAVA_GATEWAY_EXITED" in text and log is not None and log.exists():
        text = f"{log.read_text(encoding='utf-8', errors='replace')}\n{text}"
    lost = _UNRESOLVED.search(text)
    if lost is not None:
        name = ":".join(lost[part] for part in ("group", "artifact", "version"))
        told = f"the package {name} cannot be had ({lost['why'].strip()})"
        return f"{told}; look at its name and version under [spark], and at the way to Maven's repositories from here"
    source = _NO_SOURCE.search(text)
    if source is not None and (known := coordinates(source["kind"])) is not None:
        return f'Spark has no "{source["kind"]}" here: it is a package of its own; name it under [spark]: packages = ["{known}"]'
    driver = _NO_DRIVER.search(text)
    if driver is not None:
        package = next((package for name, package in DRIVERS.values() if name == driver["name"]), "GROUP:ARTIFACT")
        what = f"driver {driver['name']}" if driver["name"] else "driver for this address"
        return f'Spark has no {what}; name its package under [spark]: packages = ["{package}:VERSION"]'
    return _unread(text) or _ours(text) or _python(text) or _spark(_STREAM.sub("", text)) or type(error).__name__


def _unread(text: str) -> str | None:
    """A record that is not what the schema says: which, where and why, as far as Spark tells."""
    found = _MALFORMED.search(text)
    if found is None:
        return None
    file = _FILE.search(text)
    where = "a file of the source" if file is None else file["file"].removeprefix("file://")
    causes = (f"{cause['kind']}: {cause['message']}" for cause in _CAUSE.finditer(text, found.end()))
    why = next(filter(None, map(_plain, (found["why"], *causes))), "")
    record = _plain(found["record"])
    shown = record if len(record) <= _SHOWN else f"{record[:_SHOWN]} ..."
    told = f"{where} holds what cannot be read as its schema says: {shown}{f' ({why})' if why else ''}"
    return f'{told}; mend it, or take such values as null: source.options.mode = "PERMISSIVE"'


def _plain(text: str) -> str:
    return " ".join(text.split("SQLSTATE")[0].split())


def _ours(text: str) -> str | None:
    """Our own error, inside a worker."""
    found = _OURS.search(text)
    return None if found is None else found["message"]


def _python(text: str) -> str | None:
    found = [m for m in _PYTHON.finditer(text) if not m["kind"].startswith(("org.", "java.", "py4j."))]
    return f"{found[-1]['kind'].rsplit('.', 1)[-1]}: {found[-1]['message']}" if found else None


def _spark(text: str) -> str | None:
    """What Spark says, or what it says of the cause where that is all it has to say."""
    said = _java(text) or _first(text)
    causes = [found for found in _CAUSE.finditer(text) if not _HOLLOW.search(found["message"])]
    if said is None or not causes or not _HOLLOW.search(said):
        return said
    return f"{causes[-1]['kind']}: {' '.join(causes[-1]['message'].split())}"


def _java(text: str) -> str | None:
    found = _JAVA.search(text)
    return None if found is None else f"{found['kind']}: {found['message']}"


def _first(text: str) -> str | None:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(("\tat", "==", "SQLSTATE"))]
    return lines[0] if lines else None
