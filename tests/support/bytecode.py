"""A run's processes keep the bytecode of what they import, even where the environment says that Python shall not.

A run starts dozens of Pythons: its own, servers, Spark's workers. Each would compile 2000 modules, for 2 to 6 s.
"""

from __future__ import annotations

import os
import sys


def keep_bytecode() -> None:
    """Let this process and those that it starts write bytecode beside the sources, as Python does unasked."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
