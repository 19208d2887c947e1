"""CREATE TABLE, CREATE VIEW and DROP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import Kind, SqlType
from planner.distributed.hydration_choice import Hydrate
from planner.expr.scalar import Scalar
from sql.bind import sequences
from sql.bind.coerce import assign
from sql.bind.collations import check_collatable
from sql.bind.constraints import bind_constraints
from sql.bind.environment import Environment
from sql.bind.generation import check_generated
from sql.bind.inheritance import inherited_keys, merged_checks, merged_columns
from sql.bind.like import liked, liked_checks, liked_keys, liked_sequences, with_liked
from sql.bind.lookup import lookup
from sql.bind.partitions import check_partitioning
from sql.bind.query import bind_stored
from sql.bind.target import bind_default
from sql.bind.view_targets import check_updatable
from sql.catalog.catalog import Generated, Relation, RelationKind, TableColumn, is_temporary
from sql.catalog.databases import FIRST_DATABASE
from sql.catalog.references import RelationReference
from sql.catalog.search_path import Recorder, check_creatable
from sql.catalog.sequence_options import sequence_type
from sql.statements.definitions import ColumnSequence, CreateTable, CreateView, Drop, DropIndex
from sql.statements.queries import Query
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import statements as nodes_statements
from sql.syntax.nodes.columns import ColumnDefinition
from storage.types.order import interval_total
from storage.types.text_interval import parse_interval
from storage.types.type_names import format_type

_UNSTORABLE: Final = (Kind.UNKNOWN, Kind.RECORD, Kind.VOID)


def retention(text: str | None) -> int | None:
    """``RETAIN HISTORY FOR`` in microseconds, None without it. Raises 22007, 22023."""
    if text is None:
        return None
    found = duration(text, "RETAIN HISTORY")
    if not found:
        hint = "The shortest is '1 microsecond'; without the option an hour is kept."
        raise SqlError("22023", "RETAIN HISTORY cannot be set to 0", hint=hint)
    return found


def duration(text: str, what: str) -> int:
    """An interval in microseconds, in which a month has 30 days. ``what`` names it in errors. Raises 22007, 22023."""
    total = interval_total(parse_interval(text))
    if total < 0:
        raise SqlError("22023", f"{what} must not be negative")
    return total


def home(env: Environment, table: nodes.TableName, temporary: bool) -> str:
    """The schema in which a relation is created. Raises 3F000, 42501, 42939."""
    try:
        schema_name = env.catalog.home(table.schema_name, temporary)
    except SqlError as error:
        raise SqlError(error.sqlstate, error.message, error.detail, error.hint, table.at + 1) from None
    check_creatable(schema_name, table.name)
    return schema_name


def create_table(env: Environment, node: nodes_statements.CreateTableStatement) -> CreateTable:
    """CREATE TABLE from column definitions or from a query."""
    schema_name = home(env, node.table, node.temporary)
    retain = retention(node.retain)
    if node.source is not None:
        query: Query | None = bind_stored(env, node.source)
        assert query is not None
        columns = _query_columns(query, node.table)
        if node.with_no_data:
            query = None
        ends = node.on_commit
        return CreateTable(schema_name, node.table.name, columns, (), retain, node.if_not_exists, query, on_commit=ends)
    parents = tuple(_parent(env, name, schema_name, node.bound is not None) for name in node.inherits)
    names = [c.name for c in node.columns]
    for column in node.columns:
        if names.count(column.name) > 1:
            raise SqlError("42701", f'column "{column.name}" specified more than once', position=column.at + 1)
    copied = liked(env, node.likes)
    own = tuple(column_definition(env, c, parents) for c in node.columns)
    columns, notices = merged_columns(parents, with_liked(own, copied))
    notices = () if node.bound is not None else notices
    check_generated(node.table.name, columns, {c.name: c.expression[0] for c in node.columns if c.expression})
    if node.partitioning is not None and node.bound is None and parents:
        raise SqlError("42809", "cannot create partitioned table as inheritance child")
    found = bind_constraints(env, node, columns)
    copied_key, copied_indexes = liked_keys(columns, copied)
    if copied_key is not None and found.primary_key is not None:
        message = f'multiple primary keys for table "{node.table.name}" are not allowed'
        raise SqlError("42P16", message)
    indexes = (*found.indexes, *copied_indexes)
    primary = found.primary_key or copied_key
    checks, merged = merged_checks(node.table.name, parents, columns, (*found.checks, *liked_checks(columns, copied)))
    notices += merged if node.bound is None else ()
    if node.bound is not None:
        inherited, others = inherited_keys(parents[0])
        primary, indexes = primary or inherited, (*others, *indexes)
    key = () if primary is None else primary.columns
    if primary is not None and primary.deferrable:
        # no proof of uniqueness while a transaction lasts: an index like any other, over columns that are NOT NULL
        columns = tuple(replace(c, nullable=c.nullable and i not in key) for i, c in enumerate(columns))
        indexes, primary, key = (primary, *indexes), None, ()
    name = None if primary is None else primary.name or None
    if node.partitioning is not None:
        check_partitioning(env, node.table.name, columns, node.partitioning)
    columns = tuple(replace(c, nullable=c.nullable and i not in key) for i, c in enumerate(columns))
    return CreateTable(
        schema_name, node.table.name, columns, key, retain, node.if_not_exists, None, name, indexes,
        checks, found.foreign_keys,
        (*_sequences(node, columns), *liked_sequences(env, columns, copied)), node.on_commit, parents, notices,
        node.partitioning, node.bound,
    )  # fmt: skip


def _parent(env: Environment, name: nodes.TableName, schema_name: str, partition: bool) -> Relation:
    """A parent of a new table; ``partition``: the table becomes a partition of it. Raises 42P01, 42809, 42P17."""
    parent = lookup(env, name)
    if parent.kind is not RelationKind.TABLE:
        raise SqlError("42809", f'inherited relation "{parent.name}" is not a table')
    if partition and parent.partitioning is None:
        raise SqlError("42P17", f'"{parent.name}" is not partitioned', position=name.at + 1)
    if not partition and parent.partitioning is not None:
        raise SqlError("42809", f'cannot inherit from partitioned table "{parent.name}"')
    if not partition and parent.bound is not None:
        raise SqlError("42809", f'cannot inherit from partition "{parent.name}"')
    if partition and is_temporary(schema_name) and not parent.temporary:
        message = f'cannot create a temporary relation as partition of permanent relation "{parent.name}"'
        raise SqlError("42809", message)
    if parent.temporary and not is_temporary(schema_name):
        raise SqlError("42809", f'cannot inherit from temporary relation "{parent.name}"')
    return parent


def _sequences(
    node: nodes_statements.CreateTableStatement, columns: tuple[TableColumn, ...]
) -> tuple[ColumnSequence, ...]:
    """The sequences of SERIAL and identity columns. Raises 22023, and 42611 where one inherits a generated column."""
    found = []
    names = [c.name for c in columns]
    for definition in node.columns:
        i = names.index(definition.name)
        column = columns[i]
        if definition.generated is not None:
            kind, options = definition.generated
            if column.expression is not None:
                what = "default" if kind == "default" else "identity"
                message = f'column "{column.name}" inherits from generated column but specifies {what}'
                raise SqlError("42611", message)
            if kind != "default":
                sequence_type(column.type, "identity column")
            found.append(ColumnSequence(i, kind, options))
    return tuple(found)


def _query_columns(query: Query, table: nodes.TableName) -> tuple[TableColumn, ...]:
    """The columns of CREATE TABLE AS, which are nullable as in Postgres."""
    names = _names(query, table)
    pairs = zip(names, query.columns, strict=True)
    return tuple(TableColumn(n, replace(c.type, domain=None), domain=c.type.domain) for n, c in pairs)


def _names(query: Query, table: nodes.TableName) -> list[str]:
    """The names of a query's columns, those listed after the new relation's name first. Raises 42601, 42701, 42P16."""
    found = [c.name for c in query.columns]
    if len(table.columns) > len(found):
        raise SqlError("42601", "too many column names were specified", position=table.at + 1)
    names = [*table.columns, *found[len(table.columns) :]]
    for name, column in zip(names, query.columns, strict=True):
        if names.count(name) > 1:
            raise SqlError("42701", f'column "{name}" specified more than once')
        if is_pseudo(column.type):
            raise SqlError("42P16", f'column "{name}" has pseudo-type {format_type(column.type)}')
    return names


def storable(type_: SqlType, name: str) -> SqlType:
    """The type of a stored column. Raises 42P16 for a pseudo-type."""
    if is_pseudo(type_):
        raise SqlError("42P16", f'column "{name}" has pseudo-type {format_type(type_)}')
    return type_


def is_pseudo(type_: SqlType) -> bool:
    """Whether no column can have the type: that of rows without a named type, for instance, or of arrays of them."""
    inner = type_.element or type_
    return inner.kind in _UNSTORABLE and inner.named is None


def default_expression(env: Environment, node: nodes.Expr, type_: SqlType, name: str) -> Scalar:
    """A DEFAULT as its column's type. Raises 0A000 where it refers to a column, 42804."""
    try:
        expr = bind_default(env, node)
    except SqlError as error:
        if error.sqlstate == "42703":
            message = "cannot use column reference in DEFAULT expression"
            raise SqlError("0A000", message, position=error.position) from None
        raise
    return assign(env, expr, type_, name, node.at)


