"""Compiles every kernel ahead of time, or loads it from the cache folder."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, Final, TypeVar, get_type_hints

from numba.core import types
from numba.core.caching import IndexDataCacheFile

from ivm.kernels.accumulate import accumulate_total
from ivm.kernels.arrange import arrange
from ivm.kernels.asof import asof_left, asof_right, in_time_order, times_of
from ivm.kernels.blocks import extract, gather, least_vector, transfer
from ivm.kernels.cache import base_folder
from ivm.kernels.delay import delay
from ivm.kernels.delta_join import delta_join
from ivm.kernels.formula import map_block
from ivm.kernels.interesting import reduce_partial
from ivm.kernels.join import join
from ivm.kernels.lock import lock
from ivm.kernels.memory import freeze, lay_out, where
from ivm.kernels.merge import compact, fill_fence, fill_filter, insert_small, merge, uniform
from ivm.kernels.rank import extend_ranks
from ivm.kernels.read import collect, lookup
from ivm.kernels.reduce import (
    count_differences,
    counts_total,
    differences_partial,
    differences_total,
    segments_total,
)
from ivm.kernels.run import run_program
from ivm.kernels.shards import close_gaps, cut_merge, in_order, key_place, key_start
from ivm.kernels.sort import sort_block
from ivm.kernels.threshold import threshold_total
from ivm.kernels.windows import changes_total, windows_total
from ivm.rows import Words

T = TypeVar("T")

# The kernels called from Python; the rest is compiled as part of these. The parts of run_program come before it, the
# others after it: it takes longest, and they are compiled in parallel with it.
KERNELS: Final[tuple[Any, ...]] = (
    lay_out,
    freeze,
    where,
    transfer,
    gather,
    extract,
    least_vector,
    sort_block,
    arrange,
    insert_small,
    compact,
    merge,
    fill_fence,
    fill_filter,
    uniform,
    join,
    delta_join,
    threshold_total,
    reduce_partial,
    count_differences,
    counts_total,
    segments_total,
    differences_total,
    differences_partial,
    map_block,
    accumulate_total,
    delay,
    run_program,
    collect,
    lookup,
    asof_left,
    asof_right,
    times_of,
    in_time_order,
    lock,
    extend_ranks,
    windows_total,
    changes_total,
    key_start,
    key_place,
    in_order,
    close_gaps,
    cut_merge,
)


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
