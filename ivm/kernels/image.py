"""Images: the machine code of many kernels in one file, so that a first start compiles nothing.

``ivm.kernels.build`` makes them. An image has, for each kernel that Python calls, the types of its arguments and a
digest of its sources, and one object file in which these kernels share the code of what they call. It is good for one
version of numba and for processors with certain features; Python's version does not matter, since compiled kernels
call only what every version exports. A kernel whose sources have changed since is not taken from an image.

A file is a line of JSON (``Head``), then the object file, compressed.
"""

from __future__ import annotations

import ctypes
import json
import lzma
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import llvmlite.binding as llvm
import numba
import numpy as np
from numba import _dynfunc  # type: ignore[attr-defined,unused-ignore]
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment
from numba.core.registry import cpu_target

from ivm.kernels.cache import CHECKED, Kernel, base_folder, digest

SHIPPED: Final = Path(__file__).parent / "images"
"""The folder of the images that come with the sources."""
_MOST: Final = 40
"""How many images made on this machine are kept: those of other states of the sources too."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A kernel in an image: its module and name, the types of its arguments (``spell``), a digest of its sources."""

    module: str
    name: str
    types: tuple[str, ...]
    digest: str

    @property
    def symbol(self) -> str:
        """The name of its function, which takes a tuple of Python's objects; ``symbol + ".globals"`` is a word."""
        return f"freshet.{self.digest}.{self.module}.{self.name}({','.join(self.types)})"


@dataclass(frozen=True, slots=True)
class Head:
    """What an image needs, and what it has. ``dtypes``: those of the arrays that a function returns, by its symbol."""

    numba: str
    triple: str
    features: tuple[str, ...]
    entries: tuple[Entry, ...]
    dtypes: dict[str, list[str]] = field(default_factory=dict)

    def fits(self) -> bool:
        """Whether this process can run it."""
        here = llvm.get_host_cpu_features()
        good = self.numba == numba.__version__ and self.triple == llvm.get_process_triple()
        return good and "t" not in sys.abiflags and all(here.get(feature, False) for feature in self.features)


def entry_of(kernel: Kernel, kinds: tuple[str, ...]) -> Entry:
    """A kernel in its present form, for arguments of these types."""
    module = kernel.py_func.__module__
    return Entry(module, kernel.py_func.__qualname__, kinds, digest(module))


def spell(kind: Any) -> str:
    """A type of an argument as text: ``int64``, ``int64[2C]``, ``uint8[1Cr]`` (read-only)."""
    if isinstance(kind, types.Array):
        return f"{kind.dtype}[{kind.ndim}{kind.layout}{'' if kind.mutable else 'r'}]"
    return str(kind)


def unspell(text: str) -> Any:
    """The type that is spelled like that."""
    name, _, shape = text.partition("[")
    scalar: Any = types.boolean if name == "bool" else getattr(types, name)
    layout: Any = shape[1:2]
    return types.Array(scalar, int(shape[0]), layout, readonly="r" in shape) if shape else scalar


def write(path: Path, head: Head, code: bytes) -> None:
    """Write an image, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}")
    half.write_bytes(json.dumps(asdict(head)).encode() + b"\n" + lzma.compress(code, preset=9))
    half.replace(path)


def leave_out(path: Path, gone: Collection[Entry]) -> None:
    """Let an image not name some of its kernels, which are no more."""
    head, code = read_head(path), path.read_bytes().partition(b"\n")[2]
    kept = replace(head, entries=tuple(entry for entry in head.entries if entry not in gone))
    path.write_bytes(json.dumps(asdict(kept)).encode() + b"\n" + code)


def keep_newest() -> None:
    """Remove old images made on this machine."""
    for path in sorted(base_folder().glob("*.image"), key=lambda path: path.stat().st_mtime)[:-_MOST]:
        path.unlink(missing_ok=True)


def read_head(path: Path) -> Head:
    """What an image needs and has; nothing if it is of another form than those that are made now."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.readline())
        entries = tuple(Entry(e["module"], e["name"], tuple(e["types"]), e["digest"]) for e in found["entries"])
        return Head(found["numba"], found["triple"], tuple(found["features"]), entries, found["dtypes"])
    except (OSError, ValueError, KeyError, TypeError):
        return Head("", "", (), ())


