"""Passwords in texts that people and logs see: statements, URLs of databases, what drivers say of them."""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = "***"
_OPTION: Final = re.compile(r"""(\b"?password"?\s*=?\s*)'(?:[^']|'')*(?:'|$)""", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"""(\b\w*(?:password|passwd|pwd|passphrase)\w*=)[^&;,'"\s()]*""", re.IGNORECASE)
_USER: Final = re.compile(r"""(://[^/@:\s'"]*:|thin:[^/@\s'"]*/)[^@\s'"]*(?=@)""", re.IGNORECASE)


def hide_passwords(text: str) -> str:
    """The text with ``***`` for the value of an option PASSWORD, a URL's parameter of such a name, and what stands
    between user and host."""
    text = _OPTION.sub(rf"\1'{_HIDDEN}'", text)
    return _USER.sub(rf"\1{_HIDDEN}", _PARAMETER.sub(rf"\1{_HIDDEN}", text))
