"""Partition keys and bounds, as expressions over the partitioned table's columns and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, INT8, Kind
from planner.expr.functions.internal.hashing import FOLDED, REMAINDER
from planner.expr.functions.table import function_key
from planner.expr.scalar import Call, Column, Literal, Scalar
from planner.identifiers import quoted, quoted_literal
from planner.logical.traversal import columns_of, has_subquery
from sql.bind import volatile
from sql.bind.coerce import assign
from sql.bind.entry_points import empty_environment
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.namespace import Visible, one_table
from sql.bind.scope import NameScope
from sql.catalog.catalog import Relation, TableColumn
from sql.catalog.partitioning import MAXIMUM, MINIMUM, Edge, PartitionBound, Partitioning
from sql.parse import parse_expression
from storage.types.type_names import format_type

_KEY = "partition key expressions"
_KINDS = frozenset({
    Kind.INT2, Kind.INT4, Kind.INT8, Kind.TEXT, Kind.VARCHAR, Kind.NUMERIC, Kind.DATE, Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ, Kind.BOOL, Kind.BPCHAR,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _End:
    """One end of a range: its comparison operators (``last``: of the last term), and the edge that excludes nothing."""

    strict: str
    last: str
    unbounded: int


_LOWER: Final = _End(">", ">=", MINIMUM)
_UPPER: Final = _End("<", "<", MAXIMUM)


def _binder(env: Environment, table: str, columns: Sequence[TableColumn]) -> ExpressionBinder:
    visible = tuple(Visible(c.name, Column(i, c.type, True)) for i, c in enumerate(columns))
    return ExpressionBinder(env, NameScope(one_table(table, visible), clause=_KEY), _KEY)


def key_expressions(table: str, columns: Sequence[TableColumn], key: Partitioning) -> tuple[Scalar, ...]:
    """The key's expressions over the table's columns, all taken as nullable."""
    binder = _binder(empty_environment(), table, columns)
    return tuple(binder.bind(parse_expression(text)) for text in key.keys)


def check_partitioning(env: Environment, table: str, columns: Sequence[TableColumn], key: Partitioning) -> None:
    """Raises 42703, 42P17, 0A000 for a key that is not allowed."""
    names = [c.name for c in columns]
    if key.strategy == "list" and len(key.keys) > 1:
        raise SqlError("42P17", 'cannot use "list" partition strategy with more than one column')
    for column in key.columns:
        if column and column not in names:
            raise SqlError("42703", f'column "{column}" named in partition key does not exist')
    for column, expr in zip(key.columns, key_expressions(table, columns, key), strict=True):
        generated = next((columns[i] for i in sorted(columns_of(expr)) if columns[i].expression is not None), None)
        if generated is not None:
            detail = f'Column "{generated.name}" is a generated column.'
            raise SqlError("42P17", "cannot use generated column in partition key", detail)
        if has_subquery(expr):
            raise SqlError("0A000", "cannot use subquery in partition key expression")
        if volatile.is_volatile(expr):
            raise SqlError("42P17", "functions in partition key expression must be marked IMMUTABLE")
        if expr.type.kind not in _KINDS:
            raise unsupported(f"a partition key of type {format_type(expr.type, True)}")
        assert column or expr is not None


def bound_value(key: Scalar, text: str, name: str) -> Scalar:
    """A value of a bound, as the key's type. ``name``: the column's, for errors. Raises 42804, 0A000."""
    env = empty_environment()
    try:
        expr = ExpressionBinder(env, NameScope(clause="partition bound"), "partition bound").bind(
            parse_expression(text)
        )
    except SqlError as error:
        if error.sqlstate == "42703":
            raise SqlError("0A000", "cannot use column reference in partition bound expression") from None
        raise
    if has_subquery(expr):
        raise SqlError("0A000", "cannot use subquery in partition bound")
    try:
        return assign(env, expr, key.type, name, 0)
    except SqlError as error:
        if error.sqlstate != "42804":
            raise
        message = f'specified value cannot be cast to type {format_type(key.type, True)} for column "{name}"'
        raise SqlError("42804", message) from None


def conditions(table: Relation, bounds: Sequence[PartitionBound]) -> tuple[Scalar, ...]:
    """The conditions of the bounds except DEFAULT, over the partitioned table's columns."""
    key = table.partitioning
    assert key is not None, "a partitioned table has a key"
    exprs = key_expressions(table.name, table.columns, key)
    if key.strategy == "hash":
        return tuple(_hashes_to(exprs, bound) for bound in bounds)
    types = [format_type(e.type, True) for e in exprs]
    terms = [f"({text})" for text in key.keys]
    binder = _binder(empty_environment(), table.name, table.columns)
    return tuple(
        binder.condition(parse_expression(_condition(bound, terms, types)), "partition bound")
        for bound in bounds
        if bound.kind != "default"
    )


