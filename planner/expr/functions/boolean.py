"""NOT and the IS tests. AND and OR are expressions of their own (``planner.expr.scalar``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from ivm.rows import Vector, Words
from ivm.words import BOOL
from planner.expr.functions.formula import Truth
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


def _test(
    name: str, argument: ArgumentType, truth: Truth
) -> Callable[[Callable[[CallSite, Vector], Words]], Callable[[CallSite, Vector], Words]]:
    """Adds an IS test: never NULL, never fails."""
    return vectorised(
        name, (argument,), BOOL, strict=False, makes_null=False, total=True, key_is_name=True,
        formula=lambda f, a: f.test(a, truth),
    )  # fmt: skip


@vectorised(
    NOT, (BOOL,), BOOL, total=True, key_is_name=True, makes_null=False,
    formula=lambda f, a: f.bits_xor(a, f.constant(1)),
)  # fmt: skip
def negation(_site: CallSite, words: Words) -> Words:
    return words ^ 1


@_test(IS_NULL, ANY, Truth.NULL)
def is_null(_site: CallSite, vector: Vector) -> Words:
    return nulls_of(vector).astype(np.int64)


@_test(IS_NOT_NULL, ANY, Truth.NOT_NULL)
def is_not_null(_site: CallSite, vector: Vector) -> Words:
    return (~nulls_of(vector)).astype(np.int64)


@_test(IS_TRUE, BOOL, Truth.TRUE)
def is_true(_site: CallSite, vector: Vector) -> Words:
    return equals(vector, 1).astype(np.int64)


@_test(IS_NOT_TRUE, BOOL, Truth.NOT_TRUE)
def is_not_true(_site: CallSite, vector: Vector) -> Words:
    return (~equals(vector, 1)).astype(np.int64)


@_test(IS_FALSE, BOOL, Truth.FALSE)
def is_false(_site: CallSite, vector: Vector) -> Words:
    return equals(vector, 0).astype(np.int64)


@_test(IS_NOT_FALSE, BOOL, Truth.NOT_FALSE)
def is_not_false(_site: CallSite, vector: Vector) -> Words:
    return (~equals(vector, 0)).astype(np.int64)


@_test(IS_UNKNOWN, BOOL, Truth.NULL)
def is_unknown(_site: CallSite, vector: Vector) -> Words:
    return nulls_of(vector).astype(np.int64)


@_test(IS_NOT_UNKNOWN, BOOL, Truth.NOT_NULL)
def is_not_unknown(_site: CallSite, vector: Vector) -> Words:
    return (~nulls_of(vector)).astype(np.int64)
