"""Constraints of CREATE TABLE and ALTER TABLE, and CREATE INDEX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import SqlType
from planner.expr.scalar import Column, Scalar
from planner.logical.traversal import columns_of, has_subquery
from planner.memo import by_identity
from sql.bind.comparable import check_index
from sql.bind.domains import domain_value
from sql.bind.entry_points import empty_environment
from sql.bind.environment import Environment
from sql.bind.exclusion import exclusion_index
from sql.bind.expression import ExpressionBinder
from sql.bind.index_terms import bind_part, bind_predicate, used_columns
from sql.bind.lookup import lookup
from sql.bind.namespace import Visible, one_table
from sql.bind.renamed import renamed_text
from sql.bind.scope import NameScope
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.composite import has_domains
from sql.catalog.keys import Check, Index
from sql.parse import parse_expression
from sql.statements.definitions import AddExclusion, CreateIndex, NewForeignKey
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import statements as nodes_statements
from sql.syntax.nodes.constraints import (
    CheckConstraint,
    CreateIndexStatement,
    ExcludeConstraint,
    ForeignKeyConstraint,
    KeyConstraint,
)

_CHECK: Final = "check constraints"
_BUILT_IN: Final = (
    "Check constraints call built-in functions and operators only: write what your own computes in its place, or let a "
    "trigger check the row."
)


@dataclass(frozen=True, slots=True)
class Constraints:
    """A new table's constraints; all ids are 0, and names are empty where none was written."""

    primary_key: Index | None = None
    indexes: tuple[Index, ...] = ()
    checks: tuple[Check, ...] = ()
    foreign_keys: tuple[NewForeignKey, ...] = ()


def bind_constraints(
    env: Environment, node: nodes_statements.CreateTableStatement, columns: Sequence[TableColumn]
) -> Constraints:
    """The constraints of CREATE TABLE. Raises 42703, 42701, 42P16, 42P01, 0A000, and the errors of CHECK conditions."""
    table, names = node.table.name, [c.name for c in columns]
    primary: Index | None = None
    unique: list[Index] = []
    excluding: list[Index] = []
    checks: list[Check] = []
    foreign: list[NewForeignKey] = []
    for constraint in node.constraints:
        match constraint:
            case KeyConstraint():
                index = _key(names, constraint)
                for place in index.columns:
                    check_index(columns[place].type)
                if index.primary and primary is not None:
                    message = f'multiple primary keys for table "{table}" are not allowed'
                    raise SqlError("42P16", message, position=constraint.at + 1)
                primary = index if index.primary else primary
                if not index.primary:
                    unique.append(index)
            case CheckConstraint():
                checks.append(_check(env, table, columns, constraint))
            case ExcludeConstraint():
                if node.partitioning is not None:
                    message = "exclusion constraints are not supported on partitioned tables"
                    raise SqlError("0A000", message, position=constraint.at + 1)
                excluding.append(exclusion_index(table, columns, exclusion(constraint)))
            case ForeignKeyConstraint():
                foreign.append(replace(foreign_key(env, constraint, node.table), valid=True))
    return Constraints(primary, (*_merged(primary, unique), *excluding), tuple(checks), tuple(foreign))


def exclusion(node: ExcludeConstraint) -> AddExclusion:
    """An EXCLUDE constraint, by names and texts. Raises 0A000."""
    for column, _ in node.elements:
        lacks = f'access method "{node.method}" does not support'
        if node.method != "btree" and column.descending:
            raise SqlError("0A000", f"{lacks} ASC/DESC options")
        if node.method != "btree" and column.nulls_first:
            raise SqlError("0A000", f"{lacks} NULLS FIRST/LAST options")
    elements = tuple(
        (column.name, None, symbol) if column.expression is None else (None, column.expression[0], symbol)
        for column, symbol in node.elements
    )
    where = None if node.where is None else node.where[0]
    included = tuple(name for name, _ in node.included)
    return AddExclusion(node.name, node.method, elements, included, where, node.deferrable, node.deferred)


