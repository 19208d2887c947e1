"""The strings at the beginning of a client's messages, from its encoding."""

from __future__ import annotations

from typing import Final

from storage.encodings.encoding import Encoding

_STRINGS: Final = {
    ord(kind): place
    for kind, place in {
        "Q": (0, 1),
        "P": (0, 2),
        "B": (0, 2),
        "D": (1, 1),
        "C": (1, 1),
        "E": (0, 1),
        "f": (0, 1),
    }.items()
}
"""By the type of a message: where its strings begin, and how many they are."""


def in_utf8(kind: int, body: bytes, encoding: Encoding) -> bytes:
    """A message's body with its strings in UTF-8; a body that lacks some is left as it is. Raises 22021, 22P05."""
    start, count = _STRINGS.get(kind, (0, 0))
    end = start
    for _ in range(count):
        end = body.find(b"\0", end) + 1
        if not end:
            return body
    strings = body[start:end]
    if strings.isascii():
        return body
    texts = map(encoding.text_of, strings.split(b"\0"))
    return body[:start] + "\0".join(texts).encode() + body[end:]
