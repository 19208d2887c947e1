"""DateStyle and IntervalStyle, in and out. The expected texts are a PostgreSQL 15's own answers."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ivm.errors import SqlError
from ivm.words import DATE, INTERVAL, TIMESTAMP, TIMESTAMPTZ
from planner.expr.functions.formatting.number import format_numeric
from planner.expr.functions.formatting.parse_number import parse_number
from sql.settings.date_style import date_style
from sql.settings.settings import Settings
from storage.types.text import TextStyle, format_datum, parse_datum
from storage.types.text_style import DEFAULT_FORMATS, TextFormats

PACIFIC = "America/Los_Angeles"
MOMENTS = [
    ("Postgres", "DMY", "03-02-2001", "Sat 03 Feb 04:05:06.7 2001", "Fri 02 Feb 20:05:06 2001 PST"),
    ("Postgres", "MDY", "02-03-2001", "Sat Feb 03 04:05:06.7 2001", "Fri Feb 02 20:05:06 2001 PST"),
    ("German", "DMY", "03.02.2001", "03.02.2001 04:05:06.7", "02.02.2001 20:05:06 PST"),
    ("SQL", "MDY", "02/03/2001", "02/03/2001 04:05:06.7", "02/02/2001 20:05:06 PST"),
    ("ISO", "MDY", "2001-02-03", "2001-02-03 04:05:06.7", "2001-02-02 20:05:06-08"),
]
INTERVALS = [
    ("postgres_verbose", "1 year 2 mons -3 days 04:05:06.7", "@ 1 year 2 mons -3 days 4 hours 5 mins 6.7 secs"),
    ("postgres_verbose", "-1 day 2 hours", "@ 1 day -2 hours ago"),
    ("postgres_verbose", "0", "@ 0"),
    ("postgres_verbose", "1 sec", "@ 1 sec"),
    ("postgres_verbose", "-1.5 sec", "@ 1.5 secs ago"),
    ("postgres_verbose", "-1 year 2 days -00:00:01", "@ 1 year -2 days 1 sec ago"),
    ("sql_standard", "1 year 2 mons -3 days 04:05:06.7", "+1-2 -3 +4:05:06.7"),
    ("sql_standard", "-1 day 2 hours", "-1 2:00:00"),
    ("sql_standard", "0", "0"),
    ("sql_standard", "-1-2", "-1-2"),
    ("sql_standard", "-1 2:03:04", "-1 2:03:04"),
    ("sql_standard", "3 days", "3 0:00:00"),
    ("iso_8601", "1 year 2 mons -3 days 04:05:06.7", "P1Y2M-3DT4H5M6.7S"),
    ("iso_8601", "-1 day 2 hours", "P-1DT2H"),
    ("iso_8601", "0", "PT0S"),
    ("iso_8601", "-1.5 sec", "PT-1.5S"),
]


@pytest.mark.parametrize(("style", "order", "date", "stamp", "stamptz"), MOMENTS)
def test_date_styles(style: str, order: str, date: str, stamp: str, stamptz: str) -> None:
    shown = TextStyle(PACIFIC, formats=TextFormats(style, order))
    assert format_datum(DATE, parse_datum(DATE, "2001-02-03"), shown) == date
    assert format_datum(TIMESTAMP, parse_datum(TIMESTAMP, "2001-02-03 04:05:06.7"), shown) == stamp
    assert format_datum(TIMESTAMPTZ, parse_datum(TIMESTAMPTZ, "2001-02-03 04:05:06+00"), shown) == stamptz
    for type_, text in ((DATE, date), (TIMESTAMP, stamp), (TIMESTAMPTZ, stamptz)):
        assert format_datum(type_, parse_datum(type_, text, shown), shown) == text


def test_infinities_and_bc_keep_their_words() -> None:
    german = TextStyle(formats=TextFormats("German", "DMY"))
    assert format_datum(DATE, parse_datum(DATE, "infinity"), german) == "infinity"
    assert format_datum(DATE, parse_datum(DATE, "0055-01-01 BC"), german) == "01.01.0055 BC"


@pytest.mark.parametrize(
    ("order", "text", "iso"),
    [
        ("MDY", "01/02/2003", "2003-01-02"), ("DMY", "01/02/2003", "2003-02-01"), ("DMY", "2003-01-02", "2003-01-02"),
        ("YMD", "01/02/03", "2001-02-03"), ("YMD", "99-Jan-08", "1999-01-08"), ("YMD", "January 8, 1999", "1999-01-08"),
    ],
)  # fmt: skip
def test_the_order_of_input(order: str, text: str, iso: str) -> None:
    read = parse_datum(DATE, text, TextStyle(formats=TextFormats("ISO", order)))
    assert format_datum(DATE, read) == iso


@pytest.mark.parametrize(("style", "text", "shown"), INTERVALS)
def test_interval_styles(style: str, text: str, shown: str) -> None:
    formats = TextStyle(formats=TextFormats(interval=style))
    assert format_datum(INTERVAL, parse_datum(INTERVAL, text, formats), formats) == shown


def test_setting_a_date_style_keeps_what_is_not_said() -> None:
    settings = Settings()
    settings.set("datestyle", "Postgres, DMY")
    assert settings.get("DateStyle") == "Postgres, DMY"
    settings.set("datestyle", "iso")
    assert settings.get("DateStyle") == "ISO, DMY"
    settings.set("datestyle", "us")
    assert settings.formats == DEFAULT_FORMATS
    assert date_style("german", DEFAULT_FORMATS) == "German, DMY"
    for wrong in ("foo", "iso, sql", "mdy, dmy"):
        with pytest.raises(SqlError) as raised:
            settings.set("datestyle", wrong)
        assert raised.value.sqlstate == "22023"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("GMT-4", "2001-07-10 23:51:14-07"), ("GMT+4", "2001-07-11 07:51:14-07"),
        ("PST-03:00", "2001-07-11 00:51:14-07"), ("PST+03:00", "2001-07-11 06:51:14-07"),
        ("PST", "2001-07-11 11:51:14-07"), ("-4", "2001-07-11 07:51:14-07"),
    ],
)  # fmt: skip
def test_posix_zones_count_west_as_positive(text: str, shown: str) -> None:
    style = TextStyle(PACIFIC)
    read = parse_datum(TIMESTAMPTZ, f"Wed Jul 11 10:51:14 {text} 2001", style)
    assert format_datum(TIMESTAMPTZ, read, style) == shown


@pytest.mark.parametrize(
    ("text", "template", "value"),
    [
        ("1234.56", "L99,999.99", "1234.56"), ("$1,234.56", "L99,999.99", "1234.56"),
        ("-34,338,492", "99G999G999", "-34338492"),
    ],
)  # fmt: skip
def test_to_number_skips_no_digit_for_a_literal(text: str, template: str, value: str) -> None:
    assert str(parse_number(text, template)) == value


def test_an_escaped_quote_in_a_number_template_is_a_quote() -> None:
    assert format_numeric(Decimal(100), 'f\\"oo999') == 'f"oo 100'
