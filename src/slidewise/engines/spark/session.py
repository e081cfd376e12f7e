"""An embedded Spark session with the settings that Slidewise's engines want: for the tests, the demo and a first try.

On a cluster the session is the user's; what the streaming engine needs there is in `STREAMING`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slidewise.engines.spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMING: Mapping[str, str] = {
    # transformWithState stands on RocksDB; with the changelog a commit costs what changed, not the whole state.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # With processing-time timers, `availableNow` would run empty micro-batches for ever.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

_EMBEDDED: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Nothing listens outside this machine, and a host name that does not resolve does no harm.
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Larger batches on the way to Python are beyond Arrow's pool: fresh memory, grown by doubling, for each.
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
    # Python workers keep what they free, up to a point: where fresh memory is dear, as on many virtual machines, that of a
    # part's results costs more than their windows.
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
}

_LOGGING = Path(__file__).with_name("log4j2-quiet.properties")


def local_session(
    app: str = "slidewise",
    cores: int = 2,
    shuffle_partitions: int | None = None,
    conf: Mapping[str, Any] | None = None,
    *,
    max_failures: int = 1,
    log: str | os.PathLike[str] | None = None,
) -> SparkSession:
    """A SparkSession inside this process, on `cores` threads.

    `shuffle_partitions` is `cores` if not given. `conf` adds to the settings made here and wins over them.
    `max_failures` is how often a task may fail before its job does: 1 shows an error at once, 4 is what a cluster does.
    `log` is a file for what the JVM and its workers would write on standard error; errors are raised here in any case.
    If this process has a session already, that one comes back with the runtime settings applied (Spark's getOrCreate).
    """
    from pyspark.sql import SparkSession

    settings = _settings(cores, shuffle_partitions, conf or {})
    use_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Only spark-submit looks at the setting; a context that starts inside Python looks at the variable.
    os.environ["PYSPARK_PYTHON"] = settings["spark.pyspark.python"]

    builder = SparkSession.builder.appName(app).master(f"local[{cores},{max_failures}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _standard_error_to(log):
        return builder.getOrCreate()


def _settings(cores: int, shuffle_partitions: int | None, conf: Mapping[str, Any]) -> dict[str, str]:
    settings = {
        **STREAMING,
        **_EMBEDDED,
        # Workers must be this Python, or they miss its packages.
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.sql.shuffle.partitions": str(shuffle_partitions or cores),
        "spark.default.parallelism": str(cores),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        # Not into the directory one happens to stand in.
        "spark.sql.warehouse.dir": _warehouse(),
    }
    for key, value in conf.items():
        settings[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return settings


@functools.cache
def _warehouse() -> str:
    directory = tempfile.mkdtemp(prefix="slidewise-warehouse-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@contextlib.contextmanager
def _standard_error_to(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Processes that are started inside write their standard error into `path`, to the end of their lives. The JVM
    inherits the descriptor itself, so replacing `sys.stderr` would not reach it."""
    if path is None:
        yield
        return
    sys.stderr.flush()
    ours = os.dup(2)
    try:
        with open(path, "ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
