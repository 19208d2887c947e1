"""The syntax tree of SQL/JSON's functions that have a syntax of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sql.syntax.nodes.queries import Expr, TypeName


@dataclass(frozen=True, slots=True)
class JsonCall:
    """``function``: json_object (``args``: keys and values in turn), json_array, json, json_scalar, json_serialize, is
    json; json_exists, json_value and json_query (``args``: value and path).

    ``options``: absent, unique, what IS JSON asks for, conditional or unconditional (wrapper), omit (quotes).
    ``passing``: a path's variables. ``returning``: None if there is no such clause.
    """

    function: str
    args: tuple[Expr, ...]
    at: int
    options: tuple[str, ...] = ()
    passing: tuple[tuple[str, Expr], ...] = ()
    returning: TypeName | None = None
    on_empty: str | Expr = "null"
    on_error: str | Expr = "null"


@dataclass(frozen=True, slots=True)
class JsonColumn:
    """A column of JSON_TABLE: FOR ORDINALITY without a ``type``; ``call``: JSON_VALUE, JSON_QUERY or JSON_EXISTS with
    the options that are written, of a path that stands in ``path``; None: the column's name."""

    name: str
    at: int
    type: TypeName | None = None
    call: JsonCall | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class JsonPlan:
    """COLUMNS of JSON_TABLE, or of a nested path."""

    path: str
    columns: tuple[JsonColumn, ...]
    nested: tuple[JsonPlan, ...]


@dataclass(frozen=True, slots=True)
class JsonTable:
    """JSON_TABLE in FROM. ``strict``: ERROR ON ERROR."""

    value: Expr
    plan: JsonPlan
    passing: tuple[tuple[str, Expr], ...]
    strict: bool
    at: int
    alias: str | None = None
    columns: tuple[str, ...] = ()
    lateral: bool = True
