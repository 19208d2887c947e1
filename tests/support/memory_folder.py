"""Where tests keep their files: in memory if there is room, as much of a small commit's time is waiting for a disk.

A kill loses nothing of it either; what a disk forgets is simulated (``storage.files.ForgetfulFiles``).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_VARIABLE: Final = "PYTEST_DEBUG_TEMPROOT"
_SHARED_MEMORY: Final = Path("/dev/shm")
_MEMINFO: Final = Path("/proc/meminfo")
LEAST: Final = 6 << 30
"""Bytes that must be free; a run of all tests takes one or two gigabytes."""


def memory_folder() -> None:
    """Make pytest's folders there, unless another place is given (``--basetemp``, ``PYTEST_DEBUG_TEMPROOT``)."""
    if _VARIABLE not in os.environ and _is_roomy():
        os.environ[_VARIABLE] = str(_SHARED_MEMORY)


def _is_roomy() -> bool:
    try:
        folder = os.statvfs(_SHARED_MEMORY)
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return False
    available = next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)
    return min(folder.f_bavail * folder.f_frsize, available) >= LEAST and os.access(_SHARED_MEMORY, os.W_OK)
