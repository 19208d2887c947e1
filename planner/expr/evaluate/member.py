"""``x = ANY (array)`` where the array is the same for all rows: a search in its sorted words.

Cost: n log m for n rows and m elements, after the elements have been encoded once for each dictionary.
"""

from __future__ import annotations

import numpy as np

from ivm.rows import Vector
from planner.expr.evaluate.calls import Run
from planner.expr.functions.internal.membership import NO_ARRAY, Elements, among, elements_of
from planner.expr.rows import RowBatch
from planner.expr.scalar import Literal, Parameter, Scalar
from storage.types.codec import decode


def member(value: Run, array: Run, expr: Scalar) -> Run:
    """The call on a batch. ``expr``: the array."""
    type_ = expr.type
    assert type_.element is not None
    element, given = type_.element, expr.value if isinstance(expr, Literal) else None
    known: tuple[int, Elements] = (0, NO_ARRAY)

    def elements(batch: RowBatch) -> Elements:
        nonlocal known
        dictionary = batch.context.dictionary
        if isinstance(expr, Parameter):  # as it is: as a value of the dictionary it would be encoded and decoded
            datum = batch.context.parameters[expr.index - 1]
            return NO_ARRAY if datum is None else elements_of(datum, element, dictionary)
        if given is None:
            vector = array(batch)
            if vector.nulls is not None and vector.nulls[0]:
                return NO_ARRAY
            return elements_of(decode(type_, Vector(vector.words[:1]), dictionary)[0], element, dictionary)
        serial, found = known  # read once: another thread may use another dictionary
        if serial != dictionary.serial:
            found = elements_of(given, element, dictionary)
            known = dictionary.serial, found
        return found

    def run(batch: RowBatch) -> Vector:
        if not batch.count:
            return Vector(np.zeros(0, np.int64))
        found = elements(batch)
        return among(value(batch), found, element, batch.context.dictionary)

    return run
