"""COPY … FROM: from the client, or from files."""

from __future__ import annotations

from sql.session.copy_files import load_file
from sql.session.copy_in import CopyIn
from sql.session.information import SystemInformation
from sql.session.reads import Reads
from sql.session.request import Request
from sql.session.state import SessionState
from sql.statements.results import CommandResult, CopyInResult, Result
from sql.statements.statements import CopyFormat, CopyFrom


async def copy_from(session: SessionState, reads: Reads, statement: CopyFrom, request: Request) -> Result:
    """Load files, or begin to receive the client's data."""
    transaction = session.running
    dictionary = session.coordinator.engine.dictionary
    context = reads.context(dictionary, request, 0, SystemInformation(session, transaction.catalog))
    if statement.path is not None:
        count = await load_file(session, transaction, statement, context)
        return CommandResult(f"COPY {count}")
    receiver = CopyIn(session, transaction, statement, context)
    binary = 1 if statement.options.format is CopyFormat.BINARY else 0
    return CopyInResult(len(statement.columns), binary, receiver)
