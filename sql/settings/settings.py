"""Run-time settings, as known to SHOW, SET and RESET, and which of them are reported to the client."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

from ivm.errors import SqlError
from planner.expr.context import SERVER_VERSION
from planner.options import Joins, Late, Planning
from sql.settings.checks import (
    anything,
    backslash_quote,
    boolean,
    choice,
    duration,
    encoding,
    float_digits,
    milliseconds,
    natural,
    search_path,
    text_search_configuration,
    timezone,
)
from sql.settings.date_style import date_style
from sql.settings.limits import MOST_SESSIONS, RESERVED
from sql.settings.planner import NUMBERS, OFF, SWITCHES, WORDS
from sql.settings.quoting import Quoting
from storage.encodings.encoding import CODECS, Encoding, encoding_named
from storage.encodings.names import CLIENT_ONLY
from storage.types.text_style import TextFormats, TextStyle

REPORTED: Final = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only", "in_hot_standby",
    "integer_datetimes", "IntervalStyle", "is_superuser", "search_path", "server_encoding", "server_version",
    "session_authorization", "standard_conforming_strings", "TimeZone",
)  # fmt: skip
MODES: Final = ("transaction_isolation", "transaction_read_only", "transaction_deferrable")
"""Settings of one transaction: every transaction begins with the default_… of each."""
FRESH: Final = ("read committed", "read uncommitted")
"""The isolation levels in which each statement reads the newest commits."""
ISOLATION_LEVELS: Final = ("serializable", "repeatable read", *FRESH)
"""The levels that can be requested; a transaction always gets the first."""


ROLE_OID: Final = "role oid"
SESSION_OID: Final = "session_authorization oid"
"""The keys of the values that say which role SET ROLE and SET SESSION AUTHORIZATION have named; no client can."""
_ROLE_KEYS: Final = ("role", "session_authorization", "is_superuser", ROLE_OID, SESSION_OID)


@dataclass(frozen=True, slots=True)
class _Setting:
    name: str
    default: str
    check: Callable[[str, str], str] | None = None
    """(name, value) → canonical value; None if the setting cannot be changed."""


def encoding_of_client(name: str) -> Encoding | None:
    """The encoding that a client_encoding names; None: texts are sent and received as they are."""
    return encoding_named(name) if name in CODECS else None


@lru_cache(1000)
def _text_formats(date_style: str, interval_style: str, bytea_output: str) -> TextFormats:
    date, _, order = date_style.partition(", ")
    return TextFormats(date, order, interval_style, bytea_output)


_SETTINGS: Final = (
    _Setting("application_name", "", anything),
    _Setting("backslash_quote", "safe_encoding", backslash_quote),
    _Setting("bytea_output", "hex", choice("escape", "hex")),
    _Setting("check_function_bodies", "on", boolean),
    _Setting("client_encoding", "UTF8", encoding),
    _Setting("client_min_messages", "notice", choice("debug", "log", "notice", "warning", "error")),
    _Setting("DateStyle", "ISO, MDY", anything),
    _Setting("default_tablespace", "", anything),
    _Setting("default_table_access_method", "heap", anything),
    _Setting("default_transaction_deferrable", "off", boolean),
    _Setting("default_transaction_isolation", "serializable", choice(*ISOLATION_LEVELS)),
    _Setting("default_transaction_read_only", "off", boolean),
    _Setting("escape_string_warning", "on", boolean),
    _Setting("extra_float_digits", "1", float_digits),
    _Setting("idle_in_transaction_session_timeout", "1min", duration),
    _Setting("ignore_view_errors", "off", boolean),
    _Setting("in_hot_standby", "off"),
    _Setting("integer_datetimes", "on"),
    _Setting("default_text_search_config", "pg_catalog.english", text_search_configuration),
    _Setting("IntervalStyle", "postgres", choice("postgres", "postgres_verbose", "sql_standard", "iso_8601")),
    _Setting("is_superuser", "on"),
    _Setting("join_implementation", "auto", choice(*(joins.value for joins in Joins))),
    _Setting("late_fetch", "auto", choice(*(late.value for late in Late))),
    _Setting("lc_collate", "C"),
    _Setting("lc_ctype", "C"),
    _Setting("lock_timeout", "0", duration),
    _Setting("max_connections", str(MOST_SESSIONS)),
    _Setting("max_function_args", "100"),
    _Setting("max_identifier_length", "63"),
    _Setting("max_index_keys", "32"),
    _Setting("max_prepared_transactions", "0"),
    _Setting("max_staleness", "0", duration),
    _Setting("recursion_demand", "on", boolean),
    _Setting("recursion_limit", "1000000", natural),
    _Setting("role", "none"),
    _Setting("row_security", "on", boolean),
    _Setting("search_path", '"$user", public', search_path),
    _Setting("server_encoding", "UTF8"),
    _Setting("server_version", SERVER_VERSION),
    _Setting("server_version_num", "150000"),
    _Setting("session_authorization", ""),
    _Setting("superuser_reserved_connections", str(RESERVED)),
    _Setting("standard_conforming_strings", "on", boolean),
    _Setting("statement_timeout", "0", duration),
    _Setting("synchronous_commit", "on", anything),
    _Setting("TimeZone", "UTC", timezone),
    _Setting("transaction_isolation", "serializable", choice(*ISOLATION_LEVELS)),
    _Setting("transaction_read_only", "off", boolean),
    _Setting("transaction_deferrable", "off", boolean),
    _Setting("work_mem", "4MB", anything),
    _Setting("xmloption", "content", anything),
    *(_Setting(name, "on", boolean) for name in SWITCHES),
    *(_Setting(name, "off", boolean) for name in OFF),
    *(_Setting(name, default, anything) for name, default in (NUMBERS | WORDS).items()),
)
_BY_NAME: Final = {s.name.lower(): s for s in _SETTINGS}
_SYNONYMS: Final = {"time zone": "timezone", "transaction isolation level": "transaction_isolation",
                    "names": "client_encoding"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Level:
    """The values at the start of a transaction, or of a savepoint: those in effect, and those that a commit keeps."""

    values: dict[str, str]
    kept: dict[str, str]


@dataclass(slots=True)
class Settings:
    """One session's settings. ``values``: those in effect that are not the default. ``reported`` collects the names of
    reported settings whose value changed (ParameterStatus).

    SET changes the value in effect and the one that a commit keeps, SET LOCAL only the first. A rollback, of a
    transaction or to a savepoint, returns both to what they were. (PostgreSQL's guc.c keeps a stack for each setting,
    to the same effect.)
    """

    values: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    reported: list[str] = field(default_factory=list)
    _kept: dict[str, str] = field(default_factory=dict)
    _custom: set[str] = field(default_factory=set)
    """The names with a dot that were ever set: they stay known, and are empty by default."""
    _levels: list[_Level] = field(default_factory=list)
    """Of the open transaction, and of its savepoints."""
    encoding: Encoding | None = None
    """client_encoding; None: UTF8 or SQL_ASCII, of which every text is as it is here."""
    changes: int = 0
    """Grows with every change of a value, but for the modes of a transaction."""
    _derived: dict[str, Any] = field(default_factory=dict)
    """What has been made of the present values: formats, planning, durations."""

    def get(self, name: str) -> str:
        """A setting's value; 42704 for an unknown one."""
        value = self.values.get(name)
        if value is not None:
            return value
        setting = _BY_NAME.get(name)
        if setting is not None:
            return self.defaults.get(name, setting.default)
        key = _canonical(name)
        value = self.values.get(key)
        if value is not None:
            return value
        setting = _BY_NAME.get(key)
        if setting is not None:
            return self.defaults.get(key, setting.default)
        if key in self._custom:
            return self.defaults.get(key, "")
        raise _unrecognized(name)

    def find(self, name: str) -> str | None:
        """A setting's value, None for an unknown one."""
        key = _canonical(name)
        return self.get(name) if key in self.values or key in _BY_NAME or key in self._custom else None

    def label(self, name: str) -> str:
        """The name as shown in SHOW's column header."""
        setting = _BY_NAME.get(_canonical(name))
        if setting is None:
            self.get(name)
            return name
        return setting.name

    def set(self, name: str, value: str | None, local: bool = False) -> None:
        """SET; ``value`` None restores the default."""
        key = _canonical(name)
        if value is None and key == "all":
            for each in set(self.values) | set(self._kept):
                if each not in MODES and each not in _ROLE_KEYS:
                    self._put(each, None, local)
            return
        self._put(key, self._checked(key, name, value), local)

    def _checked(self, key: str, name: str, value: str | None) -> str | None:
        setting = _BY_NAME.get(key)
        if setting is None:
            _check_custom(key, name)
            self._custom.add(key)
            return value
        if setting.check is None:
            raise SqlError("55P02", f'parameter "{name}" cannot be changed')
        if value is None or value.lower() == "default":
            return None
        if key == "datestyle":
            value = date_style(value, self.formats)
        return setting.check(name, value)

    def set_role(self, key: str, role: tuple[str, int] | None, superuser: bool, local: bool) -> None:
        """SET ROLE, or SESSION AUTHORIZATION, which ends a SET ROLE. ``role``: its name and oid, None: the default.
        ``superuser``: the current role is then one."""
        name, oid = role or (None, None)
        if key == "session_authorization":
            self._put("role", None, local)
            self._put(ROLE_OID, None, local)
        self._put(key, name, local)
        self._put(ROLE_OID if key == "role" else SESSION_OID, None if oid is None else str(oid), local)
        shown = "on" if superuser else "off"
        self._put("is_superuser", None if shown == self.defaults.get("is_superuser", "on") else shown, local)

    @property
    def formats(self) -> TextFormats:
        """The current DateStyle, IntervalStyle and bytea_output."""
        found: TextFormats | None = self._derived.get("formats")
        if found is None:
            found = _text_formats(self.get("datestyle"), self.get("intervalstyle"), self.get("bytea_output"))
            self._derived["formats"] = found
        return found

    @property
    def constants(self) -> TextStyle:
        """How constants are read."""
        found: TextStyle | None = self._derived.get("constants")
        if found is None:
            found = self._derived["constants"] = TextStyle(self.get("timezone"), formats=self.formats)
        return found

    @property
    def quoting(self) -> Quoting | None:
        """How strings are read; None: as the standard says."""
        found: Quoting | Literal[False] | None = self._derived.get("quoting")
        if found is None:
            found = self._derived["quoting"] = self._quoting() or False
        return found or None

    def _quoting(self) -> Quoting | None:
        escapes, quote = not self.boolean("standard_conforming_strings"), self.get("backslash_quote")
        refuses = quote == "off" or (quote == "safe_encoding" and self.get("client_encoding") in CLIENT_ONLY)
        return Quoting(escapes, self.boolean("escape_string_warning"), refuses) if escapes or refuses else None

    @property
    def planning(self) -> Planning:
        """The settings that govern how statements are planned."""
        found: Planning | None = self._derived.get("planning")
        if found is None:
            found = self._derived["planning"] = Planning(
                Joins(self.get("join_implementation")), self.boolean("recursion_demand"), Late(self.get("late_fetch")),
                int(self.get("recursion_limit")),
            )  # fmt: skip
        return found

    def milliseconds(self, name: str) -> int:
        """A duration setting, in ms."""
        found: int | None = self._derived.get(name)
        if found is None:
            found = self._derived[name] = milliseconds(name, self.get(name))
        return found

    def boolean(self, name: str) -> bool:
        return self.get(name) == "on"

    def begin(self, modes: Mapping[str, str] | None = None) -> None:
        """Begins a transaction. ``modes``: those of the transaction that it follows (AND CHAIN), to which its failure
        returns too; None: the session's defaults."""
        self._kept = dict(self.values)
        if modes is None:
            modes = self._derived.get("modes")
            if modes is None:
                modes = self._derived["modes"] = {key: self.get(f"default_{key}") for key in MODES}
        for key, value in modes.items():
            if value != _BY_NAME[key].default:
                self.values[key] = value
        self.savepoint()

    def end(self, committed: bool) -> None:
        """Ends the transaction: reverts SET LOCAL, and SET too if it was rolled back."""
        if not self._levels:
            return
        if not committed:
            self.roll_back_to(0)
        if self.values != self._kept:
            self._return_to(self._kept)
        self._levels.clear()

    def savepoint(self) -> None:
        """Begins a savepoint, one level deeper."""
        self._levels.append(_Level(dict(self.values), dict(self._kept)))

    def roll_back_to(self, depth: int) -> None:
        """Returns to the values at the start of savepoint number ``depth``, counted from 1; 0: of the transaction."""
        level = self._levels[depth]
        del self._levels[depth + 1 :]
        self._kept = dict(level.kept)
        self._return_to(level.values)

    @property
    def depth(self) -> int:
        """The number of the next savepoint."""
        return len(self._levels)

    def release(self, depth: int) -> None:
        """Savepoint number ``depth`` and those in it are released. Their values stay, but for whether the transaction
        is read only: that returns to what it was, as in Postgres."""
        level = self._levels[depth]
        del self._levels[depth:]
        self._put("transaction_read_only", level.values.get("transaction_read_only"), local=True)

    def become_defaults(self, **others: str) -> None:
        """Make the present values the session's defaults."""
        self.defaults = self.values | others
        self.values, self._kept = {}, {}
        self.reported.clear()
        self._derived.clear()

    def all(self) -> list[tuple[str, str]]:
        """All settings with their values, sorted by name."""
        shown = (s.name for s in _SETTINGS if s.name != "role")
        return sorted(((name, self.get(name)) for name in shown), key=lambda pair: pair[0].lower())

    def report(self) -> list[tuple[str, str]]:
        """All reported settings with their values, for the start of a session."""
        return [(name, self.get(name)) for name in REPORTED]

    def _return_to(self, values: dict[str, str]) -> None:
        for key in self.values.keys() | values.keys():
            if self.values.get(key) != values.get(key):
                self._put(key, values.get(key), local=True)

    def _put(self, key: str, value: str | None, local: bool) -> None:
        old = self.values.get(key)
        if old != value and key not in MODES:
            self.changes += 1
            self._derived.clear()
        for values in (self.values,) if local or key in MODES else (self.values, self._kept):
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        if key == "client_encoding":
            self.encoding = encoding_of_client(self.get(key))
        setting = _BY_NAME.get(key)
        if old != value and setting is not None and setting.name in REPORTED and setting.name not in self.reported:
            self.reported.append(setting.name)


def _canonical(name: str) -> str:
    return _SYNONYMS.get(name.lower(), name.lower())


def _check_custom(key: str, name: str) -> None:
    """42704: no setting has this name, and it has no dot. 42602: one of its parts is no identifier."""
    if "." not in key:
        raise _unrecognized(name)
    if not all(re.fullmatch(r"[a-z_\u0080-\U0010ffff][a-z0-9_$\u0080-\U0010ffff]*", part) for part in key.split(".")):
        detail = "Custom parameter names must be two or more simple identifiers separated by dots."
        raise SqlError("42602", f'invalid configuration parameter name "{name}"', detail)


def _unrecognized(name: str) -> SqlError:
    return SqlError("42704", f'unrecognized configuration parameter "{name}"')
