"""A shortened demo from end to end: two days of flights, equal to batch, with a report that a browser shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyspark", reason="the demo's packages are not installed")

from slidewise.errors import JobError
from slidewise.pipeline import latest, load
from slidewise.pipeline.demo import figures, play, report
from slidewise.pipeline.demo.check import Verdict, compare
from slidewise.pipeline.demo.play import read_results
from slidewise.pipeline.demo.svg import nice_ticks

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def outcome(spark, tmp_path_factory):
    return play(tmp_path_factory.mktemp("demo") / "out", days=2, step="1d")


def test_the_stream_is_equal_to_batch(outcome) -> None:
    assert outcome.verdict.differences == []
    assert (outcome.verdict.columns, outcome.verdict.estimated_columns) == (15, 3)
    assert outcome.verdict.rows == outcome.summary.rows == outcome.summary.counts["in"]
    assert outcome.summary.counts["touched"] > 0


def test_a_difference_is_found(outcome) -> None:
    checked = load(outcome.folder / "flights.toml")
    flights = pq.read_table(outcome.folder / "flights.parquet")
    results = latest(read_results(outcome.folder / "results"), "id")
    place = results.column_names.index("flights_6h")
    changed = results["flights_6h"].to_pylist()
    changed[17] += 1
    verdict = compare(checked, flights, results.set_column(place, "flights_6h", pa.array(changed)))
    assert not verdict.equal
    assert "flights_6h of" in verdict.sentence()
    assert not compare(checked, flights, results.slice(1)).equal


def test_the_report_needs_nothing_else(outcome) -> None:
    page = outcome.report.read_text(encoding="utf-8")
    assert not re.search(r"(src|href|url\()\s*=?\s*[\"']?https?:", page)
    assert "<script" not in page
    assert page.count("<svg") == 6
    assert "× 12 results equal to the batch answer; 3 percentiles within " in page
    assert "NaN" not in page.replace("nan", "NaN").split("<svg", 1)[1].split("</svg>")[0]


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_a_browser_shows_it(outcome, tmp_path: Path) -> None:
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --hide-scrollbars --window-size=1100,3000"
    ).split()
    picture = tmp_path / "report.png"
    command = [str(BROWSER), *flags, f"--user-data-dir={tmp_path / 'profile'}"]
    page = outcome.report.as_uri()
    subprocess.run([*command, f"--screenshot={picture}", page], check=True, capture_output=True, timeout=180)
    assert picture.stat().st_size > 60_000, "an almost empty picture"
    dom = subprocess.run([*command, "--dump-dom", page], check=True, capture_output=True, text=True, timeout=180).stdout
    assert dom.count("<svg") == 6
    assert "Flights from New York" in dom


def test_a_folder_that_is_not_the_demos(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x", encoding="utf-8")
    with pytest.raises(JobError, match="not the demo's"):
        play(tmp_path)
    assert (tmp_path / "precious.txt").exists()


def test_lateness_of_a_small_stream() -> None:
    hour = figures.HOUR_US
    departed = pa.array([0, 5 * hour, hour, 6 * hour], pa.timestamp("us", tz="UTC"))
    landed = pa.array([hour, 6 * hour, 7 * hour, 8 * hour], pa.timestamp("us", tz="UTC"))
    found = figures.lateness(pa.table({"id": list("abcd"), "departed": departed, "landed": landed}))
    assert (found.out_of_order, found.most_minutes, found.behind) == (0.25, 240.0, 0.25)
    assert found.counts.sum() == 4


def test_a_verdict_says_what_was_equal() -> None:
    assert Verdict(1200, 12).sentence() == "1,200 flights × 12 results equal to the batch answer"
    told = Verdict(1200, 15, estimated_columns=3, rank_error=0.00421)
    assert told.sentence() == "1,200 flights × 12 results equal to the batch answer; 3 percentiles within 0.5%"
    assert "within 0.5% of its rank" in told.estimated()


def test_one_day_is_no_span() -> None:
    first, last = datetime(2013, 1, 1, 5), datetime(2013, 1, 2, 1)
    assert report._span(first, first.replace(hour=23)) == "1 January 2013"
    assert report._span(first, last) == "1 January to 2 January 2013"


def test_corrections_are_counted() -> None:
    found = figures.corrections(pa.table({"id": list("abab"), "revision": [0, 0, 1, 2]}))
    assert found.batches == [(0, 2, 0), (1, 0, 1), (2, 0, 1)]
    assert found.times.tolist() == [0, 2]
    assert int(np.sum(found.times)) == pc.count_distinct(pa.array(list("abab"))).as_py()


@pytest.mark.parametrize(("ends", "expected"), [((0, 10), [0, 2, 4, 6, 8, 10]), ((-3, 7), [-2, 0, 2, 4, 6]), ((5, 5), [5])])
def test_ticks_are_round(ends, expected) -> None:
    assert nice_ticks(*ends) == expected


def test_a_bar_is_called_in_its_middle() -> None:
    assert report._under_bars(0, 4) == [(0.5, "0"), (1.5, "1"), (2.5, "2"), (3.5, "3")]


def test_days_and_hours_below_a_line() -> None:
    """Of a few days the hours too, in New York; of many, midnights a dozen at most."""
    midnight = int(datetime(2013, 1, 2, tzinfo=figures.NEW_YORK).timestamp()) * 1_000_000
    assert [text for _, text in report._dates(midnight - 7 * figures.HOUR_US, midnight + 13 * figures.HOUR_US)] == [
        "18:00", "2 Jan", "06:00", "12:00",
    ]  # fmt: skip
    assert dict(report._dates(midnight, midnight + figures.HOUR_US)) == {midnight: "2 Jan"}
    month = [text for _, text in report._dates(midnight, midnight + 30 * 24 * figures.HOUR_US)]
    assert month[:2] == ["2 Jan", "5 Jan"]
    assert len(month) <= 12
