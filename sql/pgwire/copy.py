"""Parses the data of COPY … FROM STDIN in text and CSV into vectors; the loops are in ``copy_kernels``.

Data arrives in chunks cut anywhere, which ``feed`` only queues. ``parse`` does the work on a megabyte or more at a
time, mostly without the GIL, so a server calls it in a thread when ``ready``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ivm.errors import SqlError, unsupported
from ivm.rows import Mask, Vector, Words
from ivm.words import Kind
from sql.catalog.catalog import TableColumn
from sql.pgwire import copy_kernels as k
from sql.pgwire.copy_header import check_header
from sql.pgwire.copy_out import check_options
from sql.pgwire.messages import invalid_bytes
from sql.statements.statements import CopyFormat, CopyOptions
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn
from storage.load.rejects import BadValue, Rejects, bad_nulls, first_of_rows, without_rows
from storage.load.source import ColumnBlock
from storage.load.text import TextStart
from storage.types.text import parse_rows
from storage.types.text_style import DEFAULT_STYLE, TextStyle

BLOCK: Final = 1 << 20
"""The minimum number of bytes worth a kernel call."""
PATIENCE: Final = 8
"""``feed`` itself parses once this many blocks are queued."""
SHOWN: Final = 100
"""The maximum length in bytes of a line or field in an error's context, as in Postgres."""
_EOL: Final = {None: k.EOL_UNKNOWN, False: k.EOL_NL, True: k.EOL_CRNL}
_INTEGER_BITS: Final = {Kind.INT2: 15, Kind.INT4: 31, Kind.INT8: 63, Kind.OID: 32}
_OF_ONE_ROW: Final = (k.MISSING, k.EXTRA, k.BAD_FIELD)
"""Statuses with which the kernel stops at a row whose end is known."""
_BYTES: Final = frozenset({Kind.TEXT, Kind.VARCHAR})


@dataclass(frozen=True, slots=True)
class _Block:
    """The result of one call of ``copy_kernels.scan``, cut to the rows found."""

    data: NDArray[np.uint8]
    words: Words
    nulls: Mask
    spans: Words
    lines: Words


@dataclass(frozen=True, slots=True)
class _Failed:
    """A value that does not convert: its row in the block, the error, and its text."""

    row: int
    error: SqlError
    text: str | None


