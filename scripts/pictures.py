"""Draws the pictures of the documentation into docs/images, as SVG: `python scripts/pictures.py`.

Numbers in them are worked out here, with max as the operator, so a picture cannot tell a story that the algorithm does not.
Those about boundaries are in `boundary_pictures.py`.
"""

from __future__ import annotations

import itertools

import boundary_pictures
import drawing as paper
from drawing import BLUE, EDGE, GONE, GREEN, ORANGE, OTHER, PURPLE, RED, SOFT, SUFFIX, VALUE, Drawing, cells

# ---- the pictures --------------------------------------------------------------------------------------------------------


def rooms() -> None:
    names = {
        "algebra": "what an operator is",
        "operators": "the library",
        "algorithms": "one file each",
        "windows": "one boundary rule",
        "planner": "what is shared, who serves",
        "live": "windows that you feed",
        "engines": "frames, Spark",
        "pipeline, cli": "job files, demo",
    }
    drawing = Drawing(900, 196, "The rooms of Slidewise, and which way imports point")
    for place, (name, words) in enumerate(names.items()):
        x = 20 + place * 109
        fill = (SUFFIX, SUFFIX, SUFFIX, OTHER, OTHER, OTHER, VALUE, VALUE)[place]
        drawing.box(x, 30, 97, 58, fill=fill)
        drawing.text(x + 48, 54, name, size=14, bold=True)
        for row, part in enumerate(_halves(words)):
            drawing.text(x + 48, 70 + 12 * row, part, size=10.5, colour=SOFT)
        if place:
            drawing.line((x - 11, 59), (x - 2, 59), arrow=True)
    for first, last, words in (
        (0, 1, "an operator knows nothing of windows"),
        (2, 5, "an algorithm knows nothing of engines"),
        (6, 7, "an engine knows no algorithm by name"),
    ):
        drawing.bracket(20 + first * 109, 117 + last * 109, 112, "", colour=BLUE)
        middle = (20 + first * 109 + 117 + last * 109) / 2
        for row, part in enumerate(_halves(words) if last - first < 3 else [words]):
            drawing.text(middle, 134 + 17 * row, part, size=13, colour=BLUE, bold=True)
    drawing.text(
        450,
        182,
        "Imports point to the left only: a room may use the rooms before it, never those after it.",
        size=12,
        colour=SOFT,
    )
    drawing.write("rooms")


def _halves(words: str) -> list[str]:
    """In two lines of about the same length, where it is long."""
    if len(words) < 14:
        return [words]
    parts = words.split(" ")
    cut = min(range(1, len(parts)), key=lambda i: abs(len(" ".join(parts[:i])) - len(" ".join(parts[i:]))))
    return [" ".join(parts[:cut]), " ".join(parts[cut:])]


def two_stacks() -> None:
    values, turn = [4, 2, 7, 3, 5, 1, 6], 4
    suffixes = [max(values[i:turn]) for i in range(turn)]
    back = max(values[turn:])
    drawing = Drawing(820, 246, "Two-Stacks Lite: suffix aggregates in front, values behind")
    drawing.text(24, 62, "the window", size=13, colour=SOFT, anchor="start")
    edges = cells(drawing, 170, 38, values, [VALUE] * 7)
    drawing.text(edges[-1] + 18, 62, "oldest on the left; the operator is max", size=12, colour=SOFT, anchor="start")
    drawing.text(24, 126, "what is kept", size=13, colour=SOFT, anchor="start")
    cells(drawing, 170, 102, [*suffixes, *values[turn:]], [SUFFIX] * turn + [VALUE] * 3)
    drawing.bracket(edges[0], edges[turn], 150, "front: max up to here", colour=BLUE)
    drawing.line((edges[turn] - 1.5, 92), (edges[turn] - 1.5, 156), colour=BLUE, dashed=True)
    drawing.bracket(edges[turn], edges[-1], 150, "back: as it came", colour=ORANGE)
    drawing.box(edges[-1] + 60, 102, 43, 36, str(back), fill=OTHER)
    drawing.text(edges[-1] + 112, 126, "max of the back", size=12, colour=ORANGE, anchor="start")
    drawing.text(
        170,
        204,
        f"query = front's first ⊗ back = max({suffixes[0]}, {back}) = {max(suffixes[0], back)}",
        anchor="start",
        bold=True,
    )
    drawing.text(
        170, 226, "evict drops the first box; insert appends one and updates the back's max", size=13, colour=SOFT, anchor="start"
    )
    drawing.write("two-stacks")


