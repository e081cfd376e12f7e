"""Job files that are wrong, each with the message that tells so: `broken/NAME.toml` and `broken/NAME.txt`.

All are refused without starting Spark. To see what has become of the messages after a change:

    python -m tests.pipeline.test_broken
"""

from pathlib import Path

import pytest

from slidewise.errors import JobError
from slidewise.pipeline import load, packages

FOLDER = Path(__file__).parent / "broken"
FILES = sorted(FOLDER.glob("*.toml"))


def test_there_are_enough() -> None:
    assert len(FILES) >= 30


@pytest.fixture(autouse=True)
def nobody_has_started_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are those of a new process, whatever ran before in this one, and of one version of Spark."""
    monkeypatch.setattr(packages, "session_is_there", lambda: False)
    monkeypatch.setattr(packages, "spark_version", lambda: "4.0.0")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_message(file: Path) -> None:
    with pytest.raises(JobError) as caught:
        load(file)
    assert f"{caught.value}\n" == file.with_suffix(".txt").read_text(encoding="utf-8")


def test_no_code_is_loaded_while_anything_else_is_wrong(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    (tmp_path / "mine.py").write_text(f"open({str(trace)!r}, 'w').close()\n", encoding="utf-8")
    text = (FOLDER / "unknown_column.toml").read_text(encoding="utf-8")
    text = text.replace("[source]", 'own = "mine.py:op(amount)"\n\n[source]').replace("events", str(FOLDER / "events"))
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    with pytest.raises(JobError, match='no column "amout"'):
        load(tmp_path / "job.toml")
    assert not trace.exists()
    (tmp_path / "job.toml").write_text(text.replace("amout", "amount"), encoding="utf-8")
    with pytest.raises(JobError, match=r'mine\.py has no "op"'):
        load(tmp_path / "job.toml")
    assert trace.exists()


if __name__ == "__main__":
    packages.spark_version = lambda: "4.0.0"
    for broken in FILES:
        try:
            load(broken)
            print(f"{broken.name}: is right")
        except JobError as error:
            broken.with_suffix(".txt").write_text(f"{error}\n", encoding="utf-8")
