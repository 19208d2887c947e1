"""CSV and COPY's text format in files: the parser of COPY FROM STDIN, also run on Spark's executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError
from ivm.words import TEXT
from sql.pgwire.copy import CopyParser
from sql.pgwire.copy_header import split_line
from sql.statements.statements import CopyFormat, CopyOptions
from storage.dictionary import Dictionary
from storage.load.columns import LoadColumn, match_names
from storage.load.rejects import Rejects
from storage.load.text import Fields, SampledValue, TextStart
from storage.types.codec import decode
from storage.types.text_style import DEFAULT_STYLE, TextStyle


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """The ``storage.load.text.TextFormat`` of CSV and text. ``options``: positions in FORCE_NULL and its like refer to
    the load's columns.

    ``mapped``: the file's fields are matched by their names in the header or, without one, by their numbers; other
    fields are skipped. Otherwise they are the columns in order, as over the wire. ``exact``: other fields are not
    allowed.
    """

    options: CopyOptions
    columns: tuple[str, ...]
    mapped: bool = False
    style: TextStyle = DEFAULT_STYLE
    exact: bool = False

    @property
    def quote(self) -> str | None:
        """See ``TextFormat``. A separate escape character, or a backslash before a newline, hides where a row ends."""
        options = self.options
        return options.quote if options.format is CopyFormat.CSV and options.quote == options.escape else ""

    def fields(self, first: bytes, columns: Sequence[LoadColumn], file: str) -> Fields:
        if not self.mapped:
            return tuple(columns)
        names = split_line(first, self.options)
        if not self.options.header:
            names = [str(i + 1) for i in range(len(names))]
        match_names(columns, names, file, ignore_extra=not self.exact)
        by_name = {column.source: column for column in columns}
        return tuple(by_name.get(name) for name in names)

    def parser(self, start: TextStart, dictionary: Dictionary, rejects: Rejects | None = None) -> CopyParser:
        names = [None if field is None else field.name for field in start.fields]

        def placed(positions: Sequence[int]) -> tuple[int, ...]:
            return tuple(names.index(self.columns[i]) for i in positions if self.columns[i] in names)

        options = replace(
            self.options, header=self.options.header and not start.lines,
            force_null=placed(self.options.force_null), force_not_null=placed(self.options.force_not_null),
        )  # fmt: skip
        return CopyParser(start.label, start.fields, options, dictionary, self.style, start, rejects)

    def sample(self, data: bytes, whole: bool) -> dict[str, list[SampledValue | None]]:
        first = data.partition(b"\n")[0]
        if not first:
            return {}
        names = split_line(first, self.options)
        if not self.options.header:
            names = [f"column{i + 1}" for i in range(len(names))]
        for name in names:
            if names.count(name) > 1:
                raise SqlError("42701", f'the header has more than one column "{name}"',
                               hint="Create the table yourself, and COPY into it.")  # fmt: skip
        dictionary = Dictionary(bytes(16))
        fields = tuple(LoadColumn(name, TEXT) for name in names)
        passed_over = Rejects("the file", len(data))  # the load will report what is wrong with them
        parser = self.parser(TextStart("the file", fields), dictionary, passed_over)
        parser.feed(data)
        parser.parse()
        block = parser.finish() if whole else parser.take()
        columns = [decode(TEXT, vector, dictionary) for vector in block.vectors]
        return {
            name: [None if text is None else SampledValue(str(text)) for text in column]
            for name, column in zip(names, columns, strict=True)
        }


def of_listed(options: CopyOptions, columns: Sequence[int]) -> CopyOptions:
    """The options with positions in FORCE_NULL and its like changed from the table's columns to the listed ones."""

    def placed(positions: Sequence[int]) -> tuple[int, ...]:
        return tuple(columns.index(i) for i in positions if i in columns)

    force_null, force_not_null = placed(options.force_null), placed(options.force_not_null)
    return replace(options, force_null=force_null, force_not_null=force_not_null)
