"""The words of a headline: which stretches of a text show best that a query matches it.

A cover is a short stretch whose words match the query. Without fragments the headline is one stretch around the best
cover; with fragments, several around the best ones. PostgreSQL's rules, as of version 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from planner.expr.functions.textsearch.dictionaries import lexeme
from planner.expr.functions.textsearch.matching import holds
from planner.expr.functions.textsearch.options import Options, options_of
from planner.expr.functions.textsearch.tokens import (
    ASCIIHWORD,
    BLANK,
    FLOAT,
    HWORD,
    IGNORED,
    INT,
    NUMHWORD,
    SFLOAT,
    TAG,
    UINT,
    URL,
    VERSION,
    Token,
    all_tokens,
)
from storage.types.textsearch.nodes import Operation, Query, Term

_WHOLES: Final = frozenset((URL, NUMHWORD, ASCIIHWORD, HWORD))
"""Tokens whose parts follow as tokens."""
_NO_WORDS: Final = _WHOLES | {BLANK, TAG}
_NO_ENDS: Final = _NO_WORDS | IGNORED | {SFLOAT, VERSION, FLOAT, INT, UINT}
_MOST_STEPS: Final = 2_000_000
"""How many nodes of the query are evaluated before it is refused."""


@dataclass(slots=True)
class _Word:
    """A token. ``term``: the term of the query that it matches; ``place``: its position among lexemes. A token that
    matches several terms is followed by itself, ``repeated``, for each of the others; these count as words too."""

    token: Token
    term: Term | None = None
    place: int = 0
    repeated: bool = False
    shown: bool = False

    @property
    def counts(self) -> bool:
        """Whether it counts as a word of the headline."""
        return self.token.type not in _NO_WORDS

    @property
    def hits(self) -> bool:
        """Whether it matches the query."""
        return self.term is not None and not self.repeated


class Headline:
    """A text cut into words, of which ``mark`` shows some."""

    def __init__(self, text: str, query: Query, configuration: int, options: Options) -> None:
        self.options = options
        self.query = query
        self.words = list(_words(text, query, configuration))
        self.hits = [i for i, word in enumerate(self.words) if word.term is not None]
        nodes = query.items()
        self._size = len(nodes)
        self._negates = any(isinstance(node, Operation) and node.operator == "!" for node in nodes)
        self._steps = 0

    def text(self) -> str:
        """The headline."""
        options = self.options
        parts: list[str] = []
        inside, fragments = False, 0
        for word in self.words:
            if word.repeated:
                continue
            if word.shown and not inside:
                fragments += 1
                parts += [options.delimiter] if fragments > 1 else []
            inside = word.shown
            if word.shown:
                parts.append(self._shown(word))
        return "".join(parts)

    def _shown(self, word: _Word) -> str:
        if word.token.type in _WHOLES:
            return ""
        if word.token.type == TAG and not self.options.all:
            return " "
        text = word.token.text
        return f"{self.options.start}{text}{self.options.stop}" if word.hits else text

    def mark(self) -> None:
        """Chooses what is shown. Raises 54001."""
        if self.options.fragments:
            self._mark_fragments()
        elif self.options.all:
            self._show(0, len(self.words) - 1)
        else:
            self._mark_best()

    def _show(self, first: int, last: int) -> None:
        for word in self.words[max(first, 0) : last + 1]:
            word.shown = True

    def _show_beginning(self) -> None:
        """The first words, where nothing matches."""
        count, last = 0, -1
        for i, word in enumerate(self.words):
            if count >= self.options.least:
                break
            count += word.counts
            last = i
        self._show(0, last)

    def _bad_end(self, i: int) -> bool:
        word = self.words[i]
        short = len(word.token.text.encode()) <= self.options.short
        return (word.token.type in _NO_ENDS or short) and not word.hits

    def _count(self, first: int, last: int) -> int:
        return sum(word.counts for word in self.words[first : last + 1])

    def _covers(self) -> Iterator[tuple[int, int]]:
        """The first and last words of the stretches that match the query, the earliest and shortest first."""
        root = self.query.root
        if root is None or not (self._negates or holds(root, _Stretch(self.words))):
            return
        longest = max(self.options.most * 10, 100) * max(self.options.fragments, 1)
        for at, first in enumerate(self.hits):
            stretch = _Stretch()
            for last in self.hits[at:]:
                if last - first >= longest and last > first:
                    break
                stretch.add(self.words[last])
                self._steps += self._size
                if self._steps > _MOST_STEPS:
                    raise SqlError("54001", "the query and the text are too large for a headline")
                if holds(root, stretch):
                    yield first, last
                    break

    def _mark_best(self) -> None:
        best: tuple[int, int] | None = None
        merit: tuple[bool, int, bool] = (False, -1, False)
        for cover in self._covers():
            first, last, hits = self._stretched(*cover)
            whole = first <= cover[0] and last >= cover[1]
            found = whole, hits, not self._bad_end(last)
            if best is None or found > merit:
                best, merit = (first, last), found
        if best is None:
            self._show_beginning()
        else:
            self._show(*best)

    def _stretched(self, start: int, end: int) -> tuple[int, int, int]:
        """A headline around a cover: its first and last words, and how many of its words match."""
        options, words = self.options, self.words
        count, first, last, i = 0, start, start, start
        while i <= end and count < options.most:
            count += words[i].counts
            last = i
            i += 1
        if count < options.most:
            count, last = self._lengthened(count, i - 1, end)
            if count < options.least:
                first = self._begun(count, start)
        else:
            i = min(i, end)
            while count > options.least and self._bad_end(i):
                count -= words[i].counts
                i -= 1
                last = i
        return first, last, sum(word.hits for word in words[first : last + 1])

    def _lengthened(self, count: int, at: int, end: int) -> tuple[int, int]:
        """The count of words and the last one, after a cover is followed to a good end."""
        last = at
        for i in range(at, len(self.words)):
            if count >= self.options.most:
                break
            if i > end:
                count += self.words[i].counts
            last = i
            if not self._bad_end(i) and count >= self.options.least:
                break
        return count, last

    def _begun(self, count: int, start: int) -> int:
        """The first word of a headline that begins before its cover, as the text after it is too short."""
        for i in range(start - 1, -1, -1):
            count += self.words[i].counts
            if count >= self.options.most or (not self._bad_end(i) and count >= self.options.least):
                return i
        return 0

    def _mark_fragments(self) -> None:
        covers: list[_Fragment] = []
        for start, end in self._covers():
            covers += self._fragments(start, end)
        chosen = 0
        while chosen < self.options.fragments:
            left = [c for c in covers if not c.gone and c.hits]
            if not left:
                break
            best = min(left, key=lambda c: (-c.hits, c.count))
            best.gone = True
            first, last = self._widened(best)
            self._show(first, last)
            chosen += 1
            for cover in covers:
                cover.gone = cover.gone or (cover.first <= last and cover.last >= first)
        if not chosen:
            self._show_beginning()

    def _fragments(self, start: int, end: int) -> Iterator[_Fragment]:
        """A cover cut into pieces of at most the most words, each of which begins and ends with a match."""
        while start <= end:
            first = next((i for i in range(start, end + 1) if self.words[i].hits), end)
            count, i = 0, first
            while i <= end and count < self.options.most:
                count += self.words[i].counts
                i += 1
            last = end
            if end > i:
                last = i
                while last > first and not self.words[last].hits:
                    count -= self.words[last].counts
                    last -= 1
            hits = sum(word.hits for word in self.words[first:i])
            yield _Fragment(first, last, count, hits)
            start = last + 1

    def _widened(self, fragment: _Fragment) -> tuple[int, int]:
        """The first and last words of a fragment that is stretched on both sides to a good end."""
        words, options = self.words, self.options
        first, last, count = fragment.first, fragment.last, fragment.count
        if count >= options.most:
            return first, last
        most, stretched, i = (options.most - count) // 2, 0, first - 1
        while i >= 0 and stretched < most and not words[i].shown:
            stretched += words[i].counts
            i -= 1
        count += stretched
        i += 1
        while i < first and self._bad_end(i):
            count -= words[i].counts
            i += 1
        first, i = i, last + 1
        while i < len(words) and count < options.most and not words[i].shown:
            count += words[i].counts
            i += 1
        i -= 1
        while i > last and self._bad_end(i):
            i -= 1
        return first, i


class _Stretch:
    """Where the query's terms are in some words of the text."""

    def __init__(self, words: Iterable[_Word] = ()) -> None:
        self._places: dict[int, list[int]] = {}
        for word in words:
            self.add(word)

    def add(self, word: _Word) -> None:
        if word.term is not None:
            self._places.setdefault(id(word.term), []).append(word.place)

    def __call__(self, term: Term) -> Sequence[tuple[int, ...]]:
        known = self._places.get(id(term))
        return () if known is None else (tuple(known),)


@dataclass(slots=True)
class _Fragment:
    """A piece of a cover. ``count``: its words; ``hits``: those that match; ``gone``: chosen, or beside one that is."""

    first: int
    last: int
    count: int
    hits: int
    gone: bool = False


def _words(text: str, query: Query, configuration: int) -> Iterator[_Word]:
    terms = [node for node in query.items() if isinstance(node, Term)]
    place = 0
    for token in all_tokens(text):
        matched: list[Term] = []
        if token.type not in IGNORED:
            place += 1
            known = lexeme(token, configuration)
            matched = [] if known is None else [t for t in terms if _is(t, known)]
        yield _Word(token, matched[0] if matched else None, place)
        for term in matched[1:]:
            yield _Word(token, term, place, repeated=True)


def _is(term: Term, known: str) -> bool:
    return known.startswith(term.lexeme) if term.prefix else known == term.lexeme


def headline(configuration: int, text: str, query: Query, options: str = "") -> str:
    """ts_headline of a text. Raises as ``options_of``, and 54001."""
    found = Headline(text, query, configuration, options_of(options))
    found.mark()
    return found.text()
