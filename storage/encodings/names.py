"""PostgreSQL's encodings by their names and numbers."""

from __future__ import annotations

from typing import Final

UTF8: Final = "UTF8"
SQL_ASCII: Final = "SQL_ASCII"
"""Bytes that nobody interprets."""
NAMES: Final = (
    SQL_ASCII, "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", UTF8, "MULE_INTERNAL", "LATIN1", "LATIN2",
    "LATIN3", "LATIN4", "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866",
    "WIN874", "KOI8R", "WIN1251", "WIN1252", "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250",
    "WIN1253", "WIN1254", "WIN1255", "WIN1257", "KOI8U", "SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB",
    "SHIFT_JIS_2004",
)  # fmt: skip
"""By their numbers."""
CLIENT_ONLY: Final = frozenset(NAMES[NAMES.index("SJIS") :])
"""Those in which a byte of a character may be that of a backslash or a quote, so that no database has them."""
LONGEST: Final = 4
"""The most bytes that a character has in any of them."""

_LENGTHS: Final = {"EUC_JP": 3, "EUC_CN": 3, "EUC_KR": 3, "EUC_TW": 4, "EUC_JIS_2004": 3, UTF8: 4, "MULE_INTERNAL": 4,
                   "SJIS": 2, "BIG5": 2, "GBK": 2, "UHC": 2, "GB18030": 4, "JOHAB": 3, "SHIFT_JIS_2004": 2}  # fmt: skip
_ALIASES: Final = {
    "abc": "WIN1258", "alt": "WIN866", "koi8": "KOI8R", "mskanji": "SJIS", "shiftjis": "SJIS", "tcvn": "WIN1258",
    "tcvn5712": "WIN1258", "unicode": UTF8, "vscii": "WIN1258", "win": "WIN1251", "win932": "SJIS", "win936": "GBK",
    "win949": "UHC", "win950": "BIG5", "iso88591": "LATIN1", "iso88592": "LATIN2", "iso88593": "LATIN3",
    "iso88594": "LATIN4", "iso88599": "LATIN5", "iso885910": "LATIN6", "iso885913": "LATIN7", "iso885914": "LATIN8",
    "iso885915": "LATIN9", "iso885916": "LATIN10",
}  # fmt: skip


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isascii() and c.isalnum())


_BY_NAME: Final = {_plain(name): name for name in NAMES} | _ALIASES
_BY_NAME.update({f"windows{key[3:]}": name for key, name in _BY_NAME.items() if key[:3] == "win" and key[3:]})


def name_of(text: str) -> str | None:
    """The name of an encoding that is spelled somehow: only letters and digits count. None: there is none."""
    return _BY_NAME.get(_plain(text))


def most_bytes(name: str) -> int:
    """The most bytes of a character."""
    return _LENGTHS.get(name, 1)
