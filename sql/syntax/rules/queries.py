"""SELECT, VALUES, set operations, WITH and FROM: sqlglot's methods, made as strict as PostgreSQL's grammar."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ivm.errors import SqlError
from sql.syntax.rules.core import E
from sql.syntax.rules.tables import FromRules

_ENDS_TARGETS: Final = frozenset(
    {
        TokenType.SENTINEL, TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.UNION, TokenType.EXCEPT,
        TokenType.INTERSECT, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT,
        TokenType.OFFSET, TokenType.INTO, TokenType.FETCH, TokenType.FOR, TokenType.WINDOW,
    }
)  # fmt: skip
_OPERAND_STARTS: Final = frozenset({TokenType.SELECT, TokenType.VALUES, TokenType.TABLE, TokenType.L_PAREN})
_SET_OPERATIONS: Final = {
    TokenType.UNION: exp.Union,
    TokenType.INTERSECT: exp.Intersect,
    TokenType.EXCEPT: exp.Except,
}
_TAIL: Final = ("order", "limit", "offset", "as_of", "locking")


class QueryRules(FromRules):
    """Queries. What stands after a query's body (``order``, ``limit``, ``offset``, ``as_of``) is in its args."""

    SET_OP_MODIFIERS = set(_TAIL)  # noqa: RUF012

    def query(self) -> exp.Expr:
        """A query with its WITH, ORDER BY, LIMIT and AS OF."""
        token = self._curr
        node = self.query_from(self._parse_select(nested=True, parse_set_operation=False, parse_subquery_alias=False))
        node.meta.setdefault("query_at", token.start)
        return node

    def query_from(self, operand: exp.Expr | None) -> exp.Expr:
        """The query that starts with this operand of a set operation."""
        if operand is None:
            raise self.syntax_error()
        assert operand is not None
        node = self._parse_set_operations(operand)
        assert node is not None
        return self.tail(node)

    def _parse_select_query(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
    ) -> exp.Expr | None:
        token = self._curr
        type_ = token.token_type
        node: exp.Expr | None
        if type_ == TokenType.WITH:
            with_ = self._parse_with()
            node = self.query()
            if node.args.get("with_") is not None:
                raise self.syntax_error()
            node.set("with_", with_)
            node.meta["query_at"] = token.start
            return node
        if type_ == TokenType.VALUES:
            node = self._parse_derived_table_values()
        elif type_ == TokenType.TABLE:
            self._advance()
            only = self._match(TokenType.ONLY)
            relation = self._parse_table_parts()
            relation.set("only", only)
            self._match(TokenType.STAR)
            star = self.located(exp.Star(), token)
            node = self.tail(exp.Select(expressions=[star], from_=exp.From(this=relation)))
        elif type_ == TokenType.L_PAREN and (nested or table):
            self._advance()
            this = self.query()
            self.expect(TokenType.R_PAREN)
            return self.located(exp.Subquery(this=this), token)
        elif type_ == TokenType.SELECT:
            node = super()._parse_select_query(parse_set_operation=False)
            assert node is not None
        else:
            return None
        self.located(node, token)
        return self._parse_set_operations(node) if parse_set_operation else node

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        if self._prev.token_type == TokenType.ALIAS:
            self._retreat(self._index - 1)
        if self._curr.token_type == TokenType.DISTINCT and not self._next:
            self._advance()
        if self._curr.token_type in _ENDS_TARGETS:
            if self._prev.token_type in (TokenType.DISTINCT, TokenType.R_PAREN):
                raise self.syntax_error()
            return [], None
        return self.targets(), None

    def targets(self) -> list[exp.Expr]:
        """A select list (also RETURNING's)."""
        return self._parse_csv(self._parse_expression)

    def _parse_expression(self) -> exp.Expr:
        token = self._curr
        if self._match(TokenType.STAR):
            return self.located(exp.Star(), token)
        this = self._parse_disjunction()
        if isinstance(this, exp.Column) and isinstance(this.this, exp.Star):
            return this
        alias: exp.Expr | None
        if self._curr.token_type == TokenType.ALIAS and not self.is_as_of():
            self._advance()
            alias = self.label()
        else:
            alias = self.bare_label()
        return self.located(exp.Alias(this=this, alias=alias), token)

    def _parse_into(self) -> None:
        if self._curr.token_type == TokenType.INTO:
            error = self.refusal("SELECT INTO")
            error.hint = "Use CREATE TABLE AS."
            raise error

    def _parse_value(self, values: bool = True) -> exp.Tuple:
        self.expect(TokenType.L_PAREN)
        items = self._parse_csv(self.value_or_default if values else self._parse_disjunction)
        self.expect(TokenType.R_PAREN)
        return exp.Tuple(expressions=items)

    def value_or_default(self) -> exp.Expr:
        token = self._curr
        if self._match(TokenType.DEFAULT):
            return self.located(exp.Var(this="DEFAULT"), token)
        return self._parse_disjunction()

    def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values:
        self.expect(TokenType.VALUES)
        return self.tail(exp.Values(expressions=self._parse_csv(self._parse_value)))

    def _parse_query_modifiers(self, this: exp.Expr | None) -> exp.Expr | None:  # type: ignore[override]
        """What follows a select list or a query, in PostgreSQL's order of clauses (sqlglot takes any)."""
        if isinstance(this, exp.Select) and not this.args.get("order"):
            if this.args.get("from_"):
                this.set("joins", list(self.joins(commas=True)))
            this.set("where", self._parse_where())
            self.refuse_half("group")
            this.set("group", self._parse_group())
            this.set("having", self._parse_having())
            if self._curr.token_type == TokenType.WINDOW:
                raise self.refusal("a window by name")
        return self.tail(this) if this is not None else None

    def tail(self, node: E) -> E:
        """ORDER BY, then LIMIT, OFFSET and FETCH in any order, then AS OF."""
        if self._curr.token_type == TokenType.ORDER_BY and node.args.get("order") is None:
            if node.args.get("limit") or node.args.get("offset"):
                return node
            node.set("order", self._parse_order())
        self.refuse_half("order")
        while True:
            type_ = self._curr.token_type
            if type_ in (TokenType.LIMIT, TokenType.FETCH) and node.args.get("limit") is None:
                node.set("limit", self._parse_limit())
            elif type_ == TokenType.OFFSET and node.args.get("offset") is None:
                node.set("offset", self._parse_offset())
            elif type_ == TokenType.FOR:
                self._locking(node)
            else:
                break
        if node.args.get("as_of") is None and self.is_as_of():
            node.set("as_of", self.as_of_clause())
        return node

    def _locking(self, node: exp.Expr) -> None:
        """``FOR UPDATE | NO KEY UPDATE | SHARE | KEY SHARE [OF table, …] [NOWAIT | SKIP LOCKED]``."""
        token = self._curr
        self._advance()
        kinds = (("no", "key", "update"), ("key", "share"), ("update",), ("share",))
        if not any(self.accept_word(*kind) for kind in kinds):
            raise self.syntax_error()
        tables = self._parse_csv(self.identifier) if self.accept_word("of") else []
        if self.is_word("nowait") or self.is_word("skip", "locked"):
            raise self.refusal(f"FOR UPDATE {self._curr.text.upper()}", token)
        node.set("locking", exp.Tuple(expressions=tables))

    def _parse_limit(
        self, this: exp.Expr | None = None, top: bool = False, skip_limit_token: bool = False
    ) -> exp.Expr | None:
        if top or self._curr.token_type not in (TokenType.LIMIT, TokenType.FETCH):
            return this
        token = self._curr
        self._advance()
        if token.token_type == TokenType.FETCH:
            return self._fetch_first()
        first = self._curr
        everything = self._match(TokenType.ALL)
        count = self.located(exp.Null(), self._curr or first) if everything else self._parse_disjunction()
        if everything:
            count.meta["at"] = self._curr.start if self._curr else self._end_of_input
        if self.next_is(TokenType.COMMA):
            raise SqlError(
                "42601", "LIMIT #,# syntax is not supported", hint="Use separate LIMIT and OFFSET clauses.",
                position=self._curr.start + 1,
            )  # fmt: skip
        return exp.Limit(expression=count)

    def _fetch_first(self) -> exp.Expr:
        if not (self.accept_word("first") or self.accept_word("next")):
            raise self.syntax_error()
        token = self._curr
        count: exp.Expr = self.located(exp.Literal(this="1", is_string=False), token)
        if token.token_type not in (TokenType.ROW, TokenType.ROWS):
            count = self._parse_disjunction()
        if not self._match_set((TokenType.ROW, TokenType.ROWS)):
            raise self.syntax_error()
        if self.is_word("with", "ties"):
            raise self.refusal("WITH TIES")
        self.expect(TokenType.ONLY)
        return exp.Limit(expression=count)

    def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr:
        self.expect(TokenType.OFFSET)
        count = self._parse_disjunction()
        self._match_set((TokenType.ROW, TokenType.ROWS))
        return exp.Offset(expression=count)

    def parse_set_operation(
        self, this: exp.Expr | None, consume_pipe: bool = False, intersect_only: bool = False
    ) -> exp.SetOperation | None:
        token = self._curr
        if token.token_type not in self.SET_OPERATIONS:
            return None
        if intersect_only and token.token_type != TokenType.INTERSECT:
            return None
        self._refuse_tail(this)
        self._advance()
        everything = self._match(TokenType.ALL)
        if not everything:
            self._match(TokenType.DISTINCT)
        if self._curr.token_type not in _OPERAND_STARTS:
            raise self.syntax_error()
        operand = self._parse_select(nested=True, parse_set_operation=False)
        kind = _SET_OPERATIONS[token.token_type]
        return self.located(kind(this=this, expression=operand, distinct=not everything), token)

    def _refuse_tail(self, operand: exp.Expr | None) -> None:
        """An operand of a set operation has no ORDER BY, LIMIT … of its own without parentheses."""
        while isinstance(operand, exp.SetOperation):
            if any(operand.args.get(key) is not None for key in _TAIL):
                raise self.syntax_error()
            operand = operand.expression
        if operand is not None and any(operand.args.get(key) is not None for key in _TAIL):
            raise self.syntax_error()

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        if not self._match(TokenType.GROUP_BY):
            return None
        if not self._match(TokenType.ALL):
            self._match(TokenType.DISTINCT)
        return exp.Group(expressions=self._parse_csv(self._grouping_item))

    def _grouping_item(self) -> exp.Expr:
        for word in ("rollup", "cube"):
            if self.is_word(word) and self._next.token_type == TokenType.L_PAREN:
                raise self.refusal(f"GROUP BY {word.upper()}")
        if self.is_word("grouping", "sets"):
            raise self.refusal("GROUPING SETS")
        if self._match_pair(TokenType.L_PAREN, TokenType.R_PAREN, advance=False):
            raise self.refusal("GROUP BY ()")
        return self._parse_disjunction()

    def _parse_with(self, skip_with_token: bool = False) -> exp.With | None:
        token = self._curr
        if not self._match(TokenType.WITH):
            return None
        if self.accept_word("mutually", "recursive"):
            return self.located(self._mutually_recursive(), token)
        recursive = self._match(TokenType.RECURSIVE)
        with_ = exp.With(expressions=self._parse_csv(self._parse_cte), recursive=recursive)
        return self.located(with_, token)

    def _parse_cte(self) -> exp.CTE:
        token = self._curr
        name = self.identifier()
        columns = self.identifiers() if self._curr.token_type == TokenType.L_PAREN else None
        self.expect(TokenType.ALIAS)
        if self._match(TokenType.NOT):
            self.expect_word("materialized")
        else:
            self.accept_word("materialized")
        cte = exp.CTE(this=self._inner_statement(), alias=exp.TableAlias(this=name, columns=columns))
        for word in ("search", "cycle"):
            if self.is_word(word):
                raise self.refusal(f"{word.upper()} clause")
        return self.located(cte, token)

    def _inner_statement(self) -> exp.Expr:
        self.expect(TokenType.L_PAREN)
        node = self.preparable()
        self.expect(TokenType.R_PAREN)
        return node

    def preparable(self) -> exp.Expr:
        raise NotImplementedError

    def _mutually_recursive(self) -> exp.With:
        """WITH MUTUALLY RECURSIVE [(option, …)] name (col type, …) AS (…), …"""
        options: dict[str, object] = {}
        if self._match(TokenType.L_PAREN):
            self._block_option(options)
            while self._match(TokenType.COMMA):
                self._block_option(options)
            self.expect(TokenType.R_PAREN)
        with_ = exp.With(expressions=self._parse_csv(self._binding), recursive=True)
        with_.meta.update(mutually=True, limit=None, return_at=False, priority=None, no_priority=False)
        with_.meta.update(options)
        return with_

    def _block_option(self, options: dict[str, object]) -> None:
        """[RETURN AT | ERROR AT] RECURSION LIMIT n | PRIORITY BY expr | NO PRIORITY"""
        token = self._curr
        option: dict[str, object]
        if self.accept_word("priority"):
            self.expect_word("by")
            option = {"priority": self._parse_disjunction()}
        elif self.accept_word("no", "priority"):
            option = {"no_priority": True}
        else:
            option = {"return_at": self.accept_word("return", "at")}
            if not option["return_at"]:
                self.accept_word("error", "at")
            self.expect_word("recursion", "limit")
            option["limit"] = self.integer()
        if option.keys() & options:
            raise SqlError("42601", "conflicting or redundant options", position=token.start + 1)
        options.update(option)

    def _binding(self) -> exp.CTE:
        token = self._curr
        name = self.identifier()
        self.expect(TokenType.L_PAREN)
        columns = self._parse_csv(lambda: exp.ColumnDef(this=self.identifier(), kind=self._parse_types()))
        self.expect(TokenType.R_PAREN)
        self.expect(TokenType.ALIAS)
        alias = exp.TableAlias(this=name, columns=columns)
        return self.located(exp.CTE(this=self._inner_statement(), alias=alias), token)
