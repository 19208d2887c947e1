"""What all our rules of sqlglot's parser share: names, positions, and PostgreSQL's syntax errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from ivm.errors import SqlError, unsupported
from sql.syntax.lexing.keywords import NEEDS_AS, NOT_A_COLUMN, RESERVED
from sql.syntax.lexing.tokens import GROUPS_WORD, NOT_WORDS, PAIR_TYPES, RESERVED_WORD, WORDS

T = TypeVar("T")
E = TypeVar("E", bound=exp.Expr)

_NOWHERE: Final = Token(TokenType.SENTINEL, "")
_NAMES: Final = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER} | {kind for word, kind in WORDS.items() if word not in NOT_A_COLUMN}
)
_FUNCTION_NAMES: Final = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER, *WORDS.values()}
    - {kind for word, kind in WORDS.items() if word in RESERVED}
    - {RESERVED_WORD}
)
_FOREIGN_WORDS: Final = frozenset({("IGNORE", "NULLS"), ("RESPECT", "NULLS"), ("PER",), ("DIRECTED",), ("BY", "NAME")})
"""Clauses of other dialects that sqlglot's parser looks for by their text."""


def at(node: exp.Expr) -> int:
    """The offset that an error about the node points to."""
    found = node.meta_get("at")
    if found is None:
        found = node.meta_get("start")
    if found is None and isinstance(node, exp.Column):
        found = at(node.parts[0])
    return 0 if found is None else int(found)


class CoreRules(PostgresParser):
    """sqlglot's PostgreSQL parser with PostgreSQL's classes of keywords, its errors, and offsets in every node.

    ``meta["at"]`` of a node is the offset of its first token, or of its operator.
    """

    ID_VAR_TOKENS = set(_NAMES)  # noqa: RUF012
    TABLE_ALIAS_TOKENS = set(_NAMES)  # noqa: RUF012
    ALIAS_TOKENS = set(_NAMES)  # noqa: RUF012
    UPDATE_ALIAS_TOKENS = set(_NAMES) - {TokenType.SET}
    WINDOW_ALIAS_TOKENS = set(_NAMES) - {TokenType.RANGE, TokenType.ROWS, GROUPS_WORD}
    FUNC_TOKENS = set(_FUNCTION_NAMES)  # noqa: RUF012
    RESERVED_TOKENS = set(NOT_WORDS)  # noqa: RUF012
    PLACEHOLDER_PARSERS = {}  # noqa: RUF012
    FUNCTIONS = {}  # noqa: RUF012
    JOIN_HINTS = set()  # noqa: RUF012

    def start(self, tokens: list[Token], index: int, text: str, end: int) -> None:
        """Stand at a token; ``end`` is the offset of the end of the input."""
        self.reset()
        self.sql = text
        self._tokens = tokens
        self._tokens_size = len(tokens)
        self._index = index
        self._end_of_input = end
        self._advance(0)

    @property
    def index(self) -> int:
        return int(self._index)

    def at_end(self) -> bool:
        return self._curr.token_type == TokenType.SENTINEL

    def syntax_error(self) -> SqlError:
        """PostgreSQL's error at the token that is next."""
        token = self._curr
        if token.token_type == TokenType.SENTINEL:
            return SqlError("42601", "syntax error at end of input", position=self._end_of_input + 1)
        text = self.sql[token.start : token.end + 1]
        if token.token_type in PAIR_TYPES:
            text = text.split()[0]
        return SqlError("42601", f'syntax error at or near "{text}"', position=token.start + 1)

    def raise_error(self, message: str, token: Token = _NOWHERE) -> NoReturn:
        """sqlglot's way to fail: its own message and token give way to PostgreSQL's."""
        raise self.syntax_error()

    def refusal(self, what: str, token: Token | None = None) -> SqlError:
        """0A000 at the token (by default the next)."""
        return unsupported(what, position=(token or self._curr).start + 1)

    def located(self, node: E, token: Token) -> E:
        """The node with its offset, unless it has one."""
        node.meta.setdefault("at", token.start)
        return node

    def is_word(self, *words: str) -> bool:
        """Whether these words (in lower case) come next."""
        for i, word in enumerate(words):
            token = self.ahead(i)
            if token.text != word or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
                return False
        return True

    def ahead(self, count: int) -> Token:
        index = self._index + count
        return self._tokens[index] if index < self._tokens_size else _NOWHERE

    def next_is(self, *types: TokenType) -> bool:
        return self._curr.token_type in types

    def expect(self, type_: TokenType) -> None:
        if not self._match(type_):
            raise self.syntax_error()

    def expect_word(self, *words: str) -> None:
        for word in words:
            if not self.is_word(word):
                raise self.syntax_error()
            self._advance()

    def refuse_half(self, word: str) -> None:
        """GROUP without its BY: PostgreSQL's error is at what stands in place of the second word."""
        if self.is_word(word):
            self._advance()
            raise self.syntax_error()

    def accept_word(self, *words: str) -> bool:
        """Take these words if they are next, all of them or none."""
        if self.is_word(*words):
            self._advance(len(words))
            return True
        return False

    def identifier(self) -> exp.Identifier:
        """A column's or table's name (ColId)."""
        if self._curr.token_type not in _NAMES:
            raise self.syntax_error()
        return self._taken_identifier()

    def label(self) -> exp.Identifier:
        """Any word (ColLabel), as after AS or a dot."""
        if self._curr.token_type in NOT_WORDS or self._curr.token_type in PAIR_TYPES:
            raise self.syntax_error()
        return self._taken_identifier()

    def _taken_identifier(self) -> exp.Identifier:
        self._advance()
        token = self._prev
        return self.located(exp.Identifier(this=token.text, quoted=token.token_type == TokenType.IDENTIFIER), token)

    def identifiers(self) -> list[exp.Identifier]:
        """``(a, b, …)``."""
        self.expect(TokenType.L_PAREN)
        found = [self.identifier()]
        while self._match(TokenType.COMMA):
            found.append(self.identifier())
        self.expect(TokenType.R_PAREN)
        return found

    def bare_label(self) -> exp.Identifier | None:
        """A result column's label without AS, if one is next."""
        token = self._curr
        if token.token_type == TokenType.IDENTIFIER or (
            token.token_type not in NOT_WORDS | PAIR_TYPES and token.text not in NEEDS_AS
        ):
            return self._taken_identifier()
        return None

    def _match_text_seq(self, *texts: str, advance: bool = True) -> bool:
        if texts in _FOREIGN_WORDS:
            return False
        return super()._match_text_seq(*texts, advance=advance)

    def _parse_csv(self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA) -> list[T]:
        """sqlglot forgives missing items; here only the whole list may be missing."""
        item = parse_method()
        if item is None:
            if self._curr.token_type == sep:
                raise self.syntax_error()
            return []
        items = [item]
        while self._match(sep):
            item = parse_method()
            if item is None:
                raise self.syntax_error()
            items.append(item)
        return items

    def _parse_id_var(self, any_token: bool = True, tokens: object = None) -> exp.Expr | None:
        if any_token:
            return self.label()
        return self.identifier() if self._curr.token_type in (tokens or _NAMES) else None  # type: ignore[operator]
