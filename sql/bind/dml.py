"""INSERT, UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.words import OID
from planner.expr.scalar import Column, Literal, Scalar, ScalarSubquery
from planner.logical.nodes import Filter, Finishing, Project, Rel, schema
from planner.logical.traversal import has_subquery
from sql.bind import cte, sequences, setops, volatile
from sql.bind import query as queries
from sql.bind.coerce import assign, resolve_unknown
from sql.bind.environment import Environment
from sql.bind.expression import Binder, position
from sql.bind.family import TABLEOID, family
from sql.bind.from_clause import bind_from, lookup
from sql.bind.scope import Namespace, Range, Scope, Visible
from sql.bind.selection import bind_targets
from sql.catalog.catalog import LABELS, Relation, RelationKind, TableColumn
from sql.catalog.keys import Index
from sql.parse import parse_expression
from sql.statements.queries import OutputColumn
from sql.statements.statements import Branch, Delete, Insert, OnConflict, Update
from sql.syntax import nodes


def target(env: Environment, name: nodes.TableName, what: str = "change") -> Relation:
    """The table that a statement changes. Raises 42P01, 42809."""
    relation = lookup(env, name, strict=what in ("truncate", "copy"))
    if relation.kind is RelationKind.TABLE:
        return relation
    if relation.kind is RelationKind.SYSTEM:
        message = f'permission denied: "{relation.name}" is a system catalog'
        raise SqlError("42501", message, position=name.at + 1)
    if what == "truncate":
        raise SqlError("42809", f'"{relation.name}" is not a table', position=name.at + 1)
    message = f'cannot change {LABELS[relation.kind]} "{relation.name}"'
    raise SqlError("55000" if relation.kind is RelationKind.VIEW else "42809", message)


def default(env: Environment, column: TableColumn) -> Scalar:
    """A column's DEFAULT, NULL without one."""
    if column.generated is not None:
        return assign(env, sequences.next_value(column.generated.sequence), column.type, column.name, 0)
    if column.default is None:
        return Literal(None, column.type)
    binder = Binder(env, Scope(clause="DEFAULT expressions"), "DEFAULT expressions")
    expr = binder.bind(parse_expression(column.default))
    return assign(env, expr, column.type, column.name, 0)


def _positions(table: Relation, columns: Sequence[tuple[str, int]]) -> list[int]:
    """Columns' positions by name. Raises 42703, 42701."""
    names = [c.name for c in table.columns]
    found: list[int] = []
    for name, at in columns:
        if name not in names:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            raise SqlError("42703", message, position=at + 1)
        index = names.index(name)
        if index in found:
            raise SqlError("42701", f'column "{name}" specified more than once', position=at + 1)
        found.append(index)
    return found


def insert(env: Environment, node: nodes.InsertStatement) -> Insert:
    """Rows in the table's column order, with defaults and casts."""
    table = target(env, node.table)
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    positions = _positions(table, node.columns) if node.columns else list(range(len(table.columns)))
    source = node.source
    finishing: Finishing | None = None
    if source is None:
        rel: Rel = setops.values((tuple(default(env, c) for c in table.columns),))
    elif isinstance(source.body, nodes.ValuesList) and _is_bare(source):
        rel = _insert_values(env, table, positions, source.body, node)
    else:
        rel, finishing = _insert_query(env, table, positions, source, node)
    visible = _visible(table, 0)
    namespace = Namespace(visible, (Range(node.table.alias or table.name, visible, table.schema_name, table),))
    if env.oids:
        oid = Visible(TABLEOID, Column(len(table.columns), OID, False), table.oid, -6)
        namespace = Namespace(visible, (replace(namespace.ranges[0], oid=oid),))
    returning, columns = _returning(env, node.returning, namespace)
    conflict = None if node.conflict is None else _on_conflict(env, table, node.table.alias, node.conflict)
    return Insert(table, rel, returning, columns, conflict, finishing, env.oids)


def _on_conflict(env: Environment, table: Relation, alias: str | None, node: nodes.ConflictClause) -> OnConflict:
    arbiters = _arbiters(table, node)
    if node.assignments is None:
        return OnConflict(arbiters)
    width = len(table.columns)
    present, proposed = _visible(table, 0), _visible(table, width)
    ranges = (Range(alias or table.name, present, table.schema_name, table), Range("excluded", proposed))
    binder = Binder(env, Scope(Namespace((*present, *proposed), ranges), clause="UPDATE"), "UPDATE")
    new = _new_values(binder, table, node.assignments)
    changed = tuple(new.get(i, Column(i, c.type, c.nullable)) for i, c in enumerate(table.columns))
    where = None if node.where is None else binder.condition(node.where, "WHERE")
    for expr in (*changed, *(() if where is None else (where,))):
        _check_steady(expr, "ON CONFLICT DO UPDATE", node.at)
    return OnConflict(arbiters, changed, where)


