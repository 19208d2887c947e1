"""The syntax tree of a PL/pgSQL body. SQL inside it stays text, which is bound when it first runs.

Lines count from 1 in the body, as in the context of PostgreSQL's errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sql.syntax.nodes.queries import TypeName

CASE_VALUE: Final = "__Case__Variable_1__"
"""The variable that the arms of a simple CASE compare with."""


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A piece of SQL: an expression, or a whole statement. Two fragments of one text are different.

    ``assignment``: the whole assignment whose value it is, as errors show it.
    """

    text: str
    line: int
    statement: bool = False
    assignment: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """``[low]`` or, with ``slice``, ``[low:high]`` of an assigned variable."""

    low: Fragment | None
    high: Fragment | None = None
    slice: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A variable, or a part of one: ``a``, ``block.a``, ``record.field``, ``a[i]``, ``record.field[i:j].field``.

    ``parts``: the subscripts, and the names of fields after them; only an assignment has them.
    """

    name: tuple[str, ...]
    parts: tuple[Place | str, ...] = ()
    at: int = 0


@dataclass(frozen=True, slots=True)
class Into:
    """INTO: one record or row, or a list of scalars."""

    targets: tuple[Target, ...]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A type by name, ``relation%ROWTYPE``, ``variable%TYPE`` or ``table.column%TYPE`` (``copied``)."""

    name: TypeName | None = None
    row_of: tuple[str, ...] | None = None
    copied: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """``type`` None: an alias of ``alias``, or a cursor if ``query`` or ``cursor`` is there."""

    name: str
    line: int
    type: DeclaredType | None = None
    constant: bool = False
    not_null: bool = False
    default: Fragment | None = None
    alias: tuple[str, ...] | None = None
    query: Fragment | None = None
    arguments: tuple[tuple[str, DeclaredType], ...] = ()
    scroll: bool | None = None


@dataclass(frozen=True, slots=True)
class Handler:
    """WHEN conditions THEN body. A condition is a name, or a SQLSTATE."""

    conditions: tuple[tuple[str, bool], ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Block:
    line: int
    label: str | None
    declarations: tuple[Declaration, ...]
    body: tuple[Node, ...]
    handlers: tuple[Handler, ...] = ()


@dataclass(frozen=True, slots=True)
class Assign:
    line: int
    target: Target
    value: Fragment


@dataclass(frozen=True, slots=True)
class If:
    line: int
    arms: tuple[tuple[Fragment, tuple[Node, ...]], ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """``value``: what a simple CASE compares; ``otherwise`` None: there is no ELSE."""

    line: int
    value: Fragment | None
    arms: tuple[tuple[Fragment, tuple[Node, ...]], ...]
    otherwise: tuple[Node, ...] | None


@dataclass(frozen=True, slots=True)
class Loop:
    """LOOP, or WHILE if there is a condition."""

    line: int
    label: str | None
    condition: Fragment | None
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ForRange:
    line: int
    label: str | None
    name: str
    reverse: bool
    first: Fragment
    last: Fragment
    step: Fragment | None
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ForRows:
    """FOR over a query's rows; ``dynamic``: its text is computed, with values for USING."""

    line: int
    label: str | None
    targets: tuple[Target, ...]
    query: Fragment
    dynamic: bool
    using: tuple[Fragment, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ForCursor:
    line: int
    label: str | None
    name: str
    cursor: Target
    arguments: tuple[tuple[str | None, Fragment], ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ForEach:
    line: int
    label: str | None
    targets: tuple[Target, ...]
    slice: int
    array: Fragment
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Exit:
    """EXIT, or CONTINUE (``again``)."""

    line: int
    again: bool
    label: str | None
    condition: Fragment | None


@dataclass(frozen=True, slots=True)
class Return:
    line: int
    value: Fragment | None


@dataclass(frozen=True, slots=True)
class ReturnNext:
    line: int
    value: Fragment | None


@dataclass(frozen=True, slots=True)
class ReturnQuery:
    line: int
    query: Fragment
    dynamic: bool
    using: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class Raise:
    """``level``: debug, log, info, notice, warning or exception; ``condition``: a name or (``state``) a SQLSTATE.
    Without condition, message and options the handled error is raised again."""

    line: int
    level: str
    condition: str | None
    state: bool
    message: str | None
    arguments: tuple[Fragment, ...]
    options: tuple[tuple[str, Fragment], ...]


@dataclass(frozen=True, slots=True)
class Assert:
    line: int
    condition: Fragment
    message: Fragment | None


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement of SQL; ``perform``: a query whose rows are not wanted."""

    line: int
    statement: Fragment
    into: Into | None
    perform: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """CALL, whose OUT arguments are variables."""

    line: int
    statement: Fragment


@dataclass(frozen=True, slots=True)
class Execute:
    line: int
    query: Fragment
    into: Into | None
    using: tuple[Fragment, ...]


@dataclass(frozen=True, slots=True)
class GetDiagnostics:
    line: int
    stacked: bool
    items: tuple[tuple[Target, str], ...]


@dataclass(frozen=True, slots=True)
class Open:
    line: int
    cursor: Target
    query: Fragment | None
    dynamic: bool
    using: tuple[Fragment, ...]
    arguments: tuple[tuple[str | None, Fragment], ...]
    scroll: bool | None


@dataclass(frozen=True, slots=True)
class Fetch:
    """FETCH, or MOVE (no ``into``). ``direction``: forward, backward, absolute or relative by ``count`` (None: all)."""

    line: int
    cursor: Target
    direction: str
    count: Fragment | int | None
    into: Into | None


@dataclass(frozen=True, slots=True)
class Close:
    line: int
    cursor: Target


@dataclass(frozen=True, slots=True)
class End:
    """COMMIT or ROLLBACK."""

    line: int
    commit: bool
    chain: bool


@dataclass(frozen=True, slots=True)
class Null:
    line: int


Node = (
    Block | Assign | If | Case | Loop | ForRange | ForRows | ForCursor | ForEach | Exit | Return | ReturnNext
    | ReturnQuery | Raise | Assert | Sql | Call | Execute | GetDiagnostics | Open | Fetch | Close | End | Null
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Body:
    """A whole body. ``conflict``: what a name means that is a variable and a column: error, use_variable or
    use_column."""

    block: Block
    conflict: str = "error"
