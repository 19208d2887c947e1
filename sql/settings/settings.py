"""Run-time settings, as known to SHOW, SET and RESET, and which of them are reported to the client."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ivm.errors import SqlError
from planner.expr.context import SERVER_VERSION
from planner.options import Joins, Late, Planning
from sql.catalog.search_path import schema_list
from sql.settings.date_style import date_style
from sql.settings.planner import NUMBERS, OFF, SWITCHES, WORDS
from storage.types.text_style import DateFormats
from storage.types.zone_files import zone_names
from storage.types.zones import find_zone, fixed_zone

REPORTED: Final = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby",
    "integer_datetimes", "IntervalStyle", "is_superuser", "search_path", "server_encoding", "server_version",
    "session_authorization", "standard_conforming_strings", "TimeZone",
)  # fmt: skip
ISOLATION_LEVELS: Final = ("serializable", "repeatable read", "read committed", "read uncommitted")
"""The levels that can be requested; a transaction always gets the first."""
_UNITS: Final = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    default: str
    check: Callable[[str, str], str] | None = None
    """(name, value) → canonical value; None if the setting cannot be changed."""


def _any(name: str, value: str) -> str:
    return value


def _choice(*values: str) -> Callable[[str, str], str]:
    def check(name: str, value: str) -> str:
        if value.lower() not in values:
            hint = f"Available values: {', '.join(values)}."
            raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)
        return value.lower()

    return check


def _only(*values: str) -> Callable[[str, str], str]:
    """The check of a setting with one supported value (in several spellings); others raise 0A000."""

    def check(name: str, value: str) -> str:
        if value.lower().replace(" ", "") not in [v.lower().replace(" ", "") for v in values]:
            raise SqlError("0A000", f'{name} "{value}" is not supported', hint=f"Only {values[0]} is.")
        return values[0]

    return check


def _boolean(name: str, value: str) -> str:
    if value.lower() in ("on", "true", "yes", "1", "t", "y"):
        return "on"
    if value.lower() in ("off", "false", "no", "0", "f", "n"):
        return "off"
    raise SqlError("22023", f'parameter "{name}" requires a Boolean value')


def _duration(name: str, value: str) -> str:
    """A time in ms, or with a unit, in the form in which Postgres shows it."""
    milliseconds = _milliseconds(name, value)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0"


@lru_cache(1000)
def _date_formats(date_style: str, interval_style: str) -> DateFormats:
    date, _, order = date_style.partition(", ")
    return DateFormats(date, order, interval_style)


@lru_cache(1000)
def _milliseconds(name: str, value: str) -> int:
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([a-z]*)\s*", value)
    if match is None or (match[2] and match[2] not in _UNITS):
        hint = 'Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".'
        raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint)
    result = round(float(match[1]) * _UNITS[match[2] or "ms"])
    if not 0 <= result < 2**31:
        message = f'{result} ms is outside the valid range for parameter "{name}" (0 ms .. 2147483647 ms)'
        raise SqlError("22023", message)
    return result


def _integer(name: str, value: str) -> str:
    if not re.fullmatch(r"-?\d+", value.strip()):
        raise SqlError("22023", f'invalid value for parameter "{name}": "{value}"')
    return value.strip()


def _timezone(name: str, value: str) -> str:
    if value.upper() in ("UTC", "GMT", "ZULU"):
        return value.upper() if value.upper() != "ZULU" else "UTC"
    if re.fullmatch(r"[+-]?\d+(\.\d+)?", value.strip()):
        return fixed_zone(round(float(value) * 3600))
    if find_zone(value) is not None:
        return zone_names().get(value.lower(), value)
    raise SqlError("22023", f'invalid value for parameter "TimeZone": "{value}"')


def _search_path(name: str, value: str) -> str:
    schema_list(value)
    return value


_SETTINGS: Final = (
    _Setting("application_name", "", _any),
    _Setting("bytea_output", "hex", _choice("hex")),
    _Setting("check_function_bodies", "on", _boolean),
    _Setting("client_encoding", "UTF8", _only("UTF8", "UTF-8", "UNICODE")),
    _Setting("client_min_messages", "notice", _choice("debug", "log", "notice", "warning", "error")),
    _Setting("DateStyle", "ISO, MDY", _any),
    _Setting("default_tablespace", "", _any),
    _Setting("default_table_access_method", "heap", _any),
    _Setting("default_transaction_deferrable", "off", _boolean),
    _Setting("default_transaction_isolation", "serializable", _choice(*ISOLATION_LEVELS)),
    _Setting("default_transaction_read_only", "off", _boolean),
    _Setting("extra_float_digits", "1", _integer),
    _Setting("idle_in_transaction_session_timeout", "1min", _duration),
    _Setting("ignore_view_errors", "off", _boolean),
    _Setting("in_hot_standby", "off"),
    _Setting("integer_datetimes", "on"),
    _Setting("IntervalStyle", "postgres", _choice("postgres", "postgres_verbose", "sql_standard", "iso_8601")),
    _Setting("is_superuser", "on"),
    _Setting("join_implementation", "auto", _choice(*(joins.value for joins in Joins))),
    _Setting("late_fetch", "auto", _choice(*(late.value for late in Late))),
    _Setting("lc_collate", "C"),
    _Setting("lc_ctype", "C"),
    _Setting("lock_timeout", "0", _duration),
    _Setting("max_identifier_length", "63"),
    _Setting("max_staleness", "0", _duration),
    _Setting("recursion_demand", "on", _boolean),
    _Setting("row_security", "on", _boolean),
    _Setting("search_path", '"$user", public', _search_path),
    _Setting("server_encoding", "UTF8"),
    _Setting("server_version", SERVER_VERSION),
    _Setting("server_version_num", "150000"),
    _Setting("session_authorization", ""),
    _Setting("standard_conforming_strings", "on", _only("on")),
    _Setting("statement_timeout", "0", _duration),
    _Setting("synchronous_commit", "on", _any),
    _Setting("TimeZone", "UTC", _timezone),
    _Setting("transaction_isolation", "serializable", _choice(*ISOLATION_LEVELS)),
    _Setting("transaction_read_only", "off", _boolean),
    _Setting("transaction_deferrable", "off", _boolean),
    _Setting("work_mem", "4MB", _any),
    _Setting("xmloption", "content", _any),
    *(_Setting(name, "on", _boolean) for name in SWITCHES),
    *(_Setting(name, "off", _boolean) for name in OFF),
    *(_Setting(name, default, _any) for name, default in (NUMBERS | WORDS).items()),
)
_BY_NAME: Final = {s.name.lower(): s for s in _SETTINGS}
_SYNONYMS: Final = {"time zone": "timezone", "transaction isolation level": "transaction_isolation",
                    "names": "client_encoding"}  # fmt: skip


@dataclass(slots=True)
class Settings:
    """One session's settings. ``reported`` collects the names of reported settings whose value changed
    (ParameterStatus)."""

    values: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    reported: list[str] = field(default_factory=list)
    _local: dict[str, str | None] = field(default_factory=dict)
    """The values replaced by SET LOCAL, until the transaction ends."""
    _before: dict[str, str] | None = None
    """The values at the start of the transaction, to which a rollback returns."""

    def get(self, name: str) -> str:
        """A setting's value; 42704 for an unknown one."""
        setting = _lookup(name)
        key = setting.name.lower()
        if key in self.values:
            return self.values[key]
        if key.startswith("transaction_"):
            return self.get(f"default_{key}")
        return self.defaults.get(key, setting.default)

    def find(self, name: str) -> str | None:
        """A setting's value, None for an unknown one."""
        return self.get(name) if _canonical(name) in _BY_NAME else None

    def label(self, name: str) -> str:
        """The name as shown in SHOW's column header."""
        return _lookup(name).name

    def set(self, name: str, value: str | None, local: bool = False) -> None:
        """SET; ``value`` None restores the default."""
        if value is None and name.lower() == "all":
            for key in list(self.values):
                self.set(key, None, local)
            return
        setting = _lookup(name)
        key = setting.name.lower()
        if setting.check is None:
            raise SqlError("55P02", f'parameter "{setting.name}" cannot be changed')
        if key == "datestyle" and value is not None:
            value = date_style(value, self.formats)
        checked = None if value is None or value.lower() == "default" else setting.check(setting.name, value)
        if local and key not in self._local:
            self._local[key] = self.values.get(key)
        self._put(key, checked)

    @property
    def formats(self) -> DateFormats:
        """The current DateStyle and IntervalStyle."""
        return _date_formats(self.get("datestyle"), self.get("intervalstyle"))

    @property
    def planning(self) -> Planning:
        """The settings that govern how statements are planned."""
        return Planning(
            Joins(self.get("join_implementation")), self.boolean("recursion_demand"), Late(self.get("late_fetch"))
        )

    def milliseconds(self, name: str) -> int:
        """A duration setting, in ms."""
        return _milliseconds(name, self.get(name))

    def boolean(self, name: str) -> bool:
        return self.get(name) == "on"

    def begin(self) -> None:
        """Begins a transaction."""
        self._before = dict(self.values)

    def end(self, committed: bool) -> None:
        """Ends the transaction: reverts SET LOCAL, and SET too if it was rolled back."""
        if not committed and self._before is not None:
            for key in set(self.values) | set(self._before):
                self._put(key, self._before.get(key))
        elif self._local:
            for key, old in self._local.items():
                self._put(key, old)
        self._local.clear()
        self._before = None

    def all(self) -> list[tuple[str, str]]:
        """All settings with their values, sorted by name."""
        return sorted(((s.name, self.get(s.name)) for s in _SETTINGS), key=lambda pair: pair[0].lower())

    def report(self) -> list[tuple[str, str]]:
        """All reported settings with their values, for the start of a session."""
        return [(name, self.get(name)) for name in REPORTED]

    def _put(self, key: str, value: str | None) -> None:
        old = self.get(key)
        if value is None:
            self.values.pop(key, None)
        else:
            self.values[key] = value
        name = _BY_NAME[key].name
        if name in REPORTED and self.get(key) != old and name not in self.reported:
            self.reported.append(name)


def _canonical(name: str) -> str:
    return _SYNONYMS.get(name.lower(), name.lower())


def _lookup(name: str) -> _Setting:
    found = _BY_NAME.get(_canonical(name))
    if found is None:
        raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
    return found
