"""VERIFY DICTIONARY: what the checker of ids finds, in memory, in the store and in the rows at one epoch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ivm.rows import RowSet, pack
from ivm.words import BYTEA, INT8, TEXT, ColumnType
from sql.coordination.prepared import output_columns
from sql.engine.snapshot import Published
from sql.session.reads import Request
from sql.statements.results import Result, RowsResult
from sql.statements.statements import VerifyDictionary
from storage.dictionary import Dictionary, Entries
from storage.dictionary_check import Problem, check_rows, check_stored, check_values
from storage.types import codec

if TYPE_CHECKING:
    from sql.session.session import Session

_ROW = (ColumnType(TEXT, False), ColumnType(INT8, False), ColumnType(BYTEA, True))


async def verify_dictionary(session: Session, request: Request) -> Result:
    """Its findings, none where all is well: (problem, id, value)."""
    assert session.transaction is not None
    published = await session.transaction.snapshot()
    engine = session.coordinator.engine
    scratch = engine.dictionary.scratch()
    cancel = threading.Event()

    def check() -> RowSet:
        stored = None if engine.persistence is None else engine.persistence.store.dictionary()
        found = list(problems(engine.dictionary, stored, published, cancel))
        columns = zip(_ROW, zip(*found, strict=True), strict=True) if found else ()
        vectors = [codec.encode(column.type, list(values), scratch) for column, values in columns]
        return RowSet(pack(vectors, _ROW, len(found)), _ROW)

    rows = await session.coordinator.read(check, cancel)
    shown = output_columns(VerifyDictionary(), session)
    assert shown is not None
    return RowsResult(shown, rows, f"VERIFY {len(rows)}", scratch, formats=request.formats)


def problems(
    dictionary: Dictionary, stored: Entries | None, published: Published, cancel: threading.Event
) -> Iterator[Problem]:
    """All findings. ``stored``: None where nothing is. ``cancel``: no more is looked at once it is set."""
    yield from check_values(dictionary)
    if stored is not None:
        yield from check_stored(dictionary, stored)
    for relation in published.catalog.relations.values():
        if relation.id in published.stored and not cancel.is_set():
            rows, _ = published.rows(relation.id, published.ordinal)
            yield from check_rows(dictionary, rows, relation.schema)
