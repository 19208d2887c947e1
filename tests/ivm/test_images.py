"""Images of kernels: what is made is what was asked for, and only what fits is used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite import binding

from ivm.kernels import arena, image
from ivm.kernels.cache import CHECKED
from ivm.kernels.image import Entry, Head, missing, read_code, read_head, spell, unspell, write
from ivm.kernels.memory import where
from ivm.kernels.warm import build_image, called, entries
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(CHECKED, reason="checked kernels come from no image")

HERE = Head(numba.__version__, binding.get_process_triple(), (), ())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only folder of images."""
    monkeypatch.setenv("FRESHET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "SHIPPED", tmp_path)
    image.forget()
    yield tmp_path
    monkeypatch.undo()
    image.forget()


def test_types_are_spelled_there_and_back() -> None:
    for entry in entries():
        assert tuple(spell(unspell(text)) for text in entry.types) == entry.types


def test_an_image_is_read_as_it_was_written(folder: Path) -> None:
    head = replace(HERE, features=("avx2",), entries=(called(arena.resolve),), dtypes={"f": ["<i8"]})
    write(folder / "a.image", head, b"code\n" * 1000)
    assert read_head(folder / "a.image") == head
    assert read_code(folder / "a.image") == b"code\n" * 1000


def test_what_is_no_image_is_passed_over(folder: Path) -> None:
    (folder / "a.image").write_bytes(b"\x00\xff\n")
    (folder / "b.image").write_bytes(b'{"entries": [1]}\n')
    assert missing([called(arena.resolve)])


def _misfits() -> dict[str, Head]:
    good = replace(HERE, entries=(called(arena.resolve),))
    entry = good.entries[0]
    return {
        "another numba": replace(good, numba="0.1"),
        "another processor": replace(good, triple="s390x-unknown-linux-gnu"),
        "a feature that no processor has": replace(good, features=("frobnication",)),
        "other sources": replace(good, entries=(replace(entry, digest="0" * 16),)),
        "a module that is gone": replace(good, entries=(replace(entry, module="ivm.kernels.gone"),)),
        "other types": replace(good, entries=(replace(entry, types=("int64",)),)),
    }


@pytest.mark.parametrize("why", _misfits())
def test_what_does_not_fit_is_not_used(folder: Path, why: str) -> None:
    write(folder / "a.image", _misfits()[why], b"")
    assert missing([called(arena.resolve)])


def test_what_fits_is_used(folder: Path) -> None:
    write(folder / "a.image", replace(HERE, entries=(called(arena.resolve),)), b"")
    assert not missing([called(arena.resolve)])
    assert image.complete()
    write(folder / "b.image", _misfits()["other sources"], b"")
    image.forget()
    assert image.complete()
    write(folder / "c.image", replace(HERE, numba="0.1", entries=(called(arena.length_of),)), b"")
    image.forget()
    assert not image.complete()


_USE = """
import numpy as np
from numba.core.dispatcher import Dispatcher

def compiled(self, types):
    raise AssertionError(self)

Dispatcher.compile = compiled
from ivm.kernels.memory import where
from sql.pgwire import copy_kernels, kernels

words = np.arange(3)
print(kernels.message_bytes(np.array([[1, 2], [3, -1]])), where(words) == words.ctypes.data)
print(bytes(copy_kernels.frame_rows(np.frombuffer(b"1\\n", np.uint8), np.array([2]))))
try:
    kernels.message_bytes("no array")
except AssertionError:
    print("compiled")
"""


def test_python_calls_what_an_image_has(tmp_path: Path) -> None:
    """Nothing is compiled for types that an image has; for others, numba is asked."""
    from sql.pgwire import copy_kernels, kernels

    wanted: list[Entry] = [
        called(where),
        called(copy_kernels.frame_rows, data="uint8[1Cr]"),
        called(kernels.message_bytes, lengths="int64[2C]"),
    ]
    assert build_image(wanted, tmp_path / "a.image", None) == 0
    use = (
        "import sys; from pathlib import Path; from ivm.kernels import image; image.SHIPPED = Path(sys.argv[1])\n"
        + _USE
    )
    command = [sys.executable, "-c", use, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    expected = kernels.message_bytes(np.array([[1, 2], [3, -1]]))
    framed = b"d\x00\x00\x00\x061\n"
    assert done.stdout == f"{expected} True\n{framed}\ncompiled\n", done.stderr
