"""JOIN … FOR SYSTEM_TIME AS OF PROCTIME(): equalities are keys; other conditions on both sides filter the matches."""

from __future__ import annotations

from ivm.errors import unsupported
from planner.expr.scalar import Case, Literal, Scalar
from planner.logical.join_keys import take_apart
from planner.logical.nodes import Filter, Locked, Project, Rel, schema
from planner.logical.traversal import conjunction, has_subquery, own_columns
from sql.bind.asof import with_columns


def locked(left: Rel, right: Rel, on: Scalar, outer: bool, at: int) -> Rel:
    """The join; its columns are left's, then right's. ``on``: bound over these; ``outer``: LEFT. Raises 0A000."""
    count = len(schema(left))
    condition = take_apart(on, count)
    residual = tuple(p for p in condition.residual if p != Literal(True, p.type))
    if has_subquery(on):
        raise unsupported("a subquery in the condition of a join with PROCTIME()", position=at + 1)
    if outer and residual:
        hint = "Conditions on one side are supported beside the equalities."
        raise unsupported("LEFT JOIN with PROCTIME() on conditions on both sides other than equalities", hint, at + 1)
    if outer and condition.left and not condition.keys:
        raise unsupported("LEFT JOIN with PROCTIME() on a condition of its left side alone", None, at + 1)
    if condition.right:
        right = Filter(right, conjunction(condition.right))
    keys = [k.left for k in condition.keys]
    if condition.left and outer:
        keys[0] = Case(((conjunction(condition.left), keys[0]),), Literal(None, keys[0].type), keys[0].type)
        if condition.keys[0].null_safe:
            raise unsupported("IS NOT DISTINCT FROM beside conditions on the left side with PROCTIME()", None, at + 1)
    elif condition.left:
        left = Filter(left, conjunction(condition.left))
    one, left_at = with_columns(left, tuple(keys))
    two, right_at = with_columns(right, tuple(k.right for k in condition.keys))
    pairs = tuple((a, b, k.null_safe) for a, b, k in zip(left_at, right_at, condition.keys, strict=True))
    joined = Locked(one, two, pairs, outer)
    own, width = own_columns(schema(joined)), len(schema(one))
    kept = (*own[:count], *own[width : width + len(schema(right))])
    found: Rel = joined if kept == own else Project(joined, kept)
    return Filter(found, conjunction(residual)) if residual else found
