"""MERGE: which action each row meets, and views over the rows that it changes. Answers are PostgreSQL 17's."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("merge"))
    yield server
    server.close()


@pytest.fixture
def client(shared: Server) -> Iterator[Client]:
    client = shared.client()
    for name in ("t", "s", "p"):
        client.run(f"DROP TABLE IF EXISTS {name} CASCADE")
    client.run("CREATE TABLE t (id int PRIMARY KEY, v text)")
    client.run("CREATE TABLE s (k int, w text)")
    client.run("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    client.run("INSERT INTO s VALUES (2, 'deux'), (3, 'trois')")
    yield client
    client.close()


def test_the_three_kinds_of_rows(client: Client) -> None:
    text = """
        MERGE INTO t USING s ON id = k WHEN MATCHED THEN UPDATE SET v = w
        WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, w)
        RETURNING merge_action(), *
    """
    assert client.sorted(text) == [
        ("DELETE", None, None, "1", "one"), ("INSERT", "3", "trois", "3", "trois"),
        ("UPDATE", "2", "deux", "2", "deux"),
    ]  # fmt: skip
    assert client.sorted("SELECT * FROM t") == [("2", "deux"), ("3", "trois")]


def test_the_first_clause_that_holds_decides(client: Client) -> None:
    text = """
        MERGE INTO t USING (VALUES (1, 'x'), (2, 'y'), (7, 'z'), (8, NULL)) n (a, b) ON a = id
        WHEN MATCHED AND b = 'x' THEN DO NOTHING WHEN MATCHED THEN UPDATE SET (id, v) = (id + 10, v || b)
        WHEN NOT MATCHED AND b IS NULL THEN INSERT DEFAULT VALUES WHEN NOT MATCHED THEN INSERT (v, id) VALUES (b, a)
    """
    assert client.error(text).message == 'null value in column "id" of relation "t" violates not-null constraint'
    assert client.run(text.replace("(8, NULL)", "(8, '')")) == "MERGE 3"
    assert client.sorted("SELECT * FROM t") == [("1", "one"), ("12", "twoy"), ("7", "z"), ("8", "")]
    assert client.run("MERGE INTO t USING s ON false WHEN MATCHED THEN DELETE") == "MERGE 0"


def test_only_the_values_of_the_chosen_action_are_computed(client: Client) -> None:
    text = "MERGE INTO t USING s ON id = k WHEN MATCHED AND id = 1 THEN UPDATE SET id = 1 / 0 WHEN MATCHED THEN DELETE"
    assert client.run(text) == "MERGE 1"
    client.run("CREATE SEQUENCE numbers")
    text = (
        "MERGE INTO t USING s ON id = k WHEN NOT MATCHED THEN INSERT VALUES (k, nextval('numbers')::text) RETURNING v"
    )
    assert client.sorted(text) == [("1",), ("2",)]
    client.run("DROP SEQUENCE numbers")


@pytest.mark.parametrize(
    ("text", "state", "message"),
    [
        (
            "MERGE INTO t USING (VALUES (2), (2)) n (a) ON a = id WHEN MATCHED THEN DELETE", "21000",
            "MERGE command cannot affect row a second time",
        ),
        (
            "MERGE INTO t USING s ON id = k WHEN MATCHED THEN DO NOTHING WHEN MATCHED THEN DELETE", "42601",
            "unreachable WHEN clause specified after unconditional WHEN clause",
        ),
        ("MERGE INTO t USING t ON true WHEN MATCHED THEN DELETE", "42712", 'name "t" specified more than once'),
        (
            "MERGE INTO t USING s ON id = k WHEN NOT MATCHED THEN INSERT VALUES (k, t.v)", "42P01",
            'invalid reference to FROM-clause entry for table "t"',
        ),
        (
            "MERGE INTO t USING s ON id = k WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.w", "42P01",
            'invalid reference to FROM-clause entry for table "s"',
        ),
        (
            "MERGE INTO t USING s ON id = k WHEN NOT MATCHED THEN INSERT VALUES (1, 'a', 2)", "42601",
            "INSERT has more expressions than target columns",
        ),
        ("MERGE INTO t USING s ON id = k WHEN NOT MATCHED THEN DELETE", "42601", 'syntax error at or near "DELETE"'),
        (
            "MERGE INTO t USING s ON id = k WHEN MATCHED THEN INSERT VALUES (1)", "42601",
            'syntax error at or near "INSERT"',
        ),
        (
            "SELECT merge_action()", "42601",
            "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command",
        ),
        (
            "MERGE INTO t USING s ON id = k WHEN MATCHED THEN UPDATE SET id = 1", "23505",
            'duplicate key value violates unique constraint "t_pkey"',
        ),
    ],
)  # fmt: skip
def test_errors(client: Client, text: str, state: str, message: str) -> None:
    error = client.error(text)
    assert (error.sqlstate, error.message) == (state, message)


def test_partitions(client: Client) -> None:
    client.run("CREATE TABLE p (k int, v text) PARTITION BY LIST (k)")
    client.run("CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1, 2)")
    client.run("CREATE TABLE p2 PARTITION OF p DEFAULT")
    client.run("INSERT INTO p VALUES (1, 'a'), (5, 'b')")
    text = """
        MERGE INTO p USING (VALUES (1, 7), (2, 2), (5, 5)) n (o, w) ON k = o WHEN MATCHED AND o = 5 THEN DELETE
        WHEN MATCHED THEN UPDATE SET k = w WHEN NOT MATCHED THEN INSERT VALUES (w, 'new')
        RETURNING merge_action(), (SELECT relname FROM pg_class WHERE oid = p.tableoid), k, v, o
    """
    assert client.sorted(text) == [
        ("DELETE", "p2", "5", "b", "5"), ("INSERT", "p1", "2", "new", "2"), ("UPDATE", "p2", "7", "a", "1"),
    ]  # fmt: skip
    assert client.sorted("SELECT * FROM p1") == [("2", "new")]


def test_in_with_and_rolled_back(client: Client) -> None:
    text = "WITH m AS (MERGE INTO t USING s ON id = k WHEN MATCHED THEN DELETE RETURNING id) SELECT * FROM m"
    client.run("BEGIN")
    client.run("SAVEPOINT a")
    assert client.rows(text) == [("2",)]
    assert client.rows("SELECT count(*) FROM t") == [("1",)]
    client.run("ROLLBACK TO a")
    assert client.rows("SELECT count(*) FROM t") == [("2",)]
    client.run("COMMIT")
    assert client.state(text.replace(" RETURNING id", "")) == "0A000"


def test_a_row_that_another_part_has_changed(client: Client) -> None:
    text = "WITH d AS (DELETE FROM t WHERE id = 1) MERGE INTO t USING (VALUES (1)) n (k) ON id = k "
    assert client.state(text + "WHEN MATCHED THEN UPDATE SET v = 'z'") == "21000"
    assert client.run(text + "WHEN NOT MATCHED THEN INSERT VALUES (9, '')") == "MERGE 0"
    assert client.rows("SELECT * FROM t") == [("2", "two")]


def test_views_follow_random_merges(client: Client) -> None:
    """Random merges against a model, with duplicates and NULLs in the source, and views over the target."""
    client.run("CREATE MATERIALIZED VIEW counts AS SELECT v, count(*) AS n, sum(id) AS ids FROM t GROUP BY v")
    generator = random.Random(5)
    model = {1: "one", 2: "two"}
    for _ in range(25):
        source = {k: generator.choice(("a", "b", "")) for k in generator.sample(range(8), generator.randint(0, 5))}
        client.run("TRUNCATE s")
        for k, w in source.items():
            client.run(f"INSERT INTO s VALUES ({k}, NULLIF('{w}', ''))")
        client.run("INSERT INTO s VALUES (NULL, 'n'), (NULL, 'n')")
        client.run("""
            MERGE INTO t USING (SELECT * FROM s WHERE k IS NOT NULL) q ON id = k
            WHEN MATCHED AND w = 'a' THEN DELETE WHEN MATCHED THEN UPDATE SET v = coalesce(w, 'none')
            WHEN NOT MATCHED BY SOURCE AND id % 3 = 0 THEN UPDATE SET v = v || '!'
            WHEN NOT MATCHED AND w IS NOT NULL THEN INSERT VALUES (k, w)
        """)
        before = dict(model)
        for k, w in source.items():
            if k in before and w == "a":
                del model[k]
            elif k in before:
                model[k] = w or "none"
            elif w:
                model[k] = w
        for k in before:
            if k not in source and k % 3 == 0:
                model[k] += "!"
        assert client.sorted("SELECT * FROM t") == sorted((str(k), v) for k, v in model.items())
        assert client.rows("VERIFY MATERIALIZED VIEW counts") == []
    assert client.rows("SELECT sum(n) FROM counts") == [(str(len(model)),)]
