"""The disk cache of compiled code: one file for each function and signature.

Numba's own cache keeps an index file per function and numbers its data files; two processes that compile at the same
time can then file one's code under the other's signature. Here the file's name *is* the key (the function's
fingerprint, signature with the operator's, versions, processor), so writers cannot mix up entries, and a reader sees either a
whole file or none: files are written aside, then moved into place, and carry a checksum.

The files are pickles, as Numba's are: the directory must belong to the user and to nobody else (0700). It is
`$SLIDEWISE_CACHE_DIR`, or `slidewise` in the user's cache directory; `SLIDEWISE_CACHE_DIR=off` switches it off.
The cache is never needed for correctness, only for speed: whatever goes wrong with it, the code is compiled anew.
"""

import hashlib
import os
import pickle
import stat
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba import njit
from numba.core import compiler, sigutils
from numba.core.caching import NullCache, _Cache
from numba.core.serialize import dumps

from slidewise.algebra.fingerprint import fingerprint, vocabulary
from slidewise.algebra.linking import linked

_OFF = ("off", "0", "none", "false")


def cache_dir() -> Path | None:
    """The directory of compiled code, made on first use; None where it is switched off or not safe to use."""
    setting = os.environ.get("SLIDEWISE_CACHE_DIR", "")
    if setting.lower() in _OFF and setting:
        return None
    if setting:
        path = Path(setting).expanduser()
    elif sys.platform == "darwin":
        path = Path.home() / "Library" / "Caches" / "slidewise"
    else:
        path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slidewise"
    return _checked(path)


_known: dict[Path, Path | None] = {}


def _checked(path: Path) -> Path | None:
    if path in _known:
        return _known[path]
    result: Path | None = path
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid"):
            status = path.stat()
            if status.st_uid != os.getuid():
                raise PermissionError(f"{path} belongs to another user")
            if stat.S_IMODE(status.st_mode) & 0o022:
                raise PermissionError(f"{path} can be written by others (mode {stat.S_IMODE(status.st_mode):o})")
    except (OSError, RuntimeError) as error:
        warnings.warn(f"Slidewise compiles without a disk cache: {error}", RuntimeWarning, stacklevel=3)
        result = None
    _known[path] = result
    return result


def _stamp() -> str:
    """Everything but the function that compiled code depends on."""
    versions = (sys.version_info[:3], sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
    return repr((versions, np.__version__, vocabulary()))


def read_entry(name: str) -> bytes | None:
    """The bytes filed under `name`, or None if there are none or they are damaged."""
    folder = cache_dir()
    if folder is None:
        return None
    try:
        data = (folder / name).read_bytes()
    except OSError:
        return None
    body, digest = data[:-32], data[-32:]
    return body if hashlib.sha256(body).digest() == digest else None


def write_entry(name: str, body: bytes) -> None:
    """File bytes under `name`, whole or not at all. A full disk costs speed next time, nothing else."""
    folder = cache_dir()
    if folder is None:
        return
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".new-", delete=False) as file:
            temporary = file.name
            file.write(body)
            file.write(hashlib.sha256(body).digest())
        os.replace(temporary, folder / name)
    except OSError:
        if temporary is not None:
            try:
                os.unlink(temporary)
            except OSError:
                pass


def entry_name(kind: str, *key) -> str:
    """A file name for a key: readable kind, then a digest over the key and everything compiled code depends on."""
    digest = hashlib.sha256(repr((key, _stamp())).encode()).hexdigest()[:40]
    return f"{kind}-{digest}"


class KernelCache(_Cache):
    """What Numba asks of a function's cache, on one file per signature."""

    def __init__(self, py_func):
        self._function = py_func
        self._name = f"{py_func.__module__}.{py_func.__qualname__}"
        self._print: str | None = None

    @property
    def cache_path(self):
        return str(cache_dir() or "")

    def enable(self):
        pass

    def disable(self):
        pass

    def flush(self):
        pass

    def _entry(self, sig, codegen) -> str:
        return entry_name("code", self._name, self._print, str(sig), codegen.magic_tuple())

    def _can_file(self, sig) -> bool:
        """The function's own code and all it calls has a stable fingerprint, and so have the tags in the signature."""
        if self._print is None:
            self._print = fingerprint(self._function) or "unfiled"
        return "unfiled" not in self._print and "unfiled" not in str(sig)

    def load_overload(self, sig, target_context):
        target_context.refresh()
        _tags_unchanged(sig)
        body = read_entry(self._entry(sig, target_context.codegen())) if self._can_file(sig) else None
        if body is not None:
            try:
                return compiler.CompileResult._rebuild(target_context, *pickle.loads(body))
            except Exception:  # an entry that cannot be read is no entry
                pass
        _Progress.start(self._name)
        return None

    def save_overload(self, sig, data):
        _Progress.stop()
        if not self._can_file(sig) or not _tags_unchanged(sig):
            return
        if data.library.has_dynamic_globals or any(not x.can_cache for x in data.lifted):
            return
        try:
            body = dumps(data._reduce())
        except Exception:  # a closure that cannot be pickled: not filed
            return
        write_entry(self._entry(sig, data.codegen), body)


def _tags_unchanged(sig) -> bool:
    """Whether the operators in a signature still are what their tags say: compiling takes what their globals hold now."""
    tags = [kind for kind in sigutils.normalize_signature(sig)[0] if hasattr(kind, "unchanged")]
    return all([tag.unchanged() for tag in tags])


class _Progress:
    """A note on stderr when compiling takes long and somebody is looking."""

    _timer: threading.Timer | None = None
    AFTER_SECONDS = 1.5

    @classmethod
    def start(cls, name: str) -> None:
        cls.stop()
        if not sys.stderr.isatty():
            return
        began = time.monotonic()

        def note():
            seconds = time.monotonic() - began
            print(
                f"slidewise: compiling {name} for this operator ({seconds:.0f} s so far; kept for next time)",
                file=sys.stderr,
            )

        cls._timer = threading.Timer(cls.AFTER_SECONDS, note)
        cls._timer.daemon = True
        cls._timer.start()

    @classmethod
    def stop(cls) -> None:
        if cls._timer is not None:
            cls._timer.cancel()
            cls._timer = None


def entry(function):
    """Compile a function that Python calls: no GIL, filed in the disk cache."""
    dispatcher = njit(nogil=True)(function)
    if not isinstance(dispatcher._cache, NullCache):
        raise TypeError(f"{function.__qualname__} already has a cache")
    dispatcher._cache = KernelCache(function)
    return dispatcher


def kernel(function):
    """Compile a function that only compiled code calls. (Said outright, for Numba hands `forceinline` down to callees.)"""
    return linked(nogil=True, forceinline=False)(function)


def inlined(function):
    """Compile a small function that is always inlined into compiled code, so that its state stays in registers."""
    return linked(nogil=True, forceinline=True)(function)
