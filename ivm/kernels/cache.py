"""Where compiled kernels are kept, and the decorator that compiles them.

numba notices a change in a kernel's own file but not in a callee's in another file, so each
file's cache folder is named by a hash over that file and every kernel file that it imports. ``FRESHET_CACHE`` names
another base folder than the user's.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from llvmlite.binding import get_host_cpu_name

F = TypeVar("F", bound=Callable[..., Any])

CHECKED: Final = os.environ.get("FRESHET_CHECKED") == "1"
"""Whether kernels check every address and index (``ivm.kernels.shadow``), for tests."""

_IMPORT = re.compile(r"^from (ivm\.kernels\.\w+) import", re.MULTILINE)
_ROOT = Path(__file__).resolve().parent.parent.parent


def base_folder() -> Path:
    """The folder under which all compiled kernels lie."""
    override = os.environ.get("FRESHET_CACHE")
    if override:
        return Path(override)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "freshet" / "kernels"


def compiler() -> str:
    """What compiled kernels are good for beside their sources: this place, this Python, this numba, this processor."""
    return f"{_ROOT} {sys.version} {numba.__version__} {get_host_cpu_name()}"


@cache
def _sources(file: str) -> frozenset[str]:
    """The file and all kernel files that it imports, at any depth."""
    found = {file}
    for module in _IMPORT.findall(Path(file).read_text()):
        found |= _sources(str(_ROOT / (module.replace(".", "/") + ".py")))
    return frozenset(found)


@cache
def _folder(file: str) -> str:
    digest = hashlib.sha256(b"checked" if CHECKED else b"")
    for source in sorted(_sources(file) | {__file__}):
        digest.update(Path(source).read_bytes())
    return str(base_folder() / digest.hexdigest()[:16])


def inlined(function: F) -> F:
    """A ``kernel`` that is compiled into each of its callers: for what takes many arrays and has one caller, where
    passing them costs more than the work."""
    return _compiled(function, forceinline=True)


def kernel(function: F) -> F:
    """``numba.njit(cache=True, nogil=True)`` with the cache in the folder of the function's file.

    With bounds checks where ``CHECKED``: else an index out of range is silent, and a raw address always is.
    """
    return _compiled(function)


def _compiled(function: F, forceinline: bool = False) -> F:
    numba.config.CACHE_DIR = _folder(str(Path(sys.modules[function.__module__].__file__ or "").resolve()))  # type: ignore[attr-defined]
    return cast(F, numba.njit(cache=True, nogil=True, boundscheck=CHECKED or None, forceinline=forceinline)(function))
