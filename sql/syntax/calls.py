"""Function calls, the special syntaxes of some functions, and type names."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError, unsupported
from sql.syntax.expressions import OTHER, ExpressionGrammar
from sql.syntax.keywords import COLUMN_ONLY, RESERVED
from sql.syntax.lexer import TokenKind
from sql.syntax.nodes import Apply, Cast, ExistsExpr, Expr, Number, OrderItem, String, TypeName

_NO_PARENTHESES: Final = frozenset(
    """
    current_date current_time current_timestamp localtime localtimestamp current_user session_user user
    current_role current_catalog current_schema
    """.split()  # noqa: SIM905
)
_TYPE_WORDS: Final = frozenset(
    """
    bigint bit boolean char character dec decimal float int integer interval national nchar numeric real
    smallint time timestamp varchar
    """.split()  # noqa: SIM905
)
_INTERVAL_FIELDS: Final = ("year", "month", "day", "hour", "minute", "second")
_SPECIAL: Final = frozenset(
    """
    cast try_cast extract overlay position substring trim exists treat grouping normalize xmlelement
    """.split()  # noqa: SIM905
)


class CallGrammar(ExpressionGrammar):
    """Adds calls and types to expressions."""

    def special_or_call(self) -> Expr:
        """What starts with a name: a call, a typed literal, a special form, or a column."""
        token = self.token
        word = token.value if token.kind is TokenKind.WORD else ""
        called = self.is_symbol("(", 1)
        if word in _NO_PARENTHESES and not (called and word == "current_schema"):
            return self._without_parentheses(word)
        if word in _SPECIAL and called:
            return self._special(word)
        if word in _TYPE_WORDS or (word == "double" and self.ahead().value == "precision"):
            return self._typed_literal()
        if self.ahead().kind is TokenKind.STRING and word not in RESERVED:
            return self._typed_literal()
        end = self._name_length()
        if self.is_symbol("(", end):
            if word in RESERVED and word not in ("any", "some"):
                raise self.error()
            return self._call_or_modified_literal(end)
        return self.column_reference()

    def _name_length(self) -> int:
        """How many tokens the dotted name that starts here has."""
        length = 1
        while self.is_symbol(".", length) and self.ahead(length + 1).kind in (TokenKind.WORD, TokenKind.QUOTED):
            length += 2
        return length

    def _without_parentheses(self, word: str) -> Expr:
        at = self.advance().start
        args: tuple[Expr, ...] = ()
        if self.is_symbol("(") and word.startswith(("current_time", "localtime")):
            self.advance()
            args = (Number(str(self.integer()), at),)
            self.expect_symbol(")")
        return Apply((word,), args, at)

    def _call_or_modified_literal(self, length: int) -> Expr:
        start = self.index
        at = self.token.start
        name = tuple(self.tokens[self.index + i].value for i in range(0, length, 2))
        self.index += length
        call = self.call(name, at)
        if self.token.kind is TokenKind.STRING and length == 1 and name[0] not in COLUMN_ONLY:
            self.index = start
            return self._typed_literal()
        return call

    def call(self, name: tuple[str, ...], at: int) -> Expr:
        """The arguments of a call, from its parenthesis, and what may follow them."""
        self.expect_symbol("(")
        star = distinct = variadic = False
        args: list[Expr] = []
        order: tuple[OrderItem, ...] = ()
        if self.is_symbol("*") and self.is_symbol(")", 1):
            self.advance()
            star = True
        elif not self.is_symbol(")"):
            distinct = self.accept("distinct")
            if not distinct:
                self.accept("all")
            while True:
                variadic = self.accept("variadic")
                args.append(self._argument())
                if not self.accept_symbol(","):
                    break
            if self.accept("order", "by"):
                order = self.order_items()
        self.expect_symbol(")")
        filter_, window = self._adornments()
        return Apply(name, tuple(args), at, star, distinct, variadic, order, filter_, window)

    def _argument(self) -> Expr:
        if self.is_symbol(":=", 1) or self.is_symbol("=>", 1):
            raise unsupported("named argument notation", position=self.token.start + 1)
        return self.expression()

    def _adornments(self) -> tuple[Expr | None, bool]:
        at = self.token.start
        if self.accept("within", "group"):
            raise unsupported("WITHIN GROUP", position=at + 1)
        filter_: Expr | None = None
        if self.is_word("filter") and self.is_symbol("(", 1):
            self.advance()
            self.expect_symbol("(")
            self.expect("where")
            filter_ = self.expression()
            self.expect_symbol(")")
        if self.is_word("over") and (self.is_symbol("(", 1) or self.ahead().kind is TokenKind.WORD):
            self.advance()
            if self.is_symbol("("):
                self._skip_parentheses()
            else:
                self.name()
            return filter_, True
        return filter_, False

    def _skip_parentheses(self) -> None:
        depth = 0
        while True:
            token = self.advance()
            if token.kind is TokenKind.END:
                raise self.error(token)
            if token.kind is TokenKind.SYMBOL:
                depth += {"(": 1, ")": -1}.get(token.value, 0)
                if depth == 0:
                    return

    def order_items(self) -> tuple[OrderItem, ...]:
        items = [self._order_item()]
        while self.accept_symbol(","):
            items.append(self._order_item())
        return tuple(items)

    def _order_item(self) -> OrderItem:
        at = self.token.start
        expr = self.expression()
        descending = False
        if self.accept("using"):
            symbol = self.operator_symbol()
            if symbol not in ("<", ">"):
                raise SqlError(
                    "42809", f"operator {symbol} is not a valid ordering operator", position=self.token.start + 1
                )
            descending = symbol == ">"
        elif self.accept("desc"):
            descending = True
        else:
            self.accept("asc")
        nulls_first: bool | None = None
        if self.accept("nulls"):
            if not self.is_one_of("first", "last"):
                raise self.error()
            nulls_first = self.advance().value == "first"
        return OrderItem(expr, descending, nulls_first, at)

    def _special(self, word: str) -> Expr:
        at = self.advance().start
        if word == "exists":
            query = self.parenthesised_query()
            if query is None:
                self.advance()
                raise self.error()
            return ExistsExpr(query, at)
        self.expect_symbol("(")
        result = self._special_body(word, at)
        self.expect_symbol(")")
        return result

    def _special_body(self, word: str, at: int) -> Expr:
        match word:
            case "cast" | "try_cast":
                expr = self.expression()
                self.expect("as")
                return Cast(expr, self.type_name(), at, word == "try_cast")
            case "extract":
                return self._extract(at)
            case "position":
                needle = self.expression(OTHER)
                self.expect("in")
                return Apply(("position",), (self.expression(OTHER), needle), at)
            case "overlay":
                return self._overlay(at)
            case "substring":
                return self._substring(at)
            case "trim":
                return self._trim(at)
            case _:
                raise unsupported(word.upper(), position=at + 1)

    def _extract(self, at: int) -> Expr:
        if self.token.kind not in (TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING):
            raise self.error()
        field = self.advance()
        self.expect("from")
        return Apply(("extract",), (String(field.value, field.start), self.expression()), at)

    def _overlay(self, at: int) -> Expr:
        args = [self.expression()]
        if self.accept("placing"):
            args.append(self.expression())
            self.expect("from")
            args.append(self.expression())
            if self.accept("for"):
                args.append(self.expression())
        else:
            while self.accept_symbol(","):
                args.append(self.expression())
        return Apply(("overlay",), tuple(args), at)

    def _substring(self, at: int) -> Expr:
        args = [self.expression()]
        if self.accept("similar"):
            raise unsupported("SUBSTRING … SIMILAR", position=at + 1)
        if self.accept("from"):
            args.append(self.expression())
            if self.accept("for"):
                args.append(self.expression())
        elif self.accept("for"):
            args += [Number("1", at), self.expression()]
            if self.accept("from"):
                args[1] = self.expression()
        else:
            while self.accept_symbol(","):
                args.append(self.expression())
        return Apply(("substring",), tuple(args), at)

    def _trim(self, at: int) -> Expr:
        name = {"leading": "ltrim", "trailing": "rtrim"}.get(
            self.accept_one_of("leading", "trailing", "both") or "", "btrim"
        )
        if self.accept("from"):
            return Apply((name,), self.expressions(), at)
        args = list(self.expressions())
        if self.accept("from"):
            args = [*self.expressions(), *args]
        return Apply((name,), tuple(args), at)

    def _typed_literal(self) -> Expr:
        """``type 'string'``; a type's name without a string after it may still be a column or a call."""
        start = self.index
        at = self.token.start
        word = self.token.value
        interval = self.token.kind is TokenKind.WORD and word == "interval"
        try:
            type_ = self.type_name(arrays=False)
        except SqlError:
            if word not in _TYPE_WORDS:
                raise
            type_ = None
        if type_ is not None and self.token.kind is TokenKind.STRING:
            string = self.advance()
            if interval:
                type_ = self._interval_fields(type_)
            return Cast(String(string.value, string.start), type_, at)
        self.index = start
        if self.is_symbol("(", 1) and word not in _TYPE_WORDS:
            self.advance()
            return self.call((word,), at)
        return self.column_reference()

    def cast_suffix(self, expr: Expr) -> Expr:
        at = self.token.start
        self.expect_symbol("::")
        return Cast(expr, self.type_name(), at)

    def type_name(self, arrays: bool = True) -> TypeName:
        """A type: ``character varying(10)[]``, ``timestamp(3) with time zone``, ``pg_catalog.int4`` …"""
        at = self.token.start
        if self.is_word("setof"):
            raise unsupported("SETOF", position=at + 1)
        name = self._base_type_name()
        args = self._type_arguments()
        if name in ("time", "timestamp"):
            if self.accept("with", "time", "zone"):
                name += "tz"
            else:
                self.accept("without", "time", "zone")
        type_ = TypeName(name, args, False, at)
        if name == "interval" and arrays:
            type_ = self._interval_fields(type_)
        return TypeName(type_.name, type_.args, True, at) if arrays and self._array_bounds() else type_

    def _base_type_name(self) -> str:
        token = self.token
        if token.kind is TokenKind.QUOTED:
            name = '"char"' if token.value == "char" else token.value
            self.advance()
        else:
            name = self.label() if token.value not in RESERVED else ""
            if not name:
                raise self.error()
        if name == "double" and self.accept("precision"):
            return "double precision"
        if name == "national":
            raise unsupported("NATIONAL CHARACTER", position=token.start + 1)
        if name in ("character", "char", "bit") and self.accept("varying"):
            return "varbit" if name == "bit" else "varchar"
        while self.accept_symbol("."):
            inner = self.token
            name = self.label()
            if inner.kind is TokenKind.QUOTED and name == "char":
                name = '"char"'
        return name

    def _type_arguments(self) -> tuple[int, ...]:
        if not self.is_symbol("("):
            return ()
        self.advance()
        args = []
        while True:
            sign = -1 if self.accept_symbol("-") else 1
            args.append(sign * self.integer())
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return tuple(args)

    def _interval_fields(self, type_: TypeName) -> TypeName:
        if not self.is_one_of(*_INTERVAL_FIELDS):
            return type_
        first = last = self.advance().value
        if self.accept("to"):
            last = self.accept_one_of(*_INTERVAL_FIELDS) or ""
            if not last:
                raise self.error()
        args = self._type_arguments() or type_.args
        fields = first if first == last else f"{first} to {last}"
        return TypeName(f"interval {fields}", args, False, type_.at)

    def _array_bounds(self) -> bool:
        if self.accept("array"):
            if self.accept_symbol("["):
                self.integer()
                self.expect_symbol("]")
            return True
        found = False
        while self.accept_symbol("["):
            if not self.is_symbol("]"):
                self.integer()
            self.expect_symbol("]")
            found = True
        return found
