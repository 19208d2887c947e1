"""Constraints of columns and tables, and CREATE INDEX, by PostgreSQL's grammar.

A constraint is an ``exp.Constraint`` whose ``meta`` holds what was read: its kind, name and parts.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivm.errors import SqlError
from sql.syntax.rules.queries import QueryRules

_METHODS: Final = ("btree", "hash")
_OTHER_METHODS: Final = ("gist", "gin", "spgist", "brin")
_EXPRESSION_HINT: Final = "Put the expression into a column of a materialized view, and make an index there."


class ConstraintRules(QueryRules):
    """What CREATE TABLE, ALTER TABLE and CREATE INDEX share."""

    def constraint_name(self) -> exp.Identifier | None:
        """``CONSTRAINT name``, where it stands."""
        return self.identifier() if self._match(TokenType.CONSTRAINT) else None

    def table_constraint(self) -> exp.Constraint | None:
        """A constraint of the table, None when a column's definition is next."""
        token = self._curr
        name = self.constraint_name()
        if self._match(TokenType.PRIMARY_KEY):
            node = self._key("primary", listed=True)
        elif self._match(TokenType.UNIQUE):
            node = self._key("unique", listed=True)
        elif self.accept_word("check"):
            node = self._check()
        elif self._match(TokenType.FOREIGN_KEY):
            columns = self.identifiers()
            self.expect_word("references")
            node = self._references(columns)
        elif self.is_word("exclude"):
            raise self.refusal("EXCLUDE constraints", token)
        elif name is not None:
            raise self.syntax_error()
        else:
            self.refuse_half("primary")
            self.refuse_half("foreign")
            return None
        return self._finished(node, name, token)

    def keyed_constraint(self, name: exp.Identifier | None, token: Token) -> exp.Constraint | None:
        """A column's PRIMARY KEY, UNIQUE, CHECK or REFERENCES, if one is next."""
        if self._match(TokenType.PRIMARY_KEY):
            return self._finished(self._key("primary", listed=False), name, token)
        if self._match(TokenType.UNIQUE):
            return self._finished(self._key("unique", listed=False), name, token)
        if self.accept_word("check"):
            return self._finished(self._check(), name, token)
        if self.accept_word("references"):
            return self._finished(self._references([]), name, token)
        return None

    def _finished(self, node: exp.Constraint, name: exp.Identifier | None, token: Token) -> exp.Constraint:
        while True:
            here = self._curr
            if self.accept_word("not", "deferrable") or self.accept_word("initially", "immediate"):
                continue
            if self.is_word("deferrable") or self.is_word("initially", "deferred"):
                raise self.refusal("DEFERRABLE constraints", here)
            if self.accept_word("no", "inherit"):
                continue
            if self.is_word("not", "valid"):
                raise self.refusal("NOT VALID constraints", here)
            break
        node.meta["name"] = name
        return self.located(node, token)

    def _key(self, kind: str, *, listed: bool) -> exp.Constraint:
        distinct = self._nulls_distinct() if kind == "unique" else True
        if listed and self.is_word("using", "index"):
            raise self.refusal("USING INDEX")
        columns = self.identifiers() if listed else []
        included = self.identifiers() if self.accept_word("include") else []
        self.index_options()
        return _constraint(kind, columns=columns, included=included, distinct=distinct)

    def _nulls_distinct(self) -> bool:
        if self.accept_word("nulls", "not", "distinct"):
            return False
        self.accept_word("nulls", "distinct")
        return True

    def _check(self) -> exp.Constraint:
        self.expect(TokenType.L_PAREN)
        start = self._curr.start
        condition = self._parse_disjunction()
        text = self.sql[start : self._prev.end + 1]
        self.expect(TokenType.R_PAREN)
        return _constraint("check", condition=condition, text=text)

    def _references(self, columns: list[exp.Identifier]) -> exp.Constraint:
        table = self._parse_table_parts()
        referenced = self.identifiers() if self._curr.token_type == TokenType.L_PAREN else []
        if self.is_word("match", "partial"):
            raise self.refusal("MATCH PARTIAL")
        full = self.accept_word("match", "full")
        if not full:
            self.accept_word("match", "simple")
        actions = {"delete": "no action", "update": "no action"}
        changed: list[exp.Identifier] = []
        while self.is_word("on", "delete") or self.is_word("on", "update"):
            event = self.ahead(1).text
            self._advance(2)
            actions[event], listed = self._action(event)
            changed = listed or changed
        return _constraint(
            "foreign", columns=columns, table=table, referenced=referenced, full=full, delete=actions["delete"],
            update=actions["update"], changed=changed,
        )  # fmt: skip

    def _action(self, event: str) -> tuple[str, list[exp.Identifier]]:
        for words in (("no", "action"), ("restrict",), ("cascade",)):
            if self.accept_word(*words):
                return " ".join(words), []
        for words in (("set", "null"), ("set", "default")):
            if self.accept_word(*words):
                listed = event == "delete" and self._curr.token_type == TokenType.L_PAREN
                return " ".join(words), self.identifiers() if listed else []
        raise self.syntax_error()

    def index_options(self) -> None:
        """WITH (fillfactor = …) and USING INDEX TABLESPACE, which say nothing here."""
        if self._curr.token_type == TokenType.WITH and self.ahead(1).token_type == TokenType.L_PAREN:
            self._advance(2)
            self._parse_csv(self._index_option)
            self.expect(TokenType.R_PAREN)
        if self.is_word("using", "index", "tablespace"):
            raise self.refusal("TABLESPACE")

    def _index_option(self) -> exp.Identifier:
        name = self.label()
        if self._match(TokenType.EQ):
            if self.at_end():
                raise self.syntax_error()
            self._advance()
        return name

    # CREATE INDEX.

    def create_index(self, unique: bool) -> exp.Create:
        """What follows INDEX."""
        self.accept_word("concurrently")
        exists = self.accept_word("if", "not", "exists")
        name = None if self._curr.token_type == TokenType.ON and not exists else self.identifier()
        self.expect(TokenType.ON)
        self._match(TokenType.ONLY)
        table = self._parse_table_parts()
        method = "btree"
        if self._match(TokenType.USING):
            token = self._curr
            method = self.identifier().name
            if method in _OTHER_METHODS:
                raise self.refusal(f"index method {method}", token)
            if method not in _METHODS:
                raise SqlError("42704", f'access method "{method}" does not exist')
        self.expect(TokenType.L_PAREN)
        columns = self._parse_csv(self._index_column)
        self.expect(TokenType.R_PAREN)
        included = self.identifiers() if self.accept_word("include") else []
        distinct = self._nulls_distinct()
        self.index_options()
        if self.is_word("tablespace"):
            raise self.refusal("TABLESPACE")
        if self._curr.token_type == TokenType.WHERE:
            refused = self.refusal("CREATE INDEX … WHERE")
            raise SqlError(refused.sqlstate, refused.message, position=refused.position, hint=_EXPRESSION_HINT)
        create = exp.Create(this=table, kind="INDEX", exists=exists, unique=unique)
        create.meta.update(name=name, method=method, columns=columns, included=included, distinct=distinct)
        return create

    def _index_column(self) -> exp.Identifier:
        """``column [COLLATE c] [ASC | DESC] [NULLS FIRST | LAST]``; ``meta`` tells the direction."""
        token = self._curr
        called = self.ahead(1).token_type == TokenType.L_PAREN
        if token.token_type == TokenType.L_PAREN or called or token.token_type not in self.ID_VAR_TOKENS:
            if token.token_type != TokenType.L_PAREN and not called:
                raise self.syntax_error()
            refused = self.refusal("CREATE INDEX on an expression")
            raise SqlError(refused.sqlstate, refused.message, position=refused.position, hint=_EXPRESSION_HINT)
        column = self.identifier()
        if self._match(TokenType.COLLATE):
            self.dotted()
        if self._curr.token_type in self.ID_VAR_TOKENS and not self.is_word("nulls"):
            self.identifier()  # an operator class: there is one order
        descending = bool(self._match(TokenType.DESC))
        if not descending:
            self._match(TokenType.ASC)
        first = descending
        if self.accept_word("nulls", "first"):
            first = True
        elif self.accept_word("nulls", "last"):
            first = False
        column.meta.update(descending=descending, nulls_first=first)
        return column


def _constraint(kind: str, **parts: object) -> exp.Constraint:
    node = exp.Constraint()
    node.meta.update(kind=kind, **parts)
    return node
