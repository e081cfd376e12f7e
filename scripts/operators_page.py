"""Write docs/operators.md from the registry of operators."""

from pathlib import Path

from slidewise.operators import table

HEAD = """# Operators

Unbound for a `Window` (`sw.max()`), bound to columns for `rolling` (`sw.max("amount")`, `sw.argmax("amount", "merchant")`), with
`where="column"` to say which rows count. This table is written by `scripts/operators_page.py` from the operators themselves.

"""


def page() -> str:
    rows = table()
    names = rows[0]._fields
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        cells = [str(getattr(row, name)).replace("|", "\\|") for name in names]
        cells[0] = f"`{cells[0]}`"
        lines.append("| " + " | ".join(cells) + " |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).resolve().parent.parent.joinpath("docs", "operators.md").write_text(page())
