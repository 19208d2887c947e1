"""``x IN (…)`` of many constants: one search in a sorted array, in place of a comparison for each."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import numpy as np

from ivm.errors import SqlError
from ivm.words import BOOL, FLOAT8, INT8, NUMERIC, TEXT, Kind, SqlType
from planner.expr.functions.internal.membership import MEMBER
from planner.expr.functions.library import is_volatile, overloads
from planner.expr.scalar import Call, Literal, Parameter, Scalar
from planner.logical.join_keys import as_type, common_type, is_constant
from sql.bind.coerce import cast, try_common_type
from sql.bind.environment import Environment
from sql.bind.literals import standing_at, typed_literal
from sql.bind.operators import applied
from sql.bind.walk import has_subquery, references
from sql.catalog.column_types import array_of
from sql.syntax.lexing.lexer import MANY
from sql.syntax.nodes.constant_items import ConstantItems

_INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8)
_FLOATS: Final = (Kind.FLOAT4, Kind.FLOAT8)
_TEXTS: Final = (Kind.TEXT, Kind.VARCHAR)
_READ: Final = (
    Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.UUID, Kind.BYTEA, Kind.NUMERIC, *_INTEGERS,
)  # fmt: skip
_SEARCHED: Final = (*_READ, *_FLOATS, *_TEXTS, Kind.TIMESTAMPTZ, Kind.BOOL, Kind.INTERVAL, Kind.OID)
_ARRAY: Final = overloads("array")[0].key
_DATE: Final = re.compile("(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}")
_GREATEST: Final = 2**63


def in_constants(env: Environment, left: Scalar, items: ConstantItems) -> Scalar | None:
    """``left`` equals one of the constants. None: they must be bound one by one, perhaps to find the error."""
    if left.type.domain is not None or env.catalog.operators(None, "=") != ((), ()):
        return None
    if isinstance(items.given, Parameter):
        assert items.given.type.element is not None
        return _member(as_type(left, items.given.type.element), items.given)
    found = array_beside(left.type, items)
    return None if found is None else _member(as_type(left, _element(found)), standing_at(items.at, found, left.type))


def array_beside(type_: SqlType, items: ConstantItems) -> Literal | None:
    """The array in which a value of the type is looked for. None: the constants must be bound one by one."""
    found = _strings(type_, items) if items.are_strings else _numbers(type_, items.values())
    return None if found is None else Literal(tuple(found[1]), array_of(found[0]))


def _element(array: Literal) -> SqlType:
    assert array.type.element is not None
    return array.type.element


def in_items(env: Environment, left: Scalar, items: Sequence[Scalar], at: int) -> Scalar | None:
    """``left`` equals one of many items of one type that read no columns. None: they are few, or others."""
    if len(items) < MANY or len({i.type for i in items}) != 1:
        return None
    if not all(is_constant(i) and not is_volatile(i) for i in items):
        return None
    shown = _searched(env, left, items[0], at)
    if shown is None:
        return None
    values = [i.value for i in items if isinstance(i, Literal)]
    whole = array_of(items[0].type.plain)
    array: Scalar = Literal(tuple(values), whole) if len(values) == len(items) else Call(_ARRAY, tuple(items), whole)
    return _member(shown, array)


def in_values(env: Environment, left: Scalar, values: Sequence[object], type_: SqlType, at: int) -> Scalar | None:
    """``left`` equals one of the constants of one type. None: they must be bound one by one."""
    common = try_common_type([left.type, type_])
    if common is None or type_.domain is not None or left.type.domain is not None:
        return None
    if common != type_ and not (common.kind in _INTEGERS and type_.kind in _INTEGERS):
        return None
    left = cast(env, left, common, "implicit", at)
    shown = _searched(env, left, Literal(values[0], common), at)
    return None if shown is None else _member(shown, Literal(tuple(values), array_of(common.plain)))


def _searched(env: Environment, left: Scalar, item: Scalar, at: int) -> Scalar | None:
    """``left`` as it is looked for among items of one type, of which this is one; None: they are compared otherwise."""
    found = applied(env, "=", [left, item], at)
    first = found.args[0], found.args[1]
    element = None if found.own else common_type(first[0].type, first[1].type)
    if element is None or element.kind not in _SEARCHED or any(a.type.domain is not None for a in (left, item)):
        return None
    if first[1] is not item or as_type(item, element) is not item:
        return None
    return as_type(first[0], element)


def in_array(env: Environment, left: Scalar, array: Scalar, at: int) -> Scalar | None:
    """``left = ANY (array)`` of a constant array of one dimension, or of one that differs by row. None: it is another
    one."""
    element = array.type.element
    if element is None:
        return None
    first = _some_item(array, element)
    if first is None:
        return None
    found = applied(env, "=", [left, first], at)
    common = None if found.own else common_type(found.args[0].type, found.args[1].type)
    if common is None or common.kind not in _SEARCHED or left.type.domain is not None:
        return None
    if found.args[1] is not first or as_type(first, common) is not first:
        return None
    return _member(as_type(found.args[0], common), array)


def _some_item(array: Scalar, element: SqlType) -> Literal | None:
    """An item like those of the array; None: it is not searched as a whole. A subquery's array is not: what changes in
    it is found by its items."""
    if not isinstance(array, Literal):
        return Literal(None, element) if references(array) and not has_subquery(array) else None
    value = array.value
    if not isinstance(value, tuple) or len(value) < MANY:
        return None
    if element.kind is not Kind.INTERVAL and any(isinstance(v, tuple) for v in value):
        return None
    return Literal(value[0], element)


def _member(left: Scalar, array: Scalar) -> Scalar:
    known = array.value if isinstance(array, Literal) else () if not array.nullable else (None,)
    nullable = left.nullable or None in known  # type: ignore[operator]
    return Call(MEMBER, (left, array), BOOL, nullable)


def _numbers(type_: SqlType, texts: list[str]) -> tuple[SqlType, Sequence[object]] | None:
    """The constants as datums, and their type; None: the comparison is not of numbers, or may not be exact."""
    try:
        if type_.kind in _INTEGERS:
            whole = list(map(int, texts))
            return (INT8, whole) if min(whole) >= -_GREATEST and max(whole) < _GREATEST else None
        if type_.kind in _FLOATS:
            doubles = list(map(float, texts))
            return (FLOAT8, doubles) if all(map(math.isfinite, doubles)) else None
        if type_.kind is Kind.NUMERIC:
            return NUMERIC, [Decimal(t.strip()) for t in texts]
    except ValueError:  # an integer is compared with 1.5
        return None
    return None


def _strings(type_: SqlType, items: ConstantItems) -> tuple[SqlType, Sequence[object]] | None:
    if type_.kind in _TEXTS:
        return TEXT, items.values()
    if type_.kind not in _READ:
        return None
    plain = type_.plain
    if type_.kind is Kind.DATE and (days := dates(items.values())) is not None:
        return plain, days
    try:
        read = [typed_literal(value, plain, "implicit", items.at) for value in items.values()]
    except SqlError:
        return None
    values = [r.value for r in read if isinstance(r, Literal)]
    return (plain, values) if len(values) == len(read) else None


def dates(texts: list[str]) -> list[object] | None:
    """Days since 2000 of dates that are written as YYYY-MM-DD; None: some are not, or do not exist."""
    if not all(map(_DATE.fullmatch, texts)):
        return None
    try:
        days: list[object] = (np.array(texts, "M8[D]") - np.datetime64("2000-01-01")).astype(np.int64).tolist()
    except ValueError:
        return None
    return days
