"""Operators, and the operator classes of indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sql.catalog.catalog import Relation
from sql.catalog.operators import Operator
from sql.catalog.system.definitions import Datums, Row
from sql.system.builtin import builtin_rows
from sql.system.pg_routines import argument_oid
from sql.system.pg_types import function_oids
from sql.system.state import OWNER, SystemState


def pg_operator(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_operator")
    schemas, builtin = state.schemas(), function_oids()
    known = {r.oid: r for r in state.operators()}
    for oid, relation in sorted(known.items()):
        operator = relation.operator
        assert operator is not None, "an operator"
        yield row(
            oid=oid, oprname=operator.symbol, oprnamespace=schemas[relation.schema_name], oprowner=OWNER,
            oprkind="l" if operator.left is None else "b", oprcanmerge=operator.merges, oprcanhash=operator.hashes,
            oprleft=0 if operator.left is None else argument_oid(operator.left), oprright=argument_oid(operator.right),
            oprresult=0 if operator.result is None else argument_oid(operator.result),
            oprcom=_link(operator.commutator, known), oprnegate=_link(operator.negator, known),
            oprcode=_function(operator, builtin), oprrest=builtin.get(operator.restrict, 0),
            oprjoin=builtin.get(operator.join, 0),
        )  # fmt: skip


def pg_opfamily(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_opfamily")


def pg_opclass(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_opclass")


def pg_amop(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_amop")


def pg_amproc(state: SystemState, row: Row) -> Iterator[Datums]:
    yield from builtin_rows("pg_amproc")


def _link(oid: int, known: Mapping[int, Relation]) -> int:
    """The oid of a commutator or negator; 0 once that is gone."""
    return oid if oid in known else 0


def _function(operator: Operator, builtin: Mapping[str, int]) -> int:
    return builtin.get(operator.builtin, 0) if operator.builtin else operator.function
