"""Random statements of every kind from several clients at once over the same few names; none may fail internally.

    python -m tests.programs.chaos --turns 500 --clients 6 --seed 1

Clients create, alter, drop, fill, read, follow, lock and sweep the same relations without coordination, cancel now and
then, and make mistakes. Any SQLSTATE is allowed except classes XX and 58. Afterwards every view must be correct
(VERIFY), and unchanged by a restart.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

import psycopg

from tests.programs.crashes import Program
from tests.support.crash_load import Connection

VALUES: Final = 15
"""The upper bound of numbers in columns, so that joins of joins stay small."""
MOST_ROWS: Final = 60
TABLES: Final = ("t0", "t1", "t2")
TABLE: Final = "(a int, b int, c text)"

QUERIES: Final = (
    "SELECT a, count(*)::int AS b, max(c) AS c FROM {any} GROUP BY a",
    "SELECT a, sum(b)::int % 15 AS b, string_agg(c, ',' ORDER BY c) AS c FROM {any} GROUP BY a HAVING count(*) > 1",
    "SELECT DISTINCT x.a, y.b, x.c FROM {any} x JOIN {table} y ON x.a = y.b",
    "SELECT DISTINCT x.a, y.b, z.c FROM {table} x JOIN {other} y ON x.b = y.a JOIN {any} z ON z.a = y.b",
    "SELECT x.a, y.b, y.c FROM {any} x"
    " LEFT JOIN (SELECT DISTINCT ON (a) * FROM {table} ORDER BY a, b, c) y ON x.b = y.a",
    "WITH RECURSIVE r(a) AS (SELECT 1 UNION SELECT e.b FROM r JOIN {any} e ON e.a = r.a)"
    " SELECT a, a AS b, 'x' AS c FROM r",
    "WITH RECURSIVE r(a, b) AS (SELECT a, b FROM {any} UNION SELECT r.a, e.b FROM r JOIN {table} e ON e.a = r.b)"
    " SELECT a, b, '' AS c FROM r WHERE a = 3",
    "WITH MUTUALLY RECURSIVE"
    " p (a int, b int) AS (SELECT a, b FROM {table} UNION SELECT p.a, q.b FROM p JOIN q ON p.b = q.a),"
    " q (a int, b int) AS (SELECT a, b FROM {other} UNION SELECT b, a FROM p) SELECT a, b, 'z' AS c FROM q",
    "SELECT a, b, c FROM {any} UNION SELECT b, a, c FROM {other}",
    "SELECT a, b, c FROM {any} x WHERE NOT EXISTS (SELECT 1 FROM {other} y WHERE y.a = x.b)",
    "SELECT a, b, c FROM {any} WHERE b > (SELECT avg(b) FROM {other})",
    "SELECT a, b, c FROM {any} ORDER BY b DESC, a, c LIMIT 5",
    "SELECT a, b, upper(c) AS c FROM"
    " (SELECT *, row_number() OVER (PARTITION BY a ORDER BY b, c) k FROM {any}) s WHERE k < 3",
    "SELECT a, percentile_disc(0.5) WITHIN GROUP (ORDER BY b) AS b, mode() WITHIN GROUP (ORDER BY c) AS c"
    " FROM {any} GROUP BY a",
    "SELECT x.a, y.b, y.c FROM {table} x ASOF JOIN {other} y ON x.a = y.a AND x.b >= y.b",
    "SELECT x.a, y.b, y.c FROM {table} x JOIN {other} FOR SYSTEM_TIME AS OF PROCTIME() y ON x.a = y.a",
)
CHANGES: Final = (
    "INSERT INTO {table} VALUES ({i}, {j}, 's{k}')",
    "INSERT INTO {table} (b, a) VALUES ({i}, {j}), ({j}, NULL), (NULL, {i})",
    "INSERT INTO {table} SELECT i % 15, i * 7 % 15, 'n' || i % 5 FROM generate_series(1, {i}) i",
    "INSERT INTO {table} (a, b, c) SELECT a, b, c FROM {any} LIMIT 10",
    "DELETE FROM {table} WHERE a = {i}",
    "DELETE FROM {table} WHERE b IN (SELECT a FROM {other})",
    "UPDATE {table} SET b = (b + 1) % 15, c = 'u{k}' WHERE a < {i}",
    "UPDATE {table} t SET b = o.a FROM {other} o WHERE t.a = o.b AND o.c < 'n2'",
    "TRUNCATE {table}",
)
DEFINITIONS: Final = (
    "CREATE MATERIALIZED VIEW {view} AS {query}",
    "CREATE MATERIALIZED VIEW {view} AS {query}",
    "CREATE MATERIALIZED VIEW {view} AS {query}",
    "CREATE MATERIALIZED VIEW {view} AS {query}",
    "CREATE OR REPLACE MATERIALIZED VIEW {view} AS {query}",
    "CREATE OR REPLACE MATERIALIZED VIEW {view} AS {query}",
    "DROP MATERIALIZED VIEW IF EXISTS {view} CASCADE",
    "CREATE OR REPLACE VIEW {plain} AS {query}",
    "CREATE OR REPLACE VIEW {plain} AS {query}",
    "DROP VIEW IF EXISTS {plain} CASCADE",
    f"CREATE TABLE {{table}} {TABLE}",
    f"CREATE TABLE {{table}} {TABLE} WITH (RETAIN HISTORY FOR '1 s')",
    f"BEGIN; DROP TABLE IF EXISTS {{table}} CASCADE; CREATE TABLE {{table}} {TABLE}; COMMIT",
    "CREATE INDEX IF NOT EXISTS {table}_{column} ON {table} ({column})",
    "DROP INDEX IF EXISTS {table}_{column}",
    "ALTER TABLE {table} ADD COLUMN d{k} int DEFAULT 5",
    "ALTER TABLE {table} DROP COLUMN d{k}",
    "ALTER TABLE {table} ADD CONSTRAINT few CHECK (a < 30)",
    "ALTER TABLE {table} DROP CONSTRAINT IF EXISTS few",
    "ALTER TABLE {table} ADD CONSTRAINT apart EXCLUDE (a WITH =, b WITH =) WHERE (b > 12)",
    "ALTER TABLE {table} DROP CONSTRAINT IF EXISTS apart",
    "CREATE INDEX IF NOT EXISTS {table}_low ON {table} (lower(c)) WHERE a > 3",
    "ALTER TABLE {table} RENAME TO {other}",
    "ALTER MATERIALIZED VIEW {view} RENAME TO {view2}",
    "CREATE ROLE other; GRANT SELECT ON ALL TABLES IN SCHEMA public TO other",
    "BEGIN; SET LOCAL ROLE other; SELECT count(*) FROM {any}; COMMIT",
    "REVOKE ALL ON {any} FROM other",
    "SET join_implementation = auto",
    "SET join_implementation = delta",
    "SET join_implementation = wco",
)
LOOKS: Final = (
    "{query}", "{query}", "EXPLAIN {query}", "SELECT * FROM {any}", "VERIFY MATERIALIZED VIEW {view}",
    "DECLARE k SCROLL CURSOR WITH HOLD FOR {query}; FETCH 3 FROM k; FETCH BACKWARD 1 FROM k; CLOSE k",
    "SELECT mz_now(); SELECT * FROM {view}", "VACUUM", "VACUUM FULL",
    "TABLE freshet.arrangements", "TABLE freshet.views", "TABLE freshet.dictionary", "TABLE freshet.hydrations",
    "SELECT relname, relkind, pg_get_viewdef(oid), pg_table_size(oid) FROM pg_class WHERE oid >= 16384",
    "SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum > 0",
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
    "SELECT pg_get_indexdef(indexrelid), indrelid::regclass FROM pg_index",
    "SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint",
    "SELECT * FROM pg_stat_activity", "SELECT * FROM pg_locks",
)  # fmt: skip
MISTAKES: Final = (
    "SELEC 1", "SELECT nope FROM {any}", "SELECT 1 / 0 FROM {any}", "INSERT INTO {table} VALUES ('a')", "COMMIT",
    "SELECT * FROM {any} WHERE a = 'x'", "FETCH 1 FROM nope", "EXECUTE nope", "SELECT * FROM {view} AS OF 1",
)  # fmt: skip


@dataclass
class Client:
    """One connection's statements and their outcomes; ``wrong``: errors that must not occur."""

    number: int
    program: Program
    random: random.Random
    done: int = 0
    states: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def run(self, turns: int, texts: Sequence[str] = ()) -> None:
        """Run the texts, then random turns, and reconnect when a connection is lost."""
        connection = self.program.connect()
        for text in chain(texts, (self.text() for _ in range(turns))):
            if connection.closed:
                connection = self.program.connect()
            try:
                self._turn(connection, text)
                self.done += 1
            except psycopg.Error as error:
                self._note(error, text)
            self._end(connection, text)
        connection.close()

    def text(self) -> str:
        """Random statements, separated by semicolons; COPY and SUBSCRIBE alone."""
        kind = self.random.random()
        if kind < 0.35:
            return self.fill(self.random.choice(CHANGES))
        if kind < 0.45:
            parts = self.random.choices((*CHANGES, *CHANGES, *DEFINITIONS, "{query}", "SELECT * FROM {view}"), k=4)
            return "; ".join(self.fill(p) for p in ("BEGIN", *parts, self.random.choice(("COMMIT", "ROLLBACK"))))
        if kind < 0.5:
            return self.fill("COPY {table} (a, b, c) FROM STDIN")
        if kind < 0.53:
            return self.fill("COPY (SUBSCRIBE " + self.random.choice(("{table}", "{view}")) + ") TO STDOUT")
        pool = DEFINITIONS if kind < 0.7 else LOOKS if kind < 0.95 else MISTAKES
        return self.fill(self.random.choice(pool))

    def fill(self, text: str) -> str:
        """A statement of the pattern, with names and numbers filled in."""
        choice = self.random.choice
        tables, plain, views = TABLES, ("v0", "v1"), ("m0", "m1", "m2", "m3")
        names = {
            "table": choice(tables), "other": choice(tables), "plain": choice(plain), "view": choice(views),
            "view2": choice(views), "any": choice((*tables, *tables, *plain, *views)), "column": choice("abc"),
            "i": self.random.randrange(VALUES), "j": self.random.randrange(VALUES), "k": self.random.randrange(3),
        }  # fmt: skip
        if "{query}" in text:
            text = text.replace("{query}", choice(QUERIES))
        return text.format(**names)

    def _turn(self, connection: Connection, text: str) -> None:
        if text.endswith("STDIN"):
            self._copy(connection, text)
            return
        canceller = None
        if "SUBSCRIBE" in text or self.random.random() < 0.04:
            canceller = threading.Timer(self.random.random() * 0.1, connection.cancel)
            canceller.start()
        try:
            if "SUBSCRIBE" in text:
                with connection.cursor() as cursor, cursor.copy(text) as copy:  # type: ignore[call-overload]
                    for _ in copy:
                        pass
                return
            for statement in text.split("; "):
                cursor = connection.execute(statement, prepare=self.random.random() < 0.3)  # type: ignore[call-overload]
                if cursor.description:
                    cursor.fetchmany(1000)
        finally:
            if canceller is not None:
                canceller.join()

    def _copy(self, connection: Connection, text: str) -> None:
        with connection.cursor() as cursor, cursor.copy(text) as copy:  # type: ignore[call-overload]
            for _ in range(self.random.randrange(20)):
                copy.write_row(
                    (self.random.randrange(VALUES), self.random.randrange(VALUES), f"c{self.random.random()}")
                )

    def _note(self, error: psycopg.Error, text: str) -> None:
        state = error.sqlstate or type(error).__name__
        self.states[state] += 1
        if error.sqlstate is None or state.startswith(("XX", "58")):
            self.wrong.append(f"{state} {error}\n    {text}")

    def _end(self, connection: Connection, text: str) -> None:
        """End an open transaction, and keep tables small."""
        try:
            if connection.info.transaction_status:
                connection.execute("ROLLBACK")
            if "COPY" in text or "INSERT" in text:
                for table in TABLES:
                    (row,) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()  # type: ignore[call-overload]
                    if row[0] > MOST_ROWS:
                        connection.execute(f"DELETE FROM {table} WHERE a % 3 <> 0 OR a IS NULL")  # type: ignore[call-overload]
        except psycopg.Error as error:
            self._note(error, "afterwards: " + text)


