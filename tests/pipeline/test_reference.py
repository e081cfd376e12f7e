"""The reference page is made from the schema, and is up to date."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slidewise.pipeline import load, reference, run, schema

PAGE = Path(__file__).resolve().parents[2] / "docs" / "job-file.md"


def test_the_page_is_up_to_date() -> None:
    """Make it anew: python -c 'from slidewise.pipeline import reference; print(reference(), end="")' > docs/job-file.md"""
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_every_key_is_described() -> None:
    page = reference()
    tables = [value for value in vars(schema).values() if isinstance(value, type) and issubclass(value, schema.Table)]
    for table in tables:
        for name in table.__struct_fields__:
            assert re.search(rf"^\| `{name}` \| .+ \| [^|]+ \|$", page, re.M), f"{table.__name__}.{name}"


def test_its_examples_are_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them are whole job files, and pass every check there is before Spark starts; what needs no Spark runs."""
    examples = re.findall(r"```toml\n(.*?)```", reference(), re.S)
    assert len(examples) == 3
    monkeypatch.setenv("KAFKA_LOGIN", "x")
    monkeypatch.setenv("DB_PASSWORD", "y")
    (tmp_path / "incoming").mkdir()
    table = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "card": ["a"], "cents": [1]})
    pq.write_table(table, tmp_path / "payments")
    (tmp_path / "labels.csv").write_text("card_number,ts,fraud\na,1970-01-01 00:30:00,true\n", encoding="utf-8")
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.toml").write_text(example, encoding="utf-8")
        checked = load(tmp_path / f"{number}.toml")
        if checked.job.engine == "local":
            run(checked)
            assert pq.read_table(tmp_path / "training")["total_1h"].to_pylist() == [1]
