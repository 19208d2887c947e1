"""Runs clients' own test suites and writes how much passes into docs/reference/compatibility.md: ``make clients``.

What counts is what PostgreSQL 15 passes in the same environment: suites.json has the rest, and how much it was. It is
recorded by ``python -m tests.clients.suites --record localhost:5432 asyncpg`` beside a PostgreSQL 15 that trusts
``postgres``. Without names, all suites are run. A suite that cannot be had keeps its row, which says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final
from xml.etree import ElementTree

import psycopg

from tests.clients.table import PAGE, between
from tests.clients.versions import INSTALLED, PYTHON, version
from tests.support.program import Program

BEGIN: Final = "<!-- make clients: suites -->"
_RECORD: Final = Path(__file__).with_name("suites.json")
_HEAD: Final = "| suite | version | right | of | missing |\n|---|---|---|---|---|"
_SHOWN: Final = 20
"""Functions of tests that a row names; the others are counted."""
_LONGEST: Final = 3600
"""Seconds of a suite."""
_SERVER: Final = re.compile(r"_postgresql\+psycopg_[0-9_]+(?=::)")
"""What SQLAlchemy's tests have in their names of the server that they ran on."""


@dataclass(frozen=True)
class Suite:
    """A package's tests. ``arguments`` and ``environment``: of pytest, with the server's host, port and database.

    ``repository``: where the tests are if they are not in the package's sources. ``hides``: a folder of the sources
    that Python would find before the installed package. ``before``: Python that is run first.
    """

    name: str
    package: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    repository: str = ""
    hides: str = ""
    schemas: tuple[str, ...] = ()
    before: str = ""

    @property
    def version(self) -> str:
        return version((self.package,))


