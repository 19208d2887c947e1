"""Where compiled kernels are kept, and the decorator that compiles them.

Those that Python calls come from images (``ivm.kernels.image``). What no image has is compiled when it is called, and
kept in numba's cache. numba notices a change in a kernel's own file but not in a callee's in another file, so each
file's cache folder is named by a digest of that file and every kernel file that it imports. ``FRESHET_CACHE`` names
another base folder than the user's.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core import types
from numba.core.registry import CPUDispatcher

log = logging.getLogger("freshet.kernels")

F = TypeVar("F", bound=Callable[..., Any])

CHECKED: Final = os.environ.get("FRESHET_CHECKED") == "1"
"""Whether kernels check every address and index (``ivm.kernels.shadow``), for tests."""

_OPTIONS: Final = {"nopython": True, "nogil": True, "boundscheck": CHECKED or None}
_FORM: Final = f"1 {sorted(_OPTIONS.items())}"
"""How kernels are compiled, which digests include: change its number when this file or ``ivm.kernels.build`` compiles
them otherwise."""
_IMPORT = re.compile(r"^from (ivm\.kernels\.(?!cache)\w+) import", re.MULTILINE)
_ROOT = Path(__file__).resolve().parent.parent.parent


def base_folder() -> Path:
    """The folder under which all compiled kernels lie."""
    override = os.environ.get("FRESHET_CACHE")
    if override:
        return Path(override)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "freshet" / "kernels"


@cache
def sources(file: str) -> frozenset[str]:
    """The file and all kernel files that it imports, at any depth; not this one, of which only ``_FORM`` counts."""
    found = {file}
    for module in _IMPORT.findall(Path(file).read_text()):
        found |= sources(str(_ROOT / (module.replace(".", "/") + ".py")))
    return frozenset(found)


@cache
def _digest(file: str) -> str:
    found = hashlib.sha256(_FORM.encode())
    for source in sorted(sources(file)):
        found.update(Path(source).read_bytes())
    return found.hexdigest()[:16]


@cache
def digest(module: str) -> str:
    """A digest of the sources of a module's kernels: its file and every kernel file that it imports."""
    file = getattr(sys.modules.get(module), "__file__", None) or _ROOT / (module.replace(".", "/") + ".py")
    return _digest(str(Path(file).resolve()))


class Kernel(CPUDispatcher):  # type: ignore[misc,unused-ignore]
    """A compiled function, which calls others of its kind.

    Called from Python it is taken from an image (``ivm.kernels.image``) where one has it; else from numba's cache; else
    it is compiled. What it calls is compiled as part of it.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Numba would compile a function once for each constant that its callers give it, which doubles the time."""
        return super().get_call_template(tuple(map(types.unliteral, args)), kws)

    def add_overload(self, compiled: Any) -> None:
        """As a part of another kernel; Python goes on calling the image's."""
        arguments = tuple(compiled.signature.args)
        if arguments in self.linked:
            self.overloads[arguments] = compiled
        else:
            super().add_overload(compiled)

    def link(self, arguments: tuple[Any, ...], entry: Any) -> None:
        """Let calls with arguments of these types go to a function from an image."""
        if arguments not in self.overloads:
            self._insert([one._code for one in arguments], entry, False)  # type: ignore[attr-defined,unused-ignore]
        self.linked[arguments] = entry

    @property
    def linked(self) -> dict[tuple[Any, ...], Any]:
        """What images have of the kernel, by the types of arguments."""
        found: dict[tuple[Any, ...], Any] = self.__dict__.setdefault("_linked", {})
        return found

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        if not CHECKED and not self.overloads:
            from ivm.kernels.image import link

            arguments = tuple(self.typeof_pyval(one) for one in args)
            link(self)
            if arguments in self.linked:
                return self.linked[arguments]
            log.warning("no image has %s for %s: whoever needs it waits", self.py_func.__name__, arguments)
        return super()._compile_for_args(*args, **kws)  # type: ignore[misc,unused-ignore]


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
    numba.config.CACHE_DIR = str(base_folder() / digest(function.__module__))  # type: ignore[attr-defined]
    made = Kernel(function, targetoptions={**_OPTIONS, "forceinline": forceinline})
    made.enable_caching()
    return cast(F, made)
