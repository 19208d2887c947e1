"""What specs say of themselves: their inputs and parameters, found from their fields."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from ivm.graph import (
    AsOf,
    Concat,
    DeltaJoin,
    Gather,
    Join,
    Keep,
    Lookup,
    NodeId,
    NodeSpec,
    Path,
    Spec,
    Threshold,
)  # fmt: skip
from ivm.specs import inputs, parameters, with_inputs
from planner.physical.nodes import LoopVariable, Node, Table

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
PLACE = {ONE: NodeId(11), TWO: NodeId(12), THREE: NodeId(13)}
SAME = Gather((0,))
KINDS = dict.fromkeys((*get_args(NodeSpec), *get_args(Node)))


def _delta(one: NodeId, two: NodeId, three: NodeId) -> DeltaJoin:
    return DeltaJoin((Path(one, ((Lookup(1, two, (0,)),),), SAME), Path(two, ((Lookup(0, three, (0,)),),), SAME)))


@pytest.mark.parametrize(
    ("spec", "read", "others", "moved"),
    [
        (Table(7, ()), (), (7, ()), Table(7, ())),
        (LoopVariable(0, 1, 2), (), (0, 1, 2), LoopVariable(0, 1, 2)),
        (Threshold(ONE, Keep.DISTINCT), (ONE,), (Keep.DISTINCT,), Threshold(PLACE[ONE], Keep.DISTINCT)),
        (Concat((TWO, ONE)), (TWO, ONE), (), Concat((PLACE[TWO], PLACE[ONE]))),
        (Join(ONE, ONE, SAME), (ONE, ONE), (SAME,), Join(PLACE[ONE], PLACE[ONE], SAME)),
        (AsOf(TWO, ONE, SAME, 1, True), (TWO, ONE), (SAME, 1, True, None), AsOf(PLACE[TWO], PLACE[ONE], SAME, 1, True)),
    ],
)
def test_inputs(spec: Spec, read: tuple[NodeId, ...], others: tuple[object, ...], moved: Spec) -> None:
    assert inputs(spec) == read
    assert parameters(spec) == others
    assert with_inputs(spec, PLACE) == moved


def test_inputs_of_a_delta_join() -> None:
    """Each node once, the paths' starts first."""
    join = _delta(TWO, ONE, THREE)
    assert inputs(join) == (TWO, ONE, THREE)
    assert with_inputs(join, PLACE) == _delta(PLACE[TWO], PLACE[ONE], PLACE[THREE])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_fields_that_name_nodes_are_inputs(kind: type[Spec]) -> None:
    types = [field.type for field in fields(kind) if "NodeId" in str(field.type)]
    assert set(types) <= {"NodeId", "tuple[NodeId, ...]"}
    assert types.count("tuple[NodeId, ...]") <= 1
