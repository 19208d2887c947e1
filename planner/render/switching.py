"""A view's definition is exchanged while everything that reads the view stays, and gets only the difference.

The new definition's nodes are made beside the dataflow, together with an Output of what it has more or less than the
old one. Then a Switch takes the place of the view's collection: what read the old definition's last node reads the
Switch instead, whose source becomes the new one's, and which emits the difference once. A view that is never replaced
has no Switch.

A node may be shared: it may be the last one of a view and a part of others, which do not read the view. Their readers
cannot be told apart from the view's, so such a view is not switched (``switchable``).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Final

from ivm.dataflow import Dataflow, Exchange
from ivm.graph import Concat, Constant, Errors, Negate, NodeId, NodeSpec, Output, Switch
from ivm.rows import Words
from ivm.specs import inputs
from planner.physical.nodes import Plan
from planner.render.dataflow import Installed, Renderer, Rendering, Stored, enters, tables_of


@dataclass(frozen=True, slots=True)
class Definition:
    """A view's new definition in a dataflow. ``failing``: the collection of its error rows. ``difference`` and
    ``error_difference``: Outputs of what it has more than the old one; None: neither can fail."""

    rows: NodeId
    failing: NodeId | None
    places: tuple[NodeId | None, ...]
    reads: frozenset[int]
    difference: NodeId
    error_difference: NodeId | None

    @property
    def outputs(self) -> tuple[NodeId, ...]:
        return (self.difference, *(() if self.error_difference is None else (self.error_difference,)))


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows and their diffs, of the view and of its errors."""

    rows: Words
    diffs: Words
    errors: Words
    error_diffs: Words


def read_by_views(renderer: Renderer, view: int) -> bool:
    """Whether other views read a view, or what else the dataflow maintains."""
    return any(s.installed is not None and view in s.installed.reads for s in renderer.stored.values())


def switchable(renderer: Renderer, view: int) -> bool:
    """Whether all that reads a view's last node reads the view. Cost: the number of views and operators."""
    stored, dataflow = renderer.stored[view], renderer.dataflow
    if stored.installed is None or stored.locks:
        return False
    if isinstance(dataflow.spec(stored.rows), Switch):
        return True
    readers = dataflow.readers(stored.rows)
    own = set(stored.installed.places)
    if readers is None or any((reader in own) != isinstance(dataflow.spec(reader), Errors) for reader in readers):
        return False
    passing = _passing(renderer, view)
    for relation, other in renderer.stored.items():
        if relation == view or (stored.rows not in other.nodes and stored.rows != other.rows):
            continue
        if other.installed is None:
            return False
        if other.installed.places.count(stored.rows) != len(other.installed.reads & passing):
            return False
    return True


def _passing(renderer: Renderer, view: int) -> set[int]:
    """The view, and those that consist of all of its rows as they are."""
    rows, found = renderer.stored[view].rows, {view}
    while True:
        same = (i for i, s in renderer.stored.items() if s.rows == rows and i not in found and s.installed is not None)
        more = {i for i in same if (installed := renderer.stored[i].installed) and installed.reads & found}
        if not more:
            return found
        found |= more


def define(renderer: Renderer, running: Renderer, plan: Plan, view: int) -> Definition | None:
    """Adds the nodes of a view's new definition to a renderer beside the ``running`` one. None: the old and the new one
    share so much that the view's readers cannot be told apart from them."""
    stored = running.stored[view]
    installed = stored.installed
    assert installed is not None
    _forget_readers(renderer, running.dataflow, stored.rows)
    render = Rendering(renderer, plan)
    places = render.all()
    rows = places[plan.rows]
    assert rows is not None
    if stored.rows in places and plan.scopes:
        return None
    failing = None if plan.errors is None else places[plan.errors]
    add = renderer.dataflow.add
    parts = [] if failing is None else [failing]
    if installed.errors is not None:
        parts.append(add(Negate(*inputs(running.dataflow.spec(installed.errors)))))
    difference = add(Output(add(Concat((rows, add(Negate(stored.rows)))))))
    error_difference = add(Output(add(Concat(tuple(parts))))) if parts else None
    return Definition(rows, failing, tuple(places), tables_of(plan), difference, error_difference)


def _forget_readers(renderer: Renderer, running: Dataflow, node: NodeId) -> None:
    """Makes what reads a node unknown, so that a new definition, which may contain the node, has readers of its own."""
    readers = {n for n in running.readers(node) or () if not isinstance(running.spec(n), Errors)}
    renderer.known = {spec: n for spec, n in renderer.known.items() if n not in readers}
    renderer.loops = _without(renderer.loops, node)


