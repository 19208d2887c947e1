"""Writes the data of one COPY … TO in any format: what precedes the rows, the rows, and what follows them."""

from __future__ import annotations

from collections.abc import Sequence

from ivm.rows import RowSet
from sql.pgwire.copy_binary import HEADER, TRAILER, format_binary
from sql.pgwire.copy_out import CopyRows, format_copy, format_header, recoded
from sql.statements.statements import CopyFormat, CopyOptions
from storage.dictionary import Dictionary
from storage.encodings.encoding import Encoding
from storage.types.text_style import TextStyle


class CopyWriter:
    """Writes one COPY. Clients rely on the binary header coming in one message with the first row, or with the
    trailer."""

    def __init__(
        self, options: CopyOptions, names: Sequence[str], dictionary: Dictionary, encoding: Encoding | None = None
    ) -> None:
        """``encoding``: of the text formats; None: UTF-8."""
        self._encoding = encoding
        self._options, self._names, self._dictionary = options, names, dictionary
        self._binary = options.format is CopyFormat.BINARY
        self._begun = False

    @property
    def format(self) -> int:
        """The format code of CopyOutResponse."""
        return int(self._binary)

    def header(self) -> bytes:
        """The message that precedes the rows, or empty."""
        if not self._options.header:
            return b""
        line = format_header(self._names, self._options)
        return line if self._encoding is None else recoded(line, self._encoding)

    def rows(self, part: RowSet, style: TextStyle) -> bytes:
        """The next rows. May be called from any thread, one call at a time."""
        if not self._binary:
            rows = format_copy(part, self._options, self._dictionary, style)
            return rows if self._encoding is None else recoded(rows, self._encoding)
        rows = format_binary(part, self._dictionary, style)
        if self._begun or not len(part):
            return rows
        self._begun = True
        first = CopyRows(HEADER + rows)
        first.ends = rows.ends + len(HEADER)
        return first

    def trailer(self) -> bytes:
        """The message that follows the rows, or empty."""
        if not self._binary:
            return b""
        return TRAILER if self._begun else HEADER + TRAILER
