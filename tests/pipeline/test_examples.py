"""Every example runs; each asserts what it shows."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "examples").glob("*.py"))
WITH_SPARK = {"fraud_features", "backfill_and_live"}
ON_THE_SESSION_THAT_IS_THERE = {"backfill_and_live"}
"""Those that take it and leave it; the others have a process of their own, as for people."""


@pytest.mark.parametrize(
    "file", [pytest.param(f, marks=[pytest.mark.spark] if f.stem in WITH_SPARK else [], id=f.stem) for f in FILES]
)
def test_example(file: Path, request, monkeypatch, capsys) -> None:
    if file.stem in ON_THE_SESSION_THAT_IS_THERE:
        request.getfixturevalue("spark")
        monkeypatch.syspath_prepend(str(file.parent))
        runpy.run_path(str(file), run_name="__main__")
        assert capsys.readouterr().out.strip()
        return
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


def test_the_list_is_complete() -> None:
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for file in (ROOT / "examples").iterdir():
        assert file.suffix not in (".py", ".toml") or f"]({file.name})" in listed, f"examples/README.md does not list {file.name}"


def test_every_job_file_is_right(tmp_path: Path) -> None:
    from slidewise.pipeline import load

    for file in (ROOT / "examples").glob("*.toml"):
        (tmp_path / "incoming").mkdir(exist_ok=True)
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        load(tmp_path / file.name)
