"""Kernels are there before a server listens, come from images, and are not loaded by what needs none."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from ivm.kernels.cache import Kernel, sources
from ivm.kernels.image import SHIPPED, read_head
from sql.session.images import wanted
from tests.support.paths import ROOT


def test_every_kernel_counts() -> None:
    """A changed kernel is compiled at the next start, not taken from an image of what it was."""
    packages = [path for name in ("ivm", "planner", "storage", "sql") for path in (ROOT / name).rglob("*.py")]
    for path in packages:
        if "kernels" in str(path.relative_to(ROOT)):
            module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            for value in vars(module).values():
                if isinstance(value, Kernel):
                    assert sys.modules[value.py_func.__module__].__file__ in sources(str(path))


def test_every_kernel_that_is_imported_by_others_is_in_images() -> None:
    """By whatever layer."""
    asked = {(entry.module, entry.name) for entry in wanted()}
    for path in (path for name in ("ivm", "planner", "storage", "sql") for path in (ROOT / name).rglob("*.py")):
        if path.parent.name != "kernels":
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ivm.kernels."):
                    values = vars(import_module(str(node.module)))
                    found = (values[name.name] for name in node.names if isinstance(values[name.name], Kernel))
                    assert {(kernel.py_func.__module__, kernel.py_func.__name__) for kernel in found} <= asked, path


def test_images_have_all_that_python_calls() -> None:
    """The first statement that uses a kernel waits for no compiler."""
    has = {
        (entry.module, entry.name, entry.types) for path in SHIPPED.glob("*.image") for entry in read_head(path).entries
    }
    assert {(entry.module, entry.name, entry.types) for entry in wanted()} <= has


_FIRST_USE = """
import asyncio, os, sys, tempfile
from pathlib import Path
from ivm.kernels.cache import Kernel
from numba.core.dispatcher import Dispatcher
from sql.admission.admission import OWN
from sql.coordination.coordinator import Coordinator
from sql.pgwire.copy_out import frame_copy
from sql.pgwire.values import encode_rows
from sql.session.session import Session
from sql.session.warm import load
from sql.statements.results import CopyOutResult, RowsResult

loaded, compile_, first = [], Dispatcher.compile, Kernel._compile_for_args

def noted(self, types):
    loaded.append(self.py_func.__name__)
    return compile_(self, types)

def noted_first(self, *arguments):
    loaded.append(self.py_func.__name__)
    return first(self, *arguments)

async def main(folder):
    coordinator = await Coordinator.open(Path(folder) / "data")
    load()
    Dispatcher.compile, Kernel._compile_for_args = noted, noted_first
    session = Session(coordinator, "freshet", "first", {}, OWN)
    for text in (
        "CREATE TABLE t (id int PRIMARY KEY, g text, n int)",
        "CREATE MATERIALIZED VIEW v AS SELECT g, count(*), sum(n), max(n) FROM t GROUP BY g",
        "CREATE MATERIALIZED VIEW j AS SELECT t.id, u.g FROM t JOIN t u ON t.n = u.id",
        *(f"INSERT INTO t VALUES ({i}, 'g', {i % 7})" for i in range(600)),
        "UPDATE t SET n = n + 1 WHERE id = 5",
        "PREPARE u (int, int) AS UPDATE t SET n = n + $1 WHERE id = $2",
        "EXECUTE u (1, 5)",
        "DELETE FROM t WHERE id = 6",
        "SELECT * FROM v",
        "SELECT n FROM t WHERE id = 7",
        "COPY (SELECT * FROM j) TO STDOUT",
    ):
        async for result in session.simple(text):
            if isinstance(result, RowsResult):
                encode_rows(result.rows, (), result.dictionary)
            elif isinstance(result, CopyOutResult):
                async for chunk in result.data:
                    frame_copy(chunk)
    print(len(loaded), *loaded, *{"ivm.kernels.warm"} & set(sys.modules), flush=True)
    os._exit(0)

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
"""


def test_no_statement_waits_for_a_kernel_that_is_used_first() -> None:
    """And a start does not search the sources for kernels, as one that compiles does."""
    done = subprocess.run([sys.executable, "-c", _FIRST_USE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "0\n", done.stdout + done.stderr


def test_a_server_loads_kernels_before_it_listens(tmp_path: Path) -> None:
    """Nor does a step at a start wait for them, which would take its views out of it."""
    program = "import os, server; from sql.session import warm; warm.load = lambda: os._exit(7); server.main()"
    flags = ["--port", "0", "--data", str(tmp_path / "data")]
    done = subprocess.run(
        [sys.executable, "-c", program, *flags], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 7
    assert "ready on" not in done.stderr


@pytest.mark.parametrize(
    "module", ["sql.parse", "sql.bind.statement", "planner.transform.pipeline", "planner.lower.plan"]
)
def test_what_makes_plans_is_imported_quickly(module: str) -> None:
    """A unit test of a parser or a plan starts at once."""
    heavy = {"numba", "llvmlite", "pyarrow", "duckdb", "pyspark", "pandas"}
    program = f"import sys, {module}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
