"""Runs one call of a LANGUAGE plpgsql function, and DO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import SqlType
from sql.catalog.catalog import Relation
from sql.session.routines.nested import Nested, Row
from sql.session.routines.plpgsql import control, cursors, raising, returning, statements
from sql.session.routines.plpgsql.declaring import of_type
from sql.session.routines.plpgsql.frame import Frame, Leave
from sql.session.routines.plpgsql.scope import Scope
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.checking import Returns, check_body
from sql.syntax.plpgsql.grammar import parse_body
from storage.types.type_names import format_type


def _nothing(frame: Frame, node: nodes.Null) -> Leave | None:
    return None


def _end(frame: Frame, node: nodes.End) -> Leave | None:
    """COMMIT and ROLLBACK. Raises 2D000 where the transaction may not end."""
    frame.nested.end(commit=node.commit, chain=node.chain)
    return None


STEPS: Final[Mapping[type, Callable[[Any, Any], Leave | None]]] = {
    nodes.Block: control.run_block, nodes.Assign: statements.run_assign, nodes.If: control.run_if,
    nodes.Case: control.run_case, nodes.Loop: control.run_loop, nodes.ForRange: control.run_range,
    nodes.ForRows: control.run_rows, nodes.ForCursor: cursors.run_cursor_loop, nodes.ForEach: control.run_each,
    nodes.Exit: control.run_exit, nodes.Return: returning.run_return, nodes.ReturnNext: returning.run_return_next,
    nodes.ReturnQuery: returning.run_return_query, nodes.Raise: raising.run_raise, nodes.Assert: raising.run_assert,
    nodes.Sql: statements.run_sql, nodes.Execute: statements.run_execute, nodes.Call: statements.run_call,
    nodes.GetDiagnostics: statements.run_diagnostics, nodes.Open: cursors.run_open, nodes.Fetch: cursors.run_fetch,
    nodes.Close: cursors.run_close, nodes.End: _end, nodes.Null: _nothing,
}  # fmt: skip
"""What runs each kind of statement."""


def run_plpgsql(
    relation: Relation, arguments: Sequence[object], types: Sequence[SqlType], columns: tuple[SqlType, ...],
    nested: Nested,
) -> Sequence[Row]:  # fmt: skip
    """The rows that a call returns. Raises its errors, with their context, and 2F005."""
    routine = relation.routine
    assert routine is not None, "a routine"
    assert relation.definition is not None, "it has a body"
    body = parse_body(relation.definition)
    shown = f"{routine.name}({','.join(format_type(t, False) for t in types)})"
    frame = Frame(nested, STEPS, Scope(None), body.conflict, columns, routine.returns_set, shown)
    frame.scope.add(frame.found)
    frame.scope = Scope(frame.scope, routine.name)
    given = zip(types, arguments, strict=True)
    results = iter(columns)
    for i, parameter in enumerate(routine.declared):
        result = next(results) if parameter.mode in ("out", "inout", "table") else None
        type_, value = (result, None) if result and parameter.mode in ("out", "table") else next(given)
        variable = frame.scope.add(replace(of_type(parameter.name or f"${i + 1}", type_, False), value=value))
        frame.scope.names[f"${i + 1}"] = variable
        if result is not None:
            frame.outputs = (*frame.outputs, variable)
    run_frame(frame, body)
    if routine.returns_set:
        return frame.rows
    if routine.returns_nothing:
        return [(0,)]
    if frame.outputs and frame.result is None:
        return [frame.output_row()]
    if frame.result is None:
        frame.statement = None
        error = SqlError("2F005", "control reached end of function without RETURN")
        frame.complete(error)
        raise error
    frame.statement = "while casting return value to function's return type"
    try:
        return [returning.as_row(frame, *frame.result)]
    except SqlError as error:
        frame.complete(error)
        raise


def run_frame(frame: Frame, body: nodes.Body) -> None:
    """Run a body. Raises its errors, with their context."""
    try:
        frame.run((body.block,))
    except SqlError as error:
        frame.complete(error)
        raise


def run_inline(text: str, nested: Nested) -> None:
    """DO."""
    body = parse_body(text)
    check_body(body, (), "inline_code_block", Returns(nothing=True))
    frame = Frame(nested, STEPS, Scope(None), body.conflict, (), False, "inline_code_block")
    frame.scope.add(frame.found)
    run_frame(frame, body)
