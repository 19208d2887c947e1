"""CREATE and DROP FUNCTION, CREATE and DROP AGGREGATE."""

from __future__ import annotations

from functools import partial
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.nodes.queries import TableName, TypeName
from sql.syntax.nodes.routines import ArgumentNode, CreateFunctionStatement, DropFunctionStatement

_CREATES: Final = (("create",), ("create", "or", "replace"))
_MODES: Final = ("out", "inout", "variadic")
_VOLATILITY: Final = ("immutable", "stable", "volatile")
_PYTHON: Final = "Write it in LANGUAGE python: RETURNS type LANGUAGE python AS $$ def name(values): … $$."


def routine_statement(cursor: DefinitionGrammar) -> CreateFunctionStatement | DropFunctionStatement | None:
    """The whole statement, None if another one is next."""
    if cursor.accept("drop", "function"):
        return _drop(cursor, False)
    if cursor.accept("drop", "aggregate"):
        return _drop(cursor, True)
    if not any(cursor.is_word(*words, kind) for words in _CREATES for kind in ("function", "aggregate")):
        return None
    at = cursor.token.start
    cursor.expect("create")
    replace = cursor.accept("or", "replace")
    aggregate = cursor.accept("aggregate")
    if not aggregate:
        cursor.expect("function")
    name = cursor.table_name()
    found = _Parts(at, name, replace, aggregate)
    cursor.expect_symbol("(")
    if aggregate and cursor.accept_symbol("*"):
        pass
    elif not cursor.is_symbol(")"):
        found.arguments = cursor.listed(partial(_argument, cursor))
    cursor.expect_symbol(")")
    if aggregate and cursor.is_symbol("("):
        raise unsupported("an aggregate of a state function", _PYTHON, cursor.token.start + 1)
    if cursor.accept("returns"):
        _returns(cursor, found)
    while not cursor.at_end():
        _clause(cursor, found)
    return found.statement()


class _Parts:
    """The clauses read so far of a CREATE FUNCTION or AGGREGATE."""

    def __init__(self, at: int, name: TableName, replace: bool, aggregate: bool) -> None:
        self.at, self.name, self.replace, self.aggregate = at, name, replace, aggregate
        self.arguments: tuple[ArgumentNode, ...] = ()
        self.columns: tuple[ArgumentNode, ...] | None = None
        self.result: TypeName | None = None
        self.returns_set = False
        self.language: str | None = None
        self.body: tuple[str, int] | None = None
        self.expression = False
        self.volatility = "immutable" if aggregate else "volatile"
        self.strict = aggregate

    def statement(self) -> CreateFunctionStatement:
        if self.language is None and not self.expression:
            raise SqlError("42P13", "no language specified")
        if self.aggregate and (self.language != "python" or self.expression):
            raise unsupported(f"an aggregate in LANGUAGE {self.language or 'sql'}", _PYTHON, self.at + 1)
        if self.aggregate and self.volatility != "immutable":
            hint = "What an aggregate gives may depend on its group's values only."
            raise unsupported(f"a {self.volatility} aggregate", hint, self.at + 1)
        if self.aggregate and self.returns_set:
            raise SqlError("42P13", "aggregates cannot return sets")
        if not self.aggregate and self.language not in (None, "sql", "plpgsql"):
            raise unsupported(
                f"LANGUAGE {self.language}", "Write the function in LANGUAGE sql or plpgsql.", self.at + 1
            )
        if self.body is None:
            raise SqlError("42P13", "no function body specified")
        if self.result is None and self.columns is None:
            raise SqlError("42P13", "function result type must be specified")
        return CreateFunctionStatement(
            self.name, self.replace, self.arguments, self.columns, self.result, self.returns_set, self.body[0],
            self.expression, self.volatility, self.strict, self.at, self.aggregate,
            self.language or "sql",
        )  # fmt: skip


