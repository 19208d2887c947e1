"""SELECT, VALUES, set operations, WITH, and FROM."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.syntax.calls import CallGrammar
from sql.syntax.keywords import NEEDS_AS, RESERVED
from sql.syntax.lexer import TokenKind
from sql.syntax.nodes import (
    Cte,
    DerivedTable,
    Expr,
    FunctionTable,
    JoinedTable,
    Name,
    Null,
    Number,
    Query,
    QueryBody,
    Select,
    SetQuery,
    Star,
    Statement,
    TableRef,
    Target,
    TypeName,
    ValuesList,
    With,
)

_JOIN_WORDS = ("join", "inner", "left", "right", "full", "cross", "natural", "asof")


class QueryGrammar(CallGrammar):
    """Adds queries."""

    @abstractmethod
    def statement(self) -> Statement: ...

    def query(self) -> Query:
        """A query with its WITH, ORDER BY, LIMIT and AS OF."""
        at = self.token.start
        with_ = self.with_clause() if self.is_word("with") else None
        return self.query_after_with(with_, at)

    def query_after_with(self, with_: With | None, at: int) -> Query:
        body = self._set_expression()
        query = self._tail(Query(body, at, with_))
        if isinstance(body, Query) and query == Query(body, at, None):
            return body
        return query

    def _tail(self, query: Query) -> Query:
        order = query.order
        if self.accept("order", "by"):
            order = self.order_items()
        limit: Expr | None = None
        offset: Expr | None = None
        while True:
            if self.is_word("limit") and limit is None:
                self.advance()
                limit = Null(self.token.start) if self.accept("all") else self.expression()
                if self.is_symbol(","):
                    raise SqlError(
                        "42601", "LIMIT #,# syntax is not supported", hint="Use separate LIMIT and OFFSET clauses.",
                        position=self.token.start + 1,
                    )  # fmt: skip
            elif self.is_word("offset") and offset is None:
                self.advance()
                offset = self.expression()
                self.accept_one_of("row", "rows")
            elif self.is_word("fetch") and limit is None:
                limit = self._fetch_first()
            elif self.is_word("for") and self.ahead().value in ("update", "share", "no", "key"):
                raise unsupported("SELECT FOR UPDATE/SHARE", position=self.token.start + 1)
            else:
                break
        query = replace(query, order=order, limit=limit, offset=offset)
        return self._as_of(query) if self.is_as_of() else query

    def _fetch_first(self) -> Expr:
        self.expect("fetch")
        if self.accept_one_of("first", "next") is None:
            raise self.error()
        count: Expr = Number("1", self.token.start)
        if not self.is_one_of("row", "rows"):
            count = self.expression()
        if self.accept_one_of("row", "rows") is None:
            raise self.error()
        if self.is_word("with", "ties"):
            raise unsupported("WITH TIES", position=self.token.start + 1)
        self.expect("only")
        return count

    def is_as_of(self) -> bool:
        """Whether an AS OF clause comes next, and not an alias that is called ``of``."""
        if not self.is_word("as", "of"):
            return False
        after = self.ahead(2)
        if after.kind is TokenKind.WORD:
            return after.value not in RESERVED or after.value.startswith("current") or after.value == "cast"
        if after.kind is TokenKind.SYMBOL:
            return after.value in ("(", "-", "+") and not self._is_alias_list(2)
        return after.kind in (TokenKind.NUMBER, TokenKind.STRING, TokenKind.PARAMETER)

    def _is_alias_list(self, ahead: int) -> bool:
        """``(a, b)`` or ``(a) …``: a column list rather than an expression in parentheses."""
        inner, following = self.ahead(ahead + 1), self.ahead(ahead + 2)
        return inner.kind in (TokenKind.WORD, TokenKind.QUOTED) and following.value in (",", ")")

    def as_of_clause(self) -> tuple[Expr, bool]:
        self.expect("as", "of")
        at_least = self.accept("at", "least")
        return self.expression(), at_least

    def _as_of(self, query: Query) -> Query:
        expr, at_least = self.as_of_clause()
        return replace(query, as_of=expr, as_of_at_least=at_least)

    def _set_expression(self) -> QueryBody:
        left = self._intersection()
        while self.is_one_of("union", "except"):
            at = self.token.start
            kind = self.advance().value
            all_ = self._all()
            left = SetQuery(kind, all_, left, self._intersection(), at)
        return left

    def _intersection(self) -> QueryBody:
        left = self._query_term()
        while self.is_word("intersect"):
            at = self.advance().start
            all_ = self._all()
            left = SetQuery("intersect", all_, left, self._query_term(), at)
        return left

    def _all(self) -> bool:
        if self.accept("all"):
            return True
        self.accept("distinct")
        return False

    def _query_term(self) -> QueryBody:
        token = self.token
        if self.is_symbol("("):
            self.advance()
            query = self.query()
            self.expect_symbol(")")
            return query
        match token.value if token.kind is TokenKind.WORD else "":
            case "select":
                return self._select()
            case "values":
                return self._values()
            case "table":
                self.advance()
                target = Target(Star((), token.start), None, token.start)
                return Select((target,), (self.table_name(),), None, None, None, None, token.start)
            case _:
                raise self.error()

    def _values(self) -> ValuesList:
        at = self.advance().start
        rows = [self._values_row()]
        while self.accept_symbol(","):
            rows.append(self._values_row())
        return ValuesList(tuple(rows), at)

    def _values_row(self) -> tuple[Expr, ...]:
        self.expect_symbol("(")
        items = [self.value_or_default()]
        while self.accept_symbol(","):
            items.append(self.value_or_default())
        self.expect_symbol(")")
        return tuple(items)

    @abstractmethod
    def value_or_default(self) -> Expr: ...

    def _select(self) -> Select:
        at = self.advance().start
        distinct: tuple[Expr, ...] | None = None
        if self.accept("distinct"):
            distinct = ()
            if self.accept("on"):
                self.expect_symbol("(")
                distinct = self.expressions()
                self.expect_symbol(")")
        else:
            self.accept("all")
        targets = () if self._ends_targets() else self.targets()
        if self.is_word("into"):
            raise unsupported("SELECT INTO", hint="Use CREATE TABLE AS.", position=self.token.start + 1)
        from_ = self.from_list() if self.accept("from") else ()
        where = self.expression() if self.accept("where") else None
        group = self._group_by() if self.accept("group", "by") else None
        having = self.expression() if self.accept("having") else None
        if self.is_word("window"):
            raise unsupported("window functions", position=self.token.start + 1)
        return Select(targets, from_, where, group, having, distinct, at)

    def _ends_targets(self) -> bool:
        if self.at_end() or self.is_symbol(")"):
            return True
        return self.is_one_of(
            "from", "where", "union", "except", "intersect", "group", "having", "order", "limit", "offset", "into"
        )

    def _group_by(self) -> tuple[Expr, ...]:
        at = self.token.start
        if not self.accept("all"):
            self.accept("distinct")
        if self.is_one_of("rollup", "cube") and self.is_symbol("(", 1):
            raise unsupported(f"GROUP BY {self.token.value.upper()}", position=at + 1)
        items: list[Expr] = []
        while True:
            if self.is_word("grouping", "sets"):
                raise unsupported("GROUPING SETS", position=self.token.start + 1)
            if self.is_one_of("rollup", "cube") and self.is_symbol("(", 1):
                raise unsupported(f"GROUP BY {self.token.value.upper()}", position=self.token.start + 1)
            if self.is_symbol("(") and self.is_symbol(")", 1):
                raise unsupported("GROUP BY ()", position=self.token.start + 1)
            items.append(self.expression())
            if not self.accept_symbol(","):
                return tuple(items)

    def targets(self) -> tuple[Target, ...]:
        """A select list (also RETURNING's)."""
        items = [self._target()]
        while self.accept_symbol(","):
            items.append(self._target())
        return tuple(items)

    def _target(self) -> Target:
        at = self.token.start
        if self.accept_symbol("*"):
            return Target(Star((), at), None, at)
        expr = self.expression()
        if isinstance(expr, Star):
            return Target(expr, None, at)
        if self.is_word("as") and not self.is_as_of():
            self.advance()
            return Target(expr, self.label(), at)
        token = self.token
        bare = token.kind is TokenKind.WORD and token.value not in NEEDS_AS
        if token.kind is TokenKind.QUOTED or bare:
            if token.value in ("is", "in", "between", "like", "and", "or", "not", "collate") and bare:
                raise self.error()
            return Target(expr, self.advance().value, at)
        return Target(expr, None, at)

    def with_clause(self) -> With:
        at = self.token.start
        self.expect("with")
        if self.accept("mutually", "recursive"):
            return self._mutually_recursive(at)
        recursive = self.accept("recursive")
        ctes = [self._cte()]
        while self.accept_symbol(","):
            ctes.append(self._cte())
        return With(recursive, tuple(ctes), at)

    def _cte(self) -> Cte:
        at = self.token.start
        name = self.name()
        columns = tuple(n for n, _ in self.names()) if self.is_symbol("(") else ()
        self.expect("as")
        if self.accept("not"):
            self.expect("materialized")
        else:
            self.accept("materialized")
        query = self._parenthesised_statement()
        if self.is_one_of("search", "cycle"):
            raise unsupported(f"{self.token.value.upper()} clause", position=self.token.start + 1)
        return Cte(name, columns, query, at)

    def _parenthesised_statement(self) -> Statement:
        self.expect_symbol("(")
        statement = self.statement()
        self.expect_symbol(")")
        return statement

    def _mutually_recursive(self, at: int) -> With:
        limit, return_at = None, False
        if self.accept_symbol("("):
            return_at = self.accept("return", "at")
            if not return_at:
                self.accept("error", "at")
            self.expect("recursion", "limit")
            limit = self.integer()
            self.expect_symbol(")")
        ctes = [self._binding()]
        while self.accept_symbol(","):
            ctes.append(self._binding())
        return With(True, tuple(ctes), at, True, limit, return_at)

    def _binding(self) -> Cte:
        at = self.token.start
        name = self.name()
        self.expect_symbol("(")
        columns: list[str] = []
        types: list[TypeName] = []
        while True:
            columns.append(self.name())
            types.append(self.type_name())
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        self.expect("as")
        return Cte(name, tuple(columns), self._parenthesised_statement(), at, tuple(types))

    def from_list(self) -> tuple[TableRef, ...]:
        items = [self._joined()]
        while self.accept_symbol(","):
            items.append(self._joined())
        return tuple(items)

    def _joined(self) -> TableRef:
        left = self._table_primary()
        while self.is_one_of(*_JOIN_WORDS):
            left = self._join(left)
        return left

    def _join(self, left: TableRef) -> TableRef:
        at = self.token.start
        if self.is_word("asof"):
            raise unsupported("ASOF JOIN", position=at + 1)
        if self.accept("cross"):
            self.expect("join")
            return JoinedTable("cross", left, self._table_primary(), None, (), False, at)
        natural = self.accept("natural")
        kind = self.accept_one_of("inner", "left", "right", "full") or "inner"
        if kind != "inner":
            self.accept("outer")
        self.expect("join")
        if natural:
            return JoinedTable(kind, left, self._table_primary(), None, (), True, at)
        right = self._joined()
        if self.accept("on"):
            return JoinedTable(kind, left, right, self.expression(), (), False, at)
        self.expect("using")
        using = tuple(name for name, _ in self.names())
        alias = None
        if self.is_word("as") and not self.is_as_of():
            self.advance()
            alias = self.name()
        return JoinedTable(kind, left, right, None, using, False, at, using_alias=alias)

    def _table_primary(self) -> TableRef:
        at = self.token.start
        lateral = self.accept("lateral")
        if self.is_symbol("("):
            return self._parenthesised_table(at, lateral)
        if self.is_word("rows", "from"):
            return self._rows_from(at, lateral)
        self.accept("only")
        if lateral or self._is_call():
            function = self._from_function()
            return self._function_alias(FunctionTable((function,), at, lateral=lateral))
        table = self.table_name()
        self.accept_symbol("*")
        alias, columns = self._alias()
        if self.is_word("tablesample"):
            raise unsupported("TABLESAMPLE", position=self.token.start + 1)
        if self.is_word("for", "system_time"):
            raise unsupported("FOR SYSTEM_TIME AS OF", position=self.token.start + 1)
        return replace(table, alias=alias, columns=columns)

    def _is_call(self) -> bool:
        if self.token.kind not in (TokenKind.WORD, TokenKind.QUOTED) or self.is_reserved():
            return self.is_one_of("current_date", "current_timestamp", "current_user", "current_schema")
        return self.is_symbol("(", self._name_length())

    def _from_function(self) -> Expr:
        expr = self.special_or_call()
        if isinstance(expr, Name | Star):
            raise self.error()
        return expr

    def _rows_from(self, at: int, lateral: bool) -> TableRef:
        self.expect("rows", "from")
        self.expect_symbol("(")
        functions = [self._from_function()]
        while self.accept_symbol(","):
            functions.append(self._from_function())
        self.expect_symbol(")")
        return self._function_alias(FunctionTable(tuple(functions), at, lateral=lateral))

    def _function_alias(self, table: FunctionTable) -> FunctionTable:
        ordinality = self.accept("with", "ordinality")
        if self.is_word("as") and self.is_symbol("(", 1):
            raise unsupported("a column definition list", position=self.token.start + 1)
        alias, columns = self._alias()
        return replace(table, alias=alias, columns=columns, ordinality=ordinality)

    def _parenthesised_table(self, at: int, lateral: bool) -> TableRef:
        query = self.parenthesised_query()
        if query is not None:
            alias, columns = self._alias()
            return DerivedTable(query, at, alias, columns, lateral)
        self.expect_symbol("(")
        table = self._joined()
        if not isinstance(table, JoinedTable):
            raise self.error()
        self.expect_symbol(")")
        alias, columns = self._alias()
        return replace(table, alias=alias, columns=columns) if alias is not None else table

    def _alias(self) -> tuple[str | None, tuple[str, ...]]:
        if self.is_word("as"):
            if self.is_as_of():
                return None, ()
            self.advance()
            alias = self.name()
        elif self.is_name() and not self._clause_starts():
            alias = self.advance().value
        else:
            return None, ()
        if not self.is_symbol("("):
            return alias, ()
        columns = self.names()
        return alias, tuple(name for name, _ in columns)

    def _clause_starts(self) -> bool:
        """Words that are no keywords to Postgres, but start a clause of ours after a table."""
        return self.is_word("asof", "join") or self.is_word("up", "to") or self.is_word("set")
