"""Partitioned tables: routing, row movement, bounds, ATTACH and DETACH, keys, ON CONFLICT, views, restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture
def client(server: Server) -> Client:
    """A table partitioned by ranges of two columns; one partition, with reordered columns, is itself partitioned."""
    client = server.client()
    client.run("CREATE TABLE t (a text, b bigint, c numeric, d int) PARTITION BY RANGE (a, b)")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, sum(c) AS s, count(*) AS n FROM t GROUP BY a")
    client.run("CREATE TABLE b1 PARTITION OF t FOR VALUES FROM ('b', 1) TO ('b', 10)")
    client.run("CREATE TABLE b2 (d int, c numeric, b bigint, a text) PARTITION BY RANGE ((abs(d)))")
    client.run("CREATE TABLE b2x PARTITION OF b2 FOR VALUES FROM (MINVALUE) TO (15)")
    client.run("CREATE TABLE b2y PARTITION OF b2 FOR VALUES FROM (15) TO (MAXVALUE)")
    client.run("ALTER TABLE t ATTACH PARTITION b2 FOR VALUES FROM ('b', 10) TO ('b', 20)")
    client.run("CREATE TABLE a1 PARTITION OF t FOR VALUES FROM ('a', 1) TO ('a', MAXVALUE)")
    return client


def fill(client: Client) -> None:
    client.run("INSERT INTO t VALUES ('a', 1, 1, 1), ('a', 10, 2, 1), ('b', 2, 3, NULL), ('b', 2, 3, NULL)")
    client.run("INSERT INTO t VALUES ('b', 12, NULL, -3), ('b', 15, 5, 16)")


def check_view(client: Client) -> None:
    """Checks the view over the table against the table's rows."""
    assert client.sorted("SELECT * FROM v") == client.sorted("SELECT a, sum(c), count(*) FROM t GROUP BY a")
    assert client.rows("VERIFY MATERIALIZED VIEW v") == []


def placed(client: Client) -> list[tuple[str | None, ...]]:
    return client.rows("SELECT tableoid::regclass::text, count(*) FROM t GROUP BY 1 ORDER BY 1")


def fails(client: Client, text: str) -> tuple[str, str, str | None]:
    error = client.error(text)
    return error.sqlstate, error.message, error.detail


def test_rows_go_where_their_key_says(client: Client) -> None:
    fill(client)
    assert placed(client) == [("a1", "2"), ("b1", "2"), ("b2x", "1"), ("b2y", "1")]
    check_view(client)
    assert client.run("COPY t (a, b, d) FROM STDIN", b"b\t11\t20\na\t5\t\\N\n") == "COPY 2"
    client.run("INSERT INTO t SELECT 'b', 9 + i, i, i FROM generate_series(1, 10) i")
    assert placed(client) == [("a1", "3"), ("b1", "2"), ("b2x", "11"), ("b2y", "2")]
    assert client.rows("SELECT count(*) FROM ONLY t") == [("0",)]
    check_view(client)
    returned = client.rows("INSERT INTO t VALUES ('b', 12, 0, 0), ('a', 3, 0, 0) RETURNING tableoid::regclass::text, b")
    assert returned == [("b2x", "12"), ("a1", "3")]
    assert fails(client, "INSERT INTO t VALUES ('a', 1), ('c', 1)") == (
        "23514", 'no partition of relation "t" found for row',
        "Partition key of the failing row contains (a, b) = (c, 1).",
    )  # fmt: skip
    assert fails(client, "INSERT INTO t VALUES ('b', 12)")[1] == 'no partition of relation "b2" found for row'
    assert fails(client, "INSERT INTO b1 VALUES ('a', 1)") == (
        "23514", 'new row for relation "b1" violates partition constraint', "Failing row contains (a, 1, null, null).",
    )  # fmt: skip
    assert fails(client, "INSERT INTO b2x (a, b, d) VALUES ('b', 9, 1)")[1] == (
        'new row for relation "b2x" violates partition constraint'
    )
    client.run("INSERT INTO b2x (a, b, d) VALUES ('b', 19, 1)")
    check_view(client)


