"""Compares the matrix of rights with a real PostgreSQL 15 on this machine.

``python -m tests.answers.check_rights 'host=127.0.0.1 user=postgres'``: makes the database ``rights`` and roles called
``mx_…``, and drops them again. The server reads and writes files in a new folder of /tmp.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus, PGconn

from tests.support.rights_matrix import ROLES, SETUP, WARNED, Row, rows

Connection = psycopg.Connection[tuple[object, ...]]


def run(connection: PGconn, text: str) -> str | None:
    """The SQLSTATE; None for success. COPY FROM STDIN gets no rows."""
    result = connection.exec_(text.encode())
    if result.status == ExecStatus.COPY_IN:
        connection.put_copy_end()
        result = connection.get_result() or result
    while result.status == ExecStatus.COPY_OUT and connection.get_copy_data(0)[0] > 0:
        pass
    while connection.get_result() is not None:
        pass
    state = result.error_field(DiagnosticField.SQLSTATE)
    return None if state is None else state.decode()


def refused(dsn: str, row: Row, role: str) -> bool:
    """Whether the role may not run the row's statement."""
    warnings: list[str] = []
    with closing(psycopg.connect(dsn, autocommit=True)) as connection:  # rolls back
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary or ""))
        pgconn = connection.pgconn
        for text in ("SET search_path TO mx", "" if row.alone else "BEGIN", row.before, f"SET ROLE mx_{role}"):
            run(pgconn, text)
        warnings.clear()
        return run(pgconn, row.statement) == "42501" or any(map(WARNED.search, warnings))


def clean(connection: Connection) -> None:
    connection.execute("DROP DATABASE IF EXISTS rights")
    connection.execute("DROP DATABASE IF EXISTS mx_made")
    for role in (*ROLES, "spare", "made"):
        connection.execute(f"DROP ROLE IF EXISTS mx_{role}".encode())


def main() -> None:
    dsn = f"{sys.argv[1]} dbname=rights"
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    (folder / "in.csv").write_text("1\t2\n")
    with psycopg.connect(f"{sys.argv[1]} dbname=postgres", autocommit=True) as admin:
        clean(admin)
        admin.execute("CREATE DATABASE rights")
        with psycopg.connect(dsn, autocommit=True) as connection:
            for statement in SETUP:
                connection.execute(statement.encode())
        for row in rows(db="rights", out=f"{folder}/out.csv", sink="", **{"in": f"{folder}/in.csv"}):
            if not row.own:
                may = {role for role in ROLES if not refused(dsn, row, role)}
                if may != row.allowed:
                    print(f"PostgreSQL: {sorted(may)}, here: {sorted(row.allowed)}: {row.statement}")
        clean(admin)


if __name__ == "__main__":
    main()
