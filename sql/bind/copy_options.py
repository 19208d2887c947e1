"""Options of COPY: their defaults and checks, as in Postgres where it has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.bind.copy_rejects import OF_REJECTS, most_rejects
from sql.statements.statements import CopyFormat, CopyOptions
from sql.syntax.nodes import statements as nodes_statements
from storage.encodings.encoding import CODECS
from storage.encodings.names import SQL_ASCII, UTF8, name_of

GivenOptions = dict[str, tuple[nodes_statements.OptionValue, int]]
"""The options by name, each with its value and its offset."""

_JDBC: Final = {
    "dbtable": "dbtable", "query": "query", "partition_column": "partitionColumn", "lower_bound": "lowerBound",
    "upper_bound": "upperBound", "partitions": "numPartitions", "fetch_size": "fetchsize", "driver": "driver",
    "user": "user", "password": "password",
}  # fmt: skip
_KNOWN: Final = (
    "format", "delimiter", "null", "header", "quote", "escape", "force_quote", "force_not_null", "force_null",
    "encoding", "freeze", "engine", "default", "load_id", "mapping",
    "array", *OF_REJECTS, *_JDBC,
)  # fmt: skip
_OF_LINES: Final = (CopyFormat.TEXT, CopyFormat.CSV)
_WIRE: Final = (CopyFormat.TEXT, CopyFormat.CSV, CopyFormat.BINARY)
_NOT_WRITTEN: Final = (CopyFormat.ORC, CopyFormat.JDBC)
_ENGINES: Final = ("auto", "local", "spark")


def copy_options(node: nodes_statements.CopyStatement, all_names: Sequence[str], listed: Sequence[str]) -> CopyOptions:
    """The options of a COPY. ``all_names``: the columns of the table or query; ``listed``: those of the column list.
    Raises 42601, 22023, 42703, 42701, 42P10, 0A000."""
    given: GivenOptions = {}
    for name, value, at in node.options:
        if name not in _KNOWN:
            raise SqlError("42601", f'option "{name}" not recognized', position=at + 1)
        if name in given:
            raise SqlError("42601", "conflicting or redundant options", position=at + 1)
        given[name] = (value, at)
    _refuse(given)
    format_ = _format(given)
    csv = format_ is CopyFormat.CSV
    _check_format(given, format_, node)
    _check_mode(given, format_)
    delimiter = _one_byte(given, "delimiter", "," if csv else "\t")
    quote = _one_byte(given, "quote", '"')
    null = _text(given, "null", "" if csv else "\\N")
    _check(delimiter, null, quote, csv, format_)

    def listed_in(name: str) -> tuple[int, ...]:
        return _positions(given, name, all_names, listed)

    return CopyOptions(
        format_, delimiter, null, *_header(given, node.to), quote, _one_byte(given, "escape", quote),
        listed_in("force_quote"), listed_in("force_not_null"), listed_in("force_null"), _engine(given),
        _text(given, "load_id", "") or None, most_rejects(given, format_, node.to), _mapping(given, listed),
        given.get("array", (False, 0))[0] in (True, "true", "on", "1"),
        tuple((_JDBC[name], _text(given, name, "")) for name in _JDBC if name in given), _encoding(given, node.path),
    )  # fmt: skip


def _check_mode(given: GivenOptions, format_: CopyFormat) -> None:
    """Checks options that only text formats or only CSV has. Raises 42601, 0A000."""
    if format_ not in _OF_LINES:
        for name in ("delimiter", "null", "header", "quote", "escape"):
            if name in given:
                message = f"cannot specify {name.upper()} in {format_.value.upper()} mode"
                raise SqlError("42601", message, position=given[name][1] + 1)
    if format_ is not CopyFormat.CSV:
        for name in ("quote", "escape", "force_quote", "force_not_null", "force_null"):
            if name in given:
                message = f"COPY {name.replace('_', ' ')} available only in CSV mode"
                raise SqlError("0A000", message, position=given[name][1] + 1)


def _check_format(given: GivenOptions, format_: CopyFormat, node: nodes_statements.CopyStatement) -> None:
    """Checks options that only one format or only files have. Raises 42601, 0A000."""
    only = {"array": CopyFormat.JSON} | dict.fromkeys(_JDBC, CopyFormat.JDBC)
    for name, (_, at) in given.items():
        if name in only and format_ is not only[name]:
            message = f"cannot specify {name.upper()} in {format_.value.upper()} mode"
            raise SqlError("42601", message, position=at + 1)
    if format_ is CopyFormat.JDBC and ("dbtable" in given) == ("query" in given):
        raise SqlError("42601", "FORMAT jdbc needs either DBTABLE or QUERY", position=node.at + 1)
    ranges = [name for name in ("partition_column", "lower_bound", "upper_bound", "partitions") if name in given]
    if ranges and (len(ranges) < 4 or "query" in given):
        message = "ranges need DBTABLE, PARTITION_COLUMN, LOWER_BOUND, UPPER_BOUND and PARTITIONS"
        raise SqlError("42601", message, position=given[ranges[0]][1] + 1)
    if node.path is None and format_ not in _WIRE:
        direction = "TO STDOUT" if node.to else "FROM STDIN"
        raise unsupported(f"COPY {direction} with format {format_.value}", position=given["format"][1] + 1)
    if node.path is not None and format_ in (_NOT_WRITTEN if node.to else (CopyFormat.BINARY,)):
        direction = "TO" if node.to else "FROM"
        raise unsupported(f"COPY {direction} a file with format {format_.value}", position=given["format"][1] + 1)
    for name in (name for name in ("engine", "mapping", "load_id", "array") if node.to and name in given):
        raise SqlError("42601", f"COPY {name.upper()} is for COPY FROM only", position=given[name][1] + 1)


def _engine(given: GivenOptions) -> str:
    engine = _text(given, "engine", "auto").lower()
    if engine not in _ENGINES:
        message = f'COPY engine "{engine}" not recognized'
        raise SqlError(
            "22023", message, hint="Valid values are auto, local and spark.", position=given["engine"][1] + 1
        )
    return engine


def _mapping(given: GivenOptions, listed: Sequence[str]) -> tuple[tuple[str, str], ...]:
    value, at = given.get("mapping", ((), 0))
    pairs = tuple(pair for pair in value if isinstance(pair, tuple)) if isinstance(value, tuple) else ()
    for column in (column for _, column in pairs):
        if column not in listed:
            raise SqlError("42703", f'MAPPING column "{column}" not referenced by COPY', position=at + 1)
    if len({column for _, column in pairs}) < len(pairs):
        raise SqlError("42701", "MAPPING names a column more than once", position=at + 1)
    return pairs


def _refuse(given: GivenOptions) -> None:
    if "default" in given:
        raise unsupported("COPY option DEFAULT", position=given["default"][1] + 1)


def _encoding(given: GivenOptions, path: str | None) -> str | None:
    if "encoding" not in given:
        return None
    value, at = given["encoding"]
    name = name_of(str(value))
    if name is None:
        raise SqlError("22023", 'argument to option "encoding" must be a valid encoding name', position=at + 1)
    if name not in (UTF8, SQL_ASCII) and (name not in CODECS or path is not None):
        what = f"encoding {name}" if path is None else f"encoding {name} of a file"
        raise unsupported(what, None if path is None else "Files are in UTF8.", at + 1)
    return name


def _format(given: GivenOptions) -> CopyFormat:
    value, at = given.get("format", ("text", 0))
    try:
        return CopyFormat(str(value).lower())
    except ValueError:
        raise SqlError("22023", f'COPY format "{value}" not recognized', position=at + 1) from None


def _text(given: GivenOptions, name: str, otherwise: str) -> str:
    value, at = given.get(name, (otherwise, 0))
    if not isinstance(value, str):
        raise SqlError("42601", f"{name} requires a parameter", position=at + 1)
    return value


def check_from_stdin(node: nodes_statements.CopyStatement) -> None:
    """Raises 0A000 for an option of files in COPY … FROM STDIN."""
    for name, _, at in node.options:
        if node.path is None and name in ("engine", "load_id", "mapping"):
            raise SqlError("0A000", f"COPY {name.upper()} is for files of the server, not for STDIN", position=at + 1)


def _one_byte(given: GivenOptions, name: str, otherwise: str) -> str:
    value = _text(given, name, otherwise)
    if len(value.encode()) != 1:
        message = f"COPY {name} must be a single one-byte character"
        raise SqlError("0A000", message, position=given[name][1] + 1)
    return value


def _header(given: GivenOptions, to: bool) -> tuple[bool, bool]:
    """Whether there is a header, and whether its names must match the columns. Raises 42601, 0A000."""
    value, at = given.get("header", (False, 0))
    if isinstance(value, bool):
        return value, False
    match str(value).lower():
        case "true" | "on" | "1":
            return True, False
        case "false" | "off" | "0":
            return False, False
        case "match" if to:
            raise SqlError("0A000", 'cannot use "match" with HEADER in COPY TO', position=at + 1)
        case "match" if "mapping" in given:
            hint = "MAPPING finds the columns by their names in the header."
            raise SqlError("42601", "conflicting or redundant options", hint=hint, position=at + 1)
        case "match":
            return True, True
    raise SqlError("42601", 'header requires a Boolean value or "match"', position=at + 1)


def _check(delimiter: str, null: str, quote: str, csv: bool, format_: CopyFormat) -> None:
    if delimiter in "\r\n":
        raise SqlError("22023", "COPY delimiter cannot be newline or carriage return")
    if any(c in null for c in "\r\n"):
        raise SqlError("22023", "COPY null representation cannot use newline or carriage return")
    if format_ is CopyFormat.TEXT and delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise SqlError("22023", f'COPY delimiter cannot be "{delimiter}"')
    if csv and delimiter == quote:
        raise SqlError("22023", "COPY delimiter and quote must be different")
    if delimiter in null:
        raise SqlError("22023", "COPY delimiter must not appear in the NULL specification")
    if csv and quote in null:
        raise SqlError("22023", "CSV quote character must not appear in the NULL specification")


def _positions(given: GivenOptions, name: str, all_names: Sequence[str], listed: Sequence[str]) -> tuple[int, ...]:
    """A column list's positions among all columns of the table or query. Raises 42703, 42P10."""
    value, at = given.get(name, ((), 0))
    if value == "*" or value is True:
        return tuple(range(len(all_names)))
    found: list[int] = []
    for column in (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ():
        assert isinstance(column, str), "pairs are MAPPING's"
        if column not in all_names:
            raise SqlError("42703", f'column "{column}" does not exist', position=at + 1)
        if column not in listed:
            message = f'{name.replace("_", " ").upper()} column "{column}" not referenced by COPY'
            raise SqlError("42P10", message, position=at + 1)
        found.append(list(all_names).index(column))
    return tuple(found)
