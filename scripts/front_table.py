"""The table of figures on the README's first screen, out of docs/performance.md: `python scripts/front_table.py` writes it anew.

Each figure is another's time over ours for the same answers, as `slidewise bench` printed it; what the page lacks is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures of docs/performance.md -->\n", "<!-- end of figures -->\n"
PEERS = ("pandas", "polars", "duckdb", "spark")
HEAD = "| their time over ours | pandas | Polars | DuckDB | Spark |\n| --- | --- | --- | --- | --- |\n"


def table(page: str) -> str:
    lines = [HEAD]
    for what, figures in rows(page):
        if figures:
            cells = " | ".join(f"{_told(figures[peer])} ×" if peer in figures else "" for peer in PEERS)
            lines.append(f"| {what} | {cells} |\n")
    return "".join(lines)


def rows(page: str) -> list[tuple[str, dict[str, float]]]:
    one = _table(page, r"one key, [\d,]+ rows, windows of 1000:")
    many = _table(page, r"3 windows x 5 aggregates, [\d,]+ rows:")
    own = _table(page, r"a user's own operator:")
    found = [(f"`{name}` over the last 1,000 rows, one key", one.get(name, {})) for name in ("sum", "max")]
    for keys in (1000, 100000):
        found.append((f"3 windows × 5 aggregates, {keys:,} keys", many.get(f"{keys} keys", {})))
    apply = own.get("apply", {}).get("pandas apply")
    found.append(("a function of your own (pandas: `apply`)", {} if apply is None else {"pandas": apply}))
    frames = _spark(page, "Spark's frames with the segment tree")
    found.append(("3 windows × 5 aggregates, 100 keys, as Spark's frames (segment tree on)", frames))
    found.append(("10 minutes, every second, as Spark's `window()`", _spark(page, r"Spark's window\(\)")))
    return found


def _table(page: str, title: str) -> dict[str, dict[str, float]]:
    """The cells of the table under a title: what -> peer -> figure."""
    match = re.search(rf"^{title}[^\n]*\n\n((?:\|.*\n)+)", page, re.M)
    if match is None:
        return {}
    head, _, *lines = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in match[1].splitlines()]
    return {line[0]: {peer: float(cell) for peer, cell in zip(head[1:], line[1:]) if cell != "-"} for line in lines}


def _spark(page: str, what: str) -> dict[str, float]:
    section = page.partition("### spark-batch")[2].partition("\n### ")[0]
    match = re.search(rf"ours [\d,]+ rows/s[,:] ([\d.]+) times {what}", section)
    return {} if match is None else {"spark": float(match[1])}


def _told(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 10 else f"{figure:.1f}"


def with_table(readme: str, page: str) -> str:
    before, rest = readme.split(BEGIN)
    return before + BEGIN + table(page) + END + rest.split(END)[1]


def write() -> None:
    readme = ROOT / "README.md"
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    readme.write_text(with_table(readme.read_text(encoding="utf-8"), page), encoding="utf-8")


if __name__ == "__main__":
    write()
