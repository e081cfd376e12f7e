"""Settings from the command line and the environment, secrets, paths."""

from pathlib import Path

import pytest
from tests.pipeline.support import JOB, job

from slidewise.errors import JobError
from slidewise.pipeline import load
from slidewise.pipeline.reading import read
from slidewise.pipeline.secrets import STARS, masked

JDBC = '[sink]\nformat = "jdbc"\nurl = "${DB_URL}"\ntable = "features"\npassword = "${DB_PASSWORD}"\n'


def test_a_job_that_is_right(tmp_path: Path) -> None:
    checked = load(job(tmp_path))
    assert list(checked.arguments["aggs"]) == ["payments", "total", "largest"]
    assert checked.arguments["aggs"]["largest"].where == "paid"
    assert checked.schema is not None
    assert checked.schema.names == ["id", "ts", "arrived", "card", "amount", "paid"]
    assert checked.document.name == "job"


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("mode=stream", "mode", "stream"),
        ('mode="stream"', "mode", "stream"),
        ("exclude_current=true", "exclude_current", True),
        ("by=['card', 'paid']", "by", ["card", "paid"]),
        ("name=a = b", "name", "a = b"),
    ],
)
def test_set(tmp_path: Path, setting: str, key: str, value: object) -> None:
    assert getattr(read(job(tmp_path), [setting]).job, key) == value


def test_set_reaches_into_tables_and_lists(tmp_path: Path) -> None:
    document = read(job(tmp_path), ["stream.watermark=1h", "windows.1.rows=9", "spark.conf.'spark.ui.enabled'=true"])
    assert document.job.stream is not None
    assert document.job.stream.watermark == "1h"
    assert document.raw["windows"][1] == {"rows": 9}
    assert document.job.spark.conf == {"spark.ui.enabled": True}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("mode", "--set mode: write it as key=value"),
        ("=x", "--set : write it as key=value"),
        ("time.x=1", "--set time.x: there is nothing at time.x"),
        ("windows.7=1", "--set windows.7: there is nothing at windows.7"),
        ("mode=steam", 'job.toml, --set mode, mode: must be "batch" or "stream", not "steam"; did you mean "stream"?'),
        ("sink.paht=x", "job.toml, --set sink.paht, sink.paht: unknown key; there is format or merge"),
        ("source.paht=x", 'job.toml, --set source.paht, source.paht: unknown key; did you mean "path"?'),
    ],
)
def test_a_setting_that_is_wrong(tmp_path: Path, setting: str, message: str) -> None:
    with pytest.raises(JobError) as caught:
        read(job(tmp_path), [setting])
    assert str(caught.value).startswith(message)


def test_another_format_leaves_the_other_keys(tmp_path: Path) -> None:
    """Those of the old one, which the new one may not have."""
    with pytest.raises(JobError) as caught:
        read(job(tmp_path), ["source.format=rate"])
    assert """it stands in the file: --set 'source={ format = "..." }' sets the whole table""" in str(caught.value)
    with pytest.raises(JobError) as caught:
        read(job(tmp_path), ["source={ format = 'rate' }", "source.path=x"])
    assert "it stands in the file" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    job(tmp_path)
    with pytest.raises(JobError, match=r'no job file .*jbo.toml; did you mean "job.toml"'):
        read(tmp_path / "jbo.toml")
    with pytest.raises(JobError, match="is a folder"):
        read(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'time = "\xe9"')
    with pytest.raises(JobError, match=r"line 1: not UTF-8 text \(a byte 0xe9\)"):
        read(tmp_path / "latin.toml")


def test_the_environment_and_what_is_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_URL", "jdbc:postgresql://db/x?user=me&password=hush-hush")
    monkeypatch.setenv("DB_PASSWORD", "tell-nobody")
    text = JOB.replace('[sink]\nformat = "memory"\n', JDBC)
    document = read(job(tmp_path, text))
    assert document.job.sink.password == "tell-nobody"
    shown = str(document.shown())
    assert "hush" not in shown
    assert "tell-nobody" not in shown
    hidden = document.origin.secrets.hide("cannot reach jdbc:postgresql://db/x?user=me&password=hush-hush with tell-nobody")
    assert hidden == f"cannot reach {STARS} with {STARS}"


def test_what_is_shown_is_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes from the environment stays there, whatever the key is called and however short it is."""
    monkeypatch.setenv("WHERE", "abc")
    document = read(job(tmp_path), ["sink={ format = 'parquet', path = '${WHERE}/out', options = { plain = '${WHERE}' } }"])
    assert document.job.sink.path == "abc/out"
    assert document.shown()["sink"] == {"format": "parquet", "path": "${WHERE}/out", "options": {"plain": "${WHERE}"}}


def test_a_message_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_URL", "jdbc:derby:x")
    monkeypatch.setenv("DB_PASSWORD", "tell-nobody")
    text = JOB.replace('[sink]\nformat = "memory"\n', JDBC.replace('table = "features"', 'table = 5\nmode = "${DB_PASSWORD}"'))
    with pytest.raises(JobError) as caught:
        read(job(tmp_path, text))
    assert "sink.table: must be text" in str(caught.value)
    assert "tell-nobody" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("password", "x", STARS),
        ("kafka.sasl.jaas.config", "login", STARS),
        ("fs.s3a.secret.key", "abc", STARS),
        ("spark.hadoop.fs.s3a.access.key", "abc", STARS),
        ("apiToken", "abc", STARS),
        ("url", "jdbc:h2:mem", STARS),
        ("url", "mongodb://me:pw@host/db", f"mongodb://me:{STARS}@host/db"),
        ("url", "https://x/y?sig=abc&v=1", f"https://x/y?sig={STARS}&v=1"),
        ("path", "s3a://bucket/key", "s3a://bucket/key"),
        ("by", "card", "card"),
    ],
)
def test_masking(name: str, value: str, shown: str) -> None:
    assert masked({name: value, "list": [{name: value}]}) == {name: shown, "list": [{name: shown}]}


def test_a_dollar_sign(tmp_path: Path) -> None:
    assert read(job(tmp_path), ["name=a$$b"]).job.name == "a$b"


def test_paths_are_relative_to_the_job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    document = read(job(tmp_path))
    assert document.path("x/y") == str(tmp_path / "x" / "y")
    assert document.path("/x") == "/x"
    assert document.path("s3a://bucket/x") == "s3a://bucket/x"
