"""The syntax tree of CREATE and DROP FUNCTION and AGGREGATE."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.role_spec import RoleSpec
from sql.syntax.nodes.queries import Apply, Expr, TableName, TypeName


@dataclass(frozen=True, slots=True)
class ArgumentNode:
    """A parameter, or (mode ``table``) a column of RETURNS TABLE. ``default``: the expression and its own text."""

    name: str | None
    type: TypeName
    default: tuple[Expr, str] | None
    at: int
    mode: str = "in"


@dataclass(frozen=True, slots=True)
class CreateFunctionStatement:
    """``result``: of RETURNS, None without it. ``expression``: the body is RETURN's expression; ``atomic``: it was
    between BEGIN ATOMIC and END. ``vectorised``: in Python, called with arrays. ``kind``: function, procedure, or
    aggregate (in Python)."""

    name: TableName
    replace: bool
    arguments: tuple[ArgumentNode, ...]
    result: TypeName | None
    returns_set: bool
    body: str
    expression: bool
    volatility: str
    strict: bool
    at: int
    kind: str = "function"
    language: str = "sql"
    atomic: bool = False
    vectorised: bool = False
    definer: bool = False


@dataclass(frozen=True, slots=True)
class CommentStatement:
    """COMMENT ON. ``kind`` as written; ``part``: a column or a constraint of the named relation; ``types``: of a
    function's arguments, if given, or of an operator's. ``text`` None: the comment goes."""

    kind: str
    name: TableName
    part: str
    types: tuple[TypeName | None, ...] | None
    text: str | None


@dataclass(frozen=True, slots=True)
class CreateAggregateStatement:
    """CREATE AGGREGATE name (arguments) (SFUNC = …). ``arguments`` None: the old form, whose BASETYPE says them.
    ``options``: a name, a type, or a text in quotes each. ``ordered``: the arguments of an ordered-set aggregate after
    ORDER BY; those before it are direct."""

    name: TableName
    replace: bool
    arguments: tuple[ArgumentNode, ...] | None
    options: tuple[tuple[str, TypeName | str], ...]
    at: int
    ordered: tuple[ArgumentNode, ...] | None = None


@dataclass(frozen=True, slots=True)
class AlterRoutineStatement:
    """ALTER FUNCTION and its kin; what is None stays."""

    kind: str
    name: TableName
    types: tuple[TypeName, ...] | None
    rename: str | None = None
    schema_name: str | None = None
    owner: RoleSpec | None = None
    volatility: str | None = None
    strict: bool | None = None
    definer: bool | None = None


@dataclass(frozen=True, slots=True)
class DropFunctionStatement:
    """Names with the types of their arguments, None where they were left out. ``kind``: function, procedure, aggregate,
    or routine for any of them."""

    names: tuple[tuple[TableName, tuple[TypeName, ...] | None], ...]
    if_exists: bool
    cascade: bool
    kind: str = "function"


@dataclass(frozen=True, slots=True)
class CallStatement:
    """CALL procedure(…)."""

    call: Apply
    at: int
