"""What readers see of a dataflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ivm.graph import NodeId
from ivm.trace.trace import Version

_PAGE: Final = 6
"""The number of low bits of a node id that give its place on its page."""


class Root(Mapping[NodeId, Version]):
    """Every published arrangement at one moment; immutable. ``upper``: the newest ordinal then.

    It is stored in pages, which a changed root shares with the one before.
    """

    __slots__ = ("_pages", "upper")

    def __init__(self, pages: dict[int, dict[int, Version]], upper: int) -> None:
        self._pages = pages
        self.upper = upper

    def __getitem__(self, node: NodeId) -> Version:
        return self._pages[node >> _PAGE][node]

    def get(self, node: NodeId, default: Version | None = None) -> Version | None:  # type: ignore[override]
        page = self._pages.get(node >> _PAGE)
        return default if page is None else page.get(node, default)

    def __iter__(self) -> Iterator[NodeId]:
        return (NodeId(node) for page in self._pages.values() for node in page)

    def __len__(self) -> int:
        return sum(map(len, self._pages.values()))

    def changed(self, versions: dict[int, Version | None], upper: int) -> Root:
        """A new root with these versions replaced, and those that are None removed. Cost: the pages that they are
        on."""
        before = self._pages
        pages = before.copy()
        for node, version in versions.items():
            number = node >> _PAGE
            page = pages.get(number)
            if page is None:
                page = pages[number] = {}
            elif page is before.get(number):
                page = pages[number] = page.copy()
            if version is not None:
                page[node] = version
            else:
                del page[node]
                if not page:
                    del pages[number]
        return Root(pages, upper)
