"""PARTITION BY, PARTITION OF and bounds of partitions, by PostgreSQL's grammar. Expressions stay text."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from sql.catalog.partitioning import Partitioning, WrittenBound
from sql.syntax.rules.constraints import ConstraintRules

_STRATEGIES = ("list", "range", "hash")


class PartitionRules(ConstraintRules):
    """What CREATE TABLE and ALTER TABLE share."""

    def partition_by(self) -> Partitioning | None:
        """``PARTITION BY strategy (key, …)``, if it is next."""
        if not self._match(TokenType.PARTITION_BY):
            return None
        strategy = next((s for s in _STRATEGIES if self.accept_word(s)), None)
        if strategy is None:
            raise self.syntax_error()
        if strategy == "hash":
            raise self.refusal("PARTITION BY HASH")
        self.expect(TokenType.L_PAREN)
        keys: list[str] = []
        columns: list[str] = []
        while True:
            column = self._key_column()
            start = self._curr.start
            if column is None:
                self._skip_expression()
            else:
                self._advance()
            keys.append(self.sql[start : self._prev.end + 1])
            columns.append(column or "")
            if not self.next_is(TokenType.COMMA, TokenType.R_PAREN):
                raise self.refusal("a collation or an operator class in PARTITION BY")
            if self._match(TokenType.R_PAREN):
                return Partitioning(strategy, tuple(keys), tuple(columns))
            self._advance()

    def _key_column(self) -> str | None:
        """The column that is the whole of the next key, or the start of one with a collation or operator class."""
        after = self.ahead(1).token_type
        if self._curr.token_type == TokenType.L_PAREN or after in (TokenType.L_PAREN, TokenType.DOT):
            return None
        index = self._index
        name = str(self.identifier().name)
        self._retreat(index)
        return name

    def _skip_expression(self) -> None:
        depth = 0
        while depth or not self.next_is(TokenType.COMMA, TokenType.R_PAREN):
            if self.at_end():
                raise self.syntax_error()
            if self.next_is(TokenType.L_PAREN, TokenType.L_BRACKET):
                depth += 1
            elif self.next_is(TokenType.R_PAREN, TokenType.R_BRACKET):
                depth -= 1
            self._advance()

    def partition_bound(self) -> WrittenBound:
        """``FOR VALUES …`` or ``DEFAULT``."""
        if self._match(TokenType.DEFAULT):
            return WrittenBound("default")
        self.expect_word("for", "values")
        if self.accept_word("in"):
            return WrittenBound("list", self._texts())
        if self.is_word("with"):
            raise self.refusal("a partition of a hash")
        self.expect_word("from")
        lower = self._texts()
        self.expect_word("to")
        return WrittenBound("range", lower=lower, upper=self._texts())

    def _texts(self) -> tuple[str, ...]:
        """The texts of a list of expressions in parentheses."""
        self.expect(TokenType.L_PAREN)
        found: list[str] = []
        while True:
            start = self._curr.start
            if self.next_is(TokenType.COMMA, TokenType.R_PAREN):
                raise self.syntax_error()
            self._skip_expression()
            found.append(self.sql[start : self._prev.end + 1])
            if self._match(TokenType.R_PAREN):
                return tuple(found)
            self._advance()
