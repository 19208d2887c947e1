"""LOOP, WHILE, FOR and FOREACH, and the arguments of cursors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.cursor import BodyCursor

Statements = Callable[..., tuple[nodes.Node, ...]]
_QUERIES: Final = ("select", "with", "values", "insert", "update", "delete", "merge", "table", "show", "explain")


def loop(cursor: BodyCursor, label: str | None, line: int, body: Statements) -> nodes.Node | None:
    """A loop, if one is next. ``body``: reads statements up to END."""
    if cursor.accept("loop"):
        return nodes.Loop(line, label, None, _body(cursor, label, body))
    if cursor.accept("while"):
        condition = cursor.fragment("loop")
        cursor.advance()
        return nodes.Loop(line, label, condition, _body(cursor, label, body))
    if cursor.accept("foreach"):
        return _foreach(cursor, label, line, body)
    if cursor.accept("for"):
        return _for(cursor, label, line, body)
    return None


def _body(cursor: BodyCursor, label: str | None, body: Statements) -> tuple[nodes.Node, ...]:
    found = body()
    cursor.expect("end")
    cursor.expect("loop")
    end_label(cursor, label)
    return found


def end_label(cursor: BodyCursor, label: str | None) -> None:
    """The label after END, if there is one, and the semicolon. Raises 42601 where it is not the block's."""
    if cursor.is_variable():
        name = cursor.advance().value
        if label is None:
            raise SqlError("42601", f'end label "{name}" specified for unlabeled block')
        if name != label:
            raise SqlError("42601", f'end label "{name}" differs from block\'s label "{label}"')
    if not (cursor.at_end() and cursor.index):
        cursor.end_statement()


def _foreach(cursor: BodyCursor, label: str | None, line: int, body: Statements) -> nodes.Node:
    targets = [cursor.target()]
    while cursor.accept_symbol(","):
        targets.append(cursor.target())
    slice_ = cursor.integer() if cursor.accept("slice") else 0
    cursor.expect("in")
    cursor.expect("array")
    array = cursor.fragment("loop")
    cursor.advance()
    return nodes.ForEach(line, label, tuple(targets), slice_, array, _body(cursor, label, body))


def _for(cursor: BodyCursor, label: str | None, line: int, body: Statements) -> nodes.Node:
    targets = [cursor.target()]
    while cursor.accept_symbol(","):
        targets.append(cursor.target())
    cursor.expect("in")
    if cursor.accept("execute"):
        query = cursor.fragment("loop", "using")
        values = using(cursor, "loop")
        cursor.advance()
        return nodes.ForRows(line, label, tuple(targets), query, True, values, _body(cursor, label, body))
    reverse = cursor.accept("reverse")
    if _is_range(cursor):
        return _range(cursor, label, line, targets, reverse, body)
    if reverse:
        raise SqlError("42601", "cannot specify REVERSE in query FOR loop")
    if not cursor.is_one_of(*_QUERIES) and not cursor.is_symbol("(") and _is_cursor(cursor):
        return _cursor(cursor, label, line, targets, body)
    query = cursor.fragment("loop", statement=True)
    cursor.advance()
    return nodes.ForRows(line, label, tuple(targets), query, False, (), _body(cursor, label, body))


def _is_range(cursor: BodyCursor) -> bool:
    """Whether ``..`` stands before LOOP."""
    depth, i = 0, cursor.index
    while i < len(cursor.tokens) - 1:
        token = cursor.tokens[i]
        if token.kind is TokenKind.SYMBOL:
            depth += (token.value in "([") - (token.value in ")]")
            if token.value == ".." and not depth:
                return True
            if token.value == ";":
                return False
        elif token.kind is TokenKind.WORD and token.value == "loop" and not depth:
            return False
        i += 1
    return False


def _range(
    cursor: BodyCursor, label: str | None, line: int, targets: list[nodes.Target], reverse: bool, body: Statements
) -> nodes.Node:
    if len(targets) > 1 or len(targets[0].name) > 1:
        raise SqlError("42601", "integer FOR loop must have only one target variable")
    first = cursor.fragment("..")
    cursor.advance()
    last = cursor.fragment("loop", "by")
    step = cursor.fragment("loop") if cursor.accept("by") else None
    cursor.advance()
    return nodes.ForRange(line, label, targets[0].name[0], reverse, first, last, step, _body(cursor, label, body))


def _is_cursor(cursor: BodyCursor) -> bool:
    """Whether ``name LOOP`` or ``name (…) LOOP`` is next."""
    i = cursor.index
    while cursor.tokens[i].kind in (TokenKind.WORD, TokenKind.QUOTED) and cursor.tokens[i + 1].value == ".":
        i += 2
    if cursor.tokens[i].kind not in (TokenKind.WORD, TokenKind.QUOTED):
        return False
    after = cursor.tokens[i + 1]
    return after.value in ("loop", "(") and after.kind is not TokenKind.QUOTED


def _cursor(
    cursor: BodyCursor, label: str | None, line: int, targets: list[nodes.Target], body: Statements
) -> nodes.Node:
    if len(targets) > 1 or len(targets[0].name) > 1:
        raise SqlError("42601", "cursor FOR loop must have only one target variable")
    name = cursor.target()
    arguments = cursor_arguments(cursor)
    cursor.expect("loop")
    return nodes.ForCursor(line, label, targets[0].name[0], name, arguments, _body(cursor, label, body))


def cursor_arguments(cursor: BodyCursor) -> tuple[tuple[str | None, nodes.Fragment], ...]:
    """``(a, b)``, ``(name := a, …)`` or nothing."""
    if not cursor.accept_symbol("("):
        return ()
    found: list[tuple[str | None, nodes.Fragment]] = []
    while not cursor.accept_symbol(")"):
        if found:
            cursor.expect_symbol(",")
        name = None
        if cursor.is_variable() and (cursor.is_symbol(":=", 1) or cursor.is_symbol("=>", 1)):
            name = cursor.advance().value
            cursor.advance()
        found.append((name, cursor.fragment(",", ")")))
    return tuple(found)


def using(cursor: BodyCursor, *until: str) -> tuple[nodes.Fragment, ...]:
    """USING's expressions, if it is next."""
    if not cursor.accept("using"):
        return ()
    values = [cursor.fragment(",", *until)]
    while cursor.accept_symbol(","):
        values.append(cursor.fragment(",", *until))
    return tuple(values)
