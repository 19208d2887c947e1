"""A long PL/pgSQL body is read statement by statement, between which the work may end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ivm.errors import SqlError
from ivm.stops import stoppable
from sql.syntax.plpgsql import nodes
from sql.syntax.plpgsql.checking import Returns, check_body
from sql.syntax.plpgsql.grammar import parse_body

STATEMENTS = 100


def _body(count: int) -> str:
    return "DECLARE x int := 0;\nBEGIN\n" + "  x := x + 1;\n" * count + "END"


class _Asked(threading.Event):
    """Counts how often it is asked, and says yes from the last time on."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self.asked, self.last = 0, last

    def is_set(self) -> bool:
        self.asked += 1
        return self.asked >= self.last


def _check(body: nodes.Body) -> None:
    check_body(body, (), "inline_code_block", Returns(nothing=True))


@pytest.mark.parametrize("last", [1, STATEMENTS // 2, STATEMENTS])
@pytest.mark.parametrize("what", ["parse", "check"])
def test_it_ends_at_the_next_statement(what: str, last: int) -> None:
    text = _body(STATEMENTS) + f" -- {what} {last}"
    body = None if what == "parse" else parse_body(text)
    work: Callable[[], object] = (lambda: parse_body(text)) if body is None else (lambda: _check(body))
    asked = _Asked(last)
    with pytest.raises(SqlError, match="canceling statement"), stoppable(asked):
        work()
    assert asked.asked == last
    _check(parse_body(text))


def test_lines_are_those_of_the_text() -> None:
    block = parse_body(_body(STATEMENTS)).block
    assert (block.line, [node.line for node in block.body]) == (1, list(range(3, 3 + STATEMENTS)))
