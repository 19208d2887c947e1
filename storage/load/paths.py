"""Which files a statement may read: those inside the folders given by ``--files``, links followed first."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ivm.errors import SqlError

_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")


def resolve_path(path: str, folders: Sequence[Path]) -> Path:
    """The real path of a file or folder that a statement names; a relative one stands in one of the folders.

    Raises 42501 outside the folders (before telling whether it exists), 58P01 when it is not there.
    """
    allowed = [Path(os.path.realpath(folder)) for folder in folders]
    candidates = [Path(path)] if os.path.isabs(path) else [folder / path for folder in allowed]
    inside = [real for real in map(_real, candidates) if _is_inside(real, allowed)]
    if not inside:
        raise _denied(path)
    for real in inside:
        if real.exists():
            return real
    raise SqlError("58P01", f'could not open file "{path}" for reading: No such file or directory')


def data_files(path: Path, folders: Sequence[Path], suffix: str) -> list[Path]:
    """The file itself, or a folder's files of that suffix, sorted (as Spark and others write a table).

    Raises 42501 for a link that leads out of the folders, 58P01 for a folder without such files, 42809 for what is
    neither (a pipe, a device).
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SqlError("42809", f'"{path}" is not a file')
    allowed = [Path(os.path.realpath(folder)) for folder in folders]
    names = sorted(name for name in os.listdir(path) if name.endswith(suffix) and name[0] not in "._")
    files = [path / name for name in names]
    for file in files:
        if not _is_inside(_real(file), allowed):
            raise _denied(str(file))
    found = [file for file in files if file.is_file()]
    if not found:
        raise SqlError("58P01", f'the folder "{path}" has no {suffix} files')
    return found


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_inside(real: Path, allowed: Sequence[Path]) -> bool:
    return any(real == folder or folder in real.parents for folder in allowed)


def _denied(path: str) -> SqlError:
    return SqlError(
        "42501",
        f'permission denied to read "{path}"',
        detail="The server reads files only inside the folders that it was started with.",
        hint="Start the server with --files DIR, or send the data with COPY ... FROM STDIN.",
    )


def spark_path(path: Path) -> str:
    """A file's path as Spark takes it: it decodes nothing, but would look for patterns."""
    return "file://" + _PATTERN.sub(r"\\\g<0>", str(path))
