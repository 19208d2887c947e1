"""PostgreSQL's encodings by their names, and text in their bytes."""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.expr.functions.pieces import bytes_of, is_long, pieces, text_of


@dataclass(frozen=True, slots=True)
class Encoding:
    """``codec``: Python's name of it; None: bytes that are kept as they are."""

    name: str
    codec: str | None


_CODECS: Final[dict[str, str | None]] = {
    "UTF8": "utf-8", "SQL_ASCII": None, "EUC_JP": "euc_jp", "EUC_CN": "gb2312", "EUC_KR": "euc_kr",
    "LATIN1": "iso8859-1", "LATIN2": "iso8859-2", "LATIN3": "iso8859-3", "LATIN4": "iso8859-4", "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10", "LATIN7": "iso8859-13", "LATIN8": "iso8859-14", "LATIN9": "iso8859-15",
    "LATIN10": "iso8859-16", "WIN1256": "cp1256", "WIN1258": "cp1258", "WIN866": "cp866", "WIN874": "cp874",
    "KOI8R": "koi8-r", "KOI8U": "koi8-u", "WIN1250": "cp1250", "WIN1251": "cp1251", "WIN1252": "cp1252",
    "WIN1253": "cp1253", "WIN1254": "cp1254", "WIN1255": "cp1255", "WIN1257": "cp1257", "ISO_8859_5": "iso8859-5",
    "ISO_8859_6": "iso8859-6", "ISO_8859_7": "iso8859-7", "ISO_8859_8": "iso8859-8", "SJIS": "cp932", "BIG5": "big5",
    "GBK": "gbk", "UHC": "cp949", "GB18030": "gb18030",
}  # fmt: skip
_ALIASES: Final = {
    "unicode": "UTF8", "win": "WIN1251", "koi8": "KOI8R", "alt": "WIN866", "tcvn": "WIN1258", "abc": "WIN1258",
    "windows949": "UHC", "windows950": "BIG5", "windows936": "GBK", "windows932": "SJIS", "mskanji": "SJIS",
    "shiftjis": "SJIS", "iso88591": "LATIN1", "iso88592": "LATIN2", "iso88593": "LATIN3", "iso88594": "LATIN4",
    "iso88599": "LATIN5", "iso885910": "LATIN6", "iso885913": "LATIN7", "iso885914": "LATIN8", "iso885915": "LATIN9",
    "iso885916": "LATIN10",
}  # fmt: skip
_BY_NAME: Final = {"".join(c for c in name.lower() if c.isalnum()): name for name in _CODECS} | _ALIASES


def encoding_of(name: str, role: str = "") -> Encoding:
    """The encoding of a name; case and punctuation do not count. ``role``: source or destination. Raises 22023."""
    plain = "".join(c for c in name.lower() if c.isalnum())
    known = _BY_NAME.get(plain) or _BY_NAME.get(plain.replace("windows", "win"))
    if plain == "euctw":
        raise unsupported("encoding EUC_TW")
    if known is None:
        raise SqlError("22023", f'invalid {role} encoding name "{name}"' if role else f'invalid encoding name "{name}"')
    return Encoding(known, _CODECS[known])


def decoded(value: bytes, encoding: Encoding) -> str:
    """The text of bytes. Raises 22021 for bytes that are none in the encoding."""
    if b"\0" in value:
        raise SqlError("22021", f'invalid byte sequence for encoding "{encoding.name}": 0x00')
    try:
        return _from_codec(value, encoding.codec or "utf-8")
    except UnicodeDecodeError as error:
        size = _sequence_length(value, error.start) if encoding.codec == "utf-8" else error.end - error.start
        shown = " ".join(f"0x{byte:02x}" for byte in value[error.start : error.start + max(size, 1)])
        label = encoding.name if encoding.codec is not None else "UTF8"
        raise SqlError("22021", f'invalid byte sequence for encoding "{label}": {shown}') from None


def _from_codec(value: bytes, codec: str) -> str:
    if is_long(value):
        with suppress(UnicodeDecodeError):  # whose place would be that in a piece
            decoder = codecs.getincrementaldecoder(codec)()
            parts = chain(map(decoder.decode, pieces(value)), (decoder.decode(b"", final=True) for _ in range(1)))
            return text_of(parts)
    return value.decode(codec)


def _in_codec(value: str, codec: str) -> bytes:
    if not is_long(value):
        return value.encode(codec)
    return bytes_of(piece.encode(codec) for piece in pieces(value))


def _sequence_length(value: bytes, at: int) -> int:
    """How many bytes a UTF-8 sequence that starts here claims to have."""
    first = value[at]
    claimed = 4 if first >= 0xF0 and first < 0xF8 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1
    return min(claimed if first < 0xF8 else 1, len(value) - at)


def encoded(value: str, encoding: Encoding) -> bytes:
    """The bytes of a text. Raises 22P05 for characters that the encoding does not have."""
    try:
        return _in_codec(value, encoding.codec or "utf-8")
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in error.object[error.start].encode())
        message = f'character with byte sequence {shown} in encoding "UTF8" has no equivalent in encoding'
        raise SqlError("22P05", f'{message} "{encoding.name}"') from None
