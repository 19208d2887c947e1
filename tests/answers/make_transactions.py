"""Asks a real PostgreSQL 15 what random histories of one session give: transactions.json.

``python -m tests.answers.make_transactions 'host=127.0.0.1 port=5499 user=postgres'``

A history is a list of messages of the simple protocol, each with what it gives: {"send", "gives", "status"}. ``gives``
has an entry for each statement that ran: its tag, its rows, or {"error", "message"}; the message's warnings come first,
as {"warning", "message"}. ``status`` is that of ReadyForQuery. Histories set settings, begin and end
transactions and savepoints, fail, write, and open cursors; each ends with a look at everything.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import psycopg
from psycopg import pq

SETUP = ("DROP TABLE IF EXISTS t", "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2), (3)")
SESSION = "-c default_transaction_isolation=serializable"
"""The options of the session; Freshet's own default is the same."""
VALUES = {
    "application_name": ("'a'", "'b'", "DEFAULT"),
    "IntervalStyle": ("'iso_8601'", "sql_standard", "DEFAULT", "'wrong'"),
    "my.own": ("'x'", "12", "'y'"),
    "search_path": ("public", "pg_catalog, public", "DEFAULT"),
    "transaction_read_only": ("on", "off"),
    "transaction_isolation": ("'serializable'", "'repeatable read'"),
    "transaction_deferrable": ("on", "off"),
    "default_transaction_read_only": ("on", "off", "DEFAULT"),
    "default_transaction_deferrable": ("true", "DEFAULT"),
    "enable_sort": ("off", "DEFAULT"),
}
SHOWN = tuple(name for name in VALUES if name != "my.own")
MODES = (
    "READ ONLY", "READ WRITE", "ISOLATION LEVEL SERIALIZABLE", "ISOLATION LEVEL REPEATABLE READ",
    "DEFERRABLE", "NOT DEFERRABLE", "READ ONLY, DEFERRABLE", "ISOLATION LEVEL REPEATABLE READ READ ONLY",
)  # fmt: skip


def statement(rng: random.Random) -> str:
    """A random statement."""
    name = rng.choice(list(VALUES))
    value = rng.choice(VALUES[name])
    point = rng.choice(("p", "q"))
    read = rng.choice(("id", "id", "id / 0"))
    return rng.choices(
        (
            f"SET {rng.choice(('', '', 'SESSION ', 'LOCAL ', 'LOCAL '))}{name} = {value}",
            f"SHOW {rng.choice(SHOWN)}",
            rng.choice((f"RESET {rng.choice(SHOWN[:3])}", "RESET ALL", "RESET my.own")),
            f"SELECT set_config('{rng.choice(SHOWN[:2])}', 'postgres', {rng.choice(('true', 'false'))})",
            f"SELECT set_config('my.own', 'z', {rng.choice(('true', 'false'))})",
            f"{rng.choice(('BEGIN', 'START TRANSACTION'))} {rng.choice(('', '', *MODES))}",
            f"COMMIT{rng.choice(('', '', ' AND CHAIN', ' AND NO CHAIN'))}",
            f"ROLLBACK{rng.choice(('', '', ' AND CHAIN', ' AND NO CHAIN'))}",
            f"SAVEPOINT {point}",
            f"RELEASE {point}",
            f"ROLLBACK TO {point}",
            f"SET TRANSACTION {rng.choice(MODES)}",
            f"SET SESSION CHARACTERISTICS AS TRANSACTION {rng.choice(MODES[:4] + MODES[5:6])}",
            rng.choice(("SELECT 1/0", "SELECT missing", "SELECT * FROM missing", "SELEC 1")),
            f"INSERT INTO t VALUES ({rng.randrange(100)})",
            "SELECT count(*), sum(id) FROM t",
            f"DECLARE {point} CURSOR {rng.choice(('', '', 'WITH HOLD '))}FOR SELECT {read} FROM t ORDER BY id",
            f"FETCH FROM {point}",
            f"CLOSE {point}",
            rng.choice(
                (
                    "DISCARD ALL",
                    "VACUUM",
                    "CREATE TABLE made (a int)",
                    "CLOSE ALL; TRUNCATE t",
                    "UPDATE t SET id = id WHERE id < 0",
                )
            ),
        ),
        (9, 5, 2, 2, 2, 6, 3, 2, 6, 2, 5, 3, 1, 2, 4, 3, 2, 2, 1, 1),
    )[0]


def message(rng: random.Random, state: str) -> str:
    """A random message: mostly one statement, and mostly one that ends a failed block."""
    if state == "E" and rng.random() < 0.6:
        return rng.choice(("ROLLBACK TO p", "ROLLBACK TO q", "ROLLBACK", "COMMIT", "ROLLBACK AND CHAIN"))
    return "; ".join(statement(rng) for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 3))))


def history(rng: random.Random, conn: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    """Random messages; after them, what everything is."""
    begin = [f"BEGIN {rng.choice(('', '', '', *MODES))}"] if rng.random() < 0.6 else []
    found = [answered(conn, text) for text in begin]
    for _ in range(rng.randrange(6, 16)):
        found.append(answered(conn, message(rng, status(conn))))
    if rng.random() < 0.7:
        found.append(answered(conn, "COMMIT"))
    looks = "; ".join(f"SHOW {name}" for name in SHOWN)
    return [*found, answered(conn, f"{looks}; SELECT current_setting('my.own', true); SELECT sum(id) FROM t")]


def answered(conn: psycopg.Connection[Any], text: str) -> dict[str, Any]:
    """One message's entry."""
    return {"send": text, "gives": gives(conn, text), "status": status(conn)}


def gives(conn: psycopg.Connection[Any], text: str) -> list[Any]:
    """What a message's statements give."""
    found: list[Any] = []
    warnings: list[Any] = []

    def warned(diagnostic: psycopg.errors.Diagnostic) -> None:
        warnings.append({"warning": diagnostic.sqlstate, "message": diagnostic.message_primary})

    conn.add_notice_handler(warned)
    pgconn = conn.pgconn
    pgconn.send_query(text.encode())
    while (result := pgconn.get_result()) is not None:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            fields = (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY)
            state, message = ((result.error_field(field) or b"").decode() for field in fields)
            found.append({"error": state, "message": message})
        elif result.status == pq.ExecStatus.TUPLES_OK:
            cells = [[result.get_value(i, j) for j in range(result.nfields)] for i in range(result.ntuples)]
            found.append([[None if cell is None else cell.decode() for cell in row] for row in cells])
        else:
            found.append((result.command_status or b"").decode())
    conn.remove_notice_handler(warned)
    return [*warnings, *found]


def status(conn: psycopg.Connection[Any]) -> str:
    """The status of ReadyForQuery."""
    names = {pq.TransactionStatus.IDLE: "I", pq.TransactionStatus.INTRANS: "T", pq.TransactionStatus.INERROR: "E"}
    return names[pq.TransactionStatus(conn.pgconn.transaction_status)]


def main(dsn: str) -> None:
    rng = random.Random(15)
    histories = []
    for _ in range(240):
        with psycopg.connect(dsn, autocommit=True) as conn:
            for text in SETUP:
                conn.execute(text)
        with psycopg.connect(dsn, autocommit=True, options=SESSION, application_name="") as conn:
            histories.append(history(rng, conn))
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("DROP TABLE IF EXISTS made")
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in histories)
    Path(__file__).with_name("transactions.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main(sys.argv[1])
