"""Hides passwords in text shown to people or logged: statements, database URLs, drivers' messages."""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = "***"
_OPTION: Final = re.compile(r"""(\b"?password"?\s*=?\s*)'(?:[^']|'')*(?:'|$)""", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"""(\b\w*(?:password|passwd|pwd|passphrase)\w*=)[^&;,'"\s()]*""", re.IGNORECASE)
_SECRET: Final = re.compile(r"\b((?:create|alter)(?:\s|/\*.*?\*/|--[^\n]*\n)+secret\b).*", re.IGNORECASE | re.DOTALL)
_USER: Final = re.compile(r"""(://[^/@:\s'"]*:|thin:[^/@\s'"]*/)[^@\s'"]*(?=@)""", re.IGNORECASE)


def hide_passwords(text: str) -> str:
    """Replaces with ``***`` the value of an option PASSWORD, of a URL parameter so named, and a URL's password between
    user and host."""
    text = _SECRET.sub(rf"\1 {_HIDDEN}", text)
    text = _OPTION.sub(rf"\1'{_HIDDEN}'", text)
    return _USER.sub(rf"\1{_HIDDEN}", _PARAMETER.sub(rf"\1{_HIDDEN}", text))
