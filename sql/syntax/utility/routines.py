"""CREATE and DROP of FUNCTION, PROCEDURE and AGGREGATE, and CALL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.queries import Apply, TableName, TypeName
from sql.syntax.nodes.routines import (
    ArgumentNode,
    CallStatement,
    CreateAggregateStatement,
    CreateFunctionStatement,
    DropFunctionStatement,
)

_CREATES: Final = (("create",), ("create", "or", "replace"))
_KINDS: Final = ("function", "procedure", "aggregate")
_ATTRIBUTES: Final = ("sfunc", "sfunc1", "stype", "stype1", "basetype", "finalfunc", "initcond")
_VOLATILITY: Final = ("immutable", "stable", "volatile")
_NOT_OF_PROCEDURES: Final = (
    *_VOLATILITY, "strict", "returns", "called", "leakproof", "window", "parallel", "cost", "rows",
)  # fmt: skip
LANGUAGES: Final = ("sql", "plpgsql", "python")
"""What a function or procedure may be written in."""
_PYTHON: Final = "Write it in LANGUAGE python: RETURNS type LANGUAGE python AS $$ def name(values): … $$."


def routine_statement(
    cursor: DefinitionGrammar,
) -> CreateFunctionStatement | CreateAggregateStatement | DropFunctionStatement | None:
    """The whole statement, None if another one is next."""
    for kind in (*_KINDS, "routine"):
        if cursor.accept("drop", kind):
            return _drop(cursor, kind)
    if not any(cursor.is_word(*words, kind) for words in _CREATES for kind in _KINDS):
        return None
    at = cursor.token.start
    cursor.expect("create")
    replace = cursor.accept("or", "replace")
    kind = cursor.advance().value
    name = cursor.table_name()
    found = _Parts(at, name, replace, kind)
    if kind == "aggregate" and (old := _options(cursor)) is not None:
        return CreateAggregateStatement(name, replace, None, old, at)
    cursor.expect_symbol("(")
    if kind == "aggregate" and cursor.accept_symbol("*"):
        pass
    elif not cursor.is_symbol(")") and not (kind == "aggregate" and cursor.is_word("order", "by")):
        found.arguments = cursor.listed(partial(_argument, cursor))
    ordered = _ordered(cursor, found.arguments) if kind == "aggregate" else None
    cursor.expect_symbol(")")
    if kind == "aggregate" and (options := _options(cursor)) is not None:
        return CreateAggregateStatement(name, replace, found.arguments, options, at, ordered)
    if ordered is not None:
        raise unsupported("an ordered-set aggregate without SFUNC", position=at + 1)
    if kind != "procedure" and cursor.accept("returns"):
        _returns(cursor, found)
    while not cursor.at_end():
        _clause(cursor, found)
    return found.statement()


def _ordered(cursor: DefinitionGrammar, direct: Sequence[ArgumentNode]) -> tuple[ArgumentNode, ...] | None:
    """``ORDER BY arguments`` of an ordered-set aggregate, None without it; a VARIADIC one that repeats the last direct
    one counts as that. Raises 0A000."""
    at = cursor.token.start
    if not cursor.accept("order", "by"):
        return None
    found = cursor.listed(partial(_argument, cursor))
    if not direct or direct[-1].mode != "variadic":
        return found
    if len(found) != 1 or (found[0].mode, found[0].type.name) != ("variadic", direct[-1].type.name):
        raise SqlError(
            "0A000", "an ordered-set aggregate with a VARIADIC direct argument must have one VARIADIC aggregated "
            "argument of the same data type", position=at + 1,
        )  # fmt: skip
    return ()


def _options(cursor: DefinitionGrammar) -> tuple[tuple[str, TypeName | str], ...] | None:
    """``(name = value, …)`` with an aggregate's options; None if that is not next."""
    start = cursor.index
    if not cursor.is_symbol("(") or _words(cursor).isdisjoint(_ATTRIBUTES):
        return None
    try:
        return cursor.enclosed(partial(_option, cursor))
    except SqlError:
        cursor.index = start
        return None


def _words(cursor: DefinitionGrammar) -> set[str]:
    """The words before ``=`` up to the closing parenthesis."""
    found: set[str] = set()
    depth = 0
    for word, after in zip(cursor.tokens[cursor.index :], cursor.tokens[cursor.index + 1 :], strict=False):
        if word.kind is TokenKind.SYMBOL:
            depth += (word.value == "(") - (word.value == ")")
        if not depth:
            break
        if after.value == "=":
            found.add(word.value.lower())
    return found


def _option(cursor: DefinitionGrammar) -> tuple[str, TypeName | str]:
    name = cursor.label()
    if not cursor.accept_symbol("="):
        return name, ""
    if cursor.token.kind is TokenKind.STRING:
        return name, cursor.string()
    if cursor.token.kind in (TokenKind.NUMBER, TokenKind.SYMBOL):
        return name, cursor.advance().value
    start = cursor.index
    try:
        return name, cursor.type_name()
    except SqlError:
        cursor.index = start
        function = cursor.label()
        if cursor.is_symbol("("):
            cursor.enclosed(cursor.type_name)  # a function's arguments, which Postgres reads over as well
        return name, function


