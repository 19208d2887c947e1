"""Grammars of random tests as text: ``= name`` begins a name, and each line below is one of its forms.

``3 x`` before a form makes it three times as likely, ``~`` is the empty form, ``#`` begins a comment.
"""

from __future__ import annotations

import re
from typing import Final

from tests.support.paths import ROOT

_WEIGHT: Final = re.compile(r"(\d+) x ")


def forms(file: str) -> dict[str, list[str]]:
    """The forms of a file of ``tests/support`` by name, each as often as it is to be drawn."""
    found: dict[str, list[str]] = {}
    mine: list[str] = []
    for line in (ROOT / "tests/support" / file).read_text().splitlines():
        if line.startswith("= "):
            mine = found[line[2:]] = []
        elif line and not line.startswith("#"):
            weight = _WEIGHT.match(line)
            form = line if weight is None else line[weight.end() :]
            mine += ["" if form == "~" else form] * (1 if weight is None else int(weight[1]))
    return found
