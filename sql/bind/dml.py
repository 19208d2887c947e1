"""INSERT, UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ivm.errors import SqlError, unsupported
from ivm.words import OID
from planner.expr.scalar import Column, Scalar
from planner.logical.nodes import Filter, Finishing, Project, Rel, schema
from planner.logical.traversal import has_subquery
from sql.bind import cte, volatile
from sql.bind.assignments import new_values
from sql.bind.bound_query import BoundQuery, finished, sliced, values_rel
from sql.bind.coerce import assign, resolve_unknown
from sql.bind.environment import DataChangeNode, Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.from_clause import bind_changed, changes_tree
from sql.bind.inheritance_tree import TABLEOID, TABLEOID_ATTRIBUTE, wide_rows
from sql.bind.namespace import Namespace, Range, Visible
from sql.bind.positions import column_at, position
from sql.bind.query import bind_query
from sql.bind.scope import NameScope
from sql.bind.selection import bind_targets
from sql.bind.target import change_target, column_default, column_positions
from sql.catalog.catalog import Relation, TableColumn
from sql.catalog.keys import Index
from sql.statements.queries import OutputColumn
from sql.statements.statements import Branch, DataChange, Delete, Insert, OnConflict, Update
from sql.syntax.nodes import queries as nodes


def bind_change(env: Environment, node: DataChangeNode) -> DataChange:
    """A data-modifying statement. Raises what ``insert``, ``update`` and ``delete`` raise."""
    match node:
        case nodes.InsertStatement():
            return insert(env, node)
        case nodes.UpdateStatement():
            return update(env, node)
        case nodes.DeleteStatement():
            return delete(env, node)
        case _:
            assert_never(node)


def insert(env: Environment, node: nodes.InsertStatement) -> Insert:
    """INSERT: rows in the table's column order, defaults filled in and casts applied. Raises 42601, 42701, 42703,
    42804, 428C9, and what is wrong with the table, the source, RETURNING or ON CONFLICT."""
    table = change_target(env, node.table)
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    positions = column_positions(table, node.columns) if node.columns else tuple(range(len(table.columns)))
    source = node.source
    finishing: Finishing | None = None
    if source is None:
        rel: Rel = values_rel((tuple(column_default(env, c) for c in table.columns),))
    elif isinstance(source.body, nodes.ValuesList) and _is_bare(source):
        values = _insert_values(env, table, positions, source.body, node)
        if values is None:
            given, select = _as_select(positions, source, source.body.rows[0])
            rel, finishing = _insert_query(env, table, given, select, node)
        else:
            rel = values
    else:
        rel, finishing = _insert_query(env, table, positions, source, node)
    visible = _visible(table, 0)
    namespace = Namespace(visible, (Range(node.table.alias or table.name, visible, table.schema_name, table),))
    if env.oids:
        oid = Visible(TABLEOID, Column(len(table.columns), OID, False), table.oid, TABLEOID_ATTRIBUTE)
        namespace = Namespace(visible, (replace(namespace.ranges[0], oid=oid),))
    returning, columns = _returning(env, node.returning, namespace)
    conflict = None if node.conflict is None else _on_conflict(env, table, node.table.alias, node.conflict)
    return Insert(table, rel, returning, columns, conflict, finishing, env.oids)


def _on_conflict(env: Environment, table: Relation, alias: str | None, node: nodes.ConflictClause) -> OnConflict:
    """ON CONFLICT: the present row's columns are followed by those of the proposed row, ``excluded``."""
    arbiters = _arbiters(table, node)
    if node.assignments is None:
        return OnConflict(arbiters)
    width = len(table.columns)
    present, proposed = _visible(table, 0), _visible(table, width)
    ranges = (Range(alias or table.name, present, table.schema_name, table), Range("excluded", proposed))
    binder = ExpressionBinder(env, NameScope(Namespace((*present, *proposed), ranges), clause="UPDATE"), "UPDATE")
    new = new_values(binder, table, node.assignments)
    changed = tuple(new.get(i, Column(i, c.type, c.nullable)) for i, c in enumerate(table.columns))
    where = None if node.where is None else binder.condition(node.where, "WHERE")
    for expr in (*changed, *(() if where is None else (where,))):
        _check_steady(expr, "ON CONFLICT DO UPDATE", node.at)
    return OnConflict(arbiters, changed, where)


