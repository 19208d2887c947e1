"""Domains: columns of tables, casts in queries, and the errors of values outside them."""

from __future__ import annotations

SETUP = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE DOMAIN pos AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN small pos NOT NULL CONSTRAINT below CHECK (VALUE < 100)",
    "CREATE DOMAIN word varchar(6) DEFAULT 'none' CONSTRAINT clean CHECK (VALUE <> 'bad')",
    "CREATE DOMAIN fine mood CHECK (VALUE > 'sad')",
    "CREATE DOMAIN pair int[] CHECK (array_length(VALUE, 1) = 2)",
    "CREATE TABLE t (id int PRIMARY KEY, p pos, s small, w word, f fine, a pair)",
    "INSERT INTO t VALUES (1, 5, 7, 'a', 'ok', '{1,2}'), (2, NULL, 8, NULL, NULL, NULL)",
    "INSERT INTO t (id, s) VALUES (3, 9)",
    "INSERT INTO t VALUES (4, 5, 7, DEFAULT, 'happy', ARRAY[3, 4])",
    "CREATE TABLE heir (more pos DEFAULT 4) INHERITS (t)",
    "INSERT INTO heir (id, s) VALUES (7, 1)",
)
CHANGES = (
    "UPDATE t SET p = p + 5, w = 'b' WHERE id < 3",
    "DELETE FROM t WHERE id = 4",
    "INSERT INTO t VALUES (1, 1, 1) ON CONFLICT (id) DO UPDATE SET s = 99",
    "MERGE INTO t USING (VALUES (2, 3), (5, 6)) v (i, j) ON id = i WHEN MATCHED THEN UPDATE SET p = j "
    "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (i, j)",
)
_QUERIES = (
    "SELECT * FROM t",
    "SELECT p, count(*), sum(s), max(f::mood) FROM t GROUP BY p",
    "SELECT id, p + s, w || 'x', f::mood > 'ok', a[1] FROM t",
    "SELECT a.id AS x, b.id AS y FROM t a JOIN t b ON a.p = b.s",
    "SELECT DISTINCT w FROM t WHERE p IS NOT NULL",
    "SELECT * FROM heir",
)
_STATEMENTS = (
    "select 5::pos, 'x'::word, null::pos, cast('abcdefgh' as word), 'ok'::fine, array[1, 2]::pair",
    "select (-5)::pos",
    "select null::small",
    "select 1000::small",
    "select (-1)::small",
    "select 'sad'::fine",
    "select '{1}'::pair",
    "select x::pos from (values (1), (0)) v(x) where x > 0",
    "select id, (s + 1)::small from t",
    "INSERT INTO t VALUES (9, 0, 1)",
    "INSERT INTO t VALUES (9, 1, NULL)",
    "INSERT INTO t (id) VALUES (9)",
    "INSERT INTO t VALUES (9, 1, 100)",
    "INSERT INTO t VALUES (9, 1, 1, 'bad')",
    "INSERT INTO t VALUES (9, 1, 1, 'too long')",
    "INSERT INTO t VALUES (9, 1, 1, 'a', 'sad')",
    "INSERT INTO t VALUES (9, 1, 1, 'a', 'ok', '{1,2,3}')",
    "INSERT INTO t SELECT 10 + id, -1, s FROM t",
    "INSERT INTO heir (id, s, more) VALUES (9, 1, 0)",
    "UPDATE t SET p = p - 100",
    "UPDATE t SET s = NULL",
    "INSERT INTO t VALUES (1, 1, 1) ON CONFLICT (id) DO UPDATE SET s = 100",
    "MERGE INTO t USING (VALUES (1, -4)) v (i, j) ON id = i WHEN MATCHED THEN UPDATE SET p = j",
    "CREATE DOMAIN pos int",
    "CREATE DOMAIN n nope",
    "CREATE DOMAIN n record",
    "CREATE DOMAIN n int CHECK (VALUE > x)",
    "CREATE DOMAIN n int CHECK (VALUE)",
    "CREATE DOMAIN n int CHECK (VALUE > (SELECT 1))",
    "CREATE DOMAIN n int PRIMARY KEY",
    "CREATE DOMAIN n int NULL NOT NULL",
    "CREATE DOMAIN n int DEFAULT 1 DEFAULT 2",
    "CREATE DOMAIN n int CONSTRAINT c CHECK (VALUE > 1) CONSTRAINT c CHECK (VALUE > 2)",
    "DROP DOMAIN word",
    "DROP DOMAIN nope",
    "DROP DOMAIN mood",
    "ALTER DOMAIN nope DROP DEFAULT",
    "ALTER DOMAIN mood DROP DEFAULT",
    "ALTER DOMAIN pos ADD CONSTRAINT big CHECK (VALUE > 8)",
    "ALTER DOMAIN pos SET NOT NULL",
    "ALTER DOMAIN small ADD CONSTRAINT below CHECK (VALUE < 1000)",
    "ALTER DOMAIN pos DROP CONSTRAINT nope",
    "ALTER DOMAIN pos RENAME CONSTRAINT nope TO n",
    "ALTER DOMAIN pos VALIDATE CONSTRAINT nope",
    "ALTER TABLE heir ADD COLUMN n small",
)


def queries() -> list[str]:
    """The queries, always the same. Those in capitals are tried as views too."""
    return [*_QUERIES, *_STATEMENTS]
