"""The house rules that a linter does not hold: sizes of files and functions, inner functions, and the doors to
dependencies."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FOLDERS = ("ivm", "planner", "storage", "sql", "examples", "benchmarks", "tests")
SOURCES = sorted([ROOT / "server.py", *(f for folder in FOLDERS for f in (ROOT / folder).rglob("*.py"))])
PRODUCT = [f for f in SOURCES if f.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", "examples")]
MAX_FILE, MAX_FUNCTION = 600, 80


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Facts:
    """What the rules ask of a file, which is read once: its lines, those of each function, what it imports.

    ``naming``: the functions within functions that name themselves.
    """

    lines: int
    functions: dict[str, int]
    imports: set[str]
    naming: list[str]


@cache
def facts(path: Path) -> Facts:
    source = path.read_text()
    nodes = list(ast.walk(ast.parse(source)))
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    sizes: dict[str, int] = {}
    for node in functions:
        sizes[node.name] = max(sizes.get(node.name, 0), (node.end_lineno or 0) - node.lineno + 1)
    naming = [inner.name for node in functions for inner in inner_functions(node) if names_itself(inner)]
    return Facts(len(source.splitlines()), sizes, imports(nodes), naming)


def imports(nodes: list[ast.AST]) -> set[str]:
    """The top-level packages that a file imports, wherever in the file."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


Function = ast.FunctionDef | ast.AsyncFunctionDef


def inner_functions(outer: Function) -> list[Function]:
    return [node for node in ast.walk(outer) if node is not outer and isinstance(node, FUNCTIONS)]


def names_itself(inner: Function) -> bool:
    return any(isinstance(n, ast.Name) and n.id == inner.name for part in inner.body for n in ast.walk(part))


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    """No file over 600 lines, no function over 80."""
    found = facts(path)
    assert found.lines <= MAX_FILE
    assert {name: lines for name, lines in found.functions.items() if lines > MAX_FUNCTION} == {}


@pytest.mark.parametrize("path", PRODUCT, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_inner_function_names_itself(path: Path) -> None:
    """It would be garbage that only the collector frees, with all that its outer function's call knew."""
    assert facts(path).naming == []


def test_doors() -> None:
    """duckdb, pyspark, numba and sqlglot are each imported through their own door only."""
    doors = {
        "duckdb": lambda p: p == "storage/duck.py",
        "pyspark": lambda p: p.startswith("storage/spark/session"),
        "numba": lambda p: "kernels" in p,
        "sqlglot": lambda p: p == "sql/syntax/dialect.py",
    }
    for path in PRODUCT:
        name = str(path.relative_to(ROOT))
        for dependency in facts(path).imports & set(doors):
            assert doors[dependency](name), f"{name} imports {dependency}"


def test_nothing_imports_the_server() -> None:
    """``server.py`` stands on top (import-linter holds the order of the packages below it)."""
    assert not [p for p in PRODUCT if "server" in facts(p).imports]


def test_packages_are_plain() -> None:
    """``__init__.py`` files of the product stay empty."""
    assert not [p for p in PRODUCT if p.name == "__init__.py" and p.read_text().strip()]
