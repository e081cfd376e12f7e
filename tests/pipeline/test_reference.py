"""The reference page is made from the schema, and is up to date."""

import re
import tomllib
from pathlib import Path

import msgspec

from slidewise.pipeline import reference, schema
from slidewise.pipeline.shape import problems_of

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


def test_its_example_is_right() -> None:
    example = re.search(r"```toml\n(.*?)```", reference(), re.S)
    assert example is not None
    assert list(problems_of(tomllib.loads(example[1]), msgspec.inspect.type_info(schema.Job))) == []
