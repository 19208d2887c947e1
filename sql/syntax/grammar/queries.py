"""SELECT, VALUES, TABLE, set operations and WITH, and the clauses after a query's body."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.cursor import Into
from sql.syntax.grammar.tables import TableGrammar
from sql.syntax.lexing.keywords import NEEDS_AS
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.constant_items import ConstantRows
from sql.syntax.nodes.search import CycleClause, SearchClause

_ENDS_TARGETS: Final = frozenset(
    "from where union except intersect group having order limit offset into fetch for window".split()  # noqa: SIM905
)
_BEFORE_AS_OF: Final = ("where", "group", "having", "window", "order", "limit", "offset", "fetch", "join", "left",
                        "right", "full", "inner", "cross", "natural")  # fmt: skip
_LOCKS: Final = (("no", "key", "update"), ("key", "share"), ("update",), ("share",))


@dataclass(slots=True)
class _Tail:
    """What has been read after a query's body."""

    order: tuple[nodes.OrderItem, ...] = ()
    limit: nodes.Expr | None = None
    offset: nodes.Expr | None = None
    as_of: nodes.Expr | None = None
    as_of_at_least: bool = False
    locking: tuple[nodes.Locking, ...] = ()
    ties: bool = False

    def is_empty(self) -> bool:
        return self == _EMPTY


_EMPTY: Final = _Tail()


