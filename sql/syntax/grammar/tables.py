"""FROM: tables, joins, functions and subqueries."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.json_table import JsonTableGrammar
from sql.syntax.lexing.keywords import RESERVED
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes import queries as nodes

_WORDS: Final = (TokenKind.WORD, TokenKind.QUOTED)
_VALUES: Final = (TokenKind.NUMBER, TokenKind.STRING, TokenKind.PARAMETER)
_ASOF: Final = ("join", "inner", "left", "right", "full", "semi", "anti")
_RESERVED_CALLS: Final = ("current_date", "current_timestamp", "current_user", "current_schema")


class TableGrammar(JsonTableGrammar):
    """The items of FROM, and the clause AS OF, which an alias must be told from."""

    def is_as_of(self) -> bool:
        """Whether an AS OF clause is next, not an alias named ``of``."""
        if not self.is_word("as", "of"):
            return False
        after = self.ahead(2)
        if after.kind in _VALUES:
            return True
        if after.kind is not TokenKind.WORD:
            alias_list = self.ahead(3).kind in _WORDS and (self.is_symbol(",", 4) or self.is_symbol(")", 4))
            return after.kind is TokenKind.SYMBOL and after.value in ("(", "-", "+") and not alias_list
        return after.value not in RESERVED or after.value.startswith("current") or after.value == "cast"

    def as_of(self) -> tuple[nodes.Expr, bool]:
        """``AS OF [AT LEAST] expression``, and whether it says AT LEAST."""
        self.expect("as", "of")
        least = self.accept("at", "least")
        return self.expression(), least

    def table_list(self) -> tuple[nodes.TableRef, ...]:
        """A FROM list without its word."""
        items = [self.joined_table()]
        while self.accept_symbol(","):
            items.append(self.joined_table())
        return tuple(items)

    def joined_table(self) -> nodes.TableRef:
        """An item of FROM with the joins that follow it."""
        return self._joins(self._table())

    def only_table(self, only: bool) -> nodes.TableName:
        """A table's name: ``ONLY name`` or ``ONLY (name)`` after that word, else ``name`` or ``name *``."""
        listed = only and self.accept_symbol("(")
        table = self.table_name()
        if listed:
            self.expect_symbol(")")
        elif not only:
            self.accept_symbol("*")
        return replace(table, only=True) if only else table

    def _joins(self, left: nodes.TableRef) -> nodes.TableRef:
        """A table with the joins that follow it."""
        while (joined := self._join(left)) is not None:
            left = joined
        return left

    def _join(self, left: nodes.TableRef) -> nodes.JoinedTable | None:
        """One join, None if none is next."""
        at = self.token.start
        if self._is_asof():
            return self._as_of_join(left)
        if not self.is_one_of("join", "inner", "left", "right", "full", "cross", "natural"):
            return None
        if self.accept("cross"):
            self.expect("join")
            return nodes.JoinedTable("cross", left, self._table(), None, (), False, at)
        natural = self.accept("natural")
        kind = self.accept_one_of("left", "right", "full")
        self.accept("inner" if kind is None else "outer")
        self.expect("join")
        right, timed = self._table_or_proctime()
        if timed and (natural or kind not in (None, "left")):
            raise self.refusal("PROCTIME() in any but an inner or left join with a condition")
        kind = f"proctime {kind or 'inner'}" if timed else kind or "inner"
        if natural:
            return nodes.JoinedTable(kind, left, right, None, (), True, at)
        return self._condition(nodes.JoinedTable(kind, left, self._joins(right), None, (), False, at), alias=True)

    def _condition(self, join: nodes.JoinedTable, *, alias: bool) -> nodes.JoinedTable:
        """ON or USING; ``alias``: USING may name its columns as a table."""
        if self.accept("on"):
            return replace(join, on=self.expression())
        self.expect("using")
        join = replace(join, using=self.enclosed(self.name))
        if alias and self.is_word("as") and not self.is_as_of():
            self.index += 1
            join = replace(join, using_alias=self.name())
        return join

    def _is_asof(self) -> bool:
        return self.is_word("asof") and self.ahead().value in _ASOF and self.ahead().kind is TokenKind.WORD

    def _as_of_join(self, left: nodes.TableRef) -> nodes.JoinedTable:
        """``ASOF [INNER | LEFT [OUTER]] JOIN table ON condition | USING (columns)``."""
        at = self.advance().start
        if self.is_one_of("right", "full", "semi", "anti"):
            raise self.refusal(f"ASOF {self.token.value.upper()} JOIN")
        kind = self.accept_one_of("left", "inner") or "inner"
        if kind == "left":
            self.accept("outer")
        self.expect("join")
        return self._condition(nodes.JoinedTable(f"asof {kind}", left, self._table(), None, (), False, at), alias=False)

    def _table(self) -> nodes.TableRef:
        """An item of FROM without the joins that follow it."""
        at = self.token
        table, timed = self._table_or_proctime()
        if timed:
            self.postpone(self.refusal("FOR SYSTEM_TIME AS OF PROCTIME() anywhere but after [LEFT] JOIN", at))
        return table

    def _table_or_proctime(self) -> tuple[nodes.TableRef, bool]:
        """An item of FROM, and whether it is read FOR SYSTEM_TIME AS OF PROCTIME()."""
        token = self.token
        lateral = self.accept("lateral")
        if self.is_symbol("("):
            return self._parenthesised_table(token.start, lateral), False
        if self.accept("rows", "from"):
            return self._rows_from(token.start, lateral), False
        if self.is_json_table():
            found = self.json_table()
            alias, columns = self._alias()
            return replace(found, alias=alias, columns=columns), False
        only = self.accept("only")
        if not only and (lateral or self._is_call()):
            return self._function_table(self._function(), token.start, lateral), False
        return self._plain_table(only)

    def _plain_table(self, only: bool) -> tuple[nodes.TableName, bool]:
        at = self.token.start
        table = self.only_table(only)
        alias, columns = self._alias()
        sample = self._sample() if self.accept("tablesample") else None
        timed = self.accept("for", "system_time")
        if timed:
            self.expect("as", "of")
            if not self.is_word("proctime"):
                raise self.refusal("FOR SYSTEM_TIME AS OF anything but PROCTIME()")
            self.index += 1
            self.expect_symbol("(")
            self.expect_symbol(")")
            if alias is None:
                alias, columns = self._alias()
        columns = () if alias is None else columns
        return nodes.TableName(table.schema_name, table.name, at, alias, columns, table.only, sample), timed

    def _sample(self) -> nodes.Sample:
        """``method (expression, …) [REPEATABLE (expression)]`` after TABLESAMPLE."""
        at = self.token.start
        method = [self.name()]
        while self.accept_symbol("."):
            method.append(self.label())
        self.expect_symbol("(")
        args = self.expressions()
        self.expect_symbol(")")
        seed = None
        if self.accept("repeatable"):
            self.expect_symbol("(")
            seed = self.expression()
            self.expect_symbol(")")
        return nodes.Sample(tuple(method), args, seed, at)

    def _alias(self) -> tuple[str | None, tuple[str, ...]]:
        """``[AS] alias [(column, …)]``; None if no alias is next."""
        if self.is_word("as"):
            if self.is_as_of():
                return None, ()
            self.index += 1
        elif not self.is_name() or self._starts_clause():
            return None, ()
        alias = self.name()
        return alias, self.enclosed(self.name) if self.is_symbol("(") else ()

    def _starts_clause(self) -> bool:
        """Whether a clause of ours is next whose first word is no keyword in PostgreSQL."""
        return self._is_asof() or self.is_word("up", "to") or self.is_word("set")

    def _is_call(self) -> bool:
        token = self.token
        if token.kind not in _WORDS:
            return False
        if token.kind is TokenKind.WORD and token.value in RESERVED:
            return token.value in _RESERVED_CALLS
        return self.is_symbol("(", self.name_length())

    def _function(self) -> nodes.Expr:
        token = self.token
        node = self.named(token) if token.kind in _WORDS else None
        if node is None or isinstance(node, nodes.Name | nodes.Star):
            raise self.error()
        return node

    def _rows_from(self, at: int, lateral: bool) -> nodes.FunctionTable:
        """``(function [AS (column type, …)], …) [WITH ORDINALITY] [alias]`` after ROWS FROM."""
        functions, lists = zip(*self.enclosed(self._defined_function), strict=True)
        ordinality = self.accept("with", "ordinality")
        alias, columns = self._alias()
        definitions = lists if any(lists) else ()
        return nodes.FunctionTable(functions, at, alias, columns, ordinality, lateral, definitions, True)

    def _defined_function(self) -> tuple[nodes.Expr, nodes.Definitions]:
        function = self._function()
        return function, self._definitions() if self.accept("as") else ()

    def _definitions(self) -> nodes.Definitions:
        return self.enclosed(self._definition)

    def _definition(self) -> tuple[str, nodes.TypeName, int]:
        at = self.token.start
        return self.name(), self.type_name(), at

    def _function_table(self, function: nodes.Expr, at: int, lateral: bool) -> nodes.FunctionTable:
        functions = (function,)
        ordinality = self.accept("with", "ordinality")
        ahead = 1 if self.is_word("as") else 0
        bare = ahead > 0 and self.is_symbol("(", 1)
        typed = self.ahead(ahead + 2).kind in _WORDS and self.ahead(ahead + 3).kind in _WORDS
        if bare or (typed and self.is_symbol("(", ahead + 1)):
            self.index += ahead
            name = None if bare else self.name()
            return nodes.FunctionTable(functions, at, name, (), ordinality, lateral, (self._definitions(),))
        alias, columns = self._alias()
        return nodes.FunctionTable(functions, at, alias, columns, ordinality, lateral)

    def _parenthesised_table(self, at: int, lateral: bool) -> nodes.TableRef:
        self.index += 1
        query = self._inner_query() if self.starts_query() else None
        if query is not None:
            self.expect_symbol(")")
            alias, columns = self._alias()
            return nodes.DerivedTable(query, at, alias, columns, lateral)
        if lateral:
            raise self.error()
        table = self._joins(self._table())
        if not isinstance(table, nodes.JoinedTable) or table.alias is not None:
            raise self.error()
        self.expect_symbol(")")
        alias, columns = self._alias()
        return table if alias is None else replace(table, alias=alias, columns=columns)

    def _inner_query(self) -> nodes.Query | None:
        """The query in parentheses; None if it turns out to be ``((query) alias JOIN …)``."""
        mark, nested = self.mark(), self.is_symbol("(")
        try:
            query = self.query()
        except SqlError:
            if not nested:
                raise
            self.retreat(mark)
            return None
        if nested and not self.is_symbol(")"):
            self.retreat(mark)
            return None
        return query
