"""Database passwords are not shown: not in statements that others can see, in loads, or in drivers' messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.passwords import hide_passwords
from storage.spark.errors import spark_error
from tests.support.sessions import Server

SECRET = "s3cr'et"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "jdbc:postgresql://h/db?user=me&password=abc&ssl=true",
            "jdbc:postgresql://h/db?user=me&password=***&ssl=true",
        ),
        ("jdbc:sqlserver://h;user=me;Password=abc;x=1", "jdbc:sqlserver://h;user=me;Password=***;x=1"),
        ("jdbc:db2://h/db:user=me;sslTrustStorePassword=abc", "jdbc:db2://h/db:user=me;sslTrustStorePassword=***"),
        ("jdbc:mysql://me:a:b@h/db", "jdbc:mysql://me:***@h/db"),
        ("jdbc:oracle:thin:me/abc@//h/db", "jdbc:oracle:thin:me/***@//h/db"),
        ("FROM JDBC (USER 'me', PASSWORD 'a''b', TABLE 'x')", "FROM JDBC (USER 'me', PASSWORD '***', TABLE 'x')"),
        ("WITH (password = 'abc')", "WITH (password = '***')"),
        ("""("password" 'cut off""", """("password" '***'"""),
        ("SELECT password, 'x' FROM users", "SELECT password, 'x' FROM users"),
        ("s3a://lake/a:b/c@d", "s3a://lake/a:b/c@d"),
    ],
)
def test_what_is_hidden(text: str, shown: str) -> None:
    assert hide_passwords(text) == shown


def test_a_drivers_words_are_shown_without_it() -> None:
    error = spark_error(RuntimeError("SQLException: No suitable driver for jdbc:mysql://h/db?user=me&password=abc"))
    assert error.detail == "SQLException: No suitable driver for jdbc:mysql://h/db?user=me&password=***"


def test_nobody_reads_the_password_of_a_source_or_a_load(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", hosts=("127.0.0.1",))
    try:
        client = server.client()
        client.run("CREATE TABLE t (id int PRIMARY KEY)")
        url = "jdbc:postgresql://127.0.0.1:1/db?user=me&password=s3cr"
        source = f"CREATE SOURCE s FROM JDBC (URL '{url}', TABLE 'x', PASSWORD 's3cr''et') INTO t WITH (KEY = (id))"
        client.run(source)
        client.run(f"PREPARE p AS SELECT '{url}'")
        bad = "COPY t FROM '{}' WITH (FORMAT jdbc, DBTABLE 'x', ENGINE {}, PASSWORD 's3cr''et')"
        assert client.state(bad.format(url, "local")) == "0A000"
        assert client.state(bad.format(url.replace("postgresql", "h2"), "spark")) == "0A000"
        for relation in ("pg_stat_activity", "pg_prepared_statements", "freshet.loads", "freshet.sources", "s",
                         "pg_class", "pg_settings", "information_schema.tables"):  # fmt: skip
            assert "s3cr" not in repr(client.rows(f"SELECT * FROM {relation}")), relation
    finally:
        server.close()
