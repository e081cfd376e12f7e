"""The command line from outside: exit codes, one readable message, no traceback; people's output and machines'."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.pipeline.support import JOB, job

ROOT = Path(__file__).resolve().parents[2]
REPLAY = [part for key in ("format=replay", "order_by=arrived", "rows=50") for part in ("--set", f"source.{key}")]
COMMANDS = ("run", "demo", "explain", "bench", "algorithms", "doctor")


def slidewise(*arguments: str, cwd: Path | None = None, traceback: bool = False, **environment: str) -> subprocess.CompletedProcess:
    """Run the command as a shell would."""
    done = subprocess.run(
        [sys.executable, "-m", "slidewise", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": _path(), **environment},
    )
    assert ("Traceback" in done.stderr + done.stdout) == traceback
    return done


def _path() -> str:
    return os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str) -> None:
    done = slidewise(command, "--help")
    assert done.returncode == 0
    assert "usage" in done.stdout.lower()


def test_help_names_every_command() -> None:
    done = slidewise("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)
    bare = slidewise()
    assert bare.returncode == 2
    assert all(command in bare.stderr for command in COMMANDS)


def test_version() -> None:
    import slidewise as sw

    assert slidewise("--version").stdout == f"slidewise {sw.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "No such command 'nope'"),
        (["run"], "Missing argument"),
        (["run", "--nope", "x.toml"], "No such option"),
        (["demo", "--days", "0"], "Invalid value for '--days'"),
        (["run", "not-there.toml"], "no job file not-there.toml"),
        (["explain", "not-there.toml"], "no job file not-there.toml"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str) -> None:
    done = slidewise(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("slidewise: ")
    assert message in done.stderr
    assert done.stdout == ""


def test_a_wrong_job_file() -> None:
    broken = ROOT / "tests" / "pipeline" / "broken" / "unknown_column"
    done = slidewise("run", f"{broken}.toml")
    assert done.returncode == 2
    assert done.stderr == f"slidewise: {broken.with_suffix('.txt').read_text(encoding='utf-8')}"


def test_a_job_runs(tmp_path: Path) -> None:
    path = str(job(tmp_path))
    arguments = ["run", path, "--set", "engine=local", "--set", "sink.format=parquet", "--set", "sink.path=out"]
    done = slidewise(*arguments, "--dry-run")
    assert (done.returncode, (tmp_path / "out").exists()) == (0, False)
    assert "right. A batch from parquet to parquet, 6 result columns." in done.stdout
    done = slidewise(*arguments, "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert (told["name"], told["mode"], told["state"], told["rows"]) == ("job", "batch", "finished", 200)
    assert list((tmp_path / "out").iterdir())
    done = slidewise(*arguments)
    assert (done.returncode, "is there already" in done.stderr) == (2, True)
    done = slidewise(*arguments, "--set", "sink.mode=overwrite", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_console(tmp_path: Path) -> None:
    done = slidewise("run", str(job(tmp_path)), "--set", "engine=local", "--set", "sink={format='console', rows=3}")
    assert done.returncode == 0
    assert "total_1h" in done.stdout
    assert "finished after" in done.stdout
    assert "3 of 200 rows" in done.stdout


def test_explain(tmp_path: Path) -> None:
    path = str(job(tmp_path))
    batch = slidewise("explain", path)
    assert batch.returncode == 0
    assert "algorithm" in batch.stdout
    stream = slidewise("run", path, "--explain", "--set", "mode=stream", *REPLAY, "--json")
    assert stream.returncode == 0
    assert json.loads(stream.stdout)["stream"]["watermark"] == "10m behind the youngest event"


def test_a_run_that_fails(tmp_path: Path) -> None:
    text = JOB.replace('format = "parquet"\npath = "events.parquet"', 'format = "csv"\npath = "x.csv"').replace(
        "[stream]", '[source.schema]\nid = "long"\nts = "timestamp"\ncard = "string"\namount = "double"\npaid = "boolean"\n[stream]'
    )
    (tmp_path / "x.csv").write_text("id,ts,card,amount,paid\n1,yesterday,a,5,true\n", encoding="utf-8")
    done = slidewise("run", str(job(tmp_path, text)), "--set", "engine=local")
    assert done.returncode == 1
    assert done.stderr.startswith("slidewise: job failed: ")
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--dry-run", "--json"], 0),
        (["--explain"], 0),
        (["--explain", "--json"], 0),
        (["--set", "sink.password=5"], 2),
        (["--set", "sink.password=31415926"], 2),
        (["--set", "sink.passwort=tell-nobody"], 2),
        (["--set", "sink.mode=tell-nobody"], 2),
        pytest.param([], 1, marks=pytest.mark.spark),
    ],
)
def test_no_secret_is_printed(tmp_path: Path, more: list[str], code: int) -> None:
    """Whatever is asked, and whatever goes wrong: here there is no such database. Nor is one kept in Spark's log."""
    sink = """\
[sink]
format = "jdbc"
url = "jdbc:nowhere://db/x?password=hush-hush"
table = "t"
password = "${DB_PASSWORD}"
user = "${DB_USER}"
options = { "oracle.net.wallet_password" = 31415926, truststorePassword = "mum-is-the-word" }
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "under-the-rose"
"""
    text = JOB.replace('[sink]\nformat = "memory"\n', sink)
    assert text != JOB
    job_file = str(job(tmp_path, text))
    environment = {"DB_PASSWORD": "tell-nobody", "DB_USER": "behind-the-arras", "TMPDIR": str(tmp_path)}
    environment["SLIDEWISE_TRACEBACK"] = "1" if code == 1 else ""
    done = slidewise("run", job_file, *more, traceback=code == 1, **environment)
    assert done.returncode == code, done.stderr
    logs = [file.read_text(encoding="utf-8") for file in tmp_path.glob("slidewise-*.log")]
    assert len(logs) == (code == 1)
    told = "\n".join([done.stdout, done.stderr, *logs])
    for secret in ("tell-nobody", "behind-the-arras", "hush-hush", "31415926", "mum-is-the-word", "under-the-rose"):
        assert secret not in told


