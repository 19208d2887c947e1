"""COPY's compiled loops: parsing text and CSV bytes into fields and integers, many rows per call, and framing rows.

All release the GIL. The rules are those of Postgres's ``copyfromparse.c`` (CopyReadLineText, CopyReadAttributesText,
CopyReadAttributesCSV); ``tests/support/copy_twin.py`` is the slow twin. The callers, ``copy.py`` and ``copy_out.py``,
own the layout of ``shape``, ``state`` and the outputs (see ``scan``).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ivm.kernels.cache import kernel
from ivm.rows import Mask, Words

Bytes = NDArray[np.uint8]

# Why a scan stopped.
MORE: Final = 0
"""The remaining row is incomplete: more bytes are needed."""
END: Final = 1
"""The end of the data, or an end-of-copy marker."""
ROOM: Final = 2
"""The outputs are full."""
MISSING: Final = 3
EXTRA: Final = 4
BAD_FIELD: Final = 5
"""An integer's text is invalid; the caller finds out why."""
UNTERMINATED: Final = 6
LITERAL_CR: Final = 7
LITERAL_NL: Final = 8
BAD_MARKER: Final = 9
MARKER_STYLE: Final = 10

# Line ends.
EOL_UNKNOWN: Final = 0
EOL_NL: Final = 1
EOL_CR: Final = 2
EOL_CRNL: Final = 3

# Indexes of ``state``.
AT: Final = 0
LINE: Final = 1
EOL: Final = 2
ROWS: Final = 3
STATUS: Final = 4
COLUMN: Final = 5
ROW_START: Final = 6
ROW_END: Final = 7
FIELD_START: Final = 8
FIELD_END: Final = 9
STATE_SIZE: Final = 10

# Indexes of ``shape``.
CSV: Final = 0
DELIMITER: Final = 1
QUOTE: Final = 2
ESCAPE: Final = 3
FINAL: Final = 4
SHAPE_SIZE: Final = 5

_NEWLINE: Final = 10
_RETURN: Final = 13
_BACKSLASH: Final = 92
_DOT: Final = 46


@kernel
def _line_break(data: Bytes, p: int, end: int, shape: Words, state: Words) -> int:
    """The position after the line break at ``p``. -1: more bytes are needed; -2: an error, its code in STATUS."""
    eol = state[EOL]
    if data[p] == _NEWLINE:
        if eol in (EOL_CR, EOL_CRNL):
            state[STATUS] = LITERAL_NL
            return -2
        state[EOL] = EOL_NL
        return p + 1
    if eol == EOL_NL:
        state[STATUS] = LITERAL_CR
        return -2
    if eol != EOL_CR:
        if p + 1 >= end and shape[FINAL] == 0:
            return -1
        if p + 1 < end and data[p + 1] == _NEWLINE:
            state[EOL] = EOL_CRNL
            return p + 2
        if eol == EOL_CRNL:
            state[STATUS] = LITERAL_CR
            return -2
    state[EOL] = EOL_CR
    return p + 1


@kernel
def _marker(data: Bytes, p: int, end: int, shape: Words, state: Words) -> int:
    """Whether ``\\.`` at ``p`` ends the copy: 1 yes, 0 no (it is data), -1 more bytes are needed, -2 an error."""
    q = p + 2
    eol = state[EOL]
    csv = shape[CSV] != 0
    if q >= end:
        return 1 if shape[FINAL] != 0 else -1
    if eol == EOL_CRNL:
        if data[q] == _RETURN and q + 1 >= end and shape[FINAL] == 0:
            return -1
        if data[q] == _RETURN and q + 1 < end and data[q + 1] == _NEWLINE:
            return 1
        if csv:
            return 0
        state[STATUS] = MARKER_STYLE if data[q] == _NEWLINE else BAD_MARKER
        return -2
    if data[q] not in (_NEWLINE, _RETURN):
        if csv:
            return 0
        state[STATUS] = BAD_MARKER
        return -2
    if (eol == EOL_NL and data[q] != _NEWLINE) or (eol == EOL_CR and data[q] != _RETURN):
        state[STATUS] = MARKER_STYLE
        return -2
    return 1