def contents(connection: Connection) -> dict[str, list[str]]:
    """The rows of every materialized view, as sorted text; for a view with an error, its SQLSTATE."""
    found = {}
    for (name,) in connection.execute("SELECT relname FROM pg_class WHERE relkind = 'm'").fetchall():
        try:
            found[name] = sorted(map(str, connection.execute(f"SELECT * FROM {name}").fetchall()))  # type: ignore[call-overload]
        except psycopg.Error as error:
            found[name] = [str(error.sqlstate)]
    return found


def differing(connection: Connection) -> list[str]:
    """The views that VERIFY reports as wrong."""
    wrong = []
    for name in contents(connection):
        try:
            rows = connection.execute(f"VERIFY MATERIALIZED VIEW {name}").fetchall()  # type: ignore[call-overload]
        except psycopg.Error as error:
            if error.sqlstate != "0A000":  # a result that depends on the order of arrival cannot be recomputed
                wrong.append(f"VERIFY {name}: {error.sqlstate} {error}")
            continue
        if rows:
            wrong.append(f"VERIFY {name}: {rows[:3]}")
            continue
        kept, counted = (
            connection.execute(f"SELECT count(*) FROM {source}").fetchone()  # type: ignore[call-overload]
            for source in (name, f"(SELECT * FROM {name} OFFSET 0) every")
        )
        if kept != counted:
            wrong.append(f"count(*) of {name}: {kept} for {counted}")
    return wrong


