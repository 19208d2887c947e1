"""Text in the bytes of PostgreSQL's encodings, for functions."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

from ivm.errors import SqlError, unsupported
from ivm.stops import poll
from planner.expr.functions import pieces as cut
from planner.expr.functions.pieces import bytes_of, is_long, pieces, text_of
from storage.encodings.encoding import CODECS, Encoding, encoding_named
from storage.encodings.names import LONGEST, SQL_ASCII, UTF8, name_of


def encoding_of(text: str, role: str = "") -> str:
    """The name of an encoding; case and punctuation do not count. ``role``: source or destination. 22023, 0A000."""
    name = name_of(text)
    if name is None:
        raise SqlError("22023", f'invalid {role} encoding name "{text}"' if role else f'invalid encoding name "{text}"')
    if name not in CODECS and name not in (UTF8, SQL_ASCII):
        raise unsupported(f"encoding {name}")
    return name


def decoded(value: bytes, name: str) -> str:
    """The text of bytes. Raises 22021 for bytes that are none in the encoding, 22P05 for those without a character."""
    if name in CODECS:
        encoding = encoding_named(name)
        return text_of(map(encoding.text_of, _cut(value, encoding))) if is_long(value) else encoding.text_of(value)
    if b"\0" in value:
        raise SqlError("22021", f'invalid byte sequence for encoding "{name}": 0x00')
    try:
        return _from_utf8(value)
    except UnicodeDecodeError as error:
        size = _sequence_length(value, error.start)
        shown = " ".join(f"0x{byte:02x}" for byte in value[error.start : error.start + max(size, 1)])
        raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": {shown}') from None


def encoded(value: str, name: str) -> bytes:
    """The bytes of a text. Raises 22P05 for characters that the encoding does not have."""
    work = encoding_named(name).bytes_of if name in CODECS else str.encode
    return bytes_of(map(work, pieces(value))) if is_long(value) else work(value)


def _cut(value: bytes, encoding: Encoding) -> Iterator[bytes]:
    """The value in pieces of whole characters, up to what is none."""
    at = 0
    while at < len(value):
        poll()
        end = encoding.whole(value, at, at + cut.PIECE)
        if end == at:
            end += LONGEST  # whose first is wrong
        yield value[at:end]
        at = end


def _from_utf8(value: bytes) -> str:
    if is_long(value):
        with suppress(UnicodeDecodeError):  # whose place would be that in a piece
            decoder = codecs.getincrementaldecoder("utf-8")()
            parts = chain(map(decoder.decode, pieces(value)), (decoder.decode(b"", final=True) for _ in range(1)))
            return text_of(parts)
    return value.decode()


def _sequence_length(value: bytes, at: int) -> int:
    """How many bytes a UTF-8 sequence that starts here claims to have."""
    first = value[at]
    claimed = 4 if first >= 0xF0 and first < 0xF8 else 3 if first >= 0xE0 else 2 if first >= 0xC0 else 1
    return min(claimed if first < 0xF8 else 1, len(value) - at)
