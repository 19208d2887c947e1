"""What a dataflow consists of, for people to see."""

from __future__ import annotations

from ivm.dataflow import Dataflow
from ivm.graph import NodeId, NodeSpec
from ivm.runtime.scheduler import Operator


def nodes(dataflow: Dataflow) -> dict[NodeId, tuple[NodeSpec, Operator]]:
    """What every node is, and the operator that has its state. A copy, which any thread may ask for."""
    operators = dataflow._operators.copy()
    return {n: (spec, operators[n]) for n, spec in dataflow._specs.copy().items() if n in operators}
