"""A position in the tokens of a PL/pgSQL body, and the pieces of SQL between them."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.types import TypeGrammar
from sql.syntax.lexing.lexer import Token, TokenKind, tokenize
from sql.syntax.plpgsql.nodes import Fragment, Into, Place, Target
from sql.syntax.utility.statement import StatementGrammar

RESERVED: Final = frozenset(
    """all begin by case declare else end execute for foreach from if in into loop not null or strict then to using when
    while""".split()  # noqa: SIM905
)
"""Words that name no variable unless they are quoted."""
_OPENING: Final = {"(": ")", "[": "]"}


class BodyCursor(TypeGrammar):
    """Takes names, targets and fragments. Errors have no position: it would count in the body, not in the statement."""

    def __init__(self, text: str) -> None:
        super().__init__(text, tokenize(text))
        self._breaks = [k for k, character in enumerate(text) if character == "\n"]
        """The ends of lines."""

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self.line_of(self.token)

    def line_of(self, token: Token) -> int:
        return bisect_left(self._breaks, token.start) + 1

    def is_variable(self, ahead: int = 0) -> bool:
        """Whether the token can name a variable."""
        token = self.ahead(ahead) if ahead else self.token
        return token.kind is TokenKind.QUOTED or (token.kind is TokenKind.WORD and token.value not in RESERVED)

    def variable(self) -> str:
        if not self.is_variable():
            raise self.error()
        return self.advance().value

    def variable_name(self) -> tuple[str, ...]:
        """A possibly qualified name."""
        if self.token.kind is TokenKind.PARAMETER:
            return (f"${self.advance().value}",)
        parts = [self.variable()]
        while self.is_symbol(".") and self.ahead().kind in (TokenKind.WORD, TokenKind.QUOTED):
            self.advance()
            parts.append(self.advance().value)
        return tuple(parts)

    def target(self) -> Target:
        """``name`` or ``name.field``."""
        at = self.token.start
        return Target(self.variable_name(), (), at)

    def assigned(self) -> Target:
        """What ``:=`` assigns to: a target with subscripts, and fields after them."""
        at = self.token.start
        name = self.variable_name()
        parts: list[Place | str] = []
        while self.is_symbol("[") or self.is_symbol("."):
            if self.advance().value == ".":
                parts.append(self.label())
                continue
            low = None if self.is_symbol(":") else self.fragment(":", "]")
            is_slice = self.accept_symbol(":")
            high = self.fragment("]") if is_slice and not self.is_symbol("]") else None
            self.expect_symbol("]")
            parts.append(Place(low, high, is_slice))
        return Target(name, tuple(parts), at)

    def into(self) -> Into:
        """What follows INTO."""
        strict = self.accept("strict")
        if not self.is_variable() and self.token.kind is not TokenKind.PARAMETER:
            raise self.error()
        targets = [self.target()]
        while self.accept_symbol(","):
            targets.append(self.target())
        return Into(tuple(targets), strict)

    def fragment(self, *until: str, statement: bool = False) -> Fragment:
        """The tokens up to one of these words or symbols outside of brackets, which is not taken. Raises 42601."""
        start = self.index
        self._skip(until)
        if self.index == start:
            raise self.error() if self.at_end() else self.missing("SQL statement" if statement else "expression")
        first = self.tokens[start]
        text = self.text[first.start : self.tokens[self.index - 1].end]
        return self.made(text, self.line_of(first), statement)

    def missing(self, what: str) -> SqlError:
        """42601: something is missing before the next token."""
        return SqlError("42601", f'missing {what} at or near "{self.shown}"')

    @property
    def shown(self) -> str:
        """The next token as written."""
        return self.text[self.token.start : self.token.end]

    def _skip(self, until: tuple[str, ...]) -> None:
        open_: list[str] = []
        cases = 0
        while not self.at_end():
            token = self.token
            value = token.value if token.kind in (TokenKind.WORD, TokenKind.SYMBOL) else ""
            if not open_ and value in until and not (cases and value in ("when", "then", "else")):
                return
            if value == ";":
                if open_:
                    raise SqlError("42601", 'mismatched parentheses at or near ";"')
                raise self._missing(until)
            if token.kind is TokenKind.WORD:
                cases += (value == "case") - (value == "end" and cases > 0)
            elif value in _OPENING:
                open_.append(_OPENING[value])
            elif open_ and value == open_[-1]:
                open_.pop()
            elif value in (")", "]"):
                raise SqlError("42601", f'mismatched parentheses at or near "{value}"')
            self.advance()
        raise SqlError("42601", "mismatched parentheses at end of input") if open_ else self._missing(until)

    def _missing(self, until: tuple[str, ...]) -> SqlError:
        if until in (("then",), ("loop",)):
            where = "end of input" if self.at_end() else f'or near "{self.shown}"'
            return SqlError("42601", f'missing "{until[0].upper()}" at end of SQL expression at {where}')
        return self.error()

    def made(self, text: str, line: int, statement: bool) -> Fragment:
        """A fragment, whose syntax is checked. What is wrong but no mistake of syntax shows when it runs."""
        if "tg_argv" in text.lower():
            text = _from_one(text)
        whole = text if statement else f"SELECT {text}"
        try:
            StatementGrammar(whole, tokenize(whole)).whole()
        except SqlError as error:
            if error.sqlstate == "42601":
                raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
        return Fragment(text, line, statement)

    def error(self, token: Token | None = None) -> SqlError:
        found = super().error(token)
        found.position = None
        return found

    def end_statement(self) -> None:
        self.expect_symbol(";")


def _from_one(text: str) -> str:
    """SQL in which the subscripts of TG_ARGV, which count from 0, count from 1."""
    tokens = tokenize(text)
    parts, end = [], 0
    for token, after in pairwise(tokens):
        if token.kind is TokenKind.WORD and token.value == "tg_argv" and after.value == "[":
            parts.append(f"{text[end : after.end]}1 + ")
            end = after.end
    return "".join(parts) + text[end:]
