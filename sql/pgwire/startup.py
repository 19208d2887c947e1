"""Parses a StartupMessage, and lists the parameters reported to a client before its first query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.expr.context import SERVER_VERSION
from sql.pgwire.messages_opening import Startup

REPORTED: Final[dict[str, str]] = {
    "server_version": SERVER_VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "on",
    "session_authorization": "",
    "application_name": "",
    "default_transaction_read_only": "off",
    "in_hot_standby": "off",
}
"""The settings that Postgres reports to clients, with their values unless the session overrides them."""

_OPTION: Final = re.compile(r"(?:-c\s*|--)([\w.-]+)=((?:\\.|\S)*)\s*")


@dataclass(frozen=True, slots=True)
class Opened:
    """A client's user, database and settings. ``unknown``: ``_pq_.`` options that we do not support."""

    user: str
    database: str
    parameters: dict[str, str]
    unknown: tuple[str, ...]

    @property
    def application(self) -> str:
        """The client's own name."""
        return self.parameters.get("application_name", "")


def open_session(startup: Startup) -> Opened:
    """Interprets a StartupMessage. 28000 without a user, 0A000 for replication, 42601 for bad ``options``."""
    given = dict(startup.parameters)
    user = given.pop("user", "")
    if not user:
        raise SqlError("28000", "no PostgreSQL user name specified in startup packet")
    database = given.pop("database", "") or user
    if given.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise unsupported("replication protocol")
    unknown = tuple(name for name in given if name.startswith("_pq_."))
    for name in unknown:
        del given[name]
    parameters = parse_options(given.pop("options", ""))
    parameters.update(given)
    return Opened(user, database, parameters, unknown)


def parse_options(text: str) -> dict[str, str]:
    """Parses a startup ``options`` string: ``-c name=value`` and ``--name=value``, with backslash escapes."""
    found, at = {}, len(text) - len(text.lstrip())
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None:
            raise SqlError("42601", f"invalid command-line argument for server process: {text[at:]}")
        found[match[1].replace("-", "_")] = re.sub(r"\\(.)", r"\1", match[2])
        at = match.end()
    return found
