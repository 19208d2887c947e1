"""The short form of ``tests.programs.wire_fuzz``: random messages fail nothing but themselves."""

from __future__ import annotations

import pytest

from tests.programs.wire_fuzz import run


@pytest.mark.parametrize(("sockets", "count"), [(False, 8000), (True, 1500)])
def test_random_messages(sockets: bool, count: int) -> None:
    found = run(count, 5, sockets=sockets)
    assert not found.wrong
    assert found.connections > 30
    assert {"34000", "26000", "08P01"} <= found.states.keys()