def foreign_key(env: Environment, node: ForeignKeyConstraint, own: nodes.TableName | None) -> NewForeignKey:
    """A foreign key. ``own``: the table being created, which its foreign keys may refer to. Raises 42P01, 0A000."""
    if node.full and node.deferrable and len(node.columns) > 1:
        raise unsupported("MATCH FULL of several columns that is DEFERRABLE", position=node.at + 1)
    itself = own is not None and (node.table.schema_name or own.schema_name, node.table.name) == (
        own.schema_name, own.name,
    )  # fmt: skip
    parent = None if itself else lookup(env, node.table)
    return NewForeignKey(
        node.name, tuple(n for n, _ in node.columns), parent, tuple(n for n, _ in node.referenced), node.on_delete,
        node.on_update, tuple(n for n, _ in node.changed), node.valid, node.deferrable, node.deferred, node.full,
    )  # fmt: skip


def _key(names: list[str], node: KeyConstraint) -> Index:
    kind = "primary key" if node.primary else "unique"
    found: list[int] = []
    for name, at in node.columns:
        if name not in names:
            raise SqlError("42703", f'column "{name}" named in key does not exist', position=at + 1)
        if names.index(name) in found:
            raise SqlError("42701", f'column "{name}" appears twice in {kind} constraint', position=at + 1)
        found.append(names.index(name))
    included = tuple(_column(names, name, at) for name, at in node.included)
    return Index(
        0, node.name or "", tuple(found), unique=True, primary=node.primary, constraint=True,
        nulls_distinct=node.nulls_distinct, included=included, deferrable=node.deferrable, deferred=node.deferred,
    )  # fmt: skip


def _merged(primary: Index | None, indexes: list[Index]) -> tuple[Index, ...]:
    """The keys without duplicates, under the first name that one of the equal ones has."""
    found: list[Index] = []
    for index in indexes:
        if primary is not None and replace(index, name=primary.name, primary=True) == primary:
            continue
        place = next((i for i, f in enumerate(found) if replace(index, name=f.name) == f), None)
        if place is None:
            found.append(index)
        elif not found[place].name:
            found[place] = index
    return tuple(found)


def _column(names: list[str], name: str, at: int) -> int:
    if name not in names:
        raise SqlError("42703", f'column "{name}" does not exist', position=at + 1)
    return names.index(name)


def _check(env: Environment, table: str, columns: Sequence[TableColumn], node: CheckConstraint) -> Check:
    condition = _condition(env, table, columns, node.condition)
    if has_subquery(condition):
        raise SqlError("0A000", "cannot use subquery in check constraint", position=node.condition.at + 1)
    _check_alone(table, columns, node.condition, condition)
    places = tuple(sorted(columns_of(condition)))
    return Check(0, node.name or "", node.text, places, no_inherit=node.no_inherit)


def _check_alone(table: str, columns: Sequence[TableColumn], node: nodes.Expr, meant: Scalar) -> None:
    """Refuse a condition that means something else, or nothing, where rows are checked: there are no objects of users
    there. Raises 0A000."""
    try:
        same = _condition(empty_environment(), table, columns, node) == meant
    except SqlError:
        same = False
    if not same:
        raise unsupported("a function, operator or type of one's own in a check constraint", _BUILT_IN, node.at + 1)


def _condition(env: Environment, table: str, columns: Sequence[TableColumn], node: nodes.Expr) -> Scalar:
    """A CHECK condition over the table's columns."""
    visible = tuple(Visible(c.name, Column(i, c.type, c.nullable)) for i, c in enumerate(columns))
    scope = NameScope(one_table(table, visible), clause=_CHECK)
    return ExpressionBinder(env, scope, _CHECK).condition(node, "CHECK")


def added_check(table: Relation, name: str | None, text: str) -> Check:
    """A CHECK constraint that is added to a table, from its text. Raises 0A000 and the errors of the condition."""
    try:
        found = _condition(empty_environment(), table.name, table.columns, parse_expression(text))
    except SqlError as error:
        raise (replace(error, hint=_BUILT_IN) if error.sqlstate == "42883" else error) from None
    if has_subquery(found):
        raise SqlError("0A000", "cannot use subquery in check constraint")
    return Check(0, name or "", text, tuple(sorted(columns_of(found))))


def check_conditions(table: Relation) -> tuple[Scalar, ...]:
    """The conditions of a table's CHECK constraints, over its columns."""
    env = empty_environment()
    return tuple(_condition(env, table.name, table.columns, parse_expression(c.text)) for c in table.checks)


