"""The syntax tree of GRANT on functions, whose signatures binding looks up, and of ALTER FUNCTION … OWNER TO."""

from __future__ import annotations

from dataclasses import dataclass

from sql.statements.roles import Grant
from sql.syntax.nodes.queries import TableName, TypeName


@dataclass(frozen=True, slots=True)
class GrantStatement:
    """``signatures``: the functions, empty for other objects."""

    grant: Grant
    signatures: tuple[tuple[TableName, tuple[TypeName, ...] | None], ...]
