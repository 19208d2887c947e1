"""Long texts and bytes by pieces. A call that copies or searches 100 MB holds Python's lock for 50 to 500 ms, in which
no other client is answered, and nothing can end it. Between two pieces others take their turn, and what is to end does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any, AnyStr, Final, cast

from ivm.stops import poll

PIECE: Final = 1 << 18
"""Characters or bytes that are worked on at a time: a tenth of a millisecond for what only copies."""


def is_long(value: str | bytes) -> bool:
    """Whether a value is worth cutting."""
    return len(value) > PIECE


def pieces(value: AnyStr, start: int = 0, stop: int | None = None, size: int = 0) -> Iterator[AnyStr]:
    """The parts of ``value[start:stop]``, with 0 <= start."""
    end = len(value) if stop is None else min(stop, len(value))
    size = size or PIECE
    for at in range(start, end, size):
        poll()
        yield value[at : min(at + size, end)]


def part(value: AnyStr, start: int, stop: int | None = None) -> AnyStr:
    """``value[start:stop]``, with 0 <= start, and 0 <= stop."""
    end = len(value) if stop is None else min(stop, len(value))
    return gathered(pieces(value, start, end), value) if end - start > PIECE else value[start:end]


def together(*values: AnyStr) -> AnyStr:
    """The concatenation of at least one value."""
    if sum(map(len, values)) <= PIECE:
        return values[0][:0].join(values)
    return gathered((piece for value in values for piece in pieces(value)), values[0])


def gathered(parts: Iterable[AnyStr], kind: AnyStr) -> AnyStr:
    """The parts as one value, of the type of ``kind``."""
    make: Callable[[Any], Any] = bytes_of if isinstance(kind, bytes) else text_of
    return cast("AnyStr", make(parts))


def text_of(parts: Iterable[str]) -> str:
    """The parts as one text. Python extends a text in place, if nobody else has it, where ``join`` copies all parts in
    one go."""
    out = ""
    for piece in parts:
        out += piece
    return out


def bytes_of(parts: Iterable[bytes]) -> bytes:
    """The parts as one value."""
    out = BytesIO()
    for piece in parts:
        out.write(piece)
    return out.getvalue()


def changed(value: AnyStr, work: Callable[[AnyStr], AnyStr]) -> AnyStr:
    """``work(value)``, which changes each character by itself."""
    return gathered(map(work, pieces(value)), value) if is_long(value) else work(value)


def repeated(value: AnyStr, length: int) -> AnyStr:
    """The first ``length`` characters of ``value`` again and again; it is not empty."""
    if length <= PIECE:
        return (value * (length // len(value) + 1))[:length]
    block = value if is_long(value) else value * (PIECE // len(value))
    starts = range(0, length, len(block))
    return gathered((piece for at in starts for piece in pieces(block, 0, length - at)), value)


def found(value: AnyStr, wanted: AnyStr, start: int = 0) -> int:
    """``value.find(wanted, start)``."""
    if not is_long(value):
        return value.find(wanted, start)
    step = max(PIECE, len(wanted))
    for at in range(start, len(value) - len(wanted) + 1, step):
        poll()
        place = value.find(wanted, at, at + step + len(wanted) - 1)
        if place >= 0:
            return place
    return -1


def between(value: str, wanted: str, size: int = PIECE) -> Iterator[str]:
    """The text in parts of some ``size`` that ``value.count(wanted)`` and ``value.replace(wanted, …)`` may take one by
    one; ``wanted`` is not empty.

    A match that a part's end may cut is left to the next part: no match begins in what follows a part's last match but
    in its last ``len(wanted) - 1`` characters.
    """
    at, size = 0, size + len(wanted)
    while at < len(value):
        poll()
        piece = value[at : at + size]
        at += size
        if len(wanted) > 1 and at < len(value):
            rest = piece.split(wanted)[-1]
            kept = min(len(rest), len(wanted) - 1)
            at -= kept
            piece = piece[: len(piece) - kept]
        yield piece


def replaced(value: str, old: str, new: str) -> Iterator[str]:
    """The parts of ``value.replace(old, new)``; ``old`` is not empty. None of them grows large."""
    size = max(PIECE * len(old) // max(len(old), len(new)), 1)
    return (piece.replace(old, new) for piece in between(value, old, size))


def backwards(value: str) -> str:
    """``value[::-1]``."""
    if not is_long(value):
        return value[::-1]
    starts = range(0, len(value), PIECE)
    return text_of(piece[::-1] for at in reversed(starts) for piece in pieces(value, at, at + PIECE))


def stripped(value: AnyStr, strip: Callable[[AnyStr], AnyStr], from_left: bool) -> AnyStr:
    """``strip(value)``, which takes characters from the left or from the right."""
    if not is_long(value):
        return strip(value)
    start, stop = 0, len(value)
    while start < stop:
        poll()
        piece = value[start : min(start + PIECE, stop)] if from_left else value[max(stop - PIECE, start) : stop]
        left = len(strip(piece))
        start, stop = (start + len(piece) - left, stop) if from_left else (start, stop - len(piece) + left)
        if left:
            break
    return value if stop - start == len(value) else part(value, start, stop)
