"""WITH: plain, RECURSIVE and MUTUALLY RECURSIVE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import ColumnType, Schema
from planner.expr.scalar import Column
from planner.logical.nodes import Get, Project, Recursive, Reference, Rel, schema
from planner.transform.apart import apart
from sql.bind.bound_query import BoundQuery, finished
from sql.bind.coerce import castable, try_common_type
from sql.bind.environment import CteBinding, Environment
from sql.bind.positions import column_at, start
from sql.bind.recursion import check_recursion, mentions
from sql.bind.scope import NameScope
from sql.bind.search_cycle import added
from sql.bind.setops import combine_types
from sql.bind.subquery import bind_ordered, convert, resolve_columns
from sql.syntax.nodes import queries as nodes
from storage.types.type_names import format_type

NULL_ATTEMPTS: Final = 2
"""How often a WITH MUTUALLY RECURSIVE is bound to find its NOT NULL columns, before all are taken as nullable."""


def with_ctes(env: Environment, with_: nodes.With, outer: NameScope | None) -> Environment:
    """The environment with the CTEs of WITH in scope. Raises 42712, 42P10, 42P19, 0A000."""
    _check_names(with_)
    for cte in _in_order(with_):
        if not isinstance(cte.query, nodes.Query):
            env = env.with_ctes({**env.ctes, cte.name: _change(env, with_, cte)})
            continue
        query = cte.query
        recursive = with_.recursive and mentions(query, cte.name)
        if (cte.search or cte.cycle) and not recursive:
            raise SqlError("42601", "WITH query is not recursive", position=cte.at + 1)
        if recursive:
            binding = _recursive(env, cte, query, outer)
        else:
            table, order = bind_ordered(env, query, outer)
            rel = apart(table.rel, env.bindings)  # every reference reads the same values
            binding = CteBinding(cte.name, _columns(cte, table.names), rel, depth=_depth(outer), order=order)
        env = env.with_ctes({**env.ctes, cte.name: binding})
    return env


def _check_names(with_: nodes.With) -> None:
    """Raises 42712 where two CTEs have one name."""
    names = [c.name for c in with_.ctes]
    for cte in with_.ctes:
        if names.count(cte.name) > 1:
            message = f'WITH query name "{cte.name}" specified more than once'
            raise SqlError("42712", message, position=cte.at + 1)


def _depth(outer: NameScope | None) -> int:
    return 0 if outer is None else outer.depth


def _change(env: Environment, with_: nodes.With, cte: nodes.Cte) -> CteBinding:
    """A data-modifying statement, added to the environment's; its CTE is a relation of the rows it returns. Raises
    0A000, 42P19."""
    if with_ is not env.top:
        message = "WITH clause containing a data-modifying statement must be at the top level"
        raise SqlError("0A000", message, position=cte.at + 1)
    if with_.recursive and mentions(cte.query, cte.name):
        message = f'recursive query "{cte.name}" must not contain data-modifying statements'
        raise SqlError("42P19", message, position=cte.at + 1)
    assert not isinstance(cte.query, nodes.Query), "a data-modifying statement"
    statement = env.bind_change(cte.query)
    relation = -next(env.bindings)
    env.changes.append((relation, statement))
    row = tuple(ColumnType(e.type, True) for e in statement.returning or ())
    names = tuple(c.name for c in statement.columns)
    silent = statement.returning is None
    return CteBinding(cte.name, names if silent else _columns(cte, names), Get(relation, row), silent=silent)


def _query(cte: nodes.Cte) -> nodes.Query:
    if not isinstance(cte.query, nodes.Query):
        raise unsupported("data-modifying statements in WITH", position=cte.at + 1)
    return cte.query


def _columns(cte: nodes.Cte, names: tuple[str, ...]) -> tuple[str, ...]:
    """The columns' names: those after the CTE's name first. Raises 42P10."""
    if len(cte.columns) > len(names):
        message = f'WITH query "{cte.name}" has {len(names)} columns available but {len(cte.columns)} columns specified'
        raise SqlError("42P10", message, position=cte.at + 1)
    return (*cte.columns, *names[len(cte.columns) :])


def _in_order(with_: nodes.With) -> Sequence[nodes.Cte]:
    """The CTEs, each after those it reads: WITH RECURSIVE allows forward references. Raises 0A000."""
    if not with_.recursive:
        return with_.ctes
    needs = {c.name: {o.name for o in with_.ctes if o.name != c.name and mentions(c.query, o.name)} for c in with_.ctes}
    done: list[nodes.Cte] = []
    while len(done) < len(with_.ctes):
        placed = {c.name for c in done}
        ready = [c for c in with_.ctes if c.name not in placed and needs[c.name] <= placed]
        if not ready:
            waiting = next(c for c in with_.ctes if c.name not in placed)
            raise SqlError(
                "0A000", "mutual recursion between WITH items is not implemented",
                hint="Use WITH MUTUALLY RECURSIVE.", position=waiting.at + 1,
            )  # fmt: skip
        done.append(ready[0])
    return done


def _recursive(env: Environment, cte: nodes.Cte, query: nodes.Query, outer: NameScope | None) -> CteBinding:
    """A CTE of WITH RECURSIVE that reads itself. A column is NOT NULL if it is in both terms."""
    union = check_recursion(cte, query)
    inner = with_ctes(env, query.with_, outer) if query.with_ is not None else env
    base_query = nodes.Query(union.left, cte.at)
    base = resolve_columns(inner, inner.bind_query(base_query, outer))
    base_rel = finished(base)
    names = _columns(cte, tuple(c.name for c in base.columns))
    new = added(inner, cte, union.left, names)
    right = union.right if new is None else new.reading(union.right)
    if new is not None:
        base_rel, names = new.base(base_rel), (*names, *new.new)
    binding = next(env.bindings)
    columns = schema(base_rel)
    if env.notes is not None:
        env.notes.query(union, [c.type for c in columns])
    while True:
        hidden = 0 if new is None else len(new.new)
        working = CteBinding(cte.name, names, Reference(binding, columns), True, hidden=hidden)
        seeing = inner.with_ctes({**inner.ctes, cte.name: working})
        step = seeing.bind_query(nodes.Query(right, cte.at), outer)
        step_rel = _like_base(seeing, cte, union, columns, step)
        if new is not None:
            step_rel = new.step(step_rel)
        widened = _widened(columns, schema(step_rel))
        if widened == columns:
            break
        columns = widened
    base_rel, step_rel = with_schema(base_rel, columns), with_schema(step_rel, columns)
    rel = Recursive(binding, base_rel, step_rel, union.all, columns, name=cte.name)
    return CteBinding(cte.name, names, rel, depth=_depth(outer))


def _like_base(env: Environment, cte: nodes.Cte, union: nodes.SetQuery, columns: Schema, step: BoundQuery) -> Rel:
    """The recursive term as the base's types. Raises 42601, 42804, worded as in Postgres."""
    rel = finished(step)
    found = schema(rel)
    if len(found) != len(columns):
        message = "each UNION query must have the same number of columns"
        raise SqlError("42601", message, position=start(union.right) + 1)
    for i, (a, b) in enumerate(zip(columns, found, strict=True)):
        overall = try_common_type([a.type, b.type])
        if overall is None or overall != a.type or not castable(b.type, a.type, "implicit"):
            if overall is None:
                combine_types(union, i, a.type, b.type)
            shown = format_type(overall) if overall is not None else format_type(b.type)
            raise SqlError(
                "42804",
                f'recursive query "{cte.name}" column {i + 1} has type {format_type(a.type)} in non-recursive term '
                f"but type {shown} overall",
                hint="Cast the output of the non-recursive term to the correct type.",
                position=column_at(union.left, i) + 1,
            )
    return convert(env, rel, [c.type for c in columns], "implicit")