class CopyParser:
    """The parser of one COPY.

    ``columns``: the columns in the data's order; None for fields to skip. ``table``: for messages. ``start``: where the
    data begins, if lines precede it. Errors are Postgres's (22P04, 22P02, 22003, 22021, …), with its CONTEXT ("COPY t,
    line 3, column a: …") as the detail. The first error is final: what was parsed before is void.

    ``rejects``: collects rows with bad values, NULLs in NOT NULL columns, too few or too many fields, or bytes that are
    not UTF-8. Anything that makes the end of a row ambiguous (quotes, line ends, markers) remains an error.
    """

    def __init__(
        self,
        table: str,
        columns: Sequence[TableColumn | LoadColumn | None],
        options: CopyOptions,
        dictionary: Dictionary,
        style: TextStyle = DEFAULT_STYLE,
        start: TextStart | None = None,
        rejects: Rejects | None = None,
    ) -> None:
        if options.format not in (CopyFormat.TEXT, CopyFormat.CSV):
            raise unsupported(f"COPY FROM STDIN with format {options.format.value}")
        if not columns:
            raise unsupported("COPY of no columns")
        check_options(options)
        self.table, self.columns, self.options = table, tuple(columns), options
        self._dictionary, self._style, self._rejects = dictionary, style, rejects
        self._shape = np.zeros(k.SHAPE_SIZE, np.int64)
        self._shape[k.CSV] = options.format is CopyFormat.CSV
        for index, text in ((k.DELIMITER, options.delimiter), (k.QUOTE, options.quote), (k.ESCAPE, options.escape)):
            self._shape[index] = ord(text[:1] or "\0")
        self._null = np.frombuffer(options.null.encode(), np.uint8)
        self._columns = _layout(self.columns, options)
        self._state = np.zeros(k.STATE_SIZE, np.int64)
        if start is not None:
            self._state[k.LINE] = start.lines
            self._state[k.EOL] = _EOL[start.returns]
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._tail = b""
        self._header = options.header
        self._ended = False
        self._parts: list[list[Vector]] = []
        self.count = 0

    @property
    def ready(self) -> bool:
        """Whether enough data is queued for ``parse``. A long incomplete row waits until its length has doubled."""
        return self._waiting_bytes >= max(BLOCK, len(self._tail))

    def feed(self, data: bytes) -> None:
        """Queues data. Cost: negligible, unless ``parse`` is not called and much is queued."""
        if self._ended:
            return
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= PATIENCE * max(BLOCK, len(self._tail)):
            self.parse()

    def parse(self) -> None:
        """Parses all complete rows. Raises SqlError."""
        self._parse(final=False)

    def finish(self) -> ColumnBlock:
        """Ends the data and returns the rest as ``take`` does. Raises SqlError."""
        self._parse(final=True)
        return self.take()

    def take(self) -> ColumnBlock:
        """What was parsed since the last call: all columns' vectors, and the number of rows."""
        parts, self._parts = self._parts, []
        size, self.count = self.count, 0
        kept = sum(column is not None for column in self.columns)
        return ColumnBlock([_concat([part[i] for part in parts]) for i in range(kept)], size)

    def _parse(self, final: bool) -> None:
        if self._ended:
            return
        raw = b"".join((self._tail, *self._waiting))
        self._waiting.clear()
        self._waiting_bytes = 0
        data = np.frombuffer(raw, np.uint8)
        self._shape[k.FINAL] = final
        state = self._state
        state[k.AT] = 0
        if self._header and not self._skip_header(raw, data):
            return
        room = int(np.count_nonzero(data == (13 if state[k.EOL] == k.EOL_CR else 10))) + 1
        while self._scan(raw, data, min(room, BLOCK)):
            pass
        self._tail = raw[state[k.AT] :]
        self._ended = final or state[k.STATUS] == k.END

    def _skip_header(self, raw: bytes, data: NDArray[np.uint8]) -> bool:
        k.skip_line(data, self._shape, self._state)
        status = self._state[k.STATUS]
        if status == k.MORE:
            self._tail = raw
            return False
        if status not in (k.ROOM, k.END):
            raise self._error(raw)
        self._header = False
        if self.options.match_header:
            line = raw[self._state[k.ROW_START] : self._state[k.ROW_END]]
            where = f'COPY {self.table}, line 1: "{_shorten(line.decode(errors="replace"))}"'
            check_header(line, [self._name(i) for i in range(len(self.columns))], self.options, where)
        self._ended = bool(status == k.END)
        return not self._ended

    def _scan(self, raw: bytes, data: NDArray[np.uint8], room: int) -> bool:
        """Calls the kernel once and converts its rows. Returns whether there is more to scan."""
        state, layout = self._state, self._columns
        integers = int(np.count_nonzero(layout[0] >= 0))
        width = layout.shape[1]
        words = np.empty((integers, room), np.int64)
        nulls = np.zeros((width, room), np.bool_)
        spans = np.empty((width - integers, 2, room), np.int64)
        scratch = np.empty(len(data), np.uint8)
        lines = np.empty(room, np.int64)
        before = state.copy()
        start, line = int(state[k.AT]), int(state[k.LINE])
        state[k.ROWS] = 0
        k.scan(data, self._shape, self._null, layout, words, nulls, spans, lines, scratch, state)
        rows, status = int(state[k.ROWS]), int(state[k.STATUS])
        if self._rejects is None:
            self._check_encoding(raw, data, start, int(state[k.AT]), line)
        if rows:
            block = _Block(data, words[:, :rows], nulls[:, :rows], spans[:, :, :rows], lines[:rows])
            vectors, rows = self._kept(block, before, int(state[k.AT]))
            self._parts.append(vectors)
            self.count += rows
        if status in (k.MORE, k.END, k.ROOM):
            return status == k.ROOM
        if self._rejects is None or status not in _OF_ONE_ROW:
            raise self._error(raw)
        return self._pass_over(raw, data, self._rejects)

    def _pass_over(self, raw: bytes, data: NDArray[np.uint8], rejects: Rejects) -> bool:
        """Rejects the row at which the kernel stopped. Returns whether there is more to scan."""
        state = self._state
        column = None
        if state[k.STATUS] == k.BAD_FIELD:
            column = self._name(int(state[k.COLUMN]))
        row, line = raw[state[k.ROW_START] : state[k.ROW_END]], int(state[k.LINE])
        bad = _invalid_at(row)
        if bad >= 0:
            rejects.add(invalid_bytes(row, bad), row.decode(errors="replace"), line)
        else:
            rejects.add(self._error(raw), row.decode(), line, column)
        k.skip_line(data, self._shape, state)  # AT is still before the row, whose lines are counted
        state[k.LINE] = line
        return bool(state[k.STATUS] == k.ROOM)

    def _kept(self, block: _Block, before: Words, end: int) -> tuple[list[Vector], int]:
        """The block's rows without the rejected ones. ``before``: the state at their start; ``end``: the offset of
        their end."""
        size = len(block.lines)
        if self._rejects is None:
            return self._vectors(block, unlike=False)[0], size
        piece = block.data[int(before[k.AT]) : end]
        unlike = not k.plain_ascii(piece) and _invalid_at(piece.tobytes()) >= 0
        vectors, bad = self._vectors(block, unlike)
        filled = [(i, column) for i, column in enumerate(self.columns) if column is not None]
        for (i, column), vector in zip(filled, vectors, strict=True):
            bad += bad_nulls(vector, column, i)
        if not bad and not unlike:
            return vectors, size
        rows = self._raw_rows(block, before, size if unlike else max(value.row for value in bad) + 1)
        for row, raw in enumerate(rows if unlike else ()):
            at = _invalid_at(raw)
            if at >= 0:
                bad.append(BadValue(row, -1, invalid_bytes(raw, at)))
        bad = first_of_rows(bad)
        for row, i, error in bad:
            name = None if i < 0 else self._name(i)
            self._rejects.add(error, rows[row].decode(errors="replace"), int(block.lines[row]), name)
        return without_rows(vectors, bad, size)

    def _raw_rows(self, block: _Block, before: Words, count: int) -> list[bytes]:
        """The raw bytes of the block's first rows, found again from the state ``before`` them."""
        state, rows = before.copy(), []
        for _ in range(count):
            k.skip_line(block.data, self._shape, state)
            rows.append(block.data[state[k.ROW_START] : state[k.ROW_END]].tobytes())
        return rows

    def _check_encoding(self, raw: bytes, data: NDArray[np.uint8], start: int, end: int, line: int) -> None:
        """Raises 22021 if complete rows are not UTF-8 or contain a zero byte."""
        if k.plain_ascii(data[start:end]):
            return
        piece = raw[start:end]
        bad = _invalid_at(piece)
        if bad >= 0:
            lines = piece.count(b"\r" if self._state[k.EOL] == k.EOL_CR else b"\n", 0, bad)
            error_ = invalid_bytes(piece, bad)
            raise SqlError(error_.sqlstate, error_.message, f"COPY {self.table}, line {line + lines + 1}")

    def _vectors(self, block: _Block, unlike: bool) -> tuple[list[Vector], list[BadValue]]:
        """Converts the block's columns. Without rejects, raises the error of the first bad value by row and column;
        with them, returns all bad values. ``unlike``: the data contains invalid UTF-8."""
        vectors: list[Vector] = []
        failures: list[tuple[int, int, _Failed]] = []
        for i, column in enumerate(self.columns):
            if column is None:
                continue
            absent = block.nulls[i]
            mask = absent.copy() if absent.any() else None
            place = int(self._columns[1, i])
            if self._columns[0, i] >= 0:
                vectors.append(Vector(block.words[place].copy(), mask))
                continue
            data, offsets = k.gather(block.data, self._shape, block.spans[place], absent)
            escaped = bool((block.spans[place, 1] < 0).any())
            invalid = _invalid_values(data, offsets) if escaped or unlike else []
            if invalid:
                data, offsets = _emptied(data, offsets, invalid)
            vector, failed = self._convert(column, data, offsets, mask)
            vectors.append(vector)
            emptied = {failure.row for failure in invalid}
            failures += [(f.row, i, f) for f in (*invalid, *(f for f in failed if f.row not in emptied))]
        if failures and self._rejects is None:
            row, i, first = min(failures, key=lambda f: f[:2])
            raise self._in_field(first.error, int(block.lines[row]), self._name(i), first.text)
        return vectors, [BadValue(row, i, failure.error) for row, i, failure in failures]

    def _convert(
        self, column: TableColumn | LoadColumn, data: NDArray[np.uint8], offsets: Words, mask: Mask | None
    ) -> tuple[Vector, list[_Failed]]:
        """Converts a column of a type other than integers: text is interned directly, the rest parsed by its input
        function."""
        if column.type.kind in _BYTES and column.type.precision is None:
            ids = self._dictionary.intern_packed(data, offsets)
            return Vector(ids if mask is None else np.where(mask, 0, ids), mask), []
        raw = data.tobytes()
        texts: list[str | None] = [raw[a:b].decode() for a, b in pairwise(offsets.tolist())]
        if mask is not None:
            for row in np.flatnonzero(mask).tolist():
                texts[row] = None
        vector, failures = parse_rows(column.type, texts, self._dictionary, self._style)
        return vector, [_Failed(row, error, texts[row]) for row, error in failures]

    def _name(self, index: int) -> str:
        """The name of a field in messages."""
        column = self.columns[index]
        return str(index + 1) if column is None else column.name

    def _in_field(self, error: SqlError, line: int, name: str, text: str | None) -> SqlError:
        """A value's error, with Postgres's CONTEXT as its detail."""
        where = f"COPY {self.table}, line {line}, column {name}"
        if text is not None:
            where += f': "{_shorten(text)}"'
        return SqlError(error.sqlstate, error.message, where, error.hint)

    def _error(self, raw: bytes) -> SqlError:
        """The error at which the kernel stopped."""
        state = self._state
        status, line = int(state[k.STATUS]), int(state[k.LINE])
        index = min(int(state[k.COLUMN]), len(self.columns) - 1)
        if status == k.BAD_FIELD:
            return self._bad_integer(raw, index, line)
        text = raw[state[k.ROW_START] : state[k.ROW_END]].decode(errors="replace")
        where = f'COPY {self.table}, line {line}: "{_shorten(text)}"'
        csv = self.options.format is CopyFormat.CSV
        match status:
            case k.MISSING:
                return SqlError("22P04", f'missing data for column "{self._name(index)}"', where)
            case k.EXTRA:
                return SqlError("22P04", "extra data after last expected column", where)
            case k.UNTERMINATED:
                return SqlError("22P04", "unterminated CSV quoted field", where)
            case k.LITERAL_CR | k.LITERAL_NL:
                return _literal(status == k.LITERAL_CR, csv, f"COPY {self.table}, line {line}")
            case k.MARKER_STYLE:
                message = "end-of-copy marker does not match previous newline style"
                return SqlError("22P04", message, f"COPY {self.table}, line {line}")
            case _:
                assert status == k.BAD_MARKER, "a status of the kernel that nobody reads"
                return SqlError("22P04", "end-of-copy marker corrupt", f"COPY {self.table}, line {line}")

    def _bad_integer(self, raw: bytes, index: int, line: int) -> SqlError:
        """The error of the type's own input function for the field."""
        column = self.columns[index]
        assert column is not None, "a field that is passed over is not converted"
        start, end = int(self._state[k.FIELD_START]), int(self._state[k.FIELD_END])
        data = np.frombuffer(raw, np.uint8)
        span = np.array([[start], [-end - 1]], np.int64)
        field, _ = k.gather(data, self._shape, span, np.zeros(1, np.bool_))
        text = field.tobytes().decode(errors="replace")
        _, failures = parse_rows(column.type, [text], self._dictionary, self._style)
        assert failures, "the kernel refuses an integer that its input function takes"
        return self._in_field(failures[0][1], line, column.name, text)


