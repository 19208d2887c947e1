"""The syntax tree of CREATE and DROP FUNCTION and AGGREGATE."""

from __future__ import annotations

from dataclasses import dataclass

from sql.syntax.nodes.queries import Expr, TableName, TypeName


@dataclass(frozen=True, slots=True)
class ArgumentNode:
    """An argument, or a column of RETURNS TABLE. ``default``: the expression and its own text."""

    name: str | None
    type: TypeName
    default: tuple[Expr, str] | None
    at: int


@dataclass(frozen=True, slots=True)
class CreateFunctionStatement:
    """``columns``: of RETURNS TABLE. ``expression``: the body is RETURN's expression. ``aggregate``: it is Python."""

    name: TableName
    replace: bool
    arguments: tuple[ArgumentNode, ...]
    columns: tuple[ArgumentNode, ...] | None
    result: TypeName | None
    returns_set: bool
    body: str
    expression: bool
    volatility: str
    strict: bool
    at: int
    aggregate: bool = False
    language: str = "sql"


@dataclass(frozen=True, slots=True)
class CommentStatement:
    """COMMENT ON. ``kind`` as written; ``part``: a column or a constraint of the named relation; ``types``: of a
    function's arguments, if given. ``text`` None: the comment goes."""

    kind: str
    name: TableName
    part: str
    types: tuple[TypeName, ...] | None
    text: str | None


@dataclass(frozen=True, slots=True)
class DropFunctionStatement:
    """Names with the types of their arguments, None where they were left out."""

    names: tuple[tuple[TableName, tuple[TypeName, ...] | None], ...]
    if_exists: bool
    cascade: bool
    aggregate: bool = False
