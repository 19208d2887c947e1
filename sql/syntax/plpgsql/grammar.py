"""The grammar of PL/pgSQL (pl_gram.y): a body → ``nodes.Body``. Raises 42601 with PostgreSQL's words."""

from __future__ import annotations

from functools import lru_cache

from ivm.errors import too_deep
from ivm.stops import poll
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.cursor import BodyCursor
from sql.syntax.plpgsql.declarations import declarations
from sql.syntax.plpgsql.loops import end_label, loop
from sql.syntax.plpgsql.statements import statement


@lru_cache(maxsize=512)
def parse_body(text: str) -> nodes.Body:
    """The tree of a function's body."""
    cursor = BodyCursor(text)
    conflict = "error"
    while cursor.accept_symbol("#"):
        option = cursor.label()
        if option == "variable_conflict":
            conflict = cursor.label()
        elif option in ("option", "print_strict_params"):
            cursor.label()
        else:
            raise cursor.error()
    try:
        label = _label(cursor)
        if not cursor.is_one_of("declare", "begin"):
            raise cursor.error()
        block = _block(cursor, label)
    except RecursionError:
        raise too_deep() from None
    cursor.accept_symbol(";")
    if not cursor.at_end():
        raise cursor.error()
    return nodes.Body(block, conflict)


def _label(cursor: BodyCursor) -> str | None:
    if not cursor.accept_symbol("<<"):
        return None
    label = cursor.variable()
    cursor.expect_symbol(">>")
    return label


def _block(cursor: BodyCursor, label: str | None) -> nodes.Block:
    line = cursor.line
    declared = declarations(cursor) if cursor.accept("declare") else ()
    cursor.expect("begin")
    body = _statements(cursor)
    handlers: list[nodes.Handler] = []
    if cursor.accept("exception"):
        while cursor.accept("when"):
            handlers.append(_handler(cursor))
        if not handlers:
            raise cursor.error()
    cursor.expect("end")
    end_label(cursor, label)
    return nodes.Block(line, label, declared, body, tuple(handlers))


def _handler(cursor: BodyCursor) -> nodes.Handler:
    conditions = [_condition(cursor)]
    while cursor.accept("or"):
        conditions.append(_condition(cursor))
    cursor.expect("then")
    return nodes.Handler(tuple(conditions), _statements(cursor, "when"))


def _condition(cursor: BodyCursor) -> tuple[str, bool]:
    name = cursor.variable()
    if name == "sqlstate" and cursor.token.kind is TokenKind.STRING:
        return cursor.advance().value, True
    return name, False


def _statements(cursor: BodyCursor, *until: str) -> tuple[nodes.Node, ...]:
    """Statements up to END, EXCEPTION or one of these words."""
    found: list[nodes.Node] = []
    while not cursor.is_one_of("end", "exception", *until):
        if cursor.at_end():
            raise cursor.error()
        poll()
        found.append(_statement(cursor))
    return tuple(found)


def _statement(cursor: BodyCursor) -> nodes.Node:
    label = _label(cursor)
    line = cursor.line
    if cursor.is_one_of("declare", "begin"):
        return _block(cursor, label)
    found = loop(cursor, label, line, lambda: _statements(cursor))
    if found is not None:
        return found
    if label is not None:
        raise cursor.error()
    if cursor.accept("if"):
        return _if(cursor, line)
    if cursor.accept("case"):
        return _case(cursor, line)
    if cursor.is_word("elsif") or cursor.is_word("elseif"):
        raise cursor.error()
    return statement(cursor, line)


def _if(cursor: BodyCursor, line: int) -> nodes.If:
    arms = []
    while True:
        condition = cursor.fragment("then")
        cursor.advance()
        arms.append((condition, _statements(cursor, "elsif", "elseif", "else")))
        if not cursor.accept_one_of("elsif", "elseif"):
            break
    otherwise = _statements(cursor) if cursor.accept("else") else ()
    cursor.expect("end")
    cursor.expect("if")
    cursor.end_statement()
    return nodes.If(line, tuple(arms), otherwise)


def _case(cursor: BodyCursor, line: int) -> nodes.Case:
    value = None if cursor.is_word("when") else cursor.fragment("when")
    arms = []
    while cursor.accept("when"):
        condition = cursor.fragment("then")
        if value is not None:
            condition = cursor.made(f'"{nodes.CASE_VALUE}" IN ({condition.text})', condition.line, False)
        cursor.advance()
        arms.append((condition, _statements(cursor, "when", "else")))
    if not arms:
        raise cursor.error()
    otherwise = _statements(cursor) if cursor.accept("else") else None
    cursor.expect("end")
    cursor.expect("case")
    cursor.end_statement()
    return nodes.Case(line, value, tuple(arms), otherwise)
