"""Job files: a TOML file that says where rows come from, their windows and aggregates, and where results go.

    schema.py       what may stand in a file; the reference page is made from it (reference.py)
    reading.py      text -> document: TOML, --set, environment, shape (positions.py, shape.py, problems.py, secrets.py)
    checking.py     document -> a job that may run (columns.py, operators.py, meaning.py, types.py, places.py, packages.py,
                    flat.py; about.py: which key an engine's words are about)
    running.py      run it: on Spark (session.py, sources.py, sinks.py, merging.py, ownership.py) or here (local.py); failing.py
    plan.py         how a job would be computed
    progress.py     what a run tells; latest.py: the last revision of each result; replay.py: a file as a stream
    demo/           the demo on real data

    >>> from slidewise.pipeline import load, run                                  # doctest: +SKIP
    >>> summary = run(load("job.toml", ["sink.path=out"]))                        # doctest: +SKIP
"""

from slidewise.pipeline.checking import Checked, load
from slidewise.pipeline.latest import latest
from slidewise.pipeline.plan import explain
from slidewise.pipeline.progress import Step, Summary
from slidewise.pipeline.reference import reference
from slidewise.pipeline.running import run
