"""First start: kernels come from an image; those that none has are compiled once, with progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ivm.kernels.image import Entry


def entries() -> list[Entry]:
    """The wire's kernels, as Python calls them."""
    from ivm.kernels.warm import called
    from sql.pgwire import copy_kernels, kernels

    data, matrix = "uint8[1Cr]", "int64[2C]"
    return [
        called(kernels.format_integers),
        called(kernels.message_bytes, lengths=matrix),
        called(kernels.assemble, starts=matrix, lengths=matrix),
        called(
            copy_kernels.scan,
            data=data, null=data, columns=matrix, words=matrix, nulls="bool[2C]", spans="int64[3C]",
        ),
        called(copy_kernels.skip_line, data=data),
        called(copy_kernels.gather, data=data, spans=matrix),
        called(copy_kernels.gather, data=data, spans="int64[2A]"),
        called(copy_kernels.plain_ascii),
        called(copy_kernels.plain_ascii, data=data),
        called(copy_kernels.frame_rows, data=data),
    ]  # fmt: skip


async def warm(say: Callable[[str], None]) -> None:
    """Compile the missing kernels in two processes. Returns at once if there are none."""
    from ivm.kernels.image import complete, missing

    if complete():
        return
    from ivm.kernels.warm import entries as engine
    from ivm.kernels.warm import warm as warm_all

    if not missing([*engine(), *entries()]):
        return
    say("freshet: first start: compiling kernels, once (minutes)")
    start = time.monotonic()

    def progress(_: str, done: int, whole: int) -> None:
        say(f"freshet: compiling kernels: {done * 100 // whole}% after {time.monotonic() - start:.0f} s")

    warm_all(progress, 2, entries())


def load() -> None:
    """Link every kernel, before the server listens: the first step that used one would wait for it, and a view whose
    step keeps others waiting is taken out of it (``sql.engine.failing``). Cost: 0.1 s if images have all."""
    from ivm.kernels.image import complete, link_all

    if complete():
        link_all()
        return
    from ivm.kernels.warm import warm as warm_all

    warm_all(lambda *_: None, 1, entries())
