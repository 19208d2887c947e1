"""Cursors: OPEN, FETCH, MOVE, CLOSE, and FOR over a bound cursor."""

from __future__ import annotations

from collections.abc import Iterable

from ivm.errors import SqlError
from ivm.words import INT8, TEXT
from sql.session.routines.nested import Outcome
from sql.session.routines.plpgsql.control import turn_rows
from sql.session.routines.plpgsql.declaring import of_type, variable_type
from sql.session.routines.plpgsql.frame import Frame, Leave
from sql.session.routines.plpgsql.scope import Scope, Variable
from sql.session.routines.plpgsql.statements import dynamic, rows_of
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.checking import Arguments, arguments_in_order


def run_open(frame: Frame, node: nodes.Open) -> Leave | None:
    """OPEN. Raises 42P03, 42601."""
    variable, rest = frame.scope.known(node.cursor.name)
    name = variable.part(rest)[0]
    if name is not None and frame.nested.has_cursor(str(name)):
        raise SqlError("42P03", f'cursor "{name}" already in use')
    scroll = node.scroll
    if node.query is not None:
        outcome = dynamic(frame, node.query, node.using) if node.dynamic else rows_of(frame, node.query)
        text = node.query.text
    else:
        if variable.cursor is None:
            raise SqlError("42601", f'cursor "{variable.name}" has no query')
        outcome, text, scroll = _bound_rows(frame, variable, node.arguments)
    chosen = frame.nested.open_cursor(None if name is None else str(name), outcome, text, scroll)
    if name is None:
        frame.assign(node.cursor, chosen, TEXT)
    return None


def _bound_rows(frame: Frame, variable: Variable, arguments: Arguments) -> tuple[Outcome, str, bool | None]:
    """The rows of a bound cursor's query for these arguments."""
    declaration = variable.cursor
    assert declaration is not None, "a bound cursor"
    assert declaration.query is not None, "it has a query"
    outer = frame.scope
    inner = Scope(outer)
    given = arguments_in_order(declaration, arguments)
    for (name, type_), fragment in zip(declaration.arguments, given, strict=True):
        value, have = frame.value(fragment)
        wanted, record = variable_type(frame.nested.names, outer, type_)
        frame.initialise(inner.add(of_type(name, wanted, record)), value, have)
    frame.scope = inner
    try:
        return rows_of(frame, declaration.query), declaration.query.text, declaration.scroll
    finally:
        frame.scope = outer


def _name(frame: Frame, target: nodes.Target) -> str:
    """The name of an open cursor. Raises 22004, 34000."""
    variable, rest = frame.scope.known(target.name)
    name = variable.part(rest)[0]
    if name is None:
        raise SqlError("22004", f'cursor variable "{variable.name}" is null')
    if not frame.nested.has_cursor(str(name)):
        raise SqlError("34000", f'cursor "{name}" does not exist')
    return str(name)


def run_fetch(frame: Frame, node: nodes.Fetch) -> Leave | None:
    """FETCH and MOVE, which set FOUND."""
    name = _name(frame, node.cursor)
    count = node.count
    if isinstance(count, nodes.Fragment):
        value = frame.value_as(count, INT8)
        if not isinstance(value, int):
            raise SqlError("22004", "relative or absolute cursor position is null")
        count = value
    outcome = frame.nested.fetch(name, node.direction, count)
    frame.row_count = len(outcome.rows)
    frame.found.value = bool(outcome.rows)
    if node.into is not None:
        frame.assign_row(node.into.targets, outcome.rows[0] if outcome.rows else None, outcome.columns or ())
    return None


def run_close(frame: Frame, node: nodes.Close) -> Leave | None:
    frame.nested.close_cursor(_name(frame, node.cursor))
    return None


def run_cursor_loop(frame: Frame, node: nodes.ForCursor) -> Leave | None:
    """FOR r IN cursor. Raises 42P03, 42601."""
    variable, _ = frame.scope.known(node.cursor.name)
    if variable.cursor is None:
        raise SqlError("42601", "cursor FOR loop must use a bound cursor variable")
    if variable.value is not None and frame.nested.has_cursor(str(variable.value)):
        raise SqlError("42P03", f'cursor "{variable.value}" already in use')
    outcome, text, scroll = _bound_rows(frame, variable, node.arguments)
    given = None if variable.value is None else str(variable.value)
    name = frame.nested.open_cursor(given, outcome, text, scroll, pinned=True)
    was, variable.value = variable.value, name
    outer = frame.scope
    frame.scope = Scope(outer, node.label)
    frame.scope.add(Variable(node.name, None, record=True))

    def rows() -> Iterable[tuple[object, ...]]:
        while found := frame.nested.fetch(name, "forward", 1).rows:
            yield found[0]

    try:
        return turn_rows(frame, node, (nodes.Target((node.name,)),), rows(), outcome.columns or ())
    finally:
        frame.scope = outer
        if frame.nested.has_cursor(name):
            frame.nested.close_cursor(name)
        variable.value = was