def _arbiters(table: Relation, node: nodes.ConflictClause) -> tuple[Index, ...]:
    """The unique indexes that the target means, all without one. Raises 42704, 42809, 42P10, 42601."""
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
    return query.with_ is None and not query.order and query.limit is None and query.offset is None


def _check_width(positions: list[int], found: int, node: nodes.InsertStatement, at: int) -> list[int]:
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
    env: Environment, table: Relation, positions: list[int], body: nodes.ValuesList, node: nodes.InsertStatement
) -> Rel:
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
    rest = {i: default(env, c) for i, c in enumerate(columns) if i not in positions or i in overridden}
    defaults: dict[int, Scalar] = {}
    binder = Binder(env, Scope(clause="VALUES"), "VALUES")
    rows: list[tuple[Scalar, ...]] = []
    for row in body.rows:
        values = dict(rest)
        for i, expr in zip(positions, row, strict=True):
            if i in overridden:
                continue
            if isinstance(expr, nodes.Default):
                values[i] = defaults.setdefault(i, default(env, columns[i]))
            else:
                bound = binder.bind(expr)
                values[i] = assign(env, bound, columns[i].type, columns[i].name, position(expr))
        rows.append(tuple(values[i] for i in range(len(columns))))
    return setops.values(rows)


def _insert_query(
    env: Environment, table: Relation, positions: list[int], source: nodes.Query, node: nodes.InsertStatement
) -> tuple[Rel, Finishing | None]:
    """The rows; what volatile functions compute is left to the finishing, which keeps the query's order too."""
    bound = queries.bind_unsettled(env, source, None)
    where = [setops.column_at(source.body, i) for i in range(bound.width)]
    extra = where[min(len(positions), len(where) - 1)] if where else node.at
    positions = _check_width(positions, bound.width, node, extra)
    defaults = {i: default(env, c) for i, c in enumerate(table.columns) if i not in positions or _overridden(c, node)}
    late = volatile.gives_volatile(bound) or any(map(volatile.is_volatile, defaults.values()))
    rel, given = _late_columns(bound) if late else _columns(queries.finished(bound))
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


def _late_columns(bound: queries.Bound) -> tuple[Rel, tuple[Scalar, ...]]:
    """The same over the whole plan, with what is to be computed for each row of it."""
    early, given = volatile.postponed(bound)
    return queries.sliced(early), given


def _overridden(column: TableColumn, node: nodes.InsertStatement) -> bool:
    """Whether OVERRIDING USER VALUE takes the column's own number in place of what is given."""
    return node.overriding == "user" and column.generated is not None and column.generated.identity


def _check_identity(column: TableColumn, node: nodes.InsertStatement) -> None:
    """Raises 428C9 where a value is given for a column that is always generated."""
    if column.generated is not None and column.generated.kind == "always" and node.overriding is None:
        raise SqlError(
            "428C9", f'cannot insert a non-DEFAULT value into column "{column.name}"',
            f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            "Use OVERRIDING SYSTEM VALUE to override.",
        )  # fmt: skip


def _visible(table: Relation, base: int) -> tuple[Visible, ...]:
    return tuple(
        Visible(c.name, Column(base + i, c.type, c.nullable), table.oid, i + 1) for i, c in enumerate(table.columns)
    )


def _check_steady(expr: Scalar, clause: str, at: int) -> None:
    """0A000 where it is open how often a volatile function would be called beside a subquery."""
    if has_subquery(expr) and volatile.is_volatile(expr):
        raise unsupported(f"a volatile function beside a subquery in {clause}", position=at + 1)


def _returning(
    env: Environment, targets: Sequence[nodes.Target] | None, namespace: Namespace
) -> tuple[tuple[Scalar, ...] | None, tuple[OutputColumn, ...]]:
    if targets is None:
        return None, ()
    scope = Scope(namespace, clause="RETURNING")
    bound = bind_targets(env, scope, targets)
    exprs = tuple(resolve_unknown(env, t.expr) for t in bound)
    for expr in exprs:
        _check_steady(expr, "RETURNING", targets[0].at)
    columns = tuple(OutputColumn(t.name, e.type, t.table, t.attribute) for t, e in zip(bound, exprs, strict=True))
    return exprs, columns


