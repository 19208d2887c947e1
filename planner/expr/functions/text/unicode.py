"""Unicode: normal forms, escapes, and identifiers in text."""

from __future__ import annotations

import re
import string
import unicodedata
from typing import Final, Literal

from ivm.errors import SqlError
from ivm.words import BOOL, TEXT, Kind, SqlType
from planner.expr.functions.table import per_value

_Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
_FORMS: Final[dict[str, _Form]] = {"NFC": "NFC", "NFD": "NFD", "NFKC": "NFKC", "NFKD": "NFKD"}
_ESCAPE: Final = re.compile(
    r"\\(?:(?P<plain>\\)|u?(?P<four>[0-9A-Fa-f]{4})|\+(?P<six>[0-9A-Fa-f]{6})|U(?P<eight>[0-9A-Fa-f]{8})|(?P<bad>))"
)


def _form(name: str) -> _Form:
    form = _FORMS.get(name.upper())
    if form is None:
        raise SqlError("22023", f"invalid normalization form: {name}")
    return form


@per_value("normalize", (TEXT, TEXT), TEXT)
@per_value("normalize", (TEXT,), TEXT)
def normalize(value: str, form: str = "NFC") -> str:
    return unicodedata.normalize(_form(form), value)


@per_value("is_normalized", (TEXT, TEXT), BOOL)
@per_value("is_normalized", (TEXT,), BOOL)
def is_normalized(value: str, form: str = "NFC") -> bool:
    return unicodedata.is_normalized(_form(form), value)


@per_value("unicode_assigned", (TEXT,), BOOL)
def unicode_assigned(value: str) -> bool:
    return all(unicodedata.category(letter) != "Cn" for letter in value)


@per_value("unicode_version", (), TEXT)
def unicode_version() -> str:
    """The version of Unicode's data that all functions here use."""
    return unicodedata.unidata_version


@per_value("icu_unicode_version", (), TEXT)
def icu_unicode_version() -> None:
    """NULL: there is no ICU."""


@per_value("unistr", (TEXT,), TEXT)
def unistr(value: str) -> str:
    """Replaces escapes; two that are halves of a surrogate pair give one letter."""
    out: list[str] = []
    at, high = 0, 0
    for match in _ESCAPE.finditer(value):
        if match["bad"] is not None:
            hint = r"Unicode escapes must be \XXXX, \+XXXXXX, \uXXXX, or \UXXXXXXXX."
            raise SqlError("42601", "invalid Unicode escape", hint=hint)
        between = value[at : match.start()]
        out.append(between)
        at = match.end()
        code = -1 if match["plain"] else int(match["four"] or match["six"] or match["eight"], 16)
        if code == 0 or code > 0x10FFFF:
            raise SqlError("22023", f"invalid Unicode code point: {code:04X}")
        if high and (between or not 0xDC00 <= code <= 0xDFFF):
            raise SqlError("42601", "invalid Unicode surrogate pair")
        if high:
            out.append(chr(0x10000 + ((high - 0xD800) << 10) + code - 0xDC00))
            high = 0
        elif 0xD800 <= code <= 0xDBFF:
            high = code
        elif 0xDC00 <= code <= 0xDFFF:
            raise SqlError("42601", "invalid Unicode surrogate pair")
        else:
            out.append("\\" if code < 0 else chr(code))
    if high:
        raise SqlError("42601", "invalid Unicode surrogate pair")
    return "".join(out) + value[at:]


_PART: Final = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^\W\d][\w$]*))\s*')
_TEXTS: Final = SqlType(Kind.ARRAY, element=TEXT)
_LOWER: Final = {ord(letter): letter.lower() for letter in string.ascii_uppercase}


@per_value("parse_ident", (TEXT, SqlType(Kind.BOOL)), _TEXTS)
@per_value("parse_ident", (TEXT,), _TEXTS)
def parse_ident(value: str, strict: bool = True) -> tuple[str, ...]:
    """The parts of a qualified name. What follows it is an error, or ignored if not ``strict``."""
    message = f'string is not a valid identifier: "{value}"'
    parts: list[str] = []
    at = 0
    while True:
        match = _PART.match(value, at)
        if match is None:
            rest = value[at:].lstrip()
            if rest[:1] == '"':
                detail: str | None = "String has unclosed double quotes."
            elif rest[:1] == ".":
                detail = 'No valid identifier before ".".'
            else:
                detail = 'No valid identifier after ".".' if parts else None
            raise SqlError("22023", message, detail)
        if match["quoted"] == "":
            raise SqlError("22023", message, "Quoted identifier must not be empty.")
        quoted = match["quoted"]
        parts.append(match["plain"].translate(_LOWER) if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if value[at : at + 1] != ".":
            break
        at += 1
    if strict and at < len(value):
        raise SqlError("22023", message)
    return tuple(parts)
