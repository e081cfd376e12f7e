"""The line of each key."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from slidewise.pipeline.positions import lines_of

TEXT = '''\
# a comment with [brackets] and key = 1
mode = "stream"   # and one behind
windows = [
    "1h",  # not, "two"
    { rows = 100, slide = 5 },
]
"odd key" = """
several = lines
""" # "
a.b.c = '\\'

[source]
format = "csv"
options = { header = "x = {1}", sep = "," }
[source.schema]
ts = "timestamp"
[[rules]]
name = 1
[[rules]]
name = 2
[rules.deep]
x = [[1, 2], [3]]
'''


def test_each_key_has_its_line() -> None:
    tomllib.loads(TEXT)
    found = lines_of(TEXT)
    assert found == {
        ("mode",): 2,
        ("windows",): 3,
        ("windows", 0): 4,
        ("windows", 1): 5,
        ("windows", 1, "rows"): 5,
        ("windows", 1, "slide"): 5,
        ("odd key",): 7,
        ("a",): 10,
        ("a", "b"): 10,
        ("a", "b", "c"): 10,
        ("source",): 12,
        ("source", "format"): 13,
        ("source", "options"): 14,
        ("source", "options", "header"): 14,
        ("source", "options", "sep"): 14,
        ("source", "schema"): 15,
        ("source", "schema", "ts"): 16,
        ("rules",): 17,
        ("rules", 0): 17,
        ("rules", 0, "name"): 18,
        ("rules", 1): 19,
        ("rules", 1, "name"): 20,
        ("rules", 1, "deep"): 21,
        ("rules", 1, "deep", "x"): 22,
        ("rules", 1, "deep", "x", 0): 22,
        ("rules", 1, "deep", "x", 0, 0): 22,
        ("rules", 1, "deep", "x", 0, 1): 22,
        ("rules", 1, "deep", "x", 1): 22,
        ("rules", 1, "deep", "x", 1, 0): 22,
    }


KEYS = st.sampled_from(["a", "b-c", '"d e"', "'f#'"])
VALUES = st.recursive(
    st.sampled_from(["1", "true", '"x"', '"]"', "'#'", '"\\""', "1979-05-27T07:32:00Z", "'''a\nb'''", '"""q"x\n"""']),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[\n" + ",\n".join(items) + "]"),
        st.lists(inner, max_size=2).map(lambda items: "{" + ", ".join(f"k{i} = {v}" for i, v in enumerate(items)) + "}"),
    ),
    max_leaves=6,
)


@given(st.lists(st.tuples(KEYS, VALUES), max_size=4, unique_by=lambda pair: pair[0]))
def test_the_same_keys_as_the_parser(pairs) -> None:
    text = "".join(f"{key} = {value} # end\n" for key, value in pairs)
    assert set(lines_of(text)) == set(_paths(tomllib.loads(text)))
    for (key, _), line in zip(pairs, [lines_of(text)[(key.strip("\"'"),)] for key, _ in pairs]):
        assert text.splitlines()[line - 1].startswith(key)


def _paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from _paths(inner, (*path, key))
