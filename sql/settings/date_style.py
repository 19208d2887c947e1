"""Parses the value of SET DateStyle (PostgreSQL's ``check_datestyle``)."""

from __future__ import annotations

from ivm.errors import SqlError
from storage.types.text_style import DEFAULT_FORMATS, TextFormats


def date_style(value: str, current: TextFormats) -> str:
    """The canonical form of ``SQL, DMY`` and the like; a part not given stays as in ``current``. 22023 for unknown or
    conflicting words."""
    date: str | None = None
    order: str | None = None
    for word in value.replace('"', "").split(","):
        said, ordered = _word(word.strip().lower(), value)
        if (said and date not in (None, said)) or (ordered and order not in (None, ordered)):
            raise _invalid(value, 'Conflicting "datestyle" specifications.')
        date, order = said or date, ordered or order
    if date == "German" and order is None:
        order = "DMY"
    return f"{date or current.date}, {order or current.order}"


def _word(word: str, value: str) -> tuple[str | None, str | None]:
    """The (output style, field order) of one key word."""
    if word == "default":
        return DEFAULT_FORMATS.date, DEFAULT_FORMATS.order
    for prefix, style in (("iso", "ISO"), ("sql", "SQL"), ("postgres", "Postgres"), ("german", "German")):
        if word == prefix or (prefix == "postgres" and word.startswith(prefix)):
            return style, None
    if word in ("dmy", "ymd", "mdy"):
        return None, word.upper()
    if word.startswith("euro"):
        return None, "DMY"
    if word == "us" or word.startswith("noneuro"):
        return None, "MDY"
    raise _invalid(value, f'Unrecognized key word: "{word}".')


def _invalid(value: str, detail: str) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "DateStyle": "{value}"', detail)
