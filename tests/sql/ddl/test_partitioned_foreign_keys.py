"""Foreign keys of partitioned tables and to them: checks, actions, rows that move, ATTACH and DETACH."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from ivm.errors import SqlError
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("DROP TABLE IF EXISTS fk, fk2, fkb, pk, pk2, plain_fk, plain_pk CASCADE")
    client.run("CREATE TABLE pk (a int PRIMARY KEY, b text) PARTITION BY RANGE (a)")
    client.run("CREATE TABLE pk1 PARTITION OF pk FOR VALUES FROM (0) TO (10)")
    client.run("CREATE TABLE pk2 (b text, a int PRIMARY KEY)")
    client.run("ALTER TABLE pk ATTACH PARTITION pk2 FOR VALUES FROM (10) TO (20)")
    client.run("CREATE TABLE pk3 PARTITION OF pk FOR VALUES FROM (20) TO (99) PARTITION BY LIST (a)")
    client.run("CREATE TABLE pk31 PARTITION OF pk3 DEFAULT")
    yield client
    client.close()


def test_rows_refer_to_any_partition(client: Client) -> None:
    client.run("CREATE TABLE fk (a int REFERENCES pk, n int)")
    client.run("INSERT INTO pk VALUES (1, 'x'), (11, 'y'), (25, 'z')")
    client.run("INSERT INTO fk VALUES (1, 1), (11, 2), (25, 3), (NULL, 4)")
    error = client.error("INSERT INTO fk VALUES (2, 1)")
    assert (error.sqlstate, error.detail) == ("23503", 'Key (a)=(2) is not present in table "pk".')
    error = client.error("DELETE FROM pk WHERE a = 25")
    assert error.sqlstate == "23503"
    assert error.detail == 'Key (a)=(25) is still referenced from table "fk".'
    assert client.state("DELETE FROM pk2") == "23503"
    assert client.state("UPDATE pk SET a = a + 1") == "23503"
    assert client.state("TRUNCATE pk") == "0A000"
    client.run("DELETE FROM fk WHERE a = 11")
    client.run("UPDATE pk SET a = 26 WHERE a = 11")
    assert client.state("DROP TABLE pk31") == "2BP01"
    assert client.state("DROP TABLE pk") == "2BP01"
    client.run("DROP TABLE pk CASCADE")
    client.run("INSERT INTO fk VALUES (77, 1)")


def test_a_row_that_moves_keeps_what_refers_to_it(client: Client) -> None:
    client.run("CREATE TABLE fk (a int REFERENCES pk ON DELETE CASCADE ON UPDATE CASCADE, n int)")
    client.run("INSERT INTO pk VALUES (1, 'x'), (11, 'y')")
    client.run("INSERT INTO fk VALUES (1, 1), (11, 2)")
    client.run("UPDATE pk SET a = a + 20 WHERE a = 1")
    client.run("UPDATE pk SET a = 5 WHERE a = 11")
    assert client.sorted("SELECT * FROM fk") == [("21", "1"), ("5", "2")]
    client.run("DELETE FROM pk WHERE a > 20")
    assert client.rows("SELECT * FROM fk") == [("5", "2")]
    client.run("CREATE TABLE fk2 (a int REFERENCES pk3 (a))")
    client.run("INSERT INTO pk VALUES (30, 'z')")
    error = client.error("UPDATE pk SET a = 7 WHERE a = 30")
    assert error.sqlstate == "0A000"
    assert error.detail == 'A foreign key points to ancestor "pk3" but not the root ancestor "pk".'


def test_a_partition_has_its_tables_keys(client: Client) -> None:
    client.run("CREATE TABLE fk (a int, n int, CONSTRAINT f FOREIGN KEY (a) REFERENCES pk) PARTITION BY HASH (n)")
    client.run("CREATE TABLE fka PARTITION OF fk FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
    client.run("INSERT INTO pk VALUES (3, 'q'), (4, 'r')")
    client.run("INSERT INTO fk SELECT 3, g FROM generate_series(1, 9) g")
    error = client.error("INSERT INTO fk VALUES (5, 1)")
    assert error.message == 'insert or update on table "fka" violates foreign key constraint "f"'
    assert client.error("DELETE FROM pk WHERE a = 3").detail == 'Key (a)=(3) is still referenced from table "fk".'
    assert client.state("INSERT INTO fka VALUES (5, 1)") == "23503"
    error = client.error("ALTER TABLE fka DROP CONSTRAINT f")
    assert error.message == 'cannot drop inherited constraint "f" of relation "fka"'
    error = client.error("ALTER TABLE fka ALTER CONSTRAINT f DEFERRABLE")
    assert error.message == 'cannot alter constraint "f" on relation "fka"'
    columns = "conrelid::regclass::text, conislocal, coninhcount, conparentid > 0"
    shown = f"SELECT {columns} FROM pg_constraint WHERE conname = 'f'"
    assert client.sorted(shown) == [("fk", "t", "0", "f"), ("fka", "f", "1", "t")]
    client.run("ALTER TABLE fk DROP CONSTRAINT f")
    assert client.rows(shown) == []
    client.run("ALTER TABLE fk ADD FOREIGN KEY (a) REFERENCES pk ON DELETE SET NULL")
    client.run("DELETE FROM pk WHERE a = 3")
    assert client.rows("SELECT count(*) FROM fk WHERE a IS NULL") == [("9",)]
    client.run("ALTER TABLE fk DETACH PARTITION fka")
    assert client.state("INSERT INTO fka VALUES (5, 1)") == "23503"
    client.run("ALTER TABLE fka DROP CONSTRAINT fk_a_fkey")
    client.run("INSERT INTO fka VALUES (5, 1)")
    assert client.state("ALTER TABLE fk ATTACH PARTITION fka FOR VALUES WITH (MODULUS 1, REMAINDER 0)") == "23503"
    client.run("DROP TABLE fka")
    error = client.error("ALTER TABLE fk ADD FOREIGN KEY (a) REFERENCES pk NOT VALID")
    assert error.sqlstate == "42809"


def test_a_partition_that_is_referred_to_stays(client: Client) -> None:
    client.run("CREATE TABLE fk (a int REFERENCES pk)")
    client.run("INSERT INTO pk VALUES (25, 'z')")
    client.run("INSERT INTO fk VALUES (25)")
    error = client.error("ALTER TABLE pk DETACH PARTITION pk3")
    assert (error.sqlstate, error.detail) == ("23503", 'Key (a)=(25) is still referenced from table "fk".')
    assert 'removing partition "pk3" violates foreign key constraint' in error.message
    client.run("ALTER TABLE pk DETACH PARTITION pk2")
    client.run("INSERT INTO pk2 VALUES ('b', 12)")
    assert client.state("INSERT INTO fk VALUES (12)") == "23503"
    client.run("ALTER TABLE pk ATTACH PARTITION pk2 FOR VALUES FROM (10) TO (20)")
    client.run("INSERT INTO fk VALUES (12)")
    client.run("DELETE FROM fk")
    client.run("ALTER TABLE pk DETACH PARTITION pk3")
    client.run("DROP TABLE pk3")


def test_a_table_may_refer_to_itself(client: Client) -> None:
    client.run("CREATE TABLE fk (a int PRIMARY KEY, p int REFERENCES fk) PARTITION BY RANGE (a)")
    client.run("CREATE TABLE fk1 PARTITION OF fk FOR VALUES FROM (0) TO (10)")
    client.run("CREATE TABLE fk2 PARTITION OF fk FOR VALUES FROM (10) TO (20)")
    client.run("INSERT INTO fk VALUES (1, 11), (11, 1)")
    assert client.state("DELETE FROM fk WHERE a = 1") == "23503"
    assert client.run("DELETE FROM fk") == "DELETE 2"


def test_deferred(client: Client) -> None:
    client.run("CREATE TABLE fk (a int, n int) PARTITION BY LIST (n)")
    client.run("CREATE TABLE fka PARTITION OF fk DEFAULT")
    client.run("ALTER TABLE fk ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES pk DEFERRABLE INITIALLY DEFERRED")
    client.run("BEGIN")
    client.run("INSERT INTO fk VALUES (8, 1)")
    client.run("INSERT INTO pk VALUES (8, 'e')")
    client.run("SET CONSTRAINTS f IMMEDIATE")
    assert client.state("INSERT INTO fk VALUES (9, 1)") == "23503"
    client.run("ROLLBACK")
    client.run("BEGIN")
    client.run("INSERT INTO fk VALUES (8, 1)")
    assert client.state("COMMIT") == "23503"
    client.run("ALTER TABLE fk ALTER CONSTRAINT f NOT DEFERRABLE")
    assert client.state("INSERT INTO fk VALUES (8, 1)") == "23503"


ACTIONS = ["", "ON DELETE CASCADE ON UPDATE CASCADE", "ON DELETE SET NULL ON UPDATE SET NULL"]


@pytest.mark.parametrize("actions", ACTIONS)
def test_partitions_change_nothing(client: Client, actions: str) -> None:
    """Random changes have the same results as those of tables that are not partitioned."""
    random = Random(len(actions))
    client.run("INSERT INTO pk VALUES (1, 'x'), (11, 'y'), (25, 'z')")
    client.run("CREATE TABLE plain_pk (a int PRIMARY KEY, b text)")
    client.run("INSERT INTO plain_pk TABLE pk")
    client.run(f"CREATE TABLE fk (a int REFERENCES pk {actions}, n int) PARTITION BY LIST (a)")
    client.run("CREATE TABLE fka PARTITION OF fk FOR VALUES IN (NULL, 1, 3, 5, 7, 9, 11, 13, 21, 30)")
    client.run("CREATE TABLE fkb (n int, a int)")
    client.run("ALTER TABLE fk ATTACH PARTITION fkb DEFAULT")
    client.run(f"CREATE TABLE plain_fk (a int REFERENCES plain_pk {actions}, n int)")
    failed = 0
    block = False
    for step in range(scaled(100)):
        a, b = random.randint(0, 30), random.randint(0, 30)
        statement = random.choice(
            (
                f"INSERT INTO {{p}}pk VALUES ({a}, 'i')",
                f"INSERT INTO {{p}}pk VALUES ({a}, 'i'), ({b}, 'j')",
                f"INSERT INTO {{p}}fk VALUES ({a}, {step})",
                f"INSERT INTO {{p}}fk SELECT a, {step} FROM {{p}}pk WHERE a > {a}",
                f"INSERT INTO {{p}}fk VALUES (NULL, {step})",
                f"UPDATE {{p}}pk SET a = {b} WHERE a = {a}",
                f"UPDATE {{p}}pk SET a = 31 - a WHERE a BETWEEN {a} AND {b}",
                f"UPDATE {{p}}fk SET a = {b} WHERE a = {a}",
                f"DELETE FROM {{p}}pk WHERE a = {a}",
                f"DELETE FROM {{p}}pk WHERE a BETWEEN {a} AND {a + 4}",
                f"DELETE FROM {{p}}fk WHERE n % 5 = {a % 5}",
            )
        )
        if not block and random.random() < 0.1:
            client.run("BEGIN")
            block = True
        if block:
            client.run("SAVEPOINT s")
        one, two = (_outcome(client, statement.format(p=p), block) for p in ("", "plain_"))
        assert one == two, statement
        failed += one == "23503"
        if block and random.random() < 0.3:
            client.run(random.choice(("COMMIT", "ROLLBACK")))
            block = False
        for name in ("pk", "fk"):
            assert client.sorted(f"SELECT * FROM {name}") == client.sorted(f"SELECT * FROM plain_{name}"), statement
    assert failed > 8


def _outcome(client: Client, statement: str, block: bool) -> str:
    try:
        return client.run(statement)
    except SqlError as error:
        if block:
            client.run("ROLLBACK TO s")
        return error.sqlstate
