"""Locked joins (FOR SYSTEM_TIME AS OF PROCTIME()): both sides arranged by the key.

The layout of what is kept does not depend on what is known of NULLs: all columns of both sides are nullable in it.
"""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from ivm.graph import Gather, NodeId
from ivm.kernels.codes import ALONE, MATCH
from ivm.words import BOOL, INT8, Schema
from planner import gathers
from planner.expr.functions.boolean import IS_NOT_NULL, IS_NULL
from planner.expr.functions.internal.subquery import SAME_WORD
from planner.expr.scalar import Call, Column, Literal, Or, Scalar
from planner.gathers import Cell
from planner.logical.locked_joins import kept_schema, nullable
from planner.logical.nodes import Get, Locked, schema
from planner.logical.traversal import own_columns
from planner.lower.asof import in_front, none
from planner.lower.state import Lowering
from planner.physical.nodes import Flow, Lock


def lower_locked(low: Lowering, rel: Locked) -> Flow:
    """The kept matches and, for an outer join, the kept left rows without one.

    0A000: outside of a materialized view.
    """
    if not rel.name:
        raise unsupported(
            "FOR SYSTEM_TIME AS OF PROCTIME() outside of a materialized view",
            hint="A query cannot tell what was there when its rows came. Create a materialized view of it.",
        )
    flow = _looked_up(low, rel) if rel.found == 0 else low.rel(Get(rel.found, kept_schema(rel)))
    count = len(schema(rel.left))
    part = Column(count + 1, INT8, False)
    parts = (MATCH, ALONE) if rel.outer else (MATCH,)
    wanted = tuple(Call(SAME_WORD, (part, Literal(value, INT8)), BOOL, False) for value in parts)
    columns = own_columns(flow.schema)
    exprs = (*columns[:count], *columns[count + 2 :])
    found = low.compute(flow, (Or(wanted) if rel.outer else wanted[0],), exprs)
    return low.coerce(found, schema(rel))


def _looked_up(low: Lowering, rel: Locked) -> Flow:
    """The join that finds what is kept, as rows of ``kept_schema``. 0A000: in a loop."""
    left, right = low.rel(rel.left), low.rel(rel.right)
    one = _arranged(low, left, tuple((a, same) for a, _, same in rel.keys), True)
    two = _arranged(low, right, tuple((b, same) for _, b, same in rel.keys), False)
    if any(low.builder.scope_of[node] is not None for node in (one, two)):
        raise SqlError("0A000", "FOR SYSTEM_TIME AS OF PROCTIME() in a recursive term is not supported")
    left_row, right_row = nullable(left.schema), nullable(right.schema)
    kept = kept_schema(rel)
    words = gathers.width(left_row)
    own = (*gathers.cells(left_row), Cell(words), Cell(words + 1), *gathers.cells(right_row, words + 2))
    gather = gathers.row_of(own, kept)
    width = words + 2 + gathers.width(right_row)
    node = low.builder.add(
        Lock(one, two, rel.name, none(0, right_row), kept, gather, _back(left_row, right_row, kept)), width
    )
    return Flow(node, gather, kept)


def _arranged(low: Lowering, flow: Flow, keys: tuple[tuple[int, bool], ...], left: bool) -> NodeId:
    """Arranges [whether a key is NULL | key | row]. Right rows with a NULL key are dropped; left ones match nothing."""
    own = own_columns(flow.schema)
    plain = [own[column] for column, null_safe in keys if not null_safe and own[column].nullable]
    nulls = tuple(Call(IS_NULL, (c,), BOOL, False) for c in dict.fromkeys(plain))
    flag: Scalar = Literal(0, INT8)
    if left and nulls:
        flag = nulls[0] if len(nulls) == 1 else Or(nulls)
    elif nulls:
        tests = tuple(Call(IS_NOT_NULL, (c,), BOOL, False) for c in dict.fromkeys(plain))
        flow = low.compute(flow, tests, None)
    words: list[Scalar] = [flag]
    for column, null_safe in keys:
        if null_safe:
            words.append(Call(IS_NULL, (own[column],), BOOL, False))
        words.append(own[column])
    flow = low.coerce(flow, nullable(flow.schema))
    raw, gather = in_front(low, flow, tuple(words))
    return low.builder.arrange(raw, gather, len(words))


def _back(left: Schema, right: Schema, kept: Schema) -> Gather:
    """The gather from a kept row to a row as the engine has it."""
    cells = gathers.cells(kept)
    count = len(left)
    one, two = gathers.row_of(cells[:count], left), gathers.row_of(cells[count + 2 :], right)
    by = len(one.words) + 2
    bits = (*one.bits, *((word, bit, target + by, to) for word, bit, target, to in two.bits))
    return Gather((*one.words, cells[count].word, cells[count + 1].word, *two.words), bits)
