"""Text in the bytes of PostgreSQL's encodings other than UTF8: Python's codecs, with PostgreSQL's characters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from storage.encodings.differences import differences_of
from storage.encodings.forms import form_of

CODECS: Final = {
    "EUC_JP": "euc_jp", "EUC_CN": "gb2312", "EUC_KR": "euc_kr", "EUC_JIS_2004": "euc_jis_2004",
    "LATIN1": "iso8859-1", "LATIN2": "iso8859-2", "LATIN3": "iso8859-3", "LATIN4": "iso8859-4", "LATIN5": "iso8859-9",
    "LATIN6": "iso8859-10", "LATIN7": "iso8859-13", "LATIN8": "iso8859-14", "LATIN9": "iso8859-15",
    "LATIN10": "iso8859-16", "WIN1256": "cp1256", "WIN1258": "cp1258", "WIN866": "cp866", "WIN874": "cp874",
    "KOI8R": "koi8-r", "WIN1251": "cp1251", "WIN1252": "cp1252", "ISO_8859_5": "iso8859-5", "ISO_8859_6": "iso8859-6",
    "ISO_8859_7": "iso8859-7", "ISO_8859_8": "iso8859-8", "WIN1250": "cp1250", "WIN1253": "cp1253", "WIN1254": "cp1254",
    "WIN1255": "cp1255", "WIN1257": "cp1257", "KOI8U": "koi8-u", "SJIS": "cp932", "BIG5": "big5", "GBK": "gbk",
    "UHC": "cp949", "GB18030": "gb18030", "JOHAB": "johab", "SHIFT_JIS_2004": "shift_jis_2004",
}  # fmt: skip
"""Python's codecs of the encodings that are here."""


class Encoding:
    """One encoding. ``encoding_named`` gives them out."""

    __slots__ = ("_codec", "_differences", "_form", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._codec = CODECS[name]
        self._form = form_of(name)
        self._differences = differences_of(name, self._codec)

    def text_of(self, raw: bytes) -> str:
        """The text of bytes. 22021: they have not the form of characters, or a zero is among them; 22P05: they have,
        but the encoding has no such character."""
        if raw.isascii() and b"\0" not in raw:
            return raw.decode()
        if self.whole(raw) == len(raw):
            doubtful = self._differences.doubtful
            try:
                text = raw.decode(self._codec)
            except UnicodeDecodeError:
                pass  # of which PostgreSQL may have some characters
            else:
                if doubtful is None or doubtful.search(text) is None:
                    return text
        return "".join(self._characters(raw))

    def bytes_of(self, text: str) -> bytes:
        """The bytes of a text. 22P05 for a character that the encoding has not."""
        if text.isascii():
            return text.encode()
        doubtful = self._differences.doubtful
        parts: list[bytes] = []
        at = 0
        try:
            for found in () if doubtful is None else doubtful.finditer(text):
                parts += text[at : found.start()].encode(self._codec), self._one(found[0])
                at = found.end()
            parts.append((text[at:] if at else text).encode(self._codec))
        except UnicodeEncodeError as error:
            raise self._unwritable(error.object[error.start]) from None
        return b"".join(parts)

    def of_utf8(self, raw: bytes) -> bytes:
        """The bytes of a text that is in UTF-8. Raises as ``bytes_of``."""
        return raw if raw.isascii() else self.bytes_of(raw.decode())

    def whole(self, raw: bytes, start: int = 0, stop: int | None = None) -> int:
        """Where the run of whole characters from ``start`` ends."""
        pattern = self._form.whole
        found = pattern.match(raw, start) if stop is None else pattern.match(raw, start, stop)
        assert found is not None, "a run may be empty"
        return found.end()

    def unreadable(self, raw: bytes, at: int) -> SqlError:
        """22021 for what begins at ``at``."""
        claimed = self._form.claimed.match(raw, at)
        assert claimed is not None, "any byte claims itself"
        return SqlError("22021", f'invalid byte sequence for encoding "{self.name}": {_shown(claimed[0])}')

    def _characters(self, raw: bytes) -> Iterator[str]:
        """The text one by one, up to what is wrong. Only the rare text that Python's codec may read otherwise."""
        at, read = 0, self._differences.read
        while at < len(raw):
            if 0 < raw[at] < 0x80:
                yield chr(raw[at])
                at += 1
                continue
            found = self._form.character.match(raw, at)
            if found is None:
                raise self.unreadable(raw, at)
            try:
                character = read[found[0]] if found[0] in read else found[0].decode(self._codec)
            except UnicodeDecodeError:
                character = None
            if character is None:
                message = f'character with byte sequence {_shown(found[0])} in encoding "{self.name}" has no equivalent'
                raise SqlError("22P05", f'{message} in encoding "UTF8"')
            yield character
            at = found.end()

    def _one(self, character: str) -> bytes:
        """The bytes of a character that Python's codec may write otherwise."""
        write = self._differences.write
        if character not in write:
            return character.encode() if character.isascii() else character.encode(self._codec)
        raw = write[character]
        if raw is None:
            raise self._unwritable(character)
        return raw

    def _unwritable(self, character: str) -> SqlError:
        message = f'character with byte sequence {_shown(character.encode())} in encoding "UTF8" has no equivalent'
        return SqlError("22P05", f'{message} in encoding "{self.name}"')


def _shown(raw: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in raw)


@lru_cache
def encoding_named(name: str) -> Encoding:
    """An encoding of ``CODECS``. Cost: once, milliseconds for one of thousands of characters."""
    return Encoding(name)