def run(turns: int, clients: int, seed: int, folder: Path, say: Callable[[str], None] = print) -> list[str]:
    """Run the test; the failures found, ideally none."""
    program = Program(folder, ())
    program.wait()
    first = Client(-1, program, random.Random(seed))
    first.run(0, [f"CREATE TABLE {t} {TABLE}" for t in TABLES] + [first.fill(DEFINITIONS[0]) for _ in range(8)])
    crowd = [Client(i, program, random.Random(seed * 1000 + i)) for i in range(clients)]
    threads = [threading.Thread(target=client.run, args=(turns,)) for client in crowd]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = [text for client in crowd for text in client.wrong]
    states = sum((client.states for client in crowd), Counter[str]())
    say(f"seed {seed}: {sum(c.done for c in crowd)} done, refused {dict(states.most_common())}, {len(wrong)} wrong")
    with program.connect() as connection:
        wrong += differing(connection)
        before = contents(connection)
    program.kill()
    wrong += [line for line in program.lines if "Error" in line]
    program = Program(folder, ())
    program.wait()
    with program.connect() as connection:
        wrong += differing(connection)
        after = contents(connection)
    program.kill()
    if after != before:
        wrong.append(f"after a restart {after}, not {before}")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=500, help="of each client")
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1, help="how many seeds")
    options = parser.parse_args()
    failed = False
    for seed in range(options.seed, options.seed + options.count):
        with tempfile.TemporaryDirectory(prefix="freshet-chaos-") as folder:
            wrong = run(options.turns, options.clients, seed, Path(folder) / "data")
        for text in wrong:
            print("wrong:", text[:1500], flush=True)
        failed |= bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