@kernel
def _read_line(data: Bytes, start: int, end: int, shape: Words, state: Words) -> int:
    """Finds the line at ``start``: stores its end in ROW_END and returns where the next line begins.

    -1: it is incomplete; -2: an error; -3: the end of the data, with any bytes before it as the line.
    """
    csv = shape[CSV] != 0
    quote = shape[QUOTE] if csv else np.int64(-1)
    escape = shape[ESCAPE] if csv and shape[ESCAPE] != shape[QUOTE] else np.int64(-1)
    quoted = False
    escaped = False
    p = start
    while p < end:
        c = data[p]
        if csv:
            if quoted and c == escape:
                escaped = not escaped
            if c == quote and not escaped:
                quoted = not quoted
            if c != escape:
                escaped = False
            if quoted:
                if c == (_NEWLINE if state[EOL] == EOL_NL else _RETURN):
                    state[LINE] += 1
                p += 1
                continue
        if c in (_NEWLINE, _RETURN):
            state[ROW_END] = p
            return _line_break(data, p, end, shape, state)
        if c == _BACKSLASH and (not csv or p == start):
            if p + 1 >= end:
                if shape[FINAL] == 0:
                    return -1
            elif data[p + 1] == _DOT:
                found = _marker(data, p, end, shape, state)
                if found < 0:
                    state[ROW_END] = p
                    return found
                if found == 1:
                    state[ROW_END] = p
                    return -3
                p += 1
            elif not csv:
                p += 1
        p += 1
    if shape[FINAL] == 0:
        return -1
    state[ROW_END] = end
    return -3


@kernel
def _hex_digit(c: int) -> int:
    if 48 <= c <= 57:
        return c - 48
    if 97 <= c <= 102:
        return c - 87
    if 65 <= c <= 70:
        return c - 55
    return -1


@kernel
def _control(c: int) -> int:
    """The character denoted by ``\\c``: b f n r t v are control characters, any other stands for itself."""
    if c == 98:
        return 8
    if c == 102:
        return 12
    if c == 110:
        return 10
    if c == 114:
        return 13
    if c == 116:
        return 9
    if c == 118:
        return 11
    return c


@kernel
def _unescape_text(data: Bytes, start: int, end: int, out: Bytes, at: int) -> int:
    """Copies a text field, resolving its escapes. Returns where the copy ends."""
    p = start
    while p < end:
        c = np.int64(data[p])
        p += 1
        if c == _BACKSLASH and p < end:
            c = np.int64(data[p])
            p += 1
            if 48 <= c <= 55:
                c -= 48
                for _ in range(2):
                    if p < end and 48 <= data[p] <= 55:
                        c = (c << 3) + np.int64(data[p]) - 48
                        p += 1
                    else:
                        break
            elif c == 120 and p < end and _hex_digit(int(data[p])) >= 0:
                c = np.int64(_hex_digit(int(data[p])))
                p += 1
                if p < end and _hex_digit(int(data[p])) >= 0:
                    c = (c << 4) + _hex_digit(int(data[p]))
                    p += 1
            else:
                c = np.int64(_control(int(c)))
        out[at] = np.uint8(c & 255)
        at += 1
    return at


@kernel
def _unquote_csv(data: Bytes, start: int, end: int, quote: int, escape: int, out: Bytes, at: int) -> int:
    """Copies a CSV field without its quotes. Returns where the copy ends."""
    p = start
    quoted = False
    while p < end:
        c = data[p]
        p += 1
        if not quoted:
            if c == quote:
                quoted = True
                continue
        else:
            if c == escape and p < end and data[p] in (escape, quote):
                out[at] = data[p]
                at += 1
                p += 1
                continue
            if c == quote:
                quoted = False
                continue
        out[at] = c
        at += 1
    return at


@kernel
def _field_end_csv(data: Bytes, p: int, end: int, shape: Words) -> tuple[int, bool]:
    """Where the CSV field at ``p`` ends, and whether it is quoted; -1 for an unclosed quote."""
    delimiter, quote, escape = shape[DELIMITER], shape[QUOTE], shape[ESCAPE]
    special = False
    while p < end and data[p] != delimiter:
        if data[p] == quote:
            special = True
            p += 1
            while True:
                if p >= end:
                    return -1, True
                c = data[p]
                p += 1
                if c == escape and p < end and data[p] in (escape, quote):
                    p += 1
                elif c == quote:
                    break
        else:
            p += 1
    return p, special


@kernel
def _field_end_text(data: Bytes, p: int, end: int, delimiter: int) -> tuple[int, bool]:
    """Where the text field at ``p`` ends, and whether it contains escapes."""
    special = False
    while p < end and data[p] != delimiter:
        if data[p] == _BACKSLASH:
            special = True
            p += 1
        p += 1
    return min(p, end), special


@kernel
def _same(data: Bytes, start: int, end: int, other: Bytes) -> bool:
    if end - start != len(other):
        return False
    for i in range(len(other)):  # noqa: SIM110
        if data[start + i] != other[i]:
            return False
    return True


