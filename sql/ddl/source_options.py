"""The options of sources and their permitted values. Raises 42601, 22023."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ivm.errors import SqlError
from sql.catalog.connection import Connection, OptionValue, secret_of


@dataclass(frozen=True, slots=True)
class _Option:
    """``kind``: text, number or flag. ``among``: the permitted values, if limited."""

    kind: str = "text"
    required: bool = False
    among: tuple[str, ...] = ()


FORMATS: Final = ("parquet", "orc", "csv", "json")
_NUMBER: Final = _Option("number")
_KNOWN: Final = MappingProxyType(
    {
        "files": {
            "path": _Option(required=True), "format": _Option(required=True, among=FORMATS),
            "header": _Option("flag"), "delimiter": _Option(), "max_files": _NUMBER,
        },
        "kafka": {
            "brokers": _Option(required=True), "topic": _Option(required=True),
            "start": _Option(among=("earliest", "latest")), "max_offsets": _NUMBER,
        },
        "rate": {"rows_per_second": _NUMBER},
        "jdbc": {
            "url": _Option(required=True), "table": _Option(required=True), "poll": _Option(), "driver": _Option(),
            "user": _Option(), "password": _Option(),
        },
    }
)  # fmt: skip


_SECRET: Final = ("user", "password")
"""The options of JDBC that a secret may be; of Kafka, the client's properties."""


def check_options(connection: Connection) -> None:
    """Check a new source's options against those of its system."""
    known, system = _KNOWN[connection.system], connection.system.upper()
    for name, value in connection.options:
        secret = secret_of(value) is not None
        if connection.system == "kafka" and name.startswith("kafka.") and (secret or isinstance(value, str)):
            continue
        if secret and name in _SECRET:
            continue
        if name not in known:
            hint = f"A source FROM {system} takes {', '.join(n.upper() for n in known)}."
            raise SqlError("42601", f'option "{name}" not recognized', hint=hint)
        if not _fits(known[name], value):
            raise SqlError("22023", f"invalid value for option {name.upper()}", _wanted(known[name]))
    for name, option in known.items():
        if option.required and connection.option(name) is None:
            raise SqlError("42601", f"a source FROM {system} needs the option {name.upper()}")
    _check_together(connection)


def _fits(option: _Option, value: OptionValue) -> bool:
    match option.kind:
        case "flag":
            return isinstance(value, bool)
        case "number":
            return isinstance(value, str) and value.isascii() and value.isdigit() and 0 < int(value) < 2**31
        case _:
            return isinstance(value, str) and bool(value) and (not option.among or value.lower() in option.among)


def _wanted(option: _Option) -> str:
    if option.among:
        return f"It is one of {', '.join(option.among)}."
    return {"flag": "It is true or false.", "number": "It is a number above 0."}.get(option.kind, "It is a text.")


def _check_together(connection: Connection) -> None:
    of_csv = [n for n in ("header", "delimiter") if connection.option(n) is not None]
    if connection.system == "files" and of_csv and connection.option("format") != "csv":
        raise SqlError("42601", f"{of_csv[0].upper()} is an option of FORMAT csv")
    delimiter = connection.option("delimiter")
    if isinstance(delimiter, str) and len(delimiter.encode()) != 1:
        raise SqlError("22023", "DELIMITER must be a single one-byte character")
    if connection.system == "jdbc" and connection.option("poll") is None and len(connection.key) != 1:
        hint = "Name it with POLL, or as the one column of KEY."
        raise SqlError("42601", "a source FROM JDBC needs a column to poll by", hint=hint)
    json = connection.system == "kafka" or connection.option("format") == "json"
    if connection.envelope == "debezium" and not json:
        hint = "It comes from KAFKA, or from FILES with FORMAT json."
        raise SqlError("42601", "ENVELOPE DEBEZIUM needs events in JSON", hint=hint)
