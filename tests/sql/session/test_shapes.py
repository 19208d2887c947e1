"""Statements that differ only in constants: the plan of one is found for the others, and means the same."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ivm.errors import SqlError
from sql.coordination import shapes
from sql.coordination.prepared import Statements
from sql.coordination.shape_variants import Learner
from sql.coordination.shapes import Shapes
from sql.parse import split
from sql.pgwire import messages_frontend as front
from sql.statements.results import CommandResult, RowsResult
from sql.syntax.lexing.lexer import TokenKind
from tests.answers.make_queries import SETS, answered
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server, text_rows
from tests.support.wires import Wire, bind

Answer = object
"""Rows as text and their columns, or a tag; an error's state, message and position."""


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    client = server.client()
    client.run("CREATE SCHEMA shaped")
    client.run("SET search_path TO shaped")
    client.run(
        "CREATE TABLE t (a int PRIMARY KEY, b int, s text, d date, n numeric(9, 2), v varchar(5), ts timestamptz,"
        " big bigint, small smallint, f float8)"
    )
    client.run(
        "INSERT INTO t SELECT g, g % 7, 'item ' || g, date '2024-01-01' + g, g / 8.0, 'v' || g % 5,"
        " timestamptz '2024-01-01 12:00+00' + g * interval '1 hour', g * 1000000000::bigint, g % 3, g / 4.0"
        " FROM generate_series(-20, 60) x(g)"
    )
    client.run("INSERT INTO t (a) VALUES (100)")
    client.run("CREATE TABLE u (a int, s text, n numeric, d date)")
    client.run("CREATE VIEW shown AS SELECT a, s FROM t WHERE b > 2")
    yield client
    client.run("ROLLBACK")
    client.run("RESET ROLE")
    client.run("DROP SCHEMA shaped CASCADE")
    client.close()


def answer(client: Client, text: str) -> Answer:
    try:
        last = client.results(text)[-1]
    except SqlError as error:
        return error.sqlstate, error.message, error.position
    if isinstance(last, RowsResult):
        return sorted(text_rows(last, client.session.text_style), key=repr), last.columns, last.tag
    assert isinstance(last, CommandResult)
    return last.tag


