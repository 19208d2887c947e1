"""FROM: tables, joins, functions and subqueries, and where an alias ends and a clause of ours starts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ivm.errors import SqlError
from sql.syntax.lexing.keywords import RESERVED
from sql.syntax.rules.calls import CallRules

_JOIN_WORDS: Final = frozenset(
    {
        TokenType.JOIN, TokenType.INNER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.CROSS,
        TokenType.NATURAL,
    }
)  # fmt: skip


class FromRules(CallRules):
    """Items of FROM; a joined table has its joins in its args."""

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
        return self._is_asof() or self.is_word("up", "to") or self.is_word("set")

    def _is_asof(self) -> bool:
        return self.is_word("asof") and self._next.text in ("join", "inner", "left", "right", "full", "semi", "anti")

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
        if self._is_asof():
            return self._as_of_join()
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
        if join.this.meta.pop("timed", None) is not None:
            if method is not None or (side is not None and side.text != "left"):
                raise self.refusal("PROCTIME() in any but an inner or left join with a condition")
            join.meta["timed"] = "proctime"
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

    def _proctime(self) -> None:
        """FOR SYSTEM_TIME AS OF PROCTIME()."""
        self._advance(2)
        self.expect_word("as", "of")
        if not self.is_word("proctime"):
            raise self.refusal("FOR SYSTEM_TIME AS OF anything but PROCTIME()")
        self._advance()
        self.expect(TokenType.L_PAREN)
        self.expect(TokenType.R_PAREN)

    def _as_of_join(self) -> exp.Join:
        """ASOF [INNER | LEFT [OUTER]] JOIN table ON condition | USING (columns)."""
        token = self._curr
        self._advance()
        if self._curr.text in ("right", "full", "semi", "anti"):
            raise self.refusal(f"ASOF {self._curr.text.upper()} JOIN")
        left = self._match(TokenType.LEFT)
        if left:
            self._match(TokenType.OUTER)
        else:
            self._match(TokenType.INNER)
        self.expect(TokenType.JOIN)
        join = self.located(exp.Join(this=self._parse_table(), side="left" if left else None), token)
        join.meta["timed"] = "asof"
        if self._match(TokenType.ON):
            join.set("on", self._parse_disjunction())
        else:
            self.expect(TokenType.USING)
            join.set("using", self.identifiers())
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
        elif self._match(TokenType.ONLY):
            node = self._plain_table(only=True)
        elif lateral or self._is_call():
            node = self._function_table([self._function()])
        else:
            node = self._plain_table()
        node.meta["at"] = token.start
        node.meta["lateral"] = lateral
        return node

    def only_table(self, only: bool) -> exp.Table:
        """A table's name: ``ONLY name`` or ``ONLY (name)`` once that word is read, ``name`` or ``name *`` without."""
        listed = only and self._match(TokenType.L_PAREN)
        table = self._parse_table_parts()
        if listed:
            self.expect(TokenType.R_PAREN)
        elif not only:
            self._match(TokenType.STAR)
        table.meta["only"] = only
        return table

    def _plain_table(self, only: bool = False) -> exp.Table:
        token = self._curr
        table = self.only_table(only)
        table.set("alias", self._parse_table_alias())
        self._parse_table_sample()
        if self.is_word("for", "system_time"):
            self._proctime()
            table.meta["timed"] = "proctime"
            if table.args.get("alias") is None:
                table.set("alias", self._parse_table_alias())
        table.meta["name_at"] = token.start
        return table

    def _parse_table_sample(self, as_modifier: bool = False) -> None:
        if self._curr.token_type == TokenType.TABLE_SAMPLE:
            raise self.refusal("TABLESAMPLE")

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
            raise self.syntax_error()
        assert node is not None
        return node

    def _function_table(self, functions: list[exp.Expr]) -> exp.Table:
        table = exp.Table(rows_from=functions)
        if self._match_pair(TokenType.WITH, TokenType.ORDINALITY):
            table.set("ordinality", True)
        if self._curr.token_type == TokenType.ALIAS and self._next.token_type == TokenType.L_PAREN:
            raise self.refusal("a column definition list")
        alias = 1 if self._curr.token_type == TokenType.ALIAS else 0
        definition = (self.ahead(alias + 2).token_type, self.ahead(alias + 3).token_type)
        if self.ahead(alias + 1).token_type == TokenType.L_PAREN and not self.RESERVED_TOKENS.intersection(definition):
            raise self.refusal("a column definition list", self.ahead(alias + 1))
        table.set("alias", self._parse_table_alias())
        return table

    def _parenthesised_table(self, lateral: bool) -> exp.Expr:
        self._advance()
        this = self._inner_query() if self.starts_query() else None
        if this is None:
            if lateral:
                raise self.syntax_error()
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
            raise self.syntax_error()
        if joins:
            table.set("joins", [*(table.args.get("joins") or []), *joins])
        return table

    def from_items(self) -> exp.Expr:
        """A FROM list without its word: the first table, with the rest as its ``joins``."""
        table = self._parse_table()
        table.set("joins", list(self.joins(commas=True)))
        return table


def _is_joined(table: exp.Subquery) -> bool:
    return isinstance(table.this, exp.Table | exp.Subquery) and bool(table.this.args.get("joins"))
