"""ARRAY[…] and subscripts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ivm.errors import SqlError, unsupported
from ivm.words import INT4, JSONB, TEXT, Kind, SqlType
from planner.expr.functions.array import LEFT_OUT
from planner.expr.functions.library import overloads
from planner.expr.scalar import Call, Literal, Scalar
from sql.bind.coerce import cast, castable, common_type, resolve_unknown, type_name
from sql.bind.environment import Binder
from sql.bind.positions import position
from sql.catalog.column_types import array_of
from sql.syntax.nodes import queries as nodes
from storage.types.arrays import Bounded, bounded, check_dimensions, lower_bounds, shape


def array(b: Binder, node: nodes.ArrayExpr, target: SqlType | None = None) -> Scalar:
    """ARRAY[…], nested for more dimensions. ``target``: the type of a cast directly around it. Raises 42P18, 42804,
    2202E, 54000, 0A000."""
    _check_dimensions(node)
    if target is not None and target.kind is not Kind.ARRAY:
        return cast(b.env, array(b, node), target, "explicit", node.at)
    nested = [isinstance(i, nodes.ArrayExpr) for i in node.items]
    if not node.items:
        if target is None:
            raise SqlError(
                "42P18", "cannot determine type of empty array",
                hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].", position=node.at + 1,
            )  # fmt: skip
        return Literal((), target)
    if any(nested):
        items = [array(b, i, target) if isinstance(i, nodes.ArrayExpr) else b.bind(i) for i in node.items]
    else:
        items = [b.bind(i) for i in node.items]
    positions = [i.at for i in node.items]
    if target is not None and not any(nested):
        assert target.element is not None
        element = target.element
        items = [cast(b.env, i, element, "explicit", at) for i, at in zip(items, positions, strict=True)]
        return _constructed(items, target, node.at)
    common = common_type([i.type for i in items], "ARRAY", positions)
    items = [cast(b.env, i, common, "implicit", at) for i, at in zip(items, positions, strict=True)]
    return _constructed(items, target or array_of(common), node.at)


def _check_dimensions(node: nodes.Expr) -> None:
    """Raises 54000 for more dimensions than an array may have."""
    depth = 0
    while isinstance(node, nodes.ArrayExpr) and node.items:
        depth, node = depth + 1, node.items[0]
        check_dimensions(depth)


def _constructed(items: list[Scalar], type_: SqlType, at: int) -> Scalar:
    """The array of these items, folded if all are literals. Raises 2202E where its rows differ in length, 54000."""
    if all(isinstance(i, Literal) for i in items):
        values: tuple[Any, ...] = tuple(i.value for i in items if isinstance(i, Literal))
        if items[0].type.kind is not Kind.ARRAY:
            return Literal(values, type_)
        values = tuple(() if v is None else v for v in values)
        if not any(values):  # Postgres has one empty array, of no dimension
            return Literal((), type_)
        assert type_.element is not None
        of_intervals = type_.element.kind is Kind.INTERVAL
        shapes = {(shape(v, of_intervals), lower_bounds(v, 0)) for v in values}
        check_dimensions(1 + max(len(lengths) for lengths, _ in shapes))
        if len(shapes) == 1:
            ((_, lower),) = shapes
            plain = tuple(tuple(v) if isinstance(v, Bounded) else v for v in values)
            return Literal(bounded(plain, (1, *lower)), type_)
        raise SqlError(
            "2202E", "multidimensional arrays must have array expressions with matching dimensions", position=at + 1
        )
    found = overloads("array")
    if not found:
        raise unsupported("ARRAY of expressions", position=at + 1)
    return Call(found[0].key, tuple(items), type_, False)


def jsonb_key(
    b: Binder, low: nodes.Expr | None, high: nodes.Expr | None, is_slice: bool, at: int
) -> tuple[Scalar, bool]:  # fmt: skip
    """A subscript of jsonb as text, and whether it is an integer (jsonb_subscript_transform). Raises 42804."""
    given = high or low
    if is_slice:
        where = at if given is None else position(given)
        raise SqlError("42804", "jsonb subscript does not support slices", position=where + 1)
    assert given is not None, "only a slice leaves bounds out"
    key = b.bind(given)
    is_integer = key.type.kind is not Kind.UNKNOWN and castable(key.type, INT4, "implicit")
    if key.type.kind is not Kind.UNKNOWN and is_integer is castable(key.type, TEXT, "implicit"):
        which = "only one type" if is_integer else "either"
        hint = f"jsonb subscript must be coercible to {which}{',' if is_integer else ''} integer or text."
        message = f"subscript type {type_name(key.type)} is not supported"
        raise SqlError("42804", message, hint=hint, position=position(given) + 1)
    if is_integer:
        key = cast(b.env, key, INT4, "implicit", position(given))
    return cast(b.env, key, TEXT, "explicit", position(given)), is_integer


def subscript(b: Binder, node: nodes.Subscript) -> Scalar:
    """``a[i]``, ``a[i][j]``, ``a[i:j]`` and slices of several dimensions, among which ``[i]`` is ``[1:i]``. Raises
    42804."""
    chain = [node]
    while chain[-1].chained and isinstance(inner := chain[-1].expr, nodes.Subscript):
        chain.append(inner)
    base = resolve_unknown(b.env, b.bind(chain[-1].expr), node.at)
    if base.type.kind is Kind.JSONB:
        keys = [jsonb_key(b, one.low, one.high, one.slice, one.at)[0] for one in reversed(chain)]
        (function, *_) = overloads("jsonb_subscript")
        return Call(function.key, (base, *keys), JSONB, True)
    if base.type.kind is Kind.NAME and len(chain) == 1 and not node.slice:
        (function, *_) = overloads("name_subscript")
        return Call(function.key, (base, _place(b, node.low)), SqlType(Kind.CHAR1), True)
    if base.type.kind is not Kind.ARRAY or base.type.element is None:
        raise SqlError(
            "42804", f"cannot subscript type {type_name(base.type)} because it does not support subscripting",
            position=chain[-1].expr.at + 1,
        )  # fmt: skip
    check_dimensions(len(chain))
    if not any(one.slice for one in chain):
        (function, *_) = overloads("array_subscript")
        places = [_place(b, one.low) for one in reversed(chain)]
        return Call(function.key, (base, *places), base.type.element, True)
    (function, *_) = overloads("array_slice")
    bounds = [bound for one in reversed(chain) for bound in _slice(b, one)]
    return Call(function.key, (base, *bounds), replace(base.type, domain=None, zero_based=False), True)


def _slice(b: Binder, node: nodes.Subscript) -> tuple[Scalar, Scalar]:
    """The bounds of a slice in one dimension; bounds left out reach beyond any array's own."""
    if not node.slice:
        return Literal(1, INT4), _place(b, node.low)
    low = Literal(LEFT_OUT[0], INT4) if node.low is None else _place(b, node.low)
    high = Literal(LEFT_OUT[1], INT4) if node.high is None else _place(b, node.high)
    return low, high


def _place(b: Binder, node: nodes.Expr | None) -> Scalar:
    assert node is not None, "only a slice leaves bounds out"
    return cast(b.env, b.bind(node), INT4, "assignment", node.at)
