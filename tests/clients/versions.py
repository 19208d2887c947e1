"""The versions of the clients that are installed here, and where they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

INSTALLED: Final = ROOT / ".venv-clients"
"""What `make clients` installs: an environment of Python, and node_modules."""
PYTHON: Final = os.environ.get("CLIENTS_PYTHON") or next(
    (str(p) for p in (INSTALLED / "bin" / "python",) if p.exists()), sys.executable
)
"""An interpreter that has the clients written in Python."""
NODE: Final = Path(os.environ.get("CLIENTS_NODE", INSTALLED / "node"))
"""A folder whose node_modules has those of Node."""
GO: Final = Path("/usr/share/gocode")
"""Where Debian's packages of Go's libraries are."""


def version(packages: Sequence[str]) -> str:
    """The versions of commands (``psql``), packages of Python, of Node (``npm:pg``) and of Debian (``deb:…``)."""
    return ", ".join(found for found in map(_version, packages) if found)


def _version(package: str) -> str:
    kind, _, name = package.rpartition(":")
    if kind == "npm":
        described = NODE / "node_modules" / name / "package.json"
        return str(json.loads(described.read_text())["version"]) if described.exists() else ""
    if kind == "deb":
        command = ["dpkg-query", "-W", "-f", "${Version}", name]
    elif kind == "command":
        command = [name, "--version"]
    else:
        command = [PYTHON, "-c", f"import importlib.metadata as m; print(m.version({name!r}))"]
    try:
        done = subprocess.run(command, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        return ""
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return found[0] if found is not None and done.returncode == 0 else ""
