"""Plays a history against a server and the oracle side by side.

The four shapes: ``batch`` (a step's statements in one transaction), ``rows`` (each row of an INSERT in its own commit),
``churn`` (rows inserted and retracted again before each step), ``restart`` (the server restarts between steps).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from tests.support.grammar import KEY, NOT_NULL, SCHEMA, DeleteWhere, Dml, History, InsertRows, UpdateWhere
from tests.support.model import Bag, Interpreter, TooLargeError
from tests.support.model_sql import SQL_TYPES, expression, literal, text

CHURNED = 99_991
"""Beyond the values of any history, so that churn removes only the rows that it inserted."""

PAIRS = 200_000
"""The most row pairs that the oracle compares for one view."""

SHAPES = ("batch", "rows", "churn", "restart")


class Refused(Exception):
    """A statement's error, by SQLSTATE."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate}: {message}")
        self.sqlstate = sqlstate


class Database(Protocol):
    """A history's interface to a server; errors are ``Refused``."""

    materialized: str
    """MATERIALIZED, or nothing for a server whose plain views are the reference."""

    def execute(self, sql: str) -> list[tuple[Any, ...]]: ...
    def restart(self) -> None: ...


class Mismatch(AssertionError):
    """A view differs from the oracle."""


@dataclass(slots=True)
class Model:
    """The tables as multisets, and the effect of a statement on them."""

    tables: dict[str, Bag] = field(default_factory=lambda: {name: Counter() for name in SCHEMA})

    def apply(self, statement: Dml) -> bool:
        """Apply a statement; False (and nothing changed) if a key or NOT NULL forbids it."""
        table = statement.table
        if isinstance(statement, InsertRows):
            changed = self.tables[table] + Counter(statement.rows)
        else:
            changed = self._rewritten(statement)
        if not _allowed(table, changed):
            return False
        self.tables[table] = changed
        return True

    def _rewritten(self, statement: DeleteWhere | UpdateWhere) -> Bag:
        interpreter, table = Interpreter(self.tables), statement.table
        names = [name for name, _ in SCHEMA[table]]
        result: Bag = Counter()
        for row, n in self.tables[table].items():
            scope = {table: dict(zip(names, row, strict=True))}
            if not interpreter.holds(scope, statement.where):
                result[row] += n
            elif isinstance(statement, UpdateWhere):
                new = list(row)
                new[statement.column] = interpreter.value(scope, statement.value)
                result[tuple(new)] += n
        return result


def _allowed(table: str, rows: Bag) -> bool:
    for i, (name, _) in enumerate(SCHEMA[table]):
        if (table, name) in NOT_NULL and any(row[i] is None for row in rows):
            return False
    if table in KEY:
        return all(n == 1 for n in Counter(r[KEY[table]] for r in rows.elements()).values())
    return True


def statement_sql(statement: Dml) -> str:
    """A DML statement as SQL."""
    table = statement.table
    if isinstance(statement, InsertRows):
        kinds = [kind for _, kind in SCHEMA[table]]
        rows = ", ".join(
            "(" + ", ".join(literal(v, k) for v, k in zip(row, kinds, strict=True)) + ")" for row in statement.rows
        )
        return f"INSERT INTO {table} VALUES {rows}"
    if isinstance(statement, DeleteWhere):
        return f"DELETE FROM {table} WHERE {expression(statement.where)}"
    name = SCHEMA[table][statement.column][0]
    return f"UPDATE {table} SET {name} = {expression(statement.value)} WHERE {expression(statement.where)}"


def create_tables(database: Database) -> None:
    """Create the schema's tables, empty."""
    for table, columns in SCHEMA.items():
        parts = [
            f"{name} {SQL_TYPES[kind]}{' NOT NULL' if (table, name) in NOT_NULL else ''}"
            f"{' PRIMARY KEY' if KEY.get(table) == i else ''}"
            for i, (name, kind) in enumerate(columns)
        ]
        database.execute(f"CREATE TABLE {table} ({', '.join(parts)})")


def drop_all(database: Database, history: History) -> None:
    """Drop all views and tables."""
    for name, _ in reversed(history.views):
        database.execute(f"DROP {database.materialized} VIEW IF EXISTS {name}")
    for table in SCHEMA:
        database.execute(f"DROP TABLE IF EXISTS {table}")


