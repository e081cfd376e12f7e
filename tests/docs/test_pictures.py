"""The pictures of the documentation are those that scripts/pictures.py draws, and each is shown somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]


def test_they_are_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import drawing
    import pictures

    monkeypatch.setattr(drawing, "FOLDER", tmp_path)
    pictures.main()
    drawn = sorted(tmp_path.glob("*.svg"))
    assert len(drawn) >= 11
    for picture in drawn:
        kept = IMAGES / picture.name
        assert kept.read_text(encoding="utf-8") == picture.read_text(encoding="utf-8"), f"run scripts/pictures.py: {picture.name}"


def test_each_is_shown() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = {Path(target).name for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)}
    assert {picture.name for picture in IMAGES.iterdir()} <= shown


def test_they_are_small() -> None:
    for picture in IMAGES.iterdir():
        assert picture.stat().st_size < 300_000, picture.name
