"""Constraints of columns and tables, and CREATE INDEX."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.merging import MergeGrammar
from sql.syntax.nodes.constraints import (
    CheckConstraint,
    Constraint,
    CreateIndexStatement,
    ExcludeConstraint,
    ForeignKeyConstraint,
    IndexColumn,
    KeyConstraint,
)

Names = tuple[tuple[str, int], ...]

_METHODS: Final = ("btree", "hash", "gist", "gin", "spgist", "brin")
_ACTIONS: Final = (("no", "action"), ("restrict",), ("cascade",))
_SET_ACTIONS: Final = (("set", "null"), ("set", "default"))


class ConstraintGrammar(MergeGrammar):
    """What CREATE TABLE, ALTER TABLE and CREATE INDEX share."""

    def constraint(self) -> Constraint:
        """A table constraint."""
        constraint = self.constraint_if_next()
        if constraint is None:
            raise self.error()
        return constraint

    def constraint_if_next(self) -> Constraint | None:
        """A table constraint, None if a column definition is next."""
        token = self.token
        name = self.constraint_name()
        constraint: Constraint
        if self.accept("primary"):
            self.expect("key")
            constraint = self._key(name, None, token.start, primary=True)
        elif self.accept("unique"):
            constraint = self._key(name, None, token.start, primary=False)
        elif self.accept("check"):
            constraint = self._check(name, token.start)
        elif self.accept("foreign"):
            self.expect("key")
            columns = self.names()
            self.expect("references")
            constraint = self._references(name, columns, token.start)
        elif self.accept("exclude"):
            constraint = self._exclude(name, token.start)
        elif name is not None:
            raise self.error()
        else:
            return None
        return self._characterised(constraint)

    def constraint_name(self) -> str | None:
        """``CONSTRAINT name``, if it is next."""
        return self.name() if self.accept("constraint") else None

    def column_constraint(self, name: str | None, own: Names, at: int) -> Constraint | None:
        """A column's PRIMARY KEY, UNIQUE, CHECK or REFERENCES, if one is next; ``own``: the column."""
        constraint: Constraint
        if self.accept("primary"):
            self.expect("key")
            constraint = self._key(name, own, at, primary=True)
        elif self.accept("unique"):
            constraint = self._key(name, own, at, primary=False)
        elif self.accept("check"):
            constraint = self._check(name, at)
        elif self.accept("references"):
            constraint = self._references(name, own, at)
        else:
            return None
        return self._characterised(constraint)

    def _characterised(self, constraint: Constraint) -> Constraint:
        """The constraint with what follows it: NO INHERIT and NOT VALID."""
        while True:
            at = self.token
            if self.accept("initially", "immediate"):
                continue
            if self.accept("not", "deferrable"):
                if self.is_word("initially", "deferred"):
                    message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE"
                    raise SqlError("42601", message, position=self.token.start + 1)
                continue
            if self.accept("no", "inherit"):
                if not isinstance(constraint, CheckConstraint):
                    kind = self._kind_of(constraint)
                    message = f"{kind} constraints cannot be marked NO INHERIT"
                    raise SqlError("0A000", message, position=at.start + 1)
                constraint = replace(constraint, no_inherit=True)
            elif self.accept("not", "valid"):
                if isinstance(constraint, KeyConstraint | ExcludeConstraint):
                    message = f"{self._kind_of(constraint)} constraints cannot be marked NOT VALID"
                    raise SqlError("0A000", message, position=at.start + 1)
                constraint = replace(constraint, valid=False)
            elif self.is_word("deferrable") or self.is_word("initially", "deferred"):
                constraint = self._deferrable(constraint)
            else:
                return constraint

    def _deferrable(self, constraint: Constraint) -> Constraint:
        """``DEFERRABLE`` or ``INITIALLY DEFERRED``, which implies it."""
        if isinstance(constraint, CheckConstraint):
            message = "CHECK constraints cannot be marked DEFERRABLE"
            raise SqlError("0A000", message, position=self.token.start + 1)
        deferred = not self.accept("deferrable")
        if deferred:
            self.expect("initially", "deferred")
        return replace(constraint, deferrable=True, deferred=constraint.deferred or deferred)

    @staticmethod
    def _kind_of(constraint: Constraint) -> str:
        if isinstance(constraint, KeyConstraint):
            return "PRIMARY KEY" if constraint.primary else "UNIQUE"
        if isinstance(constraint, ExcludeConstraint):
            return "EXCLUDE"
        return "FOREIGN KEY" if isinstance(constraint, ForeignKeyConstraint) else "CHECK"

    def _key(self, name: str | None, own: Names | None, at: int, *, primary: bool) -> KeyConstraint:
        """``own``: the column, None for a table constraint, which lists its columns."""
        distinct = True if primary else self._nulls_distinct()
        if own is None and self.is_word("using", "index"):
            raise self.refusal("USING INDEX")
        columns = self.names() if own is None else own
        included = self.names() if self.accept("include") else ()
        self._index_options()
        return KeyConstraint(name, primary, columns, included, distinct, at)

    def _nulls_distinct(self) -> bool:
        if self.accept("nulls", "not", "distinct"):
            return False
        self.accept("nulls", "distinct")
        return True

    def _check(self, name: str | None, at: int) -> CheckConstraint:
        self.expect_symbol("(")
        start = self.token.start
        condition = self.expression()
        text = self.source(start, self.index)
        self.expect_symbol(")")
        return CheckConstraint(name, condition, text, at)

    def _exclude(self, name: str | None, at: int) -> ExcludeConstraint:
        method = self._method() if self.accept("using") else "btree"
        elements = self.enclosed(self._excluded)
        included = self.names() if self.accept("include") else ()
        self._index_options()
        where = None
        if self.accept("where"):
            self.expect_symbol("(")
            where = self.sourced()
            self.expect_symbol(")")
        return ExcludeConstraint(name, method, elements, included, where, at)

    def _excluded(self) -> tuple[IndexColumn, str]:
        """``{column | call | (expression)} … WITH operator``."""
        column = self._index_column()
        self.expect("with")
        token = self.token
        schema_name, symbol = self.operator_symbol()
        if schema_name not in (None, "pg_catalog"):
            raise self.refusal("an operator of one's own in EXCLUDE", token)
        return column, symbol

    def _references(self, name: str | None, columns: Names, at: int) -> ForeignKeyConstraint:
        table = self.table_name()
        referenced = self.names() if self.is_symbol("(") else ()
        if self.is_word("match", "partial"):
            raise self.refusal("MATCH PARTIAL")
        full = self.accept("match", "full")
        if not full:
            self.accept("match", "simple")
        actions = {"delete": "no action", "update": "no action"}
        changed: Names = ()
        while self.is_word("on", "delete") or self.is_word("on", "update"):
            event = self.ahead().value
            self.index += 2
            actions[event], listed = self._action(event)
            changed = listed or changed
        return ForeignKeyConstraint(
            name, columns, table, referenced, full, actions["delete"], actions["update"], changed, at
        )

    def _action(self, event: str) -> tuple[str, Names]:
        """What happens to referencing rows, and the columns that ON DELETE SET lists."""
        for words in _ACTIONS:
            if self.accept(*words):
                return " ".join(words), ()
        for words in _SET_ACTIONS:
            if self.accept(*words):
                listed = event == "delete" and self.is_symbol("(")
                return " ".join(words), self.names() if listed else ()
        raise self.error()

    def _index_options(self) -> None:
        """WITH (fillfactor = …) is ignored; USING INDEX TABLESPACE is refused."""
        if self.is_word("with") and self.is_symbol("(", 1):
            self.index += 1
            self.enclosed(self._index_option)
        if self.is_word("using", "index", "tablespace"):
            raise self.refusal("TABLESPACE")

    def _index_option(self) -> None:
        self.label()
        if self.accept_symbol("="):
            if self.at_end():
                raise self.error()
            self.index += 1

    def create_index(self, at: int, *, unique: bool) -> CreateIndexStatement:
        """What follows INDEX."""
        self.accept("concurrently")
        exists = self.accept("if", "not", "exists")
        name = None if self.is_word("on") and not exists else self.name()
        self.expect("on")
        self.accept("only")
        table = self.table_name()
        method = self._method() if self.accept("using") else "btree"
        columns = self.enclosed(self._index_column)
        included = self.names() if self.accept("include") else ()
        distinct = self._nulls_distinct()
        self._index_options()
        if self.is_word("tablespace"):
            raise self.refusal("TABLESPACE")
        where = self.sourced() if self.accept("where") else None
        return CreateIndexStatement(name, table, method, columns, included, unique, distinct, exists, at, where)

    def _method(self) -> str:
        method = self.name()
        if method not in _METHODS:
            raise SqlError("42704", f'access method "{method}" does not exist')
        return method

    def _index_column(self) -> IndexColumn:
        """``{column | call | (expression)} [COLLATE c] [operator class] [ASC | DESC] [NULLS FIRST | LAST]``."""
        at = self.token.start
        name, expression = self.index_part()
        descending = self.accept_one_of("asc", "desc") == "desc"
        first = descending
        if self.accept("nulls", "first"):
            first = True
        elif self.accept("nulls", "last"):
            first = False
        return IndexColumn(name, at, descending, first, expression)
