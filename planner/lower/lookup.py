"""One-shot reads by key: a filter that fixes an arrangement's whole key becomes a lookup of the constants.

Covers ``k = $1 AND …``, ``k IN (…)`` (an OR of equalities), compound keys and keys of expressions; other conjuncts stay
as a filter above. ``k = ANY($1)`` is a semijoin with the array's elements, which looks up the arrangement as any join
does, and so is a long list after IN.
"""

from __future__ import annotations

from itertools import product

from ivm.graph import Gather
from ivm.words import ColumnType, Schema
from planner import gathers
from planner.expr.scalar import Column, Literal, Scalar
from planner.logical.join_keys import KeyPair
from planner.logical.nodes import Get, Rel, TableFunction, Values, schema
from planner.lower.constant_keys import Asked, Listed, fixed_key
from planner.lower.join import joined_with_set, matched, prepare
from planner.lower.state import Lowering
from planner.physical.key_checks import KeyCheck
from planner.physical.nodes import Flow, Map, Pair


def lookup(low: Lowering, rel: Get, predicates: tuple[Scalar, ...]) -> tuple[Flow, tuple[Scalar, ...]] | None:
    """(rows by key, remaining predicates); None if the predicates fix no arrangement's key."""
    found = fixed_key(low, rel, predicates)
    if found is None:
        return None
    rest = tuple(p for p in predicates if p not in found.met)
    if isinstance(found.key, KeyCheck):
        return _checked(low, rel, found.key, _keys(low, found.constants)), rest
    if any(isinstance(asked, Listed) for asked in found.constants):
        return _listed(low, rel, found.key, found.constants), rest
    return _joined(low, rel, found.key, _keys(low, found.constants)), rest


def _keys(low: Lowering, constants: tuple[Asked, ...]) -> Flow:
    """The distinct keys."""
    if any(isinstance(asked, Listed) for asked in constants):
        listed, columns = _values_of(constants)
        return low.distinct_rows(low.builder.move(low.rel(listed), columns))
    rows = tuple(dict.fromkeys(product(*(asked for asked in constants if not isinstance(asked, Listed)))))
    row = _row(rows)
    values = low.rel(Values(rows, row))
    alike = (isinstance(c, Literal) and c.type == t.type for r in rows for c, t in zip(r, row, strict=True))
    return low.distinct_rows(values) if len(rows) > 1 and not all(alike) else values


def _row(rows: tuple[tuple[Scalar, ...], ...]) -> Schema:
    return tuple(ColumnType(cells[0].type, any(c.nullable for c in cells)) for cells in zip(*rows, strict=True))


def _listed(low: Lowering, rel: Get, key: tuple[int, ...], constants: tuple[Asked, ...]) -> Flow:
    """The rows whose keys are among the elements of arrays, as those of ``k = ANY($1)``."""
    values, columns = _values_of(constants)
    pairs = tuple(KeyPair(_column(rel.schema, k), _column(schema(values), i), False)
                  for i, k in zip(columns, key, strict=True))  # fmt: skip
    return joined_with_set(low, prepare(low, low.rel(rel), low.rel(values), pairs, ()))


def _column(row: Schema, index: int) -> Column:
    return Column(index, row[index].type, row[index].nullable)


def _values_of(constants: tuple[Asked, ...]) -> tuple[Rel, tuple[int, ...]]:
    """The keys, perhaps several times and with NULLs, and the column of each of their parts."""
    rows = tuple(product(*(asked for asked in constants if not isinstance(asked, Listed))))
    values: Rel = Values(rows, _row(rows))
    width = len(_row(rows))
    plain, listed = iter(range(width)), iter(range(width, len(constants)))
    for asked in constants:
        if isinstance(asked, Listed):
            element = asked.array.type.element
            assert element is not None
            values = TableFunction(values, "unnest", (asked.array,), (ColumnType(element, True),))
    return values, tuple(next(listed if isinstance(asked, Listed) else plain) for asked in constants)


def _joined(low: Lowering, rel: Get, key: tuple[int, ...], values: Flow) -> Flow:
    row, table = values.schema, low.rel(rel)
    keys = tuple(KeyPair(Column(i, row[i].type, row[i].nullable), Column(k, rel.schema[k].type), False)
                 for i, k in enumerate(key))  # fmt: skip
    pairs = matched(low, prepare(low, values, table, keys, ()))
    columns = tuple(range(len(row), len(row) + len(rel.schema)))
    return low.builder.move(pairs, columns, rel.schema)


def _checked(low: Lowering, rel: Get, check: KeyCheck, values: Flow) -> Flow:
    """The rows of a key check's arrangement. Rows for which its expressions fail are not seen, as in PostgreSQL."""
    table = low.rel(rel)
    if check.program is not None:
        node = low.builder.add(Map(low.builder.force(table), check.program), check.program.out_width)
        table = low.builder.flow(node, check.program.output)
    layout = check.layout
    arranged = low.builder.arrange(table, layout.gather, layout.key_width)
    own = gathers.cells(values.schema)
    absent = (-1,) * (layout.key_width - len(own))  # the null bits of a key whose NULLs are equal: none is NULL here
    nulls = tuple(cell.null for cell in own if cell.null is not None)
    looked = low.builder.arrange(values, Gather((*(c.word for c in own), *absent), (), nulls), layout.key_width)
    pair = Pair(looked, arranged, layout.width)
    return Flow(pair, gathers.trusted_row(layout.at[: len(rel.schema)], rel.schema), rel.schema)