def _arbiters(table: Relation, node: nodes.ConflictClause) -> tuple[Index, ...]:
    """The unique indexes that the conflict target means, all if there is none. Raises 42703, 42704, 42P10, 42601."""
    if node.constraint is not None:
        name = node.constraint[0]
        found = tuple(i for i in table.keys if i.constraint and i.name == name)
        if not found:
            raise SqlError("42704", f'constraint "{name}" for table "{table.name}" does not exist')
        return found
    if node.columns:
        wanted = set(_target_columns(table, node.columns))
        found = tuple(i for i in table.keys if set(i.columns) == wanted)
        if not found:
            message = "there is no unique or exclusion constraint matching the ON CONFLICT specification"
            raise SqlError("42P10", message)
        return found
    if node.assignments is not None:
        raise SqlError(
            "42601", "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).", position=node.at + 1,
        )  # fmt: skip
    return table.keys


def _target_columns(table: Relation, columns: Sequence[tuple[str, int]]) -> list[int]:
    names = [c.name for c in table.columns]
    for name, at in columns:
        if name not in names:
            raise SqlError("42703", f'column "{name}" does not exist', position=at + 1)
    return [names.index(name) for name, _ in columns]


def _is_bare(query: nodes.Query) -> bool:
    """Whether the query is a body and nothing else."""
    return query.with_ is None and not query.order and query.limit is None and query.offset is None


def _check_width(positions: tuple[int, ...], found: int, node: nodes.InsertStatement, at: int) -> tuple[int, ...]:
    """The target columns for so many expressions. Raises 42601."""
    if found > len(positions):
        raise SqlError("42601", "INSERT has more expressions than target columns", position=at + 1)
    if found < len(positions):
        if node.columns:
            where = node.columns[found][1]
            raise SqlError("42601", "INSERT has more target columns than expressions", position=where + 1)
        return positions[:found]
    return positions


def _insert_values(
    env: Environment, table: Relation, positions: tuple[int, ...], body: nodes.ValuesList, node: nodes.InsertStatement
) -> Rel | None:
    """INSERT of VALUES, in which DEFAULT may stand for a value; None for a single row with set-returning functions."""
    width = len(body.rows[0])
    for row in body.rows:
        if len(row) != width:
            raise SqlError("42601", "VALUES lists must all be the same length", position=row[0].at + 1)
    extra = body.rows[0][min(len(positions), width - 1)].at
    positions = _check_width(positions, width, node, extra)
    columns = table.columns
    overridden = {i for i in positions if _overridden(columns[i], node)}
    for i in positions:
        if any(not isinstance(row[positions.index(i)], nodes.Default) for row in body.rows):
            _check_identity(columns[i], node)
    rest = {i: column_default(env, c) for i, c in enumerate(columns) if i not in positions or i in overridden}
    defaults: dict[int, Scalar] = {}
    scope = NameScope(clause="VALUES", functions=[] if len(body.rows) == 1 else None)
    binder = ExpressionBinder(env, scope, "VALUES")
    rows: list[tuple[Scalar, ...]] = []
    for row in body.rows:
        values = dict(rest)
        for i, expr in zip(positions, row, strict=True):
            if i in overridden:
                continue
            if isinstance(expr, nodes.Default):
                values[i] = defaults.setdefault(i, column_default(env, columns[i]))
            else:
                bound = binder.bind(expr)
                values[i] = assign(env, bound, columns[i].type, columns[i].name, position(expr))
        rows.append(tuple(values[i] for i in range(len(columns))))
    return None if scope.functions else values_rel(rows)


def _as_select(
    positions: tuple[int, ...], source: nodes.Query, row: tuple[nodes.Expr, ...]
) -> tuple[tuple[int, ...], nodes.Query]:
    """A row of VALUES as a SELECT, and the columns that it gives."""
    given = [(i, expr) for i, expr in zip(positions, row, strict=False) if not isinstance(expr, nodes.Default)]
    targets = tuple(nodes.Target(expr, None, expr.at) for _, expr in given)
    select = nodes.Select(targets, (), None, None, None, None, source.at)
    return tuple(i for i, _ in given), nodes.Query(select, source.at)


def _insert_query(
    env: Environment, table: Relation, positions: tuple[int, ...], source: nodes.Query, node: nodes.InsertStatement
) -> tuple[Rel, Finishing | None]:
    """INSERT of a query: the rows, and the ``Finishing`` where volatile functions are called, in the query's order."""
    bound = bind_query(env, source, None)
    where = [column_at(source.body, i) for i in range(bound.width)]
    extra = where[min(len(positions), len(where) - 1)] if where else node.at
    positions = _check_width(positions, bound.width, node, extra)
    defaults = {
        i: column_default(env, c) for i, c in enumerate(table.columns) if i not in positions or _overridden(c, node)
    }
    late = volatile.gives_volatile(bound) or any(map(volatile.is_volatile, defaults.values()))
    rel, given = _late_columns(bound) if late else _columns(finished(bound))
    exprs = dict(defaults)
    for j, i in enumerate(positions):
        column = table.columns[i]
        _check_identity(column, node)
        if i not in defaults:
            exprs[i] = assign(env, given[j], column.type, column.name, where[j])
    ordered = tuple(exprs[i] for i in range(len(table.columns)))
    if late:
        return rel, Finishing(bound.order, project=ordered)
    return Project(rel.input if isinstance(rel, Project) else rel, ordered), None


