"""Blocks, conditions and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ivm.errors import SqlError
from ivm.words import INT4, TEXT, Kind, SqlType
from sql.session.routines.nested import Row
from sql.session.routines.plpgsql.declaring import declare
from sql.session.routines.plpgsql.frame import Frame, Jump, Leave
from sql.session.routines.plpgsql.scope import Scope, Variable
from sql.session.routines.plpgsql.statements import dynamic, rows_of
from sql.statements.queries import OutputColumn
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.conditions import handles
from storage.types.arrays import shape


def run_block(frame: Frame, block: nodes.Block) -> Leave | None:
    """BEGIN … EXCEPTION … END: a subtransaction if it has handlers."""
    outer = frame.scope
    frame.scope = Scope(outer, block.label)
    try:
        declare(frame, block.declarations)
        left = _handled(frame, block) if block.handlers else frame.run(block.body)
    finally:
        frame.scope = outer
    if isinstance(left, Jump) and not left.again and left.label is not None and left.label == block.label:
        return None
    return left


def _handled(frame: Frame, block: nodes.Block) -> Leave | None:
    nested, scope = frame.nested, frame.scope
    mark = nested.mark()
    try:
        left = frame.run(block.body)
        nested.release(mark)
        return left
    except SqlError as error:
        handler = next((h for h in block.handlers if handles(h.conditions, error.sqlstate)), None)
        if handler is None:
            raise
        nested.rollback_to(mark)
        frame.complete(error)
        return _handle(frame, handler, error, scope)


def _handle(frame: Frame, handler: nodes.Handler, error: SqlError, scope: Scope) -> Leave | None:
    outer = frame.handled
    frame.handled = error
    frame.scope = Scope(scope)
    frame.scope.add(Variable("sqlstate", TEXT, error.sqlstate, constant=True))
    frame.scope.add(Variable("sqlerrm", TEXT, error.message, constant=True))
    try:
        return frame.run(handler.body)
    finally:
        frame.handled, frame.scope = outer, scope


def run_if(frame: Frame, node: nodes.If) -> Leave | None:
    for condition, body in node.arms:
        if frame.condition(condition):
            return frame.run(body)
    return frame.run(node.otherwise)


def run_case(frame: Frame, node: nodes.Case) -> Leave | None:
    """CASE. Raises 20000 where no arm is met."""
    if node.value is not None:
        return _simple_case(frame, node)
    for condition, body in node.arms:
        if frame.condition(condition):
            return frame.run(body)
    return _otherwise(frame, node)


def _simple_case(frame: Frame, node: nodes.Case) -> Leave | None:
    """CASE value WHEN a, b THEN …: the value is a variable of each comparison."""
    assert node.value is not None, "a simple CASE"
    value, type_ = frame.value(node.value)
    outer = frame.scope
    frame.scope = Scope(outer)
    frame.scope.add(Variable(nodes.CASE_VALUE, type_, value))
    try:
        chosen = next((body for when, body in node.arms if frame.condition(when)), None)
    finally:
        frame.scope = outer
    return _otherwise(frame, node) if chosen is None else frame.run(chosen)


def _otherwise(frame: Frame, node: nodes.Case) -> Leave | None:
    if node.otherwise is None:
        raise SqlError("20000", "case not found", hint="CASE statement is missing ELSE part.")
    return frame.run(node.otherwise)


def run_loop(frame: Frame, node: nodes.Loop) -> Leave | None:
    def turns() -> Iterable[None]:
        while True:
            frame.nested.between()
            frame.statement = node
            if node.condition is not None and not frame.condition(node.condition):
                return
            yield None

    return _turn(frame, node.label, node.body, turns())


def _turn(frame: Frame, label: str | None, body: Sequence[nodes.Node], turns: Iterable[object]) -> Leave | None:
    """Run a loop's body once for each turn."""
    for _ in turns:
        left = frame.run(body)
        if left is None:
            continue
        if not isinstance(left, Jump) or left.label not in (None, label):
            return left
        if not left.again:
            return None
    return None


def _found_after(frame: Frame, loop: Callable[[list[bool]], Leave | None]) -> Leave | None:
    """A FOR loop, which sets FOUND at its end: whether it ran at least once."""
    ran = [False]
    left = loop(ran)
    frame.found.value = ran[0]
    return left


