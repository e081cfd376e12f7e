"""The demo's job file: written beside the data, so that whoever has seen the demo can change it and run it again."""

from __future__ import annotations

WINDOWS = ("1h", "6h", "24h")
WATERMARK_HOURS = 3

TEXT = """\
# Delays of the flights that left New York in 2013, for each airport, over the last 1, 6 and 24 hours.
# Change it, and run it again in a folder of its own:
#
#     slidewise run flights.toml --set stream.checkpoint=checkpoint-2 --set sink.path=results-2
#     slidewise run flights.toml --set mode=batch --set sink.path=batch      # the same windows, all at once
#     slidewise explain flights.toml

name = "flights"
mode = "stream"
time = "departed"                     # event time; a flight is only heard of when it lands
by = "origin"
id = "id"                             # which result a correction replaces
order = "id"                          # the first of two that departed at the same moment
windows = ["1h", "6h", "24h"]

[aggregates]
flights = "count()"
mean_delay = "mean(delay)"            # minutes, at departure
p95_delay = "quantile(delay, q=0.95)"
worst = "argmax(delay, flight)"       # the flight with the longest delay
destinations = "approx_distinct(dest)"

[source]
format = "replay"                     # a file as a stream, in landing order
path = "flights.parquet"
order_by = "landed"
step = "{step}"                          # what one micro-batch covers

[stream]
watermark = "{watermark}h"                      # behind the latest departure; a flight that lands later is late
late = "correct"                      # ... and corrects the results that it changes
keep = "24h"
trigger = "available_now"
checkpoint = "checkpoint"

[sink]
format = "parquet"
path = "results"

[spark]
master = "local[{cores}]"
"""


def job_text(step: str, cores: int) -> str:
    return TEXT.format(step=step, watermark=WATERMARK_HOURS, cores=cores)