def test_an_update_moves_rows(client: Client) -> None:
    fill(client)
    assert client.run("UPDATE t SET d = d + 12 WHERE d = 1 OR d = -3") == "UPDATE 3"
    assert client.run("UPDATE t SET a = 'b', b = 14, d = 30 WHERE a = 'a' AND b = 1") == "UPDATE 1"
    assert placed(client) == [("a1", "1"), ("b1", "2"), ("b2x", "1"), ("b2y", "2")]
    check_view(client)
    moved = client.rows(
        "UPDATE t SET b = b - 10 FROM (VALUES (14), (14)) s (x) WHERE b = x RETURNING tableoid::regclass::text, b"
    )
    assert moved == [("b1", "4")]
    assert fails(client, "UPDATE b2 SET b = 1")[:2] == (
        "23514", 'new row for relation "b2" violates partition constraint',
    )  # fmt: skip
    assert client.state("UPDATE b2y SET d = 1") == "23514"
    assert client.state("UPDATE t SET a = 'z' WHERE a = 'a'") == "23514"
    check_view(client)
    gone = client.rows("DELETE FROM t WHERE b = 2 RETURNING tableoid::regclass::text, *")
    assert gone == [("b1", "b", "2", "3", None)] * 2
    client.run("TRUNCATE b2")
    check_view(client)
    client.run("TRUNCATE t")
    assert client.rows("SELECT * FROM t") == []
    check_view(client)


def test_bounds_are_checked(client: Client) -> None:
    made = "CREATE TABLE x PARTITION OF t "
    assert fails(client, made + "FOR VALUES FROM ('b', 5) TO ('b', 12)") == (
        "42P17", 'partition "x" would overlap partition "b1"', None,
    )  # fmt: skip
    assert fails(client, made + "FOR VALUES FROM ('c', 5) TO ('c', 5)") == (
        "42P17", 'empty range bound specified for partition "x"',
        "Specified lower bound ('c', '5') is greater than or equal to upper bound ('c', '5').",
    )  # fmt: skip
    assert client.state(made + "FOR VALUES IN ('c')") == "42P16"
    assert client.state(made + "FOR VALUES FROM ('c') TO ('d')") == "42P16"
    assert client.state(made + "FOR VALUES FROM (MINVALUE, 1) TO ('d', 1)") == "42804"
    assert client.state("CREATE TABLE x PARTITION OF b1 DEFAULT") == "42P17"
    assert client.state("CREATE TABLE x (a int, b int) PARTITION BY LIST (a, b)") == "42P17"
    assert fails(client, "CREATE TABLE x (a int, b int PRIMARY KEY) PARTITION BY LIST (a)") == (
        "0A000", "unique constraint on partitioned table must include all partitioning columns",
        'PRIMARY KEY constraint on table "x" lacks column "a" which is part of the partition key.',
    )  # fmt: skip


def test_lists_and_their_default(client: Client) -> None:
    client.run("CREATE TABLE l (a int, b text) PARTITION BY LIST (a)")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT b, count(*) AS n FROM l GROUP BY b")
    client.run("CREATE TABLE l1 PARTITION OF l FOR VALUES IN (1, NULL)")
    assert client.state("CREATE TABLE lx PARTITION OF l FOR VALUES IN (NULL)") == "42P17"
    client.run("CREATE TABLE ld PARTITION OF l DEFAULT")
    assert client.state("CREATE TABLE lx PARTITION OF l DEFAULT") == "42P17"
    client.run("INSERT INTO l VALUES (1, 'x'), (NULL, 'x'), (7, 'y')")
    assert client.rows("SELECT b FROM ld") == [("y",)]
    assert client.state("INSERT INTO ld VALUES (1, 'z')") == "23514"
    assert fails(client, "CREATE TABLE l7 PARTITION OF l FOR VALUES IN (7)")[:2] == (
        "23514", 'updated partition constraint for default partition "ld" would be violated by some row',
    )  # fmt: skip
    client.run("UPDATE l SET a = coalesce(a, 6) + 1")
    assert client.sorted("SELECT a FROM ld") == [("2",), ("7",), ("8",)]
    client.run("DROP TABLE ld")
    assert client.rows("SELECT * FROM w") == []
    assert client.rows("VERIFY MATERIALIZED VIEW w") == []


