"""LANGUAGE sql bodies that are not one query of the caller's plan: several statements, changes, recursion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from sql.bind.routine_bodies import body_statements
from sql.bind.routines import check_shape
from sql.catalog.catalog import Relation
from sql.ddl.routine_bodies import argument_names, argument_place
from sql.parse import StatementText
from sql.session.routines.nested import Nested, Outcome, Row


def run_sql(
    relation: Relation, arguments: Sequence[object], types: tuple[SqlType, ...], wanted: tuple[SqlType, ...],
    nested: Nested,
) -> Sequence[Row]:  # fmt: skip
    """Run the statements one after the other; the rows of the last one. Raises their errors."""
    routine = relation.routine
    assert routine is not None, "a routine"
    assert relation.definition is not None, "it has a body"
    variables = argument_names(relation, types)
    outcome = Outcome("", 0)

    def run(statement: StatementText) -> Outcome:
        prepared = nested.prepare(statement, types, variables)
        places = [argument_place(relation, name) for name in prepared.names]
        return nested.run(prepared, (*arguments, *(arguments[place] for place in places if place is not None)))

    for statement in body_statements(routine, relation.definition):
        nested.between()
        outcome = nested.attempt(partial(run, statement))
    if routine.returns_nothing:
        return [] if routine.returns_set else [(None,)]
    if outcome.columns is None:
        raise SqlError("42P13", f"the last statement of function {routine.name} returns no rows")
    rows = outcome.rows if routine.returns_set else outcome.rows[:1]
    given = tuple(c.type for c in outcome.columns)
    if (
        len(given) == 1
        and (len(wanted) > 1 or routine.returns_row)
        and given[0].kind is Kind.RECORD
        and given[0].fields
    ):
        rows = [(None,) * len(wanted) if row[0] is None else tuple(row[0]) for row in rows]  # type: ignore[arg-type]
        given = tuple(type_ for _, type_ in given[0].fields)
    if given == wanted:
        return rows
    check_shape(routine, given, wanted)
    pairs = list(zip(given, wanted, strict=True))
    return [tuple(nested.cast(v, have, want) for v, (have, want) in zip(row, pairs, strict=True)) for row in rows]
