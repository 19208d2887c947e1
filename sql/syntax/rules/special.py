"""Calls with a syntax of their own: CAST, EXTRACT, POSITION, OVERLAY, SUBSTRING, TRIM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sql.syntax.rules.core import CoreRules
from sql.syntax.rules.operators import OperatorRules


def _closed(parse: Callable[[Any], exp.Expr]) -> Callable[[CoreRules], exp.Expr]:
    """A special call's syntax that must end at its parenthesis (sqlglot would let that be missing)."""

    def parse_closed(rules: CoreRules) -> exp.Expr:
        node = parse(rules)
        if rules._curr.token_type != TokenType.R_PAREN:
            raise rules.syntax_error()
        return node

    return parse_closed


def _refused(what: str) -> Callable[[CoreRules], exp.Expr]:
    def refuse(rules: CoreRules) -> exp.Expr:
        raise rules.refusal(what, rules.ahead(-2))

    return refuse


class SpecialRules(OperatorRules):
    """What stands in their parentheses; sqlglot takes the name and the first of them."""

    FUNCTION_PARSERS = {  # noqa: RUF012
        "CAST": _closed(lambda rules: rules._parse_cast(True)),
        "TRY_CAST": _closed(lambda rules: rules._parse_cast(False)),
        "EXTRACT": _closed(lambda rules: rules._parse_extract()),
        "POSITION": _closed(lambda rules: rules._parse_position()),
        "OVERLAY": _closed(lambda rules: rules._overlay()),
        "SUBSTRING": _closed(lambda rules: rules._substring()),
        "TRIM": _closed(lambda rules: rules._trim()),
        "TREAT": _refused("TREAT"),
        "GROUPING": _refused("GROUPING"),
        "NORMALIZE": _refused("NORMALIZE"),
        "XMLELEMENT": _refused("XMLELEMENT"),
    }

    def _parse_cast(self, strict: bool, safe: bool | None = None) -> exp.Expr:
        this = self._parse_disjunction()
        self.expect(TokenType.ALIAS)
        return (exp.Cast if strict else exp.TryCast)(this=this, to=self._parse_types())

    def _parse_extract(self) -> exp.Extract:
        field = self._curr
        if field.token_type not in (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING):
            raise self.syntax_error()
        self._advance()
        self.expect(TokenType.FROM)
        name = self.located(exp.Literal(this=field.text, is_string=True), field)
        return exp.Extract(this=name, expression=self._parse_disjunction())

    def _parse_position(self, haystack_first: bool = False) -> exp.StrPosition:
        needle = self.restricted()
        self.expect(TokenType.IN)
        return exp.StrPosition(this=self.restricted(), substr=needle)

    def _overlay(self) -> exp.Expr:
        args = [self._parse_disjunction()]
        if self.accept_word("placing"):
            args.append(self._parse_disjunction())
            self.expect(TokenType.FROM)
            args.append(self._parse_disjunction())
            if self._match(TokenType.FOR):
                args.append(self._parse_disjunction())
        else:
            while self._match(TokenType.COMMA):
                args.append(self._parse_disjunction())
        return exp.Anonymous(this="overlay", expressions=args)

    def _substring(self) -> exp.Expr:
        token = self.ahead(-2)
        args = [self._parse_disjunction()]
        if self.is_word("similar"):
            raise self.refusal("SUBSTRING … SIMILAR", token)
        if self._match(TokenType.FROM):
            args.append(self._parse_disjunction())
            if self._match(TokenType.FOR):
                args.append(self._parse_disjunction())
        elif self._match(TokenType.FOR):
            args += [self.located(exp.Literal(this="1", is_string=False), token), self._parse_disjunction()]
            if self._match(TokenType.FROM):
                args[1] = self._parse_disjunction()
        else:
            while self._match(TokenType.COMMA):
                args.append(self._parse_disjunction())
        return exp.Anonymous(this="substring", expressions=args)

    def _trim(self) -> exp.Expr:
        name = "btrim"
        for word, function in (("leading", "ltrim"), ("trailing", "rtrim"), ("both", "btrim")):
            if self.accept_word(word):
                name = function
                break
        if self._match(TokenType.FROM):
            return exp.Anonymous(this=name, expressions=self._parse_csv(self._parse_disjunction))
        args = self._parse_csv(self._parse_disjunction)
        if self._match(TokenType.FROM):
            args = [*self._parse_csv(self._parse_disjunction), *args]
        return exp.Anonymous(this=name, expressions=args)
