"""Imports point one way only, and the core stands without Spark, pandas and Polars.

    algebra -> operators -> algorithms -> windows -> planner -> live -> engines -> pipeline -> cli
                                                                                   bench beside cli

A room may import the rooms to its left. Modules beside the rooms (`errors`) are everyone's and import no room. Imports
inside functions and for type checking count as well: they say who knows whom.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "slidewise"
NAME = PACKAGE.name

ROOMS = ["algebra", "operators", "algorithms", "windows", "planner", "live", "engines", "pipeline", "bench", "cli"]
RANK = {room: rank for rank, room in enumerate(ROOMS)}

# The front door shows what all rooms offer, so it may import any, and these three may enter by it like a user.
FRONT_DOOR = {"__init__", "__main__"}
USERS = {"pipeline", "bench", "cli"}

# Names of the contract; a file of this name in `algorithms` is that algorithm's own.
ALGORITHMS = set(
    "recalc subtract_on_evict two_stacks two_stacks_lite aba daba daba_lite flatfat flatfit b_int slick_deque amta "
    "btree fiba".split()
)


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    """The first part below the package: a room, or a module beside the rooms; `__init__` for the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def module_of(path: Path) -> str:
    parts = (NAME, *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def imports(tree: ast.AST, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and absolute name of every module of ours that is imported, however it is written."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == NAME:
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *(node.module.split(".") if node.module else [])])
            if origin.split(".")[0] != NAME:
                continue
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                yield node.lineno, full if is_module(full) else origin


def offences(source: str, module: str, is_package: bool = False) -> list[str]:
    here = room_of(module)
    found = []
    for line, target in imports(ast.parse(source), module, is_package):
        there = room_of(target)
        if here in FRONT_DOOR or there == here:
            continue
        if there == "__init__":
            if here not in USERS:
                found.append(f"{module}:{line} imports {target}: rooms below the pipeline do not use the front door")
        elif there in RANK and RANK.get(here, -1) < RANK[there]:
            found.append(f"{module}:{line} imports {target}, which lies behind it")
        elif here == "engines" and there == "algorithms" and ALGORITHMS & set(target.split(".")):
            found.append(f"{module}:{line} imports {target}: an engine knows no algorithm by name")
    return found


@pytest.mark.parametrize("path", sources(), ids=module_of)
def test_imports_point_one_way(path: Path) -> None:
    found = offences(path.read_text(encoding="utf-8"), module_of(path), path.name == "__init__.py")
    assert not found, "\n".join(found)


def test_every_folder_is_a_room() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders <= set(ROOMS), f"give {sorted(folders - set(ROOMS))} a place in the order of ROOMS"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("slidewise.algebra.laws", "from slidewise.operators import basic"),
        ("slidewise.algebra.laws", "import slidewise.operators.basic"),
        ("slidewise.algebra.laws", "from ..operators.basic import Sum"),
        ("slidewise.algebra.laws", "from .. import operators"),
        ("slidewise.algorithms.daba", "def f():\n    from slidewise.engines.spark import batch"),
        ("slidewise.planner.choice", "import slidewise as sw"),
        ("slidewise.windows.spec", "from slidewise import rolling"),
        ("slidewise.bench.fifo", "from slidewise.cli import main"),
        ("slidewise.errors", "from slidewise.algebra import laws"),
        ("slidewise.engines.local", "from slidewise.algorithms.fiba import Tree"),
    ],
)
def test_a_wrong_import_is_caught(module: str, source: str) -> None:
    assert offences(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("slidewise.operators.basic", "from ..algebra.laws import check"),
        ("slidewise.algorithms.daba", "from . import base\nfrom slidewise.errors import SlidewiseError"),
        ("slidewise.engines.local", "from slidewise.planner import plan\nimport pyarrow"),
        ("slidewise.cli.main", "import slidewise as sw\nfrom slidewise.bench import fifo"),
        ("slidewise.pipeline.job", "import slidewise as sw"),
    ],
)
def test_a_right_import_is_let_through(module: str, source: str) -> None:
    assert not offences(source, module)


def test_the_core_imports_without_spark_pandas_and_polars() -> None:
    program = (
        "import sys, slidewise; "
        "print(*sorted({name.split('.')[0] for name in sys.modules} & {'pyspark', 'py4j', 'pandas', 'polars'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], f"import slidewise imports {done.stdout.strip()}"


def test_the_core_imports_where_they_are_not_installed() -> None:
    program = "import sys; sys.modules.update(dict.fromkeys(['pyspark', 'pandas', 'polars'])); import slidewise"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
