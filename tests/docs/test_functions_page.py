"""The page of functions says what the table has."""

from __future__ import annotations

from tests.docs.functions_page import PAGE, page


def test_it_is_not_stale() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.docs.functions_page"
