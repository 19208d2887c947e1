"""Our dialect of sqlglot: trees, precedence, offsets, and PostgreSQL's syntax errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from ivm.errors import SqlError
from sql.parse import parse, parse_expression
from sql.syntax.dialect import tree
from sql.syntax.lexing.lexer import tokenize
from sql.syntax.nodes import queries as nodes
from tests.support.paths import ANSWERS
from tests.support.syntax_shape import shape

LINES = (ANSWERS / "syntax_trees.txt").read_text().splitlines()
TREES = list(zip(LINES[::3], LINES[1::3], strict=True))
WORDS = sorted({word for sql, _ in TREES for word in sql.split()})
LADDER = ("or", "and", "=", "like", "||", "+", "*", "^", "at time zone")
"""gram.y's infix operators, the loosest first (NOT and IS have tests of their own)."""


@pytest.mark.parametrize(("sql", "tree"), TREES)
def test_trees(sql: str, tree: str) -> None:
    assert shape(parse(sql)) == tree


def test_syntax_errors_are_postgres_s() -> None:
    """All that Postgres refuses is refused; 20 of 903 messages and positions differ, where it looks further ahead."""
    different = 0
    for sql, message, position in json.loads((ANSWERS / "syntax_errors.json").read_text()):
        with pytest.raises(SqlError) as caught:
            parse(sql)
        assert caught.value.sqlstate == "42601", sql
        different += (caught.value.message, caught.value.position) != (message, position)
    assert different <= 20


def grouped(expr: nodes.Expr) -> object:
    """An expression of names and infix operators, as nested triples."""
    match expr:
        case nodes.Name():
            return expr.parts[0]
        case nodes.Operator():
            left, right = expr.args
            return (grouped(left), {"~~": "like"}.get(expr.symbol, expr.symbol), grouped(right))
        case nodes.AndExpr() | nodes.OrExpr():
            left, right = expr.args
            return (grouped(left), "and" if isinstance(expr, nodes.AndExpr) else "or", grouped(right))
        case _:
            raise AssertionError(expr)


@pytest.mark.parametrize("tight", range(1, len(LADDER)))
def test_precedence_of_infix_operators(tight: int) -> None:
    """Of any two, the tighter groups first on either side; ``between`` has LIKE's precedence."""
    upper = LADDER[tight]
    for lower in LADDER[:tight]:
        assert grouped(parse_expression(f"a {lower} b {upper} c")) == ("a", lower, ("b", upper, "c"))
        assert grouped(parse_expression(f"a {upper} b {lower} c")) == (("a", upper, "b"), lower, "c")


@pytest.mark.parametrize("operator", ["||", "+", "*", "^", "at time zone", "->"])
def test_infix_operators_group_to_the_left(operator: str) -> None:
    assert grouped(parse_expression(f"a {operator} b {operator} c")) == (("a", operator, "b"), operator, "c")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("not a = b", "not (a = b)"),
        ("not a and b", "(not a) and b"),
        ("not a is null", "not (a is null)"),
        ("a = b is null", "(a = b) is null"),
        ("a or b is true", "a or (b is true)"),
        ("a is distinct from b = c", "a is distinct from (b = c)"),
        ("a between b and c or d", "(a between b and c) or d"),
        ("a between b = c and d", "a between (b = c) and d"),
        ("a + b in (c, d) = e", "((a + b) in (c, d)) = e"),
        ("a || b not like c || d", "(a || b) not like (c || d)"),
        ("- a ^ b", "(- a) ^ b"),
        ("- a::int", "- (a::int)"),
        ("~ a + b", "~ (a + b)"),
        ("a = - b", "a = (- b)"),
        ("a + not b = c", "a + (not (b = c))"),
        ("a collate \"C\" || b", "(a collate \"C\") || b"),
        ("a at time zone b::text", "a at time zone (b::text)"),
        ("a operator(pg_catalog.+) b * c", "a operator(pg_catalog.+) (b * c)"),
        ("a * b operator(pg_catalog.*) c", "(a * b) operator(pg_catalog.*) c"),
        ("a[1]::int", "(a[1])::int"),
        ("a is null is null", "(a is null) is null"),
        ("a in (b) in (c)", "(a in (b)) in (c)"),
    ],
)  # fmt: skip
def test_precedence_of_the_rest(text: str, same: str) -> None:
    assert shape(parse_expression(text)) == shape(parse_expression(same))


