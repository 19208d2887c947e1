"""COPY … WITH (MAX REJECTS n): bad rows that a load leaves out."""

from __future__ import annotations

import numpy as np

from ivm.rows import Words
from planner.expr.context import Context
from planner.expr.scalar import Scalar
from sql.bind.constraints import check_conditions
from sql.catalog.catalog import Relation
from sql.dml import constraints
from sql.dml.constraints import CHECKED_ROWS
from sql.engine.clock import POSTGRES_EPOCH, wall_clock
from sql.engine.loads import Load
from sql.session.state import SessionState
from sql.statements.statements import CopyFrom
from storage.load.rejects import Reject, Rejects, shortened
from storage.row_file import slices


class RowChecks:
    """The table's CHECK constraints, applied to rows that have been read.

    Rows that fail become rejects without a line number, because Spark returns rows sorted. Without ``rejects`` the
    first failure is an error.
    """

    def __init__(self, table: Relation, rejects: Rejects | None, context: Context) -> None:
        self._table, self._rejects, self._context = table, rejects, context
        self.conditions: tuple[Scalar, ...] = check_conditions(table) if table.checks else ()

    def passing(self, rows: Words) -> Words:
        """The rows that meet the constraints (NULL passes). Raises TooManyRejects, 23514."""
        if not self.conditions:
            return rows
        if self._rejects is None:
            for part in slices(len(rows), CHECKED_ROWS):
                constraints.check_conditions(self._table, rows[part], self.conditions, self._context)
            return rows
        kept = np.ones(len(rows), np.bool_)
        for row, text, error in constraints.failing_rows(self._table, rows, self.conditions, self._context):
            kept[row] = False
            self._rejects.take([Reject(None, None, None, shortened(text), error.sqlstate, error.message)])
        return rows if kept.all() else rows[kept]


def rejects_of(statement: CopyFrom) -> Rejects | None:
    """The collector of the statement's bad rows; None if the first one is an error."""
    most = statement.options.max_rejects
    return None if most is None else Rejects(statement.table.name, most)


def load_of_stdin(session: SessionState, statement: CopyFrom) -> Load:
    """A load for COPY FROM STDIN, because rejects belong to a load."""
    started, table = wall_clock(), statement.table
    load_id = f"{started:x}-{session.backend_id}"
    started -= POSTGRES_EPOCH
    return Load(load_id, table.oid, table.name, "STDIN", "local", session.backend_id, started, named=False)


def tell(session: SessionState, load: Load) -> None:
    """Notify the client of the rows that a load has left out."""
    if load.rejected:
        what = "1 row was" if load.rejected == 1 else f"{load.rejected} rows were"
        quoted = load.id.replace("'", "''")
        session.notice(f"{what} rejected", hint=f"SELECT * FROM freshet.rejects WHERE load_id = '{quoted}';")
