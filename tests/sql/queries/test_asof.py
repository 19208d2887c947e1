"""ASOF JOIN from SQL: random histories against the oracle, points of every type, EXPLAIN, errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.programs.histories import InProcess, Refused, play
from tests.support.coverage import features, label, walk
from tests.support.grammar import history

SEEDS = {"batch": range(20), "rows": range(500, 505), "churn": range(600, 608), "restart": range(700, 704)}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    inside = InProcess(tmp_path_factory.mktemp("asof"))
    yield inside
    inside.end()


@pytest.mark.parametrize("shape", list(SEEDS))
def test_views_equal_the_oracle(database: InProcess, shape: str) -> None:
    assert sum(play(seed, database, shape, 5, asof=80) for seed in SEEDS[shape]) > 3 * len(SEEDS[shape])


def test_the_grammar_covers_it() -> None:
    """Both kinds, and under aggregates, set operations and outer joins; the reference grammar is as it was."""
    found = [query for seed in range(200) for _, query in history(seed, steps=1, asof=80).views]
    kinds = [{label(node) for node in walk(query)} for query in found]
    assert sum("asof left join" in labels for labels in kinds) > 40
    assert sum("asof inner join" in labels for labels in kinds) > 40
    assert any(
        "asof left join" in labels and "outer join" in features(q) for q, labels in zip(found, kinds, strict=True)
    )
    assert not any(
        label(n).startswith("asof") for seed in range(50) for _, q in history(seed, 1).views for n in walk(q)
    )


POINTS = {
    "smallint": ("1", "3", "2", "0"),
    "numeric": ("1.50", "3", "1.5", "1.49"),
    "numeric(8,2)": ("1.5", "3", "2.25", "0"),
    "float8": ("-1e300", "'NaN'", "'inf'", "'-inf'"),
    "text": ("'b'", "'bb'", "'ba'", "'a'"),
    "date": ("'2026-01-01'", "'2026-03-01'", "'2026-02-01'", "'2025-01-01'"),
    "timestamptz": ("'2026-01-01 00:00Z'", "'infinity'", "'2026-02-01 00:00Z'", "'-infinity'"),
    "interval": ("'1 month'", "'1 year'", "'31 days'", "'1 day'"),
    "uuid": (
        "'10000000-0000-0000-0000-000000000000'", "'30000000-0000-0000-0000-000000000000'",
        "'20000000-0000-0000-0000-000000000000'", "'00000000-0000-0000-0000-000000000000'",
    ),
    "boolean[]": ("'{f}'", "'{t}'", "'{f,t}'", "'{}'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(POINTS))
def test_points_of_every_ordered_type(database: InProcess, kind: str) -> None:
    """Right rows at two points; left rows at both of them, between and before them."""
    low, high, between, before = POINTS[kind]
    run = database.execute
    run(f"CREATE TABLE p (k text, ts {kind}, v text); CREATE TABLE o (id int, k text, ts {kind})")
    try:
        for name, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<")):
            on = f"o.k = p.k AND o.ts {sign} p.ts"
            run(f"CREATE MATERIALIZED VIEW {name} AS SELECT id, v FROM o ASOF LEFT JOIN p ON {on}")
        run(f"INSERT INTO o VALUES (1, 'k', {low}), (2, 'k', {high}), (3, 'k', {between}), (4, 'k', {before})")
        run(f"INSERT INTO o VALUES (5, NULL, {high}), (6, 'k', NULL), (7, 'other', {high})")
        run(f"INSERT INTO p VALUES ('k', {low}, 'low'), ('k', {high}, 'high'), ('k', NULL, 'no'), (NULL, {low}, 'no')")
        rest = [(4, None), (5, None), (6, None), (7, None)]
        at = [(1, "low"), (2, "high"), (3, "low"), *rest]
        if kind == "numeric":
            assert sorted(run("SELECT * FROM ge")) == at
            assert sorted(run("SELECT * FROM gt")) == [(1, None), (2, "low"), (3, None), *rest]
            return
        assert sorted(run("SELECT * FROM ge")) == at
        assert sorted(run("SELECT * FROM gt")) == [(1, None), (2, "low"), (3, "low"), *rest]
        after = [(4, "low"), *rest[1:]]
        assert sorted(run("SELECT * FROM le")) == [(1, "low"), (2, "high"), (3, "high"), *after]
        assert sorted(run("SELECT * FROM lt")) == [(1, "high"), (2, None), (3, "high"), *after]
        run("DELETE FROM p WHERE v = 'low'")
        assert sorted(run("SELECT * FROM ge")) == [(1, None), (2, "high"), (3, None), *rest]
    finally:
        run("DROP TABLE o, p CASCADE")


def test_ties_are_decided_by_value(database: InProcess) -> None:
    """Ties go to the row that sorts first by its columns, left to right, NULLs last, whatever a query reads."""
    run = database.execute
    run("CREATE TABLE p (ts int, a text, b int); CREATE TABLE o (ts int)")
    try:
        run("CREATE MATERIALIZED VIEW m AS SELECT b FROM o ASOF JOIN p ON o.ts >= p.ts")
        run("INSERT INTO o VALUES (5); INSERT INTO p VALUES (4, NULL, 1), (4, 'b', 2), (4, 'a', NULL), (4, 'a', 7)")
        assert run("SELECT * FROM m") == [(7,)]
        run("DELETE FROM p WHERE b = 7")
        assert run("SELECT * FROM m") == [(None,)]
        run("DELETE FROM p WHERE b IS NULL")
        assert run("SELECT * FROM m") == [(2,)]
    finally:
        run("DROP TABLE o, p CASCADE")


def test_using_and_further_conditions(database: InProcess) -> None:
    run = database.execute
    run("CREATE TABLE p (k int, ts int, v int); CREATE TABLE o (k int, ts int, w int)")
    try:
        run("INSERT INTO o VALUES (1, 5, 0), (1, 9, 3); INSERT INTO p VALUES (1, 4, 40), (1, 8, 80)")
        assert sorted(run("SELECT * FROM o ASOF JOIN p USING (k, ts)")) == [(1, 5, 0, 40), (1, 9, 3, 80)]
        on = "o.k = p.k AND o.ts >= p.ts"
        one_sided = run(f"SELECT w, v FROM o ASOF LEFT JOIN p ON {on} AND v < 50 AND w > 1 ORDER BY 1")
        assert one_sided == [(0, None), (3, 40)]
        assert run(f"SELECT w, v FROM o ASOF JOIN p ON {on} AND w > 1") == [(3, 80)]
        assert run(f"SELECT w, v FROM o ASOF LEFT JOIN p ON {on} AND 1 = 2 ORDER BY 1") == [(0, None), (3, None)]
        assert run(f"SELECT w, v FROM o ASOF JOIN p ON {on} AND 1 < 2 ORDER BY 1") == [(0, 40), (3, 80)]
        plan = [line for (line,) in run(f"EXPLAIN SELECT w, v FROM o ASOF JOIN p ON {on}")]
        assert any("AsOf inner point 2 words, at or before" in line for line in plan)
        each = (
            "SELECT w, (SELECT v FROM (SELECT o.ts AS t) x ASOF JOIN p ON x.t >= p.ts AND p.k = o.k) FROM o ORDER BY 1"
        )
        assert run(each) == [(0, 40), (3, 80)]
    finally:
        run("DROP TABLE o, p CASCADE")


@pytest.mark.parametrize(
    ("condition", "sqlstate"),
    [
        ("ASOF JOIN p ON o.k = p.k", "42601"),
        ("ASOF JOIN p ON o.ts >= p.ts AND o.k > p.k", "42601"),
        ("ASOF JOIN p ON o.ts >= p.ts AND o.k <> p.k", "0A000"),
        ("ASOF RIGHT JOIN p ON o.ts >= p.ts", "0A000"),
        ("ASOF JOIN LATERAL (SELECT * FROM p WHERE p.k = o.k) p ON o.ts >= p.ts", "0A000"),
        ("ASOF JOIN p", "42601"),
    ],
)
def test_what_is_refused(database: InProcess, condition: str, sqlstate: str) -> None:
    database.execute("CREATE TABLE p (k int, ts int); CREATE TABLE o (k int, ts int)")
    try:
        with pytest.raises(Refused) as refused:
            database.execute(f"SELECT * FROM o {condition}")
        assert refused.value.sqlstate == sqlstate
    finally:
        database.execute("DROP TABLE o, p CASCADE")


def test_refused_in_a_recursive_term(database: InProcess) -> None:
    database.execute("CREATE TABLE p (k int, ts int)")
    try:
        with pytest.raises(Refused) as refused:
            database.execute(
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION SELECT p.k FROM r ASOF JOIN p ON r.n >= p.ts) SELECT * FROM r"
            )
        assert refused.value.sqlstate == "0A000"
    finally:
        database.execute("DROP TABLE p CASCADE")
