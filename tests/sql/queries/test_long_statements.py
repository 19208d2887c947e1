"""The work of parsing, binding and planning grows with a statement's length, and no faster."""

from __future__ import annotations

import cProfile
from collections.abc import Iterator

import pytest

from ivm.errors import SqlError
from sql.coordination import planning, prepared
from tests.support.sessions import Client, Server

SHORT, LONG = 50, 200
MOST = 6.0
"""Four times the length may take this many times the calls; quadratic work takes sixteen."""
BROAD = (300, 301, 302, 1200, 1201, 1202)


def listed(form: str, between: str = ", ") -> object:
    """A part of a statement that repeats a form."""
    return lambda n: between.join(form.format(i=i) for i in range(n))


STATEMENTS = {
    "IN": ("SELECT count(*) FROM t WHERE b IN ({})", listed("{i}")),
    "IN of a key": ("SELECT * FROM t WHERE a IN ({})", listed("{i}")),
    "NOT IN": ("SELECT count(*) FROM t WHERE b NOT IN ({})", listed("{i}")),
    "OR": ("SELECT count(*) FROM t WHERE {}", listed("(a = {i} AND b > {i})", " OR ")),
    "AND": ("SELECT count(*) FROM t WHERE {}", listed("a + {i} <> 5", " AND ")),
    "AND of several forms": ("SELECT count(*) FROM t WHERE {}", listed("a + {i} <> 5 AND b <> {i}", " AND ")),
    "OR of calls": ("SELECT count(*) FROM t WHERE {}", listed("abs(a) = {i}", " OR ")),
    "IN of sums": ("SELECT count(*) FROM t WHERE b IN ({})", listed("{i} + 1")),
    "a sum of several forms": ("SELECT {} FROM t", listed("a + b", " + ")),
    "text of several forms": ("SELECT {} FROM t", listed("b::text || a::text", " || ")),
    "VALUES": ("SELECT count(*) FROM (VALUES {}) v(x, y)", listed("({i}, 'x{i}')")),
    "INSERT": ("INSERT INTO t VALUES {} ON CONFLICT DO NOTHING", listed("({i}, {i})")),
    "VALUES of expressions": ("SELECT count(*) FROM (VALUES {}) v(x, y)", listed("({i} + 1, abs(-{i}))")),
    "INSERT of defaults": ("INSERT INTO t VALUES {} ON CONFLICT DO NOTHING", listed("({i}, DEFAULT)")),
    "IN of dates": ("SELECT count(*) FROM t WHERE date '2024-01-01' + b IN ({})", listed("date '2024-01-01' + {i}")),
    "UNION ALL": ("SELECT * FROM ({}) u", listed("SELECT {i} AS x", " UNION ALL ")),
    "UNION ALL of tables": ("SELECT * FROM ({}) u", listed("SELECT a + {i} AS x FROM t", " UNION ALL ")),
    "UNION ALL of reads by key": (
        "SELECT * FROM ({}) u",
        listed("SELECT a + {i} AS x FROM t WHERE a = {i}", " UNION ALL "),
    ),
    "INSERT of a row": ("INSERT INTO broad{n} VALUES ({})", listed("{i}")),
    "all columns": ("SELECT * FROM broad{n}", lambda n: ""),
    "named columns": ("SELECT {} FROM broad{n}", listed("c{i}")),
    "qualified columns": ("SELECT {} FROM broad{n} AS q", listed("q.c{i}")),
    "given columns": ("INSERT INTO broad{n} ({}) SELECT * FROM broad{n}", listed("c{i}")),
    "tables": (
        "SELECT count(*) FROM t AS t0{}",
        lambda n: "".join(f" JOIN t AS t{i} ON t{i}.a = t{i - 1}.b" for i in range(1, n // 4)),
    ),
    "columns": ("SELECT {} FROM t", listed("a + {i} AS c{i}")),
    "aggregates": ("SELECT {} FROM t", listed("sum(a + {i})")),
    "CASE": ("SELECT CASE {} END FROM t", listed("WHEN a = {i} THEN b + {i}", " ")),
    "an array": ("SELECT ARRAY[{}]", listed("{i}")),
    "CTEs": ("WITH {} SELECT * FROM w7", listed("w{i} AS (SELECT {i} AS x)")),
    "a sum": ("SELECT {} FROM t", listed("a", " + ")),
    "a sum of constants": ("SELECT {}", listed("{i}", " + ")),
    "text": ("SELECT {} FROM t", listed("b::text", " || ")),
    "constant text": ("SELECT {}", listed("'x{i}'", " || ")),
    "calls in calls": ("SELECT {} FROM t", lambda n: "abs(" * n + "a" + ")" * n),
    "CASE in CASE": ("SELECT {} FROM t", lambda n: "CASE WHEN a = 1 THEN b ELSE " * n + "0" + " END" * n),
    "parentheses": ("SELECT {} FROM t", lambda n: "(" * n + "a" + " + b)" * n),
    "NOT": ("SELECT {}", lambda n: "NOT " * n + "true"),
    "CREATE TABLE": ("CREATE TABLE wide{n} ({})", listed("c{i} int")),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("long"))
    client = server.client()
    client.run("CREATE TABLE t (a int PRIMARY KEY, b int)")
    for n in (SHORT, LONG, *BROAD):
        client.run(f"CREATE TABLE broad{n} ({', '.join(f'c{i} int' for i in range(n))})")
    yield client
    server.close()


@pytest.fixture
def on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long statements are planned where short ones are."""
    monkeypatch.setattr(planning, "LONG", 1 << 60)
    monkeypatch.setattr(prepared, "WIDE", 1 << 60)


def calls(client: Client, text: str) -> int:
    """How many calls of Python functions the event loop's thread makes for a statement."""
    profile = cProfile.Profile()

    async def run() -> None:
        profile.enable()
        try:
            await client.work(text)
        finally:
            profile.disable()

    client.server.run(run())
    return sum(entry.callcount for entry in profile.getstats())  # pstats takes all dataclasses' __eq__ for one


@pytest.mark.usefixtures("on_the_loop")
@pytest.mark.parametrize("name", STATEMENTS)
def test_work_grows_with_the_length(client: Client, name: str) -> None:
    text, part = STATEMENTS[name]
    few, many = (calls(client, text.replace("{n}", str(n)).replace("{}", part(n))) for n in (SHORT, LONG))  # type: ignore[operator]
    assert many < MOST * few, (few, many)


FEW = {
    "VALUES": ("VALUES {}", listed("({i}, 'x{i}', {i}.5, NULL, true)"), 25),
    "VALUES that are counted": ("SELECT count(*) FROM (VALUES {}) v", listed("({i}, 'x{i}', {i}.5, NULL, true)"), 5),
    "INSERT": ("INSERT INTO five VALUES {}", listed("({i}, 'x{i}', {i}.5, NULL, true)"), 30),
    "IN": ("SELECT count(*) FROM t WHERE b IN ({})", listed("{i}"), 4),
    "IN of a key": (*STATEMENTS["IN of a key"], 4),
    "a sum": ("SELECT {} FROM t", listed("a", " + "), 20),
    "a sum of constants": ("SELECT {}", listed("{i}", " + "), 20),
    "constant text": ("SELECT {}", listed("'x{i}'", " || "), 20),
    "AND": ("SELECT count(*) FROM t WHERE {}", listed("a + {i} <> 5", " AND "), 60),
    "OR": (*STATEMENTS["OR"], 120),
    "OR of calls": (*STATEMENTS["OR of calls"], 100),
    "text": (*STATEMENTS["text"], 55),
    "IN of sums": (*STATEMENTS["IN of sums"], 40),
    "IN of dates": (*STATEMENTS["IN of dates"], 50),
    "a sum of several forms": (*STATEMENTS["a sum of several forms"], 50),
    "AND of several forms": (*STATEMENTS["AND of several forms"], 200),
    "CASE in CASE": ("SELECT {} FROM t", STATEMENTS["CASE in CASE"][1], 400),
    "calls in calls": ("SELECT {} FROM t", STATEMENTS["calls in calls"][1], 260),
    "UNION ALL": (*STATEMENTS["UNION ALL"], 450),
    "UNION ALL of reads by key": (*STATEMENTS["UNION ALL of reads by key"], 800),
}


@pytest.mark.usefixtures("on_the_loop")
@pytest.mark.parametrize("name", FEW)
def test_a_further_part_costs_few_calls(client: Client, name: str) -> None:
    """Constants are read in bulk, and each pass over a long chain asks little of each part.

    The event loop's other work is counted too: it comes now and then, and not three times.
    """
    text, part, most = FEW[name]
    client.run("CREATE TABLE IF NOT EXISTS five (a int, b text, c numeric(9,2), d int, e bool)")
    found = []
    for more in range(3):
        few, many = (calls(client, text.replace("{}", part(n + more))) for n in (100, 400))  # type: ignore[operator]
        found.append((many - few) / 300)
        if found[-1] < most:
            return
    raise AssertionError(found)


SIGNS = str.maketrans("01", "+-")
"""Of operands of 64 forms, too many to be read together."""
DEEP = {
    "a sum": lambda n: (
        "SELECT " + " + ".join([" ".join(f"{i % 64:06b}").translate(SIGNS) + " a" for i in range(n)]) + " FROM t"
    ),
    "parentheses": lambda n: "SELECT " + "(" * n + "a" + " + b)" * n + " FROM t",
    "calls": lambda n: "SELECT " + "abs(" * n + "a" + ")" * n + " FROM t",
    "CASE": lambda n: "SELECT " + "CASE WHEN a = 1 THEN b ELSE " * n + "0" + " END" * n + " FROM t",
    "NOT": lambda n: "SELECT " + "NOT " * n + "true FROM t",
    "UNION ALL": lambda n: f"SELECT count(*) FROM ({' UNION ALL '.join(['SELECT 1'] * n)}) u",
    "tables": lambda n: "SELECT * FROM " + "(SELECT * FROM " * (n // 4) + "t" + ") q" * (n // 4),
}


@pytest.mark.parametrize("name", DEEP)
def test_what_is_deep_is_planned_or_refused(client: Client, name: str) -> None:
    """2,000 levels, as in PostgreSQL; what is deeper than the server can walk gets its error."""
    client.run("SET statement_timeout = '60s'")
    client.rows(DEEP[name](2000))
    if name != "UNION ALL":
        with pytest.raises(SqlError) as info:
            client.rows(DEEP[name](100_000))
        assert info.value.sqlstate == "54001"
    assert client.rows("SELECT 1") == [("1",)]


def test_a_deep_view_is_maintained(client: Client) -> None:
    """The engine's thread walks it too."""
    client.run("INSERT INTO t VALUES (-1, 1)")
    client.run(f"CREATE MATERIALIZED VIEW deep AS SELECT {' + '.join(['b'] * 2000)} AS x FROM t WHERE a < 0")
    client.run("INSERT INTO t VALUES (-2, 2)")
    assert client.rows("SELECT x FROM deep ORDER BY x") == [("2000",), ("4000",)]
    client.run("DROP MATERIALIZED VIEW deep")


def test_arrays_have_six_dimensions(client: Client) -> None:
    error = client.error("SELECT " + "ARRAY[" * 500 + "1" + "]" * 500)
    assert error.sqlstate == "54000"
    assert error.message == "number of array dimensions (7) exceeds the maximum allowed (6)"


def test_others_are_answered_while_it_is_planned(client: Client) -> None:
    """It is parsed, bound and planned on a thread of its own."""
    other = client.server.client()
    text = f"SELECT count(*) FROM t WHERE {' AND '.join(f'a + {i} <> b' for i in range(10_000))}"
    running = client.server.start(client.work(text))
    answered = 0
    while not running.done():
        other.rows("SELECT 1")
        answered += 1
    assert running.result()
    assert answered > 20
    other.close()


def test_a_cancel_ends_planning(client: Client) -> None:
    text = f"SELECT count(*) FROM t WHERE {' AND '.join(f'a + {i} <> b' for i in range(50_000))}"
    client.run("SET statement_timeout = '100ms'")
    assert client.state(text) == "57014"
    client.run("RESET statement_timeout")


@pytest.mark.usefixtures("on_the_loop")
@pytest.mark.parametrize(("text", "most"), [
    ("SELECT * FROM broad{n}", 10),
    ("SELECT * FROM broad{n} WHERE c1 < 17", 8),
    ("SELECT {} FROM broad{n}", 80),
    ("INSERT INTO broad{n} VALUES ({})", 12),
])  # fmt: skip
def test_a_further_column_costs_few_calls(client: Client, text: str, most: int) -> None:
    """Once a table has been read: what does not change of it is kept."""
    found = []
    for n in BROAD:
        client.rows(f"SELECT * FROM broad{n} WHERE c0 = -1")
        client.rows(f"SELECT * FROM broad{n} WHERE c1 < 0")
    for few, many in zip(BROAD[:3], BROAD[3:], strict=True):
        form = "{i}" if "VALUES" in text else "c{i}"
        spent = [calls(client, text.replace("{n}", str(n)).replace("{}", listed(form)(n))) for n in (few, many)]  # type: ignore[operator]
        found.append((spent[1] - spent[0]) / (many - few))
        if found[-1] < most:
            return
    raise AssertionError(found, most)


def test_a_query_of_many_columns_is_planned_beside_the_event_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short its text."""
    run, planned = planning.Planning.run, []
    monkeypatch.setattr(planning.Planning, "run", lambda self, work, n: planned.append(n) or run(self, work, n))
    client.rows("SELECT * FROM t WHERE b = 17")
    assert not planned
    client.rows("SELECT * FROM broad300 WHERE c0 = 17")
    assert planned
