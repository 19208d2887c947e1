"""Compiles every kernel ahead of time, or loads it from the cache folder."""

from __future__ import annotations

import ast
import fcntl
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

from numba.core import types
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

from ivm.kernels.cache import base_folder
from ivm.kernels.reduce import differences_partial, differences_total
from ivm.kernels.run import run_program
from ivm.rows import Words

T = TypeVar("T")


def imported() -> list[Any]:
    """The kernels that modules of ``ivm`` outside of this folder import, by their sources."""
    found: dict[Any, None] = {}
    for path in sorted(set(_FOLDER.parent.rglob("*.py")) - set(_FOLDER.glob("*.py"))):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ivm.kernels."):
                values = vars(import_module(node.module))
                found |= dict.fromkeys(values[name.name] for name in node.names if _is_kernel(values[name.name]))
    return list(found)


def with_parts(kernel: Any) -> list[Any]:
    """A kernel and all that it calls, callees first."""
    found: dict[Any, None] = {}
    _visit(kernel, found)
    return list(found)


def _visit(kernel: Any, found: dict[Any, None]) -> None:
    names, values = kernel.py_func.__code__.co_names, kernel.py_func.__globals__
    for part in (values[name] for name in names if name in values):
        if _is_kernel(part) and part not in found:
            _visit(part, found)
    found[kernel] = None


def _is_kernel(value: object) -> bool:
    return isinstance(value, Dispatcher)


def _ordered(kernels: list[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys([part for part in with_parts(run_program) if part in kernels] + kernels))


_FOLDER: Final = Path(__file__).parent
KERNELS: Final = _ordered(imported())
"""The kernels called from Python; the rest is compiled as part of these. The parts of run_program come before it, the
others after it: it takes longest, and they are compiled in parallel with it."""


def signature(kernel: Any) -> tuple[Any, ...]:
    """The numba types of a kernel's arguments, from its annotations; only ``vals`` of a reducer is a matrix."""
    words = types.Array(types.int64, 1, "C")
    matrix = types.Array(types.int64, 2, "C")
    kinds = {int: types.int64, bool: types.boolean, Words: words}
    hints = get_type_hints(kernel.py_func)
    hints.pop("return")
    reduced = kernel in (differences_total, differences_partial)
    return tuple(matrix if reduced and name == "vals" else kinds[hint] for name, hint in hints.items())


def warm(progress: Callable[[str, int, int], None], processes: int = 1) -> None:
    """Compiles what is not in the cache yet, calling ``progress(kernel's name, how many are done, how many in all)``.

    Cost: minutes of CPU with an empty cache, of which one kernel, ``run_program``, takes two fifths: more than two
    processes gain little; otherwise a second.
    """
    missing = [place for place, kernel in enumerate(KERNELS) if not _is_cached(kernel)] if processes > 1 else []
    if len(missing) > 1:
        _compile_beside(missing, processes, progress)
    for done, kernel in enumerate(KERNELS):
        progress(kernel.py_func.__name__, max(done, len(missing)), len(KERNELS))
        kernel.compile(signature(kernel))
    progress("", len(KERNELS), len(KERNELS))


def load_cached(kernels: Iterable[Any]) -> None:
    """Loads all that the cache has of kernels: what has been compiled for any types. Cost: a few milliseconds each."""
    for kernel in kernels:
        for types_, *_ in kernel._cache._cache_file._load_index():
            kernel.compile(types_)


def _is_cached(kernel: Any) -> bool:
    return kernel._cache.load_overload(signature(kernel), kernel.targetctx) is not None


def _compile_beside(missing: Sequence[int], processes: int, progress: Callable[[str, int, int], None]) -> None:
    """Fills the cache from separate processes: numba compiles on one thread per process at a time."""
    before = len(KERNELS) - len(missing)
    with ProcessPoolExecutor(processes, get_context("spawn"), _take_turns) as pool:
        waiting = [pool.submit(_compile, place) for place in missing]
        for done, future in enumerate(as_completed(waiting)):
            progress(future.result(), before + done, len(KERNELS))


def _compile(place: int) -> str:
    kernel = KERNELS[place]
    kernel.compile(signature(kernel))
    return str(kernel.py_func.__name__)


def _take_turns() -> None:
    """Lets one process at a time read or write the cache: a function's index file is read, extended and rewritten, and
    names files that are written after it."""
    base_folder().mkdir(parents=True, exist_ok=True)
    turn = (base_folder() / "lock").open("w")

    def alone(method: Callable[..., T]) -> Callable[..., T]:
        def run(*given: Any) -> T:
            fcntl.flock(turn, fcntl.LOCK_EX)
            try:
                return method(*given)
            finally:
                fcntl.flock(turn, fcntl.LOCK_UN)

        return run

    IndexDataCacheFile.save = alone(IndexDataCacheFile.save)  # type: ignore[method-assign]
    IndexDataCacheFile.load = alone(IndexDataCacheFile.load)  # type: ignore[method-assign]
