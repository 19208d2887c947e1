"""The table of clients that `make clients` writes."""

from __future__ import annotations

import pytest

from tests.clients.table import BEGIN, END, PAGE, Client, row, written


def test_rows() -> None:
    assert row("none", Client(("no-such-package",), 3, 4, ["test_it"], [])) == "| none |  | 3 | 4 | `test_it` |"
    assert row("psql", Client(absent=["psql is not installed"])) == "| psql | | not run | | psql is not installed |"


def test_only_what_is_between_the_marks_changes() -> None:
    page = f"a\n{BEGIN}\nold\n{END}\nb\n"
    once = written(page, {"x": Client(("no-such-package",), 1, 1)})
    assert once == written(once, {"x": Client(("no-such-package",), 1, 1)})
    assert once.startswith(f"a\n{BEGIN}\n| client |")
    assert once.endswith(f"| x |  | 1 | 1 |  |\n{END}\nb\n")
    with pytest.raises(AssertionError):
        written("no marks", {})


def test_the_page_has_its_place() -> None:
    assert BEGIN in PAGE.read_text()
