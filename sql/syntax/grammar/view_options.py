"""The options of plain views: WITH (…) and WITH CHECK OPTION."""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from sql.syntax.grammar.columns import ColumnGrammar
from sql.syntax.lexing.lexer import TokenKind

_SWITCHES: Final = ("security_barrier", "security_invoker")
_TRUE: Final = ("true", "on", "yes", "1")
_FALSE: Final = ("false", "off", "no", "0")


class ViewOptionGrammar(ColumnGrammar):
    """What CREATE VIEW and ALTER VIEW share."""

    def view_options(self) -> tuple[str, ...]:
        """``(option [= value], …)`` as ``name=value`` each. Raises 22023."""
        return self.enclosed(self._view_option)

    def _view_option(self) -> str:
        name = self.label().lower()
        if name not in (*_SWITCHES, "check_option"):
            raise SqlError("22023", f'unrecognized parameter "{name}"')
        value = self._view_value() if self.accept_symbol("=") else "true"
        if name == "check_option":
            if value.lower() not in ("local", "cascaded"):
                detail = 'Valid values are "local" and "cascaded".'
                raise SqlError("22023", f'invalid value for enum option "check_option": {value}', detail)
        elif value.lower() not in (*_TRUE, *_FALSE):
            raise SqlError("22023", f'invalid value for boolean option "{name}": {value}')
        return f"{name}={value.lower()}"

    def _view_value(self) -> str:
        if self.token.kind not in (TokenKind.STRING, TokenKind.NUMBER):
            return self.label()
        return self.advance().value

    def check_option(self) -> tuple[str, ...]:
        """``WITH [CASCADED | LOCAL] CHECK OPTION`` as an option, if it is next."""
        for word in ("cascaded", "local", ""):
            if self.accept("with", *((word,) if word else ()), "check", "option"):
                return (f"check_option={word or 'cascaded'}",)
        return ()
