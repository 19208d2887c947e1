"""COPY, and CREATE TABLE … FROM a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.expr.scalar import Column, Scalar
from sql.bind.copy_options import check_from_stdin, copy_options
from sql.bind.ddl import home
from sql.bind.environment import Environment
from sql.bind.lookup import lookup_in_schema
from sql.bind.namespace import Visible, one_table
from sql.bind.query import bind_top
from sql.bind.row_security import refuse_restricted
from sql.bind.scope import NameScope
from sql.bind.subscribe import subscribe
from sql.bind.target import column_default, column_positions, copy_target
from sql.bind.walk import has_subquery, references
from sql.catalog.catalog import Relation, RelationKind
from sql.statements.queries import Query
from sql.statements.statements import CopyFormat, CopyFrom, CopyTo, CreateTableFrom, Subscribe
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import statements as nodes_statements


def copy(env: Environment, node: nodes_statements.CopyStatement) -> CopyFrom | CopyTo:
    """COPY table FROM, or COPY of a relation, a query or a subscription TO."""
    return _copy_to(env, node) if node.to else _copy_from(env, node)


def _copy_from(env: Environment, node: nodes_statements.CopyStatement) -> CopyFrom:
    if not isinstance(node.source, nodes.TableName):
        raise SqlError("42601", 'syntax error at or near "FROM"', position=node.at + 1)
    table = copy_target(env, node.source)
    where = None if node.where is None else _condition(env, table, node, node.where)
    columns = _columns(table, node.columns)
    use = env.use(table)
    if use is not None:
        use.need("a", (i + 1 for i in columns))
    message, hint = "COPY FROM not supported with row-level security", "Use INSERT statements instead."
    refuse_restricted(env, table, use, message, hint)
    names = [table.columns[i].name for i in columns]
    options = copy_options(node, [c.name for c in table.columns], names)
    check_from_stdin(node)
    defaults = tuple(column_default(env, c) if c.defaulted else None for c in table.columns)
    return CopyFrom(table, columns, defaults, options, node.path, bool(node.columns), where)


def _condition(env: Environment, table: Relation, node: nodes_statements.CopyStatement, where: nodes.Expr) -> Scalar:
    """The condition of WHERE. Raises 42P10 for a generated column, 0A000, and the errors of the expression."""
    if node.path is not None:
        raise unsupported("WHERE in COPY FROM a file", "CREATE TABLE … FROM the file, and INSERT … SELECT.")
    if any(name == "max_rejects" for name, _, _ in node.options):
        raise unsupported("WHERE with MAX REJECTS")
    visible = tuple(Visible(c.name, Column(i, c.type, c.nullable)) for i, c in enumerate(table.columns))
    binder = env.binder(NameScope(one_table(table.name, visible), clause=_WHERE), _WHERE)
    found = binder.condition(where, "WHERE")
    if has_subquery(found):
        raise SqlError("0A000", "cannot use subquery in COPY FROM WHERE condition")
    for _, place in sorted(references(found)):
        if table.columns[place].expression is not None:
            detail = f'Column "{table.columns[place].name}" is a generated column.'
            raise SqlError("42P10", f"generated columns are not supported in {_WHERE}", detail)
    return found


_WHERE: Final = "COPY FROM WHERE conditions"
_BY_SUFFIX: Final = {
    ".csv": CopyFormat.CSV, ".json": CopyFormat.JSON, ".jsonl": CopyFormat.JSON, ".ndjson": CopyFormat.JSON,
    ".parquet": CopyFormat.PARQUET, ".orc": CopyFormat.ORC, ".tsv": CopyFormat.TEXT, ".txt": CopyFormat.TEXT,
}  # fmt: skip


def format_of(path: str) -> CopyFormat | None:
    """The format that a path's prefix or suffix stands for, if any."""
    if path.lower().startswith("jdbc:"):
        return CopyFormat.JDBC
    name = re.sub(r"\.(gz|bz2|zst|snappy)$", "", path.lower())
    return _BY_SUFFIX.get(name[name.rfind(".") :])


def create_from(env: Environment, node: nodes_statements.CreateFromStatement) -> CreateTableFrom:
    """CREATE TABLE … FROM; without an option the path's suffix gives the format. Raises 42601, 0A000."""
    given = {name: (value, at) for name, value, at in node.options}
    if "format" not in given:
        format_ = format_of(node.path)
        if format_ is None:
            raise SqlError(
                "42601", "the format cannot be determined from the path", hint="Specify it, as in WITH (FORMAT csv)."
            )
        given["format"] = (format_.value, node.at)
    for name in ("force_null", "force_not_null", "force_quote"):
        if name in given:
            raise unsupported(f"{name.upper()} in CREATE TABLE … FROM", "Create the table, and COPY into it.")
    options = tuple((name, value, at) for name, (value, at) in given.items())
    copy_ = nodes_statements.CopyStatement(node.table, (), False, node.path, options, node.at)
    mapping = given.get("mapping", ((), 0))[0]
    assert isinstance(mapping, tuple), "the grammar sees to it"
    names = [pair[1] for pair in mapping]
    schema_name = home(env, node.table, node.temporary)
    return CreateTableFrom(
        schema_name,
        node.table.name,
        node.if_not_exists,
        node.path,
        copy_options(copy_, names, names),
        node.with_no_data,
    )


def _columns(table: Relation, named: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    """The positions of the listed columns, of all but the generated ones without a list. Raises 42703, 42701, 42P10."""
    if not named:
        return tuple(i for i, c in enumerate(table.columns) if c.expression is None)
    positions = column_positions(table, named)
    generated = next((table.columns[i].name for i in positions if table.columns[i].expression is not None), None)
    if generated is not None:
        detail = "Generated columns cannot be used in COPY."
        raise SqlError("42P10", f'column "{generated}" is a generated column', detail)
    return positions


def _copy_to(env: Environment, node: nodes_statements.CopyStatement) -> CopyTo:
    source: Query | Subscribe
    if isinstance(node.source, nodes.TableName):
        source = bind_top(env, _whole_table(env, node.source, node.columns))
    elif isinstance(node.source, nodes_statements.SubscribeStatement):
        if node.path is not None:
            raise unsupported("COPY (SUBSCRIBE …) TO a file", "CREATE SINK sends changes to files.", node.at + 1)
        source = subscribe(env, node.source)
    elif isinstance(node.source, nodes.Query):
        source = bind_top(env, node.source)
    else:
        raise unsupported("COPY of a data-modifying statement", position=node.at + 1)
    columns = source.query.columns if isinstance(source, Subscribe) else source.columns
    names = [c.name for c in columns]
    return CopyTo(source, copy_options(node, names, names), node.path)


def _whole_table(env: Environment, table: nodes.TableName, named: Sequence[tuple[str, int]]) -> nodes.Query:
    relation = lookup_in_schema(env, table)
    if relation.kind is RelationKind.VIEW:
        raise SqlError(
            "42809", f'cannot copy from view "{relation.name}"', hint="Try the COPY (SELECT ...) TO variant.",
        )  # fmt: skip
    if relation.partitioning is not None:
        message, hint = f'cannot copy from partitioned table "{relation.name}"', "Try the COPY (SELECT ...) TO variant."
        raise SqlError("42809", message, hint=hint)
    columns = _columns(relation, named)
    targets = tuple(nodes.Target(nodes.Name((relation.columns[i].name,), table.at), None, table.at) for i in columns)
    select = nodes.Select(targets, (replace(table, only=True),), None, None, None, None, table.at)
    return nodes.Query(select, table.at)