class Bindings:
    """Counts what is bound."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        bind = Statements.bind

        def counted(statements: Statements, *args: Any, **more: Any) -> Any:
            self.count += 1
            return bind(statements, *args, **more)

        monkeypatch.setattr(Statements, "bind", counted)


def as_written(client: Client, text: str) -> Answer:
    """The answer of a statement that is bound with its constants."""
    find = Shapes.find
    try:
        Shapes.find = lambda *_: None  # type: ignore[method-assign]
        return answer(client, text)
    finally:
        Shapes.find = find  # type: ignore[method-assign]


INTEGERS: Final = (
    "0", "1", "5", "7", "-3", "60", "2147483647", "-2147483648", "2147483648", "9223372036854775808", "1.5", "2.50",
    "1e3",
)  # fmt: skip
TEXTS: Final = ("'item 5'", "''", "'it''s'", "'Ä'", "E'a\\nb'", "'%'", "'item _'", "'5'", "'abc'", "'v1'", "'v12345'")
DATES: Final = ("'2024-01-05'", "'1999-12-31'", "'infinity'", "'today'", "'2024-02-30'", "'x'", "'5 Jan 2024'", "''")
MANY: Final = ", ".join(map(str, range(-20, 20)))
LISTS: Final = ("3", "-7, 60", "2147483648", "1.5", "3000000000000000000000", f"5, {MANY}")
FORMS: Final = (
    (f"SELECT a FROM t WHERE b IN ({{}}, {MANY})", LISTS),
    (f"SELECT a FROM t WHERE b NOT IN ({{}}, {MANY}) OR n IN ({MANY}, {{}})", LISTS),
    (f"SELECT a FROM t WHERE a IN ({MANY}, {{}})", LISTS),
    (f"SELECT a FROM t WHERE s IN ({{}}{', {}' * 39})", TEXTS),
    (f"SELECT a FROM t WHERE d IN ({{}}{', {}' * 39})", DATES),
    (f"DELETE FROM t WHERE f IN ({{}}, {MANY}) RETURNING a", LISTS),
    ("SELECT * FROM t WHERE a = {}", INTEGERS),
    ("SELECT * FROM t WHERE big = {}", INTEGERS),
    ("SELECT * FROM t WHERE small < {} AND n > {}", INTEGERS),
    ("SELECT a FROM t WHERE f <= {}", INTEGERS),
    ("SELECT a FROM t WHERE b = '{}'", INTEGERS),
    ("SELECT {}, {} + a, a * {} FROM t WHERE b IS NULL", INTEGERS),
    ("SELECT a / {} FROM t WHERE a > 50", INTEGERS),
    ("SELECT a % 3 + {} FROM t", INTEGERS),
    ("SELECT a FROM t WHERE a IN ({}, {}, {})", INTEGERS),
    ("SELECT a FROM t WHERE a BETWEEN {} AND {}", INTEGERS),
    ("SELECT b + {}, count(*) FROM t GROUP BY b + {}", INTEGERS),
    ("SELECT count(*) FROM t WHERE b = {}", INTEGERS),
    ("SELECT b, sum(a) FROM t WHERE a > {} GROUP BY 1 HAVING count(*) > {} ORDER BY 2", INTEGERS),
    ("SELECT a FROM t ORDER BY a LIMIT {}", INTEGERS),
    ("SELECT a FROM t ORDER BY 1 OFFSET {} LIMIT 3", INTEGERS),
    ("SELECT a, CASE WHEN a > {} THEN {} ELSE b END FROM t", INTEGERS),
    ("SELECT -{}, - -{}, +{}", INTEGERS),
    ("SELECT round(n, {}), n::numeric(9, {}) FROM t", ("1", "0", "2", "-1", "30")),
    ("SELECT a FROM t WHERE d > date '2024-01-01' + {}", INTEGERS),
    ("SELECT coalesce(b, {}) FROM t", INTEGERS),
    ("SELECT a, (SELECT count(*) FROM t x WHERE x.a < {} + t.b) FROM t", INTEGERS),
    ("SELECT * FROM shown WHERE a = {}", INTEGERS),
    ("WITH x AS (SELECT * FROM t WHERE a > {}) SELECT x.a FROM x JOIN t USING (b) WHERE t.a = {}", INTEGERS),
    ("SELECT a FROM t WHERE a = {} UNION SELECT {} UNION ALL SELECT {}", INTEGERS),
    ("VALUES ({}, 'x'), ({}, 'y')", INTEGERS),
    ("SELECT DISTINCT b + {} FROM t ORDER BY b + {}", INTEGERS),
    ("SELECT ntile({}) OVER (ORDER BY a) FROM t", INTEGERS),
    ("SELECT lag(a, {}, {}) OVER (PARTITION BY b ORDER BY a) FROM t", INTEGERS),
    ("SELECT x FROM generate_series(1, {}) x WHERE x > {}", ("3", "9", "0", "-1", "2.5", "3000000000")),
    ("SELECT a FROM t WHERE s = {}", TEXTS),
    ("SELECT s || {} FROM t WHERE v = {}", TEXTS),
    ("SELECT a FROM t WHERE s LIKE {}", TEXTS),
    ("SELECT {}, {}::varchar(3), {} || 'x'", TEXTS),
    ("SELECT a FROM t WHERE s IN ({}, {}) OR v > {}", TEXTS),
    ("SELECT replace(s, {}, 'y'), length({}) FROM t", TEXTS),
    ("SELECT {}::int + a FROM t", TEXTS),
    ("SELECT a FROM t WHERE a = {}", TEXTS),
    ("SELECT a FROM t WHERE d = {}", DATES),
    ("SELECT a FROM t WHERE d BETWEEN {} AND {}", DATES),
    ("SELECT date {} - d FROM t", DATES),
    ("SELECT a FROM t WHERE ts > {}", DATES),
    ("SELECT a FROM t WHERE ts < timestamptz {} AND d > {}::date", DATES),
    ("SELECT d + interval {} FROM t", ("'1 day'", "'2 mons'", "'x'", "'-1:30'", "''")),
    ("SELECT date_trunc({}, ts), extract(day FROM ts) FROM t", ("'day'", "'hour'", "'x'", "'MONTH'")),
    ("INSERT INTO u VALUES ({}, 'x', {}, '2024-01-01')", INTEGERS),
    ("INSERT INTO u (s, n) VALUES ({}, 1), ({}, 2)", TEXTS),
    ("INSERT INTO u (d, s) VALUES ({}, 'b')", DATES),
    ("INSERT INTO u (a) SELECT a + {} FROM t WHERE b > {} RETURNING a", INTEGERS),
    ("UPDATE t SET b = b + {} WHERE a = {}", INTEGERS),
    ("UPDATE t SET s = {}, v = {} WHERE a > 3", TEXTS),
    ("UPDATE t SET d = {}", DATES),
    ("UPDATE t SET n = {}, small = {} WHERE a = 7 RETURNING n, small, {}", INTEGERS),
    ("DELETE FROM t WHERE a > {}", INTEGERS),
    ("DELETE FROM t WHERE s = {} RETURNING *", TEXTS),
    ("INSERT INTO t (a, b) VALUES (5, {}) ON CONFLICT (a) DO UPDATE SET b = {}", INTEGERS),
    ("SELECT '{{1,{}}}'::int[], ARRAY[{}, 2]", INTEGERS),
    ("SELECT '{{\"a\": {}}}'::jsonb -> 'a'", INTEGERS),
)


@pytest.mark.parametrize(("form", "constants"), FORMS)
def test_a_plan_of_other_constants_means_the_same(
    client: Client, monkeypatch: pytest.MonkeyPatch, form: str, constants: tuple[str, ...]
) -> None:
    monkeypatch.setattr(shapes, "BEFORE", 0)
    numbers = random.Random(form)
    for constant in (*constants, *constants[:-5:-1]):
        text = form.format(
            *[constant if i % 2 else numbers.choice((constant, *constants)) for i in range(form.count("{}"))]
        )
        for run in (as_written, answer, answer):
            client.run("BEGIN")
            found = run(client, text)
            if run is as_written:
                wanted = found
            assert found == wanted, text
            after = (
                []
                if text.startswith("SELECT") or not isinstance(found, str)
                else client.sorted("SELECT * FROM t") + client.sorted("TABLE u")
            )
            if run is as_written:
                state = after
            assert after == state, text
            client.run("ROLLBACK")


FOUND: Final = (
    f"SELECT a FROM t WHERE b IN ({{}}{{}}, {MANY})",
    f"SELECT * FROM t WHERE a IN ({{}}{{}}, {MANY}) AND b > {{}}",
    "SELECT * FROM t WHERE a = {}",
    "SELECT count(*) FROM t WHERE b = {} AND s <> 'x{}'",
    "UPDATE t SET b = b - {} WHERE a = {}",
    "SELECT b + 1, count(*) FROM t WHERE a > {} GROUP BY b + 1 ORDER BY 2 LIMIT {}",
    "DELETE FROM t WHERE a = {}",
    "INSERT INTO u VALUES ({}, 'it''s {}', {}.5, '2024-01-01')",
    "SELECT a FROM t WHERE a IN ({}, 2{}, 3{})",
    "SELECT a FROM t WHERE d > date '2024-01-01' + {} AND ts > '2024-01-02 1{}:00'",
    "SELECT * FROM shown WHERE a > -{}",
    "SELECT a FROM t ORDER BY a OFFSET {}",
)


@pytest.mark.parametrize("form", FOUND)
def test_the_third_statement_of_a_shape_is_not_bound(
    client: Client, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    bindings = Bindings(monkeypatch)
    for i in range(1, 3):
        client.results(form.format(*[i] * 3))
    before = bindings.count
    for i in range(3, 9):
        text = form.format(i, i % 5 + 1, i % 7)
        client.results(text)
    assert bindings.count == before


def test_a_long_statement_has_a_shape(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = Bindings(monkeypatch)

    def nested(first: int) -> str:
        arms = "".join(f"CASE WHEN a = {first + i} THEN b + {i % first} ELSE " for i in range(700))
        return f"SELECT {arms}0{' END' * 700} FROM t"

    wanted = [client.sorted(nested(i)) for i in range(1, 3)]
    before = bindings.count
    found = [client.sorted(nested(i)) for i in range(3, 6)]
    assert bindings.count == before
    assert wanted[0] != found[0] != found[1]
    assert found == [as_written(client, nested(i))[0] for i in range(3, 6)]  # type: ignore[index]


def test_a_shape_that_varies_in_what_must_be_the_same_is_given_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindings = Bindings(monkeypatch)
    counts = []
    for i in range(2, 200):
        client.results(f"SELECT a::numeric({i + 10}, 2) FROM t")
        counts.append(bindings.count)
    assert counts[-1] - counts[-100] == 99  # once each


def test_a_shape_is_learnt_beside_the_event_loop(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    variant, names = Learner.variant, list[str]()

    def noted(learner: Learner) -> Any:
        names.append(threading.current_thread().name)
        return variant(learner)

    monkeypatch.setattr(Learner, "variant", noted)
    for i in range(5):
        client.results(f"SELECT a AS learnt FROM t WHERE a = {i}")
    assert len(names) == 1
    assert names[0].startswith("planner")


def test_few_plans_are_kept(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "BEFORE", 0)
    monkeypatch.setattr(shapes, "_PLANS", 10)
    known = client.server.coordinator.shapes
    for i in range(40):
        client.results(f"SELECT a AS c{i % 15} FROM t WHERE a = {i} LIMIT {i % 3}")
        client.results(f"SELECT a::numeric({i % 7 + 10}, 2) FROM t WHERE a = {i}")
        plans = sum(len(shape.variants) for shape in known._known.values())
        assert plans <= 10
        assert plans == known._plans
    assert known._characters == sum(shape.characters for shape in known._known.values())


def test_branches_that_their_constants_make_one_are_given_up_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning each branch with a parameter would take a hundred times as long."""
    bindings = Bindings(monkeypatch)
    counts = []
    for first in range(2, 7):
        read = " UNION ALL ".join(f"SELECT a + {first + i} AS x FROM t WHERE a = {first + i}" for i in range(40))
        client.results(f"SELECT count(*) FROM ({read}) u")
        counts.append(bindings.count)
    assert counts == [1, 3, 4, 5, 6]


