"""Statement text → syntax tree: the front door of ``sql/syntax``.

PostgreSQL's precedence, its syntax errors with their positions, and nothing accepted that PostgreSQL would refuse
(docs/decisions/0001-parser.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ivm.errors import SqlError, too_deep
from ivm.stops import polled
from sql.syntax.lexing.lexer import Token, TokenKind, tokenize
from sql.syntax.nodes.queries import Expr, TypeName
from sql.syntax.nodes.statements import Statement
from sql.syntax.utility.statement import StatementGrammar


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a query string: its text, and the 0-based offset of that text in the string."""

    text: str
    offset: int = 0
    tokens: tuple[Token, ...] | None = field(default=None, compare=False, repr=False)
    tree: Statement | None = field(default=None, compare=False, repr=False)


def no_parameter(statement: StatementText) -> SqlError:
    """42P02 for the first parameter in a statement that can have none."""
    first = next(t for t in tokenize(statement.text) if t.kind is TokenKind.PARAMETER)
    return SqlError("42P02", f"there is no parameter ${first.value}", position=statement.offset + first.start + 1)


def split(text: str) -> list[StatementText]:
    """The statements of a string without their semicolons; empty ones and comments are left out.

    Raises 42601 for a lexical error anywhere.
    """
    return list(_statements(text, tokenize(text)))


def parsed(text: str) -> list[StatementText]:
    """``split``, and parsed if there are several.

    Raises 42601 for a mistake of syntax anywhere in them, so that nothing of such a string runs (PostgreSQL also parses
    all of it first). The mistakes of a string's only statement are left to ``parse``.
    """
    found = split(text)
    return found if len(found) < 2 else [replace(each, tree=parse(each)) for each in found]


def _statements(text: str, tokens: list[Token]) -> Iterator[StatementText]:
    if len(tokens) > 1 and not any(t.value == ";" for t in tokens):
        yield _statement_text(text, tokens[:-1])
        return
    run: list[Token] = []
    atomic = 0
    for token in polled(tokens):
        atomic = _atomic_depth(atomic, run, token)
        semicolon = token.kind is TokenKind.SYMBOL and token.value == ";"
        ends = token.kind is TokenKind.END or (semicolon and not atomic)
        if not ends:
            run.append(token)
            continue
        if run:
            yield _statement_text(text, run)
        run = []


def _statement_text(text: str, run: list[Token]) -> StatementText:
    start, end = run[0].start, run[-1].end
    moved = tuple(Token(t.kind, t.value, t.start - start, t.end - start) for t in run) if start else tuple(run)
    last = Token(TokenKind.END, "", end - start, end - start)
    return StatementText(text[start:end], start, (*moved, last))


def _atomic_depth(depth: int, before: list[Token], token: Token) -> int:
    """How deep a token is in BEGIN ATOMIC … END, whose statements end with semicolons of their own; CASE counts."""
    if token.kind is not TokenKind.WORD:
        return 0 if token.kind is TokenKind.END else depth
    if not depth:
        begins = token.value == "atomic" and len(before) > 1 and before[-1].value == "begin"
        return 1 if begins and before[0].value == "create" else 0
    return depth + (token.value == "case") - (token.value == "end")


def parse(statement: StatementText | str) -> Statement:
    """The syntax tree of one statement. Raises 42601 with the position in the whole query string."""
    if isinstance(statement, str):
        statement = StatementText(statement)
    if statement.tree is not None:
        return statement.tree
    try:
        tokens = list(statement.tokens) if statement.tokens is not None else _one_statement(statement.text)
        return StatementGrammar(statement.text, tokens).whole()
    except SqlError as error:
        raise moved(error, statement.offset) from None
    except RecursionError:
        raise too_deep() from None


def _one_statement(text: str) -> list[Token]:
    """The tokens of a text that holds one statement, perhaps with its semicolon. Raises 42601 for none or more."""
    tokens = tokenize(text)
    end = tokens.pop()
    while tokens and tokens[-1].value == ";" and tokens[-1].kind is TokenKind.SYMBOL:
        tokens.pop()
    if not tokens:
        raise SqlError("42601", "empty statement")
    semicolons = any(t.value == ";" and t.kind is TokenKind.SYMBOL for t in tokens)
    if semicolons and len(list(_statements(text, [*tokens, end]))) > 1:
        raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
    return [*tokens, end]


def moved(error: SqlError, offset: int) -> SqlError:
    """The error with its position in the whole query string."""
    if error.position is not None and offset:
        error.position += offset
    return error


def parse_type_name(text: str) -> TypeName:
    """A type's name with its modifiers, as in a cast. Raises 42601."""
    grammar = StatementGrammar(text, tokenize(text))
    name = grammar.type_name()
    grammar.end()
    return name


@lru_cache(maxsize=1024)
def parse_expression(text: str) -> Expr:
    """A stored expression: a column's DEFAULT."""
    grammar = StatementGrammar(text, tokenize(text))
    expr = grammar.expression()
    grammar.end()
    return expr
