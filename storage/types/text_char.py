"""Text of "char": one byte; bytes above 127 as a backslash and three octal digits."""

from __future__ import annotations

import re
from typing import Final

_OCTAL: Final = re.compile(r"\\([0-3][0-7][0-7])")


def parse_char1(text: str) -> str:
    """The first byte of a text, or the byte that \\ooo denotes, as a str of one character; "" for byte 0."""
    match = _OCTAL.fullmatch(text)
    byte = int(match[1], 8) if match else (text.encode() or b"\0")[0]
    return chr(byte) if byte else ""


def format_char1(value: str) -> str:
    """The inverse of ``parse_char1``."""
    return f"\\{ord(value):03o}" if value > "\x7f" else value
