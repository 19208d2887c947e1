"""encode and decode: bytea to and from text in hex, base64 or escape form."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from ivm.errors import SqlError
from ivm.stops import polled
from ivm.words import BYTEA, TEXT
from planner.expr.functions.room import requested
from planner.expr.functions.table import per_value
from storage.types.text import parse_datum

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
_ESCAPES: Final = {92: "\\\\"} | {byte: f"\\{byte:03o}" for byte in (0, *range(128, 256))}


@per_value("encode", (BYTEA, TEXT), TEXT)
def encode(value: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            requested(2 * len(value))
            return value.hex()
        case "base64":
            requested(len(value) * 4 // 3)
            text = base64.b64encode(value).decode()
            return "\n".join(polled(text[i : i + 76] for i in range(0, len(text), 76)))
        case "escape":
            requested(len(value))
            return value.decode("latin-1").translate(_ESCAPES)
    raise SqlError("22023", f'unrecognized encoding: "{form}"')


@per_value("decode", (TEXT, TEXT), BYTEA)
def decode(value: str, form: str) -> bytes:
    match form.lower():
        case "hex":
            return bytes(parse_datum(BYTEA, "\\x" + value))  # type: ignore[call-overload, no-any-return]
        case "base64":
            bad = next((c for c in polled(value) if not (c in _BASE64 or c.isspace())), None)
            if bad is not None:
                raise SqlError("22023", f'invalid symbol "{bad}" found while decoding base64 sequence')
            try:
                return base64.b64decode("".join(value.split()), validate=True)
            except binascii.Error:
                raise SqlError("22023", "invalid base64 end sequence") from None
        case "escape":
            return bytes(parse_datum(BYTEA, value))  # type: ignore[call-overload, no-any-return]
    raise SqlError("22023", f'unrecognized encoding: "{form}"')