def test_what_is_found_follows_the_catalog(client: Client) -> None:
    for i in range(4):
        client.results(f"SELECT a / 2 FROM t WHERE a = {i}")
    client.run("DROP VIEW shown")
    client.run("ALTER TABLE t ALTER COLUMN a TYPE numeric")
    assert client.rows("SELECT a / 2 FROM t WHERE a = 5") == [("2.5000000000000000",)]
    assert client.rows("SELECT a / 2 FROM t WHERE a = 7") == [("3.5000000000000000",)]
    client.run("CREATE SCHEMA other_shapes")
    client.run("CREATE TABLE other_shapes.t (a int)")
    client.run("INSERT INTO other_shapes.t VALUES (7)")
    for i in range(4):
        client.results(f"SELECT * FROM t WHERE a = {i}")
    client.run("SET search_path TO other_shapes, shaped")
    assert client.rows("SELECT * FROM t WHERE a = 7") == [("7",)]
    client.run("SET search_path TO shaped")
    assert len(client.rows("SELECT * FROM t WHERE a = 7")[0]) > 1
    client.run("CREATE TEMP TABLE t (a int)")
    assert client.rows("SELECT * FROM t WHERE a = 8") == []
    client.run("DROP TABLE pg_temp.t")
    assert len(client.rows("SELECT * FROM t WHERE a = 8")) == 1
    client.run("DROP SCHEMA other_shapes CASCADE")


