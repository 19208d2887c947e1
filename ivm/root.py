"""What readers see of a dataflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ivm.graph import NodeId
from ivm.trace import Version


class Root(Mapping[NodeId, Version]):
    """Every published arrangement at one moment; immutable."""

    __slots__ = ("upper", "versions")

    def __init__(self, versions: dict[NodeId, Version], upper: int) -> None:
        self.versions = versions
        self.upper = upper

    def __getitem__(self, node: NodeId) -> Version:
        return self.versions[node]

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self.versions)

    def __len__(self) -> int:
        return len(self.versions)
