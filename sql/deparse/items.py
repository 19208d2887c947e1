"""The names of the items of FROM: aliases that differ from those around them, and the present names of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sql.bind.namespace import Range
from sql.bind.notes import Place
from sql.bind.time_windows import windowed
from sql.deparse.context import Context, Item
from sql.syntax.nodes import queries as nodes


@dataclass(frozen=True, slots=True)
class Level:
    """A query and those around it. ``taken``: the aliases in use there; ``offsets``: of the query's own items."""

    taken: frozenset[str] = frozenset()
    offsets: frozenset[int] = field(default_factory=frozenset)


def entered(context: Context, refs: Sequence[nodes.TableRef], outer: Level) -> Level:
    """Names the items of a query's FROM; its level."""
    taken = set(outer.taken)
    offsets = set()
    pushed: dict[Place, str] = {}
    for ref in refs:
        _push(context, ref, pushed)
    for ref in refs:
        for item in _in_order(ref):
            range_ = context.notes.ranges.get(item.at)
            if range_ is None:
                continue
            alias = _unique(_alias(context, item, range_), taken)
            taken.add(alias)
            offsets.add(item.at)
            columns = _columns(context, item, range_, pushed)
            own = real_columns(context, range_)
            changed = columns != (own or tuple(v.name for v in range_.columns)) or (own is None and bool(item.columns))
            context.items[item.at] = Item(alias, columns, changed)
    return Level(frozenset(taken), frozenset(offsets))


def _in_order(ref: nodes.TableRef) -> Iterator[nodes.TableRef]:
    """The items that have names, a join's sides before itself."""
    if not isinstance(ref, nodes.JoinedTable):
        yield ref
        return
    yield from _in_order(ref.left)
    yield from _in_order(ref.right)
    if ref.alias is not None:
        yield ref


def _alias(context: Context, ref: nodes.TableRef, range_: Range) -> str:
    """The alias that is written, or else the present name of the relation."""
    if ref.alias is None and isinstance(ref, nodes.TableName) and range_.relation is not None:
        return context.names.current(range_.relation).name
    return range_.alias


def _unique(name: str, taken: set[str]) -> str:
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def real_columns(context: Context, range_: Range) -> tuple[str, ...] | None:
    """The present names of a relation's columns that a range shows; None for what is no relation."""
    if range_.relation is None:
        return None
    current = context.names.current(range_.relation)
    return tuple(
        current.columns[v.attribute - 1].name if 0 < v.attribute <= len(current.columns) else v.name
        for v in range_.columns
    )


def _columns(
    context: Context, ref: nodes.TableRef, range_: Range, pushed: dict[Place, str]
) -> tuple[str, ...]:  # fmt: skip
    names = list(real_columns(context, range_) or (v.name for v in range_.columns))
    names[: len(ref.columns)] = ref.columns
    taken: set[str] = set()
    for i in range(len(names)):
        names[i] = _unique(pushed.get(Place(ref.at, i), names[i]), taken)
        taken.add(names[i])
    return tuple(names)


def _push(context: Context, ref: nodes.TableRef, pushed: dict[Place, str]) -> None:
    """The names that the joins of USING need their columns to have."""
    if not isinstance(ref, nodes.JoinedTable):
        return
    for name, *places in context.notes.merged.get(ref.at, ()):
        pushed.update((place, name) for place in places if place is not None)
    _push(context, ref.left, pushed)
    _push(context, ref.right, pushed)


def has_windows(ref: nodes.TableRef) -> bool:
    """Whether the item is a call of TUMBLE or HOP."""
    return isinstance(ref, nodes.FunctionTable) and windowed(ref) is not None
