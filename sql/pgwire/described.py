"""The shape of a result: its RowDescription."""

from __future__ import annotations

from collections.abc import Sequence

from sql.pgwire import messages_backend as backend
from sql.pgwire.values import column_formats
from sql.statements.queries import OutputColumn
from storage.encodings.encoding import Encoding
from storage.types.type_names import type_length, type_oid, typmod


def describe_rows(columns: Sequence[OutputColumn], formats: Sequence[int], encoding: Encoding | None = None) -> bytes:
    """A result's RowDescription. ``formats`` as in Bind (none, one, or one per column). ``encoding``: the client's;
    None: UTF-8. Raises 08P01, 22P05."""
    fields = tuple(
        backend.FieldDescription(
            column.name, column.table, column.attribute, type_oid(column.type), type_length(column.type),
            typmod(column.type), form,
        )
        for column, form in zip(columns, column_formats(formats, len(columns)), strict=True)
    )  # fmt: skip
    return backend.RowDescription(fields).encode(encoding)
