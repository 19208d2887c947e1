"""Top-k pushdown: ``row_number() OVER (…) <= k`` above a numbering limits it to its first rows.

Rule: if conjuncts bound a number's column from above by integer literals, the least bound becomes the numbering's
limit. The conjuncts themselves stay. Side condition: the numbering has no limit yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ivm.words import INT8
from planner.expr.comparison import Comparison
from planner.expr.functions.library import comparison_of
from planner.expr.scalar import Call, Column, Literal, Scalar
from planner.logical.nodes import TopK, schema


def limited(rel: TopK, predicates: Iterable[Scalar]) -> TopK:
    """The numbering with a limit, if a predicate implies one."""
    if not rel.numbers or rel.limit is not None:
        return rel
    base = len(schema(rel.input))
    bounds = {column - base: bound for p in predicates for column, bound in _bound(p) if column >= base}
    if not bounds:
        return rel
    place = min(bounds, key=bounds.__getitem__)
    return replace(rel, limit=Literal(max(bounds[place], 0), INT8), limit_of=rel.numbers[place])


def _bound(predicate: Scalar) -> list[tuple[int, int]]:
    """(a column, the greatest integer that it may be)."""
    comparison = comparison_of(predicate)
    if comparison is None or not isinstance(predicate, Call):
        return []
    left, right = predicate.args
    if isinstance(left, Literal):
        left, right, comparison = right, left, comparison.commutator
    if not isinstance(left, Column) or not isinstance(right, Literal) or not isinstance(right.value, int):
        return []
    if comparison in (Comparison.NOT_GREATER, Comparison.EQUAL):
        return [(left.index, right.value)]
    return [(left.index, right.value - 1)] if comparison is Comparison.LESS else []
