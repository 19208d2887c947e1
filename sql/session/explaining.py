"""EXPLAIN."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import numpy as np

from ivm.errors import unsupported
from planner.distributed.hydration_choice import Choice, Hydrate, choose, stored_in
from planner.expr.context import Context
from planner.logical.locked_joins import numbered
from planner.logical.nodes import Rel
from planner.lower.plan import lower
from planner.peek.answer import way
from planner.plan_forms import Measured, shown
from planner.transform.pipeline import optimize
from sql.engine.definition import view_rel
from sql.engine.snapshot import MemorySnapshot, Published, StoredIndexes, plan_maintained
from sql.engine.spread import spread_of
from sql.session.datum_rows import datum_rows
from sql.session.state import SessionState
from sql.statements import statements as bound
from sql.statements.definitions import (
    CreateTable,
    CreateView,
)
from sql.statements.queries import Query
from sql.statements.results import CommandResult, Result, RowsResult
from storage.dictionary import Dictionary


def plan_rows(dictionary: Dictionary, statement: bound.Explain, rows: list[str]) -> RowsResult:
    """EXPLAIN's result."""
    return datum_rows(dictionary, statement.columns, [(row,) for row in rows], "EXPLAIN")


def explained(session: SessionState, statement: bound.Explain) -> list[str]:
    """EXPLAIN's rows. Raises 0A000 for ANALYZE, which runs the statement: see ``analyzed``."""
    if statement.options.analyze:
        raise unsupported("EXPLAIN ANALYZE in a function")
    return shown(_lines(session, statement), statement.options.form, None, summary=False)


async def analyzed(
    session: SessionState, statement: bound.Explain, run: Callable[[bound.Statement], Awaitable[Result]]
) -> list[str]:
    """The rows of EXPLAIN ANALYZE. ``run`` runs the statement inside."""
    inner, options = statement.statement, statement.options
    if not isinstance(inner, Query | bound.Insert | bound.Update | bound.Delete | bound.Merge):
        raise unsupported("EXPLAIN ANALYZE of what is no query or change of rows")
    started = time.perf_counter()
    lines = _lines(session, statement)
    planned = time.perf_counter()
    result = await run(inner)
    ended = time.perf_counter()
    count = result.tag.rpartition(" ")[2] if isinstance(result, RowsResult | CommandResult) else "0"
    measured = Measured(int(count), 1000 * (planned - started), 1000 * (ended - planned), options.timing)
    return shown(lines, options.form, measured, options.summary)


def _lines(session: SessionState, statement: bound.Explain) -> list[str]:
    """The lines of the plan as text."""
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
    if isinstance(inner, Query) and statement.stage == "physical" and inner.as_of is None and not inner.locks:
        lines += _cut(session, published, inner, indexes)
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


def _cut(session: SessionState, published: Published, query: Query, indexes: StoredIndexes) -> list[str]:
    """How LIMIT spares a query work."""
    plan = lower(optimize(query.rel, indexes.planning.demanding), indexes)
    snapshot = MemorySnapshot(published, published.ordinal, lambda _: np.zeros((0, 1), np.int64))
    context = Context(session.coordinator.engine.dictionary.scratch(), timezone=session.settings.get("timezone"))
    found = way(plan, snapshot, query.finishing, context)
    return [] if found is None else [found]


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
