"""LIKE in CREATE TABLE."""

from __future__ import annotations

from typing import Final

from sql.syntax.grammar.view_options import ViewOptionGrammar
from sql.syntax.nodes.statements import LikeClause

OPTIONS: Final = (
    "comments", "compression", "constraints", "defaults", "generated", "identity", "indexes", "statistics", "storage",
)  # fmt: skip


class LikeGrammar(ViewOptionGrammar):
    """The elements of CREATE TABLE that copy another relation's."""

    def like_clause(self, place: int) -> LikeClause:
        """``LIKE table [{INCLUDING | EXCLUDING} {option | ALL}] …``; the last mention of an option counts."""
        self.expect("like")
        table = self.table_name()
        options: set[str] = set()
        while (word := self.accept_one_of("including", "excluding")) is not None:
            named = OPTIONS if self.accept("all") else (self.accept_one_of(*OPTIONS),)
            if named == (None,):
                raise self.error()
            changed = {option for option in named if option is not None}
            options = options | changed if word == "including" else options - changed
        return LikeClause(table, frozenset(options), place)
