"""What a dataflow consists of, for people to see."""

from __future__ import annotations

from ivm.dataflow import Dataflow
from ivm.graph import NodeId, NodeSpec
from ivm.runtime.operator import Operator


def nodes(dataflow: Dataflow) -> dict[NodeId, tuple[NodeSpec, Operator]]:
    """What every node is, and the operator that has its state. A copy, which any thread may ask for."""
    return dataflow.nodes()
