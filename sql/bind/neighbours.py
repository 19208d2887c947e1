"""lag, lead and first_value: each row joined with another row of its partition, found by number or as the first.

Rows are numbered as by row_number(), which breaks ties by the rows' values, the same way for all functions of a window.
Cost of a change: for lag and lead that of row_number(), since all later rows get another number; for first_value a
search, and the partition's rows if another row becomes the first.
"""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, INT4, INT8, Kind
from planner.expr.functions.compare import NOT_DISTINCT
from planner.expr.scalar import And, Call, Case, Column, Literal, Scalar, SortKey
from planner.logical.nodes import Join, JoinKind, Numbering, Project, Rel, TopK, schema
from planner.logical.traversal import own_columns, rewrite
from sql.bind.coerce import cast, castable, resolve_unknown, try_common_type
from sql.bind.environment import Binder
from sql.bind.overloads import no_function
from sql.bind.scope import Neighbour
from sql.bind.walk import has_subquery
from sql.syntax.nodes import queries as nodes

NAMES: Final = frozenset({"lag", "lead", "first_value"})


def bind(b: Binder, node: nodes.Apply, name: str) -> Neighbour:
    """A call of lag, lead or first_value. Raises 42883, 42804, 0A000."""
    args = [b.bind(a) for a in node.args]
    unknown = no_function(name, [a.type for a in args], node.at)
    if node.star or not 1 <= len(args) <= (1 if name == "first_value" else 3):
        raise unknown
    if any(has_subquery(a) for a in args):
        raise unsupported(f"a subquery in {name}()", position=node.at + 1)
    if args[0].type.kind is Kind.UNKNOWN and len(args) < 3:
        message = "could not determine polymorphic type because input has type unknown"
        raise SqlError("42804", message, position=node.at + 1)
    value = resolve_unknown(b.env, args[0], node.at)
    if name == "first_value":
        return Neighbour(value, None, Literal(None, value.type))
    offset = 1
    if len(args) > 1:
        if not castable(args[1].type, INT4, "implicit"):
            raise unknown
        offset = _constant(cast(b.env, args[1], INT4, "implicit", node.at), name, node)
    offset = offset if name == "lag" else -offset
    if len(args) < 3:
        return Neighbour(value, offset, Literal(None, value.type))
    common = try_common_type([value.type, args[2].type])
    if common is None:
        raise unknown
    value, default = (cast(b.env, a, common, "implicit", node.at) for a in (value, args[2]))
    return Neighbour(value, offset, default)


def _constant(expr: Scalar, name: str, node: nodes.Apply) -> int:
    """The value of an integer constant, perhaps negated. Raises 0A000."""
    match expr:
        case Literal(value=int(value)):
            return value
        case Call(function=function, args=(Literal(value=int(value)),)) if function.startswith("-("):
            return -value
        case _:
            raise unsupported(f"an offset of {name}() that is no integer constant", position=node.at + 1)


def with_number(rel: Rel, numbered: TopK, at: int, wanted: tuple[Neighbour, ...]) -> Rel:
    """``rel`` with a column for each of ``wanted``, which have the same offset. ``numbered``: the window's rows with
    their numbers; ``at``: the column of ``rel`` with the row's own number."""
    width = len(schema(rel))
    number = len(schema(numbered.input)) + numbered.numbers.index(Numbering.ROW_NUMBER)
    offset = Literal(wanted[0].offset, INT8)
    theirs = Call("+(int8,int8)", (Column(width + number, INT8, False), offset), INT8, False)
    equal = Call("=(int8,int8)", (Column(at, INT8, False), theirs), BOOL, False)
    joined = Join(JoinKind.LEFT, rel, numbered, _all([*_same(numbered.keys, width), equal]))
    absent = Call("is null", (Column(width + number, INT8, True),), BOOL, False)
    values = tuple(Case(((absent, n.default),), _shifted(n.value, width), n.value.type) for n in wanted)
    return Project(joined, (*own_columns(schema(rel)), *values))


def with_first(
    rel: Rel, rows: Rel, partition: tuple[Scalar, ...], order: tuple[SortKey, ...], wanted: tuple[Neighbour, ...]
) -> Rel:
    """``rel`` with a column for each of ``wanted``, values of the partition's first row."""
    width = len(schema(rel))
    first = TopK(rows, partition, order, Literal(1, INT8), None)
    joined = Join(JoinKind.INNER, rel, first, _all(_same(partition, width)))
    return Project(joined, (*own_columns(schema(rel)), *(_shifted(n.value, width) for n in wanted)))


def _same(partition: tuple[Scalar, ...], width: int) -> list[Scalar]:
    """That the rows of both sides are of one partition."""
    return [Call(NOT_DISTINCT, (e, _shifted(e, width)), BOOL, False) for e in partition]


def _all(conditions: list[Scalar]) -> Scalar:
    if not conditions:
        return Literal(True, BOOL)
    return And(tuple(conditions)) if len(conditions) > 1 else conditions[0]


def _shifted(expr: Scalar, by: int) -> Scalar:
    """The expression over the right side's row, whose columns are nullable."""
    return rewrite(expr, lambda e: Column(e.index + by, e.type, True) if isinstance(e, Column) else None)
