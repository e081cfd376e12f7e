"""What every test shares: where compiled code is kept, how hard Hypothesis tries, and one Spark session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROOT = Path(__file__).resolve().parent.parent

# Before anything imports slidewise: a first compile takes seconds for each operator, and must survive the run.
os.environ.setdefault("SLIDEWISE_CACHE_DIR", str(ROOT / ".cache" / "slidewise"))

# Functions of test modules are shipped to Spark's workers by name: the workers must find `tests` too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

# Java lives for minutes here: what its second compiler takes from the cores never comes back.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# No deadline anywhere: an example that meets an uncompiled operator takes seconds, and that is no failure.
settings.register_profile(
    "dev",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=DirectoryBasedExampleDatabase(ROOT / ".cache" / "hypothesis"),
)
# The same examples in every run: a red run is red again when it is repeated.
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None, print_blob=True)
settings.register_profile("thorough", settings.get_profile("dev"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who asks for the session is a Spark test, and need not say so twice. Clusters come first: what stands last is shared out
    among processes at the end, and each of them would start the same clusters."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    items.sort(key=lambda item: item.get_closest_marker("cluster") is None)


@pytest.fixture(scope="session")
def spark() -> Iterator:
    """The one Spark session of this run: 2 cores, 2 shuffle partitions, started by the first test that wants it.

    Tests must leave it as they found it: stop their queries, drop their views, reset what they set."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    from slidewise.engines.spark.session import local_session

    session = local_session("slidewise-tests", cores=2, shuffle_partitions=2)
    yield session
    session.stop()
