"""VALUES of many rows of constants gives what binding each of them gives: rows, types, errors and positions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ivm.errors import SqlError
from planner.expr.literal_rows import LiteralRows
from planner.logical.nodes import Project, Values
from sql.bind.statement import bind_statement
from sql.coordination import transaction
from sql.parse import parse
from sql.statements.queries import Query
from sql.statements.results import RowsResult
from sql.statements.statements import Insert
from sql.syntax.lexing.constant_rows import MANY_ROWS, WIDE
from sql.syntax.lexing.lexer import TokenKind, tokenize
from sql.syntax.nodes.constant_items import ConstantRows
from tests.support.bind_fake import FakeCatalog
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server, text_rows

CELLS: dict[str, Sequence[str]] = {
    "small": ("0", "1", "-1", "7", "32767", "-32768", "2147483647", "-2147483648"),
    "whole": ("0", "1", "-2147483649", "2147483648", "9223372036854775807", "-9223372036854775808"),
    "huge": ("9223372036854775808", "-9223372036854775809", "1", "123456789012345678901234567890"),
    "numeric": ("1.5", "0.0", "-0.0", ".5", "5.", "1e3", "-1.25E-3", "100.00", "99999999.999"),
    "mixed": ("1", "2147483648", "1.5", "-7"),
    "text": ("'a'", "''", "'it''s'", "''''", "'a,b'", "'(1), (2)'", "'näh'", "'a\nb'", "'\\n'", "' x '", "'-- no'"),
    "digits": ("'1'", "' 2 '", "'-3'", "'+4'", "'2147483647'"),
    "date": ("'2024-02-29'", "'1999-01-01'", "'infinity'", "'Jan 5 2020'", "'0044-03-15 BC'"),
    "moment": ("'2024-02-29 10:11:12'", "'2024-02-29'", "'1999-01-01 00:00:00+05'"),
    "now": ("'today'", "'tomorrow'", "'2024-01-01'"),
    "bool": ("true", "FALSE", "True"),
    "yes": ("'t'", "'yes'", "'off'", "'0'"),
    "null": ("NULL", "null"),
    "double": ("'1e300'", "'NaN'", "'-Infinity'", "'0.1'"),
    "bad": ("'x'", "'2024-13-01'", "'99999999999999999999'", "1", "1.5", "true", "'a'"),
    "long": ("'abcdefghijklmnopqrstuvwxyz'", "'ab'", "'ab  '"),
    "uuid": ("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'{A0EEBC999C0B4EF8BB6D6BB9BD380A11}'"),
    "json": ("'{\"a\": 1}'", "'[1,2]'", "'null'"),
    "array": ("'{1,2}'", "'{}'", "'{NULL,3}'"),
    "interval": ("'1 day'", "'1 mon -2 days'", "'25:00:00'"),
    "mood": ("'sad'", "'happy'"),
}  # fmt: skip
TYPES: dict[str, Sequence[str]] = {
    "int2": ("small", "digits", "mixed"), "int4": ("small", "whole", "mixed", "digits", "numeric"),
    "int8": ("small", "whole", "huge", "digits"), "numeric": ("small", "whole", "huge", "numeric", "mixed", "digits"),
    "numeric(8,2)": ("small", "numeric", "mixed", "digits"), "float8": ("small", "whole", "mixed", "numeric", "double"),
    "float4": ("small", "numeric", "double"), "text": ("text", "small", "numeric", "bool", "long"),
    "varchar(4)": ("digits", "long", "small"), "char(3)": ("digits", "long"), "bool": ("bool", "yes", "small"),
    "date": ("date", "now"), "timestamp": ("moment", "date"), "timestamptz": ("moment", "now"), "uuid": ("uuid",),
    "jsonb": ("json",), "int4[]": ("array",), "interval": ("interval",), "mood": ("mood", "text"),
    "positive": ("small", "digits"), "bytea": ("text", "digits"), "name": ("text", "long"),
}  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("rows"))
    client = server.client()
    client.run("CREATE TYPE mood AS ENUM ('sad', 'happy')")
    client.run("CREATE DOMAIN positive AS int CHECK (VALUE > 0)")
    yield client
    server.close()


def column(draw: random.Random, kinds: Sequence[str], count: int) -> list[str]:
    """A column of constants of a kind, perhaps with NULLs, seldom with a constant of another kind."""
    kind = draw.choice(list(kinds))
    cells = [draw.choice(CELLS[kind]) for _ in range(count)]
    for i in range(count):
        if kind != "null" and draw.random() < draw.choice((0, 0, 0.2)):
            cells[i] = draw.choice(CELLS["null"])
        elif draw.random() < 0.002:
            cells[i] = draw.choice(CELLS["bad"])
    return cells


def both(form: str, columns: list[list[str]]) -> tuple[str, str]:
    """A statement with rows of constants, and the same with a comment between them, which are then read one by one."""
    rows = [f"({', '.join(row)})" for row in zip(*columns, strict=True)]
    plain = form.replace("{}", ", ".join(rows))
    within = rows[0].replace(cell := columns[0][0], f"{cell}/*----*/", 1)
    apart = within if len(rows) == 1 else f"{rows[0]}/*----*/, {', '.join(rows[1:])}"
    return plain, form.replace("{}", apart)


def answer(client: Client, text: str) -> object:
    """What a statement gives: its rows and their types, or its error; its position as the text that follows."""
    try:
        result = client.results(text)[-1]
    except SqlError as error:
        at = None if error.position is None else text[error.position - 1 :].replace("/*----*/", "")
        if at is None and error.sqlstate.startswith("22"):
            return "some row's value is wrong"  # which row's is told depends on the order of evaluation
        return error.sqlstate, error.message, error.detail, error.hint, at
    if isinstance(result, RowsResult):
        return text_rows(result), [(c.name, c.type) for c in result.columns]
    return result


def is_bulk(text: str) -> bool:
    return any(t.kind is TokenKind.ROWS for t in tokenize(text))


def test_queries(client: Client) -> None:
    draw = random.Random(1)
    for _ in range(scaled(80)):
        count = draw.choice((1, MANY_ROWS, 20, 300))
        columns = [column(draw, list(CELLS), count) for _ in range(WIDE if count == 1 else draw.randint(1, 4))]
        for form in ("VALUES {}", "SELECT * FROM (VALUES {}) v ORDER BY 1 LIMIT 5"):
            plain, commented = both(form, columns)
            assert is_bulk(plain)
            assert not is_bulk(commented)
            assert answer(client, plain) == answer(client, commented), plain


def test_inserts(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(2)
    monkeypatch.setattr(transaction, "HERE_SECONDS", 60)  # what begins anew has used up numbers of a sequence
    for n in range(scaled(80)):
        count = draw.choice((1, 3, MANY_ROWS, 20, 300))
        few_types = draw.sample(list(TYPES), 6) if n % 2 else list(TYPES)
        types = [draw.choice(few_types) for _ in range(WIDE + 3 if count < MANY_ROWS else draw.randint(1, 4))]
        names = [f"c{i}" for i in range(len(types))]
        more = draw.choice(("", ", z int DEFAULT 7", ", z text DEFAULT 'z'", ", z serial"))
        for side in ("a", "b"):
            definition = ", ".join(f"{c} {t}" for c, t in zip(names, types, strict=True))
            client.run(f"CREATE TABLE {side}{n} ({definition}{more})")
        columns = [column(draw, (*TYPES[t], *(["null"] if draw.random() < 0.1 else [])), count) for t in types]
        order = draw.sample(range(len(types)), len(types))
        target = ", ".join(names[i] for i in order)
        plain, commented = both(f"INSERT INTO a{n} ({target}) VALUES {{}} RETURNING *", [columns[i] for i in order])
        assert is_bulk(plain)
        assert answer(client, plain) == answer(client, commented.replace(f" a{n} ", f" b{n} ")), plain
        assert client.rows(f"TABLE a{n} ORDER BY 1") == client.rows(f"TABLE b{n} ORDER BY 1")
        client.run(f"DROP TABLE a{n}, b{n}")


@pytest.mark.parametrize(
    "rows",
    [
        "(1, 2), (3)", "(1), (1, 2)", "(1), (DEFAULT)", "(1), (- 1)", "(1), (E'a')", "(1), (1 + 1)", "(1), ('a'\n'b')",
        "(1), (1a)", "(1), ()", "(1),", "(1), (2", "(1) (2)", "(1), ('a", "(1), (nulls)", "(1), (x'1')", "(1), ($1)",
        "(1), ((2))", "(1), (2) UNION SELECT 3", "(1), (2); SELECT 4", "(1), (2) ORDER BY 1 DESC LIMIT 1", "(1), (2) x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", ["(1)", "('a')"])
def test_what_follows_is_read_as_ever(client: Client, first: str, rows: str) -> None:
    many = ", ".join([first] * MANY_ROWS)
    text = f"VALUES {many}, {rows}"
    assert answer(client, text) == answer(client, text.replace(", (", "/*----*/, (", 1))


def test_one_wide_row(client: Client) -> None:
    """It is read at once where it is all that VALUES has, and one by one where the grammar has one row."""
    names = ", ".join(f"c{i}" for i in range(WIDE))
    client.run(f"CREATE TABLE wide ({names.replace(',', ' int,')} int)")
    row = ", ".join(map(str, range(WIDE)))
    assert is_bulk(f"INSERT INTO wide VALUES ({row})")
    assert not is_bulk(f"VALUES ({', '.join(['1'] * (WIDE - 1))})")
    client.run(f"MERGE INTO wide w USING (VALUES (0)) v(x) ON w.c0 = v.x WHEN NOT MATCHED THEN INSERT VALUES ({row})")
    client.run(f"INSERT INTO wide ({names}) VALUES ({row})")
    assert client.rows("TABLE wide") == [tuple(map(str, range(WIDE)))] * 2
    assert client.error(f"INSERT INTO wide VALUES ({row}, 1)").position == len(f"INSERT INTO wide VALUES ({row}, 1")
    for text in (f"VALUES ({row}), (1)", f"SELECT values ({row})", f"INSERT INTO wide VALUES ({row}) ({row})"):
        assert answer(client, text) == answer(client, text.replace("(0,", "(0/*----*/,", 1))
    client.run("DROP TABLE wide")


def test_nodes_are_those_of_the_grammar() -> None:
    rows = ", ".join(f"({i}, -{i}.5,'it''s {i}', NULL ,tRue)" for i in range(MANY_ROWS))
    made = parse(f"VALUES {rows}").body.rows  # type: ignore[union-attr]
    assert isinstance(made, ConstantRows)
    grammar = parse(f"VALUES {rows}, (1 + 1, 2, 3, 4, 5)").body.rows  # type: ignore[union-attr]
    assert tuple(made) == grammar[:-1]
    assert made[0] == grammar[0]
    assert made.width == 5


def test_a_column_has_one_type_and_no_expression_for_a_cell() -> None:
    rows = ", ".join(f"({i}, 'x{i}', {i}.5)" for i in range(1000))
    catalog = FakeCatalog("create table d (a numeric(9,2), b text, c numeric, e text default 'q')")
    query = bind_statement(f"VALUES {rows}", catalog).statement
    assert isinstance(query, Query)
    assert isinstance(query.rel, Values)
    assert isinstance(query.rel.rows, LiteralRows)
    insert = bind_statement(f"INSERT INTO d VALUES {rows}", catalog).statement
    assert isinstance(insert, Insert)
    assert isinstance(insert.source, Project)
    assert isinstance(insert.source.input, Values)
    assert isinstance(insert.source.input.rows, LiteralRows)


def test_views_of_constants(client: Client, tmp_path: Path) -> None:
    """They are shown as ever, and are maintained."""
    rows = ", ".join(f"({i}, 'x{i}')" for i in range(20))
    for name, text in (("bulk", rows), ("cells", rows.replace(", (", "/**/, (", 1))):
        client.run(f"CREATE VIEW {name} AS VALUES {text}")
        client.run(f"CREATE MATERIALIZED VIEW m_{name} AS SELECT * FROM (VALUES {text}) v(a, b) WHERE a % 2 = 0")
    shown = [client.rows(f"SELECT pg_get_viewdef('{name}'::regclass)") for name in ("bulk", "cells")]
    assert shown[0] == shown[1]
    for prefix in ("", "m_"):
        assert client.rows(f"TABLE {prefix}bulk ORDER BY 1") == client.rows(f"TABLE {prefix}cells ORDER BY 1")
    assert client.rows("SELECT count(*) FROM m_bulk m JOIN bulk b ON m.a = b.column1") == [("10",)]


def test_equal_numbers_that_are_written_otherwise(client: Client) -> None:
    """1.0 and 1.00 are equal, and not the same constant."""
    one, two = (", ".join([f"({n})"] * MANY_ROWS) for n in ("1.0", "1.00"))
    found = client.rows(f"SELECT x FROM (VALUES {one}) a(x) UNION ALL SELECT x FROM (VALUES {two}) b(x)")
    assert sorted(found) == [("1.0",)] * MANY_ROWS + [("1.00",)] * MANY_ROWS
