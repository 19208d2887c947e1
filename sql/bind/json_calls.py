"""SQL/JSON's functions that have a syntax of their own."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from ivm.words import BOOL, JSON, JSONB, JSONPATH, TEXT, Kind, SqlType
from planner.expr.functions.json import constructors
from planner.expr.functions.jsonpath import sql_json
from planner.expr.functions.text.regex import TEXTS
from planner.expr.scalar import Call, Literal, Scalar
from sql.bind.coerce import cast, castable, resolve_unknown, type_name
from sql.bind.environment import Binder
from sql.bind.positions import position
from sql.syntax.nodes import queries as nodes

_DEFAULTS: Final = {sql_json.VALUE: TEXT, sql_json.QUERY: JSONB, sql_json.EXISTS: BOOL}


def json_call(b: Binder, node: nodes.JsonCall) -> Scalar:
    """A call of one of the functions. Raises 42804, 42846, 0A000."""
    match node.function:
        case "json_object" | "json_array":
            return _constructed(b, node)
        case "json":
            return _parsed(b, node)
        case "json_scalar":
            (value,) = node.args
            return Call("json scalar", (b.typed(value),), JSON, True)
        case "json_serialize":
            return _serialized(b, node)
        case "is json":
            return _tested(b, node)
        case _:
            value, path = node.args
            return path_call(b, node, b.bind(value), b.bind(path))


def _constructed(b: Binder, node: nodes.JsonCall) -> Scalar:
    target = JSON if node.returning is None else b.env.type(node.returning)
    made = JSONB if target.kind is Kind.JSONB else JSON
    absent, unique = "absent" in node.options, "unique" in node.options
    is_object = node.function == "json_object"
    key = constructors.object_key(made, absent, unique) if is_object else constructors.array_key(made, absent)
    args = tuple(b.typed(arg) for arg in node.args)
    call: Scalar = Call(key, args, made, False) if args else Literal("{}" if is_object else "[]", made)
    return call if target == made else cast(b.env, call, target, "explicit", node.at)


def _parsed(b: Binder, node: nodes.JsonCall) -> Scalar:
    """JSON(…)"""
    (value,) = node.args
    found = b.bind(value)
    if "unique" in node.options and found.type.kind is not Kind.JSONB:
        text = cast(b.env, found, TEXT, "explicit", position(value))
        return Call("json unique", (text,), JSON, text.nullable)
    return cast(b.env, found, JSON, "explicit", position(value))


def _serialized(b: Binder, node: nodes.JsonCall) -> Scalar:
    """JSON_SERIALIZE(…)"""
    (value,) = node.args
    found = b.bind(value)
    if found.type.kind is not Kind.JSONB:
        found = cast(b.env, found, JSON, "explicit", position(value))
    target = TEXT if node.returning is None else b.env.type(node.returning)
    return cast(b.env, found, target, "explicit", node.at)


def _tested(b: Binder, node: nodes.JsonCall) -> Scalar:
    (value,) = node.args
    found = b.typed(value)
    if not castable(found.type, TEXT, "implicit") and found.type.kind not in (Kind.JSON, Kind.JSONB, Kind.BYTEA):
        message = f"cannot use type {type_name(found.type)} in IS JSON predicate"
        raise SqlError("42804", message, position=position(value) + 1)
    kind, *rest = node.options
    return Call(constructors.test_key(kind, bool(rest)), (found,), BOOL, found.nullable)


def path_call(b: Binder, node: nodes.JsonCall, value: Scalar, path: Scalar, column: str = "") -> Scalar:
    """JSON_EXISTS, JSON_VALUE or JSON_QUERY of a bound value. ``column``: of JSON_TABLE, which errors name."""
    at = node.at
    value = cast(b.env, value, JSONB, "explicit", at)
    path = cast(b.env, path, JSONPATH, "explicit", at)
    names = Literal(tuple(name for name, _ in node.passing), TEXTS)
    values = tuple(resolve_unknown(b.env, b.bind(v), v.at) for _, v in node.passing)
    if node.function == sql_json.EXISTS:
        assert isinstance(node.on_error, str), "it has no DEFAULT"
        truth = Call(sql_json.EXISTS, (value, path, names, Literal(node.on_error, TEXT), *values), BOOL, True)
        if node.returning is None:
            return truth
        return cast(b.env, truth, b.env.type(node.returning), "explicit", at)
    target = _DEFAULTS[node.function] if node.returning is None else b.env.type(node.returning)
    words = ("value" if node.function == sql_json.VALUE else "query", *node.options)
    options = Literal(" ".join(words) + (f"|{column}" if column else ""), TEXT)
    empty, if_empty = _behaviour(b, node.on_empty, target)
    error, if_error = _behaviour(b, node.on_error, target)
    return Call(node.function, (value, path, names, options, empty, error, if_empty, if_error, *values), target, True)


def _behaviour(b: Binder, given: str | nodes.Expr, target: SqlType) -> tuple[Scalar, Scalar]:
    """The word for what is given, and DEFAULT's value."""
    if isinstance(given, str):
        return Literal(given, TEXT), Literal(None, target)
    return Literal("default", TEXT), cast(b.env, b.bind(given), target, "explicit", position(given))
