"""OPEN, FETCH, MOVE and CLOSE."""

from __future__ import annotations

from collections.abc import Callable

from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.cursor import BodyCursor
from sql.syntax.plpgsql.loops import cursor_arguments, using

_SINGLE = {"next": ("forward", 1), "prior": ("backward", 1), "first": ("absolute", 1), "last": ("absolute", -1)}


def open_(cursor: BodyCursor, line: int) -> nodes.Node:
    """What follows OPEN."""
    name = cursor.target()
    scroll = None
    if cursor.accept("no", "scroll"):
        scroll = False
    elif cursor.accept("scroll"):
        scroll = True
    query, dynamic = None, False
    values: tuple[nodes.Fragment, ...] = ()
    arguments: tuple[tuple[str | None, nodes.Fragment], ...] = ()
    if cursor.accept("for"):
        dynamic = cursor.accept("execute")
        query = cursor.fragment(";", "using") if dynamic else cursor.fragment(";", statement=True)
        values = using(cursor, ";") if dynamic else ()
    else:
        arguments = cursor_arguments(cursor)
    cursor.end_statement()
    return nodes.Open(line, name, query, dynamic, values, arguments, scroll)


def fetch(moves: bool) -> Callable[[BodyCursor, int], nodes.Node]:
    """What follows FETCH, or MOVE."""

    def read(cursor: BodyCursor, line: int) -> nodes.Node:
        direction, count = _direction(cursor, moves)
        name = cursor.target()
        into = None
        if not moves:
            cursor.expect("into")
            into = cursor.into()
        cursor.end_statement()
        return nodes.Fetch(line, name, direction, count, into)

    return read


def _direction(cursor: BodyCursor, moves: bool) -> tuple[str, nodes.Fragment | int | None]:
    found: tuple[str, nodes.Fragment | int | None] = "forward", 1
    word = cursor.token.value if cursor.token.kind is TokenKind.WORD else ""
    named = not (cursor.is_symbol(";", 1) or cursor.ahead().value == "into")
    if word in _SINGLE and named:
        cursor.advance()
        found = _SINGLE[word]
    elif word in ("absolute", "relative") and named:
        cursor.advance()
        found = word, cursor.fragment("from", "in")
    elif word == "all" and named:
        cursor.advance()
        found = "forward", None
    elif word in ("forward", "backward") and named:
        cursor.advance()
        found = word, 1
        if cursor.accept("all"):
            found = word, None
        elif not cursor.is_one_of("from", "in") and not _ends(cursor):
            found = word, cursor.fragment("from", "in")
    elif not _ends(cursor):
        found = "forward", cursor.fragment("from", "in")
    if not cursor.accept("from"):
        cursor.accept("in")
    return found


def _ends(cursor: BodyCursor) -> bool:
    """Whether only the cursor's name is left."""
    return cursor.is_variable() and (cursor.is_symbol(";", 1) or cursor.ahead().value == "into")


def close(cursor: BodyCursor, line: int) -> nodes.Node:
    """What follows CLOSE."""
    name = cursor.target()
    cursor.end_statement()
    return nodes.Close(line, name)