def _changed(
    env: Environment, node: nodes.UpdateStatement | nodes.DeleteStatement, others: Sequence[nodes.TableRef]
) -> tuple[Relation, Rel, Namespace, tuple[Branch, ...], int]:
    """The rows to change with the columns of FROM or USING beside them; their branches and width."""
    table = target(env, node.table)
    name = replace(node.table, columns=())
    rel, namespace = bind_from(env, (name, *others), None, changed=True)
    if node.where is not None:
        scope = Scope(namespace, clause="WHERE")
        rel = Filter(rel, Binder(env, scope, "WHERE").condition(node.where, "WHERE"))
    if not env.oids and (name.only or not table.children):
        return table, rel, namespace, (), len(table.columns)
    parts = family(env, table, only=name.only, extras=True, oid=True)
    return table, rel, namespace, parts.branches, len(schema(parts.rel))


def update(env: Environment, node: nodes.UpdateStatement) -> Update:
    """Old row, new row, then FROM's columns."""
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    table, rel, namespace, branches, width = _changed(env, node, node.from_)
    found = schema(rel)
    new = _new_values(Binder(env, Scope(namespace, clause="UPDATE"), "UPDATE"), table, node.assignments)
    old = tuple(Column(i, c.type, c.nullable) for i, c in enumerate(found))
    changed = tuple(new.get(i, old[i]) for i in range(width))
    source = Project(rel, (*old[:width], *changed, *old[width:]))
    returning, columns = _returning(env, node.returning, namespace)
    return Update(table, source, returning, columns, branches, width if branches else 0)


def _new_values(binder: Binder, table: Relation, assignments: Sequence[nodes.Assignment]) -> dict[int, Scalar]:
    """SET's new value of each column that it names."""
    new: dict[int, Scalar] = {}
    for assignment in assignments:
        positions = _positions(table, assignment.columns)
        for i, (name, at) in zip(positions, assignment.columns, strict=True):
            if i in new:
                raise SqlError("42601", f'multiple assignments to same column "{name}"', position=at + 1)
        new.update(zip(positions, _assigned(binder, table, positions, assignment), strict=True))
    return new


def _assigned(binder: Binder, table: Relation, positions: list[int], assignment: nodes.Assignment) -> list[Scalar]:
    columns = [table.columns[i] for i in positions]
    source = assignment.source
    if not assignment.multiple:
        return [_value(binder, columns[0], source)]
    if isinstance(source, nodes.RowExpr):
        if any(isinstance(i, nodes.Star) for i in source.items):
            bound = binder.bind_items(source.items)
            _same_number(len(bound), len(columns), source.at)
            return [assign(binder.env, e, c.type, c.name, source.at) for c, e in zip(columns, bound, strict=True)]
        _same_number(len(source.items), len(columns), source.at)
        return [_value(binder, c, e) for c, e in zip(columns, source.items, strict=True)]
    if not isinstance(source, nodes.Subquery):
        if len(columns) == 1:
            return [_value(binder, columns[0], source)]
        raise SqlError(
            "0A000", "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
            position=source.at + 1,
        )  # fmt: skip
    rel = binder.query(source.query).rel
    found = schema(rel)
    _same_number(len(found), len(columns), source.at)
    values = []
    for i, column in enumerate(columns):
        one = Project(rel, (Column(i, found[i].type, found[i].nullable),))
        subquery = ScalarSubquery(one, found[i].type)
        values.append(assign(binder.env, subquery, column.type, column.name, source.at))
    return values


def _same_number(found: int, columns: int, at: int) -> None:
    if found != columns:
        raise SqlError("42601", "number of columns does not match number of values", position=at + 1)


def _value(binder: Binder, column: TableColumn, node: nodes.Expr) -> Scalar:
    if isinstance(node, nodes.Default):
        return default(binder.env, column)
    if column.generated is not None and column.generated.kind == "always":
        raise SqlError(
            "428C9", f'column "{column.name}" can only be updated to DEFAULT',
            f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
        )  # fmt: skip
    return assign(binder.env, binder.bind(node), column.type, column.name, position(node))


def delete(env: Environment, node: nodes.DeleteStatement) -> Delete:
    """The old row, then USING's columns."""
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    table, rel, namespace, branches, width = _changed(env, node, node.using)
    returning, columns = _returning(env, node.returning, namespace)
    return Delete(table, rel, returning, columns, branches, width if branches else 0)
