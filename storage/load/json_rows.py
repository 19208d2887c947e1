"""JSON objects → rows: each value's text is read by its column's input function, as ``jsonb_populate_record`` does.

Numbers keep their digits, so that a numeric is exact. A missing key is NULL, as null is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

from ivm.errors import SqlError
from ivm.words import Kind
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn
from storage.load.rejects import BadValue, Rejects, bad_nulls, first_of_rows, without_rows
from storage.load.source import ColumnBlock
from storage.load.text import Fields, SampledValue, TextStart
from storage.types.text import parse_rows
from storage.types.text_array import format_array
from storage.types.text_json import format_json, parse_json
from storage.types.text_style import DEFAULT_STYLE, TextStyle

SHOWN: Final = 100


class _Number(str):
    """A number's digits as written."""

    __slots__ = ()


_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_BLANKS_AND_COMMAS: Final = re.compile(r"[ \t\r\n,]*")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_DECODER: Final = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_refuse)


def parsed_json(text: str) -> Any:
    """JSON with numbers as written. Raises ValueError, and RecursionError if nested too deeply."""
    return _DECODER.decode(text)


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """``array``: a file is one array of objects; otherwise each line is an object. ``ignore_extra``: keys that match no
    column are ignored; otherwise they are 42703."""

    array: bool = False
    ignore_extra: bool = False
    style: TextStyle = DEFAULT_STYLE

    @property
    def quote(self) -> str | None:
        return "" if self.array else None

    def fields(self, first: bytes, columns: Sequence[LoadColumn], file: str) -> Fields:
        """The columns themselves, since objects name their values."""
        return tuple(columns)

    def parser(self, start: TextStart, dictionary: Dictionary, rejects: Rejects | None = None) -> JsonParser:
        return JsonParser(start, self, dictionary, rejects)

    def sample(self, data: bytes, whole: bool) -> dict[str, list[SampledValue | None]]:
        found: dict[str, list[SampledValue | None]] = {}
        for item in _objects(data, self.array, whole):
            for key, value in item.items():
                found.setdefault(key, []).append(_sampled(value))
        return found


def _objects(data: bytes, array: bool, whole: bool) -> Iterator[dict[str, Any]]:
    """The objects at the beginning of a file, as far as they are complete."""
    text = data.decode(errors="replace").lstrip()
    at, blanks = (1, _BLANKS_AND_COMMAS) if array else (0, _BLANKS)
    while True:
        at = _after(blanks, text, at)
        try:
            item, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        if isinstance(item, dict) and (whole or at < len(text)):
            yield item


def _after(blanks: re.Pattern[str], text: str, at: int) -> int:
    match = blanks.match(text, at)
    return at if match is None else match.end()


def _sampled(value: Any) -> SampledValue | None:
    match value:
        case None:
            return None
        case bool():
            return SampledValue("true" if value else "false", "boolean")
        case _Number():
            return SampledValue(str(value), "number")
        case str():
            return SampledValue(value, "string")
        case _:
            return SampledValue("", "nested")


class _Refused(NamedTuple):
    """A rejected row: its line or array element, the error, and its text in the file."""

    line: int
    error: SqlError
    text: str
    column: str | None = None


