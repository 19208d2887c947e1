"""Rows of many columns: inserted few at a time, where all columns of a type are encoded together, as in one large
INSERT, where each is."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from ivm.rows import FEW, Vector, null_bits, null_mask, pack, unpack
from ivm.words import INT8, ColumnType
from tests.support.sessions import Client, Server

TYPES = ("int", "text", "numeric(9,2)", "numeric", "date", "bool", "float8", "bigint", "varchar(5)", "int[]")
CONSTANTS = {
    "int": ("7", "-1", "NULL"), "text": ("'x'", "'it''s'", "''", "NULL"), "numeric(9,2)": ("1.5", "2", "NULL"),
    "numeric": ("1.50", "10", "NULL"), "date": ("'2024-02-29'", "NULL"), "bool": ("true", "false", "NULL"),
    "float8": ("1.5", "-0", "1", "NULL"), "bigint": ("9000000000", "1", "NULL"), "varchar(5)": ("'abc'", "NULL"),
    "int[]": ("'{1,2}'", "NULL"),
}  # fmt: skip
WIDTH = 130


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    columns = [f"c{i} {TYPES[i % len(TYPES)]}" for i in range(WIDTH)]
    for name in ("one", "many"):
        client.run(f"CREATE TABLE {name} ({', '.join(columns)}, d int DEFAULT 5, e text, f int NOT NULL DEFAULT 6)")
    client.run("CREATE MATERIALIZED VIEW of_one AS SELECT * FROM one WHERE c0 IS NULL OR c0 > 0")
    yield client
    client.run("DROP TABLE one, many CASCADE")
    client.close()


def row(rnd: Random) -> str:
    return f"({', '.join(rnd.choice(CONSTANTS[TYPES[i % len(TYPES)]]) for i in range(WIDTH))})"


def test_few_rows_are_as_many(client: Client) -> None:
    rnd = Random(5)
    rows = [row(rnd) for _ in range(FEW + 3)]
    named = ", ".join(f"c{i}" for i in range(WIDTH))
    client.run(f"INSERT INTO many ({named}) VALUES {', '.join(rows)}")
    for text in rows[:3]:
        client.run(f"INSERT INTO one ({named}) VALUES {text}")
    client.run(f"INSERT INTO one ({named}) VALUES {', '.join(rows[3:])}")
    assert client.sorted("SELECT * FROM one") == client.sorted("SELECT * FROM many")
    assert client.rows("SELECT DISTINCT d, e, f FROM one") == [("5", None, "6")]
    assert client.rows("VERIFY MATERIALIZED VIEW of_one") == []
    client.run("DELETE FROM one WHERE c0 = 7")
    client.run("UPDATE one SET c0 = 7, c1 = NULL WHERE c0 IS NULL")
    assert client.rows("VERIFY MATERIALIZED VIEW of_one") == []


@pytest.mark.parametrize("count", [1, FEW + 1])
def test_a_missing_value_is_refused(client: Client, count: int) -> None:
    values = ", ".join(["(1, NULL, NULL)"] * count)
    error = client.error(f"INSERT INTO one (c0, d, f) VALUES {values}")
    assert (error.sqlstate, error.message) == (
        "23502", 'null value in column "f" of relation "one" violates not-null constraint'
    )  # fmt: skip
    assert error.detail == f"Failing row contains (1, {'null, ' * (WIDTH - 1)}null, null, null)."
    assert client.rows("SELECT count(*) FROM one") == [("0",)]


def test_a_wide_row_is_described_as_its_table(client: Client) -> None:
    client.run("INSERT INTO one (c0) VALUES (1)")
    first = client.results("SELECT * FROM one")[0]
    client.run("DROP MATERIALIZED VIEW of_one")
    client.run("ALTER TABLE one RENAME COLUMN c1 TO renamed")
    client.run("ALTER TABLE one ALTER COLUMN c0 TYPE text")
    second = client.results("SELECT * FROM one")[0]
    assert [c.name for c in first.columns][:2] == ["c0", "c1"]
    assert [(c.name, c.type.kind.value) for c in second.columns][:2] == [("c0", "text"), ("renamed", "text")]
    assert [c.attribute for c in second.columns] == list(range(1, WIDTH + 4))


@pytest.mark.parametrize("width", [1, 63, 64, 65, 130])
def test_null_words_are_as_they_are_for_each_column(width: int) -> None:
    rng = np.random.default_rng(width)
    for count in (0, 1, FEW, FEW + 1):
        mask = rng.random((count, width)) < 0.3
        schema = tuple(ColumnType(INT8, True) for _ in range(width))
        vectors = [Vector(np.where(mask[:, i], 0, i + 1).astype(np.int64), mask[:, i]) for i in range(width)]
        rows = pack(vectors, schema, count)
        assert np.array_equal(rows[:, width:], null_bits(mask))
        assert np.array_equal(null_mask(rows, width), mask)
        for i, vector in enumerate(unpack(rows, schema)):
            assert np.array_equal(vector.words, vectors[i].words)
            nulls = np.zeros(count, np.bool_) if vector.nulls is None else vector.nulls
            assert np.array_equal(nulls, mask[:, i])
            assert vector.nulls is None or vector.nulls.any()