def daba() -> None:
    values = [4, 2, 7, 3, 5, 1, 6, 2, 4, 3, 8, 1]
    left, right, after, back = 4, 6, 8, 9  # L, R, A, B; F = 0
    assert right - left == after - right, "the lists L and R are of one length"
    assert (back - left) + 1 == back - (len(values) - back), "how far the reversal must be"
    kept = [max(values[i:back]) for i in range(left)]
    kept += [max(values[i:right]) for i in range(left, right)]
    kept += values[right:after] + [max(values[i:back]) for i in range(after, back)] + values[back:]
    fills = [SUFFIX] * left + ["#dccff3"] * (right - left) + [VALUE] * (after - right) + [SUFFIX] * (back - after) + [VALUE] * 3
    drawing = Drawing(820, 268, "DABA Lite: the turning happens a step at a time")
    drawing.text(24, 62, "the window", size=13, colour=SOFT, anchor="start")
    edges = cells(drawing, 130, 38, values, [VALUE] * len(values))
    drawing.text(24, 126, "what is kept", size=13, colour=SOFT, anchor="start")
    cells(drawing, 130, 102, kept, fills)
    for place, name in ((0, "F"), (left, "L"), (right, "R"), (after, "A"), (back, "B"), (12, "E")):
        drawing.text(edges[place] - 1.5, 96, name, size=12, colour=SOFT, italic=True)
    drawing.bracket(edges[0], edges[left], 150, "max up to B", colour=BLUE)
    drawing.bracket(edges[left], edges[right], 150, "max up to R", colour=PURPLE)
    drawing.bracket(edges[right], edges[after], 150, "values still", colour=SOFT)
    drawing.bracket(edges[after], edges[back], 150, "to B", colour=BLUE)
    drawing.bracket(edges[back], edges[12], 150, "back: values", colour=ORANGE)
    drawing.line((edges[after] - 6, 190), (edges[right] + 12, 190), colour=BLUE, arrow=True)
    drawing.line((edges[left] + 4, 190), (edges[left] + 36, 190), colour=PURPLE, arrow=True)
    drawing.text(
        130,
        218,
        "Every insert and every evict does one step: A moves a place to the left, L a place to the right.",
        size=13,
        anchor="start",
    )
    drawing.text(
        130,
        238,
        "When the front runs empty the turning is already done: no operation ever has to wait for it.",
        size=13,
        anchor="start",
    )
    drawing.text(130, 258, "At most 3 combines an insert, 2 an evict, 1 a query.", size=13, colour=SOFT, anchor="start")
    drawing.write("daba")


def slick_deque() -> None:
    values, coming = [4, 2, 7, 3, 5, 1], 6
    drawing = Drawing(820, 250, "SlickDeque: only what may still win is kept")
    alive = [i for i, v in enumerate(values) if all(v > later for later in values[i + 1 :])]
    after = [i for i in alive if values[i] > coming]
    drawing.text(24, 62, "the window", size=13, colour=SOFT, anchor="start")
    edges = cells(drawing, 170, 38, values, [SUFFIX if i in alive else GONE for i in range(6)])
    drawing.text(edges[-1] + 14, 56, "grey: a later value is at least as great,", size=12, colour=SOFT, anchor="start")
    drawing.text(edges[-1] + 14, 72, "so it can never be the maximum again", size=12, colour=SOFT, anchor="start")
    drawing.text(24, 126, "the deque", size=13, colour=SOFT, anchor="start")
    for i in alive:
        drawing.line((edges[i] + 21, 76), (edges[i] + 21, 99), colour=BLUE, arrow=True)
        drawing.box(edges[i], 102, 43, 36, str(values[i]), fill=SUFFIX)
    drawing.text(edges[alive[0]] + 21, 156, "the answer", size=13, colour=BLUE, bold=True)
    drawing.text(24, 204, f"{coming} comes", size=13, colour=SOFT, anchor="start")
    for i in after:
        drawing.box(edges[i], 180, 43, 36, str(values[i]), fill=SUFFIX)
    for i in alive:
        if i not in after:
            drawing.box(edges[i], 180, 43, 36, str(values[i]), fill=GONE, colour="#b4bac4")
            drawing.line((edges[i] + 8, 208), (edges[i] + 35, 188), colour=RED, width=2)
    drawing.box(edges[6], 180, 43, 36, str(coming), fill=OTHER)
    drawing.text(edges[6] + 56, 196, "pushes out what it beats, from the right:", size=12, colour=SOFT, anchor="start")
    drawing.text(edges[6] + 56, 212, "below two combines an insert on average", size=12, colour=SOFT, anchor="start")
    drawing.write("slick-deque")


