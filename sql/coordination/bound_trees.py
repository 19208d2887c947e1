"""Walks of bound statements, whatever they are made of: their literals, and whether two are the same but for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from ivm.words import SqlType
from planner.expr.literal_rows import LiteralRows
from planner.expr.scalar import Call, Literal, Parameter, Scalar
from planner.logical.nodes import TopK
from sql.bind.folding import folded
from sql.catalog.catalog import Relation
from sql.syntax.nodes.alike import Given
from sql.syntax.nodes.constant_items import ConstantItems
from sql.syntax.nodes.constants import Number, String

_LEAVES: Final = (str, int, SqlType, Relation, LiteralRows)
_BOUNDS: Final = frozenset({"limit", "offset"})
_NAMES: Final[dict[type, tuple[str, ...]]] = {}


def _names(kind: type) -> tuple[str, ...]:
    """The names of a class's fields; none if it is no tree."""
    found = _NAMES.get(kind)
    if found is None:
        whole = is_dataclass(kind) and not issubclass(kind, _LEAVES)
        found = _NAMES[kind] = tuple(f.name for f in fields(kind)) if whole else ()
    return found


def literals(tree: object) -> Iterator[Literal]:
    """The literals of a bound statement, each object once, but for those that bound a plan's top k."""
    seen: set[int] = set()
    todo = [tree]
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        if isinstance(part, Literal):
            seen.add(id(part))
            yield part
        elif isinstance(part, tuple):
            todo += part
        elif names := _names(type(part)):
            seen.add(id(part))
            todo += [getattr(part, name) for name in names if not (isinstance(part, TopK) and name in _BOUNDS)]


class Comparison:
    """Compares statements with parameters and statements with literals in their places."""

    def __init__(self, values: Sequence[object]) -> None:
        """``values``: the parameters'."""
        self._values = values
        self._known: set[tuple[int, int]] = set()

    def same(self, general: object, special: object) -> bool:
        """Whether two bound trees are the same, each parameter being the literal of its value."""
        if general is special:
            return True
        if isinstance(general, Parameter) and isinstance(special, Literal):
            return self._literal(general) == special
        if isinstance(general, Call) and isinstance(special, Literal):
            return self._computed(general) == special
        if type(general) is not type(special):
            return False
        if isinstance(general, tuple) and isinstance(special, tuple):
            return len(general) == len(special) and all(map(self.same, general, special))
        names = _names(type(general))
        if not names or isinstance(general, Literal):
            return general == special
        pair = id(general), id(special)
        if pair in self._known:
            return True
        found = all(self.same(getattr(general, name), getattr(special, name)) for name in names)
        if found:
            self._known.add(pair)
        return found

    def _literal(self, parameter: Parameter) -> Literal:
        return Literal(self._values[parameter.index - 1], parameter.type)

    def _computed(self, call: Call) -> Scalar:
        """A call as the binder folds it where it finds constants."""
        args = [self._literal(a) if isinstance(a, Parameter) else a for a in call.args]
        return folded(replace(call, args=tuple(self._computed(a) if isinstance(a, Call) else a for a in args)))


def with_parameters(tree: Any, parameters: Mapping[int, Scalar]) -> Any:
    """A syntax tree in which bound parameters stand in place of the constants at these offsets."""
    if isinstance(tree, Number | String):
        found = parameters.get(tree.at)
        return tree if found is None else Given(found, tree.at)
    if isinstance(tree, ConstantItems):
        return replace(tree, given=parameters.get(tree.at))
    if isinstance(tree, tuple):
        parts = tuple([with_parameters(part, parameters) for part in tree])
        return tree if all(a is b for a, b in zip(parts, tree, strict=True)) else parts
    changed = {}
    for name in _names(type(tree)):
        part = getattr(tree, name)
        found = with_parameters(part, parameters)
        if found is not part:
            changed[name] = found
    return replace(tree, **changed) if changed else tree
