"""Type names as they are written, and literals with a type before them."""

from __future__ import annotations

from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ivm.errors import SqlError
from sql.syntax.lexing.keywords import COLUMN_ONLY, RESERVED
from sql.syntax.rules.core import CoreRules

TYPE_WORDS: Final = frozenset(
    """bigint bit boolean char character dec decimal float int integer interval national nchar numeric real smallint
    time timestamp varchar""".split()  # noqa: SIM905
)
"""The types' names that are keywords."""
_INTERVAL_FIELDS: Final = ("year", "month", "day", "hour", "minute", "second")


class TypeRules(CoreRules):
    """sqlglot maps a type's name to a type of its own; here the name stays, in ``kind``."""

    def integer(self) -> int:
        text = self._curr.text
        if self._curr.token_type != TokenType.NUMBER or not text.isdigit():
            raise self.syntax_error()
        self._advance()
        return int(text)

    def _typed_literal(self, must: bool) -> exp.Expr | None:
        """``type 'string'``; without ``must``, None if that is not what comes next."""
        start, token = self._index, self._curr
        try:
            type_ = self._parse_types(check_func=True)
        except SqlError:
            if must:
                raise
            self._retreat(start)
            return None
        if self._curr.token_type != TokenType.STRING:
            if must:
                raise self.syntax_error()
            self._retreat(start)
            return None
        string = self._curr
        self._advance()
        if token.text == "interval" and token.token_type != TokenType.IDENTIFIER:
            self._interval_fields(type_)
        value = self.located(exp.Literal(this=string.text, is_string=True), string)
        return self.located(exp.Cast(this=value, to=type_), token)

    def type_(self) -> exp.DataType:
        return self._parse_types()

    def _parse_types(
        self, check_func: bool = False, schema: bool = False, allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.DataType:  # fmt: skip
        """A type as written: ``kind`` is its name, ``values`` True for an array; ``check_func``: before a string."""
        token = self._curr
        if self.is_word("setof"):
            raise self.refusal("SETOF")
        schema_name, name = self._base_type_name()
        args = self._type_arguments()
        if name in ("time", "timestamp"):
            if self.accept_word("with", "time", "zone"):
                name += "tz"
            else:
                self.accept_word("without", "time", "zone")
        type_ = self.located(exp.DataType(this=exp.DType.USERDEFINED, kind=name, expressions=args), token)
        type_.set("schema", schema_name)
        if check_func:
            return type_
        if name == "interval":
            self._interval_fields(type_)
        type_.set("nested", self._array_bounds())
        return type_

    def _base_type_name(self) -> tuple[str | None, str]:
        """The schema, where one is written, and the name."""
        token = self._curr
        quoted = token.token_type == TokenType.IDENTIFIER
        if not quoted and (token.text in RESERVED or (token.text in COLUMN_ONLY and token.text not in TYPE_WORDS)):
            raise self.syntax_error()
        name = str(self.label().name)
        if quoted:
            name = '"char"' if name == "char" else name
        elif name == "double" and self.accept_word("precision"):
            return None, "double precision"
        elif name == "national":
            raise self.refusal("NATIONAL CHARACTER", token)
        elif name in ("character", "char", "bit") and self.accept_word("varying"):
            return None, "varbit" if name == "bit" else "varchar"
        schema_name = None
        while self._match(TokenType.DOT):
            schema_name = name
            quoted = self._curr.token_type == TokenType.IDENTIFIER
            name = str(self.label().name)
            name = '"char"' if quoted and name == "char" else name
        return schema_name, name

    def _type_arguments(self) -> list[int]:
        args: list[int] = []
        if self._match(TokenType.L_PAREN):
            args.append(self._signed_integer())
            while self._match(TokenType.COMMA):
                args.append(self._signed_integer())
            self.expect(TokenType.R_PAREN)
        return args

    def _signed_integer(self) -> int:
        sign = -1 if self._match(TokenType.DASH) else 1
        return sign * self.integer()

    def _interval_fields(self, type_: exp.DataType) -> None:
        if not any(self.is_word(field) for field in _INTERVAL_FIELDS):
            return
        first = last = self._curr.text
        self._advance()
        if self.accept_word("to"):
            last = self._curr.text
            if not any(self.is_word(field) for field in _INTERVAL_FIELDS):
                raise self.syntax_error()
            self._advance()
        args = self._type_arguments()
        if args:
            type_.set("expressions", args)
        type_.set("kind", f"interval {first}" if first == last else f"interval {first} to {last}")

    def _array_bounds(self) -> bool:
        if self._match(TokenType.ARRAY):
            if self._match(TokenType.L_BRACKET):
                self.integer()
                self.expect(TokenType.R_BRACKET)
            return True
        found = False
        while self._match(TokenType.L_BRACKET):
            if self._curr.token_type != TokenType.R_BRACKET:
                self.integer()
            self.expect(TokenType.R_BRACKET)
            found = True
        return found
