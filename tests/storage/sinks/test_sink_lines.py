"""Lines of JSON and CSV, read back by other programs."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from ivm.errors import SqlError
from ivm.words import INT4, ColumnType, SqlType
from storage.dictionary import Dictionary
from storage.sinks.envelope import Nested, SinkField
from storage.sinks.lines import csv_header, csv_lines, json_lines
from storage.types import codec
from storage.types.text import format_text
from tests.storage.sinks.test_sink_arrow import CASES, TEXTS

TYPES = [(type_, values) for type_, values, *_ in [*CASES, *TEXTS]]


def field(type_: SqlType, values: list[Any], dictionary: Dictionary, name: str = "c") -> SinkField:
    return SinkField(name, ColumnType(type_), codec.encode(type_, values, dictionary))


@pytest.mark.parametrize(("type_", "values"), TYPES, ids=lambda v: str(v)[:40])
def test_every_line_is_the_value(type_: SqlType, values: list[Any]) -> None:
    dictionary = Dictionary(bytes(16))
    given = [None, *values, values[0], None]
    column = field(type_, given, dictionary)
    texts = [None if t is None else t.decode() for t in format_text(type_, column.vector, dictionary)]
    found = [json.loads(line)["c"] for line in json_lines((column,), dictionary).decode().split("\n")[:-1]]
    assert [v is None for v in found] == [t is None for t in texts]
    assert found[1] == found[-2]
    for value, text in zip(found, texts, strict=True):
        if isinstance(value, str) and text is not None:
            assert value.replace("T", " ", 1) == text.replace("T", " ", 1)
        elif isinstance(value, bool):
            assert text == ("t" if value else "f")
        elif isinstance(value, int | float) and text is not None:
            assert float(text) == float(value)
    lines = csv_lines((column, field(INT4, [7] * len(given), dictionary, "d")), dictionary).decode()
    rows = list(csv.reader(io.StringIO(csv_header(["c", 'odd "name",']).decode() + lines, newline="")))
    assert rows[0] == ["c", 'odd "name",']
    assert rows[1:] == [["" if t is None else t, "7"] for t in texts]


def test_a_row_without_one_is_null_and_csv_has_no_rows_in_rows() -> None:
    dictionary = Dictionary(bytes(16))
    inner = Nested("after", np.array([False, True]), (field(INT4, [1, None], dictionary, "ä"),))
    lines = json_lines((field(INT4, [5, 6], dictionary), inner), dictionary).decode()
    assert lines == '{"c":5,"after":{"ä":1}}\n{"c":6,"after":null}\n'
    with pytest.raises(SqlError, match="DEBEZIUM"):
        csv_lines((inner,), dictionary)


def test_no_rows_are_no_lines() -> None:
    dictionary = Dictionary(bytes(16))
    assert json_lines((field(INT4, [], dictionary),), dictionary) == b""
    assert csv_lines((field(INT4, [], dictionary),), dictionary) == b""
