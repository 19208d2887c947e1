"""Which bytes may be a character of an encoding, whether it has that character or not.

Source: PostgreSQL's wchar.c, the functions pg_*_verifychar and pg_*_mblen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Form:
    """``character``: one that is not ASCII; ``claimed``: as much of it as its first byte (or two) promises, if that
    follows; ``whole``: the longest run of whole characters, none of them a zero."""

    character: re.Pattern[bytes]
    claimed: re.Pattern[bytes]
    whole: re.Pattern[bytes]


def _form(character: bytes, claimed: bytes) -> Form:
    whole = rb"(?:[\x01-\x7f]++|(?:%s))*+" % character
    return Form(*(re.compile(pattern, re.DOTALL) for pattern in (character, claimed, whole)))


_TWO: Final = rb"[\x80-\xff].?|."
_EUC: Final = rb"\x8f.{0,2}|[\x80-\xff].?|."
_JAPANESE: Final = _form(rb"\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe]{2}|[\xa1-\xfe]{2}", _EUC)
_KOREAN: Final = _form(rb"[\xa1-\xfe]{2}", _EUC)
_SHIFTED: Final = _form(
    rb"[\xa1-\xdf]|[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]", rb"[\xa1-\xdf]|[\x80-\xff].?|."
)  # fmt: skip
_ANY_PAIR: Final = _form(rb"(?!\x8d\x20)[\x80-\xff][\x01-\xff]", _TWO)
_ONE_BYTE: Final = _form(rb"[\x80-\xff]", rb".")
_OTHERS: Final = {
    "EUC_JP": _JAPANESE, "EUC_JIS_2004": _JAPANESE, "EUC_CN": _KOREAN, "EUC_KR": _KOREAN,
    "SJIS": _SHIFTED, "SHIFT_JIS_2004": _SHIFTED, "BIG5": _ANY_PAIR, "GBK": _ANY_PAIR, "UHC": _ANY_PAIR,
    "JOHAB": _form(rb"\x8f[\xa1-\xfe]{2}|[\x80-\x8e\x90-\xff][\xa1-\xfe]", _EUC),
    "GB18030": _form(
        rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]|[\x81-\xfe][0-9][\x81-\xfe][0-9]", rb"[\x80-\xff][0-9].{0,2}|[\x80-\xff].?|."
    ),
}  # fmt: skip


def form_of(name: str) -> Form:
    """The form of an encoding other than UTF8."""
    return _OTHERS.get(name, _ONE_BYTE)
