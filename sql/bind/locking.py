"""FOR UPDATE and SHARE: which rows of which tables a query locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ivm.errors import SqlError, unsupported
from planner.expr.scalar import Scalar
from sql.bind.environment import Environment
from sql.bind.namespace import Namespace, Range
from sql.catalog.catalog import CatalogReader, Relation, RelationKind
from sql.statements.queries import LockedRows
from sql.syntax.nodes import queries as nodes


def check_locked(query: nodes.Query) -> None:
    """Whether rows of the query can be told apart. Raises 0A000, and 42P01 for a table that is not in FROM."""
    body = query.body
    for locking in query.locking:
        if not isinstance(body, nodes.Select):
            raise _not_with(locking, "UNION/INTERSECT/EXCEPT")
        having, distinct = body.having is not None, body.distinct is not None
        for name, present in {"DISTINCT": distinct, "GROUP BY": bool(body.group), "HAVING": having}.items():
            if present:
                raise _not_with(locking, f"{name} clause")
        known = _names(body.from_)
        for table, at in locking.tables:
            if table not in known:
                message = f'relation "{table}" in {locking.clause} clause not found in FROM clause'
                raise SqlError("42P01", message, position=at + 1)


def _not_with(locking: nodes.Locking, clause: str) -> SqlError:
    return SqlError("0A000", f"{locking.clause} is not allowed with {clause}", position=locking.at + 1)


def _names(refs: Sequence[nodes.TableRef]) -> set[str | None]:
    """The names under which FROM's items are known."""
    todo, known = list(refs), set[str | None]()
    while todo:
        ref = todo.pop()
        if not isinstance(ref, nodes.JoinedTable):
            known.add(ref.alias or (ref.name if isinstance(ref, nodes.TableName) else None))
        elif ref.alias is None:
            todo += [ref.left, ref.right]
    return known


def note_locked(env: Environment, query: nodes.Query) -> None:
    """FOR UPDATE needs UPDATE on the relations that it locks, or on some of their columns."""
    if env.asking is None:
        return
    for ref in locked_tables(query):
        relation = None if ref.name in env.ctes else env.catalog.resolve(ref.schema_name, ref.name)
        for use in env.asking.uses:
            if relation is not None and use.relation.id == relation.id and use.role == env.asking.role:
                use.need("w")


def locked_tables(query: nodes.Query) -> Iterator[nodes.TableName]:
    """The tables in FROM that FOR UPDATE or SHARE locks."""
    if not query.locking or not isinstance(query.body, nodes.Select):
        return
    wanted = {name for locking in query.locking for name, _ in locking.tables}
    every = any(not locking.tables for locking in query.locking)
    todo = list(query.body.from_)
    while todo:
        ref = todo.pop()
        if isinstance(ref, nodes.JoinedTable):
            todo += [ref.left, ref.right]
        elif isinstance(ref, nodes.TableName) and (every or (ref.alias or ref.name) in wanted):
            yield ref


def locked_rows(
    env: Environment, namespace: Namespace, lockings: Sequence[nodes.Locking], place: Callable[[Scalar], int]
) -> tuple[LockedRows, ...]:
    """What the clauses lock among the ranges of FROM; ``place`` adds a column to the query's rows and gives its number.

    Tables in subqueries and views, and those that others inherit from, are locked as a whole. Raises 0A000.
    """
    found: list[LockedRows] = []
    for locking in lockings:
        wanted = {name for name, _ in locking.tables}
        for each in namespace.ranges:
            if not wanted or each.alias in wanted:
                found += _locked(env, each, locking, place, named=bool(wanted))
    return tuple(found)


def _locked(
    env: Environment, each: Range, locking: nodes.Locking, place: Callable[[Scalar], int], *, named: bool
) -> list[LockedRows]:
    relation = each.relation
    if each.padded:
        message = f"{locking.clause} cannot be applied to the nullable side of an outer join"
        raise SqlError("0A000", message, position=locking.at + 1)
    if relation is None:
        if named:
            raise unsupported(f"{locking.clause} of a subquery", position=locking.at + 1)
        return []
    if relation.kind is RelationKind.TABLE and not relation.children and len(each.columns) == len(relation.columns):
        columns = tuple(place(column.expr) for column in each.columns)
        return [LockedRows(relation, columns, locking.strength, locking.wait)]
    if relation.kind is RelationKind.MATERIALIZED_VIEW:
        message = f'cannot lock rows in materialized view "{relation.name}"'
        raise SqlError("42809", message, position=locking.at + 1)
    return [LockedRows(table, None, locking.strength, locking.wait) for table in _tables(env.catalog, relation)]


def _tables(catalog: CatalogReader, relation: Relation) -> list[Relation]:
    """The tables whose rows a relation shows."""
    todo, seen = [relation], dict[int, Relation]()
    while todo:
        one = todo.pop()
        if one.id not in seen:
            seen[one.id] = one
            todo += catalog.below(one)
            if one.kind is RelationKind.VIEW:
                todo += [found for i in one.dependencies if (found := catalog.by_id(i)) is not None]
    return [r for r in seen.values() if r.kind is RelationKind.TABLE]
