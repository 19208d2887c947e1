"""Where a statement's own small grammar holds a query, an expression or a type, sqlglot's parser takes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot.tokenizer_core import Token as ParserToken

from sql.syntax.dialect import parser
from sql.syntax.lexing.cursor import Cursor
from sql.syntax.lexing.lexer import Token, TokenKind
from sql.syntax.lexing.tokens import parser_tokens
from sql.syntax.nodes.columns import ColumnDefinition
from sql.syntax.nodes.constraints import Constraint
from sql.syntax.nodes.queries import Expr, Query, TypeName
from sql.syntax.nodes.statements import Statement
from sql.syntax.rules.data import DataRules
from sql.syntax.translate.constraints import constraint
from sql.syntax.translate.data import column, statement
from sql.syntax.translate.expressions import expression, type_name
from sql.syntax.translate.queries import query

T = TypeVar("T")


class EmbeddingCursor(Cursor):
    """A cursor that can take what sqlglot parses."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        super().__init__(text, tokens)
        self._rules = parser()
        self._parser_tokens: list[ParserToken] | None = None

    def hand(self, parse: Callable[[DataRules], T]) -> T:
        """What sqlglot's parser reads from the present token on; the cursor then stands behind it."""
        if self._parser_tokens is None:
            self._parser_tokens = parser_tokens(self.tokens)
        taken = self._parser_tokens
        index = 0 if self.index == 0 else _index_at(taken, self.token.start)
        self._rules.start(taken, index, self.text, self.tokens[-1].start)
        result = parse(self._rules)
        index = self._rules.index
        if index >= len(taken):
            self.index = len(self.tokens) - 1
        else:
            offset = taken[index].start
            while self.tokens[self.index].start < offset:
                self.index += 1
        return result

    def sql_statement(self) -> Statement:
        """A query, INSERT, UPDATE, DELETE, or DDL of tables and views."""
        return self.hand(lambda rules: statement(rules.statement()))

    def query(self) -> Query:
        return self.hand(lambda rules: query(rules.query()))

    def expression(self) -> Expr:
        return self.hand(lambda rules: expression(rules.climb(1)))

    def expressions(self) -> tuple[Expr, ...]:
        """One or more, separated by commas."""
        items = [self.expression()]
        while self.accept_symbol(","):
            items.append(self.expression())
        return tuple(items)

    def as_of(self) -> Expr:
        """``AS OF [AT LEAST] expression``."""
        return self.hand(lambda rules: expression(rules.as_of_clause().expressions[0]))

    def type_name(self) -> TypeName:
        return self.hand(lambda rules: type_name(rules.type_()))

    def column_definition(self) -> ColumnDefinition:
        """A column as CREATE TABLE has it: name, type, constraints."""
        return self.hand(lambda rules: column(rules.column_definition()))

    def constraint(self) -> Constraint:
        """A constraint as CREATE TABLE has it behind its columns."""

        def read(rules: DataRules) -> Constraint:
            node = rules.table_constraint()
            if node is None:
                raise rules.syntax_error()
            return constraint(node, ())

        return self.hand(read)

    def default(self) -> tuple[Expr, str]:
        """A DEFAULT's expression and its text."""

        def read(rules: DataRules) -> tuple[Expr, str]:
            node = rules.default()
            return expression(node.this), node.meta["text"]

        return self.hand(read)

    def starts_query(self) -> bool:
        """Whether a query may start here: SELECT, VALUES, WITH, TABLE, after any opening parentheses."""
        ahead = 0
        while self.is_symbol("(", ahead):
            ahead += 1
        token = self.ahead(ahead)
        return token.kind is TokenKind.WORD and token.value in ("select", "values", "with", "table")


def _index_at(tokens: list[ParserToken], offset: int) -> int:
    index = 0
    while index < len(tokens) and tokens[index].start < offset:
        index += 1
    return index
