"""Internal functions that the planner puts into expressions when it unnests subqueries."""

from __future__ import annotations

from ivm.errors import SqlError
from ivm.rows import Mask, Vector
from ivm.words import BOOL, INT8
from planner.expr.functions.table import ANY, ANYELEMENT, CallSite, Raises, vectorised

MANY_ROWS = SqlError("21000", "more than one row returned by a subquery used as an expression")
SAME_WORD = "is not distinct from(word)"
SINGLE_ROW = "single row"


@vectorised(SAME_WORD, (ANY, ANY), BOOL, strict=False, raises=Raises.NEVER, commutative=True, key_is_name=True)
def same_word(site: CallSite, left: Vector, right: Vector) -> Vector:
    """Whether both have the same word or both are NULL. Unlike SQL's equality, it tells 1.0 from 1.00."""
    same = left.words == right.words
    if left.nulls is None and right.nulls is None:
        return Vector(same.astype("int64"))
    one = left.nulls if left.nulls is not None else same & False
    two = right.nulls if right.nulls is not None else same & False
    return Vector(((one & two) | (same & ~one & ~two)).astype("int64"))


@vectorised(SINGLE_ROW, (INT8, ANYELEMENT), ANYELEMENT, strict=False, key_is_name=True)
def single_row(site: CallSite, count: Vector, value: Vector) -> Vector:
    """The value of a scalar subquery. Raises 21000 if it has more than one row. ``count`` NULL: it has none."""
    many: Mask = count.words > 1
    if count.nulls is not None:
        many = many & ~count.nulls
    site.fail_where(many, MANY_ROWS)
    return value