@by_identity
def domain_columns(table: Relation) -> tuple[tuple[int, Scalar], ...]:
    """The columns whose types are domains: each one's position, and its value checked by the domain."""
    env = empty_environment()
    found = []
    for i, column in enumerate(table.columns):
        if column.domain is not None or has_domains(column.type):
            type_ = replace(column.type, domain=column.domain)
            found.append((i, domain_value(env, type_, Column(i, column.type, True))))
    return tuple(found)


def renamed_check(before: Relation, after: Relation, check: Check, old: str, new: str) -> Check:
    """A CHECK constraint after the table or a column was renamed. Raises 0A000 where replacing the name in the text
    would change the meaning."""
    text = renamed_text(check.text, old, new, table=before.name == old)
    env = empty_environment()
    meant = _condition(env, before.name, before.columns, parse_expression(check.text))
    if _condition(env, after.name, after.columns, parse_expression(text)) != meant:
        raise unsupported(f"renaming a name that the condition of {check.name} uses")
    return replace(check, text=text)


def create_index(env: Environment, node: CreateIndexStatement) -> CreateIndex:
    """CREATE INDEX. Raises 42P01, 42809, 42501, 42703, 0A000."""
    table = lookup(env, node.table)
    if table.kind is RelationKind.SYSTEM:
        raise SqlError("42501", f'permission denied: "{table.name}" is a system catalog')
    if table.kind is RelationKind.VIEW:
        detail = "This operation is not supported for views."
        raise SqlError("42809", f'cannot create index on relation "{table.name}"', detail)
    if node.unique and table.kind is RelationKind.MATERIALIZED_VIEW:
        hint = "The rows of a view follow from its tables: put the constraint on the tables, or leave out UNIQUE."
        raise unsupported("a unique index on a materialized view", hint=hint)
    _check_method(node)
    names = [c.name for c in table.columns]
    for name in (c.name for c in node.columns if c.expression is None):
        if name not in names:
            raise SqlError("42703", f'column "{name}" does not exist')
    parts = [
        Column(names.index(c.name), *_typed(table, c.name)) if c.expression is None
        else bind_part(env, table.name, table.columns, c.expression[1])
        for c in node.columns
    ]  # fmt: skip
    for part in parts:
        check_index(part.type, node.method)
    predicate = None if node.where is None else bind_predicate(env, table.name, table.columns, node.where[1])
    texts = tuple(None if c.expression is None else c.expression[0] for c in node.columns)
    index = Index(
        0, node.name or "", tuple(names.index(c.name) for c in node.columns if c.expression is None),
        unique=node.unique, expressions=texts if any(texts) else (),
        where=None if node.where is None else node.where[0], used=used_columns(parts, predicate),
        nulls_distinct=node.nulls_distinct, method=node.method,
        descending=_flags(c.descending for c in node.columns), nulls_first=_flags(c.nulls_first for c in node.columns),
        included=tuple(_column(names, name, at) for name, at in node.included),
    )  # fmt: skip
    return CreateIndex(table, index, node.if_not_exists)


_SEVERAL: Final = ("btree", "gist", "gin", "brin")
_INCLUDING: Final = ("btree", "gist", "spgist")


def _check_method(node: CreateIndexStatement) -> None:
    """Raises 0A000 for what the access method does not support."""
    method = f'access method "{node.method}" does not support'
    if node.unique and node.method != "btree":
        raise SqlError("0A000", f"{method} unique indexes")
    if len(node.columns) > 1 and node.method not in _SEVERAL:
        raise SqlError("0A000", f"{method} multicolumn indexes")
    if node.included and node.method not in _INCLUDING:
        raise SqlError("0A000", f"{method} included columns")
    if node.method != "btree" and any(c.descending for c in node.columns):
        raise SqlError("0A000", f"{method} ASC/DESC options")
    if node.method != "btree" and any(c.nulls_first for c in node.columns):
        raise SqlError("0A000", f"{method} NULLS FIRST/LAST options")


def _typed(table: Relation, name: str) -> tuple[SqlType, bool]:
    column = next(c for c in table.columns if c.name == name)
    return column.type, column.nullable


def _flags(found: Iterable[bool]) -> tuple[bool, ...]:
    flags = tuple(found)
    return flags if any(flags) else ()
