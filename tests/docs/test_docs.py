"""Every code block of the documentation runs, page by page, top to bottom.

    ```python      is run; asserts in it say what comes out, and comments behind `print`. `python spark`: with a session `spark`
    ```toml        with a first line `# NAME.toml` is written to that file
    ```console     each line `$ command` is run, in the folder of the files, and says what stands below it (`...`: anything); the
                   first one in a shell, later ones of `slidewise` in this process, which has loaded already what they need
    ```text        is not run: commands for a cluster, in spark.md
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import slidewise.operators as operators
from slidewise.bench import SUITES, groups
from slidewise.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_CODE = [page for page in PAGES if "```" in page.read_text(encoding="utf-8")]
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(\w+)( \w+)?\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
def test_code_blocks_run(page, tmp_path, monkeypatch, request):
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^\s*```", text, re.M)) == 2 * len(BLOCK.findall(text)), f"{page.name}: a block that nobody would run"
    monkeypatch.chdir(tmp_path)
    space: dict = {"__name__": f"docs_{page.stem.replace('-', '_')}"}
    shell = True
    for block in BLOCK.finditer(text):
        language, word, source = block.group(1), (block.group(2) or "").strip(), block.group(3)
        line = text[: block.start()].count("\n") + 2
        if language == "python":
            if word == "spark":
                space["spark"] = request.getfixturevalue("spark")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("\n" * (line - 1) + source, str(page), "exec"), space)
            lines = iter(printed.getvalue().splitlines())
            for promised in re.findall(r"^print\(.*\) +# (.+)$", source, re.M):
                assert promised in lines, f"{page.name}, block at line {line}: nothing prints {promised}\n{printed.getvalue()}"
        elif language == "toml":
            name = re.match(r"# (\S+\.toml)\n", source)
            if name is not None:
                Path(name.group(1)).write_text(source, encoding="utf-8")
            else:
                assert page.name == "job-file.md", f"{page.name}, line {line}: which file is this?"  # tested with the schema
        elif language == "console":
            for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", source, re.M):
                if not shell and 'mode = "stream"' in _job(command):
                    request.getfixturevalue("spark")
                code, said = _in_a_shell(command) if shell else _here(command)
                shell = False
                assert code == 0, f"{page.name}, line {line}: {command}\n{said}"
                same = not shown or doctest.OutputChecker().check_output(shown, said, LOOSELY)
                assert same, f"{page.name}, line {line}: {command}\nsays\n{said}"
        else:
            on_a_cluster = language == "text" and page.name == "spark.md"
            assert on_a_cluster, f"{page.name}, line {line}: nobody runs {language}"


def _in_a_shell(command: str) -> tuple[int, str]:
    """With the commands of this Python first."""
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


def _here(command: str) -> tuple[int, str]:
    name, *arguments = shlex.split(command.removesuffix("|| true"))
    assert name == "slidewise", f"nobody runs {name} here"
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(arguments)
    assert code or not command.endswith("|| true"), f"{command} has nothing to forgive"
    return 0 if command.endswith("|| true") else code, said.getvalue()


def _job(command: str) -> str:
    return "".join(Path(word).read_text(encoding="utf-8") for word in shlex.split(command) if word.endswith(".toml"))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_that_are_only_named_are_there(page):
    """`make demo`, `slidewise bench spark-batch`, `pip install ".[spark]"`: in the midst of a sentence, or too long to run."""
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert {*re.findall(r"(?:`|^ {4})make ([a-z-]+)", text, re.M)} <= {*targets}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name for found in re.findall(r'pip install "?[\w.]*\[([\w,]+)\]', text) for name in found.split(",")}
    assert extras <= {*project["optional-dependencies"]}
    for words in re.findall(r"`slidewise ([^`\n]+)`", text):
        command, *more = words.split()
        assert command in ("run", "demo", "explain", "bench", "algorithms", "doctor"), words
        if command == "bench" and more and more[0] not in ("report", "compare"):
            assert more[0].startswith(("-", "[")) or more[0] in {*SUITES, *groups()}, words


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_figures_of_the_readme_are_those_that_were_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import front_table

    readme, page = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/performance.md"))
    assert readme == front_table.with_table(readme, page), "scripts/front_table.py writes them anew"
    assert len([figures for _, figures in front_table.rows(page) if figures]) >= 4, "the page has other words for them now"


def test_the_table_of_operators_is_the_registry(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import operators_page

    page = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert page == operators_page.page(), "scripts/operators_page.py writes it anew"
    assert all(f"| `{name}` |" in page for name in operators.OPERATORS)
