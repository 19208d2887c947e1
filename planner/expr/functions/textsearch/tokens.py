"""Cuts text into tokens as PostgreSQL's default parser does: words, numbers, hyphenated words, emails, URLs, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ivm.stops import polled

_NUMBERS: Final = "²³¹¼-¾⁰-⁹₀-₉⅐-⅟①-⒛❶-➓"
"""Letters to Python's ``re``, but to no other."""
_LETTER: Final = rf"[^\W\d_{_NUMBERS}]"
_ALNUM: Final = rf"(?:{_LETTER}|[0-9])"
_LABEL: Final = r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*"
_DOMAIN: Final = rf"{_LABEL}(?:\.{_LABEL})*\.[A-Za-z]{{2,}}(?![A-Za-z0-9])"
_HOST: Final = rf"{_DOMAIN}(?::[0-9]+)?"
_PATH: Final = r"/[^\s\"<>\\^`{|}\x00-\x20\x7f-\U0010ffff]+"
_FILE_END: Final = r"(?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9_])|/(?=[A-Za-z0-9_]))*"
_PART: Final = rf"(?:{_LETTER}{_ALNUM}*|[0-9]+{_LETTER}{_ALNUM}*)"
_KINDS: Final = re.compile(
    "|".join(
        (
            r"(?P<tag><!--.*?-->"
            r"|</?[A-Za-z:_][\w:.-]*(?:/?>|\s(?:[A-Za-z0-9=\-_#/:.&?%~\s]|\"[^\"]*\"|'[^']*')*>))",
            r"(?P<entity>&(?:[A-Za-z:_][\w:.-]*|\#[0-9]+|\#[xX][0-9a-fA-F]+);)",
            r"(?P<protocol>[A-Za-z]+://)",
            rf"(?P<email>[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*@{_DOMAIN})",
            rf"(?P<url>(?P<host>{_HOST})(?P<path>{_PATH})?)",
            r"(?P<scientific>[-+]?[0-9]+(?:\.[0-9]+)?[eE][-+]?[0-9]+)",
            r"(?P<version>[0-9]+(?:\.[0-9]+){2,})",
            rf"(?P<hyphenated>(?=[0-9]*{_LETTER}){_ALNUM}+(?:-{_PART})+)",
            rf"(?P<file>(?:/|(?:(?<=[A-Za-z0-9])|\A)(?:~/|\.\.?/))(?=[A-Za-z0-9_])[A-Za-z0-9_]{_FILE_END}"
            rf"|(?:[A-Za-z][A-Za-z0-9]*(?:\.(?=[A-Za-z0-9_])|/(?=[A-Za-z0-9_]))|[0-9]+/(?=[A-Za-z0-9_])){_FILE_END})",
            rf"(?P<word>(?=[0-9]*{_LETTER}){_ALNUM}+)",
            r"(?P<number>[-+]?[0-9]+(?:\.[0-9]+)?)",
        )
    ),
    re.DOTALL,
)

ASCIIWORD, WORD, NUMWORD, EMAIL, URL, HOST, SFLOAT, VERSION = range(1, 9)
HWORD_NUMPART, HWORD_PART, HWORD_ASCIIPART, BLANK, TAG, PROTOCOL, NUMHWORD, ASCIIHWORD = range(9, 17)
HWORD, URL_PATH, FILE, FLOAT, INT, UINT, ENTITY = range(17, 24)
TYPES: Final = (
    (ASCIIWORD, "asciiword", "Word, all ASCII"),
    (WORD, "word", "Word, all letters"),
    (NUMWORD, "numword", "Word, letters and digits"),
    (EMAIL, "email", "Email address"),
    (URL, "url", "URL"),
    (HOST, "host", "Host"),
    (SFLOAT, "sfloat", "Scientific notation"),
    (VERSION, "version", "Version number"),
    (HWORD_NUMPART, "hword_numpart", "Hyphenated word part, letters and digits"),
    (HWORD_PART, "hword_part", "Hyphenated word part, all letters"),
    (HWORD_ASCIIPART, "hword_asciipart", "Hyphenated word part, all ASCII"),
    (BLANK, "blank", "Space symbols"),
    (TAG, "tag", "XML tag"),
    (PROTOCOL, "protocol", "Protocol head"),
    (NUMHWORD, "numhword", "Hyphenated word, letters and digits"),
    (ASCIIHWORD, "asciihword", "Hyphenated word, all ASCII"),
    (HWORD, "hword", "Hyphenated word, all letters"),
    (URL_PATH, "url_path", "URL path"),
    (FILE, "file", "File or path name"),
    (FLOAT, "float", "Decimal notation"),
    (INT, "int", "Signed integer"),
    (UINT, "uint", "Unsigned integer"),
    (ENTITY, "entity", "XML entity"),
)
"""The types of tokens, as ts_token_type lists them."""
WORDS: Final = frozenset((ASCIIWORD, WORD, HWORD_PART, HWORD_ASCIIPART, ASCIIHWORD, HWORD))
"""Those that the dictionary of a language knows: words without digits."""
IGNORED: Final = frozenset((BLANK, TAG, PROTOCOL, ENTITY))
"""Those that no dictionary is asked about."""
_PLAIN: Final = {
    "tag": TAG, "entity": ENTITY, "protocol": PROTOCOL, "email": EMAIL, "scientific": SFLOAT, "version": VERSION,
    "file": FILE,
}  # fmt: skip
_BLANKS: Final = re.compile(r".[^<\-+&/]*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of one of ``TYPES``."""

    text: str
    type: int

    @property
    def is_word(self) -> bool:
        """Whether the dictionary of a language knows it."""
        return self.type in WORDS


def tokens(text: str) -> Iterator[Token]:
    """The tokens that dictionaries are asked about, in order; a hyphenated word is followed by its parts."""
    return (token for token in all_tokens(text) if token.type not in IGNORED)


def all_tokens(text: str) -> Iterator[Token]:
    """All tokens: without the words and URLs that are followed by their parts, they are the text."""
    at = 0
    for found in polled(_KINDS.finditer(text)):
        yield from _blanks(text[at : found.start()])
        yield from _parts(found)
        at = found.end()
    yield from _blanks(text[at:])


def _blanks(text: str) -> Iterator[Token]:
    """What is between tokens; the parser looks again where one might begin."""
    return (Token(piece, BLANK) for piece in _BLANKS.findall(text))


def _parts(found: re.Match[str]) -> Iterator[Token]:
    whole, kind = found[0], found.lastgroup or ""
    match kind:
        case "word":
            yield Token(whole, _word_type(whole, (ASCIIWORD, WORD, NUMWORD)))
        case "hyphenated":
            yield Token(whole, _word_type(whole, (ASCIIHWORD, HWORD, NUMHWORD)))
            for place, part in enumerate(whole.split("-")):
                if place:
                    yield Token("-", BLANK)
                yield Token(part, _word_type(part, (HWORD_ASCIIPART, HWORD_PART, HWORD_NUMPART)))
        case "url":
            if found["path"]:
                yield Token(whole, URL)
            yield Token(found["host"], HOST)
            if found["path"]:
                yield Token(found["path"], URL_PATH)
        case "number":
            yield Token(whole, FLOAT if "." in whole else INT if whole[0] in "+-" else UINT)
        case _:
            yield Token(whole, _PLAIN[kind])


def _word_type(text: str, types: tuple[int, int, int]) -> int:
    """The type of a word of ASCII letters, of letters, or with digits."""
    if any("0" <= c <= "9" for c in text):
        return types[2]
    return types[0] if text.isascii() else types[1]