def column_definition(env: Environment, node: ColumnDefinition, parents: Sequence[Relation] = ()) -> TableColumn:
    """A column from its definition; constraints aside. Without a type it has that of the parent's column. Raises 42704,
    42703, 42P16, 42804."""
    domain = None
    if node.type is None:
        type_ = next((c.type for p in parents for c in p.columns if c.name == node.name), None)
        if type_ is None:
            raise SqlError("42703", f'column "{node.name}" does not exist')
    else:
        domain = env.domain(node.type)
        type_ = storable(env.type(node.type), node.name) if domain is None else domain.columns[0].type
        if domain is not None and node.expression is not None:
            raise unsupported("a generated column of a domain type", position=node.at + 1)
    if node.collated is not None:
        check_collatable(type_, node.collated)
    text = None
    if node.default is not None:
        expr, text = node.default
        sequence = sequences.of_default(default_expression(env, expr, type_, node.name))
        if sequence is not None:
            return TableColumn(node.name, type_, not node.not_null, None, Generated(sequence), domain=domain)
    expression = None if node.expression is None else node.expression[1]
    return TableColumn(node.name, type_, not node.not_null, text, None, expression, domain=domain)


def changes_data(query: nodes.Query) -> bool:
    """Whether the query's own WITH has data-modifying statements."""
    return query.with_ is not None and any(not isinstance(c.query, nodes.Query) for c in query.with_.ctes)


