"""`slidewise demo`: progress while it plays, and at the end what it showed and where to look."""

from __future__ import annotations

import threading
from typing import Any

from slidewise.cli import terminal
from slidewise.cli.jobs import asked_to_stop, spark_log
from slidewise.cli.outcome import FAILED, OK, told
from slidewise.errors import RunError
from slidewise.pipeline.demo import ELSEWHERE, JOB, Outcome, play


def run(*, days: int | None, out: str, step: str, cores: int, quiet: bool, as_json: bool) -> int:
    stop = threading.Event()
    progress = terminal.Progress("flights", quiet=quiet or as_json)
    with spark_log() as log, progress, asked_to_stop(stop, progress.note) as install:
        try:
            outcome = play(
                out,
                days=days,
                step=step,
                cores=cores,
                note=progress.part,
                on_step=progress.step,
                on_rows=progress.expect,
                stop=stop,
                log=log.path,
                on_session=install,
            )
        except RunError as error:
            raise RunError(f"the demo failed: {error}{log.kept()}") from error
    if as_json:
        terminal.print_json(_as_dict(outcome))
    elif not quiet:
        print(_sentences(outcome))
    if outcome.verdict is None:
        return told("stopped before its end", FAILED)
    return OK if outcome.verdict.equal else told(outcome.verdict.sentence(), FAILED)


def _as_dict(outcome: Outcome) -> dict[str, Any]:
    found = outcome.summary.as_dict() | {"folder": str(outcome.folder)}
    if outcome.verdict is not None:
        found |= {
            "equal_to_batch": outcome.verdict.equal,
            "differences": outcome.verdict.differences,
            "rank_error_of_p95": round(outcome.verdict.rank_error, 6),
            "report": str(outcome.report),
        }
    return found


def _sentences(outcome: Outcome) -> str:
    summary = outcome.summary
    lines = [
        f"{summary.rows:,} flights in {len(summary.steps)} micro-batches, {summary.seconds:.0f} s; "
        f"{summary.results:,} results, {summary.counts.get('touched', 0):,} of them corrections"
    ]
    if outcome.verdict is not None and outcome.verdict.equal:
        lines += [outcome.verdict.sentence(), outcome.verdict.estimated()]
    if outcome.report is not None:
        lines.append(f"Report:   {outcome.report}")
        lines.append(f"Job file: {outcome.folder / JOB}; change it, and run it in folders of its own:")
        lines.append(f"  {terminal.command_name()} run {outcome.folder / JOB} {ELSEWHERE}")
    return "\n".join(lines)
