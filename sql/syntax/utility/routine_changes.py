"""ALTER FUNCTION, PROCEDURE, ROUTINE and AGGREGATE."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError, unsupported
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.routines import AlterRoutineStatement
from sql.syntax.utility.role_names import role_spec
from sql.syntax.utility.routines import security, signature

_VOLATILITY: Final = ("immutable", "stable", "volatile")


def routine_change(cursor: DefinitionGrammar) -> AlterRoutineStatement | None:
    """The whole statement, None if another one is next."""
    kind = next((k for k in ("function", "procedure", "routine", "aggregate") if cursor.is_word("alter", k)), None)
    if kind is None:
        return None
    at = cursor.token.start
    cursor.expect("alter")
    cursor.expect(kind)
    name, types = signature(cursor, kind == "aggregate")
    if cursor.accept("rename", "to"):
        return AlterRoutineStatement(kind, name, types, rename=cursor.name())
    if cursor.accept("set", "schema"):
        return AlterRoutineStatement(kind, name, types, schema_name=cursor.name())
    if cursor.accept("owner", "to"):
        return AlterRoutineStatement(kind, name, types, owner=role_spec(cursor))
    if kind == "aggregate":
        raise cursor.error()
    if cursor.accept("depends") or cursor.accept("no", "depends"):
        raise unsupported(f"ALTER {kind.upper()} … DEPENDS ON EXTENSION", position=at + 1)
    return _traits(cursor, AlterRoutineStatement(kind, name, types))


def _traits(cursor: DefinitionGrammar, made: AlterRoutineStatement) -> AlterRoutineStatement:
    volatility: str | None = None
    strict: bool | None = None
    definer: bool | None = None
    start = cursor.index
    while not cursor.at_end():
        token = cursor.token
        if made.kind == "procedure" and cursor.is_one_of(*_VOLATILITY, "strict", "called", "leakproof", "cost", "rows"):
            raise SqlError("42P13", "invalid attribute in procedure definition", position=token.start + 1)
        if token.kind is TokenKind.WORD and token.value in _VOLATILITY:
            if volatility is not None:
                raise SqlError("42601", "conflicting or redundant options", position=token.start + 1)
            volatility = cursor.advance().value
        elif cursor.accept("strict") or cursor.accept("returns", "null", "on", "null", "input"):
            strict = True
        elif cursor.accept("called", "on", "null", "input"):
            strict = False
        elif cursor.accept_one_of("parallel", "cost", "rows"):
            cursor.advance()
        elif (given := security(cursor)) is not None:
            definer = given
        elif not (
            cursor.accept("leakproof") or cursor.accept("not", "leakproof") or cursor.accept("restrict")
        ):  # fmt: skip
            if cursor.is_one_of("set", "reset", "support"):
                raise unsupported(f"{token.value.upper()} of a function", position=token.start + 1)
            raise cursor.error()
    if cursor.index == start:
        raise cursor.error()
    return AlterRoutineStatement(
        made.kind, made.name, made.types, volatility=volatility, strict=strict, definer=definer
    )
