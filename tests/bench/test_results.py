"""What is filed: results with their claims, the report, comparisons; damaged files are refused with a clear word."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from slidewise import bench
from slidewise.bench import compare, plots, records, report
from slidewise.bench.suite import HOLDS, Claim, Panel, Plot, Result, Suite, View, claim
from slidewise.errors import InputError

ROWS = [
    {"what": "a", "size": 1, "rate": 10.0},
    {"what": "a", "size": 2, "rate": 20.0},
    {"what": "b", "size": 1, "rate": 5.0},
    {"what": "b", "size": 2, "rate": None},
]


def claims(rows):
    faster = [row["rate"] > 8 for row in rows if row["rate"] is not None]
    return [
        claim("a <is> fast", f"{sum(faster)} of {len(faster)}", faster, "b & others are not"),
        claim("nothing is slow", "-", [], "never shown"),
        claim("rates are positive", "they are", [True]),
        claim("rates are negative", "they are not", [False], "they never were"),
    ]


def made(name: str, scale: float = 1.0) -> Suite:
    return Suite(
        name,
        "nobody 1999 Figure 0",
        "rates of a and b",
        run=lambda quick, progress: [dict(row, rate=row["rate"] and row["rate"] * scale) for row in ROWS],
        views=lambda rows: [View("rates", "what", "size", "rate", best="max")],
        verdicts=lambda rows: ["a is twice as fast"],
        plots=lambda rows: [
            Plot(
                [
                    Panel("rate", "size", "rate", "what", x_log=2, y_log=10),
                    Panel("bars", "what", "rate", "size", kind="bars"),
                ]
            )
        ],
        claims=claims,
        stands_in="Nobody is not at hand.",
    )


@pytest.fixture
def two(monkeypatch):
    """Two suites that measure nothing, of one paper, in place of all others."""
    module = types.ModuleType("two_suites")
    module.ONE, module.TWO = made("daba-2015-fig-1"), made("daba-2015-fig-2", 2.0)
    monkeypatch.setitem(sys.modules, "two_suites", module)
    suites = {"daba-2015-fig-1": "two_suites:ONE", "daba-2015-fig-2": "two_suites:TWO"}
    monkeypatch.setattr(bench, "SUITES", suites)
    return module


def test_claims_are_computed():
    assert [c.holds for c in claims(ROWS)] == ["partly", "unmeasured", "yes", "no"]
    assert [c.why for c in claims(ROWS)] == ["b & others are not", "", "", "they never were"]
    with pytest.raises(ValueError, match="holds is one of"):
        Claim("x", "y", "maybe")


def test_groups(two):
    assert bench.groups() == {"daba-2015": list(bench.SUITES), "papers": list(bench.SUITES)}
    assert bench.expanded(["daba-2015-fig-2", "daba-2015"]) == ["daba-2015-fig-2", "daba-2015-fig-1"]


def test_a_run_tells_claims_and_draws(two, tmp_path, capsys):
    assert bench.main(["daba-2015", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "the paper says a <is> fast" in shown
    assert "/ here 2 of 3: holds in part" in shown
    assert "does not hold" in shown
    assert "Nobody is not at hand." in shown
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"daba-2015-fig-{k}.{suffix}" for k in (1, 2) for suffix in ("csv", "json", "svg")}


def test_a_result_comes_back_as_it_was_filed(two, tmp_path):
    result = bench.run(["daba-2015-fig-1"], quick=True, out_dir=tmp_path)["daba-2015-fig-1"]
    back = records.read(tmp_path / "daba-2015-fig-1.json")
    assert (back.rows, back.claims, back.verdicts, back.quick) == (result.rows, result.claims, result.verdicts, True)
    assert back.stands_in == "Nobody is not at hand."
    assert back.versions["slidewise"]
    assert back.machine["cores"] >= 1
    assert back.beside == result.beside
    assert back.finished


def test_one_suite_that_fails_does_not_cost_the_others(two, tmp_path, capsys):
    def fail(quick, progress):
        raise RuntimeError("no [bold]luck[/]")

    two.ONE = Suite("daba-2015-fig-1", "nobody", "fails", run=fail)
    assert bench.main(["papers", "--out", str(tmp_path)]) == 1
    assert "daba-2015-fig-1 failed: RuntimeError: no [bold]luck[/]" in capsys.readouterr().err
    assert (tmp_path / "daba-2015-fig-2.json").exists()


def test_what_failed_is_said_again_at_the_end(two, tmp_path, capsys):
    """Of all suites in one go: a suite that cannot even be loaded is one of them, and the report is still made."""

    def fail(quick, progress):
        raise RuntimeError("no luck")

    two.ONE = Suite("daba-2015-fig-1", "nobody", "fails", run=fail)
    bench.SUITES["daba-2015-fig-0"] = "no_such_module:ZERO"
    assert bench.main(["--out", str(tmp_path), "--report"]) == 1
    told = capsys.readouterr()
    assert "2 of 3 suites failed:" in told.out
    last = [line for line in told.err.splitlines() if "failed:" in line][-2:]
    assert [line.split(" failed")[0] for line in last] == ["daba-2015-fig-1", "daba-2015-fig-0"]
    assert {path.name for path in tmp_path.glob("*.json")} == {"daba-2015-fig-2.json"}
    assert (tmp_path / "report.html").exists()
    assert bench.main(["daba-2015-fig-2", "nothing", "--out", str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists(), "a wrong name is told before anything runs"


@pytest.fixture
def elsewhere():
    """What is looked up once in a process is looked up anew."""
    found = records.commit, records.java
    for one in found:
        one.cache_clear()
    yield
    for one in found:
        one.cache_clear()


def test_a_result_says_of_which_commit_java_and_settings_it_is(two, tmp_path, monkeypatch, elsewhere):
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "0")
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    said = {"ls-files": "records.py", "rev-parse": "0123456789ab\n", "status": "", "-version": 'openjdk version "17.0.1" 2021'}
    monkeypatch.setattr(records, "_said", lambda *words: next((text for word, text in said.items() if word in words), None))
    bench.run(["daba-2015-fig-1"], out_dir=tmp_path)
    back = records.read(tmp_path / "daba-2015-fig-1.json")
    assert (back.versions["commit"], back.versions["java"]) == ("0123456789ab", "17.0.1")
    assert back.settings["MALLOC_MMAP_MAX_"] == "0" and "_RJEM_MALLOC_CONF" not in back.settings
    page = report.write(tmp_path).read_text()
    assert all(word in page for word in ("0123456789ab", "17.0.1", "MALLOC_MMAP_MAX_"))
    records.commit.cache_clear()
    said["status"] = " M src/slidewise/bench/records.py"
    assert records.commit() == "0123456789ab with changes"


@pytest.mark.parametrize("missing", ["git", "repository"])
def test_no_git_and_no_java(monkeypatch, elsewhere, missing):
    if missing == "git":
        monkeypatch.setattr(records.shutil, "which", lambda program: None)
    else:  # installed inside somebody else's repository: theirs is not our commit
        monkeypatch.setattr(records, "_said", lambda *words: None if "ls-files" in words else "0123")
    assert records.commit() == "unknown"
    assert records.java() == "none"


def test_older_results_are_compared(two, tmp_path, capsys):
    """They have no commit, no Java and no settings."""
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b):
        bench.run(["daba-2015-fig-1"], out_dir=folder)
    path = a / "daba-2015-fig-1.json"
    old = json.loads(path.read_text())
    del old["settings"], old["versions"]["commit"], old["versions"]["java"]
    path.write_text(json.dumps(old))
    found = compare.compared(records.read(path), records.read(b / path.name))
    assert [found.surroundings()[name][0] for name in ("commit", "java")] == ["-", "-"]
    assert bench.main(["compare", str(a), str(b)]) == 0
    assert "commit: A -, B" in capsys.readouterr().out


def test_the_report_tells_everything(two, tmp_path):
    bench.run(out_dir=tmp_path)
    assert bench.main(["report", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "report.html").read_text()
    for word in ("a &lt;is&gt; fast", "b &amp; others are not", "does not hold", "holds in part", "they never were"):
        assert word in page
    assert "8 claims, the papers' and our own" in page
    assert page.count("data:image/svg+xml;base64,") == 2
    first = records.read(tmp_path / "daba-2015-fig-1.json")
    assert first.versions["numba"] in page
    assert str(first.machine["processor"]) in page
    claims_at = page.index("<h2>Claims</h2>")
    assert page.index("they never were", claims_at) < page.index(
        "rates are positive", claims_at
    )  # what does not hold comes first
    assert all(f'class="{holds}"' in page for holds in HOLDS)


def test_a_report_of_a_suite_that_is_gone(two, tmp_path, monkeypatch):
    bench.run(["daba-2015-fig-2"], out_dir=tmp_path)
    monkeypatch.setattr(bench, "SUITES", {})
    assert "they never were" in report.write(tmp_path).read_text()


def test_two_runs_compared(two, tmp_path, capsys):
    a, b = tmp_path / "a", tmp_path / "b"
    bench.run(out_dir=a)
    bench.run(["daba-2015-fig-1"], out_dir=b)
    other = json.loads((b / "daba-2015-fig-1.json").read_text())
    for row in other["rows"]:
        row["rate"] = row["rate"] and row["rate"] * 3
    other["versions"]["numba"] = "0.0.1"
    other["claims"][2]["holds"] = "no"
    (b / "daba-2015-fig-1.json").write_text(json.dumps(other))
    found = compare.compared(*(compare.load(path)["daba-2015-fig-1"] for path in (a, b)))
    assert len(found.pairs) == 4
    assert found.pairs[0].what == {"what": "a", "size": 1}
    assert found.pairs[0].figures == {"rate": (10.0, 30.0)}
    assert found.means() == {"rate": pytest.approx(3.0)}
    assert found.surroundings() == {"numba": (found.a.versions["numba"], "0.0.1")}
    capsys.readouterr()
    assert bench.main(["compare", str(a), str(b)]) == 0
    shown = capsys.readouterr().out
    for word in (
        "numba",
        "0.0.1",
        "B is 3 times A",
        "only in",
        "daba-2015-fig-2",
        "rates are positive: yes in A, no in B",
    ):
        assert word in shown
    assert bench.main(["compare", str(a / "daba-2015-fig-1.json"), str(b / "daba-2015-fig-1.json")]) == 0


def test_rows_of_other_sizes_are_not_compared(two, tmp_path):
    bench.run(["daba-2015-fig-1"], out_dir=tmp_path)
    a = records.read(tmp_path / "daba-2015-fig-1.json")
    b = records.read(tmp_path / "daba-2015-fig-1.json")
    b.rows[0]["size"] = 99
    found = compare.compared(a, b)
    assert (len(found.pairs), found.only_a, found.only_b) == (3, 1, 1)


def test_whole_numbers_that_came_out_are_compared(two, tmp_path):
    """A count after the first figure is a result, not what was measured."""
    bench.run(["daba-2015-fig-1"], out_dir=tmp_path)
    a, b = (records.read(tmp_path / "daba-2015-fig-1.json") for _ in range(2))
    for k, (one, other) in enumerate(zip(a.rows, b.rows)):
        one.update(found=k + 1, how="same")
        other.update(found=2 * k + 2, how="same")
    found = compare.compared(a, b)
    assert len(found.pairs) == 4
    assert found.pairs[0].what == {"what": "a", "size": 1, "how": "same"}
    assert found.means()["found"] == pytest.approx(2.0)


def test_rows_that_only_fractions_tell_apart(two, tmp_path):
    """Windows of a quarter of a day and of a day are two rows; what a histogram holds is a result."""
    bench.run(["daba-2015-fig-1"], out_dir=tmp_path)
    a, b = (records.read(tmp_path / "daba-2015-fig-1.json") for _ in range(2))
    for run, result in enumerate((a, b)):
        result.rows[:] = [
            {"what": what, "days": days, "rate": days + run, "bins": f"{what} {days} {run}"}
            for what in "ab" for days in (0.25, 1.0, 32.0)
        ]
    found = compare.compared(a, b)
    assert (len(found.pairs), found.only_a, found.only_b) == (6, 0, 0)
    assert found.pairs[0].what == {"what": "a", "days": 0.25}
    assert found.pairs[0].figures == {"rate": (0.25, 1.25)}


def test_every_filed_result_can_be_compared():
    """With itself, measured again: no row is lost, and something was measured in each."""
    folder = Path(__file__).parents[2] / "docs" / "performance" / "results"
    for name, result in compare.load(folder).items():
        again = replace(result, rows=[
            {k: v * 1.5 + 0.1 if isinstance(v, float) and k not in ("days", "low") else v + "7" if k == "bins" and v else v
             for k, v in row.items()} for row in result.rows
        ])
        found = compare.compared(result, again)
        assert (len(found.pairs), found.only_a, found.only_b) == (len(result.rows), 0, 0), name
        assert any(pair.figures for pair in found.pairs), name


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda text: text[: len(text) // 2], "damaged, it is no JSON"),
        (lambda text: "[]", "not a result of slidewise bench"),
        (lambda text: text.replace('"versions"', '"verses"'), "it has no 'versions'"),
        (lambda text: text.replace('"holds": "yes"', '"holds": "perhaps"'), "holds is one of"),
        (lambda text: text.replace('"size": 2', '"length": 2'), "same columns"),
        (lambda text: text.replace('"rows": [', '"rows": [7,'), "not a list of rows"),
    ],
)
def test_damaged_results_are_refused(two, tmp_path, capsys, change, word):
    bench.run(["daba-2015-fig-1"], out_dir=tmp_path)
    path = tmp_path / "daba-2015-fig-1.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(InputError, match=word):
        records.read(path)
    for command in (["report", "--out", str(tmp_path)], ["compare", str(tmp_path), str(tmp_path)]):
        assert bench.main(command) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_wrong_usage_of_report_and_compare(two, tmp_path, capsys):
    def told():
        """Without the line breaks: those depend on how long the paths are."""
        return " ".join(capsys.readouterr().err.split())

    assert bench.main(["report", "--out", str(tmp_path)]) == 2
    assert "holds no results" in told()
    assert bench.main(["report", "--out", str(tmp_path / "none")]) == 2
    assert bench.main(["compare", "one"]) == 2
    assert "compare takes two runs" in told()
    assert bench.main(["compare", str(tmp_path / "x.json"), str(tmp_path / "y.json")]) == 2
    assert "cannot read" in told()


def test_a_line_keeps_its_colour():
    assert plots.style("daba", plots.places(["x", "daba"])) == plots.style("daba", plots.places(["daba"]))


@pytest.mark.parametrize("lines", [[*plots.KNOWN], [*"abcdefghijklmno"], ["two_stacks", "daba", "flatfat", *"abcdef"]])
def test_lines_of_a_figure_look_different(lines):
    known = plots.places(lines)
    looks = [tuple(plots.style(line, known).items()) for line in lines]
    assert len(set(looks)) == len(looks)
    if len(lines) <= len(plots.COLOURS):
        assert len({plots.style(line, known)["color"] for line in lines}) == len(lines)


def test_zero_has_its_place_on_a_logarithmic_axis(tmp_path):
    rows = [{"x": x, "y": 1.0} for x in (plots.ZERO, 1, 16, 256)]
    figure = plots.drawn(Plot([Panel("p", "x", "y", x_log=2)]), rows)
    figure.savefig(tmp_path / "figure.svg")
    axis = figure.axes[0].xaxis
    assert [label.get_text() for label in axis.get_ticklabels()][0] == "0"


def test_the_page_of_a_folder(tmp_path, monkeypatch, capsys):
    """One command: full-size results are filed, drawn and told; short ones are not; what was filed before stays."""
    root = Path(__file__).resolve().parents[2]
    monkeypatch.syspath_prepend(str(root / "scripts"))
    import front_table
    import performance_page

    filed = root / "docs" / "performance" / "results"
    docs, run = tmp_path / "docs", tmp_path / "run"
    (docs / "performance" / "results").mkdir(parents=True)
    run.mkdir()
    (tmp_path / "README.md").write_text((root / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(performance_page, "DOCS", docs)
    monkeypatch.setattr(performance_page, "RESULTS", docs / "performance" / "results")
    monkeypatch.setattr(front_table, "ROOT", tmp_path)
    for name in ("rolling", "peers", "bulk-fiba-2023-fig-14"):
        result = json.loads((filed / f"{name}.json").read_text())
        result["versions"]["commit"] = "0123456789ab"
        result |= {"settings": {"MALLOC_MMAP_MAX_": "0"}} if name != "peers" else {"quick": True}
        (run / f"{name}.json").write_text(json.dumps(result))
    before = json.loads((filed / "memory.json").read_text())
    before["versions"].pop("commit", None)
    (docs / "performance" / "results" / "memory.json").write_text(json.dumps(before))
    performance_page.main(str(run))
    assert {path.stem for path in (docs / "performance" / "results").iterdir()} == {"rolling", "bulk-fiba-2023-fig-14", "memory"}
    page = (docs / "performance.md").read_text(encoding="utf-8")
    assert "MALLOC_MMAP_MAX_=0" in page and "memory: not stored with results as old as these" in page
    assert (docs / "performance" / "bulk-fiba-2023-fig-14.svg").exists()
    assert "slightly better on bloom" in page
    assert "their time over ours" in (tmp_path / "README.md").read_text(encoding="utf-8")
    told = capsys.readouterr().out
    assert "2 full-size results" in told and "as they were filed before" in told


def test_the_words_of_the_page_follow_the_results(monkeypatch):
    """One run on one machine is not told as several, nor settings and columns that it has not."""
    root = Path(__file__).resolve().parents[2]
    monkeypatch.syspath_prepend(str(root / "scripts"))
    import performance_page

    def result(suite: str, system: str, settings: dict, cores: int = 2, **versions: str) -> Result:
        machine = {"processor": "P", "cores": cores, "memory_mb": 1024, "system": "S"}
        return Result(suite, "", False, [{"system": system}], [], 1.0, versions=versions, machine=machine, settings=settings)

    run = [result("rolling", "pandas, column only", {}, commit="a"), result("memory", "x", {}, commit="a")]
    told = performance_page.how(run) + performance_page.surroundings(run)
    assert "on the machine below" in told and "two ways" in told and "allocators as they are." in told
    assert not any(word in told for word in ("machines", "as far as it was noted", "keep what is freed", "as old as these"))
    older = [result("rolling", "pandas", {}, 1), result("memory", "x", {"MALLOC_MMAP_MAX_": "0"}, commit="a")]
    told = performance_page.how(older) + performance_page.surroundings(older)
    assert "on the machines below" in told and "two ways" not in told and "gain less" in told
    assert "Suites with settings below" in told and "as old as these" in told
    assert "All suites" in performance_page.how(older[1:]) and "as far as it was noted" in performance_page.how(older[:1])


def test_what_does_not_hold_is_explained():
    """Of the results that the performance page shows, by the suites of today."""
    filed = Path(__file__).resolve().parents[2] / "docs" / "performance" / "results"
    for result in records.read_all(filed):
        for one in bench.suite(result.suite).claims(result.rows):
            assert one.why or one.holds in ("yes", "unmeasured"), (result.suite, one.paper)
