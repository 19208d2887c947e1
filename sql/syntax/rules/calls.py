"""Operands: literals, columns, calls with PostgreSQL's special syntaxes, subscripts and type names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivm.errors import SqlError
from sql.syntax.lexing.keywords import COLUMN_ONLY, RESERVED, TYPE_OR_FUNCTION
from sql.syntax.rules.special import SpecialRules
from sql.syntax.rules.types import TYPE_WORDS

_NO_PARENTHESES: Final = frozenset(
    """current_date current_time current_timestamp localtime localtimestamp current_user session_user user
    current_role current_catalog current_schema""".split()  # noqa: SIM905
)
_NO_FUNCTIONS: Final = frozenset({"between", "inout", "none", "out", "precision", "row", "setof", "values"})
_QUERY_STARTS: Final = frozenset({TokenType.SELECT, TokenType.VALUES, TokenType.WITH, TokenType.TABLE})
_LITERALS: Final[dict[TokenType, Callable[[str], exp.Expr]]] = {
    TokenType.NUMBER: lambda text: exp.Literal(this=text, is_string=False),
    TokenType.STRING: lambda text: exp.Literal(this=text, is_string=True),
    TokenType.PARAMETER: lambda text: exp.Parameter(this=text),
    TokenType.NULL: lambda text: exp.Null(),
    TokenType.TRUE: lambda text: exp.Boolean(this=True),
    TokenType.FALSE: lambda text: exp.Boolean(this=False),
}


_INDIRECTION: Final = (exp.Column, exp.Parameter, exp.Paren, exp.Subquery, exp.Bracket, exp.Dot)
"""What gram.y lets a subscript or a field follow: no call and no constructor without parentheses."""


def at_indirection(node: exp.Expr) -> bool:
    """Whether a Dot is a field and no call with a schema's name."""
    return not isinstance(node, exp.Dot) or isinstance(node.args["expression"], exp.Identifier)


