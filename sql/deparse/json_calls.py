"""SQL/JSON's functions that have a syntax of their own."""

from __future__ import annotations

from ivm.words import JSON, JSONB, JSONPATH, TEXT, Kind, SqlType
from planner.identifiers import quoted, quoted_literal
from sql.catalog.column_types import is_type_name, type_from_name
from sql.deparse.context import Reader
from sql.deparse.tree import Phrase, Shown
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.json_calls import JsonColumn, JsonPlan

Parts = list["str | Shown"]


def json_call(r: Reader, node: nodes.JsonCall) -> Phrase:
    """A call of one of the functions."""
    match node.function:
        case "json_object":
            return Phrase(tuple(_object(r, node)))
        case "json_array":
            return Phrase(("JSON_ARRAY(", *_constructed(r, node), ")"))
        case "json" | "json_scalar":
            wanted = TEXT if node.function == "json" else None
            unique = " WITH UNIQUE KEYS" if "unique" in node.options else ""
            return Phrase((f"{node.function.upper()}(", r.value(node.args[0], wanted), f"{unique})"))
        case "json_serialize":
            return Phrase(("JSON_SERIALIZE(", r.value(node.args[0], JSON), f"{_returning(r, node)})"))
        case "is json":
            kind, *unique_ = node.options
            kind_ = "" if kind == "value" else f" {kind.upper()}"
            return Phrase(
                ("(", r.value(node.args[0]), f" IS JSON{kind_}{' WITH UNIQUE KEYS' if unique_ else ''})"), True
            )
        case _:
            return Phrase(tuple(_path_call(r, node)))


def _object(r: Reader, node: nodes.JsonCall) -> Parts:
    parts: Parts = ["JSON_OBJECT("]
    for i in range(0, len(node.args), 2):
        parts += [", " if i else "", r.value(node.args[i]), " : ", r.value(node.args[i + 1])]
    if node.args:
        parts.append(" ABSENT ON NULL" if "absent" in node.options else "")
        parts.append(" WITH UNIQUE KEYS" if "unique" in node.options else "")
    return [*parts, f"{_returning(r, node)})"]


def _constructed(r: Reader, node: nodes.JsonCall) -> Parts:
    parts: Parts = []
    for i, arg in enumerate(node.args):
        parts += [", " if i else "", r.value(arg)]
    nulls = "" if not node.args or "absent" in node.options else " NULL ON NULL"
    return [*parts, nulls, _returning(r, node)]


def _returning(r: Reader, node: nodes.JsonCall) -> str:
    return "" if node.returning is None else f" RETURNING {written_type(r, node.returning)}"


def written_type(r: Reader, type_: nodes.TypeName) -> str:
    """A type as written, by its usual name."""
    if type_.schema is None and is_type_name(type_.name):
        return r.context.names.type(type_from_name(type_.name, type_.args)) + ("[]" if type_.array else "")
    name = quoted(type_.name) if type_.schema is None else f"{quoted(type_.schema)}.{quoted(type_.name)}"
    return name + ("[]" if type_.array else "")


def _path_call(r: Reader, node: nodes.JsonCall) -> Parts:
    value, path = node.args
    untyped = r.type(value).kind is Kind.UNKNOWN
    parts: Parts = [f"{node.function.upper()}(", r.value(value, JSONB if untyped else None), ", "]
    parts.append(r.value(path, JSONPATH))
    parts += _passing(r, node.passing)
    parts.append(_returning(r, node))
    return [*parts, *options(r, node, r.type(node)), ")"]


def _passing(r: Reader, passing: tuple[tuple[str, nodes.Expr], ...]) -> Parts:
    parts: Parts = [" PASSING "] if passing else []
    for i, (name, value) in enumerate(passing):
        parts += [", " if i else "", r.value(value), f" AS {quoted(name)}"]
    return parts


def options(r: Reader, node: nodes.JsonCall, type_: SqlType | None) -> Parts:
    """The wrapper, quotes and behaviours."""
    parts: Parts = [f" WITH {kind.upper()} WRAPPER" for kind in node.options if kind != "omit"]
    parts += [" OMIT QUOTES"] if "omit" in node.options else []
    default = "false" if node.function == "json_exists" else "null"
    for given, usual, case in ((node.on_empty, "null", "EMPTY"), (node.on_error, default, "ERROR")):
        if given == usual:
            continue
        words: Parts = [f" {given.upper()}"] if isinstance(given, str) else [" DEFAULT ", r.value(given, type_)]
        parts += [*words, f" ON {case}"]
    return parts


def json_table(r: Reader, node: nodes.JsonTable) -> Phrase:
    """JSON_TABLE without its alias."""
    parts: Parts = ["JSON_TABLE(", r.value(node.value, JSONB), f", {quoted_literal(node.plan.path)}"]
    parts += [*_passing(r, node.passing), " COLUMNS (", *_columns(r, node.plan), ")"]
    return Phrase((*parts, " ERROR ON ERROR)" if node.strict else ")"))


def _columns(r: Reader, plan: JsonPlan) -> Parts:
    parts: Parts = []
    for column in plan.columns:
        parts += [", " if parts else "", *_column(r, column)]
    for nested in plan.nested:
        opening = f"NESTED PATH {quoted_literal(nested.path)} COLUMNS ("
        parts += [", " if parts else "", opening, *_columns(r, nested), ")"]
    return parts


def _column(r: Reader, column: JsonColumn) -> Parts:
    if column.type is None or column.call is None:
        return [f"{quoted(column.name)} FOR ORDINALITY"]
    words = f"{quoted(column.name)} {written_type(r, column.type)}"
    if column.call.function == "json_exists":
        words += " EXISTS"
    elif column.call.function == "json_query":
        words += " FORMAT JSON"
    path = "" if column.path is None else f" PATH {quoted_literal(column.path)}"
    return [words, path, *options(r, column.call, None)]
