"""A position in the tokens of a statement: look ahead, take tokens, and raise PostgreSQL's syntax error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from ivm.errors import SqlError
from sql.syntax.lexing.keywords import NOT_A_COLUMN
from sql.syntax.lexing.lexer import Token, TokenKind, spelled_out
from sql.syntax.nodes.queries import TableName

T = TypeVar("T")
_LISTS: Final = (TokenKind.LIST, TokenKind.ROWS)


@dataclass(frozen=True, slots=True)
class Into:
    """``INTO [TEMPORARY] [TABLE] table`` of the SELECT at ``select``."""

    table: TableName
    temporary: bool
    select: int


class TokenCursor:
    """A position in the tokens of one statement. The tokens' offsets count in ``text``."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.index = 0
        self.select_into: Into | None = None
        """The target of SELECT INTO, once it has been read; only a whole statement ``takes_into``."""
        self.takes_into = False
        self.unlike = 0
        """No chain of operands that begins before this token is looked at as operands of one form."""

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def ahead(self, count: int = 1) -> Token:
        """The token ``count`` after the present one (the END token beyond the last)."""
        return self.tokens[min(self.index + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.tokens[self.index]
        if token.kind is not TokenKind.END:
            self.index += 1
        return token

    def at_end(self) -> bool:
        return self.token.kind is TokenKind.END

    def is_word(self, *words: str) -> bool:
        """Whether the next tokens are these keywords."""
        first = self.tokens[self.index]
        if first.value != words[0] or first.kind is not TokenKind.WORD:
            return False
        for i in range(1, len(words)):
            token = self.ahead(i)
            if token.value != words[i] or token.kind is not TokenKind.WORD:
                return False
        return True

    def is_one_of(self, *words: str) -> bool:
        token = self.token
        return token.kind is TokenKind.WORD and token.value in words

    def accept(self, *words: str) -> bool:
        """Take these keywords if all of them are next."""
        if self.tokens[self.index].value == words[0] and self.is_word(*words):
            self.index += len(words)
            return True
        return False

    def accept_one_of(self, *words: str) -> str | None:
        return self.advance().value if self.is_one_of(*words) else None

    def expect(self, *words: str) -> None:
        for word in words:
            token = self.tokens[self.index]
            if token.value != word or token.kind is not TokenKind.WORD:
                raise self.error()
            self.index += 1

    def is_symbol(self, symbol: str, ahead: int = 0) -> bool:
        token = self.ahead(ahead) if ahead else self.tokens[self.index]
        return token.value == symbol and token.kind is TokenKind.SYMBOL

    def accept_symbol(self, symbol: str) -> bool:
        token = self.tokens[self.index]
        if token.value == symbol and token.kind is TokenKind.SYMBOL:
            self.index += 1
            return True
        return False

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.error()

    def error(self, token: Token | None = None) -> SqlError:
        """PostgreSQL's ``syntax error at or near`` the token (the next one by default)."""
        token = token or self.token
        if token.kind is TokenKind.END:
            return SqlError("42601", "syntax error at end of input", position=token.start + 1)
        shown = "(" if token.kind in _LISTS else self.text[token.start : token.end]
        return SqlError("42601", f'syntax error at or near "{shown}"', position=token.start + 1)

    def spell_out(self) -> None:
        """Where constants are read one by one: the tokens of the LIST or the ROWS that are next."""
        if self.token.kind in _LISTS:
            self.tokens[self.index : self.index + 1] = spelled_out(self.token)

    def is_name(self) -> bool:
        """Whether the next token can name a column or table."""
        token = self.token
        if token.kind is TokenKind.WORD:
            return token.value not in NOT_A_COLUMN
        return token.kind is TokenKind.QUOTED

    def name(self) -> str:
        """A column's or table's name (ColId)."""
        if not self.is_name():
            raise self.error()
        return self.advance().value

    def label(self) -> str:
        """Any word (ColLabel), as after AS or a dot."""
        if self.token.kind not in (TokenKind.WORD, TokenKind.QUOTED):
            raise self.error()
        return self.advance().value

    def names(self) -> tuple[tuple[str, int], ...]:
        """``(a, b, …)`` with each name's offset."""
        return self.enclosed(self.located_name)

    def located_name(self) -> tuple[str, int]:
        at = self.token.start
        return self.name(), at

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """One or more items, separated by commas.

        Expressions and FROM lists have loops of their own: they nest, and this costs a stack frame at each level.
        """
        items = [item()]
        while self.accept_symbol(","):
            items.append(item())
        return tuple(items)

    def enclosed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """``(item, …)``."""
        self.expect_symbol("(")
        items = self.listed(item)
        self.expect_symbol(")")
        return items

    def cascade(self) -> bool:
        """``[CASCADE | RESTRICT]``; True for CASCADE."""
        return self.accept_one_of("cascade", "restrict") == "cascade"

    def string(self) -> str:
        if self.token.kind is not TokenKind.STRING:
            raise self.error()
        return self.advance().value

    def integer(self) -> int:
        token = self.token
        if token.kind is not TokenKind.NUMBER or not token.value.isdigit():
            raise self.error()
        return int(self.advance().value)

    def dotted(self) -> tuple[str, ...]:
        """A possibly qualified name of any words."""
        parts = [self.label()]
        while self.accept_symbol("."):
            parts.append(self.label())
        return tuple(parts)

    def table_name(self) -> TableName:
        """``[[database.]schema.]name``."""
        at = self.token.start
        parts = [self.name()]
        while self.accept_symbol("."):
            parts.append(self.label())
        if len(parts) > 3:
            raise SqlError(
                "42601", f"improper relation name (too many dotted names): {'.'.join(parts)}", position=at + 1
            )
        return TableName(parts[-2] if len(parts) > 1 else None, parts[-1], at)

    def source(self, start: int, end_token: int) -> str:
        """The text from offset ``start`` to the end of the token before index ``end_token``."""
        return self.text[start : self.tokens[end_token - 1].end] if end_token else ""
