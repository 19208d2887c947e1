"""EXCLUDE: its operators, and the arrangement in which conflicting rows are searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT8, Kind, Schema, SqlType
from planner.expr.functions.internal.intervals import HIGH, LOW, NODE
from planner.expr.functions.library import FUNCTIONS
from planner.expr.functions.table import Polymorphic
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.traversal import shift
from planner.physical.key_checks import KeyCheck, computed_key_check
from sql.bind.comparable import check_index
from sql.bind.entry_points import empty_environment
from sql.bind.environment import Environment
from sql.bind.index_terms import bind_part, bind_predicate, used_columns
from sql.bind.operators import operator
from sql.catalog.catalog import TableColumn
from sql.catalog.keys import Index
from sql.parse import parse_expression
from sql.statements.definitions import AddExclusion
from storage.types.type_names import format_type

_COMMUTATIVE: Final = ("=", "<>", "&&", "-|-", "~=")
_SCALARS: Final = frozenset({
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.TEXT, Kind.VARCHAR,
    Kind.BPCHAR, Kind.BYTEA, Kind.DATE, Kind.TIME, Kind.TIMETZ, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL,
    Kind.UUID, Kind.OID, Kind.ENUM,
})  # fmt: skip
"""The types that gist indexes as with PostgreSQL's extension btree_gist, by = and <>."""
_RANGES: Final = (Kind.RANGE, Kind.MULTIRANGE)
_NETWORKS: Final = (Kind.INET, Kind.CIDR)
_FAMILIES: Final = dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8), "integer_ops") | {
    Kind.VARCHAR: "text_ops", Kind.RANGE: "range_ops", Kind.MULTIRANGE: "multirange_ops", Kind.INET: "network_ops",
    Kind.CIDR: "network_ops", Kind.FLOAT4: "float_ops", Kind.FLOAT8: "float_ops", Kind.BPCHAR: "bpchar_ops",
} | dict.fromkeys((Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ), "datetime_ops")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exclusion:
    """No two rows of ``key_check`` may meet all ``conflict`` conditions, which are over the columns of both.

    The key has the parts compared by ``=``, then ``node`` of ``low`` to ``high`` of the first part that is an interval
    (``planner.expr.functions.internal.intervals``), or else the first part compared by ``<>`` (``differing``).
    ``read``: all that a row's conflicts depend on.
    """

    index: Index
    key_check: KeyCheck
    conflict: tuple[Scalar, ...]
    read: tuple[Scalar, ...]
    bounds: tuple[Scalar, Scalar] | None
    differing: bool


def excluded(row: Schema, index: Index, parts: Sequence[Scalar], where: Scalar | None) -> Exclusion:
    """What an EXCLUDE constraint demands of rows with these columns."""
    env, width = empty_environment(), len(row)
    symbols = index.operators
    conflict = tuple(operator(env, s, [p, shift(p, width)], 0) for s, p in zip(symbols, parts, strict=True))
    key = [p for s, p in zip(symbols, parts, strict=True) if s == "="]
    spatial = next((p for s, p in zip(symbols, parts, strict=True) if s not in ("=", "<>")), None)
    differing = next((p for s, p in zip(symbols, parts, strict=True) if s == "<>"), None)
    bounds: tuple[Scalar, Scalar] | None = None
    if spatial is not None:
        key.append(Call(NODE, (spatial,), INT8))
        bounds = Call(LOW, (spatial,), INT8), Call(HIGH, (spatial,), INT8)
    elif differing is not None:
        key.append(differing)
    check = computed_key_check(row, tuple(key), where)
    read = (*parts, *(() if where is None else (where,)))
    return Exclusion(index, check, conflict, read, bounds, spatial is None and differing is not None)


def exclusion_index(table: str, columns: Sequence[TableColumn], added: AddExclusion) -> Index:
    """The index of an EXCLUDE constraint. Raises 42703, 42704, 42809, 42883, 0A000, and the errors of expressions."""
    env = empty_environment()
    _check_method(added)
    names = [c.name for c in columns]
    for wanted in (*(n for n, _, _ in added.elements if n is not None), *added.included):
        if wanted not in names:
            raise SqlError("42703", f'column "{wanted}" named in key does not exist')
    parts: list[Scalar] = []
    for name, text, symbol in added.elements:
        if name is not None:
            place = names.index(name)
            part: Scalar = Column(place, columns[place].type, columns[place].nullable)
        else:
            assert text is not None, "an element is a column or an expression"
            part = bind_part(env, table, columns, parse_expression(text))
        _check_operator(env, added.method, symbol, part)
        parts.append(part)
    where = None if added.where is None else bind_predicate(env, table, columns, parse_expression(added.where))
    texts = tuple(text for _, text, _ in added.elements)
    return Index(
        0, added.name or "", tuple(names.index(n) for n, _, _ in added.elements if n is not None), constraint=True,
        method=added.method, included=tuple(map(names.index, added.included)), deferrable=added.deferrable,
        deferred=added.deferred, expressions=texts if any(texts) else (), where=added.where,
        used=used_columns(parts, where), operators=tuple(symbol for _, _, symbol in added.elements),
    )  # fmt: skip


def _check_method(added: AddExclusion) -> None:
    lacks = f'access method "{added.method}" does not support'
    if added.method in ("gin", "brin"):
        raise SqlError("0A000", f"{lacks} exclusion constraints")
    if len(added.elements) > 1 and added.method in ("hash", "spgist"):
        raise SqlError("0A000", f"{lacks} multicolumn indexes")
    if added.included and added.method == "hash":
        raise SqlError("0A000", f"{lacks} included columns")


def _check_operator(env: Environment, method: str, symbol: str, part: Scalar) -> None:
    """Raises 42883, 42704, 42809 for what no index of the method can search."""
    if method != "gist" or part.type.kind not in _SCALARS:
        check_index(part.type, method)
    call = operator(env, symbol, [part, part], 0)
    assert isinstance(call, Call)
    shown = f"{symbol}({operand_name(call)},{operand_name(call)})"
    if call.type == BOOL and symbol not in _COMMUTATIVE and not FUNCTIONS[call.function].commutative:
        detail = "Only commutative operators can be used in exclusion constraints."
        raise SqlError("42809", f"operator {shown} is not commutative", detail)
    if symbol not in _members(method, part.type):
        family = _family(method, part.type)
        detail = "The exclusion operator must be related to the index operator class for the constraint."
        raise SqlError("42809", f'operator {shown} is not a member of operator family "{family}"', detail)


def _members(method: str, type_: SqlType) -> tuple[str, ...]:
    """The commutative operators of a method's operator class for a type."""
    if method in ("btree", "hash"):
        return ("=",)
    if type_.kind in _RANGES:
        return ("&&", "-|-", "=")
    if type_.kind in _NETWORKS:
        return ("&&", "=", "<>")
    if type_.kind is Kind.POINT:
        return ("~=",)
    return ("=", "<>") if method == "gist" and type_.kind in _SCALARS else ("=",)


def _family(method: str, type_: SqlType) -> str:
    own = f"{type_.kind.value}_ops"
    if method in ("btree", "hash") or type_.kind in _RANGES:
        return _FAMILIES.get(type_.kind, own)
    return f"gist_{own}" if method == "gist" and type_.kind in _SCALARS else own


def operand_name(call: Scalar) -> str:
    """The declared type of a binary operator's left operand."""
    assert isinstance(call, Call), "an operator"
    declared = FUNCTIONS[call.function].args[0]
    return declared.value if isinstance(declared, Polymorphic) else format_type(declared, False)
