"""IN, NOT IN and = ANY with many constants, which are searched and not compared one by one: the same answers."""

from __future__ import annotations

import pytest

from tests.support.sessions import Client, Server

MANY = 100
VALUES = {
    "int": (("smallint", "int", "bigint", "numeric", "float8"), lambda i: str(3 * i - 50)),
    "numeric": (("numeric", "numeric(12, 2)", "float8"), lambda i: f"{i}.50"),
    "large": (("bigint", "int"), lambda i: str(2**31 + i)),
    "text": (("text", "varchar(10)", "char(10)"), lambda i: f"'a{i}'"),
    "date": (("date", "timestamp", "timestamptz"), lambda i: f"'2020-01-{1 + i % 28:02}'"),
    "dates": (("date", "timestamp"), lambda i: f"date '2020-01-01' + {i}"),
    "uuid": (("uuid",), lambda i: f"'00000000-0000-0000-0000-{i:012}'"),
    "casts": (("int", "bigint"), lambda i: f"{3 * i - 50}::bigint"),
}
CASES = [(kind, type_) for kind, (types, _) in VALUES.items() for type_ in types]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    server = Server(tmp_path_factory.mktemp("lists"))
    client = server.client()
    client.run("SET timezone = 'UTC'")
    return client


def filled(client: Client, name: str, kind: str, type_: str) -> list[str]:
    """A table with a NULL, with some of the values and with others; the values."""
    value = VALUES[kind][1]
    values = [value(i) for i in range(MANY)]
    fits = [v for v in values[::7] if not (type_ == "int" and kind == "large")]
    other = {"text": "'zz'", "uuid": "'ffffffff-0000-0000-0000-000000000000'"}.get(kind, "1")
    other = "'1999-01-01'" if kind.startswith("date") else other
    client.run(f"DROP TABLE IF EXISTS {name} CASCADE; CREATE TABLE {name} (id serial, v {type_})")
    rows = ", ".join(f"(({v})::{type_})" for v in (*fits, other))
    client.run(f"INSERT INTO {name} (v) VALUES {rows}, (NULL)")
    return values


@pytest.mark.parametrize(("kind", "type_"), CASES)
def test_it_is_as_comparing_each(client: Client, kind: str, type_: str) -> None:
    values = filled(client, "t", kind, type_)
    one_by_one = " OR ".join(f"v = {v}" for v in values)
    for form, meaning in (
        (f"v IN ({', '.join(values)})", one_by_one),
        (f"v NOT IN ({', '.join(values)})", f"NOT ({one_by_one})"),
        (f"v IN ({', '.join(values)}, NULL)", f"{one_by_one} OR v = NULL"),
        (f"v NOT IN ({', '.join(values)}, NULL)", f"NOT ({one_by_one} OR v = NULL)"),
        (f"v = ANY (ARRAY[{', '.join(values)}]::{type_}[])" if kind != "large" else "v IS NULL",
         one_by_one if kind != "large" else "v IS NULL"),
    ):  # fmt: skip
        wanted = client.sorted(f"SELECT id, {meaning} FROM t")
        assert client.sorted(f"SELECT id, {form} FROM t") == wanted
        found = client.sorted(f"SELECT id FROM t WHERE {form}")
        assert found == [(row[0],) for row in wanted if row[1] == "t"]


@pytest.mark.parametrize(("kind", "type_"), CASES)
def test_a_view_is_maintained(client: Client, kind: str, type_: str) -> None:
    values = filled(client, "m", kind, type_)
    client.run(f"CREATE MATERIALIZED VIEW v AS SELECT id, v IN ({', '.join(values)}) AS x FROM m")
    client.run("INSERT INTO m (v) SELECT v FROM m; DELETE FROM m WHERE id < 3")
    assert client.sorted("SELECT * FROM v") == client.sorted(
        f"SELECT id, {' OR '.join(f'v = {v}' for v in values)} FROM m"
    )


def test_a_key_is_looked_up(client: Client) -> None:
    client.run("CREATE TABLE k (a int PRIMARY KEY, b text)")
    client.run("INSERT INTO k SELECT g, 'x' || g FROM generate_series(1, 5000) g")
    listed = ", ".join(str(3 * i) for i in range(500))
    assert len(client.rows(f"SELECT * FROM k WHERE a IN ({listed}) AND b <> 'x9'")) == 498
    plan = "\n".join(str(row[0]) for row in client.rows(f"EXPLAIN SELECT * FROM k WHERE a IN ({listed})"))
    assert "join" in plan.lower() or "lookup" in plan.lower(), plan[:300]


