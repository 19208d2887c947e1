"""RETURN, RETURN NEXT and RETURN QUERY."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from ivm.words import Kind, SqlType
from sql.session.routines.nested import Row
from sql.session.routines.plpgsql.frame import RETURNED, Frame, Leave
from sql.session.routines.plpgsql.statements import dynamic, rows_of
from sql.syntax.plpgsql import nodes


def run_return(frame: Frame, node: nodes.Return) -> Leave | None:
    if node.value is not None:
        frame.result = frame.value(node.value)
    return RETURNED


def run_return_next(frame: Frame, node: nodes.ReturnNext) -> Leave | None:
    """Add a row. Raises 42804."""
    if node.value is None:
        frame.rows.append(frame.output_row())
        return None
    value, type_ = frame.value(node.value)
    frame.rows.append(as_row(frame, value, type_))
    return None


def as_row(frame: Frame, value: object, type_: SqlType) -> Row:
    """A returned value as a row of the function's columns. Raises 42804."""
    wanted = frame.columns
    if len(wanted) == 1 and wanted[0].kind is not Kind.RECORD and type_.kind is not Kind.RECORD:
        return (frame.cast(value, type_, wanted[0]),)
    if len(wanted) == 1 and wanted[0].kind is Kind.RECORD:
        return (frame.cast(value, type_, wanted[0]),)
    if not wanted:
        hint = "Call it in FROM, with a list of columns: FROM f() AS (a int, b text)."
        raise unsupported("a function that returns record as a value", hint=hint)
    if value is None:
        return (None,) * len(wanted)
    if type_.kind is not Kind.RECORD or not isinstance(value, tuple):
        raise SqlError("42804", "cannot return non-composite value from function returning composite type")
    types = [t for _, t in type_.fields]
    _check_types(frame, types, "returned record type does not match expected record type")
    return fitted(frame, value, types)


def fitted(frame: Frame, row: Row, types: list[SqlType]) -> Row:
    """A row cast to the function's columns. Raises 42804."""
    wanted = frame.columns
    if len(types) != len(wanted):
        detail = f"Number of returned columns ({len(types)}) does not match expected column count ({len(wanted)})."
        raise SqlError("42804", "structure of query does not match function result type", detail)
    return tuple(frame.cast(v, have, want) for v, have, want in zip(row, types, wanted, strict=True))


def run_return_query(frame: Frame, node: nodes.ReturnQuery) -> Leave | None:
    """Add a query's rows, and set FOUND. Raises 42804."""
    outcome = dynamic(frame, node.query, node.using) if node.dynamic else rows_of(frame, node.query)
    columns = outcome.columns or ()
    types = [c.type for c in columns]
    _check_types(frame, types, "structure of query does not match function result type")
    frame.rows += [fitted(frame, row, types) for row in outcome.rows]
    frame.row_count = len(outcome.rows)
    frame.found.value = bool(outcome.rows)
    return None


def _check_types(frame: Frame, types: list[SqlType], message: str) -> None:
    wanted = frame.columns
    if len(types) != len(wanted):
        detail = f"Number of returned columns ({len(types)}) does not match expected column count ({len(wanted)})."
        raise SqlError("42804", message, detail)
    for i, (have, want) in enumerate(zip(types, wanted, strict=True)):
        if have.kind is not want.kind and have.kind is not Kind.UNKNOWN:
            detail = (
                f"Returned type {frame.type_name(have)} does not match expected type {frame.type_name(want)} "
                f"in column {i + 1}."
            )
            raise SqlError("42804", message, detail)