def run_range(frame: Frame, node: nodes.ForRange) -> Leave | None:
    """FOR i IN a .. b. Raises 22004, 22023."""
    first = _bound(frame, node.first, "lower")
    last = _bound(frame, node.last, "upper")
    step = 1
    if node.step is not None:
        step = _bound(frame, node.step, "BY value of FOR loop cannot be null")
        if step <= 0:
            raise SqlError("22023", "BY value of FOR loop must be greater than zero")
    outer = frame.scope
    frame.scope = Scope(outer, node.label)
    variable = frame.scope.add(Variable(node.name, INT4))

    def loop(ran: list[bool]) -> Leave | None:
        def turns() -> Iterable[None]:
            for value in range(first, last - 1, -step) if node.reverse else range(first, last + 1, step):
                ran[0], variable.value = True, value
                frame.nested.between()
                yield None

        return _turn(frame, node.label, node.body, turns())

    try:
        return _found_after(frame, loop)
    finally:
        frame.scope = outer


def _bound(frame: Frame, fragment: nodes.Fragment, what: str) -> int:
    value = frame.value_as(fragment, INT4)
    if not isinstance(value, int):
        message = what if " " in what else f"{what} bound of FOR loop cannot be null"
        raise SqlError("22004", message)
    return value


def run_rows(frame: Frame, node: nodes.ForRows) -> Leave | None:
    """FOR r IN query, or IN EXECUTE text."""
    outcome = dynamic(frame, node.query, node.using) if node.dynamic else rows_of(frame, node.query)
    with frame.nested.over(outcome):
        return turn_rows(frame, node, node.targets, outcome.rows, outcome.columns or ())


def turn_rows(
    frame: Frame, node: nodes.ForRows | nodes.ForCursor, targets: Sequence[nodes.Target], rows: Iterable[Row],
    columns: Sequence[OutputColumn],
) -> Leave | None:  # fmt: skip
    """A loop over rows; without any, the targets become NULL."""

    def loop(ran: list[bool]) -> Leave | None:
        def turns() -> Iterable[None]:
            for row in rows:
                ran[0] = True
                frame.statement = node
                frame.assign_row(targets, row, columns)
                yield None
            if not ran[0]:
                frame.assign_row(targets, None, columns)

        return _turn(frame, node.label, node.body, turns())

    return _found_after(frame, loop)


def run_each(frame: Frame, node: nodes.ForEach) -> Leave | None:
    """FOREACH x IN ARRAY. Raises 22004, 42804, 2202E."""
    value, type_ = frame.value(node.array)
    if value is None:
        raise SqlError("22004", "FOREACH expression must not be null")
    if type_.element is None:
        shown = frame.type_name(type_)
        raise SqlError("42804", f"FOREACH expression must yield an array, not type {shown}")
    assert isinstance(value, tuple), "an array"
    items, kind = _slices(value, type_, node.slice)
    if node.slice:
        target = frame.scope.known(node.targets[0].name)[0]
        if target.type is None or target.type.element is None:
            raise SqlError("42804", "FOREACH ... SLICE loop variable must be of an array type")

    def loop(ran: list[bool]) -> Leave | None:
        def turns() -> Iterable[None]:
            for item in items:
                ran[0] = True
                frame.statement = node
                frame.assign_value(node.targets, item, kind)
                yield None

        return _turn(frame, node.label, node.body, turns())

    return _found_after(frame, loop)


def _slices(value: tuple[object, ...], type_: SqlType, depth: int) -> tuple[list[object], SqlType]:
    """The elements in their order, or the slices of ``depth`` dimensions."""
    assert type_.element is not None, "an array"
    dimensions = len(shape(value, type_.element.kind is Kind.INTERVAL))
    if depth > max(dimensions, 1) or (depth and not value):
        raise SqlError("2202E", f"slice dimension ({depth}) is out of the valid range 0..{dimensions}")
    found: list[object] = [value]
    for _ in range(max(dimensions, 1) - depth):
        found = [item for part in found for item in part]  # type: ignore[attr-defined]
    return found, type_ if depth else type_.element


def run_exit(frame: Frame, node: nodes.Exit) -> Leave | None:
    if node.condition is not None and not frame.condition(node.condition):
        return None
    return Jump(node.again, node.label)
