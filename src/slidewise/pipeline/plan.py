"""How a job would be computed, in words, without running it: a batch's plan is the planner's, a stream's the live engine's."""

from __future__ import annotations

from typing import Any

import slidewise as sw
from slidewise.errors import RunError
from slidewise.live.explain import StreamExplanation
from slidewise.live.spec import stream_spec
from slidewise.pipeline import meaning
from slidewise.pipeline.checking import Checked
from slidewise.planner.request import request


def explain(checked: Checked) -> Any:
    """Print it, or take `as_dict()`."""
    if checked.schema is None:
        raise RunError("the source's columns are not known before it is read; give them in [source.schema]")
    if not checked.streams:
        return sw.explain(checked.schema.empty_table(), **checked.arguments)
    given = meaning.stream_arguments(checked.job)
    buckets = given.pop("buckets", None)
    return StreamExplanation(stream_spec(request(**checked.arguments), checked.schema, **given), buckets)
