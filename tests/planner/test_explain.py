"""What `explain` says is what `rolling` and `as_of` would do, and it refuses what they refuse."""

import pyarrow as pa
import pytest

import slidewise as sw

TABLE = pa.table({"t": pa.array([1, 2, 3]), "k": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "flag": [True, False, True]})
LONGEST = sw.operator(
    lift=lambda x: str(x), combine=lambda a, b: b if len(b) > len(a) else a, identity="", selective=True, name="longest"
).with_(object_only=True)


def explained(*frames, **arguments):
    return sw.explain(*(frames or (TABLE,)), **{"time": "t", "windows": 5, "aggs": {"s": sw.sum("x")}, **arguments})


def rule(window, **arguments):
    return explained(windows={"w": window}, **arguments).as_dict()["windows"]["w"]["rows"]


def test_nothing_is_called_shared_that_runs_apart():
    """One deque serves several windows, but not where the row itself is left out, nor over slices: each window has its own."""
    together = dict(windows={"a": 20, "b": 50}, aggs={"s": LONGEST("x")})
    step = explained(**together).as_dict()["steps"][0]
    assert step["shared"] == "one pass for a, b" and "shared by 2 windows" in step["because"]
    for apart in (
        dict(exclude_current=True),
        dict(emit="slide", windows={"a": sw.time(20, slide=10), "b": sw.time(50, slide=10)}),
    ):
        step = explained(**together | apart).as_dict()["steps"][0]
        assert (step["name"], step["shared"]) == ("slick_deque", "") and "shared by" not in step["because"]


def test_slices_are_told_only_where_they_are_run():
    asked = dict(windows={"a": sw.time(20, slide=10), "b": sw.time(50, slide=10)}, emit="slide")
    assert explained(**asked).as_dict()["slices"]["technique"] == "pairs"
    tree = explained(**asked, algorithm="fiba")
    assert tree.as_dict()["slices"] is None and "Slices" not in str(tree)
    assert "rows that leave together" in str(tree)


def test_rules_say_offset_closed_and_origin():
    assert rule(sw.time(6, slide=2, offset=1, origin=3)) == (
        "(b - 1 - 6, b - 1], b = the last multiple of 2 from 3 at or before t"
    )
    assert rule(sw.time(6, slide=2), emit="slide", closed="left") == "[b - 6, b), b = every multiple of 2"
    assert rule(sw.tumbling(6), origin=2) == "(b, t], b = the last multiple of 6 from 2 before t"
    assert rule(sw.tumbling(6), closed="both") == "[b, t], b = the last multiple of 6 at or before t"
    assert rule(sw.tumbling(6), emit="slide") == "(b - 6, b], b = every multiple of 6"
    assert rule(sw.rows(4)) == "the last 4 rows by (time, order)"
    assert rule(sw.rows(4, offset=2), closed="left") == "the 4 rows before the row by (time, order), counted from 2 rows back"
    assert rule(sw.rows(4, slide=3), closed="both") == (
        "the row and the 4 before it by (time, order), counted from the last of each 3 rows"
    )
    assert rule(sw.session(3), closed="left") == "since the last silence of more than 3, up to t)"
    assert rule(sw.punctuation("flag")) == "behind the last row with flag, up to the row"
    assert rule(sw.punctuation("flag"), closed="neither") == "behind the last row with flag, without the row"
    assert rule(sw.delta("x", 2), closed="left") == "while x stays within 2, without the row"
    assert rule(sw.lifetime()) == "everything up to t]"


def test_as_of_has_neither_ties_nor_an_emit():
    told = explained(TABLE, TABLE).as_dict()["call"]
    assert "closed left" in told and "ties" not in told and "emit" not in told
    assert explained(TABLE, TABLE, ties="arrival", emit="event", exclude_current=False).as_dict()["call"] == told


@pytest.mark.parametrize(
    ("frames", "arguments", "words"),
    [
        ((TABLE,), dict(foo=1), "no argument foo="),
        ((TABLE,), dict(watermark="10m"), "watermark= is for streams"),
        ((TABLE, TABLE), dict(query_time="when"), "no column 'when' in the queries"),
        ((TABLE, TABLE), dict(by="k", query_by=("k", "x")), "query_by= 2"),
        ((TABLE, TABLE), dict(ties="arrival", closed="right"), "did not arrive among the rows"),
        ((TABLE, TABLE), dict(emit="latest"), "a row for each query"),
        ((TABLE, TABLE), dict(exclude_current=True), "none to exclude"),
        ((TABLE, TABLE), dict(ties="some"), "ties must be one of"),
        ((TABLE, TABLE), dict(by="k", query_by="t"), "'t' of the queries is int64, the data's 'k' is string"),
        ((TABLE.set_column(0, "t", pa.array([0] * 3, pa.date32())), TABLE), {}, "do not count the same"),
        ((TABLE,), dict(query_time="t"), "queries"),
    ],
)
def test_what_the_call_refuses_is_refused(frames, arguments, words):
    with pytest.raises(sw.SlidewiseError, match=words):
        explained(*frames, **arguments)


def test_what_every_call_needs_is_named():
    with pytest.raises(sw.SlidewiseError, match="explain needs windows=, aggs="):
        sw.explain(TABLE, time="t")
