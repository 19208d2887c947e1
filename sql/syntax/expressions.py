"""Value expressions, by operator precedence as in PostgreSQL's gram.y."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.syntax.cursor import Cursor
from sql.syntax.keywords import RESERVED, TYPE_OR_FUNCTION
from sql.syntax.lexer import TokenKind
from sql.syntax.nodes import (
    AndExpr,
    ArrayExpr,
    ArrayQuery,
    Between,
    Boolean,
    CaseExpr,
    Collate,
    DistinctTest,
    Expr,
    Field,
    InList,
    InQuery,
    IsTest,
    Name,
    NotExpr,
    Null,
    Number,
    Operator,
    OrExpr,
    Param,
    Quantifier,
    Query,
    RowExpr,
    Star,
    String,
    Subquery,
    Subscript,
)

OR, AND, NOT, IS, COMPARE, MATCH, OTHER, SUM, PRODUCT, POWER, ZONE, COLLATION, SIGN = range(1, 14)

_COMPARISONS: Final = frozenset({"<", ">", "=", "<=", ">=", "<>"})
_ARITHMETIC: Final = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "^": POWER}
_MATCHES: Final = {"like": "~~", "ilike": "~~*"}
_NOT_OPERATORS: Final = frozenset({"(", ")", "[", "]", ",", ";", ".", ":", "::", ":=", "..", "=>"})


class ExpressionGrammar(Cursor):
    """Expressions; special function syntax, types and queries come from the classes built on it."""

    @abstractmethod
    def query(self) -> Query: ...

    @abstractmethod
    def special_or_call(self) -> Expr: ...

    @abstractmethod
    def cast_suffix(self, expr: Expr) -> Expr: ...

    def expression(self, least: int = OR) -> Expr:
        """An expression whose operators bind at least as tightly as ``least``."""
        left = self._prefix()
        while True:
            symbol_precedence = self._infix_precedence()
            if symbol_precedence is None or symbol_precedence < least:
                return left
            left = self._infix(left, symbol_precedence)

    def _infix_precedence(self) -> int | None:
        token = self.token
        if token.kind is TokenKind.SYMBOL:
            value = token.value
            if value in _NOT_OPERATORS:
                return None
            if value in _COMPARISONS:
                return COMPARE
            return _ARITHMETIC.get(value, OTHER)
        if token.kind is TokenKind.WORD:
            return self._word_precedence(token.value)
        return None

    def _word_precedence(self, word: str) -> int | None:
        match word:
            case "or":
                return OR
            case "and":
                return AND
            case "is" | "isnull" | "notnull":
                return IS
            case "in" | "like" | "ilike" | "between" | "similar":
                return MATCH
            case "not":
                following = self.ahead()
                return MATCH if following.value in ("in", "like", "ilike", "between", "similar") else None
            case "operator":
                return OTHER if self.is_symbol("(", 1) else None
            case "at":
                return ZONE if self.is_word("at", "time", "zone") else None
            case "collate":
                return COLLATION
            case "overlaps":
                raise unsupported("OVERLAPS", position=self.token.start + 1)
            case _:
                return None

    def _infix(self, left: Expr, precedence: int) -> Expr:
        at = self.token.start
        match precedence:
            case 1:
                return self._logical(left, "or")
            case 2:
                return self._logical(left, "and")
            case 4:
                return self._is(left)
            case 6:
                return self._match(left)
            case 11:
                self.index += 3
                return Operator("at time zone", (left, self.expression(ZONE + 1)), at)
            case 12:
                self.advance()
                return Collate(left, self.dotted(), at)
            case _:
                return self._binary(left, precedence)

    def _logical(self, left: Expr, word: str) -> Expr:
        at = self.token.start
        args = [left]
        least = AND if word == "or" else NOT
        while self.accept(word):
            args.append(self.expression(least))
        return OrExpr(tuple(args), at) if word == "or" else AndExpr(tuple(args), at)

    def _binary(self, left: Expr, precedence: int) -> Expr:
        at = self.token.start
        symbol = self.operator_symbol()
        if self.is_one_of("any", "some", "all") and self.is_symbol("(", 1):
            return self._quantified(left, symbol, at)
        right = self.expression(precedence + 1)
        if precedence == COMPARE and self._infix_precedence() == COMPARE:
            raise self.error()
        return Operator(symbol, (left, right), at)

    def operator_symbol(self) -> str:
        """An operator, or ``OPERATOR(schema.op)``."""
        if not self.is_word("operator"):
            return self.advance().value
        self.advance()
        self.expect_symbol("(")
        while self.token.kind in (TokenKind.WORD, TokenKind.QUOTED):
            self.advance()
            self.expect_symbol(".")
        symbol = self.advance().value
        self.expect_symbol(")")
        return symbol

    def _quantified(self, left: Expr, symbol: str, at: int) -> Expr:
        every = self.advance().value == "all"
        operand: Expr | Query | None = self.parenthesised_query()
        if operand is None:
            self.expect_symbol("(")
            operand = self.expression()
            self.expect_symbol(")")
        return Quantifier(left, symbol, every, operand, at)

    def _is(self, left: Expr) -> Expr:
        at = self.token.start
        word = self.advance().value
        if word != "is":
            return IsTest(left, "null", word == "notnull", at)
        negated = self.accept("not")
        if self.accept("distinct"):
            self.expect("from")
            return DistinctTest(left, self.expression(IS + 1), negated, at)
        what = self.accept_one_of("null", "true", "false", "unknown")
        if what is None:
            if self.is_one_of("normalized", "document", "json", "of"):
                raise unsupported(f"IS {self.token.value.upper()}", position=at + 1)
            raise self.error()
        return IsTest(left, what, negated, at)

    def _match(self, left: Expr) -> Expr:
        at = self.token.start
        negated = self.accept("not")
        word = self.advance().value
        if word == "between":
            symmetric = self.accept("symmetric")
            if not symmetric:
                self.accept("asymmetric")
            low = self.expression(MATCH + 1)
            self.expect("and")
            return Between(left, low, self.expression(MATCH + 1), negated, symmetric, at)
        if word == "in":
            return self._in(left, negated, at)
        if word == "similar":
            self.expect("to")
            return self._pattern(left, "similar to", negated, at)
        return self._pattern(left, _MATCHES[word], negated, at)

    def _pattern(self, left: Expr, symbol: str, negated: bool, at: int) -> Expr:
        if self.is_one_of("any", "some", "all") and self.is_symbol("(", 1):
            return self._quantified(left, f"!{symbol}" if negated else symbol, at)
        args = [left, self.expression(MATCH + 1)]
        if self.accept("escape"):
            args.append(self.expression(MATCH + 1))
        result = Operator(symbol, tuple(args), at)
        if not negated:
            return result
        if symbol.startswith("~~") and len(args) == 2:
            return Operator(f"!{symbol}", tuple(args), at)
        return NotExpr(result, at)

    def _in(self, left: Expr, negated: bool, at: int) -> Expr:
        query = self.parenthesised_query()
        if query is not None:
            return InQuery(left, query, negated, at)
        self.expect_symbol("(")
        items = self.expressions()
        self.expect_symbol(")")
        return InList(left, items, negated, at)

    def expressions(self) -> tuple[Expr, ...]:
        """One or more, separated by commas."""
        items = [self.expression()]
        while self.accept_symbol(","):
            items.append(self.expression())
        return tuple(items)

    def starts_query(self, ahead: int = 0) -> bool:
        """Whether a query may start here: SELECT, VALUES, WITH, TABLE, after any opening parentheses."""
        while self.is_symbol("(", ahead):
            ahead += 1
        token = self.ahead(ahead)
        return token.kind is TokenKind.WORD and token.value in ("select", "values", "with", "table")

    def parenthesised_query(self) -> Query | None:
        """``( query )`` if that is what is next, else None with nothing taken."""
        if not (self.is_symbol("(") and self.starts_query(1)):
            return None
        start = self.index
        nested = self.is_symbol("(", 1)
        try:
            self.advance()
            query = self.query()
            self.expect_symbol(")")
        except SqlError:
            if not nested:
                raise
            self.index = start
            return None
        return query

    def _prefix(self) -> Expr:
        token = self.token
        if token.kind is TokenKind.WORD and token.value == "not":
            self.advance()
            return NotExpr(self.expression(NOT), token.start)
        if token.kind is TokenKind.SYMBOL and token.value not in _NOT_OPERATORS and token.value != "*":
            self.advance()
            if token.value in ("+", "-"):
                return _signed(token.value, self.expression(SIGN), token.start)
            return Operator(token.value, (self.expression(OTHER + 1),), token.start)
        if token.kind is TokenKind.WORD and token.value == "operator" and self.is_symbol("(", 1):
            return Operator(self.operator_symbol(), (self.expression(OTHER + 1),), token.start)
        return self._postfix(self._primary())

    def _postfix(self, expr: Expr) -> Expr:
        while True:
            at = self.token.start
            if self.is_symbol("::"):
                expr = self.cast_suffix(expr)
            elif self.is_symbol("["):
                expr = self._subscript(expr)
            elif self.is_symbol(".") and not isinstance(expr, Name | Number):
                self.advance()
                if self.accept_symbol("*"):
                    raise unsupported("row expansion", position=at + 1)
                expr = Field(expr, self.label(), at)
            else:
                return expr

    def _subscript(self, expr: Expr) -> Expr:
        at = self.token.start
        self.expect_symbol("[")
        low = None if self.is_symbol(":") else self.expression()
        if self.accept_symbol("]"):
            return Subscript(expr, low, None, False, at)
        self.expect_symbol(":")
        high = None if self.is_symbol("]") else self.expression()
        self.expect_symbol("]")
        return Subscript(expr, low, high, True, at)

    def _primary(self) -> Expr:
        token = self.token
        match token.kind:
            case TokenKind.NUMBER:
                self.advance()
                return Number(token.value, token.start)
            case TokenKind.STRING:
                self.advance()
                return String(token.value, token.start)
            case TokenKind.PARAMETER:
                self.advance()
                return Param(int(token.value), token.start)
            case TokenKind.WORD:
                return self._word()
            case TokenKind.QUOTED:
                return self.special_or_call()
            case _:
                return self._parenthesised()

    def _parenthesised(self) -> Expr:
        at = self.token.start
        query = self.parenthesised_query()
        if query is not None:
            return Subquery(query, at)
        if not self.accept_symbol("("):
            raise self.error()
        items = self.expressions()
        self.expect_symbol(")")
        return items[0] if len(items) == 1 else RowExpr(items, at)

    def _word(self) -> Expr:
        token = self.token
        match token.value:
            case "null":
                self.advance()
                return Null(token.start)
            case "true" | "false":
                self.advance()
                return Boolean(token.value == "true", token.start)
            case "case":
                return self._case()
            case "array" if self.is_symbol("[", 1) or self.is_symbol("(", 1):
                return self._array()
            case "row" if self.is_symbol("(", 1):
                return self._row()
            case _:
                return self.special_or_call()

    def _case(self) -> Expr:
        at = self.token.start
        self.expect("case")
        operand = None if self.is_word("when") else self.expression()
        arms = []
        while self.accept("when"):
            condition = self.expression()
            self.expect("then")
            arms.append((condition, self.expression()))
        if not arms:
            raise self.error()
        otherwise = self.expression() if self.accept("else") else None
        self.expect("end")
        return CaseExpr(operand, tuple(arms), otherwise, at)

    def _array(self) -> Expr:
        at = self.token.start
        self.expect("array")
        query = self.parenthesised_query()
        if query is not None:
            return ArrayQuery(query, at)
        return self._array_items(at)

    def _array_items(self, at: int) -> Expr:
        self.expect_symbol("[")
        items: list[Expr] = []
        while not self.is_symbol("]"):
            nested = self.is_symbol("[")
            items.append(self._array_items(self.token.start) if nested else self.expression())
            if not self.accept_symbol(","):
                break
            if self.is_symbol("]"):
                raise self.error()
        self.expect_symbol("]")
        return ArrayExpr(tuple(items), at)

    def _row(self) -> Expr:
        at = self.token.start
        self.expect("row")
        self.expect_symbol("(")
        items = () if self.is_symbol(")") else self.expressions()
        self.expect_symbol(")")
        return RowExpr(items, at)

    def dotted(self) -> tuple[str, ...]:
        """A qualified name of anything."""
        parts = [self.label()]
        while self.accept_symbol("."):
            parts.append(self.label())
        return tuple(parts)

    def column_reference(self) -> Expr:
        """``a``, ``t.a``, ``s.t.a`` or ``t.*``."""
        token = self.token
        if token.kind is TokenKind.WORD and (token.value in RESERVED or token.value in TYPE_OR_FUNCTION):
            raise self.error()
        parts = [self.label()]
        while self.accept_symbol("."):
            if self.accept_symbol("*"):
                return Star(tuple(parts), token.start)
            parts.append(self.label())
        return Name(tuple(parts), token.start)


def _signed(sign: str, operand: Expr, at: int) -> Expr:
    """A minus before a bare number is part of it, as in Postgres's doNegate."""
    if isinstance(operand, Number) and sign == "-":
        text = operand.text
        return Number(text[1:] if text.startswith("-") else f"-{text}", at)
    return Operator(sign, (operand,), at)
