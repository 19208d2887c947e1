"""The table of clients' own suites that `make clients` writes."""

from __future__ import annotations

from tests.clients.suites import BEGIN, SUITES, Outcome, Record, Suite, outcome, renewed, row, rows_in, twice
from tests.clients.table import PAGE, between

REPORT = """<testsuites><testsuite>
<testcase classname="a.B" name="test_right[1]" /><testcase classname="a.B" name="test_wrong[2]"><failure>x</failure>
</testcase><testcase classname="a" name="test_skipped"><skipped /></testcase><testcase classname="a" name="test_late" />
<testcase classname="a" name="test_late"><error /></testcase></testsuite></testsuites>"""


def test_what_a_report_says() -> None:
    assert outcome(REPORT) == Outcome(
        frozenset({"a.B::test_right[1]"}), frozenset({"a.B::test_wrong[2]", "a::test_skipped", "a::test_late"})
    )


def test_a_name_does_not_depend_on_the_server() -> None:
    report = '<testsuite><testcase classname="a.B_postgresql+psycopg_15_18" name="test_it[x_1]" /></testsuite>'
    assert outcome(report).passed == {"a.B::test_it[x_1]"}


def test_what_failed_may_pass_the_second_time() -> None:
    first, second = Outcome(frozenset("ab"), frozenset("cd")), Outcome(frozenset("c"), frozenset("d"))
    assert twice(first, second) == Outcome(frozenset("abc"), frozenset("d"))


def test_what_postgres_passed_once_counts() -> None:
    first = renewed(None, "1", Outcome(frozenset("ab"), frozenset("cd")))
    assert first == Record("1", 2, frozenset("cd"))
    second = Outcome(frozenset("bc"), frozenset("ad"))
    assert renewed(first, "1", second) == Record("1", 3, frozenset("d"))
    assert renewed(first, "2", second) == Record("2", 2, frozenset("ad"))


class _Known(Suite):
    version = "1.2"


def test_only_what_postgres_passes_counts() -> None:
    suite = _Known("x", "no-such-package", ())
    record = Record("1.2", 5, frozenset({"a::test_there", "a::test_off"}))
    names = {f"a::test_m[{i}\n]" for i in range(2)} | {"a::test_off", "a::test_n"}
    found = Outcome(frozenset({"a::test_there", "a::test_here"}), frozenset(names))
    assert row(suite, record, found) == "| x | 1.2 | 1 | 5 | `test_m` (2), `test_n` |"
    assert row(suite, None, found) == "| x | | not run | | PostgreSQL's run of 1.2 is not recorded |"
    assert row(suite, Record("1.1", 5, frozenset()), found) == row(suite, None, found)
    assert row(suite, record, "it is gone") == "| x | | not run | | it is gone |"
    many = Outcome(frozenset(), frozenset(f"a::t{i:02}" for i in range(30)))
    assert row(suite, record, many).endswith("`t18`, `t19` and 10 more |")


def test_other_suites_keep_their_rows() -> None:
    page = between(
        f"a\n{BEGIN}\n<!-- end -->\n| c | d |\n", BEGIN, "| suite | of |\n|---|---|\n| x, y | 1 |\n| z | 2 |"
    )
    assert rows_in(page) == {"x, y": "| x, y | 1 |", "z": "| z | 2 |"}


def test_the_page_has_a_row_of_each_suite() -> None:
    assert set(rows_in(PAGE.read_text())) == {suite.name for suite in SUITES}