@pytest.mark.parametrize("key", ["a", "b, a", "c, b", "a, lower(b)", "n, a", "a) WHERE (b > ''"])
def test_parts_of_a_key_are_looked_up(client: Client, key: str) -> None:
    """Lists for one part of a key or for several, with constants for others, and with NULLs: as a scan finds them."""
    client.run("DROP TABLE IF EXISTS keyed, scanned; CREATE TABLE keyed (id serial, a int, b text, c date, n numeric)")
    client.run("INSERT INTO keyed (a, b, c, n) SELECT g % 50, 'X' || g % 40, date '2024-01-01' + g % 45, g % 35"
               " FROM generate_series(1, 600) g")  # fmt: skip
    client.run("INSERT INTO keyed (a, b, c, n) SELECT a, NULL, c, n FROM keyed WHERE id < 50")
    client.run("INSERT INTO keyed (a, b, c, n) SELECT NULL, b, NULL, NULL FROM keyed WHERE id < 50")
    client.run(f"CREATE TABLE scanned AS SELECT * FROM keyed; CREATE INDEX ON keyed ({key})")
    integers = ", ".join(str(i % 41) for i in range(60))
    texts = ", ".join(f"'x{i}'" for i in range(33))
    dates = ", ".join(f"'2024-01-{1 + i % 28:02}'" for i in range(40))
    numbers = ", ".join(f"{i}.0" for i in range(40))
    conditions = (
        f"a IN ({integers}, NULL)", f"lower(b) IN ({texts})", f"b IN ({texts.upper()}, NULL)", f"c IN ({dates})",
        f"n IN ({numbers})", "b = 'X7'", "lower(b) = 'x7'", "a = 5", "c IN ('2024-01-09', '2024-01-11')",
        f"(a IN ({integers}) OR a = 45)",
    )  # fmt: skip
    for i, first in enumerate(conditions):
        for second in conditions[i:]:
            asked = f"{first} AND {second}"
            for again in (asked, asked.replace("5", "6").replace("2024-01-1", "2024-01-2")):
                wanted = client.sorted(f"SELECT * FROM scanned WHERE {again}")
                assert client.sorted(f"SELECT * FROM keyed WHERE {again}") == wanted, (key, again)


def test_parameters(client: Client) -> None:
    client.run("CREATE TABLE p (a int, b text)")
    client.run("INSERT INTO p SELECT g, 'x' || g FROM generate_series(1, 300) g")
    places = ", ".join(f"${i + 1}" for i in range(MANY))
    client.run(f"PREPARE s ({', '.join(['int'] * MANY)}) AS SELECT count(*) FROM p WHERE a IN ({places})")
    for by in (1, 2, 5):
        given = ", ".join(str(by * i) for i in range(MANY))
        wanted = sum(1 for i in range(MANY) if 1 <= by * i <= 300)
        assert client.rows(f"EXECUTE s ({given})") == [(str(wanted),)]
    nulls = ", ".join(["NULL", *(str(i) for i in range(MANY - 1))])
    assert client.rows(f"EXECUTE s ({nulls})") == [("98",)]


@pytest.mark.parametrize(
    ("text", "sqlstate", "position"),
    [
        ("SELECT 1 FROM t WHERE id IN ({ints}, 'x')", "22P02", None),
        ("SELECT 1 FROM t WHERE id IN ({strings})", "22P02", 30),
        ("SELECT 1 FROM t WHERE nothing IN ({ints})", "42703", 23),
        ("SELECT 1 FROM t WHERE 'a'::text IN ({ints})", "42883", None),
        ("SELECT 1 IN IN ({ints})", "42601", 13),
    ],
)
def test_errors_are_where_they_were(client: Client, text: str, sqlstate: str, position: int | None) -> None:
    filled(client, "t", "int", "int")
    ints, strings = ", ".join(map(str, range(50))), ", ".join(f"'a{i}'" for i in range(50))
    error = client.error(text.format(ints=ints, strings=strings))
    assert error.sqlstate == sqlstate
    assert position is None or error.position == position


def test_partitions_and_definitions(client: Client) -> None:
    """A list is shown as PostgreSQL shows it, and bounds of partitions are read one by one."""
    ints = ", ".join(map(str, range(40)))
    client.run("CREATE TABLE parts (a int) PARTITION BY LIST (a)")
    client.run(f"CREATE TABLE part PARTITION OF parts FOR VALUES IN ({ints})")
    client.run("INSERT INTO parts VALUES (7)")
    assert client.rows(f"SELECT a FROM parts WHERE a IN ({ints})") == [("7",)]
    client.run(f"CREATE VIEW shown AS SELECT a FROM parts WHERE a NOT IN ({ints})")
    (shown,) = client.rows("SELECT pg_get_viewdef('shown')")[0]
    assert shown is not None
    assert f"(parts.a <> ALL (ARRAY[{ints}]))" in shown
    client.run("CREATE TABLE checked (a int CHECK (a IN (" + ints + ")))")
    assert client.state("INSERT INTO checked VALUES (99)") == "23514"
    assert client.run("INSERT INTO checked VALUES (39)") == "INSERT 0 1"


def test_an_empty_and_a_long_array(client: Client) -> None:
    filled(client, "t", "int", "int")
    assert client.rows("SELECT count(*) FROM t WHERE v = ANY ('{}'::int[])") == [("0",)]
    many = ",".join(map(str, range(-50, 500)))
    assert client.rows(f"SELECT count(*) FROM t WHERE v = ANY ('{{{many}}}')") == client.rows(
        "SELECT count(*) FROM t WHERE v BETWEEN -50 AND 499"
    )
    assert client.rows(f"SELECT count(*) FROM t WHERE NOT v = ANY ('{{{many},NULL}}')") == [("0",)]


@pytest.mark.parametrize("type_", ["float4", "float8", "numeric", "int"])
def test_a_constant_that_is_too_large_is_judged_as_if_alone(client: Client, type_: str) -> None:
    filled(client, "t", "int", type_)
    listed = ", ".join(str(i) for i in range(40))
    huge = "9" * 400
    alone = client.error(f"SELECT v = {huge} FROM t").sqlstate if type_.startswith("float") else None
    if alone is not None:
        assert client.state(f"SELECT v IN ({listed}, {huge}) FROM t") == alone == "22003"
    else:
        assert client.sorted(f"SELECT id FROM t WHERE v IN ({listed}, {huge})") == client.sorted(
            f"SELECT id FROM t WHERE v IN ({listed})"
        )
