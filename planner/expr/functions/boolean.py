"""NOT and the IS tests. AND and OR are expressions of their own (``planner.expr.scalar``)."""

from __future__ import annotations

import numpy as np

from ivm.rows import Vector, Words
from ivm.words import BOOL
from planner.expr.evaluate.rows import equals, nulls_of
from planner.expr.functions.table import ANY, Site, vectorised


@vectorised("not", (BOOL,), BOOL, total=True, key_is_name=True)
def negation(_site: Site, words: Words) -> Words:
    return words ^ 1


@vectorised("is null", (ANY,), BOOL, strict=False, total=True, key_is_name=True)
def is_null(_site: Site, vector: Vector) -> Words:
    return nulls_of(vector).astype(np.int64)


@vectorised("is not null", (ANY,), BOOL, strict=False, total=True, key_is_name=True)
def is_not_null(_site: Site, vector: Vector) -> Words:
    return (~nulls_of(vector)).astype(np.int64)


@vectorised("is true", (BOOL,), BOOL, strict=False, total=True, key_is_name=True)
def is_true(_site: Site, vector: Vector) -> Words:
    return equals(vector, 1).astype(np.int64)


@vectorised("is not true", (BOOL,), BOOL, strict=False, total=True, key_is_name=True)
def is_not_true(_site: Site, vector: Vector) -> Words:
    return (~equals(vector, 1)).astype(np.int64)


@vectorised("is false", (BOOL,), BOOL, strict=False, total=True, key_is_name=True)
def is_false(_site: Site, vector: Vector) -> Words:
    return equals(vector, 0).astype(np.int64)


@vectorised("is not false", (BOOL,), BOOL, strict=False, total=True, key_is_name=True)
def is_not_false(_site: Site, vector: Vector) -> Words:
    return (~equals(vector, 0)).astype(np.int64)


@vectorised("is unknown", (BOOL,), BOOL, strict=False, total=True, key_is_name=True)
def is_unknown(_site: Site, vector: Vector) -> Words:
    return nulls_of(vector).astype(np.int64)


@vectorised("is not unknown", (BOOL,), BOOL, strict=False, total=True, key_is_name=True)
def is_not_unknown(_site: Site, vector: Vector) -> Words:
    return (~nulls_of(vector)).astype(np.int64)