def _argument(cursor: DefinitionGrammar) -> ArgumentNode:
    at = cursor.token.start
    if cursor.is_one_of(*_MODES):
        raise unsupported(f"{cursor.token.value.upper()} parameters", position=at + 1)
    cursor.accept("in")
    name, type_ = _named_type(cursor)
    default = None
    if cursor.accept("default") or cursor.accept_symbol("="):
        start = cursor.token.start
        expr = cursor.expression()
        default = expr, cursor.source(start, cursor.index)
    return ArgumentNode(name, type_, default, at)


def _named_type(cursor: DefinitionGrammar) -> tuple[str | None, TypeName]:
    """``[name] type``."""
    start = cursor.index
    try:
        type_ = cursor.type_name()
        if cursor.is_symbol(",") or cursor.is_symbol(")") or cursor.is_symbol("=") or cursor.is_word("default"):
            return None, type_
    except SqlError:
        pass
    cursor.index = start
    return cursor.label(), cursor.type_name()


def _returns(cursor: DefinitionGrammar, found: _Parts) -> None:
    if cursor.accept("table"):
        found.columns = cursor.enclosed(partial(_column, cursor))
        found.returns_set = True
        return
    found.returns_set = cursor.accept("setof")
    found.result = cursor.type_name()


def _column(cursor: DefinitionGrammar) -> ArgumentNode:
    at = cursor.token.start
    return ArgumentNode(cursor.label(), cursor.type_name(), None, at)


def _clause(cursor: DefinitionGrammar, found: _Parts) -> None:
    token = cursor.token
    if cursor.accept("language"):
        found.language = cursor.advance().value.lower()
    elif cursor.is_one_of(*_VOLATILITY):
        found.volatility = cursor.advance().value
    elif cursor.accept("strict") or cursor.accept("returns", "null", "on", "null", "input"):
        found.strict = True
    elif cursor.accept("called", "on", "null", "input"):
        found.strict = False
    elif (
        cursor.accept("leakproof")
        or cursor.accept("not", "leakproof")
        or cursor.accept("security", "invoker")
        or cursor.accept("window")
    ):
        pass
    elif cursor.accept_one_of("parallel", "cost", "rows"):
        cursor.advance()
    elif cursor.accept("return"):
        start = cursor.token.start
        cursor.expression()
        found.body, found.expression = (cursor.source(start, cursor.index), start), True
    elif cursor.accept("as"):
        at = cursor.token.start
        found.body = cursor.string(), at
        if cursor.is_symbol(","):
            raise unsupported("functions of object files", position=at + 1)
    elif cursor.is_word("begin", "atomic"):
        raise unsupported("BEGIN ATOMIC", "Give the body as a string, or as RETURN expression.", token.start + 1)
    elif cursor.is_one_of("security", "set", "support", "transform"):
        raise unsupported(f"{token.value.upper()} of a function", position=token.start + 1)
    else:
        raise cursor.error()


def _drop(cursor: DefinitionGrammar, aggregate: bool) -> DropFunctionStatement:
    exists = cursor.accept("if", "exists")
    names = cursor.listed(partial(signature, cursor, aggregate))
    return DropFunctionStatement(names, exists, cursor.cascade(), aggregate)


def signature(cursor: DefinitionGrammar, aggregate: bool) -> tuple[TableName, tuple[TypeName, ...] | None]:
    """A name, and the types of its arguments if they are given."""
    name = cursor.table_name()
    if aggregate and not cursor.is_symbol("("):
        raise cursor.error()
    if not cursor.accept_symbol("("):
        return name, None
    if aggregate and cursor.accept_symbol("*") and not cursor.is_symbol(")"):
        raise cursor.error()
    types: list[TypeName] = []
    while not cursor.accept_symbol(")"):
        if types:
            cursor.expect_symbol(",")
        cursor.accept("in")
        types.append(_named_type(cursor)[1])
    return name, tuple(types)
