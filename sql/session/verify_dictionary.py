"""VERIFY DICTIONARY: checks the ids in memory, in the store and in the rows at one epoch."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ivm.rows import RowSet, pack
from ivm.words import BYTEA, INT8, TEXT, ColumnType
from sql.engine.snapshot import Published
from sql.session.preparing import VERIFY_DICTIONARY_COLUMNS
from sql.session.request import Request
from sql.session.state import SessionState
from sql.statements.results import Result, RowsResult
from storage.dictionary import Dictionary, Entries
from storage.dictionary_check import Problem, check_rows, check_stored, check_values
from storage.types import codec

_ROW = (ColumnType(TEXT, False), ColumnType(INT8, False), ColumnType(BYTEA, True))


async def verify_dictionary(session: SessionState, request: Request) -> Result:
    """The problems found, as rows (problem, id, value)."""
    published = await session.running.snapshot()
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
    return RowsResult(VERIFY_DICTIONARY_COLUMNS, rows, f"VERIFY {len(rows)}", scratch, formats=request.formats)


def problems(
    dictionary: Dictionary, stored: Entries | None, published: Published, cancel: threading.Event
) -> Iterator[Problem]:
    """All problems. ``stored``: the store's entries, None without a store. ``cancel``: ends the search once set."""
    yield from check_values(dictionary)
    if stored is not None:
        yield from check_stored(dictionary, stored)
    for relation in published.catalog.relations.values():
        if relation.id in published.stored and not cancel.is_set():
            rows, _ = published.rows(relation.id, published.ordinal)
            yield from check_rows(dictionary, rows, relation.schema)
