"""Type conversion: untyped literals, implicit and assignment casts, and the common type of several expressions.

Rules of PostgreSQL's chapter 10 (parse_coerce.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, TEXT, Kind, SqlType
from planner.expr.functions.casts.registry import CastContext, cast_context
from planner.expr.functions.library import find_cast
from planner.expr.scalar import Call, Case, Coalesce, Literal, Parameter, Scalar
from sql.bind.domains import domain_value, of_type
from sql.bind.environment import Environment
from sql.bind.literals import turned, typed_literal
from sql.bind.row_fields import fields_of
from sql.catalog.composite import ROW_BASE, has_domains, same_domains, without_domain
from storage.types.type_names import format_type, is_preferred, type_category

_RANK: Final[dict[CastContext, int]] = {"implicit": 0, "assignment": 1, "explicit": 2}


def type_name(type_: SqlType) -> str:
    """A type as error messages name it, without modifiers."""
    return format_type(type_, False)


def same_family(a: SqlType, b: SqlType) -> bool:
    """Whether two types differ in modifiers at most."""
    if a.kind is not b.kind or a.enum is not b.enum or a.named != b.named:
        return False
    if a.element is not None and b.element is not None:
        return same_family(a.element, b.element)
    if a.fields and b.fields:
        pairs = zip(a.fields, b.fields, strict=False)
        return len(a.fields) == len(b.fields) and all(same_family(x, y) for (_, x), (_, y) in pairs)
    return a.element is b.element


def castable(source: SqlType, target: SqlType, context: CastContext) -> bool:
    """Whether there is a cast from source to target that this context allows."""
    weakest = cast_context(source, target)
    return weakest is not None and _RANK[weakest] <= _RANK[context]


def cast(
    env: Environment, expr: Scalar, target: SqlType, context: CastContext, at: int, *, attempt: bool = False
) -> Scalar:
    """``expr`` as ``target``. ``attempt``: TRY_CAST. Raises 42846 (explicit) or 42804 where there is no such cast."""
    if expr.type is target and target.kind is not Kind.UNKNOWN:
        return expr
    if target.domain is None and not has_domains(target):
        made = _converted(env, expr, target, context, at, attempt)
        return made if made.type.domain is None else of_type(made, target)
    if expr.type == target and same_domains(expr.type, target):
        return expr
    if attempt:
        raise unsupported("TRY_CAST to a domain", position=at + 1)
    return domain_value(env, target, _converted(env, expr, without_domain(target), context, at, attempt))


def _converted(env: Environment, expr: Scalar, target: SqlType, context: CastContext, at: int, attempt: bool) -> Scalar:
    source = expr.type
    if source.kind is Kind.UNKNOWN:
        converted = _from_unknown(env, expr, target, context, at, attempt)
        if converted is not None:
            return converted
        source = expr.type
    if source == target:
        return expr
    if source.kind is target.kind is Kind.RECORD and not target.fields:
        return expr
    if isinstance(expr, Literal) and (folded := _folded(expr, target)) is not None:
        return turned(expr, folded)
    if source.kind is target.kind is Kind.RECORD and not attempt:
        converted = _row(env, expr, target, context, at)
        if converted is not None:
            return converted
    if not castable(source, target, context):
        code = "42846" if context == "explicit" else "42804"
        raise SqlError(code, f"cannot cast type {type_name(source)} to {type_name(target)}", position=at + 1)
    return _call(expr, target, context, attempt)


_INTEGERS: Final = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63}
_PLAIN_TEXT: Final = (Kind.TEXT, Kind.VARCHAR)


def _folded(literal: Literal, target: SqlType) -> Literal | None:
    """The cast of a constant, if it cannot fail and changes only the type."""
    value, source = literal.value, literal.type
    if value is None and _is_any_row(source) and target.fields:
        return Literal(None, target)
    if source.kind in _INTEGERS and isinstance(value, int):
        bits = _INTEGERS.get(target.kind)
        if bits is not None and -(1 << bits) <= value < 1 << bits:
            return Literal(value, target)
    if source.kind in _PLAIN_TEXT and target.kind in _PLAIN_TEXT and target.precision is None:
        return Literal(value, target)
    return None


def _call(expr: Scalar, target: SqlType, context: CastContext, attempt: bool) -> Scalar:
    if attempt:
        return Call("try_cast", (expr,), target, True)
    key = "assignment_cast" if context == "assignment" else "cast"
    function = find_cast(expr.type, target)
    return Call(key, (expr,), target, expr.nullable or (function is not None and function.makes_null))


def _from_unknown(
    env: Environment, expr: Scalar, target: SqlType, context: CastContext, at: int, attempt: bool
) -> Scalar | None:
    """An untyped literal or parameter, or a CASE or COALESCE of such, as ``target``; None for an UNKNOWN column."""
    if isinstance(expr, Parameter):
        known = env.parameters.infer(expr.index, target)
        typed = Parameter(expr.index, known, expr.nullable)
        if known == target:
            return typed
        return cast(env, typed, target, context, at, attempt=attempt)
    if isinstance(expr, Literal):
        return typed_literal(expr.value, target, context, env.origin(expr, at), attempt)
    if isinstance(expr, Case):
        arms = tuple((c, cast(env, v, target, context, at)) for c, v in expr.arms)
        return Case(arms, cast(env, expr.otherwise, target, context, at), target, expr.nullable)
    if isinstance(expr, Coalesce):
        return Coalesce(tuple(cast(env, a, target, context, at) for a in expr.args), target)
    return None


def cast_arguments(env: Environment, args: Sequence[Scalar], types: Sequence[SqlType], at: int) -> tuple[Scalar, ...]:
    """A call's arguments as the types that overload resolution chose."""
    return tuple([cast(env, a, t, "implicit", at) for a, t in zip(args, types, strict=True)])


