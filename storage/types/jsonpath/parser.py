"""jsonpath text → items: a recursive descent for the grammar of PostgreSQL's jsonpath_gram.y."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError, too_deep
from storage.types.jsonpath.lexer import Token, TokenKind, syntax_error, tokens
from storage.types.jsonpath.nodes import COMPARISONS, PREDICATES, UNBOUNDED, Item, Path, Step
from storage.types.regex.expressions import regex
from storage.types.regex.matching import Regex
from storage.types.text_number import parse_integer, parse_numeric

METHODS: Final = ("abs", "size", "type", "floor", "double", "ceiling", "keyvalue")
"""Those without arguments."""
_COMPARED: Final = {"<>": Step.NOT_EQUAL, **{step.value: step for step in COMPARISONS}}
_SUMS: Final = {"+": Step.ADD, "-": Step.SUBTRACT}
_PRODUCTS: Final = {"*": Step.MULTIPLY, "/": Step.DIVIDE, "%": Step.MODULO}
_CONSTANTS: Final = {
    "null": Item(Step.NULL), "true": Item(Step.BOOL, True), "false": Item(Step.BOOL, False), "last": Item(Step.LAST)
}  # fmt: skip


@lru_cache(1024)
def parse_path(text: str) -> Path:
    """The items of a path. Raises 42601, 22P02, 22P05, 2201B, 0A000, 54001."""
    try:
        path = _Parser(text).path()
        _check(path.item, 0, False)
    except RecursionError:
        raise too_deep() from None
    return path


@lru_cache(1024)
def path_regex(pattern: str, flags: str) -> Regex:
    """The regular expression of ``like_regex``. Raises 42601, 2201B, 0A000."""
    for flag in flags:
        if flag not in "ismxq":
            detail = f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.'
            raise SqlError("42601", "invalid input syntax for type jsonpath", detail)
    case = "i" if "i" in flags else ""
    if "q" in flags:
        return regex(f"***={pattern}", case)
    if "x" in flags:
        raise SqlError("0A000", 'XQuery "x" flag (expanded regular expressions) is not implemented')
    lines, dots = "m" in flags, "s" in flags
    return regex(pattern, case + (("w" if dots else "n") if lines else ("s" if dots else "p")))


def _check(item: Item | None, nesting: int, in_subscript: bool) -> None:
    """Raises 42601 for ``@`` outside of a filter and ``last`` outside of a subscript."""
    while item is not None:
        if item.step is Step.CURRENT and nesting <= 0:
            raise SqlError("42601", "@ is not allowed in root expressions")
        if item.step is Step.LAST and not in_subscript:
            raise SqlError("42601", "LAST is allowed only in array subscripts")
        for arg in item.args:
            _check(arg, nesting + (item.step is Step.FILTER), in_subscript)
        if item.step is Step.INDEX:
            for low, high in item.value:
                _check(low, nesting, True)
                _check(high, nesting, True)
        item = item.next


def _is_predicate(item: Item) -> bool:
    return item.step in PREDICATES and item.next is None


class _Parser:
    def __init__(self, text: str) -> None:
        if not text.strip(" \t\n\r\f"):
            raise SqlError("22P02", f'invalid input syntax for type jsonpath: "{text}"')
        self.tokens = tokens(text)
        self.at = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def path(self) -> Path:
        lax = True
        if self._keyword() in ("strict", "lax"):
            lax = self._advance().keyword == "lax"
        item = self._any()
        if self.token.kind is not TokenKind.END:
            raise self._error()
        return Path(lax, item)

    # -- tokens --------------------------------------------------------------------------------------------------

    def _advance(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def _keyword(self) -> str:
        return self.token.keyword

    def _symbol(self) -> str:
        return self.token.text if self.token.kind is TokenKind.SYMBOL else ""

    def _error(self) -> SqlError:
        return syntax_error("syntax error", self.token.shown)

    def _expect(self, symbol: str) -> None:
        if self._symbol() != symbol:
            raise self._error()
        self.at += 1

    def _expect_keyword(self, keyword: str) -> None:
        if self._keyword() != keyword:
            raise self._error()
        self.at += 1

    def _string(self) -> str:
        if self.token.kind is not TokenKind.STRING:
            raise self._error()
        return self._advance().text

    # -- predicates and operators ----------------------------------------------------------------------------------

    def _any(self) -> Item:
        """An expression or a predicate."""
        left = self._all()
        while self._symbol() == "||":
            left = self._joined(Step.OR, left)
        return left

    def _all(self) -> Item:
        left = self._negated()
        while self._symbol() == "&&":
            left = self._joined(Step.AND, left)
        return left

    def _joined(self, step: Step, left: Item) -> Item:
        if not _is_predicate(left):
            raise self._error()
        self.at += 1
        other = self._all() if step is Step.OR else self._negated()
        if not _is_predicate(other):
            raise self._error()
        return Item(step, args=(left, other))

    def _predicate(self) -> Item:
        found = self._any()
        if not _is_predicate(found):
            raise self._error()
        return found

    def _expression(self) -> Item:
        found = self._sum()
        if _is_predicate(found):
            raise self._error()
        return found

    def _negated(self) -> Item:
        if self._symbol() != "!":
            return self._compared()
        self.at += 1
        if self._keyword() == "exists":
            return Item(Step.NOT, args=(self._exists(),))
        self._expect("(")
        inner = self._predicate()
        self._expect(")")
        return Item(Step.NOT, args=(inner,))

    def _exists(self) -> Item:
        self.at += 1
        self._expect("(")
        inner = self._expression()
        self._expect(")")
        return Item(Step.EXISTS, args=(inner,))

    def _compared(self) -> Item:
        if self._keyword() == "exists":
            return self._exists()
        left = self._sum()
        step = _COMPARED.get(self._symbol())
        keyword = self._keyword()
        if step is None and keyword not in ("starts", "like_regex"):
            return left
        if _is_predicate(left):
            raise self._error()
        self.at += 1
        if step is not None:
            return Item(step, args=(left, self._expression()))
        if keyword == "starts":
            self._expect_keyword("with")
            if self.token.kind not in (TokenKind.STRING, TokenKind.VARIABLE):
                raise self._error()
            return Item(Step.STARTS_WITH, args=(left, self._primary()))
        pattern, flags = self._string(), ""
        if self._keyword() == "flag":
            self.at += 1
            flags = self._string()
        path_regex(pattern, flags)
        return Item(Step.LIKE_REGEX, (pattern, "".join(flag for flag in "ismxq" if flag in flags)), (left,))

    def _sum(self) -> Item:
        left = self._product()
        while (step := _SUMS.get(self._symbol())) is not None:
            left = self._operation(step, left)
        return left

    def _product(self) -> Item:
        left = self._signed()
        while (step := _PRODUCTS.get(self._symbol())) is not None:
            left = self._operation(step, left)
        return left

    def _operation(self, step: Step, left: Item) -> Item:
        if _is_predicate(left):
            raise self._error()
        self.at += 1
        right = self._product() if step in (Step.ADD, Step.SUBTRACT) else self._signed()
        if _is_predicate(right):
            raise self._error()
        return Item(step, args=(left, right))

    def _signed(self) -> Item:
        sign = self._symbol()
        if sign not in ("+", "-"):
            return self._accessed()
        self.at += 1
        operand = self._signed()
        if _is_predicate(operand):
            raise self._error()
        if operand.step is Step.NUMBER and operand.next is None:
            return operand if sign == "+" else Item(Step.NUMBER, _negative(operand.value))
        return Item(Step.PLUS if sign == "+" else Step.MINUS, args=(operand,))

    # -- accessors -------------------------------------------------------------------------------------------------

    def _accessed(self) -> Item:
        """A primary with its accessors."""
        if self._symbol() == "(":
            self.at += 1
            head = self._any()
            self._expect(")")
            if _is_predicate(head) and self._keyword() == "is":
                self.at += 1
                self._expect_keyword("unknown")
                return Item(Step.IS_UNKNOWN, args=(head,))
        else:
            head = self._primary()
        found: list[Item] = []
        while self._symbol() in (".", "[", "?"):
            found.append(self._accessor())
        return _chained(head, found)

    def _primary(self) -> Item:
        token = self.token
        constant = _CONSTANTS.get(token.keyword)
        if constant is None:
            match token.kind:
                case TokenKind.STRING:
                    constant = Item(Step.STRING, token.text)
                case TokenKind.NUMBER | TokenKind.INTEGER:
                    constant = Item(Step.NUMBER, parse_numeric(token.text))
                case TokenKind.VARIABLE:
                    constant = Item(Step.VARIABLE, token.text)
                case TokenKind.SYMBOL if token.text in "$@":
                    constant = Item(Step.ROOT if token.text == "$" else Step.CURRENT)
                case _:
                    raise self._error()
        self.at += 1
        return constant

    def _accessor(self) -> Item:
        symbol = self._advance().text
        if symbol == "[":
            return self._subscripts()
        if symbol == "?":
            self._expect("(")
            condition = self._predicate()
            self._expect(")")
            return Item(Step.FILTER, args=(condition,))
        if self._symbol() == "*":
            self.at += 1
            return Item(Step.ANY_KEY)
        if self._symbol() == "**":
            self.at += 1
            return self._levels()
        if self.token.kind not in (TokenKind.WORD, TokenKind.STRING):
            raise self._error()
        name = self._advance()
        if self._symbol() == "(" and (name.keyword in METHODS or name.keyword == "datetime"):
            return self._method(name.keyword)
        return Item(Step.KEY, name.text)

    def _method(self, name: str) -> Item:
        self.at += 1
        args: tuple[Item, ...] = ()
        if name == "datetime" and self.token.kind is TokenKind.STRING:
            args = (Item(Step.STRING, self._string()),)
        self._expect(")")
        return Item(Step.METHOD, name, args)

    def _subscripts(self) -> Item:
        if self._symbol() == "*":
            self.at += 1
            self._expect("]")
            return Item(Step.ANY_ARRAY)
        found: list[tuple[Item, Item | None]] = []
        while True:
            low, high = self._expression(), None
            if self._keyword() == "to":
                self.at += 1
                high = self._expression()
            found.append((low, high))
            if self._symbol() != ",":
                break
            self.at += 1
        self._expect("]")
        return Item(Step.INDEX, tuple(found))

    def _levels(self) -> Item:
        if self._symbol() != "{":
            return Item(Step.ANY, (0, UNBOUNDED))
        self.at += 1
        first = last = self._level()
        if self._keyword() == "to":
            self.at += 1
            last = self._level()
        self._expect("}")
        return Item(Step.ANY, (first, last))

    def _level(self) -> int:
        if self._keyword() == "last":
            self.at += 1
            return UNBOUNDED
        if self.token.kind is not TokenKind.INTEGER:
            raise self._error()
        return parse_integer(self._advance().text, -(2**31), 2**31, "integer")


def _negative(value: Decimal) -> Decimal:
    return value.copy_negate() if value else value


def _chained(head: Item, accessors: list[Item]) -> Item:
    """An item with what follows it, behind what it has already."""
    if not accessors:
        return head
    chain = [head]
    while chain[-1].next is not None:
        chain.append(chain[-1].next)
    following: Item | None = None
    for item in reversed([*chain, *accessors]):
        following = replace(item, next=following)
    assert following is not None, "a chain has a head"
    return following
