"""Makes every kernel ready ahead of time: from an image that came with the sources, or from one made here once."""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, get_type_hints

import numpy as np
from numba.core import types
from numpy.typing import NDArray

from ivm.kernels import arena, arrays, decimals, floats, interning, json, numerics, one_row, regex, texts
from ivm.kernels.cache import Kernel, base_folder
from ivm.kernels.image import Entry, entry_of, forget, keep_newest, link, missing, spell, unspell
from ivm.kernels.memory import lay_out
from ivm.kernels.reduce import differences_partial, differences_total
from ivm.kernels.run import run_program
from ivm.rows import Bytes, Mask, Words

_ROOT: Final = Path(__file__).resolve().parents[2]


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
    return isinstance(value, Kernel)


def _ordered(kernels: list[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys([part for part in with_parts(run_program) if part in kernels] + kernels))


_FOLDER: Final = Path(__file__).parent
KERNELS: Final = _ordered([*imported(), lay_out])
"""The engine's kernels that Python calls; the rest is compiled as part of these. The parts of run_program come before
it: together they take as long as all others."""


def signature(kernel: Any) -> tuple[Any, ...]:
    """The numba types of a kernel's arguments, from its annotations; only ``vals`` of a reducer is a matrix."""
    kinds = {
        int: types.int64, bool: types.boolean, Words: unspell("int64[1C]"), Bytes: unspell("uint8[1C]"),
        Mask: unspell("bool[1C]"), NDArray[np.uint32]: unspell("uint32[1C]"), NDArray[np.int32]: unspell("int32[1C]"),
    }  # fmt: skip
    hints = get_type_hints(kernel.py_func)
    hints.pop("return")
    reduced = kernel in (differences_total, differences_partial)
    matrix = unspell("int64[2C]")
    return tuple(matrix if reduced and name == "vals" else kinds[hint] for name, hint in hints.items())


def called(kernel: Any, **kinds: str) -> Entry:
    """A kernel that Python calls, with arguments of the types that its annotations say, or of these (``spell``)."""
    names = kernel.py_func.__code__.co_varnames
    spelled = dict(zip(names, map(spell, signature(kernel)), strict=False))
    return entry_of(kernel, tuple((spelled | kinds).values()))


def entries() -> list[Entry]:
    """The engine's kernels, and those of the dictionary and of regular expressions."""
    read_only = "uint8[1Cr]"
    return [
        *map(called, KERNELS),
        *map(called, (arena.measure, arena.gather, arena.prefixes, arena.compare_many, arena.resolve, arena.length_of)),
        *map(called, (interning.intern_values, interning.load_values, interning.see_words, interning.keep_living)),
        *map(called, (interning.propose, interning.move_slots, interning.unseen, interning.condemn, interning.weigh)),
        called(interning.intern_values, data=read_only),
        called(interning.unseen, words="int64[1Cr]"),
        *map(
            called, (texts.locate, texts.join, texts.characters, texts.cut, texts.find, texts.split, texts.count_found)
        ),
        *map(called, (texts.replace, texts.strip, texts.write_decimals, texts.read_decimals)),
        *map(called, (decimals.read_rounded, arrays.read_shapes, arrays.find_elements, arrays.read_words)),
        *map(called, (numerics.compute, numerics.change)),
        *map(called, (json.step, json.kinds, json.counts, json.has, json.uncover, json.unescape, json.quoted_sizes)),
        *map(called, (json.quote, floats.lay_out_floats)),
        called(regex.run_regex, program="int64[2C]", truth="uint8[2C]", stack="int64[2C]"),
        called(regex.forget),
        called(one_row.apply_to_row),
    ]


def warm(progress: Callable[[str, int, int], None], processes: int = 1, more: Iterable[Entry] = ()) -> None:
    """Links or compiles the engine's kernels and ``more``, calling ``progress(kernel's name, how many are done, how
    many in all)``.

    Cost: half a second where images have all. Otherwise up to two minutes of CPU for what is missing, in two processes,
    which make images for the next start, or in this one, if ``processes`` is 1.
    """
    wanted = [*entries(), *more]
    lacking = missing(wanted)
    if lacking and processes > 1:
        for count, name in enumerate(_build_beside(lacking)):
            progress(name, len(wanted) - len(lacking) + count, len(wanted))
        lacking = missing(wanted)
    for count, entry in enumerate(lacking):
        progress(entry.name, len(wanted) - len(lacking) + count, len(wanted))
        _kernel(entry).compile(tuple(map(unspell, entry.types)))
    for entry in wanted:
        link(_kernel(entry))
    progress("", len(wanted), len(wanted))


def _kernel(entry: Entry) -> Any:
    return getattr(import_module(entry.module), entry.name)


def _build_beside(entries: Sequence[Entry]) -> Iterable[str]:
    """Makes images in two processes; gives the names of kernels as they are done. A process that fails, such as
    with a numba that is made otherwise, leaves its kernels to be compiled here."""
    half = _half(entries)
    out, into = os.pipe()
    started = [_builder(part, into) for part in (entries[:half], entries[half:]) if part]
    os.close(into)
    with os.fdopen(out, encoding="utf-8") as lines:
        yield from map(str.strip, lines)
    for one in started:
        one.wait()
    keep_newest()
    forget()


def _half(entries: Sequence[Entry]) -> int:
    """How many of the entries take half of the time: those up to run_program, if it is among them."""
    names = [entry.name for entry in entries]
    return names.index("run_program") + 1 if "run_program" in names else (len(names) + 1) // 2


def _builder(entries: Sequence[Entry], into: int) -> subprocess.Popen[str]:
    """A process that makes an image of kernels and writes their names to a pipe as they are done."""
    name = hashlib.sha256("".join(entry.symbol for entry in entries).encode()).hexdigest()[:16]
    return _start(entries, base_folder() / f"{name}.image", None, into, subprocess.DEVNULL)


def build_image(entries: Sequence[Entry], path: Path, environment: dict[str, str]) -> int:
    """Make an image of kernels in one process with this environment. Returns its exit code."""
    return _start(entries, path, environment, None, None).wait()


def _start(
    entries: Sequence[Entry], path: Path, environment: dict[str, str] | None, out: int | None, err: int | None
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ivm.kernels.build", str(path)]
    started = subprocess.Popen(
        command, cwd=_ROOT, env=environment, stdin=subprocess.PIPE, stdout=out, stderr=err, text=True
    )
    assert started.stdin is not None
    with started.stdin as lines:
        lines.writelines(f"{entry.module} {entry.name} {' '.join(entry.types)}\n" for entry in entries)
    return started
