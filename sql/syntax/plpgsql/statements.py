"""The statements of PL/pgSQL that hold no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.cursor import BodyCursor
from sql.syntax.plpgsql.cursors import close, fetch, open_
from sql.syntax.plpgsql.loops import using
from sql.syntax.plpgsql.raising import raise_

DIAGNOSTICS: Final = {
    False: ("row_count", "pg_context"),
    True: (
        "returned_sqlstate", "message_text", "pg_exception_detail", "pg_exception_hint", "pg_exception_context",
        "column_name", "constraint_name", "pg_datatype_name", "table_name", "schema_name", "pg_context",
    ),
}  # fmt: skip
"""The items of GET [STACKED] DIAGNOSTICS."""


def statement(cursor: BodyCursor, line: int) -> nodes.Node:
    """The next statement."""
    if _assigns(cursor):
        start = cursor.token.start
        target = cursor.assigned()
        cursor.advance()
        value = cursor.fragment(";")
        shown = cursor.text[start : cursor.tokens[cursor.index - 1].end]
        cursor.end_statement()
        return nodes.Assign(line, target, replace(value, assignment=shown))
    word = cursor.token.value if cursor.token.kind is TokenKind.WORD else ""
    own = _OWN.get(word)
    if own is None or (
        word in ("get", "open", "fetch", "move", "close", "assert", "raise") and cursor.is_symbol("(", 1)
    ):
        return _sql(cursor, line)
    cursor.advance()
    return own(cursor, line)


def _assigns(cursor: BodyCursor) -> bool:
    """Whether ``:=`` follows a name with any fields and subscripts."""
    if not cursor.is_variable() and cursor.token.kind is not TokenKind.PARAMETER:
        return False
    i, tokens = cursor.index + 1, cursor.tokens
    depth = 0
    while i < len(tokens) - 1 and (depth or (tokens[i].kind is TokenKind.SYMBOL and tokens[i].value in ("[", "."))):
        i += depth == 0 and tokens[i].value == "."
        depth += (tokens[i].value == "[") - (tokens[i].value == "]")
        i += 1
    return i < len(tokens) and tokens[i].kind is TokenKind.SYMBOL and tokens[i].value in (":=", "=")


def _null(cursor: BodyCursor, line: int) -> nodes.Node:
    cursor.end_statement()
    return nodes.Null(line)


def _exit(again: bool) -> Callable[[BodyCursor, int], nodes.Node]:
    def read(cursor: BodyCursor, line: int) -> nodes.Node:
        label = cursor.advance().value if cursor.is_variable() else None
        condition = cursor.fragment(";") if cursor.accept("when") else None
        cursor.end_statement()
        return nodes.Exit(line, again, label, condition)

    return read


def _return(cursor: BodyCursor, line: int) -> nodes.Node:
    if cursor.accept("next"):
        value = None if cursor.is_symbol(";") else cursor.fragment(";")
        cursor.end_statement()
        return nodes.ReturnNext(line, value)
    if cursor.accept("query"):
        dynamic = cursor.accept("execute")
        query = cursor.fragment(";", "using") if dynamic else cursor.fragment(";", statement=True)
        values = using(cursor, ";") if dynamic else ()
        cursor.end_statement()
        return nodes.ReturnQuery(line, query, dynamic, values)
    value = None if cursor.is_symbol(";") else cursor.fragment(";")
    cursor.end_statement()
    return nodes.Return(line, value)


def _perform(cursor: BodyCursor, line: int) -> nodes.Node:
    value = cursor.fragment(";")
    cursor.end_statement()
    return nodes.Sql(line, nodes.Fragment(f"SELECT {value.text}", value.line, True), None, True)


def _call(cursor: BodyCursor, line: int) -> nodes.Node:
    start = cursor.tokens[cursor.index - 1].start
    cursor.fragment(";")
    whole = cursor.made(cursor.text[start : cursor.tokens[cursor.index - 1].end], line, True)
    cursor.end_statement()
    return nodes.Call(line, whole)


def _execute(cursor: BodyCursor, line: int) -> nodes.Node:
    query = cursor.fragment("into", "using", ";")
    into: nodes.Into | None = None
    values: tuple[nodes.Fragment, ...] = ()
    while not cursor.is_symbol(";"):
        if into is None and cursor.accept("into"):
            into = cursor.into()
        elif not values and cursor.is_word("using"):
            values = using(cursor, "into", ";")
        else:
            raise cursor.error()
    cursor.end_statement()
    return nodes.Execute(line, query, into, values)


def _assert(cursor: BodyCursor, line: int) -> nodes.Node:
    condition = cursor.fragment(",", ";")
    message = cursor.fragment(";") if cursor.accept_symbol(",") else None
    cursor.end_statement()
    return nodes.Assert(line, condition, message)


def _get(cursor: BodyCursor, line: int) -> nodes.Node:
    stacked = cursor.accept("stacked")
    cursor.accept("current")
    cursor.expect("diagnostics")
    items = []
    while True:
        target = cursor.target()
        if cursor.is_symbol("["):
            raise SqlError("42601", f'"{".".join(target.name)}" is not a scalar variable')
        if not cursor.accept_symbol("=") and not cursor.accept_symbol(":="):
            raise cursor.error()
        item = cursor.label()
        if item not in DIAGNOSTICS[False] + DIAGNOSTICS[True]:
            raise SqlError("42601", f'unrecognized GET DIAGNOSTICS item at or near "{item}"')
        if item not in DIAGNOSTICS[stacked]:
            kind = "STACKED" if stacked else "CURRENT"
            raise SqlError("42601", f"diagnostics item {item.upper()} is not allowed in GET {kind} DIAGNOSTICS")
        items.append((target, item))
        if not cursor.accept_symbol(","):
            break
    cursor.end_statement()
    return nodes.GetDiagnostics(line, stacked, tuple(items))


def _end(commit: bool) -> Callable[[BodyCursor, int], nodes.Node]:
    def read(cursor: BodyCursor, line: int) -> nodes.Node:
        chain = cursor.accept("and", "chain")
        if not chain:
            cursor.accept("and", "no", "chain")
        cursor.end_statement()
        return nodes.End(line, commit, chain)

    return read


def _sql(cursor: BodyCursor, line: int) -> nodes.Node:
    """Any other statement is SQL, whose INTO is taken out."""
    start, pieces, into = cursor.index, [], None
    first = cursor.token.start
    while not cursor.is_symbol(";"):
        if cursor.at_end():
            raise cursor.error()
        before = cursor.tokens[cursor.index - 1].value if cursor.index > start else ""
        if cursor.is_word("into") and before not in ("insert", "merge"):
            if into is not None:
                raise SqlError("42601", "INTO specified more than once")
            pieces.append(cursor.text[first : cursor.token.start])
            cursor.advance()
            into = cursor.into()
            first = cursor.token.start
        else:
            cursor.advance()
    pieces.append(cursor.text[first : cursor.token.start])
    text = " ".join(p.strip() for p in pieces).strip()
    if not text:
        raise cursor.error()
    fragment = cursor.made(text, line, True)
    cursor.end_statement()
    return nodes.Sql(line, fragment, into)


_OWN: Final[dict[str, Callable[[BodyCursor, int], nodes.Node]]] = {
    "null": _null, "exit": _exit(False), "continue": _exit(True), "return": _return, "perform": _perform,
    "call": _call, "execute": _execute, "assert": _assert, "get": _get, "raise": raise_, "open": open_,
    "fetch": fetch(False), "move": fetch(True), "close": close, "commit": _end(True), "rollback": _end(False),
}  # fmt: skip