def _hashes_to(exprs: Sequence[Scalar], bound: PartitionBound) -> Scalar:
    """The condition of a hash partition, over the key's expressions."""
    folded: Scalar = Literal(0, INT8)
    for expr in exprs:
        folded = Call(function_key(FOLDED, (INT8, expr.type.plain)), (folded, expr), INT8, False)
    remainder = Call(function_key(REMAINDER, (INT8, INT8)), (folded, Literal(bound.modulus, INT8)), INT8, False)
    return Call(function_key("=", (INT8, INT8)), (remainder, Literal(bound.remainder, INT8)), BOOL, False)


def _condition(bound: PartitionBound, terms: list[str], types: list[str]) -> str:
    """A bound's condition as SQL. ``terms``: the key's expressions; ``types``: theirs."""
    if bound.kind == "list":
        values = [f"{terms[0]} = {_literal(v, types[0])}" for v in bound.values if v is not None]
        values += [f"{terms[0]} IS NULL"] if None in bound.values else []
        return " OR ".join(values)
    present = " AND ".join(f"{term} IS NOT NULL" for term in terms)
    lower, upper = _within(_LOWER, bound.lower, terms, types), _within(_UPPER, bound.upper, terms, types)
    return f"{present} AND ({lower}) AND ({upper})"


def _within(end: _End, edges: tuple[Edge, ...], terms: list[str], types: list[str]) -> str:
    """That the terms, compared as a row, are on the inner side of one end of a range."""
    (kind, text), *rest = edges
    if kind != 0:
        return "true" if kind == end.unbounded else "false"
    value = _literal(text, types[0])
    if not rest:
        return f"{terms[0]} {end.last} {value}"
    tie = _within(end, tuple(rest), terms[1:], types[1:])
    return f"{terms[0]} {end.strict} {value} OR ({terms[0]} = {value} AND ({tie}))"


def _literal(text: str, type_: str) -> str:
    return f"{quoted_literal(text)}::{type_}"


def edge_text(edges: tuple[Edge, ...], exprs: Sequence[Scalar]) -> str:
    """One end of a range, as Postgres shows it. ``exprs``: the key's expressions."""
    words = {MINIMUM: "MINVALUE", MAXIMUM: "MAXVALUE"}
    shown = (words.get(kind) or _shown(text, e.type.kind) for (kind, text), e in zip(edges, exprs, strict=True))
    return f"({', '.join(shown)})"


def _shown(text: str | None, kind: Kind) -> str:
    if text is None:
        return "NULL"
    if kind is Kind.BOOL:
        return "true" if text == "t" else "false"
    return text if kind in (Kind.INT4, Kind.NUMERIC) else quoted_literal(text)


def bound_text(parent: Relation, bound: PartitionBound) -> str:
    """The bound of a partition of ``parent``, as pg_get_expr shows pg_class.relpartbound."""
    assert parent.partitioning is not None, "a partition's parent is partitioned"
    exprs = key_expressions(parent.name, parent.columns, parent.partitioning)
    if bound.kind == "default":
        return "DEFAULT"
    if bound.kind == "hash":
        return f"FOR VALUES WITH (modulus {bound.modulus}, remainder {bound.remainder})"
    if bound.kind == "list":
        return f"FOR VALUES IN ({', '.join(_shown(v, exprs[0].type.kind) for v in bound.values)})"
    return f"FOR VALUES FROM {edge_text(bound.lower, exprs)} TO {edge_text(bound.upper, exprs)}"


def constraint_text(parent: Relation, bound: PartitionBound, bounds: Sequence[PartitionBound]) -> str:
    """The condition of a partition's rows as SQL. ``bounds``: those of all partitions of the parent."""
    key = parent.partitioning
    assert key is not None, "a partition's parent is partitioned"
    types = [format_type(e.type, True) for e in key_expressions(parent.name, parent.columns, key)]
    terms = [quoted(column) if column else text for column, text in zip(key.columns, key.keys, strict=True)]
    if bound.kind == "hash":
        shown = f"'{parent.oid}'::oid, {bound.modulus}, {bound.remainder}, {', '.join(terms)}"
        return f"satisfies_hash_partition({shown})"
    if bound.kind != "default":
        return _shown_condition(bound, terms, types)
    others = [f"({_shown_condition(b, terms, types)})" for b in bounds if b.kind != "default"]
    return f"NOT ({' OR '.join(others)})" if others else ""


def _shown_condition(bound: PartitionBound, terms: list[str], types: list[str]) -> str:
    """A bound's condition in PostgreSQL's words."""
    if bound.kind == "list":
        values = [_literal(v, types[0]) for v in bound.values if v is not None]
        among = f"{terms[0]} = {values[0]}" if len(values) == 1 else f"{terms[0]} = ANY (ARRAY[{', '.join(values)}])"
        if None not in bound.values:
            return f"{terms[0]} IS NOT NULL AND {among}"
        return f"{terms[0]} IS NULL OR {among}" if values else f"{terms[0]} IS NULL"
    ends = (_within(end, edges, terms, types) for end, edges in ((_LOWER, bound.lower), (_UPPER, bound.upper)))
    parts = [*(f"{term} IS NOT NULL" for term in terms), *(f"({end})" for end in ends if end != "true")]
    return " AND ".join(parts)
