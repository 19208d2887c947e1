"""encode and decode: bytea to and from text in hex, base64 or escape form."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import count
from typing import Final

from ivm.errors import SqlError
from ivm.words import BYTEA, TEXT
from planner.expr.functions.pieces import bytes_of, is_long, pieces, text_of
from planner.expr.functions.room import requested
from planner.expr.functions.table import per_value
from storage.types.text import parse_datum

_ESCAPES: Final = {92: "\\\\"} | {byte: f"\\{byte:03o}" for byte in (0, *range(128, 256))}


_NO_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=\s]")
_LINES: Final = 57 * 4096
"""Bytes of whole lines: each has 57 in 76 letters."""


def _base64_lines(value: bytes, number: int) -> str:
    text = base64.b64encode(value).decode()
    lines = "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
    return f"\n{lines}" if number else lines


def _parsed(text: str) -> bytes:
    return bytes(parse_datum(BYTEA, text))  # type: ignore[call-overload, no-any-return]


def _parsed_hex(digits: str) -> bytes:
    return _parsed("\\x" + digits)


def _between_escapes(value: str) -> Iterator[str]:
    """Parts of a text that cut no escape: a backslash and up to three letters."""
    rest = ""
    for piece in pieces(value):
        text = rest + piece
        cut = len(text) if "\\" not in text[-4:] else 0
        yield text[:cut]
        rest = text[cut:]
    yield rest


def _parsed_base64(value: str) -> Iterator[bytes]:
    ended = False
    for symbols in _whole_groups(value, 4):
        try:
            if ended and symbols:
                raise binascii.Error
            yield base64.b64decode(symbols, validate=True)
        except binascii.Error:
            raise SqlError("22023", "invalid base64 end sequence") from None
        ended = ended or "=" in symbols


def _whole_groups(value: str, size: int) -> Iterator[str]:
    """The value without spaces, in parts of whole groups of ``size`` letters; the last part may be any."""
    rest = ""
    for piece in pieces(value):
        text = rest + "".join(piece.split())
        whole = len(text) // size * size
        yield text[:whole]
        rest = text[whole:]
    if rest:
        yield rest


@per_value("encode", (BYTEA, TEXT), TEXT)
def encode(value: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            requested(2 * len(value))
            return text_of(piece.hex() for piece in pieces(value))
        case "base64":
            requested(len(value) * 4 // 3)
            return text_of(map(_base64_lines, pieces(value, size=_LINES), count()))
        case "escape":
            requested(len(value))
            return text_of(piece.decode("latin-1").translate(_ESCAPES) for piece in pieces(value))
    raise SqlError("22023", f'unrecognized encoding: "{form}"')


@per_value("decode", (TEXT, TEXT), BYTEA)
def decode(value: str, form: str) -> bytes:
    match form.lower():
        case "hex":
            if is_long(value):
                return bytes_of(_parsed_hex(digits) for digits in _whole_groups(value, 2))
            return _parsed_hex(value)
        case "base64":
            for piece in pieces(value):
                bad = _NO_BASE64.search(piece)
                if bad is not None:
                    raise SqlError("22023", f'invalid symbol "{bad[0]}" found while decoding base64 sequence')
            return bytes_of(_parsed_base64(value))
        case "escape":
            if value.startswith("\\x") or not is_long(value):
                return _parsed(value)
            return bytes_of(_parsed(f" {text}")[1:] for text in _between_escapes(value))
    raise SqlError("22023", f'unrecognized encoding: "{form}"')
