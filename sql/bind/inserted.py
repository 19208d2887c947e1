"""The values of rows that INSERT and MERGE add: which column takes which expression, defaults and OVERRIDING."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from planner.expr.scalar import Scalar
from sql.bind.coerce import assign
from sql.bind.environment import Binder, Environment
from sql.bind.positions import position
from sql.bind.target import Target, column_default, column_positions
from sql.catalog.catalog import TableColumn
from sql.syntax.nodes import queries as nodes

Names = Sequence[tuple[str, int]]


def target_positions(target: Target, columns: Names) -> tuple[int, ...]:
    """The positions in the target's relation that are given values: the named ones, or all."""
    return column_positions(target.relation, columns) if columns else tuple(range(len(target.relation.columns)))


def check_width(positions: tuple[int, ...], found: int, columns: Names, at: int) -> tuple[int, ...]:
    """The target columns for so many expressions. Raises 42601."""
    if found > len(positions):
        raise SqlError("42601", "INSERT has more expressions than target columns", position=at + 1)
    if found < len(positions) and columns:
        raise SqlError("42601", "INSERT has more target columns than expressions", position=columns[found][1] + 1)
    return positions[:found]


def places_of(target: Target, positions: Sequence[int]) -> tuple[int, ...]:
    """Where in the table these columns of the relation are. Raises 0A000, 42601."""
    if target.relation is target.table:
        return tuple(positions)
    found: dict[int, None] = {}
    for i in positions:
        place = target.assigned(i, "insert into")
        if place in found:
            name = target.table.columns[place].name
            raise SqlError("42601", f'multiple assignments to same column "{name}"')
        found[place] = None
    return tuple(found)


def overridden(column: TableColumn, overriding: str | None) -> bool:
    """Whether OVERRIDING USER VALUE replaces the given values of an identity column."""
    return overriding == "user" and column.generated is not None and column.generated.identity


def check_given(column: TableColumn, overriding: str | None) -> None:
    """Raises 428C9 for a generated column, and for an identity column GENERATED ALWAYS unless OVERRIDING is written."""
    if column.expression is not None:
        message = f'cannot insert a non-DEFAULT value into column "{column.name}"'
        raise SqlError("428C9", message, f'Column "{column.name}" is a generated column.')
    if column.generated is not None and column.generated.kind == "always" and overriding is None:
        raise SqlError(
            "428C9", f'cannot insert a non-DEFAULT value into column "{column.name}"',
            f'Column "{column.name}" is an identity column defined as GENERATED ALWAYS.',
            "Use OVERRIDING SYSTEM VALUE to override.",
        )  # fmt: skip


def given_value(binder: Binder, column: TableColumn, node: nodes.Expr) -> Scalar:
    """An expression as a column's value."""
    return assign(binder.env, binder.bind(node), column.type, column.name, position(node))


def without_defaults(positions: tuple[int, ...], rows: Sequence[tuple[nodes.Expr, ...]]) -> list[int]:
    """Those of the positions for which some row has another value than DEFAULT."""
    return [i for n, i in enumerate(positions) if any(not isinstance(row[n], nodes.Default) for row in rows)]


def default_of(env: Environment, target: Target, place: int, overriding: str | None) -> Scalar:
    """The default of a column of the table; that of a view is a value given. Raises 428C9."""
    column = target.table.columns[place]
    if target.view_default(place) is None or overridden(column, overriding):
        return column_default(env, column)
    check_given(column, overriding)
    return target.default(env, place)


def defaults_of(env: Environment, target: Target, places: Sequence[int], overriding: str | None) -> dict[int, Scalar]:
    """The defaults of these columns of the table."""
    return {i: default_of(env, target, i, overriding) for i in places}
