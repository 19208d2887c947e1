"""From words to lexemes: the configurations simple and english.

Stemming is Snowball's, by the library of that name; the stop words are those of PostgreSQL's english.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, Final

from planner.expr.functions.text.string import lower
from planner.expr.functions.textsearch.tokens import Token, tokens
from storage.types.textsearch.configuration import ENGLISH, ENGLISH_STEMS, SIMPLE, SIMPLE_WORDS
from storage.types.textsearch.lexemes import MOST_POSITION
from storage.types.textsearch.vector import Vector

CONFIGURATIONS: Final = (SIMPLE, ENGLISH)
_STOP: Final = frozenset(
    re.findall(
        r"\w+",
        """
        i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
        it its itself they them their theirs themselves what which who whom this that these those am is are was were be
        been being have has had having do does did doing a an the and but if or because as until while of at by for
        with about against between into through during before after above below to from up down in out on off over
        under again further then once here there when where why how all any both each few more most other some such no
        nor not only own same so than too very s t can will just don should now
        """,
    )
)
_LONGEST: Final = 2046
_MOST_PLACES: Final = 254


@cache
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")


@lru_cache(100_000)
def _stemmed(word: str) -> str:
    return str(_stemmer().stemWord(word))


def lexeme(token: Token, configuration: int) -> str | None:
    """The lexeme of a token; None for a stop word."""
    return looked_up(dictionary_of(token, configuration), token.text)


def dictionary_of(token: Token, configuration: int) -> int:
    """The dictionary that a configuration asks about a token."""
    return ENGLISH_STEMS if configuration == ENGLISH and token.is_word else SIMPLE_WORDS


def looked_up(dictionary: int, text: str) -> str | None:
    """What a dictionary makes of a word; None for a stop word."""
    word = lower(text)
    if dictionary == SIMPLE_WORDS or not word:
        return word or None
    return None if word in _STOP else _stemmed(word)


def lexemes(text: str, configuration: int, start: int = 0) -> tuple[list[tuple[str, int]], int]:
    """The lexemes of a text with their positions, and the last position; stop words take one too."""
    found: list[tuple[str, int]] = []
    position = start
    for token in tokens(text):
        if len(token.text.encode()) > _LONGEST:
            continue
        position += 1
        if (known := lexeme(token, configuration)) is not None:
            found.append((known, position))
    return found, position


def vector_of_words(words: list[tuple[str, int]]) -> Vector:
    """The vector of lexemes and their positions, which ascend. Positions end at 16383, a lexeme's after 254."""
    places: dict[str, list[int]] = {}
    for word, position in words:
        known = places.setdefault(word, [])
        place = min(position, MOST_POSITION)
        if not known or (len(known) < _MOST_PLACES and known[-1] not in (MOST_POSITION, place)):
            known.append(place)
    return Vector(tuple((word, tuple(places[word])) for word in sorted(places, key=str.encode)))
