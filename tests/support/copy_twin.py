"""The slow twin of sql/pgwire/copy_kernels.py: parses COPY text and CSV into rows of str | None, by Postgres's
documentation."""

from __future__ import annotations

import re

Row = list[str | None]
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class TwinError(Exception):
    """``args``: message and line number."""


def unescape(field: str) -> str:
    """A text field without its backslashes (codes below 128 only)."""

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if re.fullmatch("[0-7]{1,3}", code):
            return chr(int(code, 8) & 255)
        if len(code) > 1:
            return chr(int(code[1:], 16))
        return _ESCAPES.get(code, code)

    return re.sub(r"\\([0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)", one, field, flags=re.DOTALL)


def parse_text(data: str, width: int, delimiter: str = "\t", null: str = "\\N") -> list[Row]:
    """The text format with newlines as line ends."""
    rows: list[Row] = []
    at, line = 0, 0
    while at < len(data):
        line += 1
        match = re.compile(r"(?:\\[^.]|[^\\\n])*\\?", re.DOTALL).match(data, at)
        assert match
        text, end = match[0], match.end()
        marker = data.startswith("\\.", at + len(text) - 1) and text.endswith("\\")
        if marker:
            text = text[:-1]
            if data[end + 1 : end + 2] not in ("", "\n"):
                raise TwinError("end-of-copy marker corrupt", line)
            if not text:
                return rows
        fields = split_fields(text, delimiter)
        check_width(fields, width, line)
        rows.append([None if field == null else unescape(field) for field in fields])
        if marker:
            return rows
        at = end + 1
    return rows


def split_fields(text: str, delimiter: str) -> list[str]:
    """Split at delimiters that are not preceded by a backslash."""
    fields, current, at = [], "", 0
    while at < len(text):
        if text[at] == delimiter:
            fields.append(current)
            current = ""
            at += 1
            continue
        step = 2 if text[at] == "\\" else 1
        current += text[at : at + step]
        at += step
    return [*fields, current]


def check_width(fields: list[object] | list[str], width: int, line: int) -> None:
    if len(fields) > width:
        raise TwinError("extra data after last expected column", line)
    if len(fields) < width:
        raise TwinError("missing data for column", line)


def parse_csv(
    data: str, width: int, delimiter: str = ",", null: str = "", quote: str = '"', escape: str = '"'
) -> list[Row]:
    """Parse CSV with newlines as line ends, character by character."""
    rows: list[Row] = []
    fields: list[str | None] = []
    current, quoted, seen, at, line, start = "", False, False, 0, 1, True
    while at <= len(data):
        c = data[at] if at < len(data) else ""
        if c == "" and quoted:
            raise TwinError("unterminated CSV quoted field", line)
        if (start and c == "") or (start and data.startswith("\\.", at) and data[at + 2 : at + 3] in ("", "\n")):
            return rows
        if quoted:
            if c == escape and data[at + 1 : at + 2] in (escape, quote) and at + 1 < len(data):
                current += data[at + 1]
                at += 1
            elif c == quote:
                quoted = False
            else:
                current += c
        elif c == quote:
            quoted = seen = True
        elif c in (delimiter, "\n", ""):
            fields.append(None if not seen and current == null else current)
            current, seen = "", False
            if c != delimiter:
                check_width(fields, width, line)
                rows.append(fields)
                fields = []
                line += 1
        else:
            current += c
        start = not quoted and c in ("\n", "") and not fields and not current and not seen
        at += 1
    return rows
