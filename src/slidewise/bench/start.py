"""How long a process takes to be ready: import, five operators, each with its first answer.

The first process compiles and files its code, the others find it. Each is a new interpreter with a cache of its own that starts
empty, so what is measured does not depend on what was run before.
"""

import os
import subprocess
import sys
import tempfile

from slidewise.bench.suite import Progress, Row, Suite, View
from slidewise.bench.timing import seconds

PROGRAM = """
import slidewise as sw
for op, dtype in ((sw.sum(), "i8"), (sw.max(), "f8"), (sw.std(), "f8"), (sw.geomean(), "f8"), (sw.bloom(), "i8")):
    window = sw.Window(op, algorithm="two_stacks_lite", dtype=dtype)
    for t in range(1, 20):
        window.insert(t, t)
        if len(window) > 10:
            window.evict()
        window.query()
"""

LIMIT_SECONDS = 1.5


def run(quick: bool, progress: Progress) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, SLIDEWISE_CACHE_DIR=folder)

        def process() -> None:
            subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, stderr=subprocess.DEVNULL)

        for number in range(1, 4 if quick else 7):
            progress(f"process {number}")
            rows.append({"process": number, "operators": 5, "seconds": seconds(process)})
    return rows


def verdicts(rows: list[Row]) -> list[str]:
    first, later = rows[0]["seconds"], min(row["seconds"] for row in rows[1:])
    word = "within" if later <= LIMIT_SECONDS else "beyond"
    return [
        f"a process with 5 operators is ready after {first:.1f} s when it has to compile them, after {later:.2f} s when "
        f"another has: {word} {LIMIT_SECONDS} s"
    ]


SUITE = Suite(
    name="start",
    source="the disk cache of compiled code",
    summary="from the start of a process to the first answers of five operators",
    run=run,
    views=lambda rows: [View("seconds until ready", "operators", "process", "seconds")],
    verdicts=verdicts,
)
