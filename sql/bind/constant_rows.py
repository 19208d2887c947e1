"""VALUES of many rows of constants: a column at a time, with one type for each, and no expression for a cell.

What a column's constants alone do not settle, or where one of them is wrong, is bound cell by cell (None here): that
way finds the first error as PostgreSQL does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from ivm.errors import SqlError
from ivm.rows import FEW
from ivm.words import BOOL, INT4, INT8, NUMERIC, TEXT, ColumnType, Kind, SqlType
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Call, Column, Literal, Scalar
from planner.logical.nodes import Project, Rel, Values
from sql.bind.coerce import assign, cast
from sql.bind.constant_lists import dates
from sql.bind.environment import Environment
from sql.bind.literals import number, read_later, typed_literal
from sql.catalog.catalog import TableColumn
from sql.catalog.composite import without_domain
from sql.syntax.nodes.constant_items import ConstantRows

_INTEGERS: Final = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}
_COMPUTED: Final = (*_INTEGERS, Kind.NUMERIC, Kind.FLOAT4, Kind.FLOAT8)
_NUMBERS: Final = "-.0123456789"


@dataclass(frozen=True, slots=True)
class _Given:
    """A column of datums (None is NULL). ``types``: those of its constants; none if all are strings or NULL."""

    datums: Sequence[object]
    types: tuple[SqlType, ...]


def constant_values(rows: ConstantRows) -> Rel | None:
    """The plan of VALUES. None: to be bound cell by cell."""
    columns = []
    for texts in rows.columns():
        given = _given(texts)
        if given is None:
            return None
        if len(given.types) > 1:
            numeric = NUMERIC in given.types
            given = _Given(_numerics(given.datums) if numeric else given.datums, (NUMERIC if numeric else INT8,))
        columns.append(given)
    return _values([(c.datums, c.types[0] if c.types else TEXT) for c in columns])


def inserted(
    env: Environment, rows: ConstantRows, targets: Sequence[TableColumn | None]
) -> tuple[Rel, list[Scalar | None]] | None:
    """The plan of the constants of INSERT, and what each target column (None: it takes none) gets from its rows. None:
    to be bound cell by cell."""
    found: list[tuple[Sequence[object], SqlType]] = []
    exprs: list[Scalar | None] = []
    try:
        for texts, target in zip(rows.columns(), targets, strict=True):
            given = None if target is None else _given(texts)
            read = None if given is None or target is None else _as_column(given, target.type)
            if target is not None and read is None:
                return None
            if target is None or read is None:
                exprs.append(None)
                continue
            found.append(read)
            column = Column(len(found) - 1, read[1], None in read[0])
            as_is = read[1] is target.type and target.type.domain is None
            exprs.append(column if as_is else _assigned(env, column, target, rows.at))
    except SqlError:
        return None
    return (_values(found), exprs) if found else None


def _values(columns: Sequence[tuple[Sequence[object], SqlType]]) -> Rel:
    rows = LiteralRows(tuple(tuple(datums) for datums, _ in columns), tuple(type_ for _, type_ in columns))
    return Values(rows, tuple(ColumnType(type_, None in datums) for datums, type_ in columns))


def with_defaults(rel: Rel, exprs: Sequence[Scalar]) -> Rel:
    """The rows with these expressions over them; the rows themselves where the expressions are their columns."""
    assert isinstance(rel, Values)
    rows = rel.rows
    assert isinstance(rows, LiteralRows)
    if len(exprs) == len(rel.schema) and all(isinstance(e, Column) and e.index == i for i, e in enumerate(exprs)):
        return rel
    if len(rows) <= FEW and all(isinstance(e, Column | Literal) for e in exprs):
        return _values([_datums(rows, e) for e in exprs])
    return Project(rel, tuple(exprs))


def _datums(rows: LiteralRows, expr: Scalar) -> tuple[Sequence[object], SqlType]:
    """A column of the rows, or a constant for each."""
    if isinstance(expr, Column):
        return rows.columns[expr.index], rows.types[expr.index]
    assert isinstance(expr, Literal)
    return (expr.value,) * len(rows), expr.type


def _given(texts: list[str]) -> _Given | None:
    """The constants as they are without a target; None where strings and numbers, or others, are mixed."""
    marks = {t[0] for t in texts}
    if not marks.isdisjoint("nN"):
        given = [t for t in texts if t[0] not in "nN"]
        present = _given(given) if given else _Given((), ())
        if present is None:
            return None
        rest = iter(present.datums)
        return _Given([None if t[0] in "nN" else next(rest) for t in texts], present.types)
    if marks == {"'"}:
        return _Given([t[1:-1].replace("''", "'") for t in texts], ())
    if marks.issubset("tTfF"):
        return _Given([t[0] in "tT" for t in texts], (BOOL,))
    return _numbers(texts) if marks.issubset(_NUMBERS) else None


def _numbers(texts: list[str]) -> _Given:
    try:
        whole = list(map(int, texts))
    except ValueError:
        pass
    else:
        if min(whole) >= -(2**31) and max(whole) < 2**31:
            return _Given(whole, (INT4,))
    if all("." in t for t in texts):
        return _Given(list(map(Decimal, texts)), (NUMERIC,))
    literals = list(map(number, texts))
    return _Given([x.value for x in literals], tuple(dict.fromkeys(x.type for x in literals)))


def _numerics(datums: Sequence[object]) -> list[object]:
    return [Decimal(d) if isinstance(d, int) else d for d in datums]


def _as_column(given: _Given, target: SqlType) -> tuple[Sequence[object], SqlType] | None:
    """The datums and their type, as near to the column's type as they come without a cast that can fail."""
    base = without_domain(target)
    if not given.types:
        return _strings(given.datums, base)
    if given.types == (BOOL,):
        return given.datums, BOOL
    bits = _INTEGERS.get(base.kind)
    if bits is not None and NUMERIC not in given.types:
        present = [d for d in given.datums if isinstance(d, int)]
        if min(present) >= -(1 << bits) and max(present) < 1 << bits:
            return given.datums, base
    if base.kind is Kind.NUMERIC or (len(given.types) > 1 and base.kind in _COMPUTED):
        return _numerics(given.datums), NUMERIC
    return (given.datums, given.types[0]) if len(given.types) == 1 else None