def resolved(type_: SqlType) -> SqlType:
    """The type with text for UNKNOWN, also in the fields of an anonymous row."""
    if type_.kind is Kind.UNKNOWN:
        return TEXT
    if type_.kind is not Kind.RECORD or type_.named is not None:
        return type_
    fields = tuple((name, resolved(field)) for name, field in type_.fields)
    return type_ if fields == type_.fields else replace(type_, fields=fields)


def resolve_unknown(env: Environment, expr: Scalar, at: int = 0) -> Scalar:
    """The expression, as text if its type is UNKNOWN, and as a row of text where a field's type is."""
    wanted = resolved(expr.type)
    return expr if wanted == expr.type else cast(env, expr, wanted, "implicit", at)


def _row(env: Environment, expr: Scalar, target: SqlType, context: CastContext, at: int) -> Scalar | None:
    """A row as another row type, field by field; None where the two are the same but for names. Raises 42846."""
    source = expr.type
    if source.named is not None:
        return None if source.named == target.named or target.named is None else _as_parent(env, expr, target, at)
    if [t for _, t in source.fields] == [t for _, t in target.fields] and not isinstance(expr, Call):
        return None
    values = env.unresolved(expr) or fields_of(expr)
    if len(values) != len(target.fields):
        few = "few" if len(values) < len(target.fields) else "many"
        raise _no_row(target, f"Input has too {few} columns.", at)
    made = []
    for i, (value, (_, type_)) in enumerate(zip(values, target.fields, strict=True)):
        if value.type.kind is not Kind.UNKNOWN and not castable(value.type, type_, context):
            shown = f"Cannot cast type {type_name(value.type)} to {type_name(type_)} in column {i + 1}."
            raise _no_row(target, shown, at)
        made.append(cast(env, value, type_, context, at))
    return _unless_null(expr, Call("row", tuple(made), target, False))


def _as_parent(env: Environment, expr: Scalar, target: SqlType, at: int) -> Scalar:
    """A table's row as that of a table that it inherits from. Raises 42846."""
    assert expr.type.named is not None
    assert target.named is not None
    child, parent = (env.catalog.by_id(named.oid - ROW_BASE) for named in (expr.type.named, target.named))
    if child is None or parent is None or child.id not in {r.id for r in env.catalog.below(parent)}:
        message = f"cannot cast type {type_name(expr.type)} to {type_name(target)}"
        raise SqlError("42846", message, position=at + 1)
    places = {name: i for i, (name, _) in enumerate(expr.type.fields)}
    values = fields_of(expr)
    return _unless_null(expr, Call("row", tuple(values[places[name]] for name, _ in target.fields), target, False))