def test_algorithms() -> None:
    import slidewise as sw

    names = [info.name for info in sw.algorithms()]
    done = slidewise("algorithms")
    assert done.returncode == 0
    assert all(name in done.stdout for name in names)
    assert [info["name"] for info in json.loads(slidewise("algorithms", "--json").stdout)] == names


def test_doctor() -> None:
    done = slidewise("doctor", "--no-spark", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"]) == (0, True)
    assert {"Python", "numpy", "compiled code", "a window on Arrow"} <= {check["what"] for check in told["checks"]}


@pytest.mark.spark
@pytest.mark.slow
def test_doctor_on_spark() -> None:
    done = slidewise("doctor", "--json")
    told = {check["what"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stdout
    for what in ("pyspark", "Java", "a window on Spark", "a stream on Spark"):
        assert told[what]["status"] == "ok", told[what]


def test_doctor_says_what_is_wrong(tmp_path: Path) -> None:
    """An environment whose pyarrow is broken."""
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text("raise ImportError('no such library')\n", encoding="utf-8")
    done = slidewise("doctor", "--no-spark", PYTHONPATH=os.pathsep.join([str(tmp_path), _path()]))
    assert done.returncode == 1
    assert "no such library" in done.stdout
    assert "Not usable yet: a window on Arrow" in done.stdout


@pytest.mark.parametrize("command", ["algorithms | head -1", "algorithms --json | true", "--help | true", "bench --list | true"])
def test_a_reader_that_leaves_early(command: str) -> None:
    command = f"set -o pipefail; {sys.executable} -m slidewise {command}"
    environment = {**os.environ, "PYTHONPATH": _path()}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_nobody_reads() -> None:
    command = f"{sys.executable} -m slidewise algorithms --json >&-"
    environment = {**os.environ, "PYTHONPATH": _path()}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_a_stream_cleanly_and_the_next_run_goes_on(tmp_path: Path) -> None:
    text = """\
mode = "stream"
time = "timestamp"
id = "value"
windows = ["10s"]
aggregates = { rows = "count()" }
source = { format = "rate", rows_per_second = 20 }
stream = { watermark = "10s", checkpoint = "state", trigger = "1s" }
sink = { format = "parquet", path = "out" }
spark = { master = "local[1]" }
"""
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    numbers = []
    for _ in range(2):
        before = set(_batches(tmp_path))
        running = subprocess.Popen(
            [sys.executable, "-m", "slidewise", "run", "job.toml", "--json"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": _path()},
            start_new_session=True,
        )
        deadline = time.monotonic() + 600
        while len(set(_batches(tmp_path)) - before) < 2 and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: Java and the workers get it, too
        out, err = running.communicate(timeout=300)
        assert running.returncode == 0, err
        assert "Traceback" not in err
        assert json.loads(out)["state"] == "stopped"
        numbers.append(_batches(tmp_path))
    assert numbers[1][: len(numbers[0])] == numbers[0]
    assert len(numbers[1]) > len(numbers[0])
    assert numbers[1] == list(range(len(numbers[1])))


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_a_batch_at_once(tmp_path: Path) -> None:
    """One line, no trace, no minute of waiting for the task that runs, and nothing that is in the way of the next run."""
    begun = tmp_path / "begun"
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\nfrom pyspark import TaskContext\nimport slidewise as sw\n"
        "def wait(a, b):\n"
        "    if TaskContext.get() is not None:\n"
        f"        pathlib.Path({str(begun)!r}).touch()\n"
        "        time.sleep(600)\n"
        "    return max(a, b)\n"
        "slow = sw.operator(lift=lambda x: x, combine=wait, identity=0, name='slow')\n",
        encoding="utf-8",
    )
    sink = ["--set", "sink.format=parquet", "--set", "sink.path=out"]
    command = ["run", str(job(tmp_path)), *sink, "--set", 'aggregates={ slow = "slow.py:slow(amount)" }']
    running = subprocess.Popen(
        [sys.executable, "-m", "slidewise", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": _path(), "PYTHONWARNINGS": "ignore:operator:UserWarning"},
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while not begun.exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: Java and the workers get it, too
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (1, "", "slidewise: interrupted\n")
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize("raised", [KeyboardInterrupt, EOFError])
def test_whatever_is_interrupted_says_so(raised: type[BaseException], monkeypatch, capsys) -> None:
    import slidewise.cli.app as commands
    from slidewise.cli import main

    def interrupted(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(commands, "algorithms_of", interrupted)
    assert main(["algorithms"]) == 1
    assert capsys.readouterr().err.strip() == "slidewise: interrupted"


def size_of_file(x):
    return Path(str(x)).stat().st_size


def test_an_interpreted_operator_is_told_in_one_line(monkeypatch, capsys) -> None:
    import slidewise as sw
    from slidewise.cli import jobs, main

    def run(*_: object, **__: object) -> int:
        read = sw.operator(name="reads_files", identity=0, lift=size_of_file, combine=lambda a, b: a + b, lower=abs)
        sw.Window(read, "recalc", dtype="int64")
        return 0

    monkeypatch.setattr(jobs, "run", run)
    assert main(["run", "job.toml"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("slidewise: operator 'reads_files' runs interpreted: ") and told.count("\n") == 1


def _batches(folder: Path) -> list[int]:
    """Micro-batches that were written whole."""
    return sorted(int(mark.parent.name.removeprefix("batch=")) for mark in folder.glob("out/batch=*/_SUCCESS"))