def test_attach_and_detach(client: Client) -> None:
    fill(client)
    client.run("ALTER TABLE t DETACH PARTITION b1")
    check_view(client)
    assert client.rows("SELECT count(*) FROM t") == [("4",)]
    client.run("INSERT INTO b1 VALUES ('q', 99)")
    attach = "ALTER TABLE t ATTACH PARTITION b1 FOR VALUES FROM ('b', 1) TO ('b', 10)"
    assert fails(client, attach)[:2] == ("23514", 'partition constraint of relation "b1" is violated by some row')
    client.run("DELETE FROM b1 WHERE a = 'q'")
    client.run(attach)
    check_view(client)
    assert client.rows("SELECT count(*) FROM t") == [("6",)]
    assert client.state(attach) == "42809"
    client.run("CREATE TABLE n (a text, b bigint, c numeric)")
    other = "ALTER TABLE t ATTACH PARTITION n FOR VALUES FROM ('n', 1) TO ('n', 10)"
    assert fails(client, other)[:2] == ("42804", 'child table is missing column "d"')
    client.run("ALTER TABLE n ADD d bigint")
    assert fails(client, other)[:2] == ("42804", 'child table "n" has different type for column "d"')
    assert client.state("ALTER TABLE t DETACH PARTITION n") == "42P01"
    client.run("CREATE TABLE p (a text)")
    client.run("ALTER TABLE n INHERIT p")
    assert client.state("ALTER TABLE n INHERIT p") == "42P07"
    assert client.state("ALTER TABLE p INHERIT n") == "42P07"
    client.run("INSERT INTO n VALUES ('n')")
    assert client.rows("SELECT * FROM p") == [("n",)]
    client.run("ALTER TABLE n NO INHERIT p")
    assert client.rows("SELECT * FROM p") == []
    client.run("DROP TABLE b2")
    check_view(client)
    assert client.state("DROP TABLE t") == "2BP01"
    client.run("DROP MATERIALIZED VIEW v")
    client.run("DROP TABLE t")
    assert client.rows("SELECT relname FROM pg_class WHERE relname IN ('t', 'a1', 'b1')") == []


def test_keys_and_on_conflict(client: Client) -> None:
    client.run("CREATE TABLE u (a int PRIMARY KEY, b text) PARTITION BY LIST (a)")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT b, count(*) AS n FROM u GROUP BY b")
    client.run("CREATE TABLE u1 PARTITION OF u FOR VALUES IN (1, 11)")
    client.run("CREATE TABLE u2 (b text, a int)")
    attach = "ALTER TABLE u ATTACH PARTITION u2 FOR VALUES IN (2)"
    assert client.state(attach) == "42804"
    client.run("ALTER TABLE u2 ADD PRIMARY KEY (a)")
    client.run(attach)
    client.run("INSERT INTO u VALUES (1, 'x'), (2, 'y')")
    assert fails(client, "INSERT INTO u VALUES (2, 'z')") == (
        "23505", 'duplicate key value violates unique constraint "u2_pkey"', "Key (a)=(2) already exists.",
    )  # fmt: skip
    assert client.run("INSERT INTO u VALUES (1, 'x'), (2, 'y') ON CONFLICT DO NOTHING") == "INSERT 0 0"
    found = client.sorted(
        "INSERT INTO u VALUES (1, 'p'), (2, 'q'), (11, 'n') "
        "ON CONFLICT (a) DO UPDATE SET b = excluded.b || u.b WHERE u.a < 10 RETURNING tableoid::regclass::text, *"
    )
    assert found == [("u1", "1", "px"), ("u1", "11", "n"), ("u2", "2", "qy")]
    found = client.sorted(
        "WITH c AS (SELECT ' w' AS s) INSERT INTO u VALUES (1, 'p'), (2, 'q') "
        "ON CONFLICT (a) DO UPDATE SET (b, a) = (SELECT u.b || s || excluded.b, u.a FROM c) RETURNING *"
    )
    assert found == [("1", "px wp"), ("2", "qy wq")]
    asked = client.rows(
        "INSERT INTO u VALUES (2, 's') ON CONFLICT (a) DO UPDATE "
        "SET b = (SELECT string_agg(x.b, ',' ORDER BY x.b) FROM u x WHERE x.a >= u.a) || (SELECT excluded.b) "
        "RETURNING (SELECT tableoid::regclass::text || '/' || u.b)"
    )
    assert asked == [("u2/n,qy wqs",)]
    assert client.rows("VERIFY MATERIALIZED VIEW w") == []
    assert client.state("ALTER TABLE u1 ADD COLUMN c int") == "42809"
    assert client.state("ALTER TABLE u2 DROP CONSTRAINT u2_pkey") == "42P16"
    client.run("ALTER TABLE u ALTER b SET DEFAULT 'x'")
    assert fails(client, "INSERT INTO u VALUES (1, 'p') ON CONFLICT (a) DO UPDATE SET a = 2")[:2] == (
        "0A000", "invalid ON UPDATE specification",
    )  # fmt: skip
    client.run("CREATE TABLE r (a int REFERENCES u)")
    assert client.state("INSERT INTO r VALUES (77)") == "23503"
    client.run("DROP TABLE r")


