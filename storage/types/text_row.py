"""Row literals, ``(1,,"a b")``, input and output, with Postgres's quoting. An empty field is NULL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ivm.errors import SqlError

_NEEDS_QUOTES: Final = re.compile(r'[\s(),"\\]')
_SPACE: Final = " \t\n\r\v\f"


def parse_row(text: str, count: int) -> list[str | None]:
    """The texts of the fields, which must be ``count``. Raises 22P02."""
    body = text.lstrip(_SPACE)
    if not body.startswith("("):
        raise _malformed(text, "Missing left parenthesis.")
    at, found = 1, list[str | None]()
    while count:
        if found and body[at : at + 1] != ",":
            raise _malformed(text, "Too few columns." if body[at : at + 1] else "Unexpected end of input.")
        at += bool(found)
        field, at = _field(body, at, text)
        found.append(field)
        if len(found) == count:
            break
    if body[at : at + 1] != ")":
        raise _malformed(text, "Too many columns." if body[at : at + 1] else "Unexpected end of input.")
    if body[at + 1 :].strip(_SPACE):
        raise _malformed(text, "Junk after right parenthesis.")
    return found


def _field(body: str, at: int, text: str) -> tuple[str | None, int]:
    """The field that begins at an offset, None where it is empty, and the offset of what ends it."""
    if body[at : at + 1] in (",", ")"):
        return None, at
    out: list[str] = []
    quoted = False
    while True:
        c = body[at : at + 1]
        if not c:
            raise _malformed(text, "Unexpected end of input.")
        if not quoted and c in ",)":
            return "".join(out), at
        at += 1
        if c == "\\" or (c == '"' and quoted and body[at : at + 1] == '"'):
            c = body[at : at + 1]
            if not c:
                raise _malformed(text, "Unexpected end of input.")
            out.append(c)
            at += 1
        elif c == '"':
            quoted = not quoted
        else:
            out.append(c)


def _malformed(text: str, detail: str) -> SqlError:
    return SqlError("22P02", f'malformed record literal: "{text}"', detail)


def format_row(texts: Iterable[str | None]) -> str:
    """A row of these fields' texts; None is NULL."""
    return f"({','.join(map(_quoted, texts))})"


def _quoted(text: str | None) -> str:
    if text is None:
        return ""
    if text and not _NEEDS_QUOTES.search(text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'
