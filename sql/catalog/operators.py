"""Users' operators in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeVar

from ivm.words import SqlType
from planner.expr.functions.table import ArgumentType, Polymorphic
from sql.catalog.routine import Types, argument_from_json, argument_to_json

_TYPES: Final = ("left", "right", "result")
TypeT = TypeVar("TypeT")


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator. ``left``: the type of its left operand, None if it is a prefix operator.

    ``function``: the oid of the user's function behind it, 0 for the built-in one named ``builtin``. Without either it
    is only a shell, which another operator names as its commutator or negator; ``result`` is then None.
    ``commutator`` and ``negator``: the oids of operators, which may be gone; 0 for none. ``restrict`` and ``join``: the
    names of selectivity estimators. ``hashes`` and ``merges``: which joins PostgreSQL could use it for.
    """

    symbol: str
    left: ArgumentType | None
    right: ArgumentType
    result: ArgumentType | None = None
    function: int = 0
    builtin: str = ""
    commutator: int = 0
    negator: int = 0
    restrict: str = ""
    join: str = ""
    hashes: bool = False
    merges: bool = False

    @property
    def shell(self) -> bool:
        """Whether nothing is behind it yet."""
        return not self.function and not self.builtin

    @property
    def args(self) -> tuple[ArgumentType, ...]:
        """The types of its operands."""
        return (self.right,) if self.left is None else (self.left, self.right)

    def renewed(self, change: Callable[[SqlType], SqlType]) -> Operator:
        """The operator with its types changed."""

        def changed(type_: TypeT) -> TypeT | SqlType:
            return change(type_) if isinstance(type_, SqlType) else type_

        return replace(self, left=changed(self.left), right=changed(self.right), result=changed(self.result))


def operator_name(symbol: str, args: Sequence[str]) -> str:
    """What the catalog calls an operator of these types, as messages show it: ``operator +(integer,integer)``."""
    return f"operator {symbol}({','.join(args if len(args) > 1 else ('NONE', *args))})"


def operator_to_json(operator: Operator) -> dict[str, object]:
    """The inverse of ``operator_from_json``."""
    types = {n: None if t is None else argument_to_json(t) for n in _TYPES for t in (getattr(operator, n),)}
    return {**asdict(replace(operator, left=None, result=None, right=Polymorphic.ANY)), **types}


def operator_from_json(data: Mapping[str, Any], types: Types) -> Operator:
    """The inverse of ``operator_to_json``."""
    given = {n: None if data[n] is None else argument_from_json(data[n], types) for n in _TYPES}
    return Operator(**{**data, **given})