def switch(
    renderer: Renderer, other: Renderer, view: int, made: Definition, difference: Difference, ordinal: int
) -> None:
    """Exchanges a view's definition for one that ``other``, made by ``beside``, has defined, from an ordinal on. Its
    nodes must be in this dataflow already, which has stepped everything fed. ``switchable`` must hold; an old
    definition that cannot fail must not have readers if the new one can."""
    dataflow, installed = renderer.dataflow, renderer.stored[view].installed
    assert installed is not None
    new = [node for node in (made.rows, made.failing) if node is not None and dataflow.keep(node)]
    for output in made.outputs:
        dataflow.release(output)
    renderer.take(other, made.places)
    rows = renderer.stored[view].rows
    if not isinstance(dataflow.spec(rows), Switch):
        rows = _inserted(renderer, view, made)
    errors, failing = _switched_errors(renderer, installed, made)
    source = renderer.add(_NONE) if made.failing is None else made.failing
    dataflow.hydrate()
    old = inputs(dataflow.spec(rows))
    changes = [Exchange(rows, made.rows, difference.rows, difference.diffs)]
    if failing is not None:
        old += inputs(dataflow.spec(failing))
        changes.append(Exchange(failing, source, difference.errors, difference.error_diffs))
    dataflow.exchange(changes, ordinal)
    dataflow.end_keep(new)
    stored = renderer.stored[view]
    kept = (n for n in stored.nodes if n not in installed.nodes or n == installed.output)
    nodes = tuple(dict.fromkeys(n for n in (*made.places, source, rows, failing, errors, *kept) if n is not None))
    anew = Installed(view, installed.schema, installed.output, errors, nodes, made.places, made.reads)
    renderer.stored[view] = replace(stored, rows=rows, installed=anew, nodes=nodes)
    for node in reversed(old):
        dataflow.reclaim(node)
    renderer.forget_freed()


def _switched_errors(renderer: Renderer, installed: Installed, made: Definition) -> tuple[NodeId | None, NodeId | None]:
    """The Output of a view's error rows and the Switch that it reads; None: neither definition can fail."""
    dataflow, errors = renderer.dataflow, installed.errors
    if errors is None:
        if made.failing is None:
            return None, None
        new = dataflow.add(Switch(renderer.add(_NONE)))
        return dataflow.add(Output(new)), new
    (old,) = inputs(dataflow.spec(errors))
    if isinstance(dataflow.spec(old), Switch):
        return errors, old
    new = dataflow.add(Switch(old))
    dataflow.hydrate()
    dataflow.reread(old, new, lambda node: node == errors)
    return errors, new


_NONE: Final = Constant(1, ())


def _inserted(renderer: Renderer, view: int, made: Definition) -> NodeId:
    """Puts a Switch between a view's last node and all that reads the view; the Switch."""
    dataflow, old = renderer.dataflow, renderer.stored[view].rows
    new = dataflow.add(Switch(old))
    dataflow.hydrate()
    own = set(made.places)
    moved = dataflow.reread(old, new, lambda n: n not in own and not isinstance(dataflow.spec(n), Errors))
    take_reread(renderer, old, new, moved, without=view)
    return new


def take_reread(
    renderer: Renderer, old: NodeId, new: NodeId, moved: dict[NodeId, tuple[NodeSpec, NodeSpec]],
    without: int | None = None,
) -> None:  # fmt: skip
    """Takes over what ``Dataflow.reread`` has moved, for all views but one."""
    for node, (before, after) in moved.items():
        if renderer.known.get(before) == node:
            del renderer.known[before]
            renderer.known[after] = node
    renderer.loops = _without(renderer.loops, old)
    for relation, other in list(renderer.stored.items()):
        if relation != without and other.installed is not None and old in other.installed.places:
            renderer.stored[relation] = _moved(other, other.installed, old, new)


def _without(
    loops: dict[Hashable, tuple[NodeId | None, ...]], node: NodeId
) -> dict[Hashable, tuple[NodeId | None, ...]]:
    """Loops as they are looked up, except those that a node enters."""
    return {key: places for key, places in loops.items() if not enters(key, node)}


def _moved(stored: Stored, installed: Installed, old: NodeId, new: NodeId) -> Stored:
    """A relation that reads another node now."""
    nodes = tuple(new if n == old else n for n in installed.nodes)
    places = tuple(new if n == old else n for n in installed.places)
    anew = replace(installed, nodes=nodes, places=places)
    rows = new if stored.rows == old else stored.rows
    return replace(stored, rows=rows, installed=anew, nodes=tuple(new if n == old else n for n in stored.nodes))
