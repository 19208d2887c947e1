"""CREATE, ALTER and DROP OPERATOR (operatorcmds.c and pg_operator.c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, SqlType
from planner.expr.comparison import Comparison
from planner.expr.functions.library import overloads
from planner.expr.functions.table import ArgumentType
from sql.bind import operator_functions
from sql.bind.coerce import same_family
from sql.bind.environment import Environment
from sql.bind.routine_resolution import argument_type_name, routine_overloads
from sql.bind.routine_signatures import declared_type
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.operators import Operator, operator_name
from sql.catalog.search_path import no_schema
from sql.statements.routines import AlterOperator, CreateOperator, DropFunction
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.operators import (
    AlterOperatorStatement,
    CreateOperatorStatement,
    DropOperatorStatement,
    Operands,
    OptionValue,
    SetOf,
)
from sql.syntax.nodes.routines import CommentStatement

RESTRICTIONS: Final = frozenset(
    """eqsel neqsel scalarltsel scalargtsel areasel scalarlesel scalargesel positionsel contsel iclikesel icnlikesel
    regexeqsel likesel icregexeqsel regexnesel nlikesel icregexnesel rangesel prefixsel networksel tsmatchsel
    arraycontsel multirangesel matchingsel""".split()  # noqa: SIM905
)
JOINS: Final = frozenset(
    """eqjoinsel neqjoinsel scalarltjoinsel scalargtjoinsel areajoinsel scalarlejoinsel scalargejoinsel positionjoinsel
    contjoinsel iclikejoinsel icnlikejoinsel regexeqjoinsel likejoinsel icregexeqjoinsel regexnejoinsel nlikejoinsel
    icregexnejoinsel prefixjoinsel networkjoinsel tsmatchjoinsel arraycontjoinsel matchingjoinsel
    """.split()  # noqa: SIM905
)
"""The selectivity estimators of PostgreSQL, whose names are kept to be shown."""
_SIGNATURES: Final = {
    "restrict": (RESTRICTIONS, "internal, oid, internal, integer"),
    "join": (JOINS, "internal, oid, internal, smallint, internal"),
}
_OBSOLETE: Final = ("sort1", "sort2", "ltcmp", "gtcmp")
_KNOWN: Final = frozenset(
    {"leftarg", "rightarg", "function", "procedure", "commutator", "negator", "restrict", "join", "hashes", "merges"}
)

Options = Mapping[str, OptionValue]


def create_operator(env: Environment, node: CreateOperatorStatement) -> CreateOperator:
    """CREATE OPERATOR. Raises 42P13, 42883, 42704, 42601, 3F000, 0A000."""
    schema_name = env.catalog.home(node.name.schema_name, False)
    options = dict(node.options)
    warnings = tuple(
        f'operator attribute "{name}" not recognized' for name in options if name not in (*_KNOWN, *_OBSOLETE)
    )
    given = [options.get(name) for name in ("leftarg", "rightarg")]
    if any(isinstance(value, SetOf) for value in given):
        raise SqlError("42P13", "SETOF type not allowed for operator argument")
    merges = _true(options, "merges") or any(name in options for name in _OBSOLETE)
    hashes = _true(options, "hashes")
    function = options.get("procedure", options.get("function"))
    if function is None:
        raise SqlError("42P13", "operator function must be specified")
    left, right = (None if value is None else declared_type(env, _type_name(value)) for value in given)
    if right is None:
        if left is None:
            raise SqlError("42P13", "operator argument types must be specified")
        detail = "Postfix operators are not supported."
        raise SqlError("42P13", "operator right argument type must be specified", detail)
    made = Operator(node.name.name, left, right, hashes=hashes, merges=merges)
    made = replace(
        _behind(env, function, made), restrict=_estimator(options.get("restrict"), "restrict"),
        join=_estimator(options.get("join"), "join"),
    )  # fmt: skip
    commutator, negator = (_operator_option(options, name) for name in ("commutator", "negator"))
    check_properties(made, commutator is not None, negator is not None)
    dependencies = (made.function,) if made.function else ()
    name = operator_name(made.symbol, [argument_type_name(t) for t in made.args])
    relation = Relation(
        0, schema_name, name, RelationKind.OPERATOR, (), operator=made, dependencies=dependencies
    )  # fmt: skip
    return CreateOperator(relation, commutator, negator, warnings)


def check_properties(operator: Operator, commutator: bool = False, negator: bool = False) -> None:
    """Raises 42P13 for what only binary operators, or only those that yield boolean, can have."""
    binary, boolean = operator.left is not None, operator.result == BOOL
    for kind, fits, found in (
        ("binary", binary, (("commutators", commutator), ("join selectivity", operator.join),
                            ("merge join", operator.merges), ("hash", operator.hashes))),
        ("boolean", boolean, (("negators", negator), ("restriction selectivity", operator.restrict),
                              ("join selectivity", operator.join), ("merge join", operator.merges),
                              ("hash", operator.hashes))),
    ):  # fmt: skip
        for what, wanted in found:
            if wanted and not fits:
                verb = "" if what in ("merge join", "hash") else "have "
                raise SqlError("42P13", f"only {kind} operators can {verb}{what}")


def _behind(env: Environment, function: OptionValue, operator: Operator) -> Operator:
    """The operator with the function of this name and of just its types. Raises 42883, 0A000."""
    name, types = _function_name(function), operator.args
    shown = f"{'.'.join(name)}({', '.join(map(argument_type_name, types))})"
    schema_name = name[-2] if len(name) > 1 else None
    if schema_name in (None, "pg_catalog"):
        result = _builtin(name[-1], types)
        if result is not None:
            return replace(operator, builtin=name[-1], result=result)
    for overload in routine_overloads(env, name):
        routine = overload.routine
        if overload.args == types and not routine.aggregate:
            if routine.returns_set:
                raise unsupported("an operator over a function that returns a set")
            if routine.trigger or routine.record:
                raise unsupported("an operator over a function of triggers or one that returns record")
            return replace(operator, function=overload.relation.oid, result=routine.result)
    if schema_name is not None:
        env.catalog.home(schema_name, False)
    raise SqlError("42883", f"function {shown} does not exist")


_COMPARISONS: Final = frozenset(comparison.value for comparison in Comparison)


def _builtin(name: str, types: tuple[ArgumentType, ...]) -> ArgumentType | None:
    """What the built-in function of this name and just these types gives; None if there is none."""
    for function in overloads(name):
        if function.args == types and not function.internal and not getattr(function, "variadic", False):
            return function.result
    symbol, pair = operator_functions.FUNCTIONS.get(name, ("", ()))
    if pair != types:
        return None
    fitting = (f for f in overloads(symbol) if f.args == types)
    return next((f.result for f in fitting), BOOL if symbol in _COMPARISONS else None)


def _estimator(value: OptionValue, kind: str) -> str:
    """The name of a selectivity estimator; "" for NONE. Raises 42883."""
    if value is None:
        return ""
    known, arguments = _SIGNATURES[kind]
    name = _function_name(value)
    if name[-1] not in known or (len(name) > 1 and name[-2] != "pg_catalog"):
        raise SqlError("42883", f"function {'.'.join(name)}({arguments}) does not exist")
    return name[-1]


def _function_name(value: OptionValue) -> tuple[str, ...]:
    match value:
        case str():
            return (value,)
        case nodes.TypeName():
            return (value.name,) if value.schema is None else (value.schema, value.name)
        case nodes.TableName():
            return (value.name,) if value.schema_name is None else (value.schema_name, value.name)
        case _:
            raise SqlError("42601", "argument of function must be a name")


def _type_name(value: OptionValue) -> nodes.TypeName:
    if isinstance(value, nodes.TypeName):
        return replace(value, at=-1)  # the error has no position
    if isinstance(value, str):
        return nodes.TypeName(value.lower(), (), False, -1)
    raise SqlError("42601", "argument of leftarg must be a type name")


def _operator_option(options: Options, name: str) -> tuple[str | None, str] | None:
    """The schema, if given, and the symbol of an operator. Raises 42601."""
    if name not in options:
        return None
    value = options[name]
    if isinstance(value, nodes.TableName):
        return value.schema_name, value.name
    return None, _function_name(value)[-1]


def _true(options: Options, name: str) -> bool:
    """Whether an option is given and true. Raises 42601."""
    if name not in options:
        return False
    value = options[name]
    text = (value.name if isinstance(value, nodes.TypeName) else value if isinstance(value, str) else "").lower()
    if text not in ("true", "on", "1", "false", "off", "0"):
        raise SqlError("42601", f"{name} requires a Boolean value")
    return text in ("true", "on", "1")


def alter_operator(env: Environment, node: AlterOperatorStatement) -> AlterOperator:
    """ALTER OPERATOR. Raises 42883, 42601, 42P13, 3F000."""
    old = _existing(env, node.name, node.operands, unsupported("ALTER OPERATOR of a built-in operator"))
    assert old.operator is not None, "an operator"
    changes: dict[str, str] = {}
    for name, value in node.options:
        if name in _SIGNATURES:
            changes[name] = _estimator(value, name)
        elif name in _KNOWN:
            raise SqlError("42601", f'operator attribute "{name}" cannot be changed')
        else:
            raise SqlError("42601", f'operator attribute "{name}" not recognized')
    bare = replace(old.operator, restrict="", join="", hashes=False, merges=False)
    check_properties(replace(bare, restrict=changes.get("restrict", ""), join=changes.get("join", "")))
    changed = replace(
        old.operator, restrict=changes.get("restrict", old.operator.restrict),
        join=changes.get("join", old.operator.join),
    )  # fmt: skip
    home = old.schema_name if node.schema_name is None else env.catalog.home(node.schema_name, False)
    new = replace(old, schema_name=home, operator=changed)
    return AlterOperator(old, new, node.owner)


def drop_operator(env: Environment, node: DropOperatorStatement) -> DropFunction:
    """DROP OPERATOR. Raises 42883, 42601, 42704, 2BP01."""
    found: list[Relation] = []
    missing: list[str] = []
    for name, operands in node.names:
        absent = _absent(env, name, operands) if node.if_exists else None
        if absent is not None:
            missing.append(f"{absent}, skipping")
            continue
        if node.if_exists and _lookup(env, name, operands) is None:
            missing.append(f"operator {_shown(name)} does not exist, skipping")
        else:
            found.append(_existing(env, name, operands, _required(env, name, operands)))
    return DropFunction(tuple(found), tuple(missing), node.cascade, "DROP OPERATOR")


def commented(env: Environment, node: CommentStatement) -> Relation:
    """The operator that COMMENT ON names. Raises 42883, 42601, 42704."""
    assert node.types is not None, "an operator is named with its types"
    left, right = node.types
    return _existing(env, node.name, (left, right), unsupported("a comment on a built-in operator"))


def _absent(env: Environment, name: nodes.TableName, operands: Operands) -> str | None:
    """What IF EXISTS says of a schema or a type that is not there."""
    given = [t for t in operands if t is not None]
    schemas = [name.schema_name, *(t.schema for t in given)]
    for schema_name in schemas:
        try:
            env.catalog.home(schema_name or "pg_catalog", False)
        except SqlError as error:
            if error.sqlstate != "3F000":
                raise
            return no_schema(schema_name or "").message
    for operand in given:
        try:
            declared_type(env, operand)
        except SqlError as error:
            if error.sqlstate != "42704":
                raise
            return error.message
    return None


def _existing(env: Environment, name: nodes.TableName, operands: Operands, builtin: SqlError) -> Relation:
    """The user's operator of just these types. ``builtin``: raised for a built-in one. Raises 42883, 42601, 42704."""
    found = _lookup(env, name, operands)
    if found is not None:
        return found
    types = tuple(declared_type(env, t) for t in operands if t is not None)
    texts = [argument_type_name(t) for t in types]
    if name.schema_name in (None, "pg_catalog") and any(f.args == types for f in overloads(name.name)):
        raise builtin
    signature = f"{_shown(name)} {texts[0]}" if operands[0] is None else f"{texts[0]} {_shown(name)} {texts[-1]}"
    raise SqlError("42883", f"operator does not exist: {signature}")


def _required(env: Environment, name: nodes.TableName, operands: Operands) -> SqlError:
    """2BP01, for a built-in operator."""
    types = [argument_type_name(declared_type(env, t)) for t in operands if t is not None]
    shown = operator_name(name.name, types)
    return SqlError("2BP01", f"cannot drop {shown} because it is required by the database system")


def _lookup(env: Environment, name: nodes.TableName, operands: Operands) -> Relation | None:
    left, right = operands
    if right is None:
        raise SqlError("42601", "postfix operators are not supported")
    wanted = [declared_type(env, replace(t, at=-1)) for t in (left, right) if t is not None]
    before, after = env.catalog.operators(name.schema_name, name.name)
    return next((r for r in (*before, *after) if r.operator is not None and _same(r.operator.args, wanted)), None)


def _same(args: Sequence[ArgumentType], wanted: Sequence[ArgumentType]) -> bool:
    if len(args) != len(wanted):
        return False
    pairs = zip(args, wanted, strict=True)
    return all(same_family(a, b) if isinstance(a, SqlType) and isinstance(b, SqlType) else a == b for a, b in pairs)


def _shown(name: nodes.TableName) -> str:
    return name.name if name.schema_name is None else f"{name.schema_name}.{name.name}"
