"""Texts of sessions whose strings are not standard, as texts that mean the same everywhere."""

from __future__ import annotations

import random
from typing import Final

import pytest

from ivm.errors import SqlError
from sql.settings.quoting import Quoting
from sql.syntax.lexing.lexer import Token, TokenKind, one_by_one, tokenize
from sql.syntax.lexing.standard_strings import doubled, standard

ESCAPING: Final = Quoting(escapes=True, warns=True, refuses=False)
REFUSING: Final = Quoting(escapes=False, warns=True, refuses=True)
PIECES: Final = (
    r"'a\nb'", r"'\\'", r"'it\'s'", "'it''s'", "''", r"E'\t'", r"n'\101'", "'a'\n'b'", "'a\\t'\n'\\x41'", r'"a\b"',
    r"$$a\n$$", r"$q$'\'$q$", r"--'\'" "\n", r"/*'\'*/", "1", "1.", "$1", "a", "in", "values", "(", ")", ",", "=", "-",
    "||", "::", " ", "\n", "é", "b'1'",
)  # fmt: skip


def written(text: str, quoting: Quoting = ESCAPING) -> tuple[str, list[tuple[str, str, int | None]]]:
    """The standard text, and the warnings."""
    warnings: list[tuple[str, str, int | None]] = []
    found = standard(text, quoting, lambda *warning: warnings.append(warning))
    return found.text, warnings


def meanings(tokens: list[Token]) -> list[tuple[TokenKind, str]]:
    return [(t.kind, t.value) for t in tokens if t.kind is not TokenKind.END]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r"select 'a\nb'", r"select E'a\nb'"),
        (r"select'a\nb'", r"select E'a\nb'"),
        (r"select N'a\nb', 'c'", r"select E'a\nb', 'c'"),
        (r"select 'it\'s', $$a\b$$, 'c\d'", r"select E'it\'s', $$a\b$$, E'c\d'"),
        (r"""select "a\b", e'\n' -- '\', '\n'""", r"""select "a\b", e'\n' -- '\', '\n'"""),
        ("select 'a'\n 'b\\n'", "select E'a'\n 'b\\n'"),
        (r"do $$begin perform 'a\\b'; end$$", r"do $$begin perform E'a\\b'; end$$"),
        (
            r"do language plpgsql 'begin perform ''a\\\\b''; end'",
            r"do language plpgsql E'begin perform E''a\\\\b''; end'",
        ),
        (
            r"create or replace function f() returns text as $x$select 'a\\b'$x$ language sql; select '\q'",
            r"create or replace function f() returns text as $x$select E'a\\b'$x$ language sql; select E'\q'",
        ),
        (
            r"create function f() returns text language python as $$return 'a\nb'$$",
            r"create function f() returns text language python as $$return 'a\nb'$$",
        ),
        (
            r"create procedure p() language 'plpgsql' as $$call q('\\n')$$",
            r"create procedure p() language 'plpgsql' as $$call q(E'\\n')$$",
        ),
    ],
)
def test_the_standard_text(text: str, wanted: str) -> None:
    assert written(text)[0] == wanted


def test_the_same_tokens() -> None:
    """The standard text has the tokens that the text has where strings have escapes; doubled, it is read so again."""
    draw = random.Random(1)
    texts = ["".join(draw.choices(PIECES, k=draw.randint(1, 9))) for _ in range(5000)]
    texts += [f"{a}{b}" for a in PIECES for b in PIECES]
    read = 0
    for text in texts:
        try:
            wanted = list(one_by_one(text, escapes=True))
            found = standard(text, ESCAPING, lambda *_: None).text
        except SqlError:
            continue
        read += 1
        assert meanings(list(one_by_one(found, escapes=False))) == meanings(wanted), text
        assert meanings(list(one_by_one(doubled(found), escapes=True))) == meanings(wanted), text
    assert read > 3000


def test_warnings() -> None:
    """One for each string, of its first escape."""
    _, warnings = written(r"select 'a\n\'', 'it\'s', '\\', n'\q', E'\n', do, 'plain'")
    escapes = r"Use the escape string syntax for escapes, e.g., E'\r\n'."
    quotes = "Use '' to write quotes in strings, or use the escape string syntax (E'...')."
    assert warnings == [
        ("nonstandard use of escape in a string literal", escapes, 8),
        (r"nonstandard use of \' in a string literal", quotes, 17),
        (r"nonstandard use of \\ in a string literal",
         r"Use the escape string syntax for backslashes, e.g., E'\\'.", 26),
        ("nonstandard use of escape in a string literal", escapes, 33),
    ]  # fmt: skip
    assert written(r"select 'a\n'", Quoting(escapes=True, warns=False, refuses=False))[1] == []


@pytest.mark.parametrize(
    ("text", "quoting", "sqlstate", "position"),
    [
        ("select U&'a'", ESCAPING, "0A000", 8),
        (r"select 'abc\'", ESCAPING, "42601", 8),
        (r"select E'a\\b', E'a\'b'", REFUSING, "22P06", 17),
        (r"select '\'', 'a\'b'", Quoting(escapes=True, warns=False, refuses=True), "22P06", 8),
    ],
)
def test_refused(text: str, quoting: Quoting, sqlstate: str, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        written(text, quoting)
    assert (caught.value.sqlstate, caught.value.position) == (sqlstate, position)


def test_not_refused() -> None:
    text = r"select 'a\', E'\\', E'it''s', $$\'$$"
    assert written(text, REFUSING) == (text, [])


def test_positions_are_led_back() -> None:
    """Each token of the standard text is where it was in the text that was sent."""
    text = r"select'a\n', n'\q', 'b', 'c\'d', x from t where $$a$$ = 'e\e' and do $$perform '\n'$$ or y"
    found = standard(text, ESCAPING, lambda *_: None)
    before = [t.start + 1 for t in one_by_one(text, escapes=True)]
    errors = (SqlError("42601", "wrong", position=t.start + 1) for t in tokenize(found.text)[:-1])
    assert [found.led_back(error).position for error in errors] == before
    wrong = SqlError("42601", r"""syntax error at or near "E'a\n'" """, position=found.text.index("E'") + 1)
    assert found.led_back(wrong).message == r"""syntax error at or near "'a\n'" """


def test_a_text_without_backslashes_is_left_alone() -> None:
    text = "select 'it''s' & 'b' -- /* not even correct"
    assert written(text) == (text, [])


def test_escapes_continue_on_the_next_line() -> None:
    assert [t.value for t in tokenize("E'a\\t'\n'\\x41b'")] == ["a\tAb", ""]
