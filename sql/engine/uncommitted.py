"""What an open transaction has created, in the dataflow while the transaction has it to itself.

Before anybody else goes on it is taken out, with the transaction's changes, so that commits find the dataflow as if it
had never been there; when the transaction goes on it is made again, over the newest commits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.logical.nodes import Rel
from sql.catalog.catalog import FED, STORED, Catalog, Relation
from sql.engine.definition import definition_rel
from sql.engine.engine import Engine
from sql.engine.snapshot import Published, plan_maintained


def is_stored(relation: Relation) -> bool:
    """Whether a relation has nodes in the dataflow while it is there."""
    return relation.kind in STORED and not relation.parts


def install(engine: Engine, relation: Relation, rel: Rel | None, snapshot: Callable[[], Published]) -> None:
    """Add a table, or a materialized view of ``rel``, which is hydrated on return. ``snapshot``: the transaction's
    state, over which the view is planned. Raises the error of a view that it reads, or that its step ends with."""
    if relation.kind in FED:
        engine.add_table(relation)
    else:
        assert rel is not None, "a materialized view has a query"
        engine.install(plan_maintained(rel, snapshot(), relation.planning, relation.schema), relation.id)
        engine.add_indexes(relation)
    engine.hydrate()
    engine.failing.settle_tentative()


def missing(engine: Engine, created: Sequence[Relation], catalog: Catalog) -> list[Relation]:
    """Those that are not in the dataflow, in the order in which they can be made. Tables come first, even if they have
    been dropped since: changes of theirs are still fed."""
    gone = [r for r in created if r.id not in engine.renderer.stored]
    now = [catalog.relations.get(r.id, r) for r in gone]
    return [r for r in now if r.kind in FED] + [r for r in now if r.kind not in FED and r.id in catalog.relations]


def install_again(
    engine: Engine, created: Sequence[Relation], catalog: Catalog, snapshot: Callable[[], Published],
    succeed: Callable[[], None],
) -> None:  # fmt: skip
    """Add those that were taken out. ``succeed``: called when the tables are there. Cost: their contents. Raises what
    ``install`` raises."""
    again = missing(engine, created, catalog)
    for table in again:
        if table.kind in FED:
            install(engine, table, None, snapshot)
    succeed()
    for view in again:
        if view.kind not in FED:
            install(engine, view, definition_rel(view, catalog), snapshot)


def held(engine: Engine, created: Sequence[Relation]) -> list[Relation]:
    """Those that are in the dataflow."""
    return [r for r in created if r.id in engine.renderer.stored]


def take_out(engine: Engine, relations: Sequence[Relation]) -> None:
    """Free what relations have in the dataflow. Their changes have been undone."""
    engine.drop_relation(*(relation.id for relation in reversed(relations)))


def dated(engine: Engine, catalog: Catalog) -> Catalog:
    """The catalog, in which what is new has been created after the newest commit, as it is committed now."""
    epoch = engine.timeline.epoch(engine.timeline.last) + 1
    for relation in sorted(catalog.relations.keys() - engine.catalog.relations.keys()):
        known = catalog.relations[relation]
        if 0 < known.created < epoch:
            catalog = catalog.with_relation(replace(known, created=epoch), engine.next_version())
    return catalog
