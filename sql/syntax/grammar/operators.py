"""Expressions by operator precedence (gram.y): a loop over infix operators, one precedence level per recursion."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.alike import alike, repeated, slots
from sql.syntax.grammar.forms import mixed
from sql.syntax.grammar.types import TypeGrammar
from sql.syntax.lexing.keywords import NORMAL_FORMS
from sql.syntax.lexing.lexer import MANY, Token, TokenKind
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.alike import Alike, Mixed
from sql.syntax.nodes.constant_items import ConstantItems

OR, AND, NOT, IS, COMPARE, MATCH, OTHER, SUM, PRODUCT, POWER, ZONE, COLLATION, SIGN = range(1, 14)

_WORDS: Final = {
    "or": OR, "and": AND, "is": IS, "isnull": IS, "notnull": IS, "in": MATCH, "like": MATCH, "ilike": MATCH,
    "between": MATCH, "similar": MATCH, "not": MATCH, "at": ZONE, "collate": COLLATION, "operator": OTHER,
    "overlaps": OTHER,
}  # fmt: skip
_SYMBOLS: Final = {
    "<": COMPARE, ">": COMPARE, "=": COMPARE, "<=": COMPARE, ">=": COMPARE, "<>": COMPARE, "+": SUM, "-": SUM,
    "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "^": POWER,
} | dict.fromkeys(("(", ")", "[", "]", ",", ";", ".", ":", "::", ":=", "..", "=>"), 0)  # fmt: skip
"""0: no operator. Every other symbol has the precedence OTHER."""
_CHAINED: Final = {"and": AND, "or": OR, "+": SUM, "||": OTHER, ",": 0}
"""What operands of one form are read together between, and its precedence."""
_SUMMED: Final = frozenset({"+", "||"})
_PATTERNS: Final = {"like": "~~", "ilike": "~~*", "similar": "similar to"}
_FOLLOWS: Final = {"similar": ("to",), "at": ("time", "local"), "not": ("in", "like", "ilike", "between", "similar")}
"""Words that are operators only before one of these."""


class OperatorGrammar(TypeGrammar):
    """Expressions down to their operands."""

    @abstractmethod
    def json_test(self, left: nodes.Expr, at: int) -> nodes.JsonCall:
        """What follows ``expression IS [NOT] JSON``."""

    @abstractmethod
    def operand(self) -> nodes.Expr:
        """An operand with its casts, subscripts and fields."""

    @abstractmethod
    def parenthesised(self, together: bool = False) -> nodes.Query | tuple[nodes.Expr, ...]:
        """``(query)`` or ``(expr, …)``; ``together``: as for ``expressions``."""

    def expression(self) -> nodes.Expr:
        """gram.y's a_expr."""
        return self._climb(OR)

    def restricted(self) -> nodes.Expr:
        """gram.y's b_expr: without AND, OR, NOT, IN, LIKE, BETWEEN, and of IS only IS [NOT] DISTINCT FROM."""
        return self._climb(IS, restricted=True)

    def expressions(self, together: bool = False) -> tuple[nodes.Expr, ...]:
        """One or more, separated by commas. ``together``: all of them as one ``Alike``, if they are."""
        begin = self.index
        items = [self.expression()]
        found = self._alike(begin, items[0]) if together else None
        if found is not None:
            items = [found] if not self.is_symbol(",") else list(found.operands())
        while self.accept_symbol(","):
            items.append(self.expression())
        return tuple(items)

    def _climb(self, least: int, restricted: bool = False) -> nodes.Expr:
        """An expression whose operators bind at least as tightly as ``least``."""
        start, loosest = self.index, SIGN
        left = self._prefix(restricted)
        while (precedence := self._precedence(restricted)) >= least:
            token = self.tokens[self.index]
            if token.kind is not TokenKind.SYMBOL:
                left = self._infix(start, left, precedence, restricted)
            elif token.value in _SUMMED and not restricted:
                left = self._sum(start, left, precedence, loosest > precedence)
            else:
                left = self._binary(left, precedence, restricted)
            loosest = min(loosest, precedence)
            while self.is_symbol("::"):  # after what ends without an operand, as IS NULL does
                at = self.advance().start
                left = nodes.Cast(left, self.type_name(), at)
        return left

    def _sum(self, start: int, left: nodes.Expr, precedence: int, whole: bool) -> nodes.Expr:
        """What follows between + or ||. ``whole``: what is on the left is one operand of them."""
        symbol, bounds, looked = self.tokens[self.index].value, [start], MANY if whole else 0
        while self.is_symbol(symbol):
            chain: Alike | Mixed | None = self._alike(start, left)
            bounds.append(self.index + 1)
            if chain is None and len(bounds) > looked > 0:
                looked *= 2
                operands = _operands(left, symbol, len(bounds) - 1)
                chain = self._mixed(bounds, operands, symbol) if operands else None
            looked = looked if chain is None else 0
            left = chain or self._binary(left, precedence, False)
        return left

    def _mixed(self, bounds: list[int], operands: list[nodes.Expr], symbol: str) -> Mixed | None:
        """The operands that start at all but the last of these tokens, and those after them that are like them."""
        found = mixed(self.tokens, bounds, operands, symbol)
        if found is not None:
            self.index = found[1] - 1
        return None if found is None else found[0]

    def _precedence(self, restricted: bool) -> int:
        """Of the infix operator that is next; 0 if there is none."""
        token = self.tokens[self.index]
        if token.kind is TokenKind.SYMBOL:
            return _SYMBOLS.get(token.value, OTHER)
        found = _WORDS.get(token.value, 0) if token.kind is TokenKind.WORD else 0
        if not found:
            return 0
        word, following = token.value, self.ahead()
        if restricted and (found == MATCH or found <= IS):
            return IS if word == "is" and following.value in ("distinct", "not") else 0
        if word in _FOLLOWS:
            return found if following.value in _FOLLOWS[word] and following.kind is TokenKind.WORD else 0
        if word == "operator":
            return found if self.is_symbol("(", 1) else 0
        return found

    def _prefix(self, restricted: bool) -> nodes.Expr:
        token = self.tokens[self.index]
        if token.kind is TokenKind.SYMBOL:
            if token.value in ("+", "-"):
                self.index += 1
                return _signed(token, self._climb(SIGN, restricted))
            if token.value not in _SYMBOLS:
                self.index += 1
                return nodes.Operator(token.value, (self._climb(OTHER + 1, restricted),), token.start)
        elif token.kind is TokenKind.WORD:
            if token.value == "not" and not restricted:
                self.index += 1
                return nodes.NotExpr(self._climb(NOT), token.start)
            if token.value == "operator" and self.is_symbol("(", 1):
                schema, symbol = self.operator_symbol()
                return nodes.Operator(symbol, (self._climb(OTHER + 1, restricted),), token.start, schema)
        return self.operand()

    def _alike(self, start: int, operand: nodes.Expr) -> Alike | None:
        """The operand from token ``start`` on, and those after it that are like it; None: they are few."""
        token, between = self.tokens[self.index], self.index
        precedence = _CHAINED.get(token.value)
        if precedence is None or start < self.unlike or len(self.tokens) - start < MANY:
            return None
        count = repeated(self.tokens, start, between)
        if not count:
            return None
        period = between - start + 1
        last = start + count * period
        end = last - 1
        if alike(self.tokens, start, last, period - 1) and self._is_operand(last, last + period - 1, precedence):
            end = last + period - 1
        tokens = self.tokens[start:end]
        second = self._is_operand(start + period, start + 2 * period - 1, precedence)
        found = slots(operand, tokens, period) if second else None
        if found is None:
            self.unlike = last
            return None
        self.index = end
        return Alike(token.value, operand, tokens, period, found, self.tokens[start].start)

    def _is_operand(self, start: int, end: int, precedence: int) -> bool:
        """Whether these tokens are the whole of an operand of an operator of this precedence."""
        mark = self.mark()
        self.index = start
        try:
            self._climb(precedence + 1)
            return self.index == end
        except SqlError:
            return False  # it is raised again where the operand is read
        finally:
            self.retreat(mark)

    def _infix(self, start: int, left: nodes.Expr, precedence: int, restricted: bool) -> nodes.Expr:
        token = self.token
        if precedence in (OR, AND):
            operands = self._junction(start, left, precedence)
            if len(operands) == 1:
                return operands[0]
            return (nodes.OrExpr if precedence == OR else nodes.AndExpr)(tuple(operands), token.start)
        if precedence == IS:
            return self._is_test(left, restricted)
        if precedence == MATCH:
            return self._match(left)
        if precedence == ZONE:
            self.expect("at")
            if self.accept("local"):
                return nodes.Apply(("pg_catalog", "timezone"), (left,), token.start)
            self.expect("time", "zone")
            return nodes.Operator("at time zone", (left, self._climb(ZONE + 1, restricted)), token.start)
        if precedence == COLLATION:
            self.index += 1
            return nodes.Collate(left, self.qualified(), token.start)
        if self.is_word("overlaps"):
            return self._overlaps(left)
        return self._binary(left, precedence, restricted)

    def _junction(self, start: int, left: nodes.Expr, precedence: int) -> list[nodes.Expr]:
        """The operands of AND or OR, from the first on, which has been read."""
        word, looked = self.token.value, MANY
        operands = [self._alike(start, left) or left]
        bounds = [start] if operands[0] is left else []
        while self.accept(word):
            begin = self.index
            operand = self._climb(precedence + 1)
            chain: Alike | Mixed | None = self._alike(begin, operand)
            operands.append(chain or operand)
            bounds.append(begin)
            if chain is None and len(bounds) >= looked and self.is_word(word):
                looked *= 2
                chain = self._mixed([*bounds, self.index + 1], operands[-len(bounds) :], word)
                if chain is not None:
                    operands[-len(bounds) :] = [chain]
            if chain is not None:
                bounds, looked = [], MANY
        return operands

    def _overlaps(self, left: nodes.Expr) -> nodes.Expr:
        at = self.advance().start
        right = self._climb(OTHER + 1)
        for side, row in (("left", left), ("right", right)):
            if not isinstance(row, nodes.RowExpr):
                raise self.error()
            if len(row.items) != 2:
                message = f"wrong number of parameters on {side} side of OVERLAPS expression"
                raise SqlError("42601", message, position=row.at + 1)
        assert isinstance(left, nodes.RowExpr)
        assert isinstance(right, nodes.RowExpr)
        return nodes.Apply(("overlaps",), (*left.items, *right.items), at, keywords=True)

    def _binary(self, left: nodes.Expr, precedence: int, restricted: bool) -> nodes.Expr:
        token, schema = self.tokens[self.index], None
        at, symbol = token.start, token.value
        if token.kind is TokenKind.SYMBOL:
            self.index += 1
        else:
            schema, symbol = self.operator_symbol()
        following = self.tokens[self.index]
        if not restricted and following.kind is TokenKind.WORD and following.value in ("any", "some", "all"):
            return self._quantified(left, symbol, at, schema)
        right = self._climb(precedence + 1, restricted)
        if precedence == COMPARE and self._precedence(restricted) == COMPARE:
            raise self.error()
        return nodes.Operator(symbol, (left, right), at, schema)

    def operator_symbol(self) -> tuple[str | None, str]:
        """An operator, or ``OPERATOR(schema.op)``: its schema and its symbol."""
        if not self.accept("operator"):
            return None, self._bare_symbol()
        self.expect_symbol("(")
        found = self.qualified_symbol()
        self.expect_symbol(")")
        return found

    def qualified_symbol(self) -> tuple[str | None, str]:
        """``[schema.]op`` (gram.y's any_operator)."""
        schema = None
        while self.token.kind in (TokenKind.WORD, TokenKind.QUOTED):
            schema = self.name()
            self.expect_symbol(".")
        return schema, self._bare_symbol()

    def _bare_symbol(self) -> str:
        if self.token.kind is not TokenKind.SYMBOL or _SYMBOLS.get(self.token.value, OTHER) == 0:
            raise self.error()
        return self.advance().value

    def _quantified(self, left: nodes.Expr, symbol: str, at: int, schema: str | None = None) -> nodes.Expr:
        every = self.advance().value == "all"
        operand = self.parenthesised()
        if isinstance(operand, tuple):
            if len(operand) > 1:
                raise self.error(self.ahead(-1))
            return nodes.Quantifier(left, symbol, every, operand[0], at, schema)
        return nodes.Quantifier(left, symbol, every, operand, at, schema)

    def _is_test(self, left: nodes.Expr, restricted: bool) -> nodes.Expr:
        token = self.advance()
        if token.value != "is":
            return nodes.IsTest(left, "null", token.value == "notnull", token.start)
        negated = self.accept("not")
        if self.accept("distinct"):
            self.expect("from")
            right = self._climb(IS + 1, restricted)
            if self._precedence(restricted) == IS:
                raise self.error()
            return nodes.DistinctTest(left, right, negated, token.start)
        if restricted:
            raise self.error()
        form = self.token
        if self.accept("normalized") or (self.accept_one_of(*NORMAL_FORMS) and self.accept("normalized")):
            name = nodes.String("nfc" if form.value == "normalized" else form.value, form.start)
            test = nodes.Apply(("is_normalized",), (left, name), token.start, keywords=True)
            return nodes.NotExpr(test, token.start) if negated else test
        if self.accept("json"):
            found = self.json_test(left, token.start)
            return nodes.NotExpr(found, token.start) if negated else found
        if self.is_one_of("document", "of"):
            raise self.refusal(f"IS {self.token.value.upper()}", token)
        what = self.accept_one_of("null", "true", "false", "unknown")
        if what is None:
            raise self.error()
        return nodes.IsTest(left, what, negated, token.start)

    def _match(self, left: nodes.Expr) -> nodes.Expr:
        """[NOT] LIKE, ILIKE, SIMILAR TO, BETWEEN and IN."""
        at = self.token.start
        negated = self.accept("not")
        word = self.advance().value
        if word == "in":
            if self.token.kind is TokenKind.LIST:
                listed = self.advance()
                return nodes.InList(left, ConstantItems(listed.value, listed.start), negated, at)
            items = self.parenthesised(together=True)
            if isinstance(items, tuple):
                return nodes.InList(left, items, negated, at)
            return nodes.InQuery(left, items, negated, at)
        if word == "between":
            symmetric = self.accept_one_of("symmetric", "asymmetric") == "symmetric"
            low = self.restricted()
            self.expect("and")
            high = self._climb(MATCH + 1)
            self._refuse_match()
            return nodes.Between(left, low, high, negated, symmetric, at)
        if word == "similar":
            self.expect("to")
        return self._pattern(left, _PATTERNS[word], negated, at)

    def _refuse_match(self) -> None:
        """LIKE, IN and BETWEEN do not associate."""
        if self._precedence(False) == MATCH:
            raise self.error()

    def _pattern(self, left: nodes.Expr, symbol: str, negated: bool, at: int) -> nodes.Expr:
        if symbol != "similar to" and self.is_one_of("any", "some", "all"):
            return self._quantified(left, f"!{symbol}" if negated else symbol, at)
        args = [left, self._climb(MATCH + 1)]
        if self.accept("escape"):
            args.append(self._climb(MATCH + 1))
        self._refuse_match()
        if negated and symbol.startswith("~~") and len(args) == 2:
            return nodes.Operator(f"!{symbol}", tuple(args), at)
        like = nodes.Operator(symbol, tuple(args), at)
        return nodes.NotExpr(like, at) if negated else like

    def qualified(self) -> tuple[str, ...]:
        """A possibly qualified name, whose first part is a ColId."""
        parts = [self.name()]
        while self.accept_symbol("."):
            parts.append(self.label())
        return tuple(parts)


def _operands(whole: nodes.Expr, symbol: str, count: int) -> list[nodes.Expr]:
    """The operands that have been put together one by one; none if they have not."""
    found: list[nodes.Expr] = []
    while len(found) < count - 1:
        if not isinstance(whole, nodes.Operator) or whole.symbol != symbol or len(whole.args) != 2:
            return []
        found.append(whole.args[1])
        whole = whole.args[0]
    return [whole, *reversed(found)]


def _signed(token: Token, operand: nodes.Expr) -> nodes.Expr:
    """A minus before a bare number is part of it, as in PostgreSQL's doNegate."""
    if isinstance(operand, nodes.Number) and token.value == "-":
        text = operand.text
        return nodes.Number(text[1:] if text.startswith("-") else f"-{text}", token.start)
    return nodes.Operator(token.value, (operand,), token.start)