def test_what_is_found_follows_the_settings(client: Client) -> None:
    form = "SELECT date '0{}/03/2024', timestamptz '2024-01-0{} 00:00' AT TIME ZONE 'UTC'"
    for i in range(1, 5):
        client.results(form.format(i, i))
    assert client.rows(form.format(5, 5)) == [("2024-05-03", "2024-01-05 00:00:00")]
    client.run("SET datestyle TO 'ISO, DMY'")
    client.run("SET timezone TO 'Europe/Vienna'")
    for i in range(6, 9):
        assert client.rows(form.format(i, i)) == [(f"2024-03-0{i}", f"2024-01-0{i - 1} 23:00:00")]


def test_who_may_not_read_is_told_so(client: Client) -> None:
    client.run("DROP ROLE IF EXISTS shaped_reader")
    client.run("CREATE ROLE shaped_reader")
    client.run("GRANT USAGE ON SCHEMA shaped TO shaped_reader")
    for i in range(4):
        client.results(f"SELECT s FROM t WHERE a = {i}")
    client.run("SET ROLE shaped_reader")
    assert [client.state(f"SELECT s FROM t WHERE a = {i}") for i in range(5, 9)] == ["42501"] * 4
    client.run("RESET ROLE")
    client.run("GRANT SELECT ON t TO shaped_reader")
    client.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    client.run("CREATE POLICY few ON t USING (a < 7)")
    client.run("SET ROLE shaped_reader")
    assert [len(client.rows(f"SELECT s FROM t WHERE a = {i}")) for i in range(3, 9)] == [1, 1, 1, 1, 0, 0]
    client.run("RESET ROLE")
    assert [len(client.rows(f"SELECT s FROM t WHERE a = {i}")) for i in range(3, 9)] == [1] * 6
    client.run("DROP POLICY few ON t")
    client.run("DROP OWNED BY shaped_reader")
    client.run("DROP ROLE shaped_reader")