def _columns(rel: Rel) -> tuple[Rel, tuple[Scalar, ...]]:
    """A query's plan, and its columns as expressions over the input of its projection."""
    if isinstance(rel, Project):
        return rel, rel.exprs
    return rel, tuple(Column(i, c.type, c.nullable) for i, c in enumerate(schema(rel)))


def _late_columns(bound: BoundQuery) -> tuple[Rel, tuple[Scalar, ...]]:
    """The query's whole plan, and its columns as expressions over it that are computed for each row."""
    early, given = volatile.postponed(bound)
    return sliced(early), given


def _overridden(column: TableColumn, node: nodes.InsertStatement) -> bool:
    """Whether OVERRIDING USER VALUE replaces the given values of an identity column."""
    return node.overriding == "user" and column.generated is not None and column.generated.identity


def _check_identity(column: TableColumn, node: nodes.InsertStatement) -> None:
    """Raises 428C9 for a column that is GENERATED ALWAYS, unless OVERRIDING is written."""
    if column.generated is not None and column.generated.kind == "always" and node.overriding is None:
        raise SqlError(
            "428C9", f'cannot insert a non-DEFAULT value into column "{column.name}"',
            f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            "Use OVERRIDING SYSTEM VALUE to override.",
        )  # fmt: skip


def _visible(table: Relation, base: int) -> tuple[Visible, ...]:
    """The table's columns, which start at column ``base``."""
    return tuple(
        Visible(c.name, Column(base + i, c.type, c.nullable), table.oid, i + 1) for i, c in enumerate(table.columns)
    )


def _check_steady(expr: Scalar, clause: str, at: int) -> None:
    """Raises 0A000 for a volatile function beside a subquery, since it would not be called once for each row."""
    if has_subquery(expr) and volatile.is_volatile(expr):
        raise unsupported(f"a volatile function beside a subquery in {clause}", position=at + 1)


def _returning(
    env: Environment, targets: Sequence[nodes.Target] | None, namespace: Namespace
) -> tuple[tuple[Scalar, ...] | None, tuple[OutputColumn, ...]]:
    if targets is None:
        return None, ()
    scope = NameScope(namespace, clause="RETURNING")
    bound = bind_targets(env, scope, targets)
    exprs = tuple(resolve_unknown(env, t.expr) for t in bound)
    for expr in exprs:
        _check_steady(expr, "RETURNING", targets[0].at)
    columns = tuple(OutputColumn(t.name, e.type, t.table, t.attribute) for t, e in zip(bound, exprs, strict=True))
    return exprs, columns


def _changed(
    env: Environment, node: nodes.UpdateStatement | nodes.DeleteStatement, others: Sequence[nodes.TableRef]
) -> tuple[Relation, Rel, Namespace, tuple[Branch, ...], int]:
    """The table, its rows to change joined with FROM or USING, their names, and the branches and width of wide rows."""
    table = change_target(env, node.table)
    name = replace(node.table, columns=())
    rel, namespace = bind_changed(env, name, others)
    if node.where is not None:
        scope = NameScope(namespace, clause="WHERE")
        rel = Filter(rel, ExpressionBinder(env, scope, "WHERE").condition(node.where, "WHERE"))
    if not changes_tree(env, name, table):
        return table, rel, namespace, (), len(table.columns)
    wide = wide_rows(env, table, only=name.only)
    return table, rel, namespace, wide.branches, len(schema(wide.rel))


def update(env: Environment, node: nodes.UpdateStatement) -> Update:
    """UPDATE: the old row, the new row, then the columns of FROM."""
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    table, rel, namespace, branches, width = _changed(env, node, node.from_)
    found = schema(rel)
    new = new_values(ExpressionBinder(env, NameScope(namespace, clause="UPDATE"), "UPDATE"), table, node.assignments)
    old = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(found))
    changed = tuple(new.get(i, old[i]) for i in range(width))
    source = Project(rel, (*old[:width], *changed, *old[width:]))
    returning, columns = _returning(env, node.returning, namespace)
    return Update(table, source, returning, columns, branches, width if branches else 0)


def delete(env: Environment, node: nodes.DeleteStatement) -> Delete:
    """DELETE: the old row, then the columns of USING."""
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    table, rel, namespace, branches, width = _changed(env, node, node.using)
    returning, columns = _returning(env, node.returning, namespace)
    return Delete(table, rel, returning, columns, branches, width if branches else 0)