def _strings(datums: Sequence[object], base: SqlType) -> tuple[Sequence[object], SqlType] | None:
    """Strings as values of a type; as text where what they mean depends on when they are read."""
    plain = base if base.kind is Kind.INTERVAL else base.plain
    if all(d is None for d in datums):
        return datums, plain
    if plain.kind in (Kind.TEXT, Kind.VARCHAR):
        return datums, plain
    if read_later(base):
        return datums, TEXT
    texts = [d for d in datums if isinstance(d, str)]
    read = dates(texts) if plain.kind is Kind.DATE else None
    if read is None:
        read = _read(texts, plain)
    if read is None or len(read) == len(datums):
        return None if read is None else (read, plain)
    rest = iter(read)
    return [None if d is None else next(rest) for d in datums], plain


def _read(texts: Sequence[str], plain: SqlType) -> list[object] | None:
    """Raises the errors of the type's input function."""
    known: dict[str, object] = {}
    for text in texts:
        if text not in known:
            literal = typed_literal(text, plain, "assignment", 0)
            if not isinstance(literal, Literal):
                return None
            known[text] = literal.value
    return [known[t] for t in texts]


def _assigned(env: Environment, column: Column, target: TableColumn, at: int) -> Scalar:
    base = without_domain(target.type)
    if column.type.kind is Kind.TEXT and read_later(base):
        column_read = Call("cast", (column,), base, column.nullable)
        return cast(env, column_read, target.type, "assignment", at)
    return assign(env, column, target.type, target.name, at)
