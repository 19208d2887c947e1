"""Which words of tables a plan reads. ``test_hydrate_spark`` and its neighbours check that no others matter, by
setting them to 0."""

from __future__ import annotations

import pytest

from benchmarks.flow import Tables
from planner.lower.plan import lower
from planner.lower.state import KnownIndexes
from planner.physical.nodes import Arrange, Plan, Table
from planner.physical.required_words import required_words
from planner.transform.pipeline import maintained
from sql.bind.statement import bind_statement
from sql.statements import queries

TABLES = Tables(
    (
        "CREATE TABLE t (id int PRIMARY KEY, k int NOT NULL, x int NOT NULL, note text NOT NULL, y int)",
        "CREATE TABLE u (k int NOT NULL, name text NOT NULL, size int NOT NULL)",
        "CREATE TABLE w (a int NOT NULL, b int NOT NULL, c int NOT NULL, d int NOT NULL, e int NOT NULL,"
        " f int NOT NULL, g int NOT NULL, h int NOT NULL, i text NOT NULL)",
    )
)
NULLS = 5
"""The word of t's null bits."""


def plan_of(text: str) -> Plan:
    query = bind_statement(text, TABLES).statement
    assert isinstance(query, queries.Query)
    keys = tuple((r.id, r.primary_key) for r in TABLES.relations.values() if r.primary_key)
    return lower(maintained(query.rel), KnownIndexes(tuple((table, (key,)) for table, key in keys), primary=keys))


def read(text: str) -> dict[str, set[int]]:
    """The words that are read, by table name."""
    plan = plan_of(text)
    names = {relation.id: name for name, relation in TABLES.relations.items()}
    found = required_words(plan, ())
    return {names[node.relation]: found[i] for i, node in enumerate(plan.nodes) if isinstance(node, Table)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT k FROM u", {"u": {0}}),
        ("SELECT size FROM u WHERE k > 3", {"u": {0, 2}}),
        ("SELECT k, count(*) FROM u GROUP BY k", {"u": {0}}),
        ("SELECT y FROM t WHERE k = 1", {"t": {1, 4, NULLS}}),
        ("SELECT * FROM u", {"u": {0, 1, 2}}),
        ("SELECT DISTINCT name FROM u", {"u": {1}}),
        ("SELECT t.x, u.size FROM t JOIN u ON t.k = u.k", {"t": {1, 2, NULLS}, "u": {0, 2}}),
        ("SELECT size FROM u UNION ALL SELECT k FROM u", {"u": {0, 2}}),
        ("SELECT id FROM t EXCEPT SELECT k FROM u", {"t": {0}, "u": {0}}),
    ],
)
def test_what_is_read(text: str, expected: dict[str, set[int]]) -> None:
    found = read(text)
    assert {name: words - {NULLS} for name, words in found.items()} == {
        name: words - {NULLS} for name, words in expected.items()
    }


def test_an_error_shows_the_row() -> None:
    assert read("SELECT a / b AS q FROM w") == {"w": set(range(8))}


def test_what_is_kept_is_kept_whole() -> None:
    plan = plan_of("SELECT t.x, u.size FROM t JOIN u ON t.k = u.k")
    kept = [i for i, node in enumerate(plan.nodes) if isinstance(node, Arrange)]
    found = required_words(plan, kept)
    assert all(found[i] == set(range(plan.widths[i])) for i in kept)