def call_statement(cursor: DefinitionGrammar) -> CallStatement:
    """CALL."""
    at = cursor.token.start
    cursor.expect("call")
    call = cursor.expression()
    if not isinstance(call, Apply):
        raise cursor.error()
    return CallStatement(call, at)


class _Parts:
    """The clauses read so far of a CREATE FUNCTION, PROCEDURE or AGGREGATE."""

    def __init__(self, at: int, name: TableName, replace: bool, kind: str) -> None:
        self.at, self.name, self.replace, self.kind = at, name, replace, kind
        self.arguments: tuple[ArgumentNode, ...] = ()
        self.result: TypeName | None = None
        self.returns_set = False
        self.language: str | None = None
        self.body: tuple[str, int] | None = None
        self.expression = False
        self.atomic = False
        self.vectorised = False
        self.definer = False
        self.volatility = "immutable" if kind == "aggregate" else "volatile"
        self.strict = kind == "aggregate"

    def statement(self) -> CreateFunctionStatement:
        if self.language is None and not self.expression and not self.atomic:
            raise SqlError("42P13", "no language specified")
        if self.kind == "aggregate":
            self._check_aggregate()
        elif self.language not in (None, *LANGUAGES):
            if self.language in ("c", "internal"):
                hint = "Write the function in LANGUAGE sql or plpgsql."
                raise unsupported(f"LANGUAGE {self.language}", hint, self.at + 1)
            raise SqlError("42704", f'language "{self.language}" does not exist')
        if self.body is None:
            raise SqlError("42P13", "no function body specified")
        outputs = any(a.mode in ("out", "inout", "table") for a in self.arguments)
        if self.result is None and not outputs and self.kind != "procedure":
            raise SqlError("42P13", "function result type must be specified")
        return CreateFunctionStatement(
            self.name, self.replace, self.arguments, self.result, self.returns_set, self.body[0], self.expression,
            self.volatility, self.strict, self.at, self.kind, self.language or "sql", self.atomic,
            self.vectorised,
            self.definer,
        )  # fmt: skip

    def _check_aggregate(self) -> None:
        if self.language != "python" or self.expression:
            raise unsupported(f"an aggregate in LANGUAGE {self.language or 'sql'}", _PYTHON, self.at + 1)
        if self.volatility != "immutable":
            hint = "What an aggregate gives may depend on its group's values only."
            raise unsupported(f"a {self.volatility} aggregate", hint, self.at + 1)
        if self.returns_set:
            raise SqlError("42P13", "aggregates cannot return sets")
        if any(a.mode != "in" for a in self.arguments):
            raise unsupported("OUT and VARIADIC arguments of a Python aggregate", position=self.at + 1)


def _argument(cursor: DefinitionGrammar) -> ArgumentNode:
    """``[mode] [name] type [default]``; the mode may also follow the name."""
    at = cursor.token.start
    mode = _mode(cursor)
    name, type_ = None, None
    if mode is None and cursor.token.kind is TokenKind.WORD:
        start = cursor.index
        label = _label(cursor)
        mode = _mode(cursor) if label is not None else None
        if mode is None:
            cursor.index = start
        else:
            name, type_ = label, cursor.type_name()
    if type_ is None:
        name, type_ = _named_type(cursor)
    default = None
    if cursor.accept("default") or cursor.accept_symbol("="):
        start = cursor.token.start
        expr = cursor.expression()
        default = expr, cursor.source(start, cursor.index)
    return ArgumentNode(name, type_, default, at, mode or "in")


def _label(cursor: DefinitionGrammar) -> str | None:
    try:
        return cursor.label()
    except SqlError:
        return None


def _mode(cursor: DefinitionGrammar) -> str | None:
    """A parameter's mode; None if there is none, or the word is a name or type."""
    for words, mode in ((("in", "out"), "inout"), (("in",), "in"), (("out",), "out"), (("inout",), "inout"),
                        (("variadic",), "variadic")):  # fmt: skip
        start = cursor.index
        if cursor.accept(*words):
            if cursor.is_symbol(",") or cursor.is_symbol(")"):
                cursor.index = start
                return None
            return mode
    return None


def _type(cursor: DefinitionGrammar) -> TypeName:
    """``type`` or ``table.column%TYPE``."""
    mark, at = cursor.mark(), cursor.token.start
    try:
        *before, column = cursor.dotted()
    except SqlError:
        before = []
    if before and cursor.accept_symbol("%"):
        cursor.expect("type")
        return TypeName(before[-1], (), False, at, before[-2] if len(before) > 1 else None, column)
    cursor.retreat(mark)
    return cursor.type_name()


