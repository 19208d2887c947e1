"""Rows by keys that the client gives, ``key = $1`` and ``key = ANY($1)``: the commonest plans.

``run_direct`` would find the same rows, but its nine nodes cost several times as much as the lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ivm.distinct import distinct
from ivm.graph import Arrange, Concat, Errors, Gather, Join, Keep, NodeId, Threshold
from ivm.rows import Words
from ivm.words import Storage
from planner import gathers
from planner.expr.context import Bounds, Context
from planner.expr.scalar import Literal, Parameter, Scalar
from planner.memo import by_identity
from planner.peek.snapshot import Snapshot
from planner.physical.layouts import StoredKey
from planner.physical.nodes import Constants, Map, Plan, RowProgram, TableErrors
from planner.physical.table_programs import Expand, given_array
from storage.types.codec import encode


@dataclass(frozen=True, slots=True)
class Keyed:
    """A plan of this form: the rows of a relation whose arrangement has the keys given.

    ``keys``: the parameter, or the array of them; ``gather``: from an arranged row to the result, or to what
    ``program`` makes the result of.
    """

    relation: int
    key: StoredKey
    keys: Scalar
    is_array: bool
    gather: Gather
    program: RowProgram | None = None


def is_keyed(plan: Plan, snapshot: Snapshot) -> bool:
    """Whether a plan is only a lookup of keys in an arrangement that exists."""
    found = keyed(plan)
    return found is not None and snapshot.arrangement(found.relation, found.key) is not None


def looks_up_words(plan: Plan) -> bool:
    """Whether a plan only moves rows that it finds by keys whose words need no dictionary."""
    found = keyed(plan)
    if found is None or found.program is not None:
        return False
    type_ = found.keys.type.element if found.is_array else found.keys.type
    return type_ is not None and type_.storage is Storage.DIRECT


def run_keyed(
    plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds
) -> tuple[Words, Words, Words | None] | None:
    """(rows, diffs, error rows), or None if the plan has another form. Raises 53200, 57014."""
    found = keyed(plan)
    if found is None:
        return None
    version = snapshot.arrangement(found.relation, found.key)
    keys = None if version is None else _keys(found, context)
    if version is None or keys is None:
        return None
    rows, diffs, _ = version.lookup(keys, snapshot.at)
    bounds.check(rows.nbytes)
    moved, source = gathers.apply(found.gather, rows)
    diffs = diffs if source is None else diffs[source]
    known = snapshot.errors(found.relation)
    errors = None if known is None else known[0]
    if found.program is None:
        return moved, diffs, errors
    mapped = found.program.run(moved, context)
    if mapped.errors is not None and len(mapped.errors):
        errors = mapped.errors if errors is None else np.concatenate([errors, mapped.errors])
    diffs = diffs if mapped.source is None else diffs[mapped.source]
    return mapped.rows, diffs if mapped.weights is None else diffs * mapped.weights[:, 0], errors


def _keys(found: Keyed, context: Context) -> Words | None:
    """The distinct keys that are not NULL, int64[n, 1]; None if the array must be evaluated."""
    datums: Sequence[object] | None
    if found.is_array:
        datums, type_ = given_array(found.keys, context), found.keys.type.element
    else:
        datums, type_ = (_datum(found.keys, context),), found.keys.type
    if datums is None or type_ is None:
        return None
    if None in datums:
        datums = [datum for datum in datums if datum is not None]
    words = encode(type_, datums, context.dictionary).words
    return (words if len(words) < 2 else distinct(words)).reshape(-1, 1)


def _datum(key: Scalar, context: Context) -> object:
    if isinstance(key, Literal):
        return key.value
    assert isinstance(key, Parameter), "a key given by the client"
    return context.parameters[key.index - 1]


@by_identity
def keyed(plan: Plan) -> Keyed | None:
    """The lookup that a plan consists of, if it is one."""
    last = plan.nodes[plan.rows]
    mapping = last if isinstance(last, Map) and last.program.diff_width == 1 else None
    join = last if mapping is None else plan.nodes[mapping.input]
    if not isinstance(join, Join):
        return None
    program = None if mapping is None else mapping.program
    for fixed, moving in ((join.left, join.right), (join.right, join.left)):
        stored, arranged, given = plan.stored[fixed], plan.nodes[fixed], _given(plan, moving)
        if stored is None or given is None or not isinstance(arranged, Arrange) or arranged.key_width != 1:
            continue
        keys, is_array, extra = given
        gather = _from_fixed(join.gather, len(arranged.gather.words), extra, fixed == join.left)
        if gather is not None and _fails_with(plan, stored[0], moving):
            return Keyed(*stored, keys, is_array, gather, program)
    return None


def _given(plan: Plan, number: NodeId) -> tuple[Scalar, bool, int] | None:
    """(parameter, whether it is an array, number of zero words after the key) of a node whose rows are given keys.

    None: the node's rows are something else.
    """
    node = plan.nodes[number]
    once = isinstance(node, Threshold) and node.keep is Keep.DISTINCT
    arranged = plan.nodes[node.input] if isinstance(node, Threshold) and once else node
    if not isinstance(arranged, Arrange) or arranged.order or arranged.key_width != 1:
        return None
    gather = arranged.gather
    if gather.words not in ((0,), (0, 1)) or gather.bits or gather.drop_if not in ((), ((1, 0),)):
        return None
    match plan.nodes[arranged.input]:
        case Constants(rows=((Parameter() | Literal() as key,),)):
            return key, False, len(gather.words) - 1
        case Map(input=source, program=Expand(function="unnest", args=(array,), ordinality=False)) if once:
            if plan.nodes[source] == Constants(((),), ()):
                return array, True, len(gather.words) - 1
    return None


def _from_fixed(gather: Gather, width: int, extra: int, first: bool) -> Gather | None:
    """A join's gather [key | vals] over the looked-up side's row alone, with zeros for the other side's words.

    None: the gather needs bits of the other side. ``width``: of the looked-up row; ``first``: whether its vals come
    before the other side's ``extra`` words.
    """

    def place(word: int) -> int:
        if word <= 0 or (first and word < width):
            return word
        if first or word <= extra:
            return -1
        return word - extra

    bits = tuple((place(w), *rest) for w, *rest in gather.bits)
    drops = tuple((place(w), bit) for w, bit in gather.drop_if)
    if any(w < 0 for w, *_ in (*bits, *drops)):
        return None
    return Gather(tuple(map(place, gather.words)), bits, drops)  # type: ignore[arg-type]


def _fails_with(plan: Plan, relation: int, moving: NodeId) -> bool:
    """Whether the plan's only errors are the relation's, those of the keys, which have none, and those of the last
    program."""
    if plan.errors is None:
        return False
    node = plan.nodes[plan.errors]
    parts = [plan.nodes[i] for i in node.inputs] if isinstance(node, Concat) else [node]
    if TableErrors(relation) not in parts:
        return False
    below = plan.nodes[moving]
    arranged = plan.nodes[below.input] if isinstance(below, Threshold) else below
    assert isinstance(arranged, Arrange)
    return all(part in (TableErrors(relation), Errors(arranged.input), Errors(plan.rows)) for part in parts)
