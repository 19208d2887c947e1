"""INSERT, UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from ivm.errors import SqlError, unsupported
from ivm.words import OID
from planner.expr.scalar import Column, Literal, Scalar
from planner.logical.nodes import Filter, Finishing, Project, Rel
from sql.bind import cte, volatile
from sql.bind.arrival import in_order
from sql.bind.assignments import new_values
from sql.bind.bound_query import BoundQuery, finished, rel_columns, sliced, values_rel
from sql.bind.coerce import assign
from sql.bind.column_parts import with_parts
from sql.bind.constant_rows import inserted
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.from_clause import with_others
from sql.bind.index_terms import inferred
from sql.bind.inheritance_tree import TABLEOID, TABLEOID_ATTRIBUTE
from sql.bind.inserted import (
    check_given,
    check_width,
    default_of,
    defaults_of,
    given_value,
    overridden,
    places_of,
    target_positions,
    without_defaults,
)  # fmt: skip
from sql.bind.merging import merge
from sql.bind.namespace import Namespace, Range, Visible
from sql.bind.positions import column_at
from sql.bind.query import bind_query
from sql.bind.returning import check_steady, returning, target_rows
from sql.bind.row_security import present_checks, reads, refuse_restricted, row_checks
from sql.bind.scope import NameScope
from sql.bind.target import Target
from sql.bind.view_targets import bind_target, layer_exprs, view_range
from sql.catalog.keys import Index
from sql.statements.statements import Branch, DataChange, Delete, Insert, OnConflict, Update, deferrable_arbiter
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.constant_items import ConstantRows


def bind_change(env: Environment, node: nodes.Change) -> DataChange:
    """A data-modifying statement. Raises what ``insert``, ``update``, ``delete`` and ``merge`` raise."""
    match node:
        case nodes.InsertStatement():
            return insert(env, node)
        case nodes.UpdateStatement():
            return update(env, node)
        case nodes.DeleteStatement():
            return delete(env, node)
        case nodes.MergeStatement():
            return merge(env, node)
        case _:
            assert_never(node)


def insert(env: Environment, node: nodes.InsertStatement) -> Insert:
    """INSERT: rows in the table's column order, defaults filled in and casts applied. Raises 42601, 42701, 42703,
    42804, 428C9, and what is wrong with the table, the source, RETURNING or ON CONFLICT."""
    target = bind_target(env, node.table, "insert")
    table = target.table
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    positions = target_positions(target, _named_once(node))
    source = node.source
    finishing: Finishing | None = None
    if source is None:
        target.need("a")
        defaults = defaults_of(env, target, range(len(table.columns)), node.overriding)
        rel: Rel = values_rel((tuple(defaults.values()),))
    elif node.parts:
        rel, finishing = _insert_parts(env, target, source, node)
    elif isinstance(source.body, nodes.ValuesList) and _is_bare(source) and _has_stars(source.body):
        _, select = _as_select(tuple(range(len(source.body.rows[0]))), source, source.body.rows[0])
        rel, finishing = _insert_query(env, target, positions, select, node)
    elif isinstance(source.body, nodes.ValuesList) and _is_bare(source):
        values = _insert_values(env, target, positions, source.body, node)
        if values is None:
            given, select = _as_select(positions, source, source.body.rows[0])
            rel, finishing = _insert_query(env, target, given, select, node)
        else:
            rel = values
    else:
        rel, finishing = _insert_query(env, target, positions, source, node)
    names = Namespace() if node.returning is None else _inserted_names(env, target, node.table)
    exprs, columns = returning(env, node.returning, names)
    conflict = None if node.conflict is None else _on_conflict(env, target, node.table.alias, node.conflict)
    on = node.conflict
    sought = on is not None and (on.inferred or on.constraint is not None or on.assignments is not None)
    read = sought or node.returning is not None
    layers = (*row_checks(env, table, target.base, "a", reads=read), *target.layers)
    return Insert(table, rel, exprs, columns, conflict, finishing, env.oids, layers)


def _inserted_names(env: Environment, target: Target, name: nodes.TableName) -> Namespace:
    """The names of the rows that INSERT adds: the table's columns, then its tableoid if the statement uses one."""
    table = target.table
    if target.layers:
        return view_range(target, len(table.columns) + env.oids, name.alias or name.name)
    visible = _visible(target, 0)
    range_ = Range(name.alias or table.name, visible, table.schema_name, table)
    if env.oids:
        oid = Visible(TABLEOID, Column(len(table.columns), OID, False), table.oid, TABLEOID_ATTRIBUTE)
        range_ = replace(range_, oid=oid)
    return Namespace(visible, (range_,))


