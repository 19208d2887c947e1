"""Asks a real PostgreSQL 15 what it says to plausible mistakes: mistakes.json.

``python -m tests.answers.make_mistakes 'host=127.0.0.1 port=5499 user=postgres'``

Each case is {"name", "sql", "sqlstate", "message"} and, where they have a part in it, "copy" (what follows a COPY FROM
STDIN) or "parameters".
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import psycopg

SETUP = (
    "CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL, age smallint, born date, pay numeric(8, 2),"
    " note varchar(5))",
    "CREATE TABLE orders (id int PRIMARY KEY, person int, amount bigint, at timestamp)",
    "INSERT INTO people VALUES (1, 'ann', 30, '1990-01-02', 10.5, 'a'), (2, 'bob', 40, '1980-03-04', 20, 'b')",
    "INSERT INTO orders VALUES (1, 1, 100, '2024-01-01 10:00'), (2, 1, 200, '2024-01-02 11:00'), (3, 2, 0, NULL)",
    "CREATE VIEW adults AS SELECT id, name FROM people WHERE age >= 18",
    "CREATE MATERIALIZED VIEW totals AS SELECT person, sum(amount) AS total FROM orders GROUP BY person",
)
TEARDOWN = "DROP TABLE IF EXISTS people, orders, spare CASCADE"

PLAIN = {
    "unknown column": "SELECT nme FROM people",
    "unknown column of a table": "SELECT p.nme FROM people p",
    "unknown table": "SELECT * FROM poeple",
    "unknown schema": "SELECT * FROM other.people",
    "table missing from FROM": "SELECT orders.id FROM people",
    "alias hides the name": "SELECT people.id FROM people p",
    "unknown function": "SELECT lenght(name) FROM people",
    "function of the wrong types": "SELECT upper(id) FROM people",
    "too many arguments": "SELECT lower(name, 1) FROM people",
    "unknown operator": "SELECT name + id FROM people",
    "comparison of different types": "SELECT * FROM people WHERE name = 1",
    "comparison with a bad literal": "SELECT * FROM people WHERE id = 'one'",
    "WHERE is not boolean": "SELECT * FROM people WHERE id",
    "insert of the wrong type": "INSERT INTO people (id, name, born) VALUES (3, 'c', 5)",
    "insert of a bad number": "INSERT INTO people (id, name) VALUES ('three', 'c')",
    "insert of a bad date": "INSERT INTO people (id, name, born) VALUES (3, 'c', '2024-02-30')",
    "insert of no date at all": "INSERT INTO people (id, name, born) VALUES (3, 'c', 'yesterdayish')",
    "update to the wrong type": "UPDATE people SET age = name",
    "update of an unknown column": "UPDATE people SET agee = 3",
    "insert into an unknown column": "INSERT INTO people (id, nme) VALUES (3, 'c')",
    "insert into a column twice": "INSERT INTO people (id, name, id) VALUES (3, 'c', 4)",
    "more values than columns": "INSERT INTO people (id, name) VALUES (3, 'c', 4)",
    "more columns than values": "INSERT INTO people (id, name, age) VALUES (3, 'c')",
    "VALUES of different lengths": "INSERT INTO people (id, name) VALUES (3, 'c'), (4)",
    "ambiguous column": "SELECT id FROM people, orders",
    "ambiguous column of USING": "SELECT * FROM people JOIN orders USING (name)",
    "table named twice": "SELECT * FROM people, people",
    "division by zero": "SELECT amount / (amount - 100) FROM orders",
    "division by zero in numeric": "SELECT 1.5 / 0",
    "modulo by zero": "SELECT 1 % 0",
    "duplicate key": "INSERT INTO people (id, name) VALUES (1, 'again')",
    "duplicate key within a statement": "INSERT INTO people (id, name) VALUES (7, 'a'), (7, 'b')",
    "duplicate key by update": "UPDATE people SET id = 1",
    "null in NOT NULL": "INSERT INTO people (id, name) VALUES (3, NULL)",
    "null in the key": "INSERT INTO people (name) VALUES ('c')",
    "update to null": "UPDATE people SET name = NULL",
    "text too long": "INSERT INTO people (id, name, note) VALUES (3, 'c', 'too long')",
    "numeric too large": "INSERT INTO people (id, name, pay) VALUES (3, 'c', 12345678.9)",
    "smallint out of range": "INSERT INTO people (id, name, age) VALUES (3, 'c', 40000)",
    "integer out of range": "SELECT 2147483647 + id FROM people",
    "bigint out of range": "SELECT 9223372036854775807 + amount FROM orders WHERE amount > 0",
    "integer literal out of range": "SELECT 99999999999999999999::int",
    "float out of range": "SELECT 1e300::float8 * 1e300",
    "cast of text to integer": "SELECT name::int FROM people",
    "cast of text to date": "SELECT '13/13/2013x'::date",
    "cast of text to boolean": "SELECT 'perhaps'::boolean",
    "cast that does not exist": "SELECT born::int FROM people",
    "unknown type": "SELECT 1::itn",
    "unknown type of a column": "CREATE TABLE spare (a itn)",
    "syntax error": "SELEC 1",
    "syntax error in the middle": "SELECT id FRM people WHERE",
    "nothing after FROM": "SELECT * FROM",
    "a comma too many": "SELECT id, FROM people",
    "unbalanced parenthesis": "SELECT (1 + 2",
    "unterminated string": "SELECT 'abc",
    "unterminated quoted name": 'SELECT "abc',
    "unterminated comment": "SELECT 1 /* and",
    "double quotes for a string": 'SELECT * FROM people WHERE name = "ann"',
    "column not grouped": "SELECT name, count(*) FROM people",
    "column not grouped by": "SELECT name, count(*) FROM people GROUP BY age",
    "aggregate in WHERE": "SELECT name FROM people WHERE count(*) > 1",
    "aggregate in an aggregate": "SELECT sum(count(*)) FROM people",
    "aggregate in GROUP BY": "SELECT 1 FROM people GROUP BY count(*)",
    "position beyond the columns": "SELECT id FROM people ORDER BY 2",
    "GROUP BY position beyond": "SELECT id FROM people GROUP BY 3",
    "DISTINCT with another order": "SELECT DISTINCT name FROM people ORDER BY age",
    "scalar subquery of several rows": "SELECT (SELECT id FROM people)",
    "scalar subquery of several columns": "SELECT (SELECT id, name FROM people)",
    "IN with two columns": "SELECT 1 WHERE 1 IN (SELECT id, name FROM people)",
    "UNION of different widths": "SELECT id, name FROM people UNION SELECT id FROM orders",
    "UNION of different types": "SELECT name FROM people UNION SELECT id FROM orders",
    "CASE of different types": "SELECT CASE WHEN true THEN id ELSE born END FROM people",
    "table exists": "CREATE TABLE people (a int)",
    "view exists": "CREATE VIEW adults AS SELECT 1 AS a",
    "column twice": "CREATE TABLE spare (a int, a text)",
    "key of an unknown column": "CREATE TABLE spare (a int, PRIMARY KEY (b))",
    "two primary keys": "CREATE TABLE spare (a int PRIMARY KEY, b int PRIMARY KEY)",
    "default of the wrong type": "CREATE TABLE spare (a int DEFAULT 'x')",
    "drop of what a view needs": "DROP TABLE people",
    "drop of an unknown table": "DROP TABLE poeple",
    "drop of an unknown view": "DROP VIEW poeple",
    "drop of a view as a table": "DROP TABLE adults",
    "drop of a table as a view": "DROP VIEW people",
    "insert into a materialized view": "INSERT INTO totals VALUES (1, 2)",
    "negative LIMIT": "SELECT * FROM people LIMIT -1",
    "negative OFFSET": "SELECT * FROM people OFFSET -1",
    "LIMIT is text": "SELECT * FROM people LIMIT 'many'",
    "LIMIT by a column": "SELECT * FROM people LIMIT id",
    "unknown setting": "SET statment_timeout = 5",
    "SHOW of an unknown setting": "SHOW statment_timeout",
    "bad value of a setting": "SET statement_timeout = 'soon'",
    "unknown prepared statement": "EXECUTE nothing",
    "unknown cursor": "FETCH 1 FROM nothing",
    "cursor outside of a transaction": "DECLARE c CURSOR FOR SELECT 1",
    "unknown savepoint outside": "ROLLBACK TO SAVEPOINT s",
    "WITH of an unknown name": "WITH a AS (SELECT 1) SELECT * FROM b",
    "WITH twice the same name": "WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a",
    "recursion in a subquery": "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT (SELECT n FROM r)) SELECT * FROM r",
    "recursion without the other arm": "WITH RECURSIVE r AS (SELECT n FROM r) SELECT * FROM r",
    "recursion of another type": "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 0.5 FROM r) SELECT * FROM r",
    "column list too long": "SELECT * FROM (SELECT 1) AS x (a, b)",
    "outer column in FROM": "SELECT * FROM people p, (SELECT p.id) x",
    "aggregate of text": "SELECT sum(name) FROM people",
    "negative substring": "SELECT substring('abc', 1, -1)",
    "bad regular expression": "SELECT 'a' ~ '('",
    "square root of a negative": "SELECT sqrt(-1)",
    "logarithm of zero": "SELECT ln(0)",
    "array literal": "SELECT '{1,2'::int[]",
    "bad interval": "SELECT '1 fortnightish'::interval",
    "unknown time zone": "SELECT now() AT TIME ZONE 'Mars/Olympus'",
    "bad date field": "SELECT extract(fortnight FROM now())",
    "COPY of an unknown table": "COPY poeple TO STDOUT",
    "COPY of an unknown column": "COPY people (nme) TO STDOUT",
    "COPY with an unknown option": "COPY people TO STDOUT (FORMATT csv)",
    "reading a view's missing column": "SELECT age FROM adults",
    "UPDATE of a table twice": "UPDATE people SET age = 1 FROM people WHERE true",
    "ON CONFLICT of nothing": "INSERT INTO people (id, name) VALUES (1, 'x') ON CONFLICT (name) DO NOTHING",
    "create in an unknown schema": "CREATE TABLE other.spare (a int)",
}
COPIES = {
    "COPY with a missing column": ("COPY people (id, name) FROM STDIN", "3\n"),
    "COPY with an extra column": ("COPY people (id, name) FROM STDIN", "3\tc\td\n"),
    "COPY with a bad integer": ("COPY people (id, name) FROM STDIN", "3\tc\nfour\td\n"),
    "COPY with a bad date": ("COPY people (id, name, born) FROM STDIN", "3\tc\t2024-13-01\n"),
    "COPY of a null": ("COPY people (id, name) FROM STDIN", "3\t\\N\n"),
    "COPY of a duplicate key": ("COPY people (id, name) FROM STDIN", "3\tc\n1\tann\n"),
    "COPY of an open quote": ("COPY people (id, name) FROM STDIN (FORMAT csv)", '3,"c\n'),
    "COPY of too long a text": ("COPY people (id, name, note) FROM STDIN", "3\tc\tlonger than that\n"),
    "COPY of an integer too large": ("COPY people (id, name) FROM STDIN", "99999999999\tc\n"),
    "COPY of an empty line": ("COPY people (id, name) FROM STDIN", "\n"),
}
PARAMETERS: dict[str, tuple[str, list[Any]]] = {
    "too few parameters": ("SELECT $1::int + $2::int", [1]),
    "a parameter of the wrong text": ("SELECT $1::int", ["one"]),
    "a parameter's type is unknown": ("SELECT $1 + $2", ["1", "2"]),
}
BLOCKS = {
    "statement in a failed transaction": ["BEGIN", "SELECT 1/0", "SELECT 1"],
    "unknown savepoint": ["BEGIN", "ROLLBACK TO SAVEPOINT s"],
    "write in a read-only transaction": ["BEGIN READ ONLY", "INSERT INTO people VALUES (9, 'x')"],
    "DDL in a read-only transaction": ["BEGIN READ ONLY", "CREATE TABLE spare (a int)"],
    "cursor declared twice": ["BEGIN", "DECLARE c CURSOR FOR SELECT 1", "DECLARE c CURSOR FOR SELECT 2"],
    "statement prepared twice": ["PREPARE p AS SELECT 1", "PREPARE p AS SELECT 2"],
    "EXECUTE with too few arguments": ["PREPARE q AS SELECT $1::int", "EXECUTE q"],
}


def cases() -> list[dict[str, Any]]:
    """Every case without its answer."""
    found: list[dict[str, Any]] = [{"name": name, "sql": sql} for name, sql in PLAIN.items()]
    found += [{"name": name, "sql": sql, "copy": data} for name, (sql, data) in COPIES.items()]
    found += [{"name": name, "sql": sql, "parameters": values} for name, (sql, values) in PARAMETERS.items()]
    found += [{"name": name, "sql": block[-1], "before": block[:-1]} for name, block in BLOCKS.items()]
    return found


def error_of(connection: psycopg.Connection[Any], case: dict[str, Any]) -> psycopg.Error | None:
    """What the server says to a case, None when it sees nothing wrong."""
    try:
        if "copy" in case:
            with connection.cursor() as cursor, cursor.copy(case["sql"]) as copy:
                copy.write(case["copy"])
        elif "parameters" in case:
            with psycopg.RawCursor(connection) as raw:
                raw.execute(case["sql"], case["parameters"])
        else:
            connection.execute(case["sql"])
    except psycopg.Error as error:
        return error
    return None


def main() -> None:
    answers = []
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS mistakes CASCADE")
        connection.execute("CREATE SCHEMA mistakes")
        connection.execute("SET search_path = mistakes")
        for text in SETUP:
            connection.execute(text)  # type: ignore[call-overload]
        for case in cases():
            for text in case.get("before", ()):
                with contextlib.suppress(psycopg.Error):
                    connection.execute(text)
            error = error_of(connection, case)
            if error is None:
                sys.exit(f"PostgreSQL accepts: {case['name']}")
            connection.execute("ROLLBACK")
            answers.append({**case, "sqlstate": error.sqlstate, "message": error.diag.message_primary})
        connection.execute("DROP SCHEMA mistakes CASCADE")
    path = Path(__file__).with_name("mistakes.json")
    path.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(answers)} mistakes")


if __name__ == "__main__":
    main()
