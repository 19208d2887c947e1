"""Lexing, splitting and the grammar's shape: precedence, special syntaxes, Postgres's syntax errors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from sql.parse import StatementText, parse, parse_expression, split
from sql.statements import statements as bound
from sql.statements.vacuum import Vacuum
from sql.syntax.lexing.lexer import TokenKind, tokenize
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import statements as nodes_statements


def shown(expr: nodes.Expr) -> str:
    """An expression with all its parentheses."""
    match expr:
        case nodes.Operator() if len(expr.args) == 2:
            return f"({shown(expr.args[0])} {expr.symbol} {shown(expr.args[1])})"
        case nodes.Operator():
            return f"({expr.symbol} {shown(expr.args[0])})"
        case nodes.AndExpr():
            return "(" + " and ".join(shown(a) for a in expr.args) + ")"
        case nodes.OrExpr():
            return "(" + " or ".join(shown(a) for a in expr.args) + ")"
        case nodes.NotExpr():
            return f"(not {shown(expr.arg)})"
        case nodes.IsTest():
            return f"({shown(expr.expr)} is {'not ' if expr.negated else ''}{expr.what})"
        case nodes.InList():
            return f"({shown(expr.expr)} in)"
        case nodes.Between():
            return f"({shown(expr.expr)} between {shown(expr.low)} and {shown(expr.high)})"
        case nodes.Cast():
            return f"{shown(expr.expr)}::{expr.type.name}"
        case nodes.Name():
            return ".".join(expr.parts)
        case nodes.Number():
            return expr.text
        case nodes.String():
            return repr(expr.value)
        case _:
            return type(expr).__name__


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a or b and not c = d", "(a or (b and (not (c = d))))"),
        ("not a is null", "(not (a is null))"),
        ("a = b is not true", "((a = b) is not true)"),
        ("not a is null::text = b", "(not ((a is null)::text = b))"),
        ("a in (1)::text || b", "((a in)::text || b)"),
        ("a + b * c ^ d", "(a + (b * (c ^ d)))"),
        ("a - b - c", "((a - b) - c)"),
        ("-2 ^ 2", "(-2 ^ 2)"),
        ("-a::int", "(- a::int)"),
        ("- -1", "1"),
        ("a || b + c", "(a || (b + c))"),
        ("a < b || c", "(a < (b || c))"),
        ("a between 1 and 2 and b", "((a between 1 and 2) and b)"),
        ("a like 'x' || b", "(a ~~ ('x' || b))"),
        ("a not like 'x' or b", "((a !~~ 'x') or b)"),
        ("a operator(pg_catalog.~) 'x'", "(a ~ 'x')"),
        ("a at time zone 'utc' + b", "((a at time zone 'utc') + b)"),
        ("a -> 'x' = b", "((a -> 'x') = b)"),
        ("~ a & b", "((~ a) & b)"),
        ("date '2020-01-01' - 1", "('2020-01-01'::date - 1)"),
        ("a != b", "(a <> b)"),
        ("a*-1", "(a * -1)"),
    ],
)
def test_precedence(text: str, tree: str) -> None:
    assert shown(parse_expression(text)) == tree


def test_strings() -> None:
    tokens = tokenize("'a''b' E'\\n\\x41\\u00e9' $$x'y$$ $t$ $$ $t$ 'a'\n 'b' \"Q\"\"x\"")
    assert [t.value for t in tokens[:-1]] == ["a'b", "\nAé", "x'y", " $$ ", "ab", 'Q"x']
    assert tokens[-1].kind is TokenKind.END


def test_operators_end_where_postgres_ends_them() -> None:
    assert [t.value for t in tokenize("a<-1 b@-1 c--x\n+/* /* n */ */- d")[:-1]] == [
        "a", "<", "-", "1", "b", "@-", "1", "c", "+", "-", "d",
    ]  # fmt: skip


def test_split() -> None:
    text = " select ';' ; -- c;\n/* ; */ select $$;$$;;\n begin"
    assert [(s.text, s.offset) for s in split(text)] == [("select ';'", 1), ("select $$;$$", 28), ("begin", 44)]
    assert split(" -- nothing\n;") == []


def test_positions_count_in_the_whole_string() -> None:
    second = split("select 1; select 1 +")[1]
    with pytest.raises(SqlError) as caught:
        parse(second)
    assert (caught.value.sqlstate, caught.value.position) == ("42601", 21)


@pytest.mark.parametrize(
    ("sql", "near", "position"),
    [
        ("selec 1", "selec", 1),
        ("select 1 1", "1", 10),
        ("select a b c from t", "c", 12),
        ("select * frm t", "frm", 10),
        ("insert t values (1)", "t", 8),
        ("select x from a join b", None, 23),
        ("select (1", None, 10),
        ("select 1)", ")", 9),
        ("update t set a = 1 b = 2", "b", 20),
        ("create table t (a int,, b int)", ",", 23),
        ("select a = b = c", "=", 14),
        ("drop tabel t", "tabel", 6),
        ("select * from t limit 1 limit 2", "limit", 25),
        ("copy t form stdin", "form", 8),
        ("select case when 1 end", "end", 20),
        ("select a from t where in (1)", "in", 23),
    ],
)
def test_syntax_errors(sql: str, near: str | None, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse(sql)
    message = "syntax error at end of input" if near is None else f'syntax error at or near "{near}"'
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == ("42601", message, position)


@pytest.mark.parametrize(
    ("sql", "statement"),
    [
        ("begin isolation level repeatable read, read only", bound.Begin(bound.Modes("repeatable read", True))),
        ("start transaction", bound.Begin(tag="START TRANSACTION")),
        ("end", bound.Commit()),
        ("abort work", bound.Rollback()),
        ("rollback to savepoint s", bound.Savepoint("rollback", "s")),
        ("savepoint s", bound.Savepoint("savepoint", "s")),
        ("set search_path = a, 'b'", bound.SetVariable("search_path", "a, b")),
        ("set local time zone 'UTC'", bound.SetVariable("timezone", "UTC", True)),
        ("set x.y to default", bound.SetVariable("x.y", None)),
        ("reset all", bound.SetVariable("all", None, tag="RESET")),
        ("show transaction isolation level", bound.Show("transaction_isolation")),
        ("fetch all from c with (timeout = '1.5s')", bound.Fetch("c", None, 1.5)),
        ("fetch forward 10 c", bound.Fetch("c", 10)),
        ("move c", bound.Fetch("c", 1, None, True)),
        ("close all", bound.Close(None)),
        ("deallocate prepare p", bound.Deallocate("p")),
        ("discard all", bound.Discard("all")),
        ("listen x", bound.Listen("x")),
        ("vacuum analyze t", Vacuum(False)),
        ("vacuum full", Vacuum(True)),
        ("vacuum (verbose, full) t", Vacuum(True)),
        ("vacuum (full off, analyze)", Vacuum(False)),
        ("vacuum", Vacuum(False)),
    ],
)
def test_utility_statements(sql: str, statement: object) -> None:
    assert parse(sql) == nodes_statements.Utility(statement)


def test_as_of_and_aliases_called_of() -> None:
    query = parse("select a as of from t as of")
    assert isinstance(query, nodes.Query)
    assert query.as_of is None
    for sql in ("select a from t as of 5", "select a from t x as of at least now()", "table t order by 1 as of $1"):
        query = parse(sql)
        assert isinstance(query, nodes.Query)
        assert query.as_of is not None


def test_copy_options_old_and_new() -> None:
    old = parse("copy t (a, b) from stdin with csv header delimiter as ';' force not null a")
    new = parse("copy t (a, b) from stdin (format csv, header true, delimiter ';', force_not_null (a))")
    assert isinstance(old, nodes_statements.CopyStatement)
    assert isinstance(new, nodes_statements.CopyStatement)
    assert [o[:2] for o in old.options] == [o[:2] for o in new.options]


def test_views_keep_their_text() -> None:
    sql = "create or replace materialized view v with (retain history for '1 hour') as select 1 -- one\n"
    view = parse(split(sql)[0])
    assert isinstance(view, nodes_statements.CreateViewStatement)
    assert (view.text, view.retain, view.replace, view.materialized) == ("select 1", "1 hour", True, True)


def test_types() -> None:
    def type_of(text: str) -> nodes.TypeName:
        expr = parse_expression(f"x::{text}")
        assert isinstance(expr, nodes.Cast)
        return expr.type

    assert type_of("character varying(10)[]") == nodes.TypeName("varchar", (10,), True, 3)
    assert type_of("timestamp(3) with time zone").name == "timestamptz"
    assert type_of("double precision").name == "double precision"
    assert type_of('pg_catalog."char"').name == '"char"'


@given(st.text(alphabet="select1+*()'\"$;-/ \n,.:[]=<>EBx\\é", max_size=40))
def test_any_text_parses_or_is_a_sql_error(text: str) -> None:
    try:
        for statement in split(text):
            parse(statement)
    except SqlError as error:
        assert error.sqlstate in ("42601", "0A000", "22021", "22025", "42P10", "42809")  # noqa: PT017
        assert error.position is None or 1 <= error.position <= len(text) + 1  # noqa: PT017


@given(st.integers(0, 6))
def test_nesting(depth: int) -> None:
    assert isinstance(parse("select " + "(" * depth + "1" + ")" * depth), nodes.Query)
    assert isinstance(parse("(" * depth + "select 1" + ")" * depth), nodes.Query)


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    with pytest.raises(SqlError) as caught:
        parse(StatementText("select " + "(" * 5000 + "1" + ")" * 5000))
    assert caught.value.sqlstate == "54001"


def test_one_statement_may_keep_its_semicolon() -> None:
    assert parse("select 1;") == parse("select 1")
    with pytest.raises(SqlError) as caught:
        parse("select 1; select 2")
    assert caught.value.message == "cannot insert multiple commands into a prepared statement"
