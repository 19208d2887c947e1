"""Where PostgreSQL's encodings differ from Python's codecs of the same characters.

``differences.json`` has them, written by ``tests/answers/make_encodings.py``. For each encoding, from the bytes of a
first character, whose last byte is counted up: ``both`` the characters that they are, in both directions; ``read``,
``write`` the same in one direction; ``absent``: how many of such characters PostgreSQL does not have, though Python
does; ``unwritten``: characters that only Python writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("differences.json")


@dataclass(slots=True)
class Differences:
    """``read``: of bytes, ``write``: of characters; None: there is no such character. ``doubtful`` finds the characters
    on one side or the other of these; None: there are no differences."""

    read: dict[bytes, str | None] = field(default_factory=dict)
    write: dict[str, bytes | None] = field(default_factory=dict)
    doubtful: re.Pattern[str] | None = None


def differences_of(name: str, codec: str) -> Differences:
    """Those of one encoding, whose Python codec is ``codec``."""
    found = Differences()
    stored = json.loads(FILE.read_text(encoding="utf-8")).get(name, {})
    doubtful: set[str] = set(_other_ascii(codec))
    for first, count in stored.get("absent", {}).items():
        for raw in _counted(first, count):
            found.read[raw] = None
            character = _decoded(raw, codec)
            if character is not None and character.encode(codec) == raw:
                found.write[character] = None
    for direction in ("both", "read", "write"):
        for first, characters in stored.get(direction, {}).items():
            for raw, character in zip(_counted(first, len(characters)), characters, strict=True):
                if direction != "write":
                    found.read[raw] = character
                if direction != "read":
                    found.write[character] = raw
    found.write.update(dict.fromkeys(stored.get("unwritten", "")))
    if codec == "euc_kr":
        found.write.update(dict.fromkeys(_spelled_out()))
    doubtful.update(found.write, *(_decoded(raw, codec) or "" for raw in found.read))
    if doubtful:
        found.doubtful = re.compile(f"[{re.escape(''.join(sorted(doubtful)))}]")
    return found


def _counted(first: str, count: int) -> Iterator[bytes]:
    """So many characters' bytes, in hex the first."""
    raw = bytes.fromhex(first)
    return (raw[:-1] + bytes([raw[-1] + i]) for i in range(count))


def _decoded(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError:
        return None


def _other_ascii(codec: str) -> Iterator[str]:
    """What ASCII's bytes are in a codec, and the characters of ASCII that it writes otherwise."""
    for code in range(128):
        if (character := bytes([code]).decode(codec)) != chr(code):
            yield from (character, chr(code))


def _spelled_out() -> Iterator[str]:
    """The syllables that KS X 1001 lacks: Python writes their parts, in eight bytes."""
    return (chr(code) for code in range(0xAC00, 0xD7A4) if len(chr(code).encode("euc_kr")) > 2)
