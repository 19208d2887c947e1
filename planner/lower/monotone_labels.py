"""Recognises recursions that keep the least (or greatest) label of each key, so that small labels can go first.

Connected components and shortest paths have this form: ``label = min(base, what the neighbours' labels give)``.
Introducing labels by size saves the work on those that a smaller one replaces anyway (McSherry et al., Differential
dataflow, CIDR 2013, section 3.3).

Side condition: the binding is a monotone function of itself, in the order in which a row is more than no row and a
lesser label more than a greater one. Then every order of introduction ends in the least fixpoint, where plain rounds
end too. So the label may be copied, or have something added to it that does not depend on it, and nothing else: no
condition, join, key or other aggregate reads it; the recursion does not pass through an outer join's optional side, a
difference, an aggregate or a slice; and no query asks for the state after a number of rounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from ivm.graph import Priority
from ivm.words import INT2, INT4, INT8, Schema
from planner.aggregates.function import Extreme
from planner.aggregates.table import AGGREGATES
from planner.expr.functions.library import called_function
from planner.expr.parts import CALLS, COLUMNS, rebuild
from planner.expr.scalar import Aggregate, Call, Column, Scalar
from planner.logical.nodes import (
    AsOf,
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    LetRec,
    Locked,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetKind,
    SetOperation,
    TableFunction,
    TemporalFilter,
    TopK,
    Values,
    schema,
)  # fmt: skip
from planner.logical.references import free_references
from planner.logical.traversal import bottom_up, columns_of, own_columns, scalars, with_scalars

Labels = frozenset[int]
_NONE: Labels = frozenset()
_INTEGERS = (INT2, INT4, INT8)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A binding ``above(reduce(keys, label))`` over rows ``input``, which reads no other recursive binding.

    ``priority`` orders rows by the label.
    """

    binding: int
    input: Rel
    keys: tuple[Scalar, ...]
    label: Aggregate
    above: tuple[Scalar, ...]
    priority: Priority


class _UnsoundError(Exception):
    """Labels cannot be introduced by size."""


def labelled(rel: LetRec) -> Labelled | None:
    """The block's only recursive binding, if it keeps a least or greatest integer and may be prioritised; else None."""
    if rel.limit is not None or rel.priorities or not rel.automatic:
        return None
    recursive = recursive_bindings(rel)
    if len(recursive) != 1:
        return None
    (binding,) = recursive
    value = dict(rel.bindings)[binding]
    above = value.exprs if isinstance(value, Project) else own_columns(schema(value))
    reduce = value.input if isinstance(value, Project) else value
    if not isinstance(reduce, Reduce) or len(reduce.aggregates) != 1 or not reduce.keys:
        return None
    (label,) = reduce.aggregates
    function = AGGREGATES[label.function]
    if function.extreme is None:
        return None
    if label.filter is not None or label.args[0].type not in _INTEGERS:
        return None
    grows = function.extreme is Extreme.LEAST
    try:
        _check(binding, reduce, label.args[0], above, grows)
    except _UnsoundError:
        return None
    priority = Priority.LENGTH if grows else Priority.INVERSE
    return Labelled(binding, reduce.input, reduce.keys, label, above, priority)


def recursive_bindings(rel: LetRec) -> frozenset[int]:
    """The bindings that depend on themselves."""
    own = frozenset(b for b, _ in rel.bindings)
    reads = {b: free_references(value) & own for b, value in rel.bindings}
    found = set()
    for binding in own:
        seen: set[int] = set()
        todo = list(reads[binding])
        while todo:
            other = todo.pop()
            if other not in seen:
                seen.add(other)
                todo += reads[other]
        if binding in seen:
            found.add(binding)
    return frozenset(found)


def _check(binding: int, reduce: Reduce, argument: Scalar, above: tuple[Scalar, ...], grows: bool) -> None:
    """Raises _UnsoundError if the binding is not monotone, or its label does not derive from its own labels."""
    at = len(reduce.keys)
    own = frozenset(i for i, e in enumerate(above) if _carries(e, frozenset((at,)), False))
    inner = _labels(reduce.input, binding, own, grows)
    _untouched(reduce.keys, inner)
    if not own or not _carries(argument, inner, grows):
        raise _UnsoundError