def offsets(node: object) -> Iterator[int]:
    """Every ``at`` in a tree."""
    if isinstance(node, tuple):
        for item in node:
            yield from offsets(item)
    elif is_dataclass(node):
        for field in fields(node):
            value = getattr(node, field.name)
            if field.name == "at":
                yield value
            else:
                yield from offsets(value)


@pytest.mark.parametrize("sql", [sql for sql, _ in TREES])
def test_every_node_points_to_a_token(sql: str) -> None:
    before = " \n/* x */ "
    starts = {token.start for token in tokenize(before + sql)}
    found = list(offsets(parse(before + sql)))
    assert set(found) <= starts
    assert [at - len(before) for at in found] == list(offsets(parse(sql)))


@pytest.mark.parametrize(
    ("sql", "at"),
    [
        ("select a + b", 9), ("select f(a)", 7), ("select a::int", 8), ("select cast(a as int)", 7),
        ("select int '1'", 7), ("select a and b and c", 9), ("select a is null", 9), ("select a not in (1)", 9),
        ("select a between 1 and 2", 9), ("select case when a then b end", 7), ("select (1, 2)", 7),
        ("select a[1]", 8), ("select (a).b", 10), ("select -a", 7), ("select -1", 7), ("select a collate x", 9),
        ("select s.f(a)", 7), ("select a = any (b)", 9), ("select (select 1)", 7), ("select a at time zone b", 9),
    ],
)  # fmt: skip
def test_where_expressions_point(sql: str, at: int) -> None:
    query = parse(sql)
    assert isinstance(query, nodes.Query)
    assert isinstance(query.body, nodes.Select)
    assert query.body.targets[0].expr.at == at


@pytest.mark.parametrize("sql", (ANSWERS / "syntax_wrong.sql").read_text().splitlines())
def test_what_sqlglot_alone_would_read_is_refused(sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(sql)
    assert caught.value.sqlstate == "42601"


@pytest.mark.parametrize("word", ["qualify", "pivot", "top", "semi", "anti", "sample", "prewhere", "kill", "if"])
def test_other_dialects_keywords_are_names(word: str) -> None:
    tree = shape(parse(f"select {word}, t.{word} {word} from {word} t, t {word}"))
    assert tree == shape(parse("select xyz, t.xyz xyz from xyz t, t xyz")).replace("xyz", word)


def test_a_node_that_sqlglot_made_by_itself_is_named() -> None:
    with pytest.raises(SqlError) as caught:
        tree(exp.Lambda(this=exp.Null(), expressions=[]))
    assert (caught.value.sqlstate, caught.value.message) == ("0A000", "Lambda is not supported")


def test_the_compiled_sqlglot_is_refused() -> None:
    program = "import sqlglot.parser as p; p.__file__ = 'parser.so'; import sql.syntax.dialect"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ImportError" in result.stderr
    assert "sqlglotc" in result.stderr


def test_long_chains_and_long_blanks() -> None:
    """Chains of operators and set operations do not recurse; blanks after a string are read once."""
    count = 3000
    assert isinstance(parse("select " + " and ".join(["a"] * count)), nodes.Query)
    assert isinstance(parse(" union all ".join(["select 1"] * count)), nodes.Query)
    assert isinstance(parse("select 'a'\n" + " " * 5000 + "from t"), nodes.Query)


@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_any_words_parse_or_are_a_sql_error(words: list[str]) -> None:
    text = " ".join(words)
    position: int | None = None
    try:
        parse(text)
    except SqlError as error:
        position = error.position
    assert position is None or 1 <= position <= len(text) + 1
