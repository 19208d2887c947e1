"""Cuts text into tokens as PostgreSQL's default parser does: words, numbers, hyphenated words, emails, URLs, files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

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
            r"(?P<ignored><!--.*?-->"
            r"|</?[A-Za-z:_][\w:.-]*(?:/?>|\s(?:[A-Za-z0-9=\-_#/:.&?%~\s]|\"[^\"]*\"|'[^']*')*>)"
            r"|&(?:[A-Za-z:_][\w:.-]*|\#[0-9]+|\#[xX][0-9a-fA-F]+);|[A-Za-z]+://)",
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


@dataclass(frozen=True, slots=True)
class Token:
    """A token. ``is_word``: a word without digits, which the dictionary of a language knows."""

    text: str
    is_word: bool = False


def tokens(text: str) -> Iterator[Token]:
    """The tokens that dictionaries are asked about, in order; a hyphenated word is followed by its parts."""
    for found in _KINDS.finditer(text):
        kind = found.lastgroup
        if kind == "ignored":
            continue
        if kind in ("word", "hyphenated"):
            whole = found[0]
            yield _word(whole)
            if kind == "hyphenated":
                yield from map(_word, whole.split("-"))
        else:
            yield Token(found[0])
            if found["path"]:
                yield Token(found["host"])
                yield Token(found["path"])


def _word(text: str) -> Token:
    return Token(text, not any("0" <= c <= "9" for c in text))
