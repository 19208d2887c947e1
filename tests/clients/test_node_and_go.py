"""pg, postgres.js and pgx, each by a program of its own: with a password over TLS, and without either."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients.versions import GO, NODE
from tests.support.certificates import Authority
from tests.support.program import Program

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Secured:
    """A server that asks for a password; ``root``: the authority of its certificate."""

    program: Program
    password: str
    root: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder / "authority")
    certificate, key = authority.sign("server")
    (folder / "password").write_text("secret")
    program = Program(
        folder / "data", "--init-password-file", str(folder / "password"), "--tls-cert", str(certificate),
        "--tls-key", str(key),
    )  # fmt: skip
    yield Secured(program, "secret", authority.root)
    program.kill()


def all_right(command: list[str], record: Callable[[str, object], None], **environment: str) -> None:
    """Run a client's program, whose lines say what it could do."""
    done = subprocess.run(
        command, text=True, capture_output=True, check=False, timeout=280, env={**os.environ, **environment}
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "failed "))]
    failed = [line for line in lines if not line.startswith("ok ")]
    record("right", len(lines) - len(failed))
    record("of", len(lines))
    assert failed == []
    assert done.returncode == 0, done.stderr[-3000:]
    assert lines


def of_node(name: str, script: str, program: Program, record: Callable[[str, object], None], *secured: str) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (NODE / "node_modules" / name).exists():
        pytest.skip(f"{name} is not installed")
    all_right(["node", str(HERE / script), str(NODE), str(program.port), *secured], record)


@pytest.mark.client("pg, pg-cursor, pg-copy-streams", "npm:pg", "npm:pg-cursor", "npm:pg-copy-streams")
def test_pg(program: Program, record_property: Callable[[str, object], None]) -> None:
    of_node("pg", "node_pg.mjs", program, record_property)


@pytest.mark.client("pg, pg-cursor, pg-copy-streams")
def test_pg_over_tls(secured: Secured, record_property: Callable[[str, object], None]) -> None:
    of_node("pg", "node_pg.mjs", secured.program, record_property, secured.password, str(secured.root))


@pytest.mark.client("postgres.js", "npm:postgres")
def test_postgres_js(program: Program, record_property: Callable[[str, object], None]) -> None:
    of_node("postgres", "node_postgres.mjs", program, record_property)


@pytest.mark.client("postgres.js")
def test_postgres_js_over_tls(secured: Secured, record_property: Callable[[str, object], None]) -> None:
    of_node("postgres", "node_postgres.mjs", secured.program, record_property, secured.password, str(secured.root))


@pytest.fixture(scope="module")
def pgx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    if not (GO / "src" / "github.com" / "jackc" / "pgx" / "v4").exists():
        pytest.skip("golang-github-jackc-pgx-v4-dev is not installed")
    folder = tmp_path_factory.mktemp("go")
    environment = {**os.environ, "GOPATH": str(GO), "GO111MODULE": "off", "GOCACHE": str(folder / "cache")}
    command = ["go", "build", "-o", str(folder / "pgx"), str(HERE / "pgx.go")]
    subprocess.run(command, check=True, env=environment, cwd=folder)
    return folder / "pgx"


@pytest.mark.client("pgx", "deb:golang-github-jackc-pgx-v4-dev")
def test_pgx(program: Program, pgx: Path, record_property: Callable[[str, object], None]) -> None:
    dsn = f"host=127.0.0.1 port={program.port} user=postgres dbname=postgres sslmode=disable"
    all_right([str(pgx), dsn], record_property)


@pytest.mark.client("pgx")
def test_pgx_over_tls(secured: Secured, pgx: Path, record_property: Callable[[str, object], None]) -> None:
    dsn = f"host=127.0.0.1 port={secured.program.port} user=postgres dbname=postgres sslmode=verify-full"
    all_right([str(pgx), f"{dsn} sslrootcert={secured.root}", "tls"], record_property, PGPASSWORD=secured.password)
