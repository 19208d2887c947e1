"""Scalar functions applied to bound arguments."""

from __future__ import annotations

from functools import lru_cache

from ivm.errors import SqlError
from ivm.words import BOOL, REGTYPE, TEXT, Kind, SqlType
from planner.expr.functions.library import overloads
from planner.expr.functions.ranges import MULTIRANGE, RANGE
from planner.expr.functions.table import Function, Polymorphic
from planner.expr.functions.variadic import FORMS
from planner.expr.scalar import Call, Case, Literal, Parameter, Scalar
from sql.bind import operator_functions, sequences
from sql.bind.coerce import cast, cast_arguments, castable, resolve_unknown
from sql.bind.domains import domain_value
from sql.bind.environment import Environment
from sql.bind.operators import operator
from sql.bind.overloads import no_function, not_resolved, resolve, result_type
from sql.catalog.column_types import is_type_name, type_from_name
from sql.catalog.composite import domain_oid, has_domains
from storage.types.range_values import Multirange, range_type_of, subtype_of
from storage.types.type_names import type_category


def apply_function(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar:
    """A scalar function applied. Raises 42883, 42725, and for nextval and its kin 42P01, 42809."""
    if name == "pg_typeof" and len(args) == 1 and (oid := domain_oid(args[0].type)) is not None:
        shown = Literal(oid, REGTYPE)  # for the function, types are the same with and without their domains
        return Case(((Call("is null", tuple(args), BOOL, False), shown),), shown, REGTYPE, False)
    if name in sequences.FUNCTIONS and args:
        args = [sequences.resolved(env, args[0], at), *args[1:]]
    args = [resolve_unknown(env, a, at) if a.type.kind is Kind.RECORD else a for a in args]
    types = tuple([a.type for a in args])
    if types == (SqlType(Kind.UNKNOWN),) and (converted := _as_cast(env, name, args, at)) is not None:
        return converted  # a literal is read by its type rather than passed to the function of its name
    try:
        choice = resolve(_callable(name, len(overloads(name))), types)
    except SqlError as error:
        raise not_resolved(error, no_function(name, types, at, ambiguous=True)) from None
    if choice is None:
        converted = _as_cast(env, name, args, at) or _as_operator(env, name, args, at) or _as_range(env, name, args, at)
        if converted is not None:
            return converted
        raise no_function(name, types, at)
    function = choice.overload
    if Polymorphic.ANY in function.args:
        args = _any_arguments(env, function, args)
    bound = cast_arguments(env, args, choice.args, at)
    nullable = not function.null_if_null_only or any(a.nullable for a in bound)
    made = Call(function.key, bound, result_type(function.result, choice), nullable)
    return domain_value(env, made.type, made) if function.makes_row and has_domains(made.type) else made


def _any_arguments(env: Environment, function: Function, args: list[Scalar]) -> list[Scalar]:
    """The arguments, in which parameters of no type yet are left open where any type will do."""
    last = len(function.args) - 1
    return [
        env.parameters.leave_open(arg.index)
        if isinstance(arg, Parameter)
        and arg.type.kind is Kind.UNKNOWN
        and function.args[min(i, last)] is Polymorphic.ANY
        else arg
        for i, arg in enumerate(args)
    ]


@lru_cache(4096)
def _callable(name: str, count: int) -> tuple[Function, ...]:
    """The functions of a name that clients may call. ``count``: of all, which grows while modules are imported."""
    return tuple(f for f in overloads(name) if not f.internal)


def apply_variadic(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar:
    """A function whose last argument repeats, applied to ``VARIADIC array``. Raises 42883, 42804."""
    for function in overloads(name):
        form = FORMS.get(function.key)
        if form is None or len(form.args) != len(args):
            continue
        last = form.args[-1]
        if not isinstance(last, SqlType) and args[-1].type.kind is not Kind.ARRAY:
            raise SqlError("42804", "VARIADIC argument must be an array", position=at + 1)
        choice = resolve((form,), tuple(a.type for a in args))
        if choice is not None:
            bound = cast_arguments(env, args, choice.args, at)
            return Call(form.key, bound, result_type(form.result, choice), True)
    raise no_function(name, [a.type for a in args], at)


def _as_operator(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar | None:
    """A call of an operator's underlying function, such as ``booleq(a, b)``; None if it is none."""
    symbol, types = operator_functions.FUNCTIONS.get(name, ("", ()))
    if len(args) != 2 or not types:
        return None
    pairs = list(zip(args, types, strict=True))
    if not all(a.type.kind is Kind.UNKNOWN or castable(a.type, t, "implicit") for a, t in pairs):
        return None
    return operator(env, symbol, [cast(env, a, t, "implicit", at) for a, t in pairs], at, "pg_catalog")


def _as_range(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar | None:
    """A call of a user's range or multirange type, which makes a value of it; None if it is none. Raises 42883."""
    own = None if is_type_name(name) else env.catalog.type(None, name)
    if own is None or own.multirange is None:
        return None
    type_ = own.type_named(name)
    inner = subtype_of(type_) if type_.kind is Kind.RANGE else range_type_of(type_)
    wanted = [inner] * len(args)
    if type_.kind is Kind.RANGE:
        wanted = [inner, inner, TEXT][: len(args)] if len(args) in (2, 3) else []
    fits = all(
        a.type.kind is Kind.UNKNOWN or castable(a.type, t, "implicit") for a, t in zip(args, wanted, strict=False)
    )
    if len(wanted) != len(args) or not fits:
        raise no_function(name, [a.type for a in args], at)
    if not args:
        return Literal(Multirange(()), type_)
    bound = cast_arguments(env, args, wanted, at)
    if type_.kind is Kind.RANGE and len(bound) == 2:
        bound = (*bound, Literal("[)", TEXT))
    return Call(RANGE if type_.kind is Kind.RANGE else MULTIRANGE, (Literal(None, type_), *bound), type_, True)


def _as_cast(env: Environment, name: str, args: list[Scalar], at: int) -> Scalar | None:
    """A cast written as a call of a type's name, such as ``int4(x)`` (func_get_detail); None if it is none."""
    if len(args) != 1:
        return None
    own = None if is_type_name(name) else env.catalog.type(None, name)
    try:
        target = type_from_name(name) if own is None else own.type_named(name)
    except SqlError:
        return None
    source = args[0].type
    if target.kind is Kind.RECORD or (source.kind is Kind.RECORD and type_category(target) == "S"):
        return None  # only written as a cast
    if source.kind is Kind.BOOL and target.kind in (Kind.BPCHAR, Kind.VARCHAR):
        return None  # pg_cast has a function for them, of another name
    if source.kind is not Kind.UNKNOWN and not castable(source, target, "explicit"):
        return None
    return cast(env, args[0], target.plain, "explicit", at)
