"""COPY: its options with Postgres's defaults and checks, its target or source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from sql.bind.copy_rejects import OF_REJECTS, most_rejects
from sql.bind.ddl import home
from sql.bind.dml import default, target
from sql.bind.environment import Environment
from sql.bind.from_clause import lookup
from sql.bind.query import bind_top
from sql.catalog.catalog import Relation, RelationKind
from sql.statements.queries import Query
from sql.statements.statements import CopyFormat, CopyFrom, CopyOptions, CopyTo, CreateTableFrom, Subscribe
from sql.syntax import nodes, nodes_statements

Given = dict[str, tuple[nodes_statements.OptionValue, int]]

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


def copy(env: Environment, node: nodes_statements.CopyStatement) -> CopyFrom | CopyTo:
    """COPY … FROM a table, or COPY … TO of a relation, a query or a subscription."""
    return _copy_to(env, node) if node.to else _copy_from(env, node)


def _copy_from(env: Environment, node: nodes_statements.CopyStatement) -> CopyFrom:
    if not isinstance(node.source, nodes.TableName):
        raise SqlError("42601", 'syntax error at or near "FROM"', position=node.at + 1)
    table = target(env, node.source, "copy")
    columns = _columns(table, node.columns)
    names = [table.columns[i].name for i in columns]
    options = _options(node, [c.name for c in table.columns], names)
    _only_files(node)
    defaults = tuple(
        default(env, c) if c.default is not None or c.generated is not None else None for c in table.columns
    )
    return CopyFrom(table, columns, defaults, options, node.path, bool(node.columns))


_BY_SUFFIX: Final = {
    ".csv": CopyFormat.CSV, ".json": CopyFormat.JSON, ".jsonl": CopyFormat.JSON, ".ndjson": CopyFormat.JSON,
    ".parquet": CopyFormat.PARQUET, ".orc": CopyFormat.ORC, ".tsv": CopyFormat.TEXT, ".txt": CopyFormat.TEXT,
}  # fmt: skip


def format_of(path: str) -> CopyFormat | None:
    """The format that a path tells, by its beginning or its end."""
    if path.lower().startswith("jdbc:"):
        return CopyFormat.JDBC
    name = re.sub(r"\.(gz|bz2|zst|snappy)$", "", path.lower())
    return _BY_SUFFIX.get(name[name.rfind(".") :])


def create_from(env: Environment, node: nodes_statements.CreateFromStatement) -> CreateTableFrom:
    """CREATE TABLE … FROM; the format is told by the name's end where no option says it."""
    given = {name: (value, at) for name, value, at in node.options}
    if "format" not in given:
        format_ = format_of(node.path)
        if format_ is None:
            raise SqlError("42601", "the path does not tell the format", hint="Say it: WITH (FORMAT csv).")
        given["format"] = (format_.value, node.at)
    for name in ("force_null", "force_not_null", "force_quote"):
        if name in given:
            raise unsupported(f"{name.upper()} in CREATE TABLE … FROM", "Create the table, and COPY into it.")
    options = tuple((name, value, at) for name, (value, at) in given.items())
    copy_ = nodes_statements.CopyStatement(node.table, (), False, node.path, options, node.at)
    mapping = given.get("mapping", ((), 0))[0]
    assert isinstance(mapping, tuple), "the grammar sees to it"
    names = [pair[1] for pair in mapping]
    schema_name = home(env, node.table, node.temporary)
    return CreateTableFrom(
        schema_name, node.table.name, node.if_not_exists, node.path, _options(copy_, names, names), node.with_no_data
    )


def _columns(table: Relation, named: Sequence[tuple[str, int]]) -> tuple[int, ...]:
    if not named:
        return tuple(range(len(table.columns)))
    names = [c.name for c in table.columns]
    found: list[int] = []
    for name, at in named:
        if name not in names:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            raise SqlError("42703", message, position=at + 1)
        if names.index(name) in found:
            raise SqlError("42701", f'column "{name}" specified more than once', position=at + 1)
        found.append(names.index(name))
    return tuple(found)


def _copy_to(env: Environment, node: nodes_statements.CopyStatement) -> CopyTo:
    from sql.bind.statement import subscribe

    source: Query | Subscribe
    if isinstance(node.source, nodes.TableName):
        source = bind_top(env, _whole_table(env, node.source, node.columns))
    elif isinstance(node.source, nodes_statements.SubscribeStatement):
        if node.path is not None:
            raise unsupported("COPY (SUBSCRIBE …) TO a file", "CREATE SINK sends changes to files.", node.at + 1)
        source = subscribe(env, node.source)
    elif isinstance(node.source, nodes.Query):
        source = bind_top(env, node.source)
    else:
        raise unsupported("COPY of a data-modifying statement", position=node.at + 1)
    columns = source.query.columns if isinstance(source, Subscribe) else source.columns
    names = [c.name for c in columns]
    return CopyTo(source, _options(node, names, names), node.path)