def _on_conflict(env: Environment, target: Target, alias: str | None, node: nodes.ConflictClause) -> OnConflict:
    """ON CONFLICT: the present row's columns are followed by those of the proposed row, ``excluded``; then come the
    columns of the layers, of both rows."""
    arbiters = _arbiters(env, target, node)
    if any(i.deferrable for i in arbiters) and (node.inferred or node.constraint is not None):
        raise deferrable_arbiter(node.at)
    if node.assignments is not None and any(i.operators for i in arbiters):
        raise SqlError("42809", "ON CONFLICT DO UPDATE not supported with exclusion constraints")
    if node.assignments is None:
        return OnConflict(arbiters)
    table, relation = target.table, target.relation
    if table.partitioning is not None:
        message = "ON CONFLICT DO UPDATE is not supported with row-level security of partitioned tables"
        refuse_restricted(env, table, target.base, message, "Use INSERT and UPDATE instead.")
    width = len(table.columns)
    if target.layers:
        last = 2 * width + len(layer_exprs(target)) - len(target.layers[-1].exprs)
        present, proposed = _visible(target, last), _visible(target, last + len(layer_exprs(target)))
    else:
        present, proposed = _visible(target, 0), _visible(target, width)
    ranges = (Range(alias or relation.name, present, relation.schema_name, relation), Range("excluded", proposed))
    binder = ExpressionBinder(env, NameScope(Namespace((*present, *proposed), ranges), clause="UPDATE"), "UPDATE")
    new = new_values(binder, target, node.assignments)
    changed = tuple(new.get(i, Column(i, c.type, c.nullable)) for i, c in enumerate(table.columns))
    where = None if node.where is None else binder.condition(node.where, "WHERE")
    for expr in (*changed, *(() if where is None else (where,))):
        check_steady(expr, "ON CONFLICT DO UPDATE", node.at)
    existing = present_checks(env, table, target.base, "wr", "new row")
    updated = row_checks(env, table, target.base, "w", reads=True)
    return OnConflict(arbiters, changed, where, target.layers, env.oids, existing, updated)


def _arbiters(env: Environment, target: Target, node: nodes.ConflictClause) -> tuple[Index, ...]:
    """The unique indexes that the conflict target means, all if there is none. Raises 42703, 42704, 42P10, 42601."""
    table = target.table
    if node.constraint is not None:
        name = node.constraint[0]
        found = tuple(i for i in (*table.keys, *table.exclusions) if i.constraint and i.name == name)
        if not found:
            raise SqlError("42704", f'constraint "{name}" for table "{target.relation.name}" does not exist')
        target.need("r", (i for i, place in enumerate(target.places) for k in found if place in k.columns))
        return found
    if node.inferred:
        found = _inferred(env, target, node)
        if not found:
            message = "there is no unique or exclusion constraint matching the ON CONFLICT specification"
            raise SqlError("42P10", message)
        return found
    if node.assignments is not None:
        raise SqlError(
            "42601", "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).", position=node.at + 1,
        )  # fmt: skip
    return (*table.unique, *table.exclusions)


def _inferred(env: Environment, target: Target, node: nodes.ConflictClause) -> tuple[Index, ...]:
    positions = _target_columns(target, node.columns)
    target.need("r", positions)
    places = [target.places[i] for i in positions]
    if (node.expressions or node.predicate is not None) and target.relation is not target.table:
        raise unsupported("ON CONFLICT with an expression or a predicate on a view", position=node.at + 1)
    return inferred(env, target.table, places, node.expressions, node.predicate)


