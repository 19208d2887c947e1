"""A table is rewritten while everything that reads it stays.

ALTER TABLE gives a table's rows another layout in a new table. What reads the old one need not be computed again if the
new one has all of its columns with the same values: it reads these columns of the new table's rows from there on, and
emits nothing, since both have the same contents at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivm.graph import NodeId, Project
from planner import gathers
from planner.render.dataflow import Renderer
from planner.render.switching import take_reread


def may_succeed(renderer: Renderer, table: int) -> bool:
    """Whether all that reads a table may read another node instead. Cost: the number of operators."""
    return renderer.dataflow.may_reread(renderer.stored[table].rows)


def succeed(renderer: Renderer, old: int, new: int, columns: Sequence[int]) -> NodeId:
    """Makes all that reads a table read another one: its columns, by position in the new one, which have the same
    contents. Everything fed has been stepped. The node of these columns. Cost: the new table's rows, which are read
    once, and the operators, which are compiled anew."""
    before, after = renderer.stored[old], renderer.stored[new]
    rows = renderer.add(Project(after.rows, gathers.columns(after.schema, columns, before.schema)))
    renderer.dataflow.hydrate()
    _reread(renderer, (old, before.rows), (new, rows))
    return rows


def give_back(renderer: Renderer, old: int, new: int, rows: NodeId) -> None:
    """Undoes ``succeed``, which made ``rows``, when both tables have the same contents again."""
    _reread(renderer, (new, rows), (old, renderer.stored[old].rows))
    renderer.dataflow.reclaim(rows)
    renderer.forget_freed()


def _reread(renderer: Renderer, before: tuple[int, NodeId], after: tuple[int, NodeId]) -> None:
    """Moves the readers from one table and its collection to another."""
    (old, rows), (new, other) = before, after
    take_reread(renderer, rows, other, renderer.dataflow.reread(rows, other))
    renderer.dataflow.run_later(other)
    for relation, stored in list(renderer.stored.items()):
        installed = stored.installed
        if installed is not None and old in installed.reads:
            reads = installed.reads - {old} | {new}
            renderer.stored[relation] = replace(stored, installed=replace(installed, reads=reads))