def with_schema(rel: Rel, columns: Schema) -> Rel:
    """The relation with its columns as nullable as ``columns``."""
    if schema(rel) == columns:
        return rel
    return Project(rel, tuple(Column(i, c.type, c.nullable) for i, c in enumerate(columns)))


def mutually_recursive(
    env: Environment, with_: nodes.With, outer: NameScope | None
) -> tuple[Environment, tuple[tuple[int, Rel], ...], tuple[Schema, ...]]:
    """WITH MUTUALLY RECURSIVE: the environment for the body, and the bindings and their schemas for ``LetRec``.

    All bindings start empty, so a column is NOT NULL if its values are on the assumption that it is. Raises 42712,
    42601, 42804.
    """
    _check_names(with_)
    ids = tuple(next(env.bindings) for _ in with_.ctes)
    schemas = tuple(tuple(ColumnType(env.type(t), False) for t in cte.types) for cte in with_.ctes)
    for attempt in range(NULL_ATTEMPTS + 1):
        if attempt == NULL_ATTEMPTS:
            schemas = tuple(tuple(ColumnType(c.type, True) for c in columns) for columns in schemas)
        inner = _with_references(env, with_, ids, schemas)
        values = [_value(inner, cte, columns, outer) for cte, columns in zip(with_.ctes, schemas, strict=True)]
        widened = tuple(_widened(columns, schema(rel)) for columns, rel in zip(schemas, values, strict=True))
        if widened == schemas:
            break
        schemas = widened
    bindings = zip(ids, map(with_schema, values, schemas), strict=True)
    return inner, tuple(bindings), schemas


def _with_references(
    env: Environment, with_: nodes.With, ids: tuple[int, ...], schemas: tuple[Schema, ...]
) -> Environment:
    made = {
        cte.name: CteBinding(cte.name, cte.columns, Reference(binding, columns))
        for cte, binding, columns in zip(with_.ctes, ids, schemas, strict=True)
    }
    return env.with_ctes({**env.ctes, **made})


def _widened(columns: Schema, found: Schema) -> Schema:
    return tuple(ColumnType(a.type, a.nullable or b.nullable) for a, b in zip(columns, found, strict=True))


def _value(env: Environment, cte: nodes.Cte, columns: Schema, outer: NameScope | None) -> Rel:
    """A binding's query as the declared types. Raises 42601, 42804, 0A000."""
    rel = finished(env.bind_query(_query(cte), outer))
    found = schema(rel)
    if len(found) != len(columns):
        message = f'WITH query "{cte.name}" declares {len(columns)} columns but has {len(found)}'
        raise SqlError("42601", message, position=cte.at + 1)
    for declared, actual, name in zip(columns, found, cte.columns, strict=True):
        if not castable(actual.type, declared.type, "assignment"):
            message = f'column "{name}" of WITH query "{cte.name}" is declared {format_type(declared.type)} '
            raise SqlError("42804", message + f"but is {format_type(actual.type)}", position=cte.at + 1)
    return convert(env, rel, [c.type for c in columns], "assignment")