def _target_columns(target: Target, columns: Sequence[tuple[str, int]]) -> list[int]:
    names = [c.name for c in target.relation.columns]
    for name, at in columns:
        if name not in names:
            raise SqlError("42703", f'column "{name}" does not exist', position=at + 1)
    return [names.index(name) for name, _ in columns]


def _has_stars(body: nodes.ValuesList) -> bool:
    """Whether it is one row in which ``t.*`` or ``(row).*`` stands for several values."""
    rows = () if isinstance(body.rows, ConstantRows) else body.rows
    return len(rows) == 1 and any(isinstance(e, nodes.Star | nodes.AllFields) for e in body.rows[0])


def _is_bare(query: nodes.Query) -> bool:
    """Whether the query is a body and nothing else."""
    return query.with_ is None and not query.order and query.limit is None and query.offset is None


def _insert_values(
    env: Environment, target: Target, positions: tuple[int, ...], body: nodes.ValuesList, node: nodes.InsertStatement
) -> Rel | None:
    """INSERT of VALUES, in which DEFAULT may stand for a value; None for a single row with set-returning functions."""
    constant = body.rows if isinstance(body.rows, ConstantRows) else None
    width = len(body.rows[0]) if constant is None else constant.width
    one_by_one = () if isinstance(body.rows, ConstantRows) else body.rows
    for row in one_by_one:
        if len(row) != width:
            raise SqlError("42601", "VALUES lists must all be the same length", position=row[0].at + 1)
    extra = node.at if width <= len(positions) else body.rows[0][len(positions)].at
    positions = check_width(positions, width, node.columns, extra)
    target.need("a", positions)
    columns = target.table.columns
    given = list(positions) if constant is not None else without_defaults(positions, one_by_one)
    places = dict(zip(given, places_of(target, given), strict=True))
    for place in places.values():
        check_given(columns[place], node.overriding)
    taken = places
    if node.overriding is not None:
        taken = {i: place for i, place in places.items() if not overridden(columns[place], node.overriding)}
    others = sorted(set(range(len(columns))).difference(taken.values()))
    rest = defaults_of(env, target, others, node.overriding)
    made = None if constant is None else inserted(env, constant, columns, [taken.get(i) for i in positions], rest)
    if made is not None:
        return made
    defaults: dict[int, Scalar] = {}
    scope = NameScope(clause="VALUES", functions=[] if len(body.rows) == 1 else None)
    binder = ExpressionBinder(env, scope, "VALUES")
    rows: list[tuple[Scalar, ...]] = []
    for row in body.rows:
        values = dict(rest)
        for i, expr in zip(positions, row, strict=True):
            if i not in taken:
                continue
            place = taken[i]
            if isinstance(expr, nodes.Default):
                if place not in defaults:
                    defaults[place] = default_of(env, target, place, node.overriding)
                values[place] = defaults[place]
            else:
                values[place] = given_value(binder, columns[place], expr)
        rows.append(tuple(values[i] for i in range(len(columns))))
    return None if scope.functions else values_rel(rows)


def _named_once(node: nodes.InsertStatement) -> tuple[tuple[str, int], ...]:
    """The columns given values, once each where parts of them are."""
    if not node.parts:
        return node.columns
    whole = {name for (name, _), parts in zip(node.columns, node.parts, strict=True) if not parts}
    found: dict[str, tuple[str, int]] = {}
    for name, at in node.columns:
        if name in found and name in whole:
            raise SqlError("42701", f'column "{name}" specified more than once', position=at + 1)
        found.setdefault(name, (name, at))
    return tuple(found.values())


