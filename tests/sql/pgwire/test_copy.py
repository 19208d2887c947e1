"""COPY's parser against a slow twin and against errors of a real PostgreSQL 15; its writer against the parser."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.rows import RowSet, Vector, pack
from ivm.stops import stoppable
from ivm.words import BOOL, DATE, INT2, INT4, INT8, OID, TEXT, VARCHAR, ColumnType, SqlType
from planner.expr.functions import pieces
from sql.catalog.catalog import TableColumn
from sql.pgwire import copy_out
from sql.pgwire.copy import CopyParser
from sql.pgwire.copy_out import CopyRows, format_copy, format_header, frame_copy
from sql.pgwire.copy_writer import CopyWriter
from sql.pgwire.messages_frontend import CopyData
from sql.session.copy_out import written_here
from sql.statements.statements import CopyFormat, CopyOptions
from storage.dictionary import Dictionary
from storage.long_values import LONG
from storage.types import codec
from storage.types.text_style import DEFAULT_STYLE
from tests.support.copy_twin import Row, TwinError, parse_csv, parse_text

DICTIONARY = Dictionary(b"k" * 16)
CSV = CopyOptions(CopyFormat.CSV, ",", "")
TEXTS = CopyOptions()


def parse(data: bytes, types: list[SqlType], options: CopyOptions, cuts: list[int] | None = None) -> list[list[object]]:
    """Parses rows to lists of datums; with ``cuts``, the data is fed in chunks, each parsed separately."""
    columns = [TableColumn("abcdefgh"[i], t) for i, t in enumerate(types)]
    parser = CopyParser("t", columns, options, DICTIONARY)
    at = 0
    for cut in sorted(cuts or []):
        parser.feed(data[at:cut])
        parser.parse()
        at = max(at, cut)
    parser.feed(data[at:])
    vectors, count = parser.finish()
    datums = [codec.decode(t, v, DICTIONARY) for t, v in zip(types, vectors, strict=True)]
    assert all(len(d) == count for d in datums)
    return [list(row) for row in zip(*datums, strict=True)]


def outcome(twin: Callable[..., list[Row]], *args: object) -> list[Row] | TwinError:
    """What the twin gives, rows or error."""
    try:
        return twin(*args)
    except TwinError as error:
        return error


PIECES = st.sampled_from(
    ["a", "1", "-5", "\t", ",", ";", "\n", "\\", "\\N", '"', '""', "\\.", "\\.\n", "x", "é", " ", "\\t", "\\x41", "\\7"]
)
CUTS = st.lists(st.integers(0, 60), max_size=4)


@given(st.lists(PIECES, max_size=25).map("".join), st.integers(1, 3), CUTS)
def test_text_is_as_the_twin_reads_it(data: str, width: int, cuts: list[int]) -> None:
    expected = outcome(parse_text, data, width)
    if isinstance(expected, list):
        assert parse(data.encode(), [TEXT] * width, TEXTS, cuts) == expected
        return
    with pytest.raises(SqlError) as raised:
        parse(data.encode(), [TEXT] * width, TEXTS, cuts)
    message, line = expected.args
    assert raised.value.message.startswith(message)
    assert f"line {line}" in (raised.value.detail or "")


CSV_VARIANTS = st.sampled_from(
    [CSV, CopyOptions(CopyFormat.CSV, ",", "", escape="\\"), CopyOptions(CopyFormat.CSV, ";", "x")]
)


@given(st.lists(PIECES, max_size=25).map("".join), st.integers(1, 3), CUTS, CSV_VARIANTS)
def test_csv_is_as_the_twin_reads_it(data: str, width: int, cuts: list[int], options: CopyOptions) -> None:
    expected = outcome(parse_csv, data, width, options.delimiter, options.null, options.quote, options.escape)
    if isinstance(expected, list):
        assert parse(data.encode(), [TEXT] * width, options, cuts) == expected
        return
    with pytest.raises(SqlError) as raised:
        parse(data.encode(), [TEXT] * width, options, cuts)
    assert raised.value.sqlstate == "22P04"
    assert raised.value.message.startswith(expected.args[0])


INTEGERS = [(INT2, 15), (INT4, 31), (INT8, 63)]


@given(st.sampled_from(INTEGERS), st.data())
def test_integers_are_parsed_within_their_range(kind: tuple[SqlType, int], data: st.DataObject) -> None:
    type_, bits = kind
    near = st.sampled_from([-(2**bits) - 1, -(2**bits), 2**bits - 1, 2**bits, 0, 10**19, -(10**19), 2**64])
    value = data.draw(st.one_of(near, st.integers(-(2**bits), 2**bits - 1)))
    signs = ["{}", " {}", "{} "] + (["0{}", "+{}"] if value >= 0 else [])
    text = data.draw(st.sampled_from(signs)).format(value)
    if -(2**bits) <= value < 2**bits:
        assert parse(f"{text}\n".encode(), [type_], TEXTS) == [[value]]
    else:
        with pytest.raises(SqlError) as raised:
            parse(f"{text}\n".encode(), [type_], TEXTS)
        assert raised.value.sqlstate == "22003"


@pytest.mark.parametrize(
    ("data", "options", "sqlstate", "message", "context"),
    [
        # taken from PostgreSQL 15.18: create table t (a int, b text); copy t from stdin
        (b"1\n", TEXTS, "22P04", 'missing data for column "b"', 'COPY t, line 1: "1"'),
        (b"1\tx\n2\ty\tz\n", TEXTS, "22P04", "extra data after last expected column", 'COPY t, line 2: "2\ty\tz"'),
        (b"x\ty\n", TEXTS, "22P02", 'invalid input syntax for type integer: "x"', 'COPY t, line 1, column a: "x"'),
        (b"\t1\n", TEXTS, "22P02", 'invalid input syntax for type integer: ""', 'COPY t, line 1, column a: ""'),
        (b"1\ta\nx\n", TEXTS, "22P02", 'invalid input syntax for type integer: "x"', 'COPY t, line 2, column a: "x"'),
        (b"x\ty\tz\n", TEXTS, "22P04", "extra data after last expected column", 'COPY t, line 1: "x\ty\tz"'),
        (
            b"99999999999\ty\n", TEXTS, "22003", 'value "99999999999" is out of range for type integer',
            'COPY t, line 1, column a: "99999999999"',
        ),
        (b"1\ta\n2\tb\r\n", TEXTS, "22P04", "literal carriage return found in data", "COPY t, line 2"),
        (b"1\ta\r\n2\tb\n", TEXTS, "22P04", "literal newline found in data", "COPY t, line 2"),
        (b"1\ta\n\\.x\n", TEXTS, "22P04", "end-of-copy marker corrupt", "COPY t, line 2"),
        (b'1,"abc\n', CSV, "22P04", "unterminated CSV quoted field", 'COPY t, line 1: "1,"abc'),
        (b'9,z\n1,"a\nb"\nx,y\n', CSV, "22P02", 'invalid input syntax for type integer: "x"', "line 4, column a"),
        (b"1,a\r\n2,b\n", CSV, "22P04", "unquoted newline found in data", "COPY t, line 2"),
        (b"1\ta\xff\n", TEXTS, "22021", 'invalid byte sequence for encoding "UTF8": 0xff', "COPY t, line 1"),
        (b"1\ta\n2\t\\xff\n", TEXTS, "22021", 'invalid byte sequence for encoding "UTF8": 0xff', "COPY t, line 2"),
        (b"1\ta\x00\n", TEXTS, "22021", 'invalid byte sequence for encoding "UTF8": 0x00', "COPY t, line 1"),
    ],
)  # fmt: skip
def test_errors_are_postgres_s(data: bytes, options: CopyOptions, sqlstate: str, message: str, context: str) -> None:
    with pytest.raises(SqlError) as raised:
        parse(data, [INT4, TEXT], options)
    error = raised.value
    assert (error.sqlstate, error.message) == (sqlstate, message)
    assert context in (error.detail or "")


def test_the_first_failing_row_is_told_whatever_its_column() -> None:
    data = b"2020-01-01\tt\n2020-01-02\tmaybe\n2020-99-01\tt\n"
    with pytest.raises(SqlError) as raised:
        parse(data, [DATE, BOOL], TEXTS)
    assert raised.value.detail == 'COPY t, line 2, column b: "maybe"'


def test_typed_columns_nulls_and_force_options() -> None:
    options = CopyOptions(CopyFormat.CSV, ",", "NIL", force_null=(1,), force_not_null=(2,))
    data = b'NIL,"NIL",NIL,4294967295\n7,NIL,"x",0\n'
    assert parse(data, [INT8, TEXT, TEXT, OID], options) == [[None, None, "NIL", 4294967295], [7, None, "x", 0]]
    assert parse(b"t\t2000-01-02\n\\N\t\\N\n", [BOOL, DATE], TEXTS) == [[True, 1], [None, None]]
    with pytest.raises(SqlError) as raised:
        parse(b"abcd\n", [SqlType(VARCHAR.kind, 3)], TEXTS)
    assert raised.value.sqlstate == "22001"


def test_headers_and_line_ends() -> None:
    header = CopyOptions(CopyFormat.CSV, ",", "", header=True)
    assert parse(b'a,"b\nc"\r\n1,x\r\n2,y\r\n', [INT4, TEXT], header, [3, 7, 9]) == [[1, "x"], [2, "y"]]
    assert parse(b"1\tx\r2\ty\r", [INT4, TEXT], TEXTS, [4]) == [[1, "x"], [2, "y"]]
    assert parse(b"a\n", [INT4], CopyOptions(header=True)) == []
    assert parse(b"", [INT4], header) == []
    assert parse(b"1\n\\.\ngarbage", [INT4], TEXTS) == [[1]]


@pytest.mark.parametrize(
    ("data", "csv", "message"),
    [
        (b'a,"b,""c"\n1,2\n', True, None),
        (b'a\tb,"c\r\n1\t2\r\n', False, None),
        (b"a,b\n1,2\n", True, 'column name mismatch in header line field 2: got "b", expected "b,"c"'),
        (b"A\tb\n", False, 'column name mismatch in header line field 1: got "A", expected "a"'),
        (b"a,\n", True, 'column name mismatch in header line field 2: got null value (""), expected "b,"c"'),
        (b"a\n1,2\n", True, "wrong number of fields in header line: got 1, expected 2"),
        (b"a\tb\tc\n", False, "wrong number of fields in header line: got 3, expected 2"),
    ],
)
def test_a_header_that_must_match(data: bytes, csv: bool, message: str | None) -> None:
    options = replace(CSV if csv else TEXTS, header=True, match_header=True)
    parser = CopyParser("t", [TableColumn("a", INT4), TableColumn('b,"c', INT4)], options, DICTIONARY)
    parser.feed(data)
    if message is None:
        assert parser.finish().size == 1
        return
    with pytest.raises(SqlError) as raised:
        parser.finish()
    assert (raised.value.sqlstate, raised.value.message) == ("22P04", message)
    assert (raised.value.detail or "").startswith("COPY t, line 1: ")


@pytest.mark.parametrize(
    ("options", "sqlstate"),
    [
        (CopyOptions(delimiter="ab"), "0A000"),
        (CopyOptions(delimiter="\n"), "22023"),
        (CopyOptions(delimiter="a"), "22023"),
        (CopyOptions(null="a\n"), "22023"),
        (CopyOptions(delimiter=",", null="a,"), "0A000"),
        (CopyOptions(CopyFormat.CSV, ",", "", quote=","), "22023"),
        (CopyOptions(CopyFormat.CSV, ",", '"'), "0A000"),
    ],
)
def test_bad_options(options: CopyOptions, sqlstate: str) -> None:
    with pytest.raises(SqlError) as raised:
        CopyParser("t", [TableColumn("a", INT4)], options, DICTIONARY)
    assert raised.value.sqlstate == sqlstate


VALUES = st.one_of(st.none(), st.text(st.sampled_from('a,;"\\\t\n\r\vé.N1'), max_size=6))


def rowset(rows: list[tuple[str | None, int | None]]) -> RowSet:
    schema = (ColumnType(TEXT), ColumnType(INT4))
    vectors = [codec.encode(c.type, [row[i] for row in rows], DICTIONARY) for i, c in enumerate(schema)]
    return RowSet(pack(vectors, schema, len(rows)), schema)


WRITERS = st.sampled_from(
    [TEXTS, CSV, CopyOptions(delimiter=";", null="nil"), CopyOptions(CopyFormat.CSV, ";", "1"),
     CopyOptions(CopyFormat.CSV, ",", "", escape="\\"), CopyOptions(CopyFormat.CSV, ",", "a", force_quote=(0, 1))]
)  # fmt: skip


@given(st.lists(st.tuples(VALUES, st.one_of(st.none(), st.integers(-99, 99))), max_size=6), WRITERS)
def test_what_is_written_reads_back(rows: list[tuple[str | None, int | None]], options: CopyOptions) -> None:
    written = format_copy(rowset(rows), options, DICTIONARY)
    assert len(written.ends) == len(rows)
    assert parse(bytes(written), [TEXT, INT4], options) == [list(row) for row in rows]


@given(st.lists(st.tuples(VALUES, st.none()), min_size=1, max_size=6), WRITERS)
def test_long_values_are_written_by_pieces(rows: list[tuple[str | None, int | None]], options: CopyOptions) -> None:
    whole = format_copy(rowset(rows), options, DICTIONARY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", 2)
        patch.setattr(copy_out, "SHORT", 0)
        assert format_copy(rowset(rows), options, DICTIONARY) == whole


@pytest.mark.parametrize("options", [TEXTS, CSV])
def test_writing_a_long_value_ends_when_cancelled(options: CopyOptions) -> None:
    rows, cancel = rowset([("x" * (2 * pieces.PIECE), None)]), threading.Event()
    cancel.set()
    with pytest.raises(SqlError, match="canceling statement"), stoppable(cancel):
        format_copy(rows, options, DICTIONARY)


@pytest.mark.parametrize("options", [TEXTS, CSV, CopyOptions(CopyFormat.BINARY)])
def test_long_values_are_not_written_on_the_event_loop(options: CopyOptions) -> None:
    short, long = rowset([("x", 1)]), rowset([("x", 1), ("x" * (LONG + 1), 2)])
    writer = CopyWriter(options, ["a", "b"], DICTIONARY)
    assert written_here(writer, long, DEFAULT_STYLE) is None
    written = writer.rows(long, DEFAULT_STYLE)
    other = CopyWriter(options, ["a", "b"], DICTIONARY)
    assert written.startswith(other.rows(short, DEFAULT_STYLE))
    assert written_here(writer, short, DEFAULT_STYLE) == other.rows(short, DEFAULT_STYLE)


def test_formats_are_postgres_s() -> None:
    rows = rowset([("a\tb\\", 1), (None, None), ('q"', 2), ("", 3)])
    assert bytes(format_copy(rows, TEXTS, DICTIONARY)) == b'a\\tb\\\\\t1\n\\N\t\\N\nq"\t2\n\t3\n'
    assert bytes(format_copy(rows, CSV, DICTIONARY)) == b'a\tb\\,1\n,\n"q""",2\n"",3\n'
    one = RowSet(pack([Vector(DICTIONARY.intern([b"\\."]))], (ColumnType(TEXT),), 1), (ColumnType(TEXT),))
    assert bytes(format_copy(one, CSV, DICTIONARY)) == b'"\\."\n'
    assert bytes(format_header(["a", "b,c"], CSV)) == b'a,"b,c"\n'


def test_each_row_is_a_message() -> None:
    rows = CopyRows.of([b"1\n", b"", b"33\n"])
    assert frame_copy(rows) == b"".join(CopyData(data).encode() for data in (b"1\n", b"", b"33\n"))
    assert frame_copy(b"1\n2\n") is None


def test_many_integers_stay_exact() -> None:
    words = np.arange(40_000, dtype=np.int64) * 7919 - 10**8
    data = "".join(f"{w}\t{w + 1}\n" for w in words.tolist()).encode()
    parser = CopyParser("t", [TableColumn("a", INT4), TableColumn("b", INT8)], TEXTS, DICTIONARY)
    for at in range(0, len(data), 65_521):
        parser.feed(data[at : at + 65_521])
        if parser.ready:
            parser.parse()
    (a, b), count = parser.finish()
    assert count == len(words)
    assert (a.words == words).all()
    assert (b.words == words + 1).all()