class CallRules(SpecialRules):
    """Operands of expressions."""

    NO_PAREN_FUNCTION_PARSERS = {}  # noqa: RUF012
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012

    def _parse_column(self) -> exp.Expr:
        return self._postfix(self._operand())

    def _operand(self) -> exp.Expr:
        token = self._curr
        type_ = token.token_type
        literal = _LITERALS.get(type_)
        if literal is not None:
            self._advance()
            return self.located(literal(token.text), token)
        if type_ == TokenType.L_PAREN:
            return self._parse_paren()
        if type_ == TokenType.CASE:
            return self._parse_case()
        following = self._next.token_type
        if type_ == TokenType.ARRAY:
            return self._parse_array()
        if type_ == TokenType.ROW and following == TokenType.L_PAREN:
            return self._parse_row_constructor()
        if type_ == TokenType.EXISTS and following == TokenType.L_PAREN:
            return self._parse_exists_predicate()
        return self._parse_named()

    def _parse_named(self) -> exp.Expr:
        """What starts with a name: a call, a typed literal or a column."""
        token = self._curr
        word = "" if token.token_type == TokenType.IDENTIFIER else token.text
        following = self._next.token_type
        if word in _NO_PARENTHESES and not (word == "current_schema" and following == TokenType.L_PAREN):
            return self._without_parentheses()
        if word in TYPE_WORDS or (word == "double" and self._next.text == "precision"):
            return self._typed_literal(must=False) or self._column_reference()
        length = self.name_length()
        after = self.ahead(length).token_type
        if after == TokenType.STRING and word not in RESERVED and word not in COLUMN_ONLY:
            literal = self._typed_literal(must=True)
            assert literal is not None
            return literal
        if after == TokenType.L_PAREN:
            return self._parse_named_call(length, word)
        return self._column_reference()

    def name_length(self) -> int:
        """How many tokens the dotted name that starts here has."""
        length = 1
        while self.ahead(length).token_type == TokenType.DOT and (
            self.ahead(length + 1).token_type not in self.RESERVED_TOKENS
        ):
            length += 2
        return length

    def _without_parentheses(self) -> exp.Expr:
        token = self._curr
        self._advance()
        args: list[exp.Expr] = []
        if self._curr.token_type == TokenType.L_PAREN and token.text.startswith(("current_time", "localtime")):
            self._advance()
            args.append(self.located(exp.Literal(this=str(self.integer()), is_string=False), token))
            self.expect(TokenType.R_PAREN)
        return self.located(exp.Anonymous(this=token.text, expressions=args), token)

    def _parse_named_call(self, length: int, word: str) -> exp.Expr:
        start, token = self._index, self._curr
        call = self.call(length)
        modified = self._curr.token_type == TokenType.STRING and length == 1
        if modified and word not in COLUMN_ONLY and isinstance(call, exp.Anonymous):
            self._retreat(start)
            literal = self._typed_literal(must=True)
            assert literal is not None
            return literal
        return self.located(call, token)

    def call(self, length: int) -> exp.Expr:
        """A call whose dotted name has so many tokens."""
        word = "" if self._curr.token_type == TokenType.IDENTIFIER else self._curr.text
        if length == 1 and (word in _NO_FUNCTIONS or (word in RESERVED and word != "cast")):
            if word in _NO_FUNCTIONS:
                self._advance()
            raise self.syntax_error()
        parts: list[exp.Expr] = []
        for _ in range(length // 2):
            parts.append(self.label() if parts else self.identifier())
            self.expect(TokenType.DOT)
        token = self._curr
        plain = bool(parts) or token.token_type == TokenType.IDENTIFIER
        call = self._parse_function_call(anonymous=plain, any_token=True)
        if call is None:
            raise self.syntax_error()
        assert call is not None
        self.located(call, token)
        return exp.Dot(this=exp.Tuple(expressions=parts), expression=call) if parts else call

    def _parse_function_args(self, alias: bool = False) -> list[exp.Expr]:
        """The arguments; DISTINCT as a Distinct around them all, ORDER BY as an Order after them."""
        if self._curr.token_type == TokenType.R_PAREN:
            return []
        if self._match(TokenType.STAR):
            if not self.next_is(TokenType.R_PAREN):
                raise self.syntax_error()
            return [exp.Star()]
        distinct = self._match(TokenType.DISTINCT)
        if not distinct:
            self._match(TokenType.ALL)
        args = self._parse_csv(self._argument)
        if distinct:
            args = [exp.Distinct(expressions=args)]
        self.refuse_half("order")
        order = self._parse_order()
        return [*args, order] if order is not None else args

    def _argument(self) -> exp.Expr:
        if self._next.token_type in (TokenType.COLON_EQ, TokenType.FARROW):
            name = self.label()
            self._advance()
            return exp.Kwarg(this=name, expression=self._parse_disjunction())
        if self.accept_word("variadic"):
            return exp.Variadic(this=self._parse_disjunction())
        return self._parse_disjunction()

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        if self.accept_word("within", "group"):
            self.expect(TokenType.L_PAREN)
            order = self._parse_order()
            if order is None:
                raise self.syntax_error()
            self.expect(TokenType.R_PAREN)
            this = exp.WithinGroup(this=this, expression=order)
        if self._match_pair(TokenType.FILTER, TokenType.L_PAREN):
            self.expect(TokenType.WHERE)
            this = exp.Filter(this=this, expression=self._parse_disjunction())
            self.expect(TokenType.R_PAREN)
        if self._curr.token_type == TokenType.OVER:
            if self._next.token_type != TokenType.L_PAREN and self._next.token_type not in self.ID_VAR_TOKENS:
                self._advance()
                raise self.syntax_error()
            return super()._parse_window(this)
        return this

    def _parse_window_spec(self) -> dict[str, str | exp.Expr | None]:
        """One end of a frame; sqlglot would let its direction, BETWEEN or AND be missing."""
        between, second = (self._prev.token_type == type_ for type_ in (TokenType.BETWEEN, TokenType.AND))
        value: str | exp.Expr | None = None
        if self.accept_word("current", "row"):
            value, side = "CURRENT ROW", None
        else:
            value = "UNBOUNDED" if self.accept_word("unbounded") else self._parse_disjunction()
            if not (self.is_word("preceding") or self.is_word("following")):
                raise self.syntax_error()
            side = self._curr.text.upper()
            self._advance()
        if not second and between != self.next_is(TokenType.AND):
            raise self.syntax_error()
        return {"value": value, "side": side}

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered:
        """An item of ORDER BY; ``nulls_first`` is None where it is not written."""
        token = self._curr
        this = self._parse_disjunction()
        descending = False
        if self._match(TokenType.USING):
            symbol = self.operator_symbol()
            if symbol not in ("<", ">"):
                message = f"operator {symbol} is not a valid ordering operator"
                raise SqlError("42809", message, position=self._curr.start + 1)
            descending = symbol == ">"
        elif self._match(TokenType.DESC):
            descending = True
        else:
            self._match(TokenType.ASC)
        nulls_first: bool | None = None
        if self.is_word("nulls", "first") or self.is_word("nulls", "last"):
            nulls_first = self._next.text == "first"
            self._advance(2)
        return self.located(exp.Ordered(this=this, desc=descending, nulls_first=nulls_first), token)

    def starts_query(self, ahead: int = 0) -> bool:
        """Whether SELECT, VALUES, WITH or TABLE comes next, after any opening parentheses."""
        while self.ahead(ahead).token_type == TokenType.L_PAREN:
            ahead += 1
        return self.ahead(ahead).token_type in _QUERY_STARTS

    def _parse_paren(self) -> exp.Expr:
        """``(query)`` as a Subquery, ``(expr)`` as a Paren, ``(a, b)`` as a Tuple."""
        token = self._curr
        self.expect(TokenType.L_PAREN)
        this: exp.Expr
        if self._curr.token_type in _QUERY_STARTS:
            this = exp.Subquery(this=self.query())
        else:
            items = self._parse_csv(self._parse_disjunction)
            this = items[0]
            if len(items) > 1:
                this = exp.Tuple(expressions=items)
            elif isinstance(this, exp.Subquery):
                this = exp.Subquery(this=self.query_from(this))
            else:
                this = exp.Paren(this=this)
        self.expect(TokenType.R_PAREN)
        return self.located(this, token)

    def query(self) -> exp.Expr:
        raise NotImplementedError

    def query_from(self, operand: exp.Expr) -> exp.Expr:
        raise NotImplementedError

    def _parse_exists_predicate(self) -> exp.Expr:
        token = self._curr
        self._advance()
        if not self.starts_query():
            self._advance()
            raise self.syntax_error()
        node = self._parse_paren()
        if not isinstance(node, exp.Subquery):
            raise self.syntax_error()
        return self.located(exp.Exists(this=node), token)

    def _parse_array(self) -> exp.Expr:
        token = self._curr
        self._advance()
        if self._curr.token_type == TokenType.L_PAREN:
            node = self._parse_paren()
            if not isinstance(node, exp.Subquery):
                raise self.syntax_error()
            return self.located(exp.Array(expressions=[node], value_constructor=True), token)
        return self._array_items(token)

    def _array_items(self, token: Token) -> exp.Expr:
        self.expect(TokenType.L_BRACKET)
        items: list[exp.Expr] = []
        if self._curr.token_type != TokenType.R_BRACKET:
            items = self._parse_csv(self._array_item)
        self.expect(TokenType.R_BRACKET)
        return self.located(exp.Array(expressions=items), token)

    def _array_item(self) -> exp.Expr:
        nested = self._curr.token_type == TokenType.L_BRACKET
        return self._array_items(self._curr) if nested else self._parse_disjunction()

    def _parse_row_constructor(self) -> exp.Expr:
        token = self._curr
        self._advance(2)
        items = [] if self._curr.token_type == TokenType.R_PAREN else self._parse_csv(self._parse_disjunction)
        self.expect(TokenType.R_PAREN)
        return self.located(exp.Tuple(expressions=items), token)

    def _parse_case(self) -> exp.Expr:
        """sqlglot's, but THEN must be there, and at least one WHEN."""
        token = self._curr
        self._advance()
        operand = None if self._curr.token_type == TokenType.WHEN else self._parse_disjunction()
        arms = []
        while self._match(TokenType.WHEN):
            condition = self._parse_disjunction()
            self.expect(TokenType.THEN)
            arms.append(exp.If(this=condition, true=self._parse_disjunction()))
        if not arms:
            raise self.syntax_error()
        default = self._parse_disjunction() if self._match(TokenType.ELSE) else None
        self.expect(TokenType.END)
        return self.located(exp.Case(this=operand, ifs=arms, default=default), token)

    def _column_reference(self) -> exp.Expr:
        """``a``, ``t.a``, ``s.t.a`` or ``t.*``."""
        token = self._curr
        if token.token_type not in self.ID_VAR_TOKENS:
            if token.text in TYPE_OR_FUNCTION or token.text == "cast":
                self._advance()
            raise self.syntax_error()
        parts: list[exp.Expr] = [self.label()]
        while self._match(TokenType.DOT):
            if self._match(TokenType.STAR):
                parts.append(exp.Star())
                break
            parts.append(self.label())
        if len(parts) > 4:
            shown = ".".join(part.name for part in parts)
            message = f"improper qualified name (too many dotted names): {shown}"
            raise SqlError("42601", message, position=token.start + 1)
        keys = ("this", "table", "db", "catalog")
        return self.located(exp.Column(**dict(zip(keys, reversed(parts), strict=False))), token)

    def _postfix(self, this: exp.Expr) -> exp.Expr:
        """Casts, subscripts and fields after an operand."""
        while True:
            token = self._curr
            if token.token_type == TokenType.DCOLON:
                self._advance()
                this = self.located(exp.Cast(this=this, to=self._parse_types()), token)
            elif not isinstance(this, _INDIRECTION) or not at_indirection(this):
                return this
            elif token.token_type == TokenType.L_BRACKET:
                this = self._subscript(this)
            elif token.token_type == TokenType.DOT and not isinstance(this, exp.Column):
                self._advance()
                if self._curr.token_type == TokenType.STAR:
                    raise self.refusal("row expansion", token)
                this = self.located(exp.Dot(this=this, expression=self.label()), token)
            else:
                return this

    def _subscript(self, this: exp.Expr) -> exp.Expr:
        token = self._curr
        self._advance()
        low = None if self._curr.token_type == TokenType.COLON else self._parse_disjunction()
        if self._match(TokenType.R_BRACKET):
            return self.located(exp.Bracket(this=this, expressions=[low]), token)
        self.expect(TokenType.COLON)
        high = None if self._curr.token_type == TokenType.R_BRACKET else self._parse_disjunction()
        self.expect(TokenType.R_BRACKET)
        return self.located(exp.Bracket(this=this, expressions=[exp.Slice(this=low, expression=high)]), token)
