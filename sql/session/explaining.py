"""EXPLAIN."""

from __future__ import annotations

from ivm.errors import unsupported
from planner.distributed.hydration_choice import Choice, Hydrate, choose, stored_in
from planner.logical.locked_joins import numbered
from planner.logical.nodes import Rel
from sql.engine.definition import view_rel
from sql.engine.snapshot import Published, StoredIndexes, plan_maintained
from sql.engine.spread import spread_of
from sql.session.state import SessionState
from sql.statements import statements as bound
from sql.statements.definitions import (
    CreateTable,
    CreateView,
)
from sql.statements.queries import Query


def explained(session: SessionState, statement: bound.Explain) -> list[str]:
    """The lines of EXPLAIN's result."""
    published = session.coordinator.engine.published
    inner = statement.statement
    maintained = isinstance(inner, CreateView) and inner.materialized
    rel = _explained(inner)
    from planner.explain import explain

    def name(relation: int) -> str:
        known = published.catalog.by_id(relation)
        return f"relation {relation}" if known is None else known.name

    planning, renderer = session.settings.planning, session.coordinator.engine.renderer
    indexes = StoredIndexes(published, not maintained, planning)
    lines = explain(rel, statement.stage, indexes, name, renderer, planning.demanding).splitlines()
    if isinstance(inner, CreateView) and inner.parts:
        spread = spread_of(rel, published.catalog, inner.parts)
        exchanges = f"{spread.cut.levels - 1} exchanges a job"
        if spread.plan.scopes:
            exchanges = "an exchange for each of them and round"
        places = len(spread.cut.fragments) - 1
        lines.append(f"maintained by spark: {places} fragments of {inner.parts} parts each, {exchanges}")
    elif isinstance(inner, CreateView) and inner.materialized:
        choice = _hydrated_by(session, inner, published)
        if inner.hydrate is not None or choice.by is Hydrate.SPARK:
            lines.append(f"hydrated by {choice}")
    lines += [f"planned with {setting}, which is kept with the view" for setting in planning.set if maintained]
    return lines


def _hydrated_by(session: SessionState, statement: CreateView, published: Published) -> Choice:
    rel = _explained(statement)
    plan = plan_maintained(rel, published, session.settings.planning)
    versions = (published.version(relation) for relation in stored_in(plan))
    rows = sum(version.count for version in versions if version is not None)
    coordinator = session.coordinator
    return choose(statement.hydrate, plan, rows, coordinator.spark.session().settings.master, coordinator.budget.limit)


def _explained(statement: bound.Statement) -> Rel:
    match statement:
        case Query():
            return statement.rel
        case bound.Insert() | bound.Update() | bound.Delete() | bound.Merge():
            return statement.source
        case CreateView():
            rel = view_rel(statement.query)
            return numbered(rel) if statement.materialized else rel
        case CreateTable(source=Query() as query):
            return query.rel
        case bound.Subscribe():
            return statement.query.rel
        case _:
            raise unsupported("EXPLAIN of what is no query, change, subscription, or table or view from a query")