def create_view(env: Environment, node: nodes_statements.CreateViewStatement) -> CreateView:
    """CREATE VIEW and CREATE MATERIALIZED VIEW. Raises 0A000, 42P02, 42601, 42701, 42P16, and the query's errors."""
    schema_name = home(env, node.table, node.temporary)
    if changes_data(node.query):
        what = "materialized views must not use" if node.materialized else "views must not contain"
        raise SqlError("0A000", f"{what} data-modifying statements in WITH")
    asking = env.asking.maintained() if node.materialized and env.asking is not None else None
    query = bind_stored(replace(env, asking=asking), node.query)
    if asking is not None and asking.secured and asking.access.database != FIRST_DATABASE:
        hint = "Roles change in the first database, where they are kept from changing what a view's owner sees."
        what = f'row-level security of table "{asking.secured[0].name}" in a materialized view of this database'
        raise unsupported(f"{what}, whose owner it restricts,", hint)
    if node.materialized and env.interpreted:
        hint = "Write it in LANGUAGE sql as one query: that becomes a part of the view. Or use a plain view."
        raise unsupported(f"function {env.interpreted[0]}, which is interpreted, in a materialized view", hint)
    if env.parameters.types:
        what = "materialized views" if node.materialized else "views"
        raise SqlError("42P02", f"{what} may not be defined using bound parameters")
    names = _names(query, node.table)
    columns = tuple(type(c)(n, c.type, c.table, c.attribute) for n, c in zip(names, query.columns, strict=True))
    if node.replace and node.materialized and node.if_not_exists:
        raise unsupported("OR REPLACE together with IF NOT EXISTS")
    references: tuple[RelationReference, ...] = ()
    follows = False
    if isinstance(env.catalog, Recorder):
        references = env.catalog.references(node.text_at, node.text_at + len(node.text))
        follows = env.catalog.temporary() and not node.temporary and not is_temporary(schema_name)
        if node.materialized and env.catalog.temporary_below():
            raise SqlError("0A000", "materialized views must not use temporary tables or views")
    if follows and node.materialized:
        raise SqlError("0A000", "materialized views must not use temporary tables or views")
    if follows:
        schema_name = home(env, node.table, temporary=True)
    hydrate = None if node.hydrate is None else Hydrate(node.hydrate)
    if any(o.startswith("check_option=") for o in node.options):
        _check_updatable(env, node, query, names, references)
    return CreateView(
        schema_name, node.table.name, Query(query.rel, query.finishing, columns), node.text, node.materialized,
        node.replace, node.if_not_exists, retention(node.retain), references, follows, hydrate,
        node.parts, node.options, asking.role if asking is not None and asking.secured else 0,
    )  # fmt: skip


def _check_updatable(
    env: Environment, node: nodes_statements.CreateViewStatement, query: Query, names: list[str],
    references: tuple[RelationReference, ...],
) -> None:  # fmt: skip
    """Raises 0A000 for a check option of a view that cannot be changed."""
    columns = tuple(TableColumn(n, c.type) for n, c in zip(names, query.columns, strict=True))
    view = Relation(-1, "", node.table.name, RelationKind.VIEW, columns, definition=node.text, references=references)
    check_updatable(env, view)


_KINDS: Final = {
    "table": RelationKind.TABLE, "view": RelationKind.VIEW, "materialized view": RelationKind.MATERIALIZED_VIEW,
    "sequence": RelationKind.SEQUENCE, "source": RelationKind.SOURCE, "sink": RelationKind.SINK,
}  # fmt: skip


def drop(node: nodes_statements.DropStatement) -> Drop | DropIndex:
    """DROP, whose names the coordinator looks up."""
    names = tuple((n.schema_name, n.name) for n in node.names)
    if node.kind == "index":
        return DropIndex(names, node.if_exists)
    return Drop(_KINDS[node.kind], names, node.if_exists, node.cascade)