def read_code(path: Path) -> bytes:
    """An image's object file."""
    with path.open("rb") as file:
        file.readline()
        return lzma.decompress(file.read())


def missing(entries: Iterable[Entry]) -> list[Entry]:
    """Those of the entries that no image has. Cost: milliseconds."""
    return [entry for entry in entries if CHECKED or entry not in _usable()]


def complete() -> bool:
    """Whether all kernels that come in images with the sources are there, in their present form. Cost: milliseconds."""
    shipped = {replace(entry, digest=_digest(entry)) for path in _shipped() for entry in read_head(path).entries}
    return not CHECKED and bool(shipped) and shipped <= _usable().keys()


def link(kernel: Kernel) -> bool:
    """Let Python's calls of a kernel go to what images have of it. Returns whether they have something."""
    if CHECKED:
        return False
    with global_compiler_lock:
        for entry in _entries().get((kernel.py_func.__module__, kernel.py_func.__qualname__), ()):
            kinds = tuple(map(unspell, entry.types))
            if kinds not in kernel.linked:
                kernel.link(kinds, _function(kernel, entry, *_addresses()[entry.symbol]))
        return bool(kernel.linked)


def link_all() -> None:
    """Link every kernel that images have."""
    for module, name in _entries():
        link(getattr(import_module(module), name))


def forget() -> None:
    """Look at the files anew, since there are more of them. What is linked stays so."""
    _usable.cache_clear()
    _entries.cache_clear()


def _shipped() -> list[Path]:
    return sorted(SHIPPED.glob("*.image"))


def _digest(entry: Entry) -> str:
    """The digest of a kernel's present form; empty if its module is gone."""
    try:
        return digest(entry.module)
    except FileNotFoundError:
        return ""


@cache
def _usable() -> dict[Entry, Path]:
    """The entries that are good here, each with its image's file."""
    found: dict[Entry, Path] = {}
    for path in (*_shipped(), *sorted(base_folder().glob("*.image"))):
        head = read_head(path)
        if head.fits():
            found = {entry: path for entry in head.entries if entry.digest == _digest(entry)} | found
    return found


@cache
def _entries() -> dict[tuple[str, str], list[Entry]]:
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in _usable():
        found.setdefault((entry.module, entry.name), []).append(entry)
    return found


_loaded: Final[dict[str, tuple[int, int, list[str]]]] = {}
"""By symbol, the addresses of the function and of the word that names its globals, and the dtypes that it returns."""


def _addresses() -> dict[str, tuple[int, int, list[str]]]:
    """``_loaded``, with all that is usable."""
    wanted: dict[Path, list[Entry]] = {}
    for entry, path in _usable().items():
        if entry.symbol not in _loaded:
            wanted.setdefault(path, []).append(entry)
    for path, entries in wanted.items():
        dtypes = read_head(path).dtypes
        cpu_target.target_context.refresh()  # else the object's references to numba and Python are null
        engine = cpu_target.target_context.codegen()._engine._ee
        engine.add_object_file(llvm.ObjectFileRef.from_data(read_code(path)))
        engine.finalize_object()
        for entry in entries:
            word = engine.get_global_value_address(f"{entry.symbol}.globals")
            _loaded[entry.symbol] = engine.get_function_address(entry.symbol), word, dtypes.get(entry.symbol, [])
    return _loaded


def _function(kernel: Kernel, entry: Entry, address: int, word: int, dtypes: list[str]) -> Any:
    """A function of Python at an address."""
    function = kernel.py_func
    environment = Environment(function.__globals__)
    environment.env_name = f"{entry.symbol}.globals"
    environment.consts.extend(map(np.dtype, dtypes))
    ctypes.c_void_p.from_address(word).value = id(environment)
    module = sys.modules[function.__module__]
    return _dynfunc.make_function(
        module, function.__name__, function.__doc__ or "", address, environment, (environment,)
    )