SUITES: Final = (
    Suite(
        "asyncpg", "asyncpg", ("tests",), hides="asyncpg",
        environment={"PGHOST": "{host}", "PGPORT": "{port}", "PGUSER": "postgres", "PGDATABASE": "{database}"},
    ),
    Suite(
        "psycopg, without slow tests", "psycopg",
        ("-m", "not slow and not mypy", "--ignore", "tests/pool", "--ignore", "tests/crdb", "--ignore", "tests/scripts",
         "--ignore", "tests/test_typing.py", "tests"),
        environment={"PSYCOPG_TEST_DSN": "host={host} port={port} user=postgres dbname={database}"},
        repository="https://github.com/psycopg/psycopg",
    ),
    Suite(
        "SQLAlchemy, dialect suite, without citext and hstore", "SQLAlchemy",
        ("test/dialect/test_suite.py", "--dburi", "postgresql+psycopg://postgres@{host}:{port}/{database}"),
        schemas=("test_schema", "test_schema_2"),
        before="import sqlalchemy.dialects.postgresql.provision as p; p._extensions.clear()",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The names of a run's tests: those that passed, and all others."""

    passed: frozenset[str]
    others: frozenset[str]


@dataclass(frozen=True)
class Record:
    """PostgreSQL 15's run: of which version of the tests, how many passed, and the names of those that did not."""

    version: str
    passed: int
    others: frozenset[str]


def outcome(report: str) -> Outcome:
    """What a report in JUnit's form says. A test may stand there several times, as one that ends with an error."""
    wrong: dict[str, bool] = {}
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = _SERVER.sub("", f"{case.get('classname')}::{case.get('name')}")
        bad = any(part.tag in ("failure", "error", "skipped") for part in case)
        wrong[name] = wrong.get(name, False) or bad
    return Outcome(frozenset(n for n, bad in wrong.items() if not bad), frozenset(n for n, bad in wrong.items() if bad))


def twice(first: Outcome, second: Outcome) -> Outcome:
    """A run, and another one of what had failed in it."""
    return Outcome(first.passed | (second.passed & first.others), first.others - second.passed)


def renewed(record: Record | None, version: str, run: Outcome) -> Record:
    """The record with another run. A test that passed in any run of its version counts."""
    others = run.others if record is None or record.version != version else run.others & record.others
    return Record(version, len(run.passed | run.others) - len(others), others)


def row(suite: Suite, record: Record | None, found: Outcome | str) -> str:
    """A suite's line of the table. ``found``: its run, or why there is none."""
    if isinstance(found, Outcome) and (record is None or record.version != suite.version):
        found = f"PostgreSQL's run of {suite.version} is not recorded"
    if isinstance(found, str):
        return f"| {suite.name} | | not run | | {found} |"
    assert record is not None
    right = len(found.passed - record.others)
    missing = _named(found.others - record.others)
    return f"| {suite.name} | {suite.version} | {right} | {record.passed} | {missing} |"


def _named(tests: Iterable[str]) -> str:
    """The functions of these tests, with how many there are of each."""
    counts = Counter(re.sub(r"\[.*", "", test.rpartition("::")[2], flags=re.DOTALL) for test in tests)
    named = [f"`{name}`" + (f" ({count})" if count > 1 else "") for name, count in sorted(counts.items())]
    rest = len(named) - _SHOWN
    return ", ".join(named[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def rows_in(page: str) -> dict[str, str]:
    """The lines of the page's table by their suites."""
    table = page.partition(BEGIN)[2].partition("<!-- end -->")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")][1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def _sources(suite: Suite) -> Path | str:
    """The folder from which a suite is run; why there is none. ``PSYCOPG=folder`` names one."""
    given = os.environ.get(suite.package.upper())
    if given is not None:
        return Path(given)
    folder = INSTALLED / "suites" / f"{suite.package}-{suite.version}"
    if not folder.exists():
        with tempfile.TemporaryDirectory() as scratch:
            made = _cloned(suite, Path(scratch)) if suite.repository else _unpacked(suite, Path(scratch))
            if made is None:
                return f"the sources of {suite.package} {suite.version} cannot be had"
            if suite.hides:
                shutil.rmtree(made / suite.hides)
            folder.parent.mkdir(exist_ok=True)
            shutil.move(made, folder)
    return folder


def _cloned(suite: Suite, scratch: Path) -> Path | None:
    command = ["git", "clone", "--quiet", "--depth", "1", "--branch", suite.version, suite.repository]
    done = subprocess.run([*command, str(scratch / "cloned")], stdin=subprocess.DEVNULL, check=False)
    return scratch / "cloned" if done.returncode == 0 else None


def _unpacked(suite: Suite, scratch: Path) -> Path | None:
    """What PyPI has of a package's sources."""
    wanted = f"{suite.package}=={suite.version}"
    command = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", suite.package, "-d", scratch, wanted]
    done = subprocess.run([PYTHON, *command], check=False)
    archives = list(scratch.glob("*.tar.gz"))
    if done.returncode or not archives:
        return None
    with tarfile.open(archives[0]) as archive:
        archive.extractall(scratch, filter="data")
    return next(path for path in scratch.iterdir() if path.is_dir())


def _run(suite: Suite, host: str, port: int) -> Outcome | str:
    """The suite's tests in a new database of a server. Those that fail are run once more, as on a busy machine."""
    if not suite.version:
        return f"{suite.package} is not installed"
    sources = _sources(suite)
    if isinstance(sources, str):
        return sources
    database = f"suite_{suite.package.lower()}"
    with psycopg.connect(host=host, port=port, user="postgres", dbname="postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {database}".encode())
        connection.execute(f"CREATE DATABASE {database}".encode())
    with psycopg.connect(host=host, port=port, user="postgres", dbname=database, autocommit=True) as connection:
        for schema in suite.schemas:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
    where = {"host": host, "port": port, "database": database}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.xml")
        options = ["-q", "-o", f"cache_dir={scratch}/cache", "--timeout", "60", "--junitxml", str(report)]
        arguments = [argument.format(**where) for argument in suite.arguments]
        environment = {name: value.format(**where) for name, value in suite.environment.items()}
        program = f"{suite.before}\nimport pytest, sys\nsys.exit(pytest.main(sys.argv[1:]))"
        found: Outcome | None = None
        for again in ((), ("--last-failed", "--last-failed-no-failures", "none")):
            subprocess.run(
                [PYTHON, "-c", program, *options, *again, *arguments], cwd=sources, env=os.environ | environment,
                stdin=subprocess.DEVNULL, timeout=_LONGEST, check=False,
            )  # fmt: skip
            if not report.exists():
                return "it came to no end"
            run = outcome(report.read_text())
            report.unlink()
            found = run if found is None else twice(found, run)
        assert found is not None
        return found


def _recorded() -> dict[str, Record]:
    found = json.loads(_RECORD.read_text())
    return {name: Record(r["version"], r["passed"], frozenset(r["others"])) for name, r in found.items()}


def _record(suites: list[Suite], host: str, port: int) -> None:
    """Write down what PostgreSQL 15 passes."""
    records = _recorded()
    for suite in suites:
        run = _run(suite, host, port)
        assert isinstance(run, Outcome), run
        records[suite.package] = renewed(records.get(suite.package), suite.version, run)
    found = {
        name: {"version": r.version, "passed": r.passed, "others": sorted(r.others)} for name, r in records.items()
    }
    _RECORD.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def _count(suites: list[Suite]) -> None:
    """Run the suites on a server of their own, and write each one's line of the table."""
    records = _recorded()
    with tempfile.TemporaryDirectory() as data:
        program = Program(Path(data), alone=True)
        try:
            for suite in suites:
                line = row(suite, records.get(suite.package), _run(suite, "127.0.0.1", program.port))
                page = PAGE.read_text()
                known = rows_in(page) | {suite.name: line}
                lines = [known[s.name] for s in SUITES if s.name in known]
                PAGE.write_text(between(page, BEGIN, "\n".join([_HEAD, *lines])))
        finally:
            program.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.clients.suites")
    parser.add_argument("--record", metavar="HOST:PORT", help="run them beside a PostgreSQL 15, for suites.json")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(s.package for s in SUITES))
    options = parser.parse_args()
    chosen = [s for s in SUITES if not options.packages or s.package in options.packages]
    if options.record:
        host, _, port = options.record.partition(":")
        _record(chosen, host, int(port))
    else:
        _count(chosen)


if __name__ == "__main__":
    main()