class QueryGrammar(TableGrammar):
    """Queries."""

    @abstractmethod
    def preparable(self) -> nodes.Preparable:
        """A query, INSERT, UPDATE, DELETE or MERGE, with its WITH."""

    def query(self) -> nodes.Query:
        at = self.token.start
        with_ = self.with_clause()
        return self.whole_query(self.query_operand(), at, with_)

    def whole_query(self, operand: nodes.QueryBody, at: int, with_: nodes.With | None) -> nodes.Query:
        body = self._set_operations(operand)
        tail = _Tail()
        self._tail(tail)
        if tail.as_of is not None:
            self._tail(tail)
        if isinstance(body, nodes.Query) and with_ is None and tail.is_empty():
            return body
        return nodes.Query(
            body,
            at,
            with_,
            tail.order,
            tail.limit,
            tail.offset,
            tail.as_of,
            tail.as_of_at_least,
            tail.locking,
            tail.ties,
        )

    def _set_operations(self, left: nodes.QueryBody) -> nodes.QueryBody:
        """UNION and EXCEPT from left to right, INTERSECT before them; a loop, since there may be thousands."""
        left = self._intersections(left)
        while self.is_one_of("union", "except"):
            at, kind, every = self._set_operator()
            left = nodes.SetQuery(kind, every, left, self._intersections(self.query_operand()), at)
        return left

    def _intersections(self, left: nodes.QueryBody) -> nodes.QueryBody:
        while self.is_word("intersect"):
            at, kind, every = self._set_operator()
            left = nodes.SetQuery(kind, every, left, self.query_operand(), at)
        return left

    def _set_operator(self) -> tuple[int, str, bool]:
        token = self.advance()
        return token.start, token.value, self.accept_one_of("all", "distinct") == "all"

    def query_operand(self) -> nodes.QueryBody:
        """SELECT, VALUES, TABLE or a query in parentheses."""
        token = self.token
        if self.accept("select"):
            return self._select(token.start)
        if self.accept("values"):
            return nodes.ValuesList(self._value_rows(), token.start)
        if self.accept("table"):
            target = nodes.Target(nodes.Star((), token.start), None, token.start)
            table = self.only_table(self.accept("only"))
            return nodes.Select((target,), (table,), None, None, None, None, token.start)
        self.expect_symbol("(")
        query = self.query()
        self.expect_symbol(")")
        return query

    def _select(self, at: int) -> nodes.Select:
        distinct: tuple[nodes.Expr, ...] | None = None
        if not self.accept("all") and self.accept("distinct"):
            distinct = ()
            if self.accept("on"):
                self.expect_symbol("(")
                distinct = self.expressions()
                self.expect_symbol(")")
        none = distinct != () and (self.is_one_of(*_ENDS_TARGETS) or self.at_end() or self.is_symbol(")"))
        if none and distinct is not None:
            raise self.error()
        targets = () if none else self.targets()
        if self.is_word("into"):
            self._into(at)
        from_: tuple[nodes.TableRef, ...] = self.table_list() if self.accept("from") else ()
        where = self.where()
        group, group_distinct = self._group_by()
        having = self.expression() if self.accept("having") else None
        windows = self.named_windows()
        return nodes.Select(targets, from_, where, group, having, distinct, at, windows, group_distinct)

    def _into(self, select: int) -> None:
        """Read and keep the target of SELECT INTO. Raises 0A000 where it is part of another statement."""
        if not self.takes_into or self.select_into is not None:
            error = self.refusal("SELECT INTO")
            error.hint = "Use CREATE TABLE AS."
            raise error
        self.index += 1
        self.accept_one_of("local", "global")
        temporary = self.accept_one_of("temporary", "temp") is not None
        if not temporary:
            self.accept("unlogged")
        self.accept("table")
        self.select_into = Into(self.table_name(), temporary, select)

    def targets(self) -> tuple[nodes.Target, ...]:
        """A select list, also RETURNING's."""
        return self.listed(self._target)

    def _target(self) -> nodes.Target:
        token = self.token
        if self.accept_symbol("*"):
            return nodes.Target(nodes.Star((), token.start), None, token.start)
        expr = self.expression()
        if isinstance(expr, nodes.Star) and token.value != "(":
            return nodes.Target(expr, None, token.start)
        if self.is_word("as") and not self.is_as_of():
            self.index += 1
            return nodes.Target(expr, self.label(), token.start)
        bare = self.token.kind is TokenKind.QUOTED or (
            self.token.kind is TokenKind.WORD and self.token.value not in NEEDS_AS
        )
        return nodes.Target(expr, self.label() if bare else None, token.start)

    def where(self) -> nodes.Expr | None:
        if not self.accept("where"):
            return None
        if self.is_word("current", "of"):
            raise self.refusal("WHERE CURRENT OF")
        return self.expression()

    def _group_by(self) -> tuple[tuple[nodes.GroupItem, ...] | None, bool]:
        """The items of GROUP BY, None without it, and whether it says DISTINCT."""
        if not self.accept("group"):
            return None, False
        self.expect("by")
        distinct = self.accept_one_of("all", "distinct") == "distinct"
        return self.listed(self._grouping_item), distinct

    def _grouping_item(self) -> nodes.GroupItem:
        at = self.token.start
        if self.accept("grouping", "sets"):
            return nodes.GroupingSets("sets", self.enclosed(self._grouping_item), at)
        if self.is_one_of("rollup", "cube") and self.is_symbol("(", 1):
            kind = self.advance().value
            return nodes.GroupingSets(kind, self.enclosed(self._grouping_list), at)
        if self.is_symbol("(") and self.is_symbol(")", 1):
            self.index += 2
            return nodes.GroupingSets("list", (), at)
        return self._grouping_list()

    def _grouping_list(self) -> nodes.GroupItem:
        """An expression, or several in parentheses, which are no row here."""
        first = self.index
        expr = self.expression()
        if not isinstance(expr, nodes.RowExpr):
            return expr
        opening = next(t for t in self.tokens[first : self.index] if t.start == expr.at)
        return nodes.GroupingSets("list", expr.items, expr.at) if opening.kind is TokenKind.SYMBOL else expr

    def _value_rows(self) -> tuple[tuple[nodes.Expr, ...], ...] | ConstantRows:
        after = self.ahead()
        if self.token.kind is TokenKind.ROWS and not (after.kind is TokenKind.SYMBOL and after.value == ","):
            rows = self.advance()
            return ConstantRows(rows.value, rows.start)
        return self.listed(self.value_row)

    def value_row(self) -> tuple[nodes.Expr, ...]:
        """``(value | DEFAULT, …)``."""
        self.spell_out()
        return self.enclosed(self.value_or_default)

    def value_or_default(self) -> nodes.Expr:
        at = self.token.start
        return nodes.Default(at) if self.accept("default") else self.expression()

    def _tail(self, tail: _Tail) -> None:
        """ORDER BY, then LIMIT, OFFSET, FETCH and FOR in any order, then AS OF; nothing twice."""
        if not tail.order and tail.limit is None and tail.offset is None:
            tail.order = self.order_by()
        while True:
            if self.is_one_of("limit", "fetch") and tail.limit is None:
                if self.advance().value == "limit":
                    tail.limit = self._limit()
                else:
                    tail.limit, tail.ties = self._fetch_first()
            elif self.is_word("offset") and tail.offset is None:
                self.index += 1
                tail.offset = self.expression()
                self.accept_one_of("row", "rows")
            elif self.is_word("for"):
                tail.locking = (*tail.locking, self._locking())
            else:
                break
        if tail.as_of is None and self.is_as_of():
            tail.as_of, tail.as_of_at_least = self.as_of()
            if self.is_one_of(*_BEFORE_AS_OF):
                error = self.error()
                error.hint = "AS OF stands at the end of the query, and holds for all of its relations."
                raise error

    def _limit(self) -> nodes.Expr:
        """A count; NULL for ALL."""
        count = nodes.Null(self.token.start) if self.accept("all") else self.expression()
        if self.is_symbol(","):
            raise SqlError(
                "42601", "LIMIT #,# syntax is not supported", hint="Use separate LIMIT and OFFSET clauses.",
                position=self.token.start + 1,
            )  # fmt: skip
        return count

    def _fetch_first(self) -> tuple[nodes.Expr, bool]:
        """A count, and whether it says WITH TIES."""
        if self.accept_one_of("first", "next") is None:
            raise self.error()
        count = nodes.Number("1", self.token.start) if self.is_one_of("row", "rows") else self.expression()
        if self.accept_one_of("row", "rows") is None:
            raise self.error()
        if self.accept("with", "ties"):
            return count, True
        self.expect("only")
        return count, False

    def _locking(self) -> nodes.Locking:
        """``FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE [OF table, …] [NOWAIT | SKIP LOCKED]``."""
        token = self.advance()
        strength = next((" ".join(words) for words in _LOCKS if self.accept(*words)), None)
        if strength is None:
            raise self.error()
        tables = self.listed(self.located_name) if self.accept("of") else ()
        wait = next((" ".join(words) for words in (("nowait",), ("skip", "locked")) if self.accept(*words)), "")
        return nodes.Locking(strength, tables, wait, token.start)

    def with_clause(self) -> nodes.With | None:
        at = self.token.start
        if not self.accept("with"):
            return None
        if self.accept("mutually", "recursive"):
            return self._mutually_recursive(at)
        recursive = self.accept("recursive")
        return nodes.With(recursive, self.listed(self._cte), at)

    def _cte(self) -> nodes.Cte:
        at = self.token.start
        name = self.name()
        columns = self.enclosed(self.name) if self.is_symbol("(") else ()
        self.expect("as")
        materialized = self._materialized()
        cte = nodes.Cte(name, columns, self._inner_statement(), at, materialized=materialized)
        return self._cycle(self._search(cte))

    def _materialized(self) -> bool | None:
        if self.accept("not"):
            self.expect("materialized")
            return False
        return True if self.accept("materialized") else None

    def _search(self, cte: nodes.Cte) -> nodes.Cte:
        at = self.token.start
        if not self.accept("search"):
            return cte
        word = self.accept_one_of("breadth", "depth")
        if word is None:
            raise self.error()
        self.expect("first", "by")
        columns = self.listed(self.name)
        self.expect("set")
        return replace(cte, search=SearchClause(word == "breadth", columns, self.name(), at))

    def _cycle(self, cte: nodes.Cte) -> nodes.Cte:
        at = self.token.start
        if not self.accept("cycle"):
            return cte
        columns = self.listed(self.name)
        self.expect("set")
        mark = self.name()
        if self.accept("to"):
            value = self._constant()
            self.expect("default")
            cte = replace(cte, marks=(value, self._constant()))
        self.expect("using")
        return replace(cte, cycle=CycleClause(columns, mark, self.name(), at))

    def _constant(self) -> nodes.Expr:
        """A number, a string, ``type 'string'``, TRUE, FALSE or NULL (gram.y's AexprConst)."""
        first = self.index
        value = self.operand()
        plain = isinstance(value, nodes.Number | nodes.String | nodes.Bits | nodes.Boolean | nodes.Null | nodes.Cast)
        if not plain or any(token.value in ("::", "cast") for token in self.tokens[first : self.index]):
            self.index = first
            raise self.error()
        return value

    def _inner_statement(self) -> nodes.Preparable:
        self.expect_symbol("(")
        statement = self.preparable()
        self.expect_symbol(")")
        return statement

    def _mutually_recursive(self, at: int) -> nodes.With:
        """``[(option, …)] name (column type, …) AS (…), …`` after WITH MUTUALLY RECURSIVE."""
        with_ = nodes.With(True, (), at, True)
        if self.accept_symbol("("):
            given: set[str] = set()
            with_ = self._block_option(with_, given)
            while self.accept_symbol(","):
                with_ = self._block_option(with_, given)
            self.expect_symbol(")")
        return replace(with_, ctes=self.listed(self._binding))

    def _block_option(self, with_: nodes.With, given: set[str]) -> nodes.With:
        """``[RETURN AT | ERROR AT] RECURSION LIMIT n``, ``PRIORITY BY expression`` or ``NO PRIORITY``."""
        token = self.token
        if self.accept("priority"):
            self.expect("by")
            option = "priority"
            with_ = replace(with_, priority=self.expression())
        elif self.accept("no", "priority"):
            option = "no priority"
            with_ = replace(with_, no_priority=True)
        else:
            option = "limit"
            returns = self.accept("return", "at")
            if not returns:
                self.accept("error", "at")
            self.expect("recursion", "limit")
            self.accept_symbol("=")
            with_ = replace(with_, limit=self.integer(), return_at_limit=returns)
        if option in given:
            raise SqlError("42601", "conflicting or redundant options", position=token.start + 1)
        given.add(option)
        return with_

    def _binding(self) -> nodes.Cte:
        at = self.token.start
        name = self.name()
        columns = self.enclosed(lambda: (self.name(), self.type_name()))
        self.expect("as")
        names, types = zip(*columns, strict=True)
        return nodes.Cte(name, names, self._inner_statement(), at, types)
