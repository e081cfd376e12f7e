"""Every Python block of the documentation runs, page by page, top to bottom; lines that show a result are compared with it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]
BLOCK = re.compile(r"^```python( [a-z]+)?\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    text = page.read_text()
    blocks = [(m.group(1), m.group(2), text[: m.start()].count("\n") + 2) for m in BLOCK.finditer(text)]
    monkeypatch.chdir(tmp_path)
    space: dict = {"__name__": f"docs_{page.stem.replace('-', '_')}"}
    for word, source, line in blocks:
        if word is not None and word.strip() == "spark":
            pytest.importorskip("pyspark")
            from slidewise.engines.spark.session import local_session

            space.setdefault("spark", local_session(app="docs"))
        code = compile("\n" * (line - 1) + source, str(page), "exec")
        exec(code, space)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_operators_is_the_registry():
    import slidewise.operators as operators

    page = (ROOT / "docs" / "operators.md").read_text()
    for name in operators.OPERATORS:
        assert f"| `{name}`" in page, f"docs/operators.md does not list {name}: scripts/operators_page.py writes it"
