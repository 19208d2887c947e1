"""NOT and the IS tests. AND and OR are expressions of their own (``planner.expr.scalar``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ivm.formula import FALSE, NOT_FALSE, NOT_NULL, NOT_TRUE, NULL, TRUE
from ivm.rows import Mask, Vector, Words
from ivm.words import BOOL
from planner.expr.functions.table import ANY, ArgumentType, CallSite, vectorised
from planner.expr.rows import equals, nulls_of

NOT: Final = "not"
IS_NULL: Final = "is null"
IS_NOT_NULL: Final = "is not null"
IS_TRUE: Final = "is true"
IS_NOT_TRUE: Final = "is not true"
IS_FALSE: Final = "is false"
IS_NOT_FALSE: Final = "is not false"
IS_UNKNOWN: Final = "is unknown"
IS_NOT_UNKNOWN: Final = "is not unknown"


def _test(name: str, argument: ArgumentType, truth: int, holds: Callable[[Vector], Mask]) -> None:
    """Adds an IS test: never NULL, never fails."""
    vectorised(
        name, (argument,), BOOL, strict=False, makes_null=False, total=True, key_is_name=True,
        formula=lambda f, a: f.test(a, truth),
    )(lambda _site, vector: holds(vector).astype(np.int64))  # fmt: skip


@vectorised(
    NOT, (BOOL,), BOOL, total=True, key_is_name=True, makes_null=False, follows=(-1,),
    formula=lambda f, a: f.bits_xor(a, f.constant(1)),
)  # fmt: skip
def negation(_site: CallSite, words: Words) -> Words:
    return words ^ 1


_test(IS_NULL, ANY, NULL, nulls_of)
_test(IS_NOT_NULL, ANY, NOT_NULL, lambda v: ~nulls_of(v))
_test(IS_TRUE, BOOL, TRUE, lambda v: equals(v, 1))
_test(IS_NOT_TRUE, BOOL, NOT_TRUE, lambda v: ~equals(v, 1))
_test(IS_FALSE, BOOL, FALSE, lambda v: equals(v, 0))
_test(IS_NOT_FALSE, BOOL, NOT_FALSE, lambda v: ~equals(v, 0))
_test(IS_UNKNOWN, BOOL, NULL, nulls_of)
_test(IS_NOT_UNKNOWN, BOOL, NOT_NULL, lambda v: ~nulls_of(v))