def test_the_catalogs_tell(client: Client) -> None:
    assert client.rows(
        "SELECT relname, relkind, relispartition, pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid) "
        "FROM pg_class WHERE relname IN ('t', 'b1', 'b2', 'b2x') ORDER BY 1"
    ) == [
        ("b1", "r", "t", "FOR VALUES FROM ('b', '1') TO ('b', '10')", None),
        ("b2", "p", "t", "FOR VALUES FROM ('b', '10') TO ('b', '20')", "RANGE (abs(d))"),
        ("b2x", "r", "t", "FOR VALUES FROM (MINVALUE) TO (15)", None),
        ("t", "p", "f", None, "RANGE (a, b)"),
    ]
    assert client.rows("SELECT relid::text FROM pg_partition_ancestors('b2x'::regclass)") == [("b2x",), ("b2",), ("t",)]
    assert client.rows("SELECT pg_get_partition_constraintdef('b2y'::regclass)") == [
        (
            "((a IS NOT NULL) AND (b IS NOT NULL) AND ((a > 'b'::text) OR ((a = 'b'::text) AND (b >= '10'::bigint)))"
            " AND ((a < 'b'::text) OR ((a = 'b'::text) AND (b < '20'::bigint))) AND (abs(d) IS NOT NULL)"
            " AND (abs(d) >= 15))",
        )
    ]
    text = "SELECT partrelid::regclass::text, partstrat, partattrs FROM pg_partitioned_table ORDER BY 1"
    assert client.rows(text) == [
        ("b2", "r", "0"), ("t", "r", "1 2"),
    ]  # fmt: skip


def test_transactions_and_restarts(server: Server, client: Client) -> None:
    fill(client)
    client.run("BEGIN")
    client.run("CREATE TABLE td PARTITION OF t DEFAULT")
    client.run("INSERT INTO t VALUES ('z', 1, 1, 1)")
    check_view(client)
    client.run("SAVEPOINT s")
    client.run("UPDATE t SET a = 'y'")
    assert placed(client) == [("td", "7")]
    check_view(client)
    client.run("ROLLBACK TO s")
    check_view(client)
    client.run("ALTER TABLE t DETACH PARTITION a1")
    check_view(client)
    client.run("ROLLBACK")
    check_view(client)
    before = placed(client)
    assert before == [("a1", "2"), ("b1", "2"), ("b2x", "1"), ("b2y", "1")]
    client.run("CREATE TABLE td PARTITION OF t DEFAULT")
    client.close()
    server.restart()
    again = server.client()
    assert placed(again) == before
    check_view(again)
    again.run("UPDATE t SET d = 40 WHERE d = -3")
    again.run("INSERT INTO t VALUES ('z', NULL)")
    assert placed(again) == [("a1", "2"), ("b1", "2"), ("b2y", "2"), ("td", "1")]
    assert again.state("INSERT INTO td VALUES ('b', 3)") == "23514"
    check_view(again)


