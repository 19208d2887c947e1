"""to_char of many numbers, with constant templates of nines and zeros, commas among them, and zeros behind a point."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from ivm.kernels.numeric_codes import ROUND
from ivm.rows import Mask, Words
from ivm.words import Kind
from planner.expr.functions.numbers.columns import changed
from planner.expr.functions.table import CallSite, Made
from planner.expr.functions.text.columns import constant, made_texts
from storage.text_columns import TextColumn, joined, of_decimals, of_value
from storage.types.numeric import POWERS, inline_parts

_TEMPLATE: Final = re.compile("(FM)?(9[9,]*)?(0[09,]*)?(?:[.](0{1,15}))?", re.ASCII)
_MOST_PLACES: Final = 40
_LEAST8: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class _Layout:
    """``fill``: no blanks; ``places``: before the point, of which at least ``zeros`` are shown; ``commas``: how many
    places follow each, from the left; ``post``: places behind the point."""

    fill: bool
    places: int
    zeros: int
    commas: tuple[int, ...]
    post: int

    @property
    def width(self) -> int:
        return 1 + self.places + len(self.commas) + self.post + (self.post > 0)


@lru_cache(256)
def _layout(template: str) -> _Layout | None:
    match = _TEMPLATE.fullmatch(template)
    if match is None:
        return None
    fill, nines, zeros, post = match.groups()
    whole = (nines or "") + (zeros or "")
    places = len(whole) - whole.count(",")
    if not 0 < places <= _MOST_PLACES or ",," in whole:
        return None
    commas = tuple(len(whole[at + 1 :].replace(",", "")) for at, letter in enumerate(whole) if letter == ",")
    return _Layout(fill is not None, places, len((zeros or "").replace(",", "")), commas, len(post or ""))


def to_char(site: CallSite, words: Words, templates: Words) -> Made | None:
    """to_char of numerics and integers."""
    if not constant(templates):
        return None
    layout = _layout(site.context.dictionary.lookup_one(int(templates[0])).decode())
    if layout is None:
        return None
    negative, whole, fraction, rest = _rounded(site, words, layout.post)
    digits = of_decimals(whole, 0)
    rest = rest | (digits.lengths > layout.places) | ((whole == 0) & (layout.zeros == 0))
    count = len(words)
    lacking = of_value(b"0" * layout.zeros, count)
    lacking.lengths = np.maximum(layout.zeros - digits.lengths, 0)
    parts = _grouped(joined(lacking, digits), layout.commas)
    if layout.post:
        behind = of_decimals(fraction + POWERS[layout.post], 0)
        parts += [of_value(b".", count), TextColumn(behind.starts + 1, behind.lengths - 1, behind.held)]
    sign = of_value(b"-", count)
    sign.lengths = negative.astype(np.int64)
    blanks = of_value(b" " * layout.width, count)
    blanks.lengths = np.maximum(layout.width - sum(part.lengths for part in (sign, *parts)), 0) * (not layout.fill)
    return made_texts(site, rest, blanks, sign, *parts)


def _rounded(site: CallSite, words: Words, post: int) -> tuple[Mask, Words, Words, Mask]:
    """(Whether it is negative, the whole part, so many digits behind the point, which are left) of each number."""
    if site.args[0].kind is not Kind.NUMERIC:
        rest: Mask = words == _LEAST8
        return words < 0, np.abs(np.where(rest, 0, words)), np.zeros(len(words), np.int64), rest
    made = changed(ROUND, words, post, site.context.dictionary)
    rest = (made.words & 1) != 0
    if made.rest is not None:
        rest |= made.rest
    mantissas, _ = inline_parts(np.where(rest, 0, made.words))
    whole, fraction = np.divmod(np.abs(mantissas), POWERS[post])
    return mantissas < 0, whole, fraction, rest


def _grouped(digits: TextColumn, commas: tuple[int, ...]) -> list[TextColumn]:
    """Digits with a comma before the last ones, for each of these numbers of them, wherever some stand before it."""
    parts: list[TextColumn] = []
    begin = np.zeros(len(digits), np.int64)
    for following in commas:
        end = np.maximum(digits.lengths - following, 0)
        comma = of_value(b",", len(digits))
        comma.lengths = (end > 0).astype(np.int64)
        parts += [TextColumn(digits.starts + begin, end - begin, digits.held), comma]
        begin = end
    return [*parts, TextColumn(digits.starts + begin, digits.lengths - begin, digits.held)]