def test_a_sequence_that_a_constant_names_is_asked_for(client: Client) -> None:
    client.run("CREATE SEQUENCE own; CREATE SEQUENCE denied; CREATE ROLE shaped_counter")
    client.run("GRANT USAGE ON SCHEMA shaped TO shaped_counter; GRANT USAGE ON SEQUENCE own TO shaped_counter")
    client.run("SET ROLE shaped_counter")
    for form in ("SELECT nextval('{}')", "SELECT currval('{}'), 1", "SELECT nextval('{}') + 1"):
        for _ in range(3):
            assert len(client.rows(form.format("own"))) == 1
            assert client.state(form.format("denied")) == "42501"
    client.run("RESET ROLE; DROP OWNED BY shaped_counter; DROP ROLE shaped_counter")


def test_others_see_the_text_as_it_came(client: Client) -> None:
    for i in range(5):
        own = f"SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid() AND pid > {i}"
        assert client.rows(own) == [(own,)]


def test_sessions_share_plans(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = [server.client() for _ in range(3)]
    clients[0].run("CREATE TABLE shared_plans (a int)")
    bindings = Bindings(monkeypatch)
    for client in clients:
        for text in ("SELECT * FROM shared_plans", "INSERT INTO shared_plans VALUES (1)"):
            client.results(text)
            client.results(text)
        assert bindings.count == 2
    clients[0].run("DROP TABLE shared_plans")
    for client in clients:
        client.close()


def test_the_unnamed_statement_has_its_constants(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client is told of no parameters, and gives none."""
    wire, bindings = Wire(client), Bindings(monkeypatch)
    wire.run("SET search_path TO shaped")
    run = bind("")

    def answer_to(condition: str) -> bytes:
        parse = front.Parse("", f"SELECT a FROM t WHERE {condition}", ()).encode() + front.Describe("S", "").encode()
        return wire.all_ways(parse + run)

    answers, counts = [], []
    for i in range(1, 7):
        answers.append(answer_to(f"a = {i}"))
        counts.append(bindings.count)
    assert counts[-1] == counts[1], "from the third on nothing is bound"
    assert [a.count(f"\0\1\0\0\0\1{i}C".encode()) for i, a in enumerate(answers, 1)] == [1] * 6
    assert all(b"t\0\0\0\6\0\0T" in a for a in answers), "no parameters"
    assert b"22P02" in answer_to("a = 'x'")
    answer_to("a = 7")
    assert b"08P01" in wire.all_ways(bind("", b"1"))
    assert wire.at_once(run) is None
    assert b"\0\1\0\0\0\1" + b"7C" in wire.all_ways(run)
    wire.run("ALTER TABLE t ADD new int")
    assert b"\0\1\0\0\0\1" + b"7C" in wire.all_ways(run)


@pytest.mark.parametrize("name", SETS)
def test_recorded_queries_with_other_constants(server: Server, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each query, and what becomes of it with other constants, as written and by the plan of the query before."""
    monkeypatch.setattr(shapes, "BEFORE", 0)
    client, numbers, wrong = server.client(), random.Random(name), []
    texts = [text for text, _ in answered(name) if text.lstrip()[:6].lower() == "select"]
    for text in numbers.sample(texts, min(len(texts), scaled(60))):
        for other in (text, changed(text, numbers), changed(text, numbers)):
            wanted = as_written(client, other)
            if as_written(client, other) != wanted:
                continue  # the time, or random()
            found = answer(client, other)
            if found != wanted:
                wrong.append(f"{other}\n  {found} instead of {wanted}")
    client.close()
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])


def changed(text: str, numbers: random.Random) -> str:
    """The text with some other constants of the same kinds."""
    try:
        (statement,) = split(text)
    except SqlError:
        return text
    assert statement.tokens is not None
    strings = [text[t.start : t.end] for t in statement.tokens if t.kind is TokenKind.STRING]
    for token in reversed(statement.tokens):
        if token.kind is TokenKind.NUMBER and numbers.random() < 0.5:
            new = numbers.choice(("0", "1", "3", "12", "1.5", "0.25"))
        elif token.kind is TokenKind.STRING and numbers.random() < 0.5:
            new = numbers.choice(strings)
        else:
            continue
        text = text[: token.start] + new + text[token.end :]
    return text