def _named_type(cursor: DefinitionGrammar) -> tuple[str | None, TypeName]:
    """``[name] type``."""
    start = cursor.index
    try:
        type_ = _type(cursor)
        ends = cursor.is_symbol(",") or cursor.is_symbol(")") or cursor.is_symbol("=")
        if ends or cursor.is_word("default") or cursor.is_word("order", "by"):
            return None, type_
    except SqlError:
        pass
    cursor.index = start
    return cursor.label(), _type(cursor)


def _returns(cursor: DefinitionGrammar, found: _Parts) -> None:
    at = cursor.token.start
    if cursor.accept("table"):
        if any(a.mode in ("out", "inout") for a in found.arguments):
            raise SqlError("42601", "OUT and INOUT arguments aren't allowed in TABLE functions", position=at + 1)
        found.arguments += cursor.enclosed(partial(_column, cursor))
        found.returns_set = True
        return
    found.returns_set = cursor.accept("setof")
    found.result = _type(cursor)


def _column(cursor: DefinitionGrammar) -> ArgumentNode:
    at = cursor.token.start
    return ArgumentNode(cursor.label(), _type(cursor), None, at, "table")


def _atomic(cursor: DefinitionGrammar, found: _Parts) -> None:
    """BEGIN ATOMIC … END: the statements between them."""
    cursor.expect("begin")
    cursor.expect("atomic")
    start, first, depth = cursor.token.start, cursor.index, 0
    while not (depth == 0 and cursor.is_word("end")):
        if cursor.at_end():
            raise cursor.error()
        if cursor.is_word("case"):
            depth += 1
        elif cursor.is_word("end"):
            depth -= 1
        cursor.advance()
    text = cursor.source(start, cursor.index) if cursor.index > first else ""
    cursor.expect("end")
    found.body, found.atomic = (text, start), True


def _clause(cursor: DefinitionGrammar, found: _Parts) -> None:
    token = cursor.token
    if found.kind == "procedure" and cursor.is_one_of(*_NOT_OF_PROCEDURES):
        raise SqlError("42P13", "invalid attribute in procedure definition", position=token.start + 1)
    if cursor.accept("language"):
        found.language = cursor.advance().value.lower()
    elif cursor.is_one_of(*_VOLATILITY):
        found.volatility = cursor.advance().value
    elif cursor.accept("strict") or cursor.accept("returns", "null", "on", "null", "input"):
        found.strict = True
    elif cursor.accept("called", "on", "null", "input"):
        found.strict = False
    elif cursor.accept("leakproof") or cursor.accept("not", "leakproof") or cursor.accept("window"):
        pass
    elif (definer := security(cursor)) is not None:
        found.definer = definer
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
    elif cursor.is_word("with") and found.kind == "function":
        found.vectorised = _vectorised(cursor)
    elif cursor.is_word("begin", "atomic"):
        _atomic(cursor, found)
    elif cursor.is_one_of("set", "support", "transform"):
        raise unsupported(f"{token.value.upper()} of a function", position=token.start + 1)
    else:
        raise cursor.error()


def security(cursor: DefinitionGrammar) -> bool | None:
    """``[EXTERNAL] SECURITY DEFINER`` is true, INVOKER false, None if neither is next."""
    for words in (("security",), ("external", "security")):
        for word in ("definer", "invoker"):
            if cursor.accept(*words, word):
                return word == "definer"
    return None


def _vectorised(cursor: DefinitionGrammar) -> bool:
    """``WITH (vectorized)``, perhaps with a value."""
    cursor.expect("with")
    cursor.expect_symbol("(")
    if not cursor.accept_one_of("vectorized", "vectorised"):
        raise cursor.error()
    value = not cursor.accept_symbol("=") or cursor.advance().value.lower() in ("true", "on", "1", "yes")
    cursor.expect_symbol(")")
    return value


def _drop(cursor: DefinitionGrammar, kind: str) -> DropFunctionStatement:
    exists = cursor.accept("if", "exists")
    names = cursor.listed(partial(signature, cursor, kind == "aggregate"))
    return DropFunctionStatement(names, exists, cursor.cascade(), kind)


def signature(cursor: DefinitionGrammar, aggregate: bool) -> tuple[TableName, tuple[TypeName, ...] | None]:
    """A name, and the types of its input arguments if they are given."""
    name = cursor.table_name()
    if aggregate and not cursor.is_symbol("("):
        raise cursor.error()
    if not cursor.accept_symbol("("):
        return name, None
    if aggregate and cursor.accept_symbol("*") and not cursor.is_symbol(")"):
        raise cursor.error()
    arguments: tuple[ArgumentNode, ...] = ()
    if not cursor.is_symbol(")") and not (aggregate and cursor.is_word("order", "by")):
        arguments = cursor.listed(partial(_argument, cursor))
    if aggregate:
        arguments = (*arguments, *(_ordered(cursor, arguments) or ()))
    cursor.expect_symbol(")")
    return name, tuple(a.type for a in arguments if a.mode != "out")
