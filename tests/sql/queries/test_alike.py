"""Chains of operands of one form: what they give, and which errors, is what it is operand by operand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from ivm.errors import SqlError
from planner.expr.parts import walk
from planner.expr.scalar import Alike
from planner.logical.traversal import nodes, scalars
from sql.bind.statement import bind_tree
from sql.parse import parse, split
from sql.syntax.grammar import operators
from tests.support.bind_fake import FakeCatalog
from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

COUNT = 40
TABLE = "a int, b bigint, i smallint, n numeric(6,2), f float8, s text, v varchar(5), d date, z timestamptz, ok bool"
ROWS = """(1, 10, 1, 1.50, 0.5, 'x1', 'v', '2024-01-01', '2024-01-01 12:00+00', true),
(2, 20, 2, -2.25, 'NaN', 'x2', '', '2024-02-29', '2024-01-01 13:00+00', false),
(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(2147483647, 9223372036854775807, 32767, 9999.99, 'Infinity', 'é''x', 'abcde', '4713-01-01 BC', 'infinity', true),
(-2147483648, -9223372036854775808, -32768, -9999.99, -0.0, '', NULL, 'infinity', '-infinity', NULL),
(7, NULL, 7, 0, 7, 'x7', 'x7', '2024-01-07', NULL, false)"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(tmp_path_factory.mktemp("alike"))
    client = server.client()
    client.run(f"CREATE TABLE t ({TABLE})")
    client.run(f"INSERT INTO t VALUES {ROWS}")
    client.run("CREATE FUNCTION twice(x int) RETURNS int LANGUAGE sql IMMUTABLE RETURN x * 2")
    client.run("CREATE TABLE k (x int, y text, PRIMARY KEY (x, y))")
    client.run("INSERT INTO k SELECT i, 'y' || i FROM generate_series(1, 100) i")
    yield client
    server.close()


def outcome(client: Client, text: str) -> object:
    try:
        return client.rows(text)
    except SqlError as error:
        return error.sqlstate, error.message, error.position


def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operands of one form, or of a few, are read one by one."""
    monkeypatch.setattr(operators, "repeated", lambda tokens, start, between: 0)
    monkeypatch.setattr(operators, "mixed", lambda tokens, bounds, operands, symbol: None)


def chained(form: str, between: str, count: int = COUNT, first: int = 0) -> str:
    return f" {between} ".join(form.format(i=i, p=i - 20, q=i * 1_000_000_000) for i in range(first, first + count))


CONDITIONS = [
    "a + {i} <> 5", "a = {i}", "{i} = a", "a = {i} AND b > {i}", "a = {p}", "b = {q}", "a + {q} > 7", "n = {i}.25",
    "n < {i}", "f = {i}", "f * {i} > 2", "s = 'x{i}'", "s <> 'x{i}' AND a > {i}", "v = 'x{i}'", "d = '2024-01-{i:02}'",
    "d + {i} > date '2024-01-05'", "d = date '2024-01-01' + {i}", "ok", "ok IS NULL", "a IS DISTINCT FROM {i}",
    "a BETWEEN {i} AND {i} + 2", "NOT a = {i}", "(a = {i} OR ok)", "(a = {i})", "10 / (a - {i}) > 3", "a + {i} > b",
    "a = {i} AND 10 / (a - 1) > {i}", "CASE WHEN a > {i} THEN ok ELSE a + 1 > {i} END", "s LIKE 'x{i}%'",
    "z > '2024-01-01 00:00:{i:02}+00'", "s || '{i}' = 'x11'", "(n + {i})::int = 5", "s < '{i}' IS TRUE", "i = {i}",
    "i + {p} < 100", "a * 1000 + {i} > 0", "a % 7 = {i}", "v = '{i}' AND s = 'x{i}'", "-{i} < a", "a - -{i} = 3",
    "'{i}' = s", "a > '{i}'", "a > '{i}x'", "a = '{i}'::int", "true", "{i}", "s = {i}", "missing = {i}", "t.a = {i}",
    "a = {i}.0", "a::text = '{i}'", "a::numeric(3,{i}) > 1", "interval '{i} days' > interval '3 days'",
    "(a, b) = ({i}, 1)",
    "abs(a) = {i}", "lower(s) = 'x{i}'", "abs(a) + {i} > round(n, {i})", "coalesce(a, {i}) = nullif(b, {i})",
    "greatest(a, {i}) = 7", "length(repeat(s, {i})) = 4", "random() * {i} >= 0", "count(*) > {i}",
    "sum(a) OVER () > {i}",
    "generate_series(1, {i}) > 1", "upper(v) = 'X{i}' AND ok", "substr(s, {i}, 1) = '2'", "sqrt(a - {i}) > 1",
    "to_char(d, 'DD') = '{i:02}'", "date_trunc('month', d) > '2024-01-{i:02}'", "extract(day from d) = {i}",
    "current_user = 'u{i}'", "missing(a) = {i}", "abs(s) = {i}", "power(a, {i}) > 3", "concat(s, '{i}') = 'x11'",
    "twice(a) = {i}",
    "a IN ({i}, 3)", "d > current_date - {i}",
]  # fmt: skip
VALUES = [
    "a", "b", "i", "n", "f", "s", "d", "{i}", "{q}", "{i}.5", "'{i}'", "b::text", "a * {i}", "a + {i}", "a % 7 * {i}",
    "n * {i}", "f / {i}", "s || '{i}'", "'x{i}'::text", "i * {i}::smallint", "CASE WHEN a = {i} THEN a ELSE 1 END",
    "CASE WHEN a = {i} THEN 'x' ELSE s END", "a / (a - {i})", "a::bigint * {i}", "(a = {i})::int", "b % 5", "v",
    "'{i} days'::interval", "NULL", "NULL::int", "-{i}", "a - {i}", "{i} - a", "b / {i}",
]  # fmt: skip


@pytest.mark.parametrize("between", ["AND", "OR"])
@pytest.mark.parametrize("form", CONDITIONS)
def test_conditions(client: Client, monkeypatch: pytest.MonkeyPatch, form: str, between: str) -> None:
    chain = chained(form, between)
    texts = [f"SELECT a, {chain} AS x FROM t ORDER BY a", f"SELECT a FROM t WHERE {chain} ORDER BY a"]
    texts += [
        f"SELECT a FROM t WHERE a > 0 AND ({chain}) ORDER BY 1",
        f"SELECT a FROM t WHERE {chain} {between} a = 7 ORDER BY 1",
    ]
    compared(client, monkeypatch, texts)


@pytest.mark.parametrize("between", ["+", "||", "-"])
@pytest.mark.parametrize("form", VALUES)
def test_values(client: Client, monkeypatch: pytest.MonkeyPatch, form: str, between: str) -> None:
    chain = chained(form, between)
    texts = [
        f"SELECT a, {chain} AS x FROM t WHERE {where} ORDER BY a" for where in ("a < 100 AND a > 0", "a > 100", "true")
    ]
    texts += [
        f"SELECT {chain} + a FROM t ORDER BY 1",
        f"SELECT {chained(form, between)}",
        f"SELECT 1 {between} {chain} FROM t",
    ]
    compared(client, monkeypatch, texts)


@pytest.mark.parametrize(
    "form", [*VALUES, "date '2024-01-01' + {i}", "date '2024-01-{i:02}'", "5000000 * {i}", "{i} + 1.5"]
)
def test_lists(client: Client, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    items = chained(form, ",", 31, 1)
    texts = [
        f"SELECT {c} FROM t WHERE {c} {n} IN ({items}, {form.format(i=1, p=1, q=1)}) ORDER BY 1"
        for c in ("a", "b", "n", "s", "d")
        for n in ("", "NOT")
    ]
    compared(client, monkeypatch, texts)


def compared(client: Client, monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    together = [outcome(client, text) for text in texts]
    apart(monkeypatch)
    assert together == [outcome(client, text + " ") for text in texts]


def of_forms(rng: random.Random, forms: list[str], between: str, count: int) -> str:
    """Operands of these forms in any order, of which each occurs among the first."""
    order = [*forms, *forms, *rng.choices(forms, k=count)]
    return f" {between} ".join(f.format(i=i, p=i - 20, q=i * 1_000_000_000) for i, f in enumerate(order))


def test_random_chains_of_a_few_forms(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some can fail, some are NULL, some have no constants; most are false or true for some row."""
    rng = random.Random(11)
    rich = [f for f in CONDITIONS if "count(" not in f and "OVER" not in f and "generate" not in f]
    few = [c for c in rich if not c.startswith(("missing", "a > '{i}x'", "{i}", "s = {i}", "abs(s)", "a::numeric(3"))]
    texts = []
    for number in range(scaled(40)):
        forms = rng.sample(few if number % 5 else rich, rng.randrange(2, 7))
        own = [f"({f})" if " OR " in f or " AND " in f else f for f in forms]
        chain = of_forms(rng, own, rng.choice(["AND", "OR"]), 60)
        texts.append(f"SELECT a, {chain} AS x FROM t ORDER BY a")
        texts.append(f"SELECT a FROM t WHERE {chain} ORDER BY a")
        texts.append(f"SELECT count(*) FROM t LEFT JOIN k ON a = x AND ({chain})")
        texts.append(f"SELECT count(*) FROM k JOIN t ON a = x WHERE {chain}")
    compared(client, monkeypatch, texts)


def test_random_sums_of_a_few_forms(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(13)
    whole = ["a", "a + {i}", "a * {i}", "(a - {i})", "a % 7 * {i}", "{i}", "-{i}", "a / ({i} - 20)", "(a - 7)",
             "abs(a)", "CASE WHEN a = {i} THEN a ELSE 1 END", "NULL::int", "length(s)",
             "(s || '{i}')::int"]  # fmt: skip
    texts = ["s", "'x{i}'", "s || '{i}'", "b::text", "v", "NULL::text", "upper(s)", "substr(s, {i}, 1)", "{i}::text"]
    found = []
    for number in range(scaled(50)):
        own, between = (whole, "+") if number % 2 else (texts, "||")
        chain = of_forms(rng, rng.sample(own, rng.randrange(2, 7)), between, rng.choice([30, 60]))
        where = rng.choice(["a < 100 AND a > 0", "a > 100", "a < 100", "true"])
        found.append(f"SELECT a, {chain} AS x FROM t WHERE {where} ORDER BY a")
        found.append(f"SELECT {chain} {between} {rng.choice(own).format(i=3)}, a FROM t WHERE {where} ORDER BY 2")
    compared(client, monkeypatch, found)


def test_random_chains(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms made of forms, in several places of a query, with constants of several kinds."""
    rng = random.Random(7)
    texts = []
    for _ in range(scaled(20)):
        parts = rng.sample(CONDITIONS[:47], 2)
        form = f"({parts[0]}) {rng.choice(['AND', 'OR', '='])} ({parts[1]})"
        chain = chained(form, rng.choice(["AND", "OR"]), rng.choice([33, 40, 70]), rng.randrange(3))
        texts.append(f"SELECT count(*), sum(a % 100) FROM t WHERE {chain}")
        texts.append(f"SELECT count(*) FILTER (WHERE {chain}) FROM t LEFT JOIN k ON a = x AND ({chain})")
    compared(client, monkeypatch, texts)


FEW = {
    "AND": chained("a + {i} <> 5", "AND"),
    "OR": chained("a = {i} AND b > {i}", "OR"),
    "+": f"{chained('a', '+')} > 1",
    "||": f"{chained('b::text', '||')} > '1'",
}


@pytest.mark.parametrize("operator", FEW)
def test_a_chain_is_one_expression(operator: str) -> None:
    assert [part.operator for part in planned(FEW[operator])] == [operator.lower()]


@pytest.mark.parametrize(
    ("forms", "between", "found"),
    [
        (["a + {i} <> 5", "b <> {i}", "s <> 'x{i}'"], "AND", [3]),  # in order, since some can fail
        (["b <> {i}", "s <> 'x{i}'", "ok"], "AND", [1, 1]),
        (["a > {i}", "f > {i}"], "OR", [1, 1]),
        (["a + {i}", "a * {i}", "a"], "+", [3]),
        (["s", "b::text", "(s || '{i}')"], "||", [3]),
    ],
)
def test_a_chain_of_a_few_forms_is_one_expression(forms: list[str], between: str, found: list[int]) -> None:
    chain = of_forms(random.Random(1), forms, between, 60)
    condition = chain if between in ("AND", "OR") else f"({chain}) IS NOT NULL"
    assert sorted(len(part.forms) for part in planned(condition)) == found


@pytest.mark.parametrize("between", ["AND", "OR", "+", "||"])
def test_trees_of_a_few_forms_are_those_of_each_operand(monkeypatch: pytest.MonkeyPatch, between: str) -> None:
    """With all offsets, whatever the order."""
    text = f"SELECT {of_forms(random.Random(2), ['a * {i}', '(b - {i})', 'f(c)'], between, 60)}"
    together = parse(split(text)[0])
    chain = together.body.targets[0].expr.args[0]  # type: ignore[union-attr]
    assert isinstance(chain, operators.Mixed)
    assert len(chain) == 65  # the last one is read by itself
    apart(monkeypatch)
    assert spelled(together) == spelled(parse(split(text)[0]))


def planned(condition: str) -> list[Alike]:
    """The chains of a bound query."""
    statement = split(f"SELECT * FROM t WHERE {condition}")[0]
    rel = bind_tree(parse(statement), statement, FakeCatalog(f"CREATE TABLE t ({TABLE})")).statement.rel  # type: ignore[union-attr]
    found = [part for node in nodes(rel) for expr in scalars(node) for part in walk(expr)]
    return [part for part in found if isinstance(part, Alike)]


def test_keys_are_looked_up(client: Client) -> None:
    chain = chained("x = {i} AND y = 'y{i}'", "OR")
    assert len(client.rows(f"SELECT * FROM k WHERE {chain}")) == 39
    plan = client.rows(f"EXPLAIN SELECT * FROM t JOIN k ON true WHERE {chained('x = {i}', 'OR')}")
    assert any("any" in str(row) for row in plan), plan


@pytest.mark.parametrize(
    ("made", "state"),
    [
        (lambda n: chained("a + {i} <> 5", "AND", n) + " AND a = 'x'", "22P02"),
        (lambda n: chained("a = '{i}'", "OR", n) + " OR a = 'x' OR " + chained("a = '{i}'", "OR", n), "22P02"),
        (lambda n: chained("a + {i}", "+", n) + " > 'x'", "22P02"),
        (lambda n: chained("a + {i}", "AND", n), "42804"),
        (lambda n: chained("a = {i}", "OR", n) + " OR", "42601"),
        (lambda n: chained("a = {i}", "OR", n) + " OR a = = 3", "42601"),
        (lambda n: f"a IN ({chained('1 + {i}', ',', n)}, )", "42601"),
    ],
)
def test_errors_have_their_place(
    client: Client, monkeypatch: pytest.MonkeyPatch, made: Callable[[int], str], state: str
) -> None:
    text = f"SELECT * FROM t WHERE {made(COUNT)}"
    assert outcome(client, text)[0] == state  # type: ignore[index]
    compared(client, monkeypatch, [text])


def test_groups(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of the form may be what is grouped by."""
    texts = [
        f"SELECT a + 1, {chained('(a + 1) % 5 * {i}', '+')} FROM t WHERE a < 100 GROUP BY a + 1 ORDER BY 1",
        f"SELECT a % 3, {chained('a % 3 = {i}', 'OR')} FROM t GROUP BY a % 3 ORDER BY 1",
        f"SELECT {chained('b = {i}', 'OR')} FROM t GROUP BY a",
        f"SELECT a % 3 FROM t GROUP BY 1 HAVING {chained('a % 3 <> {i}', 'AND')} ORDER BY 1",
    ]
    compared(client, monkeypatch, texts)


def test_a_view_shows_each_operand(client: Client) -> None:
    chain = chained("a = {i} AND b > {i}", "OR")
    client.run(f"CREATE VIEW shown AS SELECT a FROM t WHERE {chain}")
    assert client.rows("SELECT pg_get_viewdef('shown'::regclass)")[0][0].count(" OR ") == COUNT - 1  # type: ignore[union-attr]
    client.run(f"CREATE MATERIALIZED VIEW kept AS SELECT a FROM t WHERE {chain}")
    assert (
        client.rows("SELECT * FROM kept ORDER BY 1")
        == client.rows("SELECT * FROM shown ORDER BY 1")
        == [("1",), ("2",)]
    )
    client.run("INSERT INTO t (a, b) VALUES (3, 100)")
    assert client.rows("SELECT * FROM kept ORDER BY 1") == [("1",), ("2",), ("3",)]
    client.run("DELETE FROM t WHERE a = 3; DROP VIEW shown; DROP MATERIALIZED VIEW kept")


@pytest.mark.parametrize("form", [*CONDITIONS, *VALUES])
def test_trees_are_those_of_each_operand(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """With all offsets."""
    between = "AND" if form in CONDITIONS else "+"
    text = f"SELECT {chained(form, between)}"
    together = parse(split(text)[0])
    apart(monkeypatch)
    assert spelled(together) == spelled(parse(split(text)[0]))


def spelled(tree: object) -> tuple[object, ...]:
    return _flat(tree.body.targets[0].expr)  # type: ignore[attr-defined]


def _flat(expr: object) -> tuple[object, ...]:
    """The operands between AND, + and ||, however they were read."""
    if isinstance(expr, operators.Alike | operators.Mixed):
        return tuple(part for operand in expr.operands() for part in _flat(operand))
    if isinstance(expr, operators.nodes.AndExpr | operators.nodes.OrExpr):
        return tuple(part for operand in expr.args for part in _flat(operand))
    if isinstance(expr, operators.nodes.Operator) and expr.symbol in ("+", "||") and len(expr.args) == 2:
        return (*_flat(expr.args[0]), *_flat(expr.args[1]))
    return (expr,)
