"""Resolves the files that a statement names: local ones inside the folders of ``--files`` (after following links), or
remote ones.

Remote files, with a scheme such as ``s3a://``, are read by Spark only: this process never opens a path of theirs.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from ivm.errors import SqlError
from storage.passwords import hide_passwords

_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")
_WILD: Final = re.compile(r"[*?\[]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(?=://)|([fF][iI][lL][eE])(?=:/)")
REMOTE: Final = ("abfs", "abfss", "gs", "hdfs", "oss", "s3", "s3a", "viewfs", "wasb", "wasbs")
"""URI schemes that Spark's connectors read."""


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Real paths, sorted, at least one, below ``root`` (partition columns are folders below it)."""

    files: tuple[Path, ...]
    root: Path

    @property
    def size(self) -> int:
        """Total size in bytes, as stored."""
        return sum(file.stat().st_size for file in self.files)

    def relative(self) -> list[str]:
        """The files' paths relative to the root."""
        return [str(file.relative_to(self.root)) if self.root in file.parents else file.name for file in self.files]


@dataclass(frozen=True, slots=True)
class RemoteFiles:
    """A URI that only Spark reads, as the statement gives it: a file, a folder, a Hadoop pattern, a database."""

    uri: str

    @property
    def shown(self) -> str:
        """The URI for messages and plans, without passwords."""
        return hide_passwords(self.uri)

    def not_here(self) -> SqlError:
        """0A000, for a URI that this process does not read."""
        return SqlError("0A000", f'"{self.shown}" is read by Spark only')

    def below(self, path: str) -> str:
        """A file's path relative to the URI's folder, or from where its pattern begins."""
        root = _WILD.split(self.uri)[0]
        root = root if root == self.uri else root.rpartition("/")[0]
        return path.removeprefix(root.rstrip("/") + "/")


Location = LocalFiles | RemoteFiles


def locate(path: str, folders: Sequence[Path], suffixes: tuple[str, ...]) -> Location:
    """What a statement's path refers to: a file, a folder (all files below it that end in one of ``suffixes``), a
    pattern (``*``, ``?``, ``[…]``, ``**`` for any folders), or a URI.

    Raises 42501 outside the folders (before revealing whether it exists), 58P01 if nothing is there, 42809 for what is
    neither file nor folder, 0A000 for an unknown scheme.
    """
    scheme = _SCHEME.match(path)
    if scheme is not None and scheme[0].lower() != "file":
        if scheme[0].lower() not in REMOTE:
            hint = f"Spark reads {', '.join(f'{name}://' for name in REMOTE)}; the server reads its own files."
            raise SqlError("0A000", f'nothing reads files from "{scheme[0]}://"', hint=hint)
        return RemoteFiles(path)
    plain = path if scheme is None else _path_of_uri(path)
    allowed = [Path(os.path.realpath(folder)) for folder in folders]
    if _WILD.search(plain) and not any(os.path.lexists(p) for p in _candidates(plain, allowed)):
        return _matching(plain, path, allowed, suffixes)
    found = resolve_path(plain, folders)
    if found.is_file():
        return LocalFiles((found,), found.parent)
    return LocalFiles(tuple(_below(found, allowed, suffixes)), found)


def resolve_path(path: str, folders: Sequence[Path]) -> Path:
    """The real path of a file or folder that a statement names. A relative path is looked up in the folders.

    Raises 42501 outside the folders (before revealing whether it exists), 58P01 if it does not exist.
    """
    allowed = [Path(os.path.realpath(folder)) for folder in folders]
    inside = [real for real in map(_real, _candidates(path, allowed)) if _is_inside(real, allowed)]
    if not inside:
        raise _denied(path)
    for real in inside:
        if real.exists():
            return real
    raise _missing(path)


def _path_of_uri(uri: str) -> str:
    """The path of a file: URI. ``file:///a%20b``, ``file:/a%20b`` and ``file://localhost/a%20b`` are all /a b."""
    rest = unquote(uri[len("file:") :])
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise SqlError("0A000", f'"{uri}" is a file of another host, "{host}"')
        return slash + path
    return rest


def _candidates(path: str, allowed: Sequence[Path]) -> list[Path]:
    return [Path(path)] if os.path.isabs(path) else [folder / path for folder in allowed]


def _matching(pattern: str, path: str, allowed: Sequence[Path], suffixes: tuple[str, ...]) -> LocalFiles:
    """The files that match a pattern, and those in matching folders. The prefix before its first wildcard must be
    inside."""
    parts = Path(pattern).parts
    wild = next(i for i, part in enumerate(parts) if _WILD.search(part))
    if ".." in parts[wild:]:
        raise _denied(path)
    roots = [_real(root) for root in _candidates(str(Path(*parts[:wild])), allowed)]
    inside = [root for root in roots if _is_inside(root, allowed)]
    if not inside:
        raise _denied(path)
    for root in inside:
        names = sorted(glob.glob(str(Path(*parts[wild:])), root_dir=root, recursive=True))
        found: dict[Path, None] = {}
        for name in names:
            real = _checked(root / name, allowed)
            if any(map(_is_hidden, Path(name).parts)):
                continue
            if real.is_file():
                found[real] = None
            elif real.is_dir() and "**" not in parts:
                found |= dict.fromkeys(_below(real, allowed, suffixes))
        if found:
            return LocalFiles(tuple(found), root)
    raise _missing(path)


def _below(folder: Path, allowed: Sequence[Path], suffixes: tuple[str, ...]) -> list[Path]:
    """All files below a folder, sorted, in the layout in which Spark and others write a table."""
    if not folder.is_dir():
        raise SqlError("42809", f'"{folder}" is not a file')
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        fitting = [name for name in names if name.lower().endswith(suffixes) and not _is_hidden(name)]
        found += [_checked(Path(place, name), allowed) for name in fitting]
    files = sorted(file for file in found if file.is_file())
    if not files:
        raise SqlError("58P01", f'the folder "{folder}" has no {suffixes[0]} files')
    return files


def _is_hidden(name: str) -> bool:
    """Whether it is a marker or unfinished file of Spark or Hive. A partition column may begin with an underscore."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _checked(file: Path, allowed: Sequence[Path]) -> Path:
    real = _real(file)
    if not _is_inside(real, allowed):
        raise _denied(str(file))
    return real


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_inside(real: Path, allowed: Sequence[Path]) -> bool:
    return any(real == folder or folder in real.parents for folder in allowed)


def _missing(path: str) -> SqlError:
    return SqlError("58P01", f'could not open file "{path}" for reading: No such file or directory')


def _denied(path: str) -> SqlError:
    return SqlError(
        "42501",
        f'permission denied to read "{path}"',
        detail="The server reads files only inside the folders that it was started with.",
        hint="Start the server with --files DIR, or send the data with COPY ... FROM STDIN.",
    )


def spark_path(path: Path) -> str:
    """A file's path for Spark, which decodes nothing but expands patterns."""
    return "file://" + _PATTERN.sub(r"\\\g<0>", str(path))


def spark_uri(path: str) -> str:
    """A file that Spark returned as a URI, as Spark takes it."""
    return _PATTERN.sub(r"\\\g<0>", unquote(path))


def local_path(path: str) -> str:
    """A human-readable path from the URI that Spark returns."""
    return unquote(path).removeprefix("file://").removeprefix("file:")
