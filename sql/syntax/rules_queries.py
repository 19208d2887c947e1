"""SELECT, VALUES, set operations, WITH and FROM: sqlglot's methods, made as strict as PostgreSQL's grammar."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from sqlglot import exp
from sqlglot.tokens import TokenType

from ivm.errors import SqlError
from sql.syntax.keywords import RESERVED
from sql.syntax.rules_calls import CallRules

_ENDS_TARGETS: Final = frozenset(
    {
        TokenType.SENTINEL, TokenType.R_PAREN, TokenType.FROM, TokenType.WHERE, TokenType.UNION, TokenType.EXCEPT,
        TokenType.INTERSECT, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT,
        TokenType.OFFSET, TokenType.INTO,
    }
)  # fmt: skip
_OPERAND_STARTS: Final = frozenset({TokenType.SELECT, TokenType.VALUES, TokenType.TABLE, TokenType.L_PAREN})
_SET_OPERATIONS: Final = {
    TokenType.UNION: exp.Union,
    TokenType.INTERSECT: exp.Intersect,
    TokenType.EXCEPT: exp.Except,
}
_TAIL: Final = ("order", "limit", "offset", "as_of")
_JOIN_WORDS: Final = frozenset(
    {
        TokenType.JOIN, TokenType.INNER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.CROSS,
        TokenType.NATURAL,
    }
)  # fmt: skip


class QueryRules(CallRules):
    """Queries. What stands after a query's body (``order``, ``limit``, ``offset``, ``as_of``) is in its args."""

    SET_OP_MODIFIERS = set(_TAIL)

    def query(self) -> exp.Expr:
        """A query with its WITH, ORDER BY, LIMIT and AS OF."""
        token = self._curr
        node = self.query_from(self._parse_select(nested=True, parse_set_operation=False, parse_subquery_alias=False))
        node.meta.setdefault("query_at", token.start)
        return node

    def query_from(self, operand: exp.Expr | None) -> exp.Expr:
        """The query that starts with this operand of a set operation."""
        if operand is None:
            self.raise_error("")
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
                self.raise_error("")
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
        if self._curr.token_type in _ENDS_TARGETS:
            if self._prev.token_type == TokenType.DISTINCT:
                self.raise_error("")
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
            error = self._refusal("SELECT INTO")
            error.hint = "Use CREATE TABLE AS."
            raise error

    def _refusal(self, what: str) -> SqlError:
        try:
            self.unsupported(what)
        except SqlError as error:
            return error

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
            this.set("group", self._parse_group())
            this.set("having", self._parse_having())
            if self._curr.token_type == TokenType.WINDOW:
                self.unsupported("window functions")
        return self.tail(this) if this is not None else None

    def tail(self, node: exp.Expr) -> exp.Expr:
        """ORDER BY, then LIMIT, OFFSET and FETCH in any order, then AS OF."""
        if self._curr.token_type == TokenType.ORDER_BY and node.args.get("order") is None:
            if node.args.get("limit") or node.args.get("offset"):
                return node
            node.set("order", self._parse_order())
        while True:
            type_ = self._curr.token_type
            if type_ in (TokenType.LIMIT, TokenType.FETCH) and node.args.get("limit") is None:
                node.set("limit", self._parse_limit())
            elif type_ == TokenType.OFFSET and node.args.get("offset") is None:
                node.set("offset", self._parse_offset())
            elif type_ == TokenType.FOR and self._next.text in ("update", "share", "no", "key"):
                self.unsupported("SELECT FOR UPDATE/SHARE")
            else:
                break
        if node.args.get("as_of") is None and self.is_as_of():
            node.set("as_of", self.as_of_clause())
        return node

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
        if self._curr.token_type == TokenType.COMMA:
            raise SqlError(
                "42601", "LIMIT #,# syntax is not supported", hint="Use separate LIMIT and OFFSET clauses.",
                position=self._curr.start + 1,
            )  # fmt: skip
        return exp.Limit(expression=count)

    def _fetch_first(self) -> exp.Expr:
        if not (self.accept_word("first") or self.accept_word("next")):
            self.raise_error("")
        token = self._curr
        count: exp.Expr = self.located(exp.Literal(this="1", is_string=False), token)
        if token.token_type not in (TokenType.ROW, TokenType.ROWS):
            count = self._parse_disjunction()
        if not self._match_set((TokenType.ROW, TokenType.ROWS)):
            self.raise_error("")
        if self.is_word("with", "ties"):
            self.unsupported("WITH TIES")
        self.expect(TokenType.ONLY)
        return exp.Limit(expression=count)

    def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr:
        self.expect(TokenType.OFFSET)
        count = self._parse_disjunction()
        self._match_set((TokenType.ROW, TokenType.ROWS))
        return exp.Offset(expression=count)

    def is_as_of(self) -> bool:
        """Whether an AS OF clause comes next, and not an alias that is called ``of``."""
        if not self.is_word("as", "of"):
            return False
        after = self.ahead(2)
        if after.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.PARAMETER):
            return True
        if after.token_type in self.RESERVED_TOKENS:
            return after.text in ("(", "-", "+") and not self._is_alias_list(3)
        if after.token_type == TokenType.IDENTIFIER:
            return False
        return after.text not in RESERVED or after.text.startswith("current") or after.text == "cast"

    def _is_alias_list(self, ahead: int) -> bool:
        inner, following = self.ahead(ahead), self.ahead(ahead + 1)
        return inner.token_type not in self.RESERVED_TOKENS and following.token_type in (
            TokenType.COMMA, TokenType.R_PAREN
        )  # fmt: skip

    def as_of_clause(self) -> exp.Expr:
        """AS OF [AT LEAST] expression."""
        self.expect_word("as", "of")
        least = self.accept_word("at", "least")
        return exp.Tuple(expressions=[self._parse_disjunction(), exp.Boolean(this=least)])

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
            self.raise_error("")
        operand = self._parse_select(nested=True, parse_set_operation=False)
        kind = _SET_OPERATIONS[token.token_type]
        return self.located(kind(this=this, expression=operand, distinct=not everything), token)

    def _refuse_tail(self, operand: exp.Expr | None) -> None:
        """An operand of a set operation has no ORDER BY, LIMIT … of its own without parentheses."""
        while isinstance(operand, exp.SetOperation):
            if any(operand.args.get(key) is not None for key in _TAIL):
                self.raise_error("")
            operand = operand.expression
        if operand is not None and any(operand.args.get(key) is not None for key in _TAIL):
            self.raise_error("")

    def _parse_group(self, skip_group_by_token: bool = False) -> exp.Group | None:
        if not self._match(TokenType.GROUP_BY):
            return None
        if not self._match(TokenType.ALL):
            self._match(TokenType.DISTINCT)
        return exp.Group(expressions=self._parse_csv(self._grouping_item))

    def _grouping_item(self) -> exp.Expr:
        for word in ("rollup", "cube"):
            if self.is_word(word) and self._next.token_type == TokenType.L_PAREN:
                self.unsupported(f"GROUP BY {word.upper()}")
        if self.is_word("grouping", "sets"):
            self.unsupported("GROUPING SETS")
        if self._match_pair(TokenType.L_PAREN, TokenType.R_PAREN, advance=False):
            self.unsupported("GROUP BY ()")
        return self._parse_disjunction()

    def _values_to_select(self, values: exp.Values) -> exp.Values:  # type: ignore[override]
        """sqlglot rewrites VALUES as a SELECT; what was written stays."""
        return values

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        if self._curr.token_type == TokenType.ALIAS:
            if self.is_as_of():
                return None
            self._advance()
        elif self._curr.token_type not in (alias_tokens or self.TABLE_ALIAS_TOKENS) or self._clause_starts():
            return None
        alias = self.identifier()
        columns = self.identifiers() if self._curr.token_type == TokenType.L_PAREN else None
        return exp.TableAlias(this=alias, columns=columns)

    def _clause_starts(self) -> bool:
        """Words that are no keywords to PostgreSQL, but start a clause of ours after a table."""
        return self.is_word("asof", "join") or self.is_word("up", "to") or self.is_word("set")

    def joins(self, commas: bool = False) -> Iterator[exp.Join]:
        """The joins that follow a table; with ``commas`` also the further items of a FROM list."""
        while True:
            if self._curr.token_type == TokenType.COMMA and commas:
                self._advance()
                yield exp.Join(this=self._parse_table())
                continue
            join = self._parse_join()
            if join is None:
                return
            yield join

    def _parse_join(
        self, skip_join_token: bool = False, parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:  # fmt: skip
        token = self._curr
        if self.is_word("asof", "join"):
            self.unsupported("ASOF JOIN")
        if token.token_type not in _JOIN_WORDS:
            return None
        if self._match(TokenType.CROSS):
            self.expect(TokenType.JOIN)
            return self.located(exp.Join(this=self._parse_table(), kind="CROSS"), token)
        method, side, _ = self._parse_join_parts()
        if side is not None:
            self._match(TokenType.OUTER)
        elif self._prev.token_type == TokenType.OUTER:
            self._retreat(self._index - 1)
        self.expect(TokenType.JOIN)
        join = self.located(exp.Join(this=self._parse_table(), side=side.text if side else None), token)
        if method is not None:
            join.set("method", "NATURAL")
            return join
        nested = list(self.joins())
        if nested:
            join.this.set("joins", nested)
        if self._match(TokenType.ON):
            join.set("on", self._parse_disjunction())
            return join
        self.expect(TokenType.USING)
        join.set("using", self.identifiers())
        if self._curr.token_type == TokenType.ALIAS and not self.is_as_of():
            self._advance()
            join.meta["using_alias"] = self.identifier().name
        return join

    def _parse_table(
        self, schema: bool = False, joins: bool = False, alias_tokens: Collection[TokenType] | None = None,
        parse_bracket: bool = False, is_db_reference: bool = False, parse_partition: bool = False,
        consume_pipe: bool = False,
    ) -> exp.Expr:  # fmt: skip
        """An item of FROM. Functions are a Table with ``rows_from``."""
        token = self._curr
        lateral = self._match(TokenType.LATERAL)
        node: exp.Expr
        if self._curr.token_type == TokenType.L_PAREN:
            node = self._parenthesised_table(lateral)
        elif self.is_word("rows", "from"):
            self._advance(2)
            self.expect(TokenType.L_PAREN)
            functions = self._parse_csv(self._function)
            self.expect(TokenType.R_PAREN)
            node = self._function_table(functions)
        elif not self._match(TokenType.ONLY) and (lateral or self._is_call()):
            node = self._function_table([self._function()])
        else:
            node = self._plain_table()
        node.meta["at"] = token.start
        node.meta["lateral"] = lateral
        return node

    def _plain_table(self) -> exp.Table:
        token = self._curr
        table = self._parse_table_parts()
        self._match(TokenType.STAR)
        table.set("alias", self._parse_table_alias())
        self._parse_table_sample()
        if self.is_word("for", "system_time"):
            self.unsupported("FOR SYSTEM_TIME AS OF")
        table.meta["name_at"] = token.start
        return table

    def _parse_table_sample(self, as_modifier: bool = False) -> None:
        if self._curr.token_type == TokenType.TABLE_SAMPLE:
            self.unsupported("TABLESAMPLE")

    def _parse_table_parts(
        self, schema: bool = False, is_db_reference: bool = False, wildcard: bool = False, fast: bool = False
    ) -> exp.Table:
        """``[[database.]schema.]name``."""
        token = self._curr
        parts: list[exp.Identifier] = [self.identifier()]
        while self._match(TokenType.DOT):
            parts.append(self.label())
        if len(parts) > 3:
            shown = ".".join(part.name for part in parts)
            message = f"improper relation name (too many dotted names): {shown}"
            raise SqlError("42601", message, position=token.start + 1)
        keys = ("this", "db", "catalog")
        return self.located(exp.Table(**dict(zip(keys, reversed(parts), strict=False))), token)

    def _is_call(self) -> bool:
        token = self._curr
        if token.token_type in self.RESERVED_TOKENS:
            return False
        if token.token_type != TokenType.IDENTIFIER and token.text in RESERVED:
            return token.text in ("current_date", "current_timestamp", "current_user", "current_schema")
        return self.ahead(self.name_length()).token_type == TokenType.L_PAREN

    def _function(self) -> exp.Expr:
        node = self._parse_named() if self._curr.token_type not in self.RESERVED_TOKENS else None
        if node is None or isinstance(node, exp.Column):
            self.raise_error("")
        assert node is not None
        return node

    def _function_table(self, functions: list[exp.Expr]) -> exp.Table:
        table = exp.Table(rows_from=functions)
        if self._match(TokenType.WITH):
            self.expect(TokenType.ORDINALITY)
            table.set("ordinality", True)
        if self._curr.token_type == TokenType.ALIAS and self._next.token_type == TokenType.L_PAREN:
            self.unsupported("a column definition list")
        table.set("alias", self._parse_table_alias())
        return table

    def _parenthesised_table(self, lateral: bool) -> exp.Expr:
        self._advance()
        this = self._inner_query() if self.starts_query() else None
        if this is None:
            if lateral:
                self.raise_error("")
            this = self._inner_joins(self._parse_table())
        self.expect(TokenType.R_PAREN)
        return exp.Subquery(this=this, alias=self._parse_table_alias())

    def _inner_query(self) -> exp.Expr | None:
        """The query in parentheses in FROM; None if it turns out to be ``((query) alias JOIN …)``."""
        start = self._index
        nested = self._curr.token_type == TokenType.L_PAREN
        try:
            query = self.query()
        except SqlError:
            if not nested:
                raise
            self._retreat(start)
            return None
        if nested and self._curr.token_type != TokenType.R_PAREN:
            self._retreat(start)
            return None
        return query

    def _inner_joins(self, table: exp.Expr) -> exp.Expr:
        joins = list(self.joins())
        if not joins and not (isinstance(table, exp.Subquery) and _is_joined(table) and not table.args.get("alias")):
            self.raise_error("")
        if joins:
            table.set("joins", [*(table.args.get("joins") or []), *joins])
        return table

    def from_items(self) -> exp.Expr:
        """A FROM list without its word: the first table, with the rest as its ``joins``."""
        table = self._parse_table()
        table.set("joins", list(self.joins(commas=True)))
        return table

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
                self.unsupported(f"{word.upper()} clause")
        return self.located(cte, token)

    def _inner_statement(self) -> exp.Expr:
        self.expect(TokenType.L_PAREN)
        node = self.preparable()
        self.expect(TokenType.R_PAREN)
        return node

    def preparable(self) -> exp.Expr:
        raise NotImplementedError

    def _mutually_recursive(self) -> exp.With:
        """WITH MUTUALLY RECURSIVE [([RETURN AT | ERROR AT] RECURSION LIMIT n)] name (col type, …) AS (…), …"""
        limit: int | None = None
        return_at = False
        if self._match(TokenType.L_PAREN):
            return_at = self.accept_word("return", "at")
            if not return_at:
                self.accept_word("error", "at")
            self.expect_word("recursion", "limit")
            limit = self.integer()
            self.expect(TokenType.R_PAREN)
        with_ = exp.With(expressions=self._parse_csv(self._binding), recursive=True)
        with_.meta.update(mutually=True, limit=limit, return_at=return_at)
        return with_

    def _binding(self) -> exp.CTE:
        token = self._curr
        name = self.identifier()
        self.expect(TokenType.L_PAREN)
        columns = self._parse_csv(lambda: exp.ColumnDef(this=self.identifier(), kind=self._parse_types()))
        self.expect(TokenType.R_PAREN)
        self.expect(TokenType.ALIAS)
        alias = exp.TableAlias(this=name, columns=columns)
        return self.located(exp.CTE(this=self._inner_statement(), alias=alias), token)


def _is_joined(table: exp.Subquery) -> bool:
    return isinstance(table.this, exp.Table | exp.Subquery) and bool(table.this.args.get("joins"))
