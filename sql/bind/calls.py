"""Function calls: which kind of function a name means, and the checks that depend on the kind."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from ivm.words import NAME
from planner.aggregates.table import ORDERED_SETS, aggregate_overloads
from planner.expr.functions.library import overloads
from planner.expr.scalar import Literal, Scalar
from sql.bind import conditional, ordered_sets, parameters, routine_resolution, routines, rows, table_functions, windows
from sql.bind.aggregates import aggregate, grouping
from sql.bind.coerce import resolve_unknown
from sql.bind.environment import Binder
from sql.bind.overloads import no_function, signature
from sql.bind.own_ordered_sets import own_ordered_set
from sql.bind.scalar_functions import apply_function, apply_variadic
from sql.bind.scope import MERGE_ACTION, find_column
from sql.bind.set_returning import set_returning, set_returning_routine
from sql.syntax.nodes import queries as nodes

_RENAMED = {"current_role": "current_user", "user": "current_user", "current_catalog": "current_database"}
_SCHEMAS = ("pg_catalog", "public", "information_schema")


def call(b: Binder, node: nodes.Apply) -> Scalar:
    """Any call written as ``name(…)``; ``f(row)`` is a field where there is no such function. Raises 42883, 42725,
    42809, 0A000."""
    try:
        return _call(b, node)
    except SqlError as error:
        if error.sqlstate != "42883" or len(node.args) != 1 or len(node.name) != 1:
            raise
        value = b.typed(node.args[0])
        if (
            node.star
            or node.over is not None
            or node.distinct
            or node.filter is not None
            or node.name[0] not in (name for name, _ in value.type.fields)
        ):
            raise
        field = nodes.Field(node.args[0], node.name[0], node.at)
        if b.env.notes is not None:
            b.env.notes.instead[id(node)] = node, field
        return rows.field_of(value, field)


def _call(b: Binder, node: nodes.Apply) -> Scalar:
    node = parameters.without_void(b, node)
    found = routine_resolution.routine_overloads(b.env, node.name)
    if found and node.within:
        ordered = own_ordered_set(b, node, found)
        if ordered is not None:
            return ordered
    if found and not node.within and (not node.star or any(o.routine.aggregate for o in found)):
        made = _routine(b, node, found)
        if made is not None:
            return made
    if not found:
        _check_no_procedure(b, node)
    name = _name(node)
    asking = b.env.asking
    if name == "current_user" and asking is not None and asking.in_policy and asking.user is not None:
        asking.applied.append((0, asking.user, ()))
        return Literal(asking.user, NAME)
    node = parameters.positional(b, name, node)
    if node.over is not None:
        return windows.window_function(b, node, name)
    if name in windows.NAMES and not node.within and len(node.name) == 1:
        message = f"window function {name} requires an OVER clause"
        raise SqlError("42809", message, position=node.at + 1)
    match name:
        case "coalesce":
            return conditional.coalesce(b, node)
        case "nullif":
            return conditional.nullif(b, node)
        case "greatest" | "least":
            return conditional.extreme(b, node)
        case "merge_action" if not node.args and not node.star:
            return _merge_action(b, node)
        case "grouping" if len(node.name) == 1:
            return grouping(b, node)
    if node.within or name in ORDERED_SETS:
        return ordered_sets.ordered_set(b, node, name)
    if aggregate_overloads(name):
        return aggregate(b, node, name)
    if node.star or node.distinct or node.order or node.filter is not None:
        raise _not_an_aggregate(b, node, name)
    if table_functions.is_table_function(name) and not overloads(name):
        return set_returning(b, node, name)
    args = [b.bind(a) for a in node.args]
    if node.variadic:
        return apply_variadic(b.env, name, args, node.at)
    if name == "try" and len(args) == 1 and not overloads("try"):
        raise unsupported("TRY", "TRY_CAST(x AS type) is supported.", node.at + 1)
    return apply_function(b.env, name, args, node.at)


def _check_no_procedure(b: Binder, node: nodes.Apply) -> None:
    """42809: the name is a procedure's, which only CALL runs."""
    if routine_resolution.routine_overloads(b.env, node.name, procedures=True):
        shown = signature(node.name[-1], [b.bind(a).type for a in node.args])
        hint = "To call a procedure, use CALL."
        raise SqlError("42809", f"{shown} is a procedure", hint=hint, position=node.at + 1)


def _routine(b: Binder, node: nodes.Apply, found: tuple[routine_resolution.RoutineOverload, ...]) -> Scalar | None:
    """A call of a user-defined function; None where a built-in one of the same name fits the arguments better."""
    builtin = (*aggregate_overloads(node.name[-1]), *overloads(node.name[-1])) if len(node.name) == 1 else ()
    call = routine_resolution.resolve_routine(b, node, found, builtin)
    if call is None:
        return None
    overload = call.overload
    if b.env.notes is not None:
        b.env.notes.routines[id(node)] = node, overload.relation, call.types
    if overload.routine.fold is not None and overload.routine.fold.direct is not None:
        message = f"WITHIN GROUP is required for ordered-set aggregate {overload.name}"
        raise SqlError("42809", message, position=node.at + 1)
    if overload.routine.aggregate and node.over is not None:
        return windows.window_function(b, node, overload.name, overload)
    if overload.routine.aggregate:
        return aggregate(b, node, overload.name, overload=overload)
    if node.over is not None:
        message = f"OVER specified, but {node.name[-1]} is not a window function nor an aggregate function"
        raise SqlError("42809", message, position=node.at + 1)
    if node.distinct or node.order or node.filter is not None:
        raise _only_aggregates(node)
    if overload.routine.returns_set:
        return set_returning_routine(b, node, call)
    return routines.routine_value(b.env, call)


def _merge_action(b: Binder, node: nodes.Apply) -> Scalar:
    """MERGE_ACTION(). Raises 42601."""
    try:
        return find_column(b.scope, (MERGE_ACTION, MERGE_ACTION), node.at)
    except SqlError:
        message = "MERGE_ACTION() can only be used in the RETURNING list of a MERGE command"
        raise SqlError("42601", message, position=node.at + 1) from None


def _name(node: nodes.Apply) -> str:
    """The built-in function's name. Raises 3F000."""
    if len(node.name) > 1 and node.name[-2] not in _SCHEMAS:
        raise SqlError("3F000", f'schema "{node.name[-2]}" does not exist', position=node.at + 1)
    name = node.name[-1]
    return _RENAMED.get(name, name) if len(node.name) == 1 else name


def _not_an_aggregate(b: Binder, node: nodes.Apply, name: str) -> SqlError:
    """The error for an aggregate's syntax in a call of another function."""
    args = [resolve_unknown(b.env, b.bind(a), a.at).type for a in node.args]
    if not overloads(name):
        return no_function(name, args, node.at)
    if node.star:
        return SqlError("42883", f"function {name}() does not exist", position=node.at + 1)
    return _only_aggregates(node)


def _only_aggregates(node: nodes.Apply) -> SqlError:
    name = node.name[-1]
    what = "DISTINCT" if node.distinct else "ORDER BY" if node.order else "FILTER"
    return SqlError(
        "42809", f"{what} specified, but {name} is not an aggregate function", position=node.at + 1
    )  # fmt: skip