@kernel
def _integer(data: Bytes, start: int, end: int, low: int, high: int) -> tuple[bool, int]:
    """Parses as Postgres's integer input: surrounding spaces, one sign, digits, within [low, high]. Accumulates
    negatively."""
    p = start
    while p < end and (data[p] == 32 or 9 <= data[p] <= 13):
        p += 1
    while end > p and (data[end - 1] == 32 or 9 <= data[end - 1] <= 13):
        end -= 1
    negative = p < end and data[p] == 45
    if p < end and data[p] in (43, 45):
        p += 1
    if p >= end:
        return False, 0
    value = np.int64(0)
    while p < end:
        digit = np.int64(data[p]) - 48
        if digit < 0 or digit > 9 or value < -922337203685477580:
            return False, 0
        value = value * 10
        if value < np.int64(-9223372036854775807) + digit - 1:
            return False, 0
        value -= digit
        p += 1
    if not negative:
        if value == np.int64(-9223372036854775807) - 1:
            return False, 0
        value = -value
    return bool(low <= value <= high), int(value)


@kernel
def _count_fields(data: Bytes, p: int, end: int, shape: Words) -> int:
    """The number of fields in a line; -1 for an unclosed quote."""
    count = 1
    while True:
        if shape[CSV] != 0:
            p, _ = _field_end_csv(data, p, end, shape)
            if p < 0:
                return -1
        else:
            p, _ = _field_end_text(data, p, end, shape[DELIMITER])
        if p >= end:
            return count
        count += 1
        p += 1


@kernel
def _split_row(
    data: Bytes,
    shape: Words,
    null: Bytes,
    columns: Words,
    words: Words,
    nulls: Mask,
    spans: Words,
    scratch: Bytes,
    state: Words,
) -> int:
    """Parses the line [ROW_START, ROW_END) into row ROWS of the outputs. Returns 0 or an error code."""
    row, p, end = state[ROWS], state[ROW_START], state[ROW_END]
    width = columns.shape[1]
    csv = shape[CSV] != 0
    for i in range(width):
        state[COLUMN] = i
        start = p
        if csv:
            p, special = _field_end_csv(data, p, end, shape)
            if p < 0:
                return UNTERMINATED
        else:
            p, special = _field_end_text(data, p, end, shape[DELIMITER])
        state[FIELD_START], state[FIELD_END] = start, p
        last = p >= end
        first, stop, source = start, p, data
        if special and (columns[0, i] >= 0 or columns[3, i] != 0):
            source = scratch
            first = 0
            if csv:
                stop = _unquote_csv(data, start, p, shape[QUOTE], shape[ESCAPE], scratch, 0)
            else:
                stop = _unescape_text(data, start, p, scratch, 0)
        if csv and special:
            absent = columns[3, i] != 0 and _same(scratch, first, stop, null)
        else:
            absent = columns[2, i] == 0 and _same(data, start, p, null)
        nulls[i, row] = absent
        if columns[0, i] < 0:
            spans[columns[1, i], 0, row] = start
            spans[columns[1, i], 1, row] = p if not special else -p - 1
        elif absent:
            words[columns[1, i], row] = 0
        else:
            bits = columns[0, i]
            high = np.int64(4294967295) if bits == 32 else np.int64((np.uint64(1) << np.uint64(bits)) - np.uint64(1))
            low = np.int64(0) if bits == 32 else -high - 1
            fine, value = _integer(source, first, stop, int(low), int(high))
            if not fine:
                extra = _count_fields(data, state[ROW_START], end, shape)
                if extra < 0:
                    return UNTERMINATED
                return EXTRA if extra > width else BAD_FIELD
            words[columns[1, i], row] = value
        if last:
            if i + 1 < width:
                state[COLUMN] = i + 1
                return MISSING
            return 0
        p += 1
    return UNTERMINATED if _count_fields(data, state[ROW_START], end, shape) < 0 else EXTRA


