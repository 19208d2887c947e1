"""MERGE."""

from __future__ import annotations

from typing import Final

from sql.syntax.grammar.changes import ChangeGrammar
from sql.syntax.nodes import queries as nodes

_MATCHES: Final = (
    (("matched",), "both"), (("not", "matched", "by", "source"), "target"),
    (("not", "matched", "by", "target"), "source"),
    (("not", "matched"), "source"),
)  # fmt: skip


class MergeGrammar(ChangeGrammar):
    """All statements that change rows."""

    def change(self, with_: nodes.With | None, at: int) -> nodes.Change | None:
        return self._merge(with_, at) if self.accept("merge") else super().change(with_, at)

    def _merge(self, with_: nodes.With | None, at: int) -> nodes.MergeStatement:
        self.expect("into")
        table = self.target_table()
        self.expect("using")
        source = self.joined_table()
        self.expect("on")
        on = self.expression()
        whens = [self._when()]
        while self.is_word("when"):
            whens.append(self._when())
        return nodes.MergeStatement(table, source, on, tuple(whens), self.returning(), at, with_)

    def _when(self) -> nodes.MergeWhen:
        at = self.token.start
        self.expect("when")
        match = next((match for words, match in _MATCHES if self.accept(*words)), None)
        if match is None:
            self.accept("not")
            raise self.error()
        condition = self.expression() if self.accept("and") else None
        self.expect("then")
        if self.accept("do"):
            self.expect("nothing")
            return nodes.MergeWhen(match, condition, None, at)
        action = self._inserted() if match == "source" else self._changed()
        return nodes.MergeWhen(match, condition, action, at)

    def _changed(self) -> nodes.MergeUpdate | nodes.MergeDelete:
        if self.accept("delete"):
            return nodes.MergeDelete()
        self.expect("update", "set")
        return nodes.MergeUpdate(self.assignments())

    def _inserted(self) -> nodes.MergeInsert:
        at = self.token.start
        self.expect("insert")
        if self.accept("default", "values"):
            return nodes.MergeInsert((), None, None, at)
        columns: tuple[tuple[str, int], ...] = ()
        if self.is_symbol("("):
            columns = self.enclosed(self.assigned_column)
        overriding = self.overriding()
        self.expect("values")
        return nodes.MergeInsert(columns, self.value_row(), overriding, at)
