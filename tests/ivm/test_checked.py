"""Runs a share of the kernels' tests again with bounds checks: out-of-range accesses are silent otherwise."""

from __future__ import annotations

import re

import pytest

from tests.programs.checked import SHORT, run
from tests.support.paths import ROOT

ENGINE = ROOT / "ivm"
RAW = re.compile(r"\b(inttoptr|carray|intrinsic|memset)\b|ctypes\.data|__array_interface__")


@pytest.mark.timeout(1800)
def test_kernels_stay_within_their_arrays() -> None:
    assert run(SHORT, []) == 0


def test_one_module_reads_and_writes_by_address() -> None:
    found = {path.name for path in ENGINE.rglob("*.py") if RAW.search(path.read_text())}
    assert found == {"memory.py", "shadow.py"}
