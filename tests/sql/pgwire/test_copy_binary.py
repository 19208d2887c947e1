"""COPY's binary format: round trips in chunks of any size, against a real client, and Postgres's errors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from ivm.rows import RowSet, pack
from ivm.words import FLOAT8, INT4, NUMERIC, TEXT, TIMESTAMP, ColumnType
from sql.catalog.catalog import TableColumn
from sql.pgwire.copy_binary import HEADER, TRAILER, BinaryParser, format_binary
from storage.dictionary import Dictionary
from storage.types import codec
from tests.programs.crashes import Program

DICTIONARY = Dictionary(b"0123456789abcdef")
TYPES = (INT4, TEXT, FLOAT8, NUMERIC, TIMESTAMP)
COLUMNS = [TableColumn(name, type_) for name, type_ in zip("abcde", TYPES, strict=True)]
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=5),
        st.none() | st.floats(allow_nan=False),
        st.none() | st.decimals(-(10**12), 10**12, places=3),
        st.none() | st.integers(-(2**60), 2**60),
    ),
    max_size=8,
)
ONE = struct.pack("!hi", 1, 4) + b"\0\0\0\7"


@given(ROWS, st.lists(st.integers(0, 400), max_size=4))
def test_rows_come_back(rows: list[tuple[object, ...]], cuts: list[int]) -> None:
    schema = tuple(ColumnType(t) for t in TYPES)
    vectors = [codec.encode(t, [row[i] for row in rows], DICTIONARY) for i, t in enumerate(TYPES)]
    data = HEADER + format_binary(RowSet(pack(vectors, schema, len(rows)), schema), DICTIONARY) + TRAILER
    parser = BinaryParser("t", COLUMNS, DICTIONARY)
    for start, end in pairwise([0, *sorted(min(c, len(data)) for c in cuts), len(data)]):
        parser.feed(data[start:end])
        parser.parse()
    found, count = parser.finish()
    assert count == len(rows)
    decoded = [codec.decode(t, v, DICTIONARY) for t, v in zip(TYPES, found, strict=True)]
    assert list(zip(*decoded, strict=True)) == rows


@pytest.mark.parametrize(
    ("data", "sqlstate", "message"),
    [
        (b"1\t2\n", "22P04", "COPY file signature not recognized"),
        (b"", "22P04", "COPY file signature not recognized"),
        (HEADER[:11] + struct.pack("!Ii", 1 << 16, 0), "22P04", "invalid COPY file header (WITH OIDS)"),
        (HEADER[:11] + struct.pack("!Ii", 1 << 20, 0), "22P04", "unrecognized critical flags in COPY file header"),
        (HEADER[:11] + struct.pack("!Ii", 0, -5), "22P04", "invalid COPY file header (wrong length)"),
        (HEADER + struct.pack("!h", 2), "22P04", "row field count is 2, expected 1"),
        (HEADER + ONE[:-1], "22P04", "unexpected EOF in COPY data"),
        (HEADER + struct.pack("!hi", 1, -7), "22P04", "invalid field size"),
        (HEADER + ONE + TRAILER + b"x", "22P04", "received copy data after EOF marker"),
        (HEADER + struct.pack("!hi", 1, 2) + b"\0\1" + TRAILER, "22P03", "incorrect binary data format"),
    ],
)
def test_bad_data(data: bytes, sqlstate: str, message: str) -> None:
    parser = BinaryParser("t", COLUMNS[:1], DICTIONARY)
    parser.feed(data)
    with pytest.raises(SqlError) as raised:
        parser.finish()
    assert raised.value.sqlstate == sqlstate
    assert message in raised.value.message
    assert (raised.value.detail or "").startswith("COPY t, line ")


def test_data_may_end_without_its_trailer_and_a_header_may_be_longer() -> None:
    parser = BinaryParser("t", COLUMNS[:1], DICTIONARY)
    parser.feed(HEADER[:15] + struct.pack("!i", 3) + b"abc" + ONE)
    (vector,), count = parser.finish()
    assert (vector.words.tolist(), count) == ([7], 1)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    running = Program(tmp_path_factory.mktemp("binary"), ())
    running.wait()
    yield running
    running.kill()


def test_a_client_copies_in_and_out(program: Program) -> None:
    rows = [(1, "a", Decimal("1.50")), (2, None, None), (3, "é", Decimal(-7))]
    types = ["int4", "text", "numeric"]
    with program.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c numeric)")
        with cursor.copy("COPY t FROM STDIN WITH (FORMAT binary)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == len(rows)
        for query, expected in (("SELECT * FROM t ORDER BY a", rows), ("SELECT * FROM t WHERE a > 9", [])):
            with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)") as copy:  # type: ignore[arg-type]
                copy.set_types(types)
                assert list(copy.rows()) == expected
        with pytest.raises(psycopg.errors.BadCopyFileFormat), cursor.copy("COPY t FROM STDIN (FORMAT binary)") as copy:
            copy.write(b"no")
        with pytest.raises(psycopg.errors.SyntaxError):
            cursor.execute("COPY t TO STDOUT (FORMAT binary, DELIMITER ',')")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_numerics_of_any_scale(program: Program) -> None:
    """The wire's values have the digits after the point that the column's scale asks for, and its modifier."""
    given = [(Decimal("12499.99"), Decimal("0.001234")), (Decimal(-500), Decimal("-0.009994")), (None, None)]
    held = [(Decimal(12000), Decimal("0.00123")), (Decimal(-1000), Decimal("-0.00999")), (None, None)]
    with program.connect() as connection, connection.cursor(binary=True) as cursor:
        cursor.execute("CREATE TABLE scales (a numeric(2,-3), b numeric(3,5))")
        with cursor.copy("COPY scales FROM STDIN WITH (FORMAT binary)") as copy:
            copy.set_types(["numeric", "numeric"])
            for row in given:
                copy.write_row(row)
        cursor.execute("SELECT * FROM scales ORDER BY a DESC NULLS LAST")
        assert cursor.fetchall() == held
        assert cursor.pgresult is not None
        assert [cursor.pgresult.fmod(i) for i in range(2)] == [133121, 196617]
        with cursor.copy("COPY (SELECT * FROM scales ORDER BY a DESC NULLS LAST) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["numeric", "numeric"])
            assert [tuple(map(str, row)) for row in copy.rows()] == [tuple(map(str, row)) for row in held]
        with pytest.raises(psycopg.errors.NumericValueOutOfRange), cursor.copy("COPY scales FROM STDIN") as copy:
            copy.write(b"99500\t0\n")


def test_untyped_literals_in_rows_are_of_type_unknown(program: Program) -> None:
    """As in PostgreSQL, whose clients tell them from texts in binary: psycopg reads them as bytes."""
    with program.connect() as connection, connection.cursor(binary=True) as cursor:
        for query, expected in (
            ("SELECT row('a', NULL, 1, 'b' || 'c', row('d', 'e'::text))", (b"a", None, 1, "bc", (b"d", "e"))),
            ("SELECT row('[0:1]={7,8}'::int[], '{1}'::int[])", ([7, 8], [1])),
        ):
            assert cursor.execute(query).fetchone() == (expected,)
