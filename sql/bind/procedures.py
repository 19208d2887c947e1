"""CALL: which procedure is meant, and its arguments."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from sql.bind.environment import Environment
from sql.bind.overloads import signature as shown_call
from sql.bind.routine_resolution import RoutineOverload, resolve_routine, routine_overloads
from sql.bind.scope import NameScope
from sql.bind.walk import has_subquery
from sql.statements.queries import OutputColumn
from sql.statements.routines import CallProcedure
from sql.syntax.nodes import routines as nodes


def call(env: Environment, node: nodes.CallStatement) -> CallProcedure:
    """CALL. Raises 42883, 42725, 42809, 0A000."""
    binder = env.binder(NameScope(clause="CALL arguments"), "CALL arguments")
    apply = node.call
    found = tuple(_with_outputs(o) for o in routine_overloads(env, apply.name, procedures=True))
    functions = routine_overloads(env, apply.name)
    types = [binder.bind(a).type for a in apply.args]
    if not found and functions:
        raise SqlError(
            "42809", f"{shown_call(apply.name[-1], types)} is not a procedure",
            hint="To call a function, use SELECT.", position=apply.at + 1,
        )  # fmt: skip
    try:
        made = resolve_routine(binder, apply, found)
    except SqlError as error:
        if error.sqlstate != "42883":
            raise
        message = error.message.replace("function ", "procedure ", 1)
        hint = None if error.hint is None else error.hint.replace("No function", "No procedure", 1)
        raise SqlError("42883", message, error.detail, hint, error.position) from None
    assert made is not None, "there are no built-in procedures"
    for argument, given in zip(made.args, (*apply.args, *([apply] * len(made.args))), strict=False):
        if has_subquery(argument):
            raise SqlError("0A000", "cannot use subquery in CALL argument", position=given.at + 1)
    columns = None if made.routine.returns_nothing else tuple(OutputColumn(c.name, c.type) for c in made.columns)
    declared = made.overload.relation.routine
    assert declared is not None, "a procedure"
    inputs = [a.mode != "out" for a in declared.declared]
    args = tuple(a for a, taken in zip(made.args, inputs, strict=True) if taken)
    kept = tuple(t for t, taken in zip(made.types, inputs, strict=True) if taken)
    outputs = tuple(a for a, p in zip(made.args, declared.declared, strict=True) if p.mode in ("out", "inout"))
    return CallProcedure(made.overload.relation, args, columns, kept, outputs)


def _with_outputs(overload: RoutineOverload) -> RoutineOverload:
    """The procedure as CALL sees it, which gives something for each OUT parameter too."""
    declared = tuple(replace(a, mode="inout") if a.mode == "out" else a for a in overload.routine.declared)
    return RoutineOverload(overload.relation, replace(overload.routine, declared=declared))
