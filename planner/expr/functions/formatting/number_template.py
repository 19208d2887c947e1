"""The templates of to_char and to_number for numbers, after PostgreSQL's ``formatting.c``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from ivm.stops import polled

_LETTERS: Final = ("EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH", "B", "C", "D", "G", "L", "S", "V")
_TOKEN: Final = re.compile(
    r'(?P<quote>\\")|"(?P<quoted>(?:\\.|[^"\\]|\\\Z)*)"?|(?P<key>[,.09]|'
    + "|".join((*_LETTERS, *(key.lower() for key in _LETTERS))) + r")|(?P<plain>.)",
    re.DOTALL,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NumberTemplate:
    """A parsed template. ``tokens``: patterns as (upper case, as written), characters to copy as ("", character).

    ``pre``, ``post``: the digits before and after the point; ``multi``: those after V; ``sign_at``: those before S.
    ``sign_last``: S is after the point. ``zero_start``, ``zero_end``: the span of the zeros, in digits.
    """

    tokens: tuple[tuple[str, str], ...] = ()
    pre: int = 0
    post: int = 0
    multi: int = 0
    multiplied: bool = False
    zero: bool = False
    zero_start: int = 0
    zero_end: int = 0
    sign: bool = False
    sign_at: int = 0
    sign_last: bool = False
    point: bool = False
    fill: bool = False
    bracket: bool = False
    plus: bool = False
    minus: bool = False
    blank: bool = False
    scientific: bool = False
    roman: bool = False


@lru_cache(1024)
def number_template(text: str) -> NumberTemplate:
    """Parses a template. Raises 42601 if its patterns contradict each other."""
    template = NumberTemplate()
    tokens: list[tuple[str, str]] = []
    for match in polled(_TOKEN.finditer(text)):
        if match["key"]:
            key = match["key"].upper()
            tokens.append((key, match["key"]))
            if template.scientific and key != "EEEE":
                raise _syntax('"EEEE" must be the last pattern used')
            template = _with(template, key)
        elif match["quoted"] is not None:
            tokens += [("", c) for c in re.sub(r"\\(.)", r"\1", match["quoted"], flags=re.DOTALL)]
        else:
            tokens.append(("", match["plain"] or '"'))
    return replace(template, tokens=tuple(tokens))


def _syntax(message: str, detail: str | None = None) -> SqlError:
    return SqlError("42601", message, detail)


def _with(t: NumberTemplate, key: str) -> NumberTemplate:
    match key:
        case "9" | "0":
            return _digit(t, key)
        case "." | "D":
            if t.point:
                raise _syntax("multiple decimal points")
            if t.multiplied:
                raise _syntax('cannot use "V" and decimal point together')
            return replace(t, point=True)
        case "V":
            if t.point:
                raise _syntax('cannot use "V" and decimal point together')
            return replace(t, multiplied=True)
        case "S" | "MI" | "PL" | "SG" | "PR":
            return _sign(t, key)
        case "EEEE":
            return _exponent(t)
        case "FM":
            return replace(t, fill=True)
        case "RN":
            return replace(t, roman=True)
        case "B":
            return replace(t, blank=t.blank or not (t.pre or t.post or t.zero))
    return t


def _digit(t: NumberTemplate, key: str) -> NumberTemplate:
    if t.bracket:
        raise _syntax(f'"{key}" must be ahead of "PR"')
    if key == "9":
        if t.multiplied:
            return replace(t, multi=t.multi + 1)
        return replace(t, post=t.post + 1) if t.point else replace(t, pre=t.pre + 1)
    if not t.zero and not t.point:
        t = replace(t, zero=True, zero_start=t.pre + 1)
    t = replace(t, post=t.post + 1) if t.point else replace(t, pre=t.pre + 1)
    return replace(t, zero_end=t.pre + t.post)


def _sign(t: NumberTemplate, key: str) -> NumberTemplate:
    if t.sign and key != "PR":
        raise _syntax('cannot use "S" twice' if key == "S" else f'cannot use "S" and "{key}" together')
    match key:
        case "S":
            if t.plus or t.minus or t.bracket:
                raise _syntax('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
            return replace(t, sign=True, sign_last=t.point, sign_at=t.sign_at if t.point else t.pre)
        case "PR":
            if t.sign or t.plus or t.minus:
                raise _syntax('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
            return replace(t, bracket=True)
    return replace(t, minus=t.minus or key != "PL", plus=t.plus or key != "MI")


def _exponent(t: NumberTemplate) -> NumberTemplate:
    if t.scientific:
        raise _syntax('cannot use "EEEE" twice')
    if t.blank or t.fill or t.sign or t.bracket or t.minus or t.plus or t.roman or t.multiplied:
        detail = '"EEEE" may only be used together with digit and decimal point patterns.'
        raise _syntax('"EEEE" is incompatible with other formats', detail)
    return replace(t, scientific=True)
