"""lag, lead, first_value, last_value, nth_value and ntile: a value of another row, or a row's place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ivm.errors import SqlError
from ivm.words import INT4, SqlType
from planner.expr.scalar import Scalar
from planner.logical.frames import Pick, Picked
from sql.bind.coerce import cast, castable, resolve_unknown, try_common_type
from sql.bind.environment import Binder
from sql.bind.overloads import no_function
from sql.syntax.nodes import queries as nodes

_ARGUMENTS: Final = {
    Pick.LAG: (1, 3), Pick.LEAD: (1, 3), Pick.FIRST: (1, 1), Pick.LAST: (1, 1), Pick.NTH: (2, 2), Pick.NTILE: (1, 1),
}  # fmt: skip
"""The least and the greatest number of arguments."""
NAMES: Final = frozenset(pick.value for pick in _ARGUMENTS)


def bind(b: Binder, node: nodes.Apply, name: str) -> Picked:
    """A call of one of these functions. Raises 42883, 42804, 0A000."""
    pick = Pick(name)
    args = [b.bind(a) for a in node.args]
    least, most = _ARGUMENTS[pick]
    unknown = no_function(name, [a.type for a in args], node.at)
    if node.star or not least <= len(args) <= most:
        raise unknown
    if pick is Pick.NTILE:
        if node.ignore_nulls:
            raise SqlError("0A000", f"function {name} does not allow RESPECT/IGNORE NULLS", position=node.at + 1)
        return Picked(pick, (_integer(b, args[0], unknown, node.at),))
    given = [args[0].type, *(a.type for a in args[2:])]
    if all(type_.kind.name == "UNKNOWN" for type_ in given):
        message = "could not determine polymorphic type because input has type unknown"
        raise SqlError("42804", message, position=node.at + 1)
    value, *default = _values(b, [args[0], *args[2:]], given, unknown, node.at)
    number = [_integer(b, a, unknown, node.at) for a in args[1:2]]
    return Picked(pick, (value, *number, *default), node.ignore_nulls)


def _integer(b: Binder, arg: Scalar, unknown: SqlError, at: int) -> Scalar:
    if not castable(arg.type, INT4, "implicit") and arg.type.kind.name != "UNKNOWN":
        raise unknown
    return cast(b.env, arg, INT4, "implicit", at)


def _values(b: Binder, args: list[Scalar], types: Sequence[SqlType], unknown: SqlError, at: int) -> list[Scalar]:
    """The value and the default, of one type."""
    if len(args) == 1:
        return [resolve_unknown(b.env, args[0], at)]
    common = try_common_type(types)
    if common is None:
        raise unknown
    return [cast(b.env, a, common, "implicit", at) for a in args]
