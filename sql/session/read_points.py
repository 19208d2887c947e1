"""Read points: which state of the database a query reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ivm.errors import SqlError
from ivm.words import Kind
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import constant
from planner.expr.scalar import Scalar
from sql.catalog.catalog import STORED, Catalog
from sql.coordination.jobs import Jobs
from sql.engine.clock import POSTGRES_EPOCH
from sql.engine.persist import DEFAULT_RETAIN
from sql.engine.snapshot import Published
from sql.system.own import VIEW_ERRORS

MILLISECONDS: Final = range(10**11, 10**14)
"""Integers that are milliseconds since 1970 for the years 1973 to 5138."""


@dataclass(frozen=True, slots=True)
class ReadPoint:
    """What a query reads: a published state as of one of its ordinals, or (``history``) the store as of an epoch."""

    published: Published
    ordinal: int
    epoch: int
    history: bool = False


def present(published: Published) -> ReadPoint:
    """The newest read point of a published state."""
    return ReadPoint(published, published.ordinal, published.epoch)


async def read_point_of(
    jobs: Jobs, published: Published, inputs: Iterable[int], epoch: int, at_least: bool = False
) -> ReadPoint:
    """The read point of AS OF. ``at_least``: the oldest one if ``epoch`` is older. 22023: in the future, or too old."""
    now = jobs.engine.clock.now()
    if epoch > now:
        hint = f"The present is {now}: epochs are microseconds since 1970."
        raise SqlError("22023", f"cannot read as of {epoch}: it is in the future", hint=hint)
    if epoch > published.epoch:
        published = await jobs.published_at_least(epoch)
    oldest = max((oldest_epoch(published.catalog, i, now) for i in inputs), default=0)
    if epoch < oldest and at_least:
        epoch = oldest
    if epoch < oldest:
        raise _too_old(epoch, oldest, published.epoch)
    ordinal = jobs.engine.timeline.ordinal(epoch)
    if ordinal is not None and ordinal >= published.since and not _down_since(published, inputs, ordinal):
        return ReadPoint(published, ordinal, epoch)
    return ReadPoint(published, 0, epoch, history=True)


def _down_since(published: Published, inputs: Iterable[int], ordinal: int) -> bool:
    """Whether a view is down, so that only the store has what it was at an earlier ordinal."""
    if ordinal >= published.ordinal or not published.failures:
        return False
    return any(i in published.failures or i == VIEW_ERRORS.id for i in inputs)


def _too_old(epoch: int, oldest: int, newest: int) -> SqlError:
    hint = "CREATE … WITH (RETAIN HISTORY FOR '…') sets how much history is kept."
    if epoch in MILLISECONDS:
        hint = f"Epochs are microseconds since 1970; {epoch} looks like milliseconds: did you mean {epoch * 1000}?"
    return SqlError(
        "22023",
        f"cannot read as of {epoch}: no history is kept that far back",
        f"What is asked for can be read from {oldest} ({_text(oldest)}) to {newest} ({_text(newest)}).",
        hint,
    )


def _text(epoch: int) -> str:
    return datetime.fromtimestamp(epoch / 1e6, UTC).isoformat(sep=" ", timespec="milliseconds")


def oldest_epoch(catalog: Catalog, relation: int, now: int) -> int:
    """The oldest epoch that a relation can certainly be read as of."""
    known = catalog.relations.get(relation)
    if known is None or known.kind not in STORED:
        return 0
    return max(known.created, now - (known.retain or DEFAULT_RETAIN))


def epoch_of(expr: Scalar, context: Context, what: str = "AS OF") -> int:
    """AS OF's or UP TO's expression as an epoch: a bigint as it is, a timestamptz in µs since 1970."""
    datum = constant(expr, context)
    if datum is None:
        raise SqlError("22004", f"{what} must not be null")
    assert isinstance(datum, int), "the binder allows bigint and timestamptz"
    return datum + POSTGRES_EPOCH if expr.type.kind is Kind.TIMESTAMPTZ else datum