@dataclass(slots=True)
class Replay:
    """One history in one shape; ``run`` raises ``Mismatch`` if a view differs from the oracle."""

    history: History
    database: Database
    shape: str = "batch"
    model: Model = field(default_factory=Model)
    checked: int = 0
    pause: Callable[[], None] | None = None

    def run(self) -> int:
        """Play it; the number of (view, epoch) pairs compared."""
        create_tables(self.database)
        for name, query in self.history.views:
            self.database.execute(f"CREATE {self.database.materialized} VIEW {name} AS {text(query)}")
        self.compare("at the start")
        for number, step in enumerate(self.history.steps):
            if self.shape == "churn":
                self._churn()
            if self.shape == "batch":
                self._transaction(tuple(s for transaction in step for s in transaction))
                self.compare(f"after step {number}")
            else:
                for transaction in step:
                    self._transaction(transaction)
                    self.compare(f"in step {number}")
            if self.shape == "restart":
                self.database.restart()
                self.compare(f"restarted after step {number}")
        return self.checked

    def _transaction(self, statements: tuple[Dml, ...]) -> None:
        if self.shape == "rows":
            for statement in statements:
                self._by_rows(statement)
            return
        before = dict(self.model.tables)
        self.database.execute("BEGIN")
        for statement in statements:
            expected = self.model.apply(statement)
            if not self._agrees(statement, expected):
                self.model.tables = before
                self.database.execute("ROLLBACK")
                return
        self.database.execute("COMMIT")

    def _by_rows(self, statement: Dml) -> None:
        parts: tuple[Dml, ...] = (statement,)
        if isinstance(statement, InsertRows):
            parts = tuple(InsertRows(statement.table, (row,)) for row in statement.rows)
        for part in parts:
            self._agrees(part, self.model.apply(part))
            self.compare("row by row")

    def _agrees(self, statement: Dml, expected: bool) -> bool:
        """Run a statement and check that it fails exactly when expected; whether it succeeded."""
        sql = statement_sql(statement)
        try:
            self.database.execute(sql)
        except Refused as error:
            if expected or error.sqlstate not in ("23505", "23502"):
                raise Mismatch(f"{sql}\nwas refused: {error}") from error
            return False
        if not expected:
            raise Mismatch(f"{sql}\nwent through, against a key or NOT NULL")
        return True

    def _churn(self) -> None:
        """Insert rows and retract them again, in commits of their own."""
        for table in ("t0", "e"):
            row = tuple(CHURNED if kind == "int" else "z" for _, kind in SCHEMA[table])
            self.database.execute(statement_sql(InsertRows(table, (row, row))))
            self.database.execute(f"DELETE FROM {table} WHERE {SCHEMA[table][0][0]} = {CHURNED}")

    def compare(self, when: str) -> None:
        """Compare every view with the oracle, now."""
        for name, query in self.history.views:
            interpreter = Interpreter(self.model.tables, pairs=PAIRS)
            try:
                expected = +interpreter.query(query)
            except TooLargeError:
                continue
            found = self._read(name, interpreter.diverged)
            self.checked += 1
            if found is None:
                continue
            if found != expected:
                lines = [f"{name} {when}, shape {self.shape}", text(query)]
                lines += [f"  missing {dict(expected - found)}", f"  too much {dict(found - expected)}"]
                lines += [f"  {t}: {dict(rows)}" for t, rows in self.model.tables.items()]
                raise Mismatch("\n".join(lines))

    def _read(self, name: str, diverged: bool) -> Bag | None:
        """A view's rows; None if it has its expected error."""
        try:
            found = Counter(normal(row) for row in self.database.execute(f"SELECT * FROM {name}"))
        except Refused as error:
            if diverged and error.sqlstate == "54001":
                return None
            raise Mismatch(f"{name}: {error}\n{dict(self.history.views)[name]}") from error
        if diverged:
            raise Mismatch(f"{name} is to have an error\n{text(dict(self.history.views)[name])}")
        return found


def normal(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A server's row, with the oracle's types of values."""
    return tuple(int(v) if isinstance(v, Decimal) else v for v in row)


def shrink(history: History, fails: Callable[[History], bool]) -> History:
    """A smaller history that still fails: fewer views, steps, transactions, statements, then rows."""
    for part in ("views", "steps"):
        items = list(getattr(history, part))
        at = 0
        while at < len(items):
            rest = items[:at] + items[at + 1 :]
            smaller = History(tuple(rest), history.steps) if part == "views" else History(history.views, tuple(rest))
            if rest and fails(smaller):
                items, history = rest, smaller
            else:
                at += 1
    return _shrink_statements(history, fails)


def _shrink_statements(history: History, fails: Callable[[History], bool]) -> History:
    flat = [(i, j, k) for i, s in enumerate(history.steps) for j, t in enumerate(s) for k in range(len(t))]
    gone: set[tuple[int, int, int]] = set()
    for place in flat:
        if fails(_without(history, gone | {place})):
            gone.add(place)
    return _without(history, gone)


def _without(history: History, gone: set[tuple[int, int, int]]) -> History:
    steps = tuple(
        tuple(tuple(x for k, x in enumerate(t) if (i, j, k) not in gone) for j, t in enumerate(s))
        for i, s in enumerate(history.steps)
    )
    return History(history.views, steps)
