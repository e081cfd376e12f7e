"""How a job would be computed, in words, without running it: a batch's plan is the planner's, a stream's the live engine's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import slidewise as sw
from slidewise.errors import RunError
from slidewise.live.explain import StreamExplanation
from slidewise.live.spec import stream_spec
from slidewise.pipeline import meaning, schema
from slidewise.pipeline.checking import Checked
from slidewise.pipeline.columns import columns_of
from slidewise.planner.request import request


def explain(checked: Checked) -> Any:
    """Print it, or take `as_dict()`."""
    job = checked.job
    data = _known(checked.schema, job.source, "source")
    if job.as_of is not None:
        queries, _ = columns_of(checked.document, job.as_of.queries, ("as_of", "queries"), streams=False)
        asking = _known(queries, job.as_of.queries, "as_of.queries")
        return sw.explain(asking.empty_table(), data.empty_table(), **checked.arguments)
    if not checked.streams:
        return sw.explain(data.empty_table(), **checked.arguments)
    given = meaning.stream_arguments(job)
    buckets = given.pop("buckets", None)
    return StreamExplanation(stream_spec(request(**checked.arguments), data, **given), buckets)


def _known(columns: pa.Schema | None, source: schema.Source, key: str) -> pa.Schema:
    if columns is None:
        hint = f"; give them in [{key}.schema]" if hasattr(source, "schema") else ""
        raise RunError(f"the columns of {key} are not known before it is read{hint}")
    return columns
