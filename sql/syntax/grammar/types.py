"""Type names, and literals with a type in front of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.syntax.grammar.cursor import TokenCursor
from sql.syntax.lexing.keywords import COLUMN_ONLY, RESERVED
from sql.syntax.lexing.lexer import Token, TokenKind
from sql.syntax.nodes.queries import Cast, String, TypeName

TYPE_WORDS: Final = frozenset(
    """bigint bit boolean char character dec decimal float int integer interval national nchar numeric real smallint
    time timestamp varchar""".split()  # noqa: SIM905
)
"""The type names that are keywords."""
_INTERVAL_FIELDS_TO: Final[dict[str, tuple[str, ...]]] = {
    "year": ("month",), "month": (), "day": ("hour", "minute", "second"), "hour": ("minute", "second"),
    "minute": ("second",), "second": (),
}  # fmt: skip
"""The fields that may narrow an interval, and for each the last ones of a range that starts with it."""


class TypeGrammar(TokenCursor):
    """A type keeps its name as written, folded to lower case."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        super().__init__(text, tokens)
        self._postponed: SqlError | None = None

    def postpone(self, error: SqlError) -> None:
        """Keep an error that PostgreSQL finds only after the whole statement has been parsed; the first one counts."""
        if self._postponed is None:
            self._postponed = error

    def end(self) -> None:
        """Raise 42601 if a token is left, else the postponed error, if there is one."""
        if not self.at_end():
            raise self.error()
        if self._postponed is not None:
            raise self._postponed

    def mark(self) -> tuple[int, SqlError | None]:
        """The present state, for ``retreat``."""
        return self.index, self._postponed

    def retreat(self, mark: tuple[int, SqlError | None]) -> None:
        self.index, self._postponed = mark

    def refusal(self, what: str, token: Token | None = None) -> SqlError:
        """0A000 at the token (the next one by default)."""
        return unsupported(what, position=(token or self.token).start + 1)

    def type_name(self) -> TypeName:
        """A type with its modifiers and array bounds."""
        type_ = self._plain_type()
        if type_.name == "interval":
            type_ = self._interval_fields(type_)
        return replace(type_, array=True) if self._array_bounds() else type_

    def typed_literal(self) -> Cast:
        """``type 'string'``."""
        token = self.token
        return self._typed_string(token, self._plain_type())

    def typed_literal_if_next(self) -> Cast | None:
        mark, token = self.mark(), self.token
        try:
            type_ = self._plain_type()
        except SqlError:
            self.retreat(mark)
            return None
        if self.token.kind is not TokenKind.STRING:
            self.retreat(mark)
            return None
        return self._typed_string(token, type_)

    def _typed_string(self, token: Token, type_: TypeName) -> Cast:
        """The rest of a typed literal; ``token``: its first one."""
        start = self.token.start
        value = String(self.string(), start)
        if token.value == "interval" and token.kind is TokenKind.WORD:
            type_ = self._interval_fields(type_)
        return Cast(value, type_, token.start)

    def _plain_type(self) -> TypeName:
        """A type without interval fields and array bounds."""
        token = self.token
        if self.is_word("setof"):
            raise self.refusal("SETOF")
        schema, name = self._type_words()
        args = self._type_arguments()
        if name in ("time", "timestamp"):
            if self.accept("with", "time", "zone"):
                name += "tz"
            else:
                self.accept("without", "time", "zone")
        return TypeName(name, args, False, token.start, schema)

    def _type_words(self) -> tuple[str | None, str]:
        """The schema, if one is written, and the name."""
        token = self.token
        word = "" if token.kind is TokenKind.QUOTED else token.value
        if word in RESERVED or (word in COLUMN_ONLY and word not in TYPE_WORDS):
            raise self.error()
        name = self._type_part()
        if word == "double" and self.accept("precision"):
            return None, "double precision"
        if word == "national":
            raise self.refusal("NATIONAL CHARACTER", token)
        if word in ("character", "char", "bit") and self.accept("varying"):
            return None, "varbit" if word == "bit" else "varchar"
        schema = None
        while self.accept_symbol("."):
            schema, name = name, self._type_part()
        return schema, name

    def _type_part(self) -> str:
        quoted = self.token.kind is TokenKind.QUOTED
        name = self.label()
        return f'"{name}"' if quoted and name in ("char", "bit") else name

    def _type_arguments(self) -> tuple[int, ...]:
        return self.enclosed(self._signed_integer) if self.is_symbol("(") else ()

    def _signed_integer(self) -> int:
        return -self.integer() if self.accept_symbol("-") else self.integer()

    def _interval_fields(self, type_: TypeName) -> TypeName:
        first = last = None if type_.args else self.accept_one_of(*_INTERVAL_FIELDS_TO)
        if first is None:
            return type_
        if self.accept("to"):
            last = self.accept_one_of(*_INTERVAL_FIELDS_TO[first])
            if last is None:
                raise self.error()
        name = f"interval {first}" if first == last else f"interval {first} to {last}"
        return replace(type_, name=name, args=self._type_arguments() if last == "second" else ())

    def _array_bounds(self) -> bool:
        if self.accept("array"):
            if self.accept_symbol("["):
                self.integer()
                self.expect_symbol("]")
            return True
        found = False
        while self.accept_symbol("["):
            if not self.is_symbol("]"):
                self.integer()
            self.expect_symbol("]")
            found = True
        return found
