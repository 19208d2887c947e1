"""A file's header line, which names its columns: HEADER, HEADER MATCH."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.errors import SqlError
from sql.pgwire.copy_out import format_header
from sql.pgwire.messages import text_of
from sql.statements.statements import CopyFormat, CopyOptions


def split_line(line: bytes, options: CopyOptions) -> list[str]:
    """The fields of one line, such as a header, without quotes. Raises 22P04 for an unclosed quote."""
    text = text_of(line.removesuffix(b"\r"))
    if options.format is not CopyFormat.CSV:
        return text.split(options.delimiter)
    fields: list[str] = []
    current, quoted, at = "", False, 0
    while at < len(text):
        c, following = text[at], text[at + 1 : at + 2]
        if quoted and c == options.escape and following and following in (options.escape, options.quote):
            current, at = current + following, at + 1
        elif c == options.quote:
            quoted = not quoted
        elif c == options.delimiter and not quoted:
            fields.append(current)
            current = ""
        else:
            current += c
        at += 1
    if quoted:
        raise SqlError("22P04", "unterminated CSV quoted field", f'The line is "{text[:100]}".')
    return [*fields, current]


def check_header(line: bytes, names: Sequence[str], options: CopyOptions, where: str) -> None:
    """Raises 22P04, as Postgres does, unless the line names these columns in order. ``where``: the error's detail."""
    fields = split_line(line, options)
    if len(fields) != len(names):
        message = f"wrong number of fields in header line: got {len(fields)}, expected {len(names)}"
        raise SqlError("22P04", message, where)
    for i, (field, name) in enumerate(zip(fields, names, strict=True)):
        if field != _written(name, options):
            got = f'null value ("{field}")' if field == options.null else f'"{field}"'
            message = f'column name mismatch in header line field {i + 1}: got {got}, expected "{name}"'
            raise SqlError("22P04", message, where)


def _written(name: str, options: CopyOptions) -> str:
    """A name as an unquoted field of a line; in the text format with COPY TO's escapes."""
    if options.format is CopyFormat.CSV:
        return name
    return format_header([name], options).decode().removesuffix("\n")