def _insert_parts(
    env: Environment, target: Target, source: nodes.Query, node: nodes.InsertStatement
) -> tuple[Rel, Finishing | None]:
    """INSERT that gives values to parts of columns, whose other parts are NULL: a query that makes the columns."""
    names = _named_once(node)
    binder = ExpressionBinder(env, NameScope(clause="INSERT"), "INSERT")
    if isinstance(source.body, nodes.ValuesList) and _is_bare(source):
        rows = source.body.rows
        for row in rows:
            if len(row) != len(rows[0]):
                raise SqlError("42601", "VALUES lists must all be the same length", position=row[0].at + 1)
            for expr, parts, (_, at) in zip(row, node.parts, node.columns, strict=False):
                if isinstance(expr, nodes.Default) and parts:
                    place = "a subfield" if isinstance(parts[-1], nodes.FieldPart) else "an array element"
                    raise SqlError("0A000", f"cannot set {place} to DEFAULT", position=at + 1)
        if len(rows) > 1 or any(isinstance(expr, nodes.Default) for expr in rows[0]):
            return values_rel([_with_parts_given(env, target, binder, node, names, row) for row in rows]), None
        _, source = _as_select(tuple(range(len(rows[0]))), source, rows[0])
    bound = bind_query(env, source, None)
    check_width(tuple(range(len(node.columns))), bound.width, node.columns, node.at)
    if volatile.gives_volatile(bound):
        raise unsupported("INSERT of volatile values into parts of columns", position=node.at + 1)
    rel, given = _columns(finished(bound))
    ordered = _made_of_parts(env, target, binder, node, names, given)
    return Project(rel.input if isinstance(rel, Project) else rel, ordered), None


def _with_parts_given(
    env: Environment, target: Target, binder: ExpressionBinder, node: nodes.InsertStatement,
    names: Sequence[tuple[str, int]], row: Sequence[nodes.Expr],
) -> tuple[Scalar, ...]:  # fmt: skip
    """One row of VALUES that are given to parts of columns."""
    check_width(tuple(range(len(node.columns))), len(row), node.columns, row[-1].at)
    values = [None if isinstance(expr, nodes.Default) else binder.bind(expr) for expr in row]
    return _made_of_parts(env, target, binder, node, names, values)


def _made_of_parts(
    env: Environment, target: Target, binder: ExpressionBinder, node: nodes.InsertStatement,
    names: Sequence[tuple[str, int]], given: Sequence[Scalar | None],
) -> tuple[Scalar, ...]:  # fmt: skip
    """The table's columns with the given values in their parts; None stands for a column's default."""
    positions = target_positions(target, tuple(names))
    target.need("a", positions)
    columns, places = target.table.columns, places_of(target, positions)
    exprs = defaults_of(env, target, [i for i in range(len(columns)) if i not in places], node.overriding)
    for (name, _), place in zip(names, places, strict=True):
        items = []
        for (n, at), parts, value in zip(node.columns, node.parts, given, strict=True):
            if n == name and value is not None:
                items.append((parts, value, at))
        if not items:
            exprs[place] = target.default(env, place)
            continue
        check_given(columns[place], node.overriding)
        exprs[place] = with_parts(binder, columns[place], Literal(None, columns[place].type), items)
    return tuple(exprs[i] for i in range(len(columns)))


def _as_select(
    positions: tuple[int, ...], source: nodes.Query, row: tuple[nodes.Expr, ...]
) -> tuple[tuple[int, ...], nodes.Query]:
    """A row of VALUES as a SELECT, and the columns that it gives."""
    given = [(i, expr) for i, expr in zip(positions, row, strict=False) if not isinstance(expr, nodes.Default)]
    targets = tuple(nodes.Target(expr, None, expr.at) for _, expr in given)
    select = nodes.Select(targets, (), None, None, None, None, source.at)
    return tuple(i for i, _ in given), nodes.Query(select, source.at)


