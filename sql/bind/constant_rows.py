"""VALUES of many rows of constants: a column at a time, with one type for each, and no expression for a cell.

What a column's constants alone do not settle, or where one of them is wrong, is bound cell by cell (None here): that
way finds the first error as PostgreSQL does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
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


_Datums = tuple[Sequence[object], SqlType]
"""A column of datums of a type."""


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
    env: Environment, rows: ConstantRows, columns: Sequence[TableColumn], places: Sequence[int | None],
    others: Mapping[int, Scalar],
) -> Rel | None:  # fmt: skip
    """The rows that INSERT adds: the constants in these places among the columns (None: in none), ``others`` in the
    others. None: to be bound cell by cell."""
    try:
        read = _read_for([None if place is None else columns[place] for place in places], rows.columns())
        if read is None:
            return None
        given = {place: r for place, r in zip(places, read, strict=True) if place is not None and r is not None}
        over = {**others, **dict(_assignments(env, given, columns, rows.at))}
    except SqlError:
        return None
    return _with_others(given, over, len(columns)) if given else None


def _assignments(
    env: Environment, given: Mapping[int, _Datums], columns: Sequence[TableColumn], at: int
) -> Iterator[tuple[int, Scalar]]:
    """What the datums become where they are not yet of the column's type."""
    for i, (place, (datums, type_)) in enumerate(given.items()):
        target = columns[place]
        if type_ is not target.type or type_.domain is not None:
            column = Column(i, type_, None in datums)
            expr = _assigned(env, column, target, at)
            if expr is not column:
                yield place, expr


def _with_others(given: Mapping[int, _Datums], over: Mapping[int, Scalar], width: int) -> Rel:
    """The rows, with expressions over them in some places. If they are few, constants become columns of theirs."""
    if not over and list(given) == list(range(width)):
        return _values(list(given.values()))
    count = len(next(iter(given.values()))[0])
    if count <= FEW and all(isinstance(e, Literal) for e in over.values()):
        constants = {i: ((e.value,) * count, e.type) for i, e in over.items() if isinstance(e, Literal)}
        return _values([constants[i] if i in constants else given[i] for i in range(width)])
    numbers = {place: Column(i, t, None in datums) for i, (place, (datums, t)) in enumerate(given.items())}
    return Project(_values(list(given.values())), tuple([over[i] if i in over else numbers[i] for i in range(width)]))


def _values(columns: Sequence[_Datums]) -> Rel:
    rows = LiteralRows(tuple([tuple(datums) for datums, _ in columns]), tuple([type_ for _, type_ in columns]))
    made: dict[tuple[int, bool], ColumnType] = {}  # by the identity of types: equal ones are mostly one object
    schema = []
    for datums, type_ in columns:
        key = id(type_), None in datums
        if key not in made:
            made[key] = ColumnType(type_, key[1])
        schema.append(made[key])
    return Values(rows, tuple(schema))


def _read_for(targets: Sequence[TableColumn | None], columns: Sequence[list[str]]) -> list[_Datums | None] | None:
    """The constants as they come nearest to their targets; None where there is none. None: to be bound cell by cell."""
    found: list[_Datums | None] = [None] * len(columns)
    if len(columns[0]) <= FEW:
        found = _read_together(targets, columns)
    for i, (texts, target) in enumerate(zip(columns, targets, strict=True)):
        if found[i] is None and target is not None:
            given = _given(texts)
            found[i] = None if given is None else _as_column(given, target.type)
            if found[i] is None:
                return None
    return found


def _read_together(targets: Sequence[TableColumn | None], columns: Sequence[list[str]]) -> list[_Datums | None]:
    """The constants of those targets of one type, which may be many, that are of this type if they are read as those of
    one column: each column then is, too."""
    count = len(columns[0])
    found: list[_Datums | None] = [None] * len(columns)
    alike: dict[int, list[int]] = {}
    for i, target in enumerate(targets):
        if target is not None:
            alike.setdefault(id(target.type), []).append(i)
    for places in alike.values():
        target = targets[places[0]]
        given = _given(list(chain.from_iterable([columns[i] for i in places]))) if len(places) > 1 else None
        if target is None or given is None:
            continue
        read = _as_column(given, target.type)
        if read is not None and read[1] is target.type:
            for i, datums in zip(places, zip(*[iter(read[0])] * count, strict=True), strict=True):
                found[i] = datums, target.type
    return found


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


def _as_column(given: _Given, target: SqlType) -> _Datums | None:
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


def _strings(datums: Sequence[object], base: SqlType) -> _Datums | None:
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
