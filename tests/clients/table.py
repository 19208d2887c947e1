"""Runs the tests of clients and writes what they could do into docs/reference/compatibility.md: ``make clients``.

A test names its client by ``@pytest.mark.client``, and counts itself or what it records as ``right`` and ``of``. A
client that is not installed keeps its row, which says so.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.clients.versions import version
from tests.support.paths import ROOT

PAGE: Final = ROOT / "docs" / "reference" / "compatibility.md"
BEGIN: Final = "<!-- make clients -->"
END: Final = "<!-- end -->"
_HEAD: Final = "| client | version | right | of | missing |\n|---|---|---|---|---|"


@dataclass
class Client:
    """One client's counts. ``absent``: why tests were skipped; ``failed``: the names of tests."""

    packages: tuple[str, ...] = ()
    right: int = 0
    of: int = 0
    failed: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


class Outcomes:
    """A plugin of pytest that counts what each client could do."""

    def __init__(self) -> None:
        self.clients: defaultdict[str, Client] = defaultdict(Client)
        self._names: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if (mark := item.get_closest_marker("client")) is not None:
                name, *packages = mark.args
                self._names[item.nodeid] = name
                known = self.clients[name]
                known.packages = known.packages or tuple(packages)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = self._names.get(report.nodeid)
        if name is None or (report.when != "call" and not (report.failed or report.skipped)):
            return
        client, recorded = self.clients[name], dict(report.user_properties)
        if report.skipped:
            client.absent.append(_reason(report))
            return
        client.right += int(str(recorded.get("right", int(report.passed))))
        client.of += int(str(recorded.get("of", 1)))
        if report.failed:
            client.failed.append(report.nodeid.rpartition("::")[2])


def _reason(report: pytest.TestReport) -> str:
    assert isinstance(report.longrepr, tuple)
    return report.longrepr[2].removeprefix("Skipped: ")


def row(name: str, client: Client) -> str:
    """A client's line of the table."""
    if client.of == 0:
        return f"| {name} | | not run | | {client.absent[0] if client.absent else ''} |"
    missing = ", ".join(f"`{test}`" for test in client.failed)
    return f"| {name} | {version(client.packages or (name,))} | {client.right} | {client.of} | {missing} |"


def written(page: str, clients: dict[str, Client]) -> str:
    """The page with the table between its marks."""
    return between(page, BEGIN, "\n".join((_HEAD, *(row(name, client) for name, client in clients.items()))))


def between(page: str, begin: str, table: str) -> str:
    """The page with another table behind this mark, up to the next end."""
    pattern = re.compile(f"(?<={re.escape(begin)}\n).*?(?={re.escape(END)})", re.DOTALL)
    assert pattern.search(page), f"{PAGE.name} has no place for the table"
    return pattern.sub(lambda _: table + "\n", page)


def main() -> int:
    outcomes = Outcomes()
    status = pytest.main(["-rs", "--numprocesses", "0", str(Path(__file__).parent)], plugins=[outcomes])
    PAGE.write_text(written(PAGE.read_text(), dict(sorted(outcomes.clients.items(), key=lambda c: c[0].lower()))))
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