def _insert_query(
    env: Environment, target: Target, positions: tuple[int, ...], source: nodes.Query, node: nodes.InsertStatement
) -> tuple[Rel, Finishing | None]:
    """INSERT of a query: the rows, and the ``Finishing`` where volatile functions are called, in the query's order."""
    bound = bind_query(env, source, None)
    where = [column_at(source.body, i) for i in range(bound.width)]
    extra = where[min(len(positions), len(where) - 1)] if where else node.at
    positions = check_width(positions, bound.width, node.columns, extra)
    target.need("a", positions)
    columns = target.table.columns
    places = places_of(target, positions)
    absent = [i for i, c in enumerate(columns) if i not in places or overridden(c, node.overriding)]
    defaults = defaults_of(env, target, absent, node.overriding)
    late = volatile.gives_volatile(bound) or any(map(volatile.is_volatile, defaults.values()))
    if late and not bound.order:
        rel, order = in_order(bound.rel, limited=bound.limit is not None)
        bound = replace(bound, rel=rel, order=order)
    rel, given = _late_columns(bound) if late else _columns(finished(bound))
    exprs = dict(defaults)
    for j, i in enumerate(places):
        check_given(columns[i], node.overriding)
        if i not in defaults:
            exprs[i] = assign(env, given[j], columns[i].type, columns[i].name, where[j])
    ordered = tuple(exprs[i] for i in range(len(columns)))
    if late:
        return rel, Finishing(bound.order, project=ordered)
    return Project(rel.input if isinstance(rel, Project) else rel, ordered), None


def _columns(rel: Rel) -> tuple[Rel, tuple[Scalar, ...]]:
    """A query's plan, and its columns as expressions over the input of its projection."""
    return rel, rel.exprs if isinstance(rel, Project) else rel_columns(rel)


def _late_columns(bound: BoundQuery) -> tuple[Rel, tuple[Scalar, ...]]:
    """The query's whole plan, and its columns as expressions over it that are computed for each row."""
    early, given = volatile.postponed(bound)
    return sliced(early), given


def _visible(target: Target, base: int) -> tuple[Visible, ...]:
    """The target's columns, which start at column ``base``."""
    relation = target.relation
    return tuple(
        Visible(c.name, Column(base + i, c.type, c.nullable), relation.oid, i + 1, use=target.use)
        for i, c in enumerate(relation.columns)
    )


def _changed(
    env: Environment,
    target: Target,
    node: nodes.UpdateStatement | nodes.DeleteStatement,
    others: Sequence[nodes.TableRef],
    command: str,
) -> tuple[Rel, Namespace, tuple[Branch, ...], int]:
    """The rows to change joined with FROM or USING, their names, and the branches and width of the table's rows."""
    rel, namespace, branches, width = target_rows(env, target, node.table, command)
    rel, namespace = with_others(env, (rel, namespace), others, None, namespace.ranges[0])
    if node.where is not None:
        scope = NameScope(namespace, clause="WHERE")
        rel = Filter(rel, ExpressionBinder(env, scope, "WHERE").condition(node.where, "WHERE"))
    return rel, namespace, branches, width


def update(env: Environment, node: nodes.UpdateStatement) -> Update:
    """UPDATE: the old row, the new row, then the columns of the layers and of FROM."""
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    target = bind_target(env, node.table, "update")
    read = reads((node.from_, node.where, node.returning, node.assignments)) or bool(node.from_)
    rel, namespace, branches, width = _changed(env, target, node, node.from_, "rw" if read else "w")
    new = new_values(ExpressionBinder(env, NameScope(namespace, clause="UPDATE"), "UPDATE"), target, node.assignments)
    old = rel_columns(rel)
    changed = tuple(new.get(i, old[i]) for i in range(width))
    source = Project(rel, (*old[:width], *changed, *old[width:]))
    exprs, columns = returning(env, node.returning, namespace)
    assigned = frozenset(target.table.columns[i].name for i in new if i < len(target.table.columns))
    layers = (*row_checks(env, target.table, target.base, "w", reads=read), *target.layers)
    return Update(target.table, source, exprs, columns, branches, width if branches else 0, layers, assigned)


def delete(env: Environment, node: nodes.DeleteStatement) -> Delete:
    """DELETE: the old row, then the columns of the layers and of USING."""
    if node.with_ is not None:
        env = cte.with_ctes(env, node.with_, None)
    target = bind_target(env, node.table, "delete")
    target.need("d")
    read = reads((node.where, node.returning)) or bool(node.using)
    rel, namespace, branches, width = _changed(env, target, node, node.using, "rd" if read else "d")
    exprs, columns = returning(env, node.returning, namespace)
    return Delete(target.table, rel, exprs, columns, branches, width if branches else 0)
