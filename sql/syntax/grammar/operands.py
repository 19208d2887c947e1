"""Operands: literals, columns, parentheses, CASE, ARRAY and ROW, and the casts, subscripts and fields after them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.calls import CallGrammar
from sql.syntax.grammar.types import TYPE_WORDS
from sql.syntax.lexing.keywords import COLUMN_ONLY, RESERVED, TYPE_OR_FUNCTION
from sql.syntax.lexing.lexer import Token, TokenKind
from sql.syntax.nodes import queries as nodes

_NO_PARENTHESES: Final = frozenset(
    """current_date current_time current_timestamp localtime localtimestamp current_user session_user user
    current_role current_catalog current_schema""".split()  # noqa: SIM905
)
_CONTINUES: Final = frozenset(("(", ".", "::", "["))
"""What may go on with an operand."""
_KEYWORDS: Final = RESERVED | TYPE_OR_FUNCTION | COLUMN_ONLY | _NO_PARENTHESES | {"double"}
"""Words that may be more than the name of a column."""
_LITERALS: Final[dict[TokenKind, Callable[[str, int], nodes.Expr]]] = {
    TokenKind.NUMBER: nodes.Number,
    TokenKind.STRING: nodes.String,
    TokenKind.BITS: nodes.Bits,
    TokenKind.PARAMETER: lambda text, at: nodes.Param(int(text), at),
}
_CONSTANTS: Final[dict[str, Callable[[int], nodes.Expr]]] = {
    "null": nodes.Null,
    "true": lambda at: nodes.Boolean(True, at),
    "false": lambda at: nodes.Boolean(False, at),
}


class OperandGrammar(CallGrammar):
    """What the operators of an expression stand between."""

    @abstractmethod
    def whole_query(self, operand: nodes.QueryBody, at: int, with_: nodes.With | None) -> nodes.Query:
        """The query after its WITH clause and first operand; ``at``: the offset of the first token."""

    def operand(self) -> nodes.Expr:
        token = self.tokens[self.index]
        after = self.tokens[self.index + 1] if token.kind is not TokenKind.END else token
        ends = after.value not in _CONTINUES or after.kind is not TokenKind.SYMBOL
        if token.kind is TokenKind.WORD:
            if ends and after.kind is not TokenKind.STRING and token.value not in _KEYWORDS:
                self.index += 1
                return nodes.Name((token.value,), token.start)
            if after.kind is TokenKind.STRING and token.value not in _KEYWORDS:
                self.index += 2
                type_ = nodes.TypeName(token.value, (), False, token.start)
                return self._postfix(nodes.Cast(nodes.String(after.value, after.start), type_, token.start))
            return self._word(token)
        if token.kind is TokenKind.QUOTED:
            return self._named(token)
        if token.kind is TokenKind.SYMBOL and token.value == "(":
            items = self.parenthesised()
            row = isinstance(items, tuple) and len(items) > 1
            return self._postfix(_value(items, token.start), fields=not row)
        literal = _LITERALS.get(token.kind)
        if literal is None:
            raise self.error()
        self.index += 1
        made = literal(token.value, token.start)
        return made if ends else self._postfix(made, fields=token.kind is TokenKind.PARAMETER)

    def _word(self, token: Token) -> nodes.Expr:
        constant = _CONSTANTS.get(token.value)
        if constant is not None:
            self.index += 1
            return self._postfix(constant(token.start))
        match token.value:
            case "case":
                return self._postfix(self._case())
            case "array":
                self.index += 1
                return self._postfix(self._array(token))
            case "row" if self.is_symbol("(", 1):
                self.index += 2
                items = () if self.is_symbol(")") else self.expressions()
                self.expect_symbol(")")
                return self._postfix(nodes.RowExpr(items, token.start))
            case "exists" if self.is_symbol("(", 1):
                self.index += 1
                if not self.starts_query():
                    self.index += 1
                    raise self.error()
                return self._postfix(nodes.ExistsExpr(self._only_query(), token.start))
            case _:
                return self._named(token)

    def _named(self, token: Token) -> nodes.Expr:
        """What starts with a name: a call, a typed literal or a column."""
        named = self.named(token)
        return self._postfix(named, subscripts=isinstance(named, nodes.Name | nodes.Star))

    def named(self, token: Token) -> nodes.Expr:
        """The same without casts, subscripts and fields; ``token``: the next one."""
        word = token.value if token.kind is TokenKind.WORD else ""
        if word in _NO_PARENTHESES and not (word == "current_schema" and self.is_symbol("(", 1)):
            return self._without_parentheses()
        if word in TYPE_WORDS or self.is_word("double", "precision"):
            return self.typed_literal_if_next() or self._column()
        length = self.name_length()
        after = self.ahead(length)
        if after.kind is TokenKind.STRING and word not in RESERVED and word not in COLUMN_ONLY:
            return self.typed_literal()
        if after.kind is not TokenKind.SYMBOL or after.value != "(":
            return self._column()
        mark = self.mark()
        call = self.call(length)
        plain = isinstance(call, nodes.Apply) and call.over is None and call.filter is None and not call.within
        if length == 1 and plain and self.token.kind is TokenKind.STRING and word not in COLUMN_ONLY:
            self.retreat(mark)
            return self.typed_literal()
        return call

    def _without_parentheses(self) -> nodes.Expr:
        """CURRENT_DATE and its like; CURRENT_TIME, LOCALTIME and those of timestamps may have a precision."""
        token = self.advance()
        args: tuple[nodes.Expr, ...] = ()
        if token.value.startswith(("current_time", "localtime")) and self.accept_symbol("("):
            args = (nodes.Number(str(self.integer()), token.start),)
            self.expect_symbol(")")
        return nodes.Apply((token.value,), args, token.start)

    def _column(self) -> nodes.Name | nodes.Star:
        """``a``, ``t.a``, ``s.t.a`` or ``t.*``."""
        token = self.token
        if not self.is_name():
            if token.value in TYPE_OR_FUNCTION or token.value == "cast":
                self.index += 1
            raise self.error()
        parts = [self.label()]
        star = False
        while not star and self.accept_symbol("."):
            star = self.accept_symbol("*")
            if not star:
                parts.append(self.label())
        if len(parts) + star > 4:
            shown = ".".join([*parts, "*"] if star else parts)
            message = f"improper qualified name (too many dotted names): {shown}"
            raise SqlError("42601", message, position=token.start + 1)
        return nodes.Star(tuple(parts), token.start) if star else nodes.Name(tuple(parts), token.start)

    def _postfix(self, expr: nodes.Expr, *, subscripts: bool = False, fields: bool = False) -> nodes.Expr:
        """Casts after an operand, and where gram.y has them subscripts and fields; what has fields has subscripts."""
        chained = False
        while True:
            token = self.tokens[self.index]
            if token.kind is not TokenKind.SYMBOL:
                return expr
            if token.value == "::":
                self.index += 1
                expr, subscripts, fields = nodes.Cast(expr, self.type_name(), token.start), False, False
            elif token.value == "[" and (subscripts or fields):
                expr, fields, chained = self._subscript(expr, chained), True, True
            elif token.value == "." and fields:
                self.index += 1
                chained = False
                if self.accept_symbol("*"):
                    return nodes.AllFields(expr, token.start)
                expr = nodes.Field(expr, self.label(), token.start)
            else:
                return expr

    def _subscript(self, expr: nodes.Expr, chained: bool) -> nodes.Subscript:
        at = self.advance().start
        low = None if self.is_symbol(":") else self.expression()
        if low is not None and self.accept_symbol("]"):
            return nodes.Subscript(expr, low, None, False, at, chained)
        self.expect_symbol(":")
        high = None if self.is_symbol("]") else self.expression()
        self.expect_symbol("]")
        return nodes.Subscript(expr, low, high, True, at, chained)

    def parenthesised(self, together: bool = False) -> nodes.Query | tuple[nodes.Expr, ...]:
        self.expect_symbol("(")
        start = self.token.start
        if self.is_one_of("select", "values", "with", "table"):
            found: nodes.Query | tuple[nodes.Expr, ...] = self.query()
        else:
            nested = self.is_symbol("(")
            found = self.expressions(together)
            if nested and len(found) == 1 and isinstance(found[0], nodes.Subquery):
                found = self.whole_query(found[0].query, start, None)
        self.expect_symbol(")")
        return found

    def starts_query(self) -> bool:
        """Whether SELECT, VALUES, WITH or TABLE is next, after any opening parentheses."""
        ahead = 0
        while self.is_symbol("(", ahead):
            ahead += 1
        token = self.ahead(ahead)
        return token.kind is TokenKind.WORD and token.value in ("select", "values", "with", "table")

    def _only_query(self) -> nodes.Query:
        found = self.parenthesised()
        if isinstance(found, tuple):
            raise self.error()
        return found

    def _array(self, token: Token) -> nodes.Expr:
        """What follows ARRAY: a query, or items of which each may be a list in brackets."""
        if self.is_symbol("("):
            return nodes.ArrayQuery(self._only_query(), token.start)
        return self._array_items(token)

    def _array_items(self, token: Token) -> nodes.ArrayExpr:
        self.expect_symbol("[")
        items: list[nodes.Expr] = []
        while items or not self.is_symbol("]"):
            items.append(self._array_items(self.token) if self.is_symbol("[") else self.expression())
            if not self.accept_symbol(","):
                break
        self.expect_symbol("]")
        return nodes.ArrayExpr(tuple(items), token.start)

    def _case(self) -> nodes.CaseExpr:
        at = self.advance().start
        operand = None if self.is_word("when") else self.expression()
        arms: list[tuple[nodes.Expr, nodes.Expr]] = []
        while self.accept("when"):
            condition = self.expression()
            self.expect("then")
            arms.append((condition, self.expression()))
        if not arms:
            raise self.error()
        otherwise = self.expression() if self.accept("else") else None
        self.expect("end")
        return nodes.CaseExpr(operand, tuple(arms), otherwise, at)


def _value(items: nodes.Query | tuple[nodes.Expr, ...], at: int) -> nodes.Expr:
    """What stands in parentheses as an expression."""
    if not isinstance(items, tuple):
        return nodes.Subquery(items, at)
    return items[0] if len(items) == 1 else nodes.RowExpr(items, at)
