"""The demo from start to end: write the flights and the job file, run it as a stream, check its results, write the report."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from slidewise.errors import JobError
from slidewise.pipeline.checking import load
from slidewise.pipeline.demo.check import Verdict, compare
from slidewise.pipeline.demo.flights import first_days, flights
from slidewise.pipeline.demo.job import job_text
from slidewise.pipeline.demo.report import Story, write_report
from slidewise.pipeline.latest import latest
from slidewise.pipeline.plan import explain
from slidewise.pipeline.progress import Step, Summary
from slidewise.pipeline.running import run

JOB = "flights.toml"
REPORT = "report.html"
ELSEWHERE = "--set stream.checkpoint=checkpoint-2 --set sink.path=results-2"
"""What makes a second run of the job file begin anew."""
OURS = (JOB, REPORT, "flights.parquet", "results", "checkpoint", "checkpoint-replay")


@dataclass(frozen=True)
class Outcome:
    """How the demo ended, and where its files are."""

    folder: Path
    summary: Summary
    verdict: Verdict | None
    """None if it was stopped before its end."""
    report: Path | None


def play(
    folder: str | Path,
    *,
    days: int | None = 31,
    step: str = "12h",
    cores: int = 2,
    note: Callable[[str], None] = lambda text: None,
    on_step: Callable[[Step], None] = lambda step: None,
    stop: threading.Event | None = None,
    log: Path | None = None,
    on_session: Callable[[], None] = lambda: None,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> Outcome:
    """Play the first `days` of the year (None: all of it), `step` of landings a micro-batch.

    note is told of each part as it begins, on_rows how many flights there are, on_step each micro-batch; the rest is as in
    `running.run`.
    """
    place = _emptied(Path(folder))
    note("reading the flights")
    table = first_days(flights().table, days)
    on_rows(table.num_rows)
    pq.write_table(table, place / "flights.parquet")
    (place / JOB).write_text(job_text(step, cores), encoding="utf-8")
    checked = load(place / JOB)
    summary = run(checked, on_step=on_step, stop=stop, log=log, on_session=on_session, note=note)
    if summary.state != "finished":
        return Outcome(place, summary, None, None)
    note("checking against batch")
    revisions = read_results(place / "results")
    results = latest(revisions, "id")
    verdict = compare(checked, table, results)
    note("writing the report")
    story = Story(
        flights=table,
        revisions=revisions,
        results=results,
        summary=summary,
        verdict=verdict,
        plan=explain(checked),
        job=(place / JOB).read_text(encoding="utf-8"),
        command=f"slidewise run {JOB} {ELSEWHERE}",
    )
    write_report(story, place / REPORT)
    return Outcome(place, summary, verdict, place / REPORT)


def read_results(folder: Path) -> pa.Table:
    """All revisions that a stream wrote; events that were handed out apart are none."""
    table = ds.dataset(folder, format="parquet", partitioning="hive").to_table()
    table = table.filter(pc.invert(pc.coalesce(table["late"], False))) if "late" in table.column_names else table
    return table.drop_columns([name for name in ("batch", "late") if name in table.column_names])


def _emptied(folder: Path) -> Path:
    """The folder, without what an earlier demo left there. Anything else in it is not ours to touch."""
    if folder.exists():
        if not folder.is_dir() or (any(folder.iterdir()) and not (folder / JOB).is_file()):
            raise JobError(f"{folder} is there already and not the demo's; name another folder with --out")
        for name in OURS:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JobError(f"cannot make the folder {folder}: {error.strerror}; name another with --out") from None
    return folder
