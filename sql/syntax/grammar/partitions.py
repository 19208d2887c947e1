"""PARTITION BY, PARTITION OF and the bounds of partitions, whose expressions stay text."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from sql.catalog.partitioning import Partitioning, WrittenBound
from sql.syntax.grammar.constraints import ConstraintGrammar

_OPENING: Final = ("(", "[")
_CLOSING: Final = (")", "]")


class PartitionGrammar(ConstraintGrammar):
    """What CREATE TABLE and ALTER TABLE share."""

    def partition_by(self) -> Partitioning | None:
        """``PARTITION BY strategy (key, …)``, if it is next."""
        if not self.accept("partition", "by"):
            return None
        strategy = self.accept_one_of("list", "range", "hash")
        if strategy is None:
            raise self.error()
        self.expect_symbol("(")
        keys: list[str] = []
        columns: list[str] = []
        while True:
            key, column = self._key_text()
            keys.append(key)
            columns.append(column)
            if self.accept_symbol(")"):
                return Partitioning(strategy, tuple(keys), tuple(columns))
            if not self.accept_symbol(","):
                raise self.refusal("a collation or an operator class in PARTITION BY")

    def _key_text(self) -> tuple[str, str]:
        """A key's text, and the column that it names, "" for an expression."""
        if not (self.is_symbol("(") or self.is_symbol("(", 1) or self.is_symbol(".", 1)):
            start = self.token.start
            column = self.name()
            return self.source(start, self.index), column
        return self._expression_text(), ""

    def _expression_text(self) -> str:
        """The text up to the comma or parenthesis that ends it."""
        start, depth = self.token.start, 0
        while depth or not (self.is_symbol(",") or self.is_symbol(")")):
            if self.at_end():
                raise self.error()
            depth += any(self.is_symbol(s) for s in _OPENING) - any(self.is_symbol(s) for s in _CLOSING)
            self.index += 1
        return self.source(start, self.index)

    def partition_bound(self) -> WrittenBound:
        """``FOR VALUES …`` or ``DEFAULT``."""
        if self.accept("default"):
            return WrittenBound("default")
        self.expect("for", "values")
        if self.accept("in"):
            self.spell_out()
            return WrittenBound("list", self._texts())
        if self.accept("with"):
            return self._hash_bound()
        self.expect("from")
        lower = self._texts()
        self.expect("to")
        return WrittenBound("range", lower=lower, upper=self._texts())

    def _hash_bound(self) -> WrittenBound:
        """``(MODULUS m, REMAINDER r)`` in either order. Raises 42601."""
        parts = self.enclosed(self._hash_part)
        found = dict(parts)
        if len(parts) > len(found):
            twice = next(name for name, _ in parts if [n for n, _ in parts].count(name) > 1)
            raise SqlError("42601", f"{twice} for hash partition provided more than once")
        for name in ("modulus", "remainder"):
            if name not in found:
                raise SqlError("42601", f"{name} for hash partition must be specified")
        return WrittenBound("hash", modulus=found["modulus"], remainder=found["remainder"])

    def _hash_part(self) -> tuple[str, int]:
        at, name = self.token.start, self.label()
        if name not in ("modulus", "remainder"):
            message = f'unrecognized hash partition bound specification "{name}"'
            raise SqlError("42601", message, position=at + 1)
        return name, self.integer()

    def _texts(self) -> tuple[str, ...]:
        """The texts of a list of expressions in parentheses."""
        return self.enclosed(self._bound_text)

    def _bound_text(self) -> str:
        if self.is_symbol(",") or self.is_symbol(")"):
            raise self.error()
        return self._expression_text()
