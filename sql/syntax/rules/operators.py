"""Operators by PostgreSQL's precedence (gram.y), in place of sqlglot's ladder of methods.

sqlglot differs in many places: it has IS above comparison, comparisons associate, and some operators (``@>``, ``~``,
``OPERATOR(…)``) bind like LIKE.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from sql.syntax.lexing.tokens import OTHER_OPERATOR
from sql.syntax.rules.types import TypeRules

OR, AND, NOT, IS, COMPARE, MATCH, OTHER, SUM, PRODUCT, POWER, ZONE, COLLATION, SIGN = range(1, 14)

_PRECEDENCE: Final = {
    TokenType.OR: OR, TokenType.AND: AND, TokenType.IS: IS, TokenType.ISNULL: IS, TokenType.NOTNULL: IS,
    TokenType.LT: COMPARE, TokenType.GT: COMPARE, TokenType.EQ: COMPARE, TokenType.LTE: COMPARE,
    TokenType.GTE: COMPARE, TokenType.NEQ: COMPARE, TokenType.IN: MATCH, TokenType.LIKE: MATCH,
    TokenType.ILIKE: MATCH, TokenType.BETWEEN: MATCH, TokenType.SIMILAR_TO: MATCH, OTHER_OPERATOR: OTHER,
    TokenType.PLUS: SUM, TokenType.DASH: SUM, TokenType.STAR: PRODUCT, TokenType.SLASH: PRODUCT,
    TokenType.MOD: PRODUCT, TokenType.CARET: POWER, TokenType.COLLATE: COLLATION,
}  # fmt: skip
_MATCHES: Final = frozenset({TokenType.IN, TokenType.LIKE, TokenType.ILIKE, TokenType.BETWEEN, TokenType.SIMILAR_TO})
_PREFIXES: Final = frozenset({TokenType.PLUS, TokenType.DASH, OTHER_OPERATOR})
_QUANTIFIERS: Final = frozenset({TokenType.ANY, TokenType.SOME, TokenType.ALL})
_PATTERNS: Final = {TokenType.LIKE: "~~", TokenType.ILIKE: "~~*", TokenType.SIMILAR_TO: "similar to"}


class OperatorRules(TypeRules):
    """Expressions down to their operands, which sqlglot parses."""

    def _parse_column(self) -> exp.Expr:
        raise NotImplementedError

    def _parse_paren(self) -> exp.Expr:
        raise NotImplementedError

    def _parse_disjunction(self) -> exp.Expr:
        return self.climb(OR)

    def _parse_bitwise(self) -> exp.Expr:
        return self.climb(OTHER)

    def restricted(self) -> exp.Expr:
        """gram.y's b_expr: no AND, OR, NOT, IN, LIKE, BETWEEN, IS but IS DISTINCT FROM."""
        return self.climb(IS, restricted=True)

    def climb(self, least: int, restricted: bool = False) -> exp.Expr:
        """An expression whose operators bind at least as tightly as ``least``."""
        left = self._prefix(restricted)
        while True:
            precedence = self._infix_precedence(restricted)
            if precedence < least:
                return left
            left = self._infix(left, precedence, restricted)

    def _infix_precedence(self, restricted: bool = False) -> int:
        """0 when no operator comes next."""
        token = self._curr
        type_ = token.token_type
        found = _PRECEDENCE.get(type_)
        if found is not None:
            if restricted and (found == MATCH or found <= IS):
                distinct = type_ == TokenType.IS and self._next.text in ("distinct", "not")
                return IS if distinct else 0
            return 0 if type_ == TokenType.SIMILAR_TO and self._next.text != "to" else found
        if type_ == TokenType.NOT:
            return MATCH if self._next.token_type in _MATCHES and not restricted else 0
        if type_ == TokenType.VAR:
            return ZONE if token.text == "at" and self._next.text == "time" else 0
        if type_ == TokenType.OPERATOR:
            return OTHER if self._next.token_type == TokenType.L_PAREN else 0
        if type_ == TokenType.OVERLAPS:
            raise self.refusal("OVERLAPS")
        return 0

    def _prefix(self, restricted: bool) -> exp.Expr:
        token = self._curr
        type_ = token.token_type
        if type_ == TokenType.NOT and not restricted:
            self._advance()
            return self.located(exp.Not(this=self.climb(NOT)), token)
        if type_ in _PREFIXES:
            self._advance()
            sign = type_ != OTHER_OPERATOR
            operand = self.climb(SIGN if sign else OTHER + 1, restricted)
            return self.located(exp.Operator(this=operand, operator=token.text), token)
        if type_ == TokenType.OPERATOR and self._next.token_type == TokenType.L_PAREN:
            symbol = self.operator_symbol()
            return self.located(exp.Operator(this=self.climb(OTHER + 1, restricted), operator=symbol), token)
        return self._parse_column()

    def _infix(self, left: exp.Expr, precedence: int, restricted: bool) -> exp.Expr:
        token = self._curr
        if precedence in (OR, AND):
            self._advance()
            connective = exp.Or if precedence == OR else exp.And
            return self.located(connective(this=left, expression=self.climb(precedence + 1)), token)
        if precedence == IS:
            return self._parse_is_test(left, restricted)
        if precedence == MATCH:
            return self._match_operator(left)
        if precedence == ZONE:
            self.expect_word("at", "time", "zone")
            return self.located(exp.AtTimeZone(this=left, zone=self.climb(ZONE + 1, restricted)), token)
        if precedence == COLLATION:
            self._advance()
            return self.located(exp.Collate(this=left, expression=self.dotted()), token)
        symbol = self.operator_symbol()
        if not restricted and self._curr.token_type in _QUANTIFIERS:
            return self._quantified(left, symbol, token)
        right = self.climb(precedence + 1, restricted)
        if precedence == COMPARE and self._infix_precedence(restricted) == COMPARE:
            raise self.syntax_error()
        return self.located(exp.Operator(this=left, operator=symbol, expression=right), token)

    def operator_symbol(self) -> str:
        """An operator, or ``OPERATOR(schema.op)``."""
        if self._curr.token_type != TokenType.OPERATOR:
            return self._bare_symbol()
        self._advance()
        self.expect(TokenType.L_PAREN)
        while self._curr.token_type not in self.RESERVED_TOKENS:
            self.label()
            self.expect(TokenType.DOT)
        symbol = self._bare_symbol()
        self.expect(TokenType.R_PAREN)
        return symbol

    def _bare_symbol(self) -> str:
        if self._curr.token_type not in _PRECEDENCE or self._curr.text[:1].isalpha():
            raise self.syntax_error()
        self._advance()
        return str(self._prev.text)

    def _quantified(self, left: exp.Expr, symbol: str, token: Token) -> exp.Expr:
        quantifier = exp.All if self._curr.token_type == TokenType.ALL else exp.Any
        self._advance()
        operand = self._parse_paren()
        if isinstance(operand, exp.Tuple):
            self._retreat(self._index - 1)
            raise self.syntax_error()
        return self.located(exp.Operator(this=left, operator=symbol, expression=quantifier(this=operand)), token)

    def _parse_is_test(self, left: exp.Expr, restricted: bool) -> exp.Expr:
        token = self._curr
        self._advance()
        if token.token_type != TokenType.IS:
            negated = token.token_type == TokenType.NOTNULL
            return self.located(exp.Is(this=left, expression=exp.Var(this="null"), negate=negated), token)
        negated = self._match(TokenType.NOT)
        if self._match(TokenType.DISTINCT):
            self.expect(TokenType.FROM)
            right = self.climb(IS + 1, restricted)
            if self._infix_precedence(restricted) == IS:
                raise self.syntax_error()
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self.located(kind(this=left, expression=right), token)
        word = self._curr.text
        if restricted or not self.is_word(word) or word not in ("null", "true", "false", "unknown"):
            if not restricted and word in ("normalized", "document", "json", "of"):
                raise self.refusal(f"IS {word.upper()}", token)
            raise self.syntax_error()
        self._advance()
        return self.located(exp.Is(this=left, expression=exp.Var(this=word), negate=negated), token)

    def _match_operator(self, left: exp.Expr) -> exp.Expr:
        """[NOT] LIKE, ILIKE, SIMILAR TO, BETWEEN and IN."""
        token = self._curr
        negated = self._match(TokenType.NOT)
        type_ = self._curr.token_type
        self._advance()
        if type_ == TokenType.IN:
            if self._curr.token_type != TokenType.L_PAREN:
                raise self.syntax_error()
            items = self._parse_paren()
            return self._negated(self.located(exp.In(this=left, field=items), token), negated)
        if type_ == TokenType.BETWEEN:
            symmetric = self.accept_word("symmetric")
            if not symmetric:
                self.accept_word("asymmetric")
            low = self.restricted()
            self.expect(TokenType.AND)
            high = self._last_operand()
            between = exp.Between(this=left, low=low, high=high, symmetric=symmetric)
            return self._negated(self.located(between, token), negated)
        if type_ == TokenType.SIMILAR_TO:
            self.expect_word("to")
        return self._pattern(left, _PATTERNS[type_], negated, token)

    def _last_operand(self) -> exp.Expr:
        operand = self.climb(MATCH + 1)
        if self._infix_precedence() == MATCH:
            raise self.syntax_error()
        return operand

    def _negated(self, node: exp.Expr, negated: bool) -> exp.Expr:
        node.meta["negated"] = negated
        return node

    def _pattern(self, left: exp.Expr, symbol: str, negated: bool, token: Token) -> exp.Expr:
        if self._curr.token_type in _QUANTIFIERS and symbol != "similar to":
            return self._quantified(left, f"!{symbol}" if negated else symbol, token)
        pattern = self.climb(MATCH + 1)
        escape = self.climb(MATCH + 1) if self.accept_word("escape") else None
        if self._infix_precedence() == MATCH:
            raise self.syntax_error()
        like = self.located(exp.Operator(this=left, operator=symbol, expression=pattern), token)
        node = like if escape is None else self.located(exp.Escape(this=like, expression=escape), token)
        return self._negated(node, negated)

    def dotted(self) -> exp.Expr:
        """A qualified name of anything, as the parts of a tuple."""
        parts = [self.identifier()]
        while self._match(TokenType.DOT):
            parts.append(self.label())
        return exp.Tuple(expressions=parts)
