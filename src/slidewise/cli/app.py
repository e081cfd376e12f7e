"""The commands. Each is a few lines: it reads its options, calls the room that does the work, and shows what came back."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import slidewise
from slidewise.algorithms import algorithms as algorithms_of
from slidewise.cli import terminal
from slidewise.cli.outcome import FAILED, OK, told

app = typer.Typer(
    name="slidewise",
    help="Exact sliding-window aggregation: job files, a demo on real data, benchmarks.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, for machines.")]


def _version(asked: bool) -> None:
    if asked:
        print(f"slidewise {slidewise.__version__}")
        raise typer.Exit()


@app.callback()
def _everywhere(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


JobFile = Annotated[str, typer.Argument(metavar="JOB.toml", help="The job file.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one key for this run: --set sink.path=out. May be repeated."),
]


@app.command(short_help="Real flights as a Spark stream, checked against batch.")
def demo(
    days: Annotated[int, typer.Option(min=1, max=365, help="How many days of 2013 to replay.")] = 31,
    everything: Annotated[bool, typer.Option("--all", help="The whole year.")] = False,
    out: Annotated[str, typer.Option(metavar="FOLDER", help="Where the data, the job file and the report go.")] = "demo-output",
    step: Annotated[str, typer.Option(help="How much of the landings a micro-batch takes.")] = "12h",
    cores: Annotated[int, typer.Option(min=1, help="Cores for Spark.")] = 2,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> int:
    """Replay real flights as a Spark stream, check the results against batch, and write a report."""
    from slidewise.cli import demonstration

    return demonstration.run(days=None if everything else days, out=out, step=step, cores=cores, quiet=quiet, as_json=as_json)


@app.command()
def run(
    job: JobFile,
    settings: Settings = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the job file and stop.")] = False,
    explain_it: Annotated[bool, typer.Option("--explain", help="Show the plan and stop.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    as_json: AsJson = False,
) -> int:
    """Run a job file. Everything in it is checked before anything starts."""
    from slidewise.cli import jobs

    if explain_it:
        return jobs.explain(job, settings or [], as_json)
    return jobs.run(job, settings or [], dry_run=dry_run, quiet=quiet, as_json=as_json)


@app.command()
def explain(job: JobFile, settings: Settings = None, as_json: AsJson = False) -> int:
    """Show how a job would be computed, and why so. Nothing is run."""
    from slidewise.cli import jobs

    return jobs.explain(job, settings or [], as_json)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
def bench(context: typer.Context) -> int:
    """Measure: suites of benchmarks, reports, comparisons. `slidewise bench --help` has its own options."""
    try:
        from slidewise.bench import main as measure
    except ImportError as error:
        if getattr(error, "name", None) == "slidewise.bench":
            return told("this installation has no benchmarks", FAILED)
        return told(f'the benchmarks need more packages ({error}): pip install "slidewise[bench]"', FAILED)
    return measure(list(context.args)) or OK


@app.command(short_help="List the window algorithms and their bounds.")
def algorithms(as_json: AsJson = False) -> None:
    """List the window algorithms: paper, order, bounds, what an operator must offer."""
    found = algorithms_of()
    if as_json:
        terminal.print_json([_plain(info) for info in found])
        return
    rows = [
        [
            info.name,
            "in any order" if info.order == "any" else "in order",
            "\n".join(f"{what}: {bound}" for what, bound in info.bounds.items()),
            ", ".join(info.needs) or "-",
            "\n".join(info.offers) or "-",
            info.stores,
            info.paper,
        ]
        for info in found
    ]
    terminal.show(["algorithm", "events come", "combines for a window of n", "needs", "also offers", "keeps", "paper"], rows)


def _plain(info: Any) -> dict[str, Any]:
    import dataclasses

    return dataclasses.asdict(info)


@app.command(short_help="Look whether everything that is needed is here.")
def doctor(
    as_json: AsJson = False,
    spark: Annotated[bool, typer.Option(help="Start an embedded Spark and run a small job on it.")] = True,
) -> int:
    """Look whether this machine has what Slidewise needs, and run a small job."""
    from slidewise.cli.doctor import examine, show

    findings = examine(spark=spark)
    if as_json:
        terminal.print_json({"ok": all(f.ok for f in findings), "checks": [f.as_dict() for f in findings]})
    else:
        show(findings)
    return OK if all(finding.ok for finding in findings) else FAILED
