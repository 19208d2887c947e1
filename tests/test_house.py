"""The house rules that a linter does not hold: sizes of files and functions, inner functions, and the doors to
dependencies."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.paths import ROOT

FOLDERS = ("ivm", "planner", "storage", "sql", "examples", "benchmarks", "tests")
SOURCES = sorted([ROOT / "server.py", *(f for folder in FOLDERS for f in (ROOT / folder).rglob("*.py"))])
PRODUCT = [f for f in SOURCES if f.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", "examples")]
MAX_FILE, MAX_FUNCTION = 600, 80


def imports(path: Path) -> set[str]:
    """The top-level packages that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    """No file over 600 lines, no function over 80."""
    source = path.read_text()
    assert len(source.splitlines()) <= MAX_FILE
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno + 1 <= MAX_FUNCTION, node.name


def inner_functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions within functions."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    outer = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    return [inner for node in outer for inner in ast.walk(node) if inner is not node and isinstance(inner, kinds)]


@pytest.mark.parametrize("path", PRODUCT, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_inner_function_names_itself(path: Path) -> None:
    """It would be garbage that only the collector frees, with all that its outer function's call knew."""
    for inner in inner_functions(ast.parse(path.read_text())):
        names = {node.id for part in inner.body for node in ast.walk(part) if isinstance(node, ast.Name)}
        assert inner.name not in names, inner.name


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
        for dependency in imports(path) & set(doors):
            assert doors[dependency](name), f"{name} imports {dependency}"


def test_nothing_imports_the_server() -> None:
    """``server.py`` stands on top (import-linter holds the order of the packages below it)."""
    assert not [p for p in PRODUCT if "server" in imports(p)]


def test_packages_are_plain() -> None:
    """``__init__.py`` files of the product stay empty."""
    assert not [p for p in PRODUCT if p.name == "__init__.py" and p.read_text().strip()]
