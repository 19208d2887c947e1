"""random and its kin, and set_config beside current_setting: answers are PostgreSQL 17's, whose generator this is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("data"))
    yield server.client()
    server.close()


ANSWERS = (
    ("SELECT setseed(0.5), random(), random()", ("", "0.9851677175347999", "0.825301858027981")),
    ("SELECT setseed(0.5), random_normal(), random(1, 100)", ("", "2.5832426701605056", "17")),
    ("SELECT setseed(-0.3), random(1.5, 2.555), random(1.0, 1.0)", ("", "2.362", "1.0")),
    ("SELECT setseed(1), random(-5::bigint, 9223372036854775807), random(7, 7)", ("", "7339668428401651671", "7")),
    ("SELECT random() BETWEEN 0 AND 1, pg_typeof(random(1, 2))::text, pg_typeof(random(1, 2::bigint))::text",
     ("t", "integer", "bigint")),
    ("SELECT random(0, 1e60) BETWEEN 0 AND 1e60", ("t",)),
    ("SELECT pg_typeof(random(1.5, 2))::text, random_normal(3, 0), random_normal(5) IS NULL", ("numeric", "3", "f")),
    ("SELECT set_config('my.x', 'a', false), current_setting('my.x'), set_config('my.x', 'b', false), "
     "current_setting('my.x'), current_setting('my.x', true)", ("a", "a", "b", "b", "b")),
)  # fmt: skip
MISTAKES = (
    ("random(5, 1)", "lower bound must be less than or equal to upper bound"),
    ("random(1.0, 'NaN')", "upper bound cannot be NaN"),
    ("random('-inf', 1.0)", "lower bound cannot be infinity"),
    ("setseed(2)", "setseed parameter 2 is out of allowed range [-1,1]"),
    ("setseed('nan')", "setseed parameter NaN is out of allowed range [-1,1]"),
)


@pytest.mark.parametrize(("text", "row"), ANSWERS)
def test_answers(client: Client, text: str, row: tuple[str, ...]) -> None:
    assert client.rows(text) == [row]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes(client: Client, call: str, message: str) -> None:
    error = client.error(f"SELECT {call}")
    assert (error.sqlstate, error.message) == ("22023", message)


def test_sessions_have_their_own(client: Client) -> None:
    other = client.server.client()
    for each in (client, other):
        each.run("SELECT setseed(0.25)")
    first = [client.rows("SELECT random()") for _ in range(3)]
    assert [other.rows("SELECT random()") for _ in range(3)] == first
    assert client.rows("SELECT count(DISTINCT r) FROM (SELECT random() r FROM generate_series(1, 100)) s") != [("1",)]
    other.close()


def test_transition_functions_by_themselves(client: Client) -> None:
    assert client.rows("SELECT float8_accum('{4,140,2900}', 100), float8_combine('{3,60,200}', '{2,180,200}')") == [
        ("{5,240,6280}", "{5,240,6280}")
    ]
    regression = "SELECT float8_regr_accum('{4,140,2900,1290,83075,15050}', 200, 100)"
    assert client.rows(regression) == [("{5,240,6280,1490,95080,8680}",)]
    both = "'{3,60,200,750,20000,2000}', '{2,180,200,740,57800,-3400}'"
    assert client.rows(f"SELECT float8_regr_combine({both})") == [("{5,240,6280,1490,95080,8680}",)]


def test_aggregates_of_bits(client: Client) -> None:
    client.run("CREATE TABLE bits (g int, b bit(4))")
    client.run("CREATE MATERIALIZED VIEW m AS SELECT g, bit_and(b), bit_or(b), bit_xor(b) FROM bits GROUP BY g")
    client.run("INSERT INTO bits VALUES (1, '1100'), (1, '1010'), (1, NULL), (2, NULL)")
    assert client.sorted("SELECT * FROM m") == [("1", "1000", "1110", "0110"), ("2", None, None, None)]
    client.run("DELETE FROM bits WHERE b = '1010'")
    assert client.sorted("SELECT * FROM m") == [("1", "1100", "1100", "1100"), ("2", None, None, None)]
    assert client.state("SELECT bit_or(b) FROM (VALUES (b'1'), (b'10')) v(b)") == "22026"


def test_what_can_be_updated(client: Client) -> None:
    client.run("CREATE VIEW seen AS SELECT g, g + 1 AS h FROM bits")
    client.run("CREATE VIEW counted AS SELECT count(*) FROM bits")
    assert client.rows(
        "SELECT pg_relation_is_updatable('seen', false), pg_relation_is_updatable('counted', false), "
        "pg_column_is_updatable('seen', 1::smallint, false), pg_column_is_updatable('seen', 2::smallint, false)"
    ) == [("28", "0", "t", "f")]
    assert client.rows("SELECT pg_get_viewdef('counted') = pg_get_viewdef('counted'::regclass)") == [("t",)]