def _whole_table(env: Environment, table: nodes.TableName, named: Sequence[tuple[str, int]]) -> nodes.Query:
    relation = lookup(env, table, strict=True)
    if relation.kind is RelationKind.VIEW:
        raise SqlError(
            "42809", f'cannot copy from view "{relation.name}"', hint="Try the COPY (SELECT ...) TO variant.",
        )  # fmt: skip
    if relation.partitioning is not None:
        message, hint = f'cannot copy from partitioned table "{relation.name}"', "Try the COPY (SELECT ...) TO variant."
        raise SqlError("42809", message, hint=hint)
    columns = _columns(relation, named)
    targets = tuple(nodes.Target(nodes.Name((relation.columns[i].name,), table.at), None, table.at) for i in columns)
    select = nodes.Select(targets, (replace(table, only=True),), None, None, None, None, table.at)
    return nodes.Query(select, table.at)


def _options(node: nodes_statements.CopyStatement, all_names: Sequence[str], listed: Sequence[str]) -> CopyOptions:
    given: Given = {}
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
    if format_ not in _OF_LINES:
        for name in ("delimiter", "null", "header", "quote", "escape"):
            if name in given:
                message = f"cannot specify {name.upper()} in {format_.value.upper()} mode"
                raise SqlError("42601", message, position=given[name][1] + 1)
    if not csv:
        for name in ("quote", "escape", "force_quote", "force_not_null", "force_null"):
            if name in given:
                message = f"COPY {name.replace('_', ' ')} available only in CSV mode"
                raise SqlError("0A000", message, position=given[name][1] + 1)
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
        tuple((_JDBC[name], _text(given, name, "")) for name in _JDBC if name in given),
    )  # fmt: skip


def _check_format(given: Given, format_: CopyFormat, node: nodes_statements.CopyStatement) -> None:
    """Options of one format only, and of files only."""
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


def _engine(given: Given) -> str:
    engine = _text(given, "engine", "auto").lower()
    if engine not in _ENGINES:
        message = f'COPY engine "{engine}" not recognized'
        raise SqlError("22023", message, hint="It is auto, local or spark.", position=given["engine"][1] + 1)
    return engine


def _mapping(given: Given, listed: Sequence[str]) -> tuple[tuple[str, str], ...]:
    value, at = given.get("mapping", ((), 0))
    pairs = tuple(pair for pair in value if isinstance(pair, tuple)) if isinstance(value, tuple) else ()
    for column in (column for _, column in pairs):
        if column not in listed:
            raise SqlError("42703", f'MAPPING column "{column}" not referenced by COPY', position=at + 1)
    if len({column for _, column in pairs}) < len(pairs):
        raise SqlError("42701", "a column stands in MAPPING more than once", position=at + 1)
    return pairs


def _refuse(given: Given) -> None:
    if "encoding" in given:
        value, at = given["encoding"]
        if str(value).lower().replace("-", "").replace("_", "") not in ("utf8", "unicode"):
            raise unsupported(f"encoding {value}", "Only UTF8 is.", at + 1)
    if "default" in given:
        raise unsupported("COPY option DEFAULT", position=given["default"][1] + 1)


def _format(given: Given) -> CopyFormat:
    value, at = given.get("format", ("text", 0))
    try:
        return CopyFormat(str(value).lower())
    except ValueError:
        raise SqlError("22023", f'COPY format "{value}" not recognized', position=at + 1) from None


def _text(given: Given, name: str, otherwise: str) -> str:
    value, at = given.get(name, (otherwise, 0))
    if not isinstance(value, str):
        raise SqlError("42601", f"{name} requires a parameter", position=at + 1)
    return value


def _only_files(node: nodes_statements.CopyStatement) -> None:
    for name, _, at in node.options:
        if node.path is None and name in ("engine", "load_id", "mapping"):
            raise SqlError("0A000", f"COPY {name.upper()} is for files of the server, not for STDIN", position=at + 1)


def _one_byte(given: Given, name: str, otherwise: str) -> str:
    value = _text(given, name, otherwise)
    if len(value.encode()) != 1:
        message = f"COPY {name} must be a single one-byte character"
        raise SqlError("0A000", message, position=given[name][1] + 1)
    return value


def _header(given: Given, to: bool) -> tuple[bool, bool]:
    """Whether there is a header, and whether it is to name the columns."""
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


def _positions(given: Given, name: str, all_names: Sequence[str], listed: Sequence[str]) -> tuple[int, ...]:
    """Positions among all columns of the table (or of the query)."""
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