def _labels(rel: Rel, binding: int, own: Labels, grows: bool) -> Labels:
    """The columns that carry labels. ``own``: those of the binding itself. Raises _UnsoundError."""
    if binding not in free_references(rel):
        return _NONE
    match rel:
        case Reference():
            return own
        case Filter():
            below = _labels(rel.input, binding, own, grows)
            _untouched((rel.predicate,), below)
            return below
        case Project():
            below = _labels(rel.input, binding, own, grows)
            return frozenset(i for i, e in enumerate(rel.exprs) if _carries(e, below, grows))
        case Distinct():
            return _labels(rel.input, binding, own, grows)
        case TableFunction():
            below = _labels(rel.input, binding, own, grows)
            _untouched(rel.args, below)
            return below
        case Join():
            return _joined(rel, binding, own, grows)
        case SetOperation() if rel.kind is SetKind.UNION:
            return _labels(rel.left, binding, own, grows) | _labels(rel.right, binding, own, grows)
        case TemporalFilter() | SetOperation() | AsOf() | Locked() | Reduce() | TopK() | Recursive() | LetRec():
            raise _UnsoundError
        case Get() | Values():
            raise _UnsoundError
        case _:
            assert_never(rel)


def _joined(rel: Join, binding: int, own: Labels, grows: bool) -> Labels:
    if rel.kind is not JoinKind.INNER:
        optional = rel.left if rel.kind is JoinKind.RIGHT else rel.right
        if rel.kind is JoinKind.FULL or binding in free_references(optional):
            raise _UnsoundError
    by = len(schema(rel.left))
    below = _labels(rel.left, binding, own, grows)
    below |= frozenset(by + i for i in _labels(rel.right, binding, own, grows))
    _untouched((rel.on,), below)
    return below


def _untouched(exprs: Iterable[Scalar], labels: Labels) -> None:
    if any(columns_of(e) & labels for e in exprs):
        raise _UnsoundError


def _carries(expr: Scalar, labels: Labels, grows: bool) -> bool:
    """Whether an expression is a label, copied or increased. Raises _UnsoundError for any other use of a label."""
    if not columns_of(expr) & labels:
        return False
    match expr:
        case Column():
            return True
        case Call() if expr.type in _INTEGERS and all(a.type in _INTEGERS for a in expr.args):
            function = called_function(expr)
            if function is not None and {*function.follows} == {1} and (grows or len(expr.args) == 1):
                carried = [_carries(a, labels, grows) for a in expr.args]  # all of them: any may be wrong
                return any(carried)
    raise _UnsoundError


def without_nulls(found: Labelled) -> Labelled:
    """``found`` with non-nullable columns, if no NULL enters the binding from outside; else unchanged.

    The columns that a block declares are nullable; a join reads rows without null words as they are.
    """
    value = Project(Reduce(found.input, found.keys, (found.label,)), found.above)
    row: Schema = tuple(replace(c, nullable=False) for c in schema(value))
    below = _with_reference(found.input, found.binding, row)
    columns = schema(below)
    keys = tuple(_settled(k, columns) for k in found.keys)
    argument = _settled(found.label.args[0], columns)
    if argument.nullable or any(k.nullable for k in keys):
        return found
    label = replace(found.label, args=(argument,), nullable=False)
    above = tuple(_settled(e, schema(Reduce(below, keys, (label,)))) for e in found.above)
    if any(e.nullable for e in above):
        return found
    return replace(found, input=below, keys=keys, label=label, above=above)


def _with_reference(rel: Rel, binding: int, row: Schema) -> Rel:
    """The plan with the binding's row changed, and nullability above it recomputed."""

    def change(node: Rel) -> Rel:
        if isinstance(node, Reference):
            return replace(node, schema=row) if node.binding == binding else node
        if isinstance(node, Filter | Project | TableFunction):
            below = schema(node.input)
        elif isinstance(node, Join):
            below = (*schema(node.left), *schema(node.right))
        else:
            return node
        return with_scalars(node, tuple(_settled(e, below) for e in scalars(node)))

    return bottom_up(rel, change)


def _settled(expr: Scalar, row: Schema) -> Scalar:
    """Like ``planner.logical.traversal.settle``, and recomputes the nullability of sums and casts too."""

    def change(part: Column | Call) -> Scalar:
        if isinstance(part, Column):
            return replace(part, nullable=row[part.index].nullable)
        function = called_function(part)
        if function is None or not function.null_if_null_only:
            return part
        return replace(part, nullable=any(a.nullable for a in part.args))

    return rebuild(expr, COLUMNS | CALLS, change)
