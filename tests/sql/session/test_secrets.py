"""CREATE SECRET: what other systems ask for, kept apart and never shown."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.catalog.connection import revealed
from storage.passwords import hide_passwords
from tests.support.sessions import Client, Server

JDBC = (
    "CREATE SOURCE s FROM JDBC (URL 'jdbc:postgresql://127.0.0.1:1/d', TABLE 'x', POLL 'a', USER 'me', "
    "PASSWORD SECRET pg) INTO t"
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    server = Server(tmp_path / "data", hosts=("*",))
    client = server.client()
    client.run("CREATE TABLE t (a int)")
    yield client
    server.close()


def test_secrets_are_files_that_only_their_owner_reads(client: Client, tmp_path: Path) -> None:
    client.run("CREATE SECRET pg AS 's3cret'")
    client.run('CREATE SECRET "Ünder /../ x" AS $$many\nlines$$')
    folder = tmp_path / "data" / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(folder.iterdir())
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert client.sorted("SELECT name FROM freshet.secrets") == [("pg",), ("Ünder /../ x",)]
    assert client.server.coordinator.reveal("Ünder /../ x") == "many\nlines"
    client.run("ALTER SECRET pg AS 'an''other'")
    client.server.restart()
    client = client.server.client()
    assert client.server.coordinator.reveal("pg") == "an'other"
    client.run("DROP SECRET pg")
    assert client.state("DROP SECRET pg") == "42704"
    client.run("DROP SECRET IF EXISTS pg, nothing")
    assert len(list(folder.iterdir())) == 1


def test_what_is_refused(client: Client) -> None:
    client.run("CREATE SECRET pg AS 'x'")
    client.run("CREATE SECRET IF NOT EXISTS pg AS 'y'")
    assert client.server.coordinator.reveal("pg") == "x"
    for statement, state in (
        ("CREATE SECRET pg AS 'y'", "42710"), ("ALTER SECRET nothing AS 'y'", "42704"),
        ("CREATE SECRET q AS y", "42601"),
        ("CREATE SECRET q", "42601"), (f"CREATE SECRET q AS '{'x' * 70_000}'", "54000"),
        ("SELECT 1; CREATE SECRET q AS 'y'", "25001"), ("CREATE SECRET " + "q" * 80 + " AS 'y'", "42602"),
        ("DO $$BEGIN CREATE SECRET q AS 'y'; END$$", "0A000"), (JDBC.replace("SECRET pg", "SECRET nothing"), "42704"),
        (JDBC.replace("TABLE 'x'", "TABLE SECRET pg"), "22023"), (JDBC.replace("URL 'jdbc:postgresql://127.0.0.1:1/d'",
         "URL SECRET pg"), "22023"),
    ):  # fmt: skip
        assert client.state(statement) == state, statement[:80]
    client.run("BEGIN")
    assert client.state("CREATE SECRET q AS 'y'") == "25001"
    client.run("ROLLBACK; CREATE ROLE ann; SET ROLE ann")
    for statement in (
        "CREATE SECRET q AS 'y'",
        "ALTER SECRET pg AS 'y'",
        "DROP SECRET pg",
        "SELECT * FROM freshet.secrets",
    ):
        assert client.state(statement) == "42501"
    client.run("RESET ROLE")
    assert client.rows("SELECT name FROM freshet.secrets") == [("pg",)]


def test_a_source_uses_a_secret_and_shows_its_name(client: Client) -> None:
    client.run("CREATE SECRET pg AS 's3cret'")
    client.run(JDBC)
    relation = next(r for r in client.session.state.catalog.relations.values() if r.name == "s")
    assert relation.connection is not None
    assert "s3cret" not in repr(relation)
    used = revealed(relation.connection, client.server.coordinator.reveal)
    assert dict(used.options)["password"] == "s3cret"
    assert client.state("DROP SECRET pg") == "2BP01"
    kafka = "CREATE SOURCE k FROM KAFKA (BROKERS 'b:1', TOPIC 'x', \"kafka.sasl.jaas.config\" SECRET {}) INTO t"
    assert client.state(kafka.format("pg")) == "42501", "what a secret says is checked too"
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="s3cret";'
    client.run(f"CREATE SECRET login AS '{login}'")
    client.run(kafka.format("login"))
    client.server.restart()
    client = client.server.client()
    client.run("DROP SOURCE s, k; DROP TABLE t")
    client.run("DROP SECRET pg, login")


def test_a_secret_is_never_shown(client: Client, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level(logging.DEBUG)
    client.run(["CREATE ROLE ann", "CREATE SECRET IF NOT EXISTS none AS 's3cret'"][1])
    client.run("/* x */ create /* y */ secret pg as E's3cret'")
    watching = client.server.client()
    told: list[object] = [watching.rows("SELECT query FROM pg_stat_activity")]
    told.append(repr(client.error("CREATE SECRET pg AS 's3cret'")))
    client.run("ALTER SECRET pg AS $x$s3cret$x$")
    client.run(JDBC)
    for relation in ("pg_stat_activity", "pg_prepared_statements", "freshet.secrets", "freshet.sources", "s",
                     "pg_class", "freshet.stalls"):  # fmt: skip
        told.append(client.rows(f"SELECT * FROM {relation}"))
    assert "s3cret" not in repr(told)
    assert "s3cret" not in caplog.text
    client.server.run(client.server.coordinator.close())
    kept = [p for p in tmp_path.rglob("*") if p.is_file() and b"s3cret" in p.read_bytes()]
    assert {p.parent.name for p in kept} == {"secrets"}
    client.server.coordinator = client.server.run(client.server._open())


def test_statements_about_secrets_are_hidden() -> None:
    for text in ("CREATE SECRET a AS 's3cret'", "alter\nsecret a as $$s3cret$$", "create--x\nsecret a as 's3cret"):
        assert "s3cret" not in hide_passwords(text)
    assert hide_passwords("SELECT secret FROM t") == "SELECT secret FROM t"
