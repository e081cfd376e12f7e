"""Write docs/operators.md from the registry of operators."""

from pathlib import Path

from slidewise.operators import table

HEAD = """# Operators

Unbound for a `Window` (`sw.max()`), bound to columns for `rolling` (`sw.max("amount")`, `sw.argmax("amount", "merchant")`), with
`where="column"` to say which rows count. This table is written by `scripts/operators_page.py` from the operators themselves.

- **laws**: what an algorithm may rely on beyond associativity ([what each buys](own-operator.md)); floats and objects may have
  fewer.
- **state**: how a partial aggregate is kept. `scalar` and `struct` are a few machine words, `wide` is an array of fixed width; all
  three run compiled. `object` is a Python object, and runs interpreted.
- **combine**: what it costs to combine two partials, and to read a result off one where that is more. An algorithm's bounds count
  combines: `slidewise algorithms`.
- **empty**: the result where a window holds no values.

Of values that are equal and not the same, such as the Decimals 1.0 and 1.00, `min` and `max` give the first in the order of time,
in whatever order they arrived. Of the floats 0.0 and -0.0 they, and `median`, may give either.

`quantile` is a KLL sketch of Apache DataSketches. `approx_distinct` and `approx_count` are sketches that DataSketches has too,
and are not its objects here: those are changed in place, so that every combine would copy one, and compiled loops cannot call
them. They are rows of numbers instead, which merge in compiled code. `approx_distinct` has the hash and the registers of its HLL
sketch, bit by bit, and `sketch=True` gives them in its format, which Spark SQL reads. `approx_count` has the width, depth and
guarantees of its count-min sketch, but not its bytes: one hash is spread over all rows in place of one for each, and counts
are whole numbers, so that what leaves a window can be subtracted. Tests hold both against DataSketches.

"""

COSTS = {
    "collect": "O(1), a result O(n)",
    "collect_distinct": "the distinct values of both",
    "concat": "O(1), a result O(n)",
    "median": "O(1), a result O(n)",
    "naive_bayes": "the pairs of both",
    "quantile": "O(k) sketch",
    "top_k": "O(k)",
}
"""Of states that are Python objects; the others have a fixed size."""
COLUMNS = {
    "name": "name", "inputs": "inputs", "parameters": "parameters", "laws": "laws", "kind": "state", "combine": "combine",
    "empty": "empty", "accuracy": "accuracy", "summary": "what it is", "source": "source",
}  # fmt: skip


def cost(row) -> str:
    kind = str(row.kind).split(" ")[0]
    return {"scalar": "O(1)", "struct": "O(1)", "wide": "O(width)"}.get(kind) or COSTS[row.name]


def page() -> str:
    lines = ["| " + " | ".join(COLUMNS.values()) + " |", "|" + " --- |" * len(COLUMNS)]
    for row in table():
        given = row._asdict() | {"combine": cost(row)}
        cells = [str(given[name]).replace("|", "\\|") for name in COLUMNS]
        cells[0] = f"`{cells[0]}`"
        lines.append("| " + " | ".join(cells) + " |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).resolve().parent.parent.joinpath("docs", "operators.md").write_text(page(), encoding="utf-8")
