"""Rows changed through views: the views' columns over the new rows, and WITH CHECK OPTION."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ivm.errors import SqlError, Subject
from ivm.rows import RowSet, Vector, pack
from ivm.words import ColumnType
from sql.catalog.catalog import Relation
from sql.dml.constraints import failing_row
from sql.dml.row_values import RowValues
from sql.statements.statements import ViewLayer
from storage.dictionary import Dictionary


def through(
    table: Relation,
    layers: Sequence[ViewLayer],
    rows: RowSet,
    values: RowValues,
    dictionary: Dictionary,
    *,
    check: bool,
) -> RowSet:
    """The table's (wide) rows with the columns of the layers. With ``check``: 44000 for the first row that a view with
    a check option does not show."""
    for layer in layers:
        if check and layer.checked and layer.condition is not None:
            (met,) = values((layer.condition,), rows)
            failed = met.words == 0 if met.nulls is None else (met.words == 0) | met.nulls
            if failed.any():
                if layer.refusal is not None:
                    raise replace(layer.refusal)
                place = int(np.flatnonzero(failed)[0])
                raise SqlError(
                    "44000", f'new row violates check option for view "{layer.view.name}"',
                    failing_row(table, rows.columns()[: len(table.columns)], place, dictionary),
                    subject=Subject(layer.view.schema_name, layer.view.name),
                )  # fmt: skip
        found = values(layer.exprs, rows)
        rows = joined([*rows.columns(), *found], (*rows.schema, *(ColumnType(e.type, True) for e in layer.exprs)))
    return rows


def joined(columns: list[Vector], schema: tuple[ColumnType, ...]) -> RowSet:
    """Columns of one length as rows."""
    return RowSet(pack(columns, schema, len(columns[0].words) if columns else 0), schema)
