"""Operators on two constants are computed when they are bound, with the results and errors that they have later."""

from __future__ import annotations

from itertools import product

import pytest

from ivm.errors import SqlError
from planner.expr.scalar import Call, Literal
from planner.logical.nodes import Project
from sql.bind.folding import folded
from tests.support.bind_fake import FakeCatalog, query
from tests.support.sessions import Client

NUMBERS = (
    "0", "1", "-1", "7", "2147483647", "-2147483648", "2147483648", "9223372036854775807", "-9223372036854775808",
)  # fmt: skip
DATES = ("date '2024-02-29'", "date 'infinity'", "date '4713-01-01 BC'", "date '5874897-12-31'")


def answer(client: Client, text: str) -> object:
    try:
        return client.rows(text)
    except SqlError as error:
        return error.sqlstate, error.message


@pytest.mark.parametrize(
    "pairs",
    [
        [f"{a} {o} {b}" for o in "+-*" for a, b in product(NUMBERS, NUMBERS)],
        [f"{a} {o} {b}" for o in "+-" for a, b in product(DATES, ("0", "1", "-1", "2147483647"))],
        [f"{a} || {b}" for a, b in product(("'x'", "''", "'y'::text", "NULL", "'z'::varchar(1)", "3"), repeat=2)],
    ],
)
def test_the_same_as_when_it_runs(client: Client, monkeypatch: pytest.MonkeyPatch, pairs: list[str]) -> None:
    now = [answer(client, f"SELECT {p} AS x") for p in pairs]
    monkeypatch.setattr("sql.bind.operators.folded", lambda call: call)
    assert now == [answer(client, f"SELECT {p} AS y") for p in pairs]


def test_a_chain_is_one_constant() -> None:
    catalog = FakeCatalog("create table t (a int)")
    for text, value in (
        (" + ".join(map(str, range(2000))), 1999000), (" || ".join(["'ab'"] * 2000), "ab" * 2000),
        ("date '2000-01-01' + 5 + 6 - 1", 10), ("3000000000 * 2 - 1", 5999999999),
    ):  # fmt: skip
        rel = query(f"select {text} from t", catalog).rel
        assert isinstance(rel, Project)
        assert isinstance(rel.exprs[0], Literal)
        assert rel.exprs[0].value == value


def test_what_fails_or_is_long_is_left(client: Client) -> None:
    catalog = FakeCatalog("create table t (a int)")
    long = "'" + "x" * 10_000 + "'"
    for text in ("2147483647 + 1", "1 / 0", "1 + a", "NULL + 1", f"{long} || {long}"):
        rel = query(f"select {text} from t", catalog).rel
        assert isinstance(rel, Project)
        assert isinstance(rel.exprs[0], Call)
        assert folded(rel.exprs[0]) is rel.exprs[0]
    assert client.rows("SELECT CASE WHEN false THEN 2147483647 + 1 ELSE 5 END") == [("5",)]


def test_texts_put_together_are_made_once(client: Client) -> None:
    """``a || b || …`` is one call, whose work is in proportion to its result, with NULLs and shared parts."""
    client.run("CREATE TABLE parts (a text, b text, n int)")
    client.run("INSERT INTO parts VALUES ('x', 'y', 1), ('x', NULL, 2), (NULL, NULL, 3), ('', 'z', 4)")
    many = " || ".join(["a", "b", "n::text"] * 200)
    client.run(f"CREATE MATERIALIZED VIEW joined AS SELECT n, {many} AS t FROM parts")
    expected = [("1", "xy1" * 200), ("2", None), ("3", None), ("4", "z4" * 200)]
    assert client.rows(f"SELECT n, {many} FROM parts ORDER BY n") == expected
    assert client.rows("SELECT n, t FROM joined ORDER BY n") == expected
    twice = "SELECT (a || b || 'c') || (a || b || 'd'), a || b || 'c' FROM parts WHERE n = 1"
    assert client.rows(twice) == [("xycxyd", "xyc")]
    assert client.rows("SELECT a || n || b FROM parts WHERE n = 1") == [("x1y",)]