def _invalid_values(data: NDArray[np.uint8], offsets: Words) -> list[_Failed]:
    """The values that are not UTF-8 (22021) because of their escapes, though the raw row is."""
    if k.plain_ascii(data):
        return []
    raw, failed = data.tobytes(), []
    for row, (start, end) in enumerate(pairwise(offsets.tolist())):
        value = raw[start:end]
        bad = _invalid_at(value)
        if bad >= 0:
            failed.append(_Failed(row, invalid_bytes(value, bad), None))
    return failed


def _emptied(data: NDArray[np.uint8], offsets: Words, failed: list[_Failed]) -> tuple[NDArray[np.uint8], Words]:
    """The values, with those that failed replaced by empty ones."""
    sizes = np.diff(offsets)
    gone = np.zeros(len(sizes), np.bool_)
    gone[[failure.row for failure in failed]] = True
    left = np.where(gone, 0, sizes)
    return data[np.repeat(~gone, sizes)], np.concatenate([[0], np.cumsum(left)]).astype(np.int64)


def _invalid_at(raw: bytes) -> int:
    """The offset of the first byte that is invalid UTF-8 or zero, -1 if there is none."""
    zero = raw.find(b"\0")
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start if zero < 0 else min(error.start, zero)
    return zero


def _layout(columns: Sequence[TableColumn | LoadColumn | None], options: CopyOptions) -> Words:
    """The ``columns`` argument of ``copy_kernels.scan``."""
    layout = np.zeros((4, len(columns)), np.int64)
    integers = others = 0
    for i, column in enumerate(columns):
        bits = None if column is None else _INTEGER_BITS.get(column.type.kind)
        layout[0, i] = -1 if bits is None else bits
        layout[1, i] = others if bits is None else integers
        integers, others = integers + (bits is not None), others + (bits is None)
        layout[2, i] = i in options.force_not_null
        layout[3, i] = i in options.force_null
    return layout


def _literal(carriage_return: bool, csv: bool, where: str) -> SqlError:
    """The error for a line end of a different kind than the first one's."""
    what = "carriage return" if carriage_return else "newline"
    if csv:
        message, hint = f"unquoted {what} found in data", f"Use quoted CSV field to represent {what}."
    else:
        escape = "\\r" if carriage_return else "\\n"
        message, hint = f"literal {what} found in data", f'Use "{escape}" to represent {what}.'
    return SqlError("22P04", message, where, hint)


def _shorten(text: str) -> str:
    """At most ``SHOWN`` bytes of a text, cut between characters, as Postgres's limit_printout_length."""
    raw = text.encode()
    return text if len(raw) <= SHOWN else raw[:SHOWN].decode(errors="ignore") + "..."


def _concat(parts: list[Vector]) -> Vector:
    if not parts:
        return Vector(np.zeros(0, np.int64))
    if len(parts) == 1:
        return parts[0]
    words = np.concatenate([part.words for part in parts])
    if all(part.nulls is None for part in parts):
        return Vector(words)
    masks = [np.zeros(len(p.words), np.bool_) if p.nulls is None else p.nulls for p in parts]
    return Vector(words, np.concatenate(masks))