def _unless_null(expr: Scalar, made: Scalar) -> Scalar:
    if not expr.nullable:
        return made
    absent = Call("is null", (expr,), BOOL, False)
    return Case(((absent, Literal(None, made.type)),), made, made.type, True)


def _no_row(target: SqlType, detail: str, at: int) -> SqlError:
    return SqlError("42846", f"cannot cast type record to {type_name(target)}", detail, position=at + 1)


def to_boolean(env: Environment, expr: Scalar, what: str, at: int) -> Scalar:
    """A condition; ``what`` names it in the error. Raises 42804, worded as in Postgres."""
    if expr.type is BOOL:
        return expr
    if expr.type.kind not in (Kind.BOOL, Kind.UNKNOWN):
        raise SqlError(
            "42804", f"argument of {what} must be type boolean, not type {type_name(expr.type)}", position=at + 1
        )
    return cast(env, expr, BOOL, "implicit", at)


def common_type(types: Sequence[SqlType], what: str, positions: Sequence[int]) -> SqlType:
    """The common type of UNION, CASE, VALUES, IN … (select_common_type). ``what``: for the error; ``positions``: the
    expressions' offsets. Raises 42804 where there is none."""
    chosen = _common(types)
    if isinstance(chosen, int):
        first = next(t for t in types if t.kind is not Kind.UNKNOWN)
        raise SqlError(
            "42804", f"{what} types {type_name(first)} and {type_name(types[chosen])} cannot be matched",
            position=positions[chosen] + 1,
        )  # fmt: skip
    return chosen


def try_common_type(types: Sequence[SqlType]) -> SqlType | None:
    """The same, None where there is none."""
    chosen = _common(types)
    return None if isinstance(chosen, int) else chosen


def _common(types: Sequence[SqlType]) -> SqlType | int:
    """The common type, or the index of the first type that does not match."""
    known = [t for t in types if t.kind is not Kind.UNKNOWN]
    if not known:
        return TEXT
    if {id(t) for t in types} == {id(known[0])}:
        return known[0]
    if all(t == known[0] for t in types):
        return known[0] if all(same_domains(t, known[0]) for t in known) else without_domain(known[0])
    known = [without_domain(t) for t in known]
    if all(t.kind is Kind.RECORD and t.named is None for t in known):
        found = _common_row([t for t in known if t.fields] or known)
        return found or types.index(next(t for t in known if t != known[0]))
    chosen = known[0].plain
    for i, type_ in enumerate(types):
        if type_.kind is Kind.UNKNOWN or same_family(type_, chosen):
            continue
        if type_category(type_) != type_category(chosen):
            return i
        if (
            not is_preferred(chosen)
            and cast_context(chosen, type_) == "implicit"
            and cast_context(type_, chosen) != "implicit"
        ):
            chosen = type_.plain
    for i, type_ in enumerate(types):
        if not castable(type_, chosen, "implicit") and not (_is_any_row(type_) and chosen.fields):
            return i
    return chosen


def _is_any_row(type_: SqlType) -> bool:
    """Whether a type is that of ``NULL::record``, whose fields are not known."""
    return type_.kind is Kind.RECORD and not type_.fields


def _common_row(types: Sequence[SqlType]) -> SqlType | None:
    """The common type of anonymous rows, field by field; None where they have none."""
    if len({len(t.fields) for t in types}) > 1:
        return None
    fields = []
    for several in zip(*(t.fields for t in types), strict=True):
        chosen = _common([t for _, t in several])
        if isinstance(chosen, int):
            return None
        fields.append((several[0][0], chosen))
    return replace(types[0], fields=tuple(fields))


def assign(env: Environment, expr: Scalar, target: SqlType, column: str, at: int) -> Scalar:
    """A value to be stored in a column. Raises 42804, worded as in Postgres."""
    if expr.type.kind is not Kind.UNKNOWN and expr.type != target and not castable(expr.type, target, "assignment"):
        raise SqlError(
            "42804",
            f'column "{column}" is of type {type_name(target)} but expression is of type {type_name(expr.type)}',
            hint="You will need to rewrite or cast the expression.",
            position=at + 1,
        )
    return cast(env, expr, target, "assignment", at)
