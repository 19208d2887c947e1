"""The shape of a result: its RowDescription."""

from __future__ import annotations

from collections.abc import Sequence

from sql.pgwire import messages_backend as backend
from sql.pgwire.values import TEXT_FORMAT, column_formats
from sql.statements.queries import OutputColumn
from storage.encodings.encoding import Encoding
from storage.types.type_names import type_length, type_oid, typmod


def describe_rows(columns: Sequence[OutputColumn], formats: Sequence[int], encoding: Encoding | None = None) -> bytes:
    """A result's RowDescription. ``formats`` as in Bind (none, one, or one per column). ``encoding``: the client's;
    None: UTF-8. Raises 08P01, 22P05."""
    forms = column_formats(formats, len(columns))
    if encoding is not None:
        return backend.RowDescription(tuple(map(_field, columns, forms))).encode(encoding)
    plain = [column.shown or _kept(column) for column in columns]
    return backend.row_description(plain, forms)


def _field(column: OutputColumn, form: int = TEXT_FORMAT) -> backend.FieldDescription:
    return backend.FieldDescription(
        column.name, column.table, column.attribute, type_oid(column.type), type_length(column.type),
        typmod(column.type), form,
    )  # fmt: skip


def _kept(column: OutputColumn) -> bytes:
    """Its description without the format, which it keeps: the columns of a relation are described again and again."""
    found = _field(column).encode()[: -backend.FORMAT_BYTES]
    object.__setattr__(column, "shown", found)
    return found