@kernel
def scan(
    data: Bytes,
    shape: Words,
    null: Bytes,
    columns: Words,
    words: Words,
    nulls: Mask,
    spans: Words,
    lines: Words,
    scratch: Bytes,
    state: Words,
) -> None:
    """Parses rows from ``data[state[AT]:]`` until one is incomplete, an error occurs, or the outputs are full.

    ``columns`` int64[4, width]: for an integer column its bits 15, 31 or 63 (32 for oid), else -1; its index among the
    integers or the others; FORCE_NOT_NULL; FORCE_NULL. Outputs: ``words`` int64[integers, room]; ``nulls`` bool[width,
    room]; ``spans`` int64[others, 2, room], start and end of each field in ``data``, the end as -end - 1 if the field
    has escapes or quotes; ``lines`` int64[room], the number of each row's (last) line. ``scratch`` is as long as
    ``data``. ``state``: AT advances past the last complete row, LINE counts lines, ROWS rows, and EOL is detected;
    STATUS says why the scan stopped, ROW_* and FIELD_* where.

    Cost: two passes over the bytes.
    """
    room = nulls.shape[1]
    end = len(data)
    state[STATUS] = MORE
    while True:
        if state[ROWS] >= room:
            state[STATUS] = ROOM
            return
        start, line = state[AT], state[LINE]
        state[ROW_START] = start
        state[LINE] = line + 1
        following = _read_line(data, start, end, shape, state)
        if following == -1:
            state[LINE] = line
            return
        if following == -2:
            return
        if following == -3 and state[ROW_END] == start:
            state[LINE] = line
            state[STATUS] = END
            return
        status = _split_row(data, shape, null, columns, words, nulls, spans, scratch, state)
        if status != 0:
            state[STATUS] = status
            return
        lines[state[ROWS]] = state[LINE]
        state[ROWS] += 1
        if following == -3:
            state[AT] = end
            state[STATUS] = END
            return
        state[AT] = following


@kernel
def skip_line(data: Bytes, shape: Words, state: Words) -> None:
    """Skips one line (a header). STATUS is MORE if it is incomplete, ROOM once it is skipped."""
    start, line = state[AT], state[LINE]
    state[ROW_START] = start
    state[LINE] = line + 1
    state[STATUS] = ROOM
    following = _read_line(data, start, len(data), shape, state)
    if following == -1:
        state[LINE] = line
        state[STATUS] = MORE
    elif following == -3:
        state[AT] = len(data)
        state[STATUS] = END
    elif following >= 0:
        state[AT] = following


@kernel
def gather(data: Bytes, shape: Words, spans: Words, nulls: Mask) -> tuple[Bytes, Words]:
    """One column's fields, unescaped or unquoted, concatenated, and their offsets, int64[rows + 1]."""
    rows = spans.shape[1]
    size = 0
    for i in range(rows):
        end = spans[1, i]
        size += (end if end >= 0 else -end - 1) - spans[0, i]
    out = np.empty(size, np.uint8)
    offsets = np.zeros(rows + 1, np.int64)
    at = 0
    for i in range(rows):
        start, end = spans[0, i], spans[1, i]
        if nulls[i]:
            pass
        elif end >= 0:
            for p in range(start, end):
                out[at] = data[p]
                at += 1
        elif shape[CSV] != 0:
            at = _unquote_csv(data, start, -end - 1, shape[QUOTE], shape[ESCAPE], out, at)
        else:
            at = _unescape_text(data, start, -end - 1, out, at)
        offsets[i + 1] = at
    return out[:at], offsets


@kernel
def plain_ascii(data: Bytes) -> bool:
    """Whether all bytes are ASCII and none is zero."""
    for i in range(len(data)):  # noqa: SIM110
        if data[i] == 0 or data[i] >= 128:
            return False
    return True


@kernel
def frame_rows(data: Bytes, ends: Words) -> Bytes:
    """A CopyData message for each row ``data[ends[i-1]:ends[i]]``."""
    out = np.empty(len(data) + 5 * len(ends), np.uint8)
    at = 0
    start = np.int64(0)
    for i in range(len(ends)):
        end = ends[i]
        length = end - start + 4
        out[at] = 100
        for j in range(4):
            out[at + 1 + j] = np.uint8((length >> np.int64(24 - 8 * j)) & 255)
        at += 5
        for p in range(start, end):
            out[at] = data[p]
            at += 1
        start = end
    return out


def warm() -> Any:
    """Compiles all kernels ahead of the first COPY."""
    data = np.frombuffer(b"1\n", np.uint8)
    state, shape = np.zeros(STATE_SIZE, np.int64), np.zeros(SHAPE_SIZE, np.int64)
    skip_line(data, shape, state)
    columns = np.array([[63], [0], [0], [0]], np.int64)
    nulls, spans = np.zeros((1, 1), np.bool_), np.zeros((0, 2, 1), np.int64)
    words, lines, scratch = np.zeros((1, 1), np.int64), np.zeros(1, np.int64), np.zeros(2, np.uint8)
    scan(data, shape, data, columns, words, nulls, spans, lines, scratch, state)
    gather(data, shape, np.zeros((2, 1), np.int64), nulls[0])
    plain_ascii(data)
    return frame_rows(data, np.array([2]))
