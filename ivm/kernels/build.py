"""Makes an image of kernels (``ivm.kernels.image``), in a process of its own:

python -m ivm.kernels.build FILE < KERNELS

where each line of KERNELS is a kernel's module, its name and the types of its arguments. A line is printed for each
that is done. numba itself would optimise each function apart and then again in each of its callers, and make machine
code of each; here all are optimised and made to machine code once, together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target

from ivm.kernels.cache import Kernel, digest
from ivm.kernels.image import Entry, Head, unspell, write


class Part(JITCodeLibrary):  # type: ignore[misc,unused-ignore]
    """A function's code, which is neither optimised nor made to machine code by itself."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Add nothing any more."""
        assert not self._finalized
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """An address that is never called."""
        return 1


def build(entries: Iterable[Entry], path: Path, features: tuple[str, ...]) -> None:
    """Compile kernels into an image for processors with these features."""
    context = cpu_target.target_context
    context.refresh()
    codegen = context.codegen()
    codegen._library_class = Part
    codegen.set_env = lambda *_: None
    kernels = {entry: getattr(import_module(entry.module), entry.name) for entry in entries}
    _prepare(set(kernels.values()))
    libraries: dict[Any, None] = {}
    names: dict[str, str] = {}
    dtypes: dict[str, list[str]] = {}
    for entry, kernel in kernels.items():
        kinds = tuple(map(unspell, entry.types))
        kernel.compile(kinds)
        made = kernel.overloads[kinds]
        _collect(made.library, libraries)
        names[made.fndesc.llvm_cpython_wrapper_name] = entry.symbol
        names[made.fndesc.env_name] = f"{entry.symbol}.globals"
        if made.environment.consts:
            assert all(isinstance(one, np.dtype) for one in made.environment.consts), made.environment.consts
            dtypes[entry.symbol] = [one.str for one in made.environment.consts]
        print(entry.name, flush=True)
    code = _machine_code(codegen, _linked(codegen, libraries, names))
    write(path, Head(numba.__version__, llvm.get_process_triple(), features, tuple(kernels), dtypes), code)


def _prepare(called: set[Any]) -> None:
    """Let nothing be cached, and let Python call only what it calls."""
    found: set[Any] = set()
    for module in list(sys.modules.values()):
        found.update(value for value in vars(module).values() if isinstance(value, Kernel))
    for one in found:
        one._cache.disable()
        one._compiler.targetoptions |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": one not in called}


def _collect(library: Any, found: dict[Any, None]) -> None:
    if library not in found:
        found[library] = None
        for part in library._linking_libraries:
            _collect(part, found)


def _linked(codegen: Any, libraries: Iterable[Any], names: dict[str, str]) -> Any:
    """One module of all libraries, which exports what has a name."""
    image = llvm.parse_assembly(str(codegen._create_empty_module("kernels")))
    for library in libraries:
        module = library._final_module if isinstance(library, Part) else library._get_module_for_linking()
        for function in module.functions:
            if not function.is_declaration:
                function.linkage = "weak_odr"  # linkonce: linking would drop it
        image.link_in(module, preserve=True)
    for value in (*image.functions, *image.global_variables):
        if value.is_declaration:
            continue
        name = names.pop(value.name, None)
        value.linkage = "external" if name else "internal"
        if name:
            value.name = name
    assert not names, names
    return image


def _machine_code(codegen: Any, image: Any) -> bytes:
    """Optimise as numba does, then make an object file."""
    cheap = {"loop_vectorize": codegen._loopvect, "slp_vectorize": False, "opt": codegen._opt_level, "cost": "cheap"}
    for options in (cheap, {}):
        passes, builder = codegen._module_pass_manager(**options)
        passes.run(image, builder)
    image.verify()
    addresses = [value.name for value in image.global_variables if value.name.startswith("numba.dynamic.globals")]
    assert not addresses, "addresses that are good for this process only"
    return bytes(codegen._tm.emit_object(image))


def main() -> None:
    """Build what the standard input says."""
    lines = [line.split() for line in sys.stdin]
    entries = [Entry(module, name, tuple(kinds), digest(module)) for module, name, *kinds in lines]
    asked = [name.removeprefix("+") for name in (numba.config.CPU_FEATURES or "").split(",") if name]  # type: ignore[attr-defined]
    build(
        entries, Path(sys.argv[1]), tuple(asked or [name for name, has in llvm.get_host_cpu_features().items() if has])
    )


if __name__ == "__main__":
    main()