class JsonParser:
    """The ``storage.load.text.RowParser`` of JSON objects."""

    def __init__(
        self, start: TextStart, format_: JsonFormat, dictionary: Dictionary, rejects: Rejects | None = None
    ) -> None:
        self._rejects = rejects
        self._refused: list[_Refused] = []
        self._sources: list[str] = []
        self._label, self._line, self._format, self._dictionary = start.label, start.lines, format_, dictionary
        self._columns = [field for field in start.fields if field is not None]
        self._waiting: list[bytes] = []
        self._texts: list[list[str | None]] = [[] for _ in self._columns]
        self._lines: list[int] = []
        self._known = {column.source: i for i, column in enumerate(self._columns)}

    def feed(self, data: bytes) -> None:
        self._waiting.append(data)

    def parse(self) -> None:
        if self._format.array or not self._waiting or b"\n" not in self._waiting[-1]:
            return
        whole, _, rest = b"".join(self._waiting).rpartition(b"\n")
        self._waiting = [rest]
        self._objects(whole)

    def take(self) -> ColumnBlock:
        lines, texts, sources = self._lines, self._texts, self._sources
        self._lines, self._texts, self._sources = [], [[] for _ in self._columns], []
        bad: list[BadValue] = []
        vectors = []
        for i, column in enumerate(self._columns):
            vector, failures = parse_rows(column.type, texts[i], self._dictionary, self._format.style)
            vectors.append(vector)
            bad += [BadValue(row, i, error) for row, error in failures]
            if self._rejects is not None:
                bad += bad_nulls(vector, column, i)
        bad = first_of_rows(bad)
        if bad and self._rejects is None:
            row, i, error = bad[0]
            text = _shorten(texts[i][row] or "")
            where = f'{self._where(lines[row])}, column {self._columns[i].name}: "{text}"'
            raise SqlError(error.sqlstate, error.message, where, error.hint)
        for row, i, error in bad:
            self._refused.append(_Refused(lines[row], error, sources[row], self._columns[i].name))
        self._reject()
        return ColumnBlock(*without_rows(vectors, bad, len(lines))) if bad else ColumnBlock(vectors, len(lines))

    def _reject(self) -> None:
        """Reports the rows rejected since the last call, in the file's order. Raises TooManyRejects."""
        refused, self._refused = self._refused, []
        for line, error, text, column in sorted(refused, key=lambda row: row.line):
            assert self._rejects is not None, "else the first is raised"
            self._rejects.add(error, text, line, column)

    def finish(self) -> ColumnBlock:
        data = b"".join(self._waiting)
        self._waiting = []
        if self._format.array:
            self._array(data)
        elif data:
            self._objects(data)
        return self.take()

    def _objects(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            self._line += 1
            try:
                text = self._decoded(line).strip()
                if text:
                    self._add(self._parsed(text), text)
            except SqlError as error:
                if self._rejects is None:
                    raise
                self._refused.append(_Refused(self._line, error, line.decode(errors="replace").strip()))

    def _array(self, data: bytes) -> None:
        text = self._decoded(data).strip()
        found = self._parsed(text) if text else []
        if not isinstance(found, list):
            raise SqlError("22P04", "the file is not one JSON array", f"COPY {self._label}",
                           "Leave the option ARRAY out for a file with an object on each line.")  # fmt: skip
        for item in found:
            self._line += 1
            source = "" if self._rejects is None else _source(item)
            try:
                self._add(item, source)
            except SqlError as error:
                if self._rejects is None:
                    raise
                self._refused.append(_Refused(self._line, error, source))

    def _where(self, line: int) -> str:
        return f"COPY {self._label}, {'element' if self._format.array else 'line'} {line}"

    def _decoded(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            message = f'invalid byte sequence for encoding "UTF8": 0x{data[error.start]:02x}'
            raise SqlError("22021", message, self._where(max(1, self._line))) from None

    def _parsed(self, text: str) -> Any:
        try:
            return parsed_json(text)
        except (ValueError, RecursionError):
            where = f'{self._where(max(1, self._line))}: "{_shorten(text)}"'
            hint = None
            if text.startswith("[") and not self._format.array:
                hint = "A file that is one array is read with the option ARRAY."
            raise SqlError("22P02", "invalid input syntax for type json", where, hint) from None

    def _add(self, item: Any, source: str) -> None:
        if not isinstance(item, dict):
            hint = "A file that is one array is read with the option ARRAY." if isinstance(item, list) else None
            raise SqlError("22P04", "a row must be a JSON object", self._where(self._line), hint)
        if not self._format.ignore_extra:
            for key in item:
                if key not in self._known:
                    raise SqlError(
                        "42703", f'the target has no column "{_shorten(key)}"', self._where(self._line),
                        "Name the columns to load to leave the others out: COPY table (column, ...) FROM ...",
                    )  # fmt: skip
        found = [(i, self._text(item.get(key), self._columns[i])) for key, i in self._known.items()]
        self._lines.append(self._line)
        for i, text in found:
            self._texts[i].append(text)
        if self._rejects is not None:
            self._sources.append(source)

    def _text(self, value: Any, column: LoadColumn) -> str | None:
        try:
            return json_text(value, column.type.kind)
        except SqlError as error:
            where = f"{self._where(self._line)}, column {column.name}"
            raise SqlError(error.sqlstate, error.message, where) from None


def json_text(value: Any, kind: Kind) -> str | None:
    """The text of a parsed value for a column's input function. Raises 22P05 for text that cannot be stored."""
    try:
        return _text_of(value, kind)
    except (SqlError, UnicodeEncodeError) as error:
        message = error.message if isinstance(error, SqlError) else "unsupported Unicode escape sequence"
        raise SqlError("22P05", message) from None


def _text_of(value: Any, kind: Kind) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case list() if kind is Kind.ARRAY:
            return format_array(value, _element, lambda item: not isinstance(item, list))
        case _Number():
            return str(value)
        case str() if kind not in (Kind.JSON, Kind.JSONB):
            value.encode()
            return value
        case _:
            text = format_json(_exact(value))
            text.encode()
            return text


def _source(item: Any) -> str:
    """An array element as JSON."""
    try:
        return format_json(_exact(item))
    except (SqlError, UnicodeEncodeError):
        return json.dumps(item)


def _element(item: Any) -> str:
    return _text_of(item, Kind.TEXT) or ""


def _exact(value: Any) -> Any:
    """A value with its numbers as numerics."""
    match value:
        case _Number():
            return parse_json(value)
        case list():
            return [_exact(item) for item in value]
        case dict():
            return {key: _exact(item) for key, item in value.items()}
        case _:
            return value


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
