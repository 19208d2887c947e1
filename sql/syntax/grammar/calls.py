"""Function calls, with PostgreSQL's own syntax for CAST, EXTRACT, POSITION, OVERLAY, SUBSTRING and TRIM."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.syntax.grammar.json_calls import JsonGrammar
from sql.syntax.lexing.keywords import NORMAL_FORMS, NOT_A_COLUMN, RESERVED
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.queries import Apply, Cast, Expr, Number, Query, String

_NO_FUNCTIONS: Final = frozenset({"between", "inout", "none", "out", "precision", "row", "setof", "values"})
_REFUSED: Final = frozenset({"treat", "xmlelement"})
_NO_FIELDS: Final = frozenset(
    """between delete drop exists filter groups insert operator ordinality over range recursive replace row rows set
    temp temporary truncate update values view""".split()  # noqa: SIM905
)
"""Keywords that are names elsewhere, but no field of EXTRACT."""
_NAMING: Final = (":=", "=>")
_AFTER_CALLS: Final = frozenset({"within", "filter", "ignore", "respect", "over"})
_TRIMS: Final = {"leading": "ltrim", "trailing": "rtrim", "both": "btrim"}


class CallGrammar(JsonGrammar):
    """Calls, with what may follow them."""

    @abstractmethod
    def query(self) -> Query:
        """A query with its WITH, ORDER BY, LIMIT and AS OF."""

    def name_length(self) -> int:
        """The number of tokens of the dotted name that starts here."""
        length = 1
        while self.is_symbol(".", length) and self.ahead(length + 1).kind in (TokenKind.WORD, TokenKind.QUOTED):
            length += 2
        return length

    def call(self, length: int) -> Expr:
        """A call whose dotted name has this many tokens."""
        token = self.token
        word = token.value if token.kind is TokenKind.WORD and length == 1 else ""
        if word in _NO_FUNCTIONS:
            self.index += 1
            raise self.error()
        if word in RESERVED and word != "cast":
            raise self.error()
        name = [self.name() if length > 1 else self.label()]
        while self.accept_symbol("."):
            name.append(self.label())
        self.expect_symbol("(")
        special = self._special(word, token.start) or self.json_call(word, token.start)
        cast_to, self.cast_to = self.cast_to, None
        call = special or self._arguments(tuple(name), token.start)
        self.expect_symbol(")")
        if word == "grouping" or (special is not None and word.startswith("json") and not isinstance(call, Apply)):
            return call
        made = self._window(call)
        return made if cast_to is None else Cast(made, cast_to, token.start)

    def _special(self, word: str, at: int) -> Expr | None:
        """What stands in the parentheses of a call with a syntax of its own; None if the word has none."""
        match word:
            case "cast" | "try_cast":
                expr = self.expression()
                self.expect("as")
                return Cast(expr, self.type_name(), at, word == "try_cast")
            case "extract":
                return self._extract(at)
            case "position":
                needle = self.restricted()
                self.expect("in")
                return Apply(("position",), (self.restricted(), needle), at, keywords=True)
            case "overlay":
                args, keywords = self._overlay()
                return Apply(("overlay",), args, at, keywords=keywords)
            case "substring":
                args, keywords = self._substring(at)
                return Apply(("substring",), args, at, keywords=keywords)
            case "normalize":
                text = self.expression()
                if not self.accept_symbol(","):
                    return Apply(("normalize",), (text,), at, keywords=True)
                form = self.token
                if self.accept_one_of(*NORMAL_FORMS) is None:
                    raise self.error()
                return Apply(("normalize",), (text, String(form.value, form.start)), at, keywords=True)
            case "trim":
                return self._trim(at)
            case "grouping":
                return Apply(("grouping",), self.expressions(), at)
            case _ if word in _REFUSED:
                raise unsupported(word.upper(), position=at + 1)
            case _:
                return None

    def _extract(self, at: int) -> Apply:
        field = self.token
        if field.kind is TokenKind.WORD and (field.value in NOT_A_COLUMN or field.value in _NO_FIELDS):
            raise self.error()
        if field.kind not in (TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING):
            raise self.error()
        self.index += 1
        self.expect("from")
        return Apply(("extract",), (String(field.value, field.start), self.expression()), at, keywords=True)

    def _overlay(self) -> tuple[tuple[Expr, ...], bool]:
        """The arguments, and whether they are written with keywords."""
        args = [self.expression()]
        if not self.accept("placing"):
            return (*args, *self._further()), False
        args.append(self.expression())
        self.expect("from")
        args.append(self.expression())
        if self.accept("for"):
            args.append(self.expression())
        return tuple(args), True

    def _substring(self, at: int) -> tuple[tuple[Expr, ...], bool]:
        """The same."""
        text = self.expression()
        if self.accept("similar"):
            pattern = self.expression()
            self.expect("escape")
            return (text, pattern, self.expression()), True
        if self.accept("from"):
            start = self.expression()
            return ((text, start, self.expression()) if self.accept("for") else (text, start)), True
        if self.accept("for"):
            count = self.expression()
            return (text, self.expression() if self.accept("from") else Number("1", at), count), True
        return (text, *self._further()), False

    def _further(self) -> tuple[Expr, ...]:
        return self.expressions() if self.accept_symbol(",") else ()

    def _trim(self, at: int) -> Apply:
        name = _TRIMS[self.accept_one_of(*_TRIMS) or "both"]
        if self.accept("from"):
            return Apply((name,), self.expressions(), at, keywords=True)
        args = self.expressions()
        return Apply((name,), (*self.expressions(), *args) if self.accept("from") else args, at, keywords=True)

    def _arguments(self, name: tuple[str, ...], at: int) -> Apply:
        """What stands in the parentheses of an ordinary call."""
        if self.is_symbol(")"):
            return Apply(name, (), at)
        if self.accept_symbol("*"):
            if not self.is_symbol(")"):
                raise self.error()
            return Apply(name, (), at, star=True)
        first = self.accept_one_of("distinct", "all")
        distinct = first == "distinct"
        args: list[Expr] = []
        names: list[str | None] = []
        while True:
            named = self.ahead().value in _NAMING and self.ahead().kind is TokenKind.SYMBOL
            names.append(self.label() if named else None)
            self.index += named
            variadic = not named and self.accept("variadic")
            args.append(self.expression())
            if not self.accept_symbol(","):
                break
        order = self.order_by()
        if not any(names):
            return Apply(name, tuple(args), at, distinct=distinct, variadic=variadic, order=order)
        self._check_names(names, at)
        return Apply(name, tuple(args), at, distinct=distinct, variadic=variadic, order=order, names=tuple(names))

    def _check_names(self, names: list[str | None], at: int) -> None:
        """42601 for a repeated name, and for a positional argument after a named one."""
        given = [name for name in names if name is not None]
        if names[len(names) - len(given) :] != given:
            self.postpone(SqlError("42601", "positional argument cannot follow named argument", position=at + 1))
        for i, name in enumerate(given):
            if name in given[:i]:
                self.postpone(SqlError("42601", f'argument name "{name}" used more than once', position=at + 1))

    def _window(self, call: Expr) -> Expr:
        """WITHIN GROUP, FILTER, the treatment of NULLs and OVER after a call."""
        if self.token.value not in _AFTER_CALLS:
            return call
        if self.is_word("within", "group"):
            self.index += 2
            self.expect_symbol("(")
            order = self.order_by()
            if not order:
                raise self.error()
            self.expect_symbol(")")
            if (applied := self._applied(call, "WITHIN GROUP")) is not None:
                self._check_within(applied)
                call = replace(applied, within=True, order=order)
        if self.is_word("filter") and self.is_symbol("(", 1):
            self.index += 2
            self.expect("where")
            condition = self.expression()
            self.expect_symbol(")")
            if (applied := self._applied(call, "FILTER")) is not None:
                call = replace(applied, filter=condition)
        nulls = self.is_word("ignore", "nulls") or self.is_word("respect", "nulls")
        ignore = nulls and self.is_word("ignore")
        if nulls:
            self.index += 2
            if not self.is_word("over"):
                raise self.error()
        if self.accept("over"):
            over = self.over()
            if (applied := self._applied(call, "OVER")) is not None:
                call = replace(applied, over=over, ignore_nulls=ignore)
        return call

    def _applied(self, call: Expr, what: str) -> Apply | None:
        if isinstance(call, Apply):
            return call
        self.postpone(unsupported(what, position=call.at + 1))
        return None

    def _check_within(self, call: Apply) -> None:
        what = "DISTINCT" if call.distinct else "multiple ORDER BY clauses" if call.order else None
        what = "VARIADIC" if call.variadic else what
        if what is not None:
            self.postpone(SqlError("42601", f"cannot use {what} with WITHIN GROUP", position=call.at + 1))