def flatfat() -> None:
    values = [4, 2, 7, 3, 5, 1, 6, 2]
    first, last = 2, 6
    drawing = Drawing(820, 300, "FlatFAT: a tree of partials over the window, and a range of it")
    tree: dict[int, int] = {8 + i: v for i, v in enumerate(values)}
    for node in range(7, 0, -1):
        tree[node] = max(tree[2 * node], tree[2 * node + 1])
    cover = _cover(first, last, 8)
    places = {}
    for node in range(1, 16):
        depth = node.bit_length() - 1
        wide = 560 / (1 << depth)
        places[node] = (90 + wide * (node - (1 << depth) + 0.5), 26 + 62 * depth)
    for node in range(2, 16):
        (x0, y0), (x1, y1) = places[node // 2], places[node]
        drawing.line((x0, y0 + 34), (x1, y1), colour=EDGE)
    for node, (x, y) in places.items():
        chosen = node in cover
        drawing.box(
            x - 21,
            y,
            42,
            34,
            str(tree[node]),
            fill=OTHER if chosen else SUFFIX if node < 8 else VALUE,
            edge=ORANGE if chosen else EDGE,
        )
    left, right = places[8 + first][0] - 26, places[8 + last][0] + 26
    told = " , ".join(str(tree[node]) for node in cover)
    drawing.bracket(
        left,
        right,
        258,
        f"any range is at most 2 log n partials: here max({told.replace(' ', '').replace(',', ', ')})",
        colour=ORANGE,
    )
    drawing.text(715, 48, "each is the max", size=12, colour=SOFT)
    drawing.text(715, 64, "of the two below", size=12, colour=SOFT)
    drawing.write("flatfat")


def _cover(first: int, last: int, leaves: int) -> list[int]:
    """The fewest nodes over the leaves first .. last, from left to right."""
    left, right, front, rear = leaves + first, leaves + last + 1, [], []
    while left < right:
        if left & 1:
            front.append(left)
            left += 1
        if right & 1:
            right -= 1
            rear.append(right)
        left, right = left // 2, right // 2
    return [*front, *reversed(rear)]


def fiba() -> None:
    drawing = Drawing(820, 338, "FiBA: a B-tree with fingers at both ends")
    nodes = {
        "h o": (410, 40), "c f": (170, 120), "k m": (410, 120), "r t": (650, 120),
        "a b": (80, 200), "d e": (170, 200), "g": (250, 200), "i j": (335, 200), "l": (410, 200), "n": (480, 200),
        "p q": (560, 200), "s": (645, 200), "u v": (735, 200),
    }  # fmt: skip
    letters = sorted("".join(nodes).replace(" ", ""))
    assert letters == [chr(ord("a") + i) for i in range(22)]
    parents = {"c f": "h o", "k m": "h o", "r t": "h o"}
    parents |= {
        "a b": "c f",
        "d e": "c f",
        "g": "c f",
        "i j": "k m",
        "l": "k m",
        "n": "k m",
        "p q": "r t",
        "s": "r t",
        "u v": "r t",
    }
    held = {"a b": "a..g", "c f": "c..g", "h o": "h..o", "k m": "i..n", "r t": "p..t", "u v": "p..v"}
    left, right = ("a b", "c f"), ("r t", "u v")
    for child, parent in parents.items():
        (x0, y0), (x1, y1) = nodes[parent], nodes[child]
        colour = BLUE if child in left else GREEN if child in right else EDGE
        drawing.line((x0, y0 + 34), (x1, y1), colour=colour, width=2 if child in (*left, *right) else 1.4)
    for name, (x, y) in nodes.items():
        wide = 26 + 11 * len(name)
        fill = SUFFIX if name in left else "#d3efe0" if name in right else OTHER if name == "h o" else VALUE
        drawing.box(x - wide / 2, y, wide, 34, name, fill=fill, edge=RED if name == "s" else EDGE)
        if name in held:
            x_word, anchor = (x - wide / 2 - 7, "end") if name in (*left, "k m") else (x + wide / 2 + 7, "start")
            colour = BLUE if name in left else GREEN if name in right else ORANGE if name == "h o" else SOFT
            drawing.text(x_word, y + 22, held[name], size=12, colour=colour, anchor=anchor, italic=True)
    drawing.text(80, 256, "left finger: oldest", size=13, colour=BLUE)
    drawing.text(735, 256, "right finger: youngest", size=13, colour=GREEN)
    drawing.line((705, 196), (672, 158), colour=RED, width=1.8)
    drawing.line((640, 158), (638, 197), colour=RED, width=1.8, arrow=True)
    drawing.text(
        800,
        280,
        "a late event at s: up from the right finger and down again, not from the root",
        size=12,
        colour=RED,
        anchor="end",
    )
    drawing.text(410, 306, "query = a..g ⊗ h..o ⊗ p..v: two combines, whatever the size", bold=True)
    drawing.text(
        410,
        327,
        "in italics what a node holds: on a spine all between it and the root, so that a change near an end stays there",
        size=11.5,
        colour=SOFT,
    )
    drawing.write("fiba")


def slices() -> None:
    drawing = Drawing(820, 262, "Two windows that share their slices")
    start, step = 60, 60
    cuts = sorted({*range(0, 13, 2), *range(0, 13, 3)})
    drawing.text(24, 26, "every 2 min over 6 min, every 3 min over 9 min", size=13, colour=SOFT, anchor="start")
    events = (0.4, 1.1, 1.7, 2.3, 3.5, 4.2, 4.6, 5.4, 6.3, 6.8, 7.5, 8.4, 9.2, 9.6, 10.5, 11.3)
    for t in events:
        drawing.parts.append(f'<circle cx="{start + t * step:g}" cy="54" r="4.5" fill="{SOFT}"/>')
    for t in range(13):
        drawing.text(start + t * step, 84, str(t), size=11, colour=SOFT)
    for a, b in itertools.pairwise(cuts):
        count = sum(a < t <= b for t in events)
        drawing.box(
            start + a * step + 1.5,
            94,
            (b - a) * step - 3,
            34,
            f"{count}" if b - a < 1 else f"{count} event{'s' if count != 1 else ''}",
            fill=SUFFIX,
            size=12,
        )
    drawing.text(start - 12, 115, "slices", size=12, colour=BLUE, anchor="end")
    for row, (range_, end, colour) in enumerate(((6, 8, ORANGE), (6, 10, ORANGE), (9, 9, PURPLE), (9, 12, PURPLE))):
        y = 150 + row * 22
        inside = sum(1 for a, b in itertools.pairwise(cuts) if a >= end - range_ and b <= end)
        drawing.line((start + (end - range_) * step, y), (start + end * step, y), colour=colour, width=3)
        words = f"{range_} min up to {end}: {inside} slices"
        if end < 11:
            drawing.text(start + end * step + 8, y + 4, words, size=12, colour=colour, anchor="start")
        else:
            drawing.text(start + (end - range_) * step - 8, y + 4, words, size=12, colour=colour, anchor="end")
    drawing.text(
        24,
        250,
        "Each event is combined once, into its slice; every window is a run of slices, which a window algorithm keeps.",
        size=12.5,
        colour=SOFT,
        anchor="start",
    )
    drawing.write("slices")


def late_data() -> None:
    drawing = Drawing(820, 250, "What happens to an event, by its time")
    beyond, kept, mark, young, ahead = 40, 210, 420, 640, 720
    zones = (
        (beyond, kept, GONE, SOFT, "too old", ("handed out apart:", "late = true, no results")),
        (kept, mark, OTHER, ORANGE, "late", ('"correct": taken in, results', 'given again; "side", "drop"')),
        (mark, young, SUFFIX, BLUE, "out of order", ("taken in; what it changes", "is given again")),
        (young, ahead, "#d3efe0", GREEN, "new", ("taken in",)),
        (ahead, 800, GONE, SOFT, "ahead", ("as late",)),
    )
    for left, right, fill, colour, name, words in zones:
        drawing.box(left + 1, 70, right - left - 2, 46, name, fill=fill, colour=colour, bold=True)
        for row, part in enumerate(words):
            drawing.text((left + right) / 2, 152 + 16 * row, part, size=11.5 if len(words) > 1 else 12, colour=SOFT)
    for place, words in ((kept, "watermark - keep"), (mark, "watermark"), (young, "youngest event so far")):
        drawing.line((place, 50), (place, 128), colour=RED if place == mark else SOFT, dashed=place != mark, width=1.8)
        drawing.text(place, 42, words, size=13, colour=RED if place == mark else SOFT, bold=place == mark)
    drawing.text(ahead + 4, 62, "now + max_ahead", size=11, colour=SOFT)
    drawing.line((mark + 4, 198), (young - 4, 198), colour=RED, arrow=True)
    drawing.text((mark + young) / 2, 216, 'watermark = "10m"', size=12, colour=RED)
    drawing.line((mark - 4, 198), (kept + 4, 198), colour=ORANGE, arrow=True)
    drawing.text((mark + kept) / 2, 216, 'keep = "24h"', size=12, colour=ORANGE)
    drawing.line((40, 236), (800, 236), arrow=True)
    drawing.text(44, 229, "event time", size=12, colour=SOFT, anchor="start")
    drawing.write("late-data")


def main() -> None:
    paper.FOLDER.mkdir(parents=True, exist_ok=True)
    for draw in (rooms, slices, two_stacks, daba, slick_deque, flatfat, fiba, late_data, *boundary_pictures.ALL):
        draw()


if __name__ == "__main__":
    main()
