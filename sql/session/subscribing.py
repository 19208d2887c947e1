"""SUBSCRIBE: starts a session's subscription."""

from __future__ import annotations

from ivm.errors import unsupported
from sql.coordination.prepared import Prepared
from sql.parse import StatementText
from sql.session.information import SystemInformation
from sql.session.permits import Permit
from sql.session.read_points import epoch_of
from sql.session.reads import Reads
from sql.session.request import Request
from sql.session.state import SessionState
from sql.session.subscription import Subscription
from sql.statements.statements import Subscribe


async def subscribe(
    session: SessionState, reads: Reads, statement: Subscribe, prepared: Prepared, request: Request
) -> Subscription:
    """Start a subscription. 0A000: the transaction has written, or the query cannot be maintained."""
    transaction = session.running
    if transaction.writer is not None:
        raise unsupported("SUBSCRIBE in a transaction that has written")
    coordinator = session.coordinator
    published = coordinator.engine.published
    information = SystemInformation(session, published.catalog)
    context = reads.context(coordinator.engine.dictionary.scratch(), request, published.epoch, information)
    as_of = statement.as_of if statement.as_of is not None else statement.query.as_of
    start = None if as_of is None else epoch_of(as_of, context)
    up_to = None if statement.up_to is None else epoch_of(statement.up_to, context, "UP TO")
    path, settings = session.path(published.catalog), session.settings
    permit = Permit(
        prepared, session.role,
        lambda catalog: coordinator.statements.prepare(
            StatementText(prepared.text), catalog, path, prepared.bound.parameters, settings
        ),
    )  # fmt: skip
    subscription = Subscription(coordinator, statement, up_to, settings, permit)
    try:
        await subscription.start(start)
    except BaseException:
        subscription.close()
        raise
    return subscription
