"""What a dataflow consists of, for display."""

from __future__ import annotations

from ivm.dataflow import Dataflow
from ivm.graph import NodeId, NodeSpec
from ivm.runtime.operator import Operator


def nodes(dataflow: Dataflow) -> dict[NodeId, tuple[NodeSpec, Operator]]:
    """Every node's spec, and the operator that has its state. A copy; may be called from any thread."""
    return dataflow.nodes()