HASHED = (
    "CREATE TABLE h (a int, b text, c numeric, d date) PARTITION BY HASH (a, b)",
    "CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n, sum(a) AS a FROM h",
    "CREATE TABLE h0 PARTITION OF h FOR VALUES WITH (MODULUS 4, REMAINDER 0)",
    "CREATE TABLE h1 PARTITION OF h FOR VALUES WITH (REMAINDER 1, MODULUS 4)",
    "CREATE TABLE h2 PARTITION OF h FOR VALUES WITH (MODULUS 8, REMAINDER 2)",
    "CREATE TABLE h3 PARTITION OF h FOR VALUES WITH (MODULUS 8, REMAINDER 6) PARTITION BY HASH (c)",
    "CREATE TABLE h30 PARTITION OF h3 FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    "CREATE TABLE h4 PARTITION OF h FOR VALUES WITH (MODULUS 4, REMAINDER 3) PARTITION BY HASH (d)",
    "CREATE TABLE h40 PARTITION OF h4 FOR VALUES WITH (MODULUS 2, REMAINDER 0)",
    "CREATE TABLE h41 PARTITION OF h4 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
    "INSERT INTO h SELECT i, 'text ' || i, i, '2020-01-01'::date + i FROM generate_series(1, 100) i",
    "INSERT INTO h VALUES (NULL, NULL, NULL, NULL), (NULL, 'x', 1, NULL), (1, NULL, 1, NULL)",
)
HASH_MISTAKES = (
    ("FOR VALUES WITH (MODULUS 6, REMAINDER 0)", "42P16",
     "every hash partition modulus must be a factor of the next larger modulus"),
    ("FOR VALUES WITH (MODULUS 12, REMAINDER 0)", "42P16",
     "every hash partition modulus must be a factor of the next larger modulus"),
    ("FOR VALUES WITH (MODULUS 16, REMAINDER 0)", "42P17", 'partition "x" would overlap partition "h0"'),
    ("FOR VALUES WITH (MODULUS 3, REMAINDER 5)", "42P16", "remainder for hash partition must be less than modulus"),
    ("FOR VALUES WITH (MODULUS 0, REMAINDER 0)", "42P16",
     "modulus for hash partition must be an integer value greater than zero"),
    ("FOR VALUES WITH (MODULUS 3)", "42601", "remainder for hash partition must be specified"),
    ("FOR VALUES WITH (MODULUS 3, MODULUS 3)", "42601", "modulus for hash partition provided more than once"),
    ("FOR VALUES WITH (FOO 3, REMAINDER 0)", "42601", 'unrecognized hash partition bound specification "foo"'),
    ("DEFAULT", "42P16", "a hash-partitioned table may not have a default partition"),
    ("FOR VALUES IN (1)", "42P16", "invalid bound specification for a hash partition"),
)  # fmt: skip


def test_hashes_are_those_of_postgres(client: Client) -> None:
    """PostgreSQL 15 has the same rows in each partition."""
    placed = "SELECT tableoid::regclass::text, count(*), sum(a) FROM h GROUP BY 1"
    for text in HASHED:
        client.run(text)
    assert client.sorted(placed) == [
        ("h0", "24", "1420"), ("h1", "31", "1445"), ("h2", "18", "953"), ("h30", "11", "513"), ("h40", "11", "401"),
        ("h41", "8", "319"),
    ]  # fmt: skip
    client.run("UPDATE h SET a = a + 1 WHERE a < 20")
    assert client.sorted(placed) == [
        ("h0", "25", "1440"), ("h1", "34", "1492"), ("h2", "16", "907"), ("h30", "9", "492"), ("h40", "11", "400"),
        ("h41", "8", "340"),
    ]  # fmt: skip
    assert client.rows("TABLE w") == [("103", "5071")]
    assert client.state("INSERT INTO h0 VALUES (2, 'text 2')") == "23514"
    shown = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'h2'"
    assert client.rows(shown) == [("FOR VALUES WITH (modulus 8, remainder 2)",)]
    assert client.rows("SELECT pg_get_partkeydef('h'::regclass)") == [("HASH (a, b)",)]
    for text, state, message in HASH_MISTAKES:
        assert fails(client, f"CREATE TABLE x PARTITION OF h {text}")[:2] == (state, message)
    client.run("ALTER TABLE h DETACH PARTITION h0")
    assert client.state("INSERT INTO h SELECT i, 'text ' || i FROM generate_series(1, 100) i") == "23514"
    assert client.state("ALTER TABLE h ATTACH PARTITION h0 FOR VALUES WITH (MODULUS 8, REMAINDER 4)") == "23514"
    client.run("ALTER TABLE h ATTACH PARTITION h0 FOR VALUES WITH (MODULUS 4, REMAINDER 0)")
    assert client.rows("TABLE w") == [("103", "5071")]
