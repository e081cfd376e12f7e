"""The experiments of the papers, one suite each: `slidewise bench daba-2015-table-1`, `slidewise bench daba-2015` for all of a
paper, `slidewise bench papers` for all of all.

Each has its sizes (`--quick`, full), its plot in the paper's form, and the paper's claims judged by the rows. A suite is named
after the paper and the table or figure. `SUITES` maps the name to `module:NAME` of the Suite.
"""

_HERE = "slidewise.bench.papers"

SUITES: dict[str, str] = {}
