"""A sink's folder on this machine. Files are made visible by rename and entries by link, so that each appears
atomically.

A file is written under a hidden name, synced, and renamed. Then the entry that names it is linked to its number, which
fails if the number is taken: two servers cannot both write to one folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from storage.files import sync_path
from storage.sinks.envelope import SinkLayout
from storage.sinks.manifest import FOLDER, Entry, SinkFile, entry_from_json, taken
from storage.sinks.target import FILE_ROWS, OutputBlock, SinkFormat
from storage.sinks.writer import DataWriter, translated

_TEMPORARY: Final = ".unfinished-"
_ENTRY: Final = re.compile(r"\d{20}\.json\Z")
_FILE: Final = re.compile(r"g(\d+)-(\d+|snapshot)-(\d+)-\d{4}\.(?:parquet|jsonl|csv)\Z")


class FolderTarget:
    """The ``target.Target`` of a local folder. Raises 58P01, 42501, 53100, 58030."""

    def __init__(self, folder: Path, format: SinkFormat) -> None:
        self._folder = folder
        self._log = folder / FOLDER
        self._format = format
        self._last = -1

    def open(self, owner: str) -> Entry | None:
        with translated(self._folder):
            if os.path.realpath(self._folder) != str(self._folder):
                raise SqlError("42501", f'"{self._folder}" is not the folder any more that the sink was made for')
            os.stat(self._folder)
            self._log.mkdir(exist_ok=True)
            names = sorted(n for n in os.listdir(self._log) if _ENTRY.match(n))
            last = None
            if names:
                path = self._log / names[-1]
                last = entry_from_json(path.read_text(), str(path))
                if last.owner != owner:
                    raise taken(str(self._folder))
            self._sweep(last)
        self._last = -1 if last is None else last.version
        return last

    def write(self, stem: str, layout: SinkLayout, parts: Iterator[OutputBlock]) -> tuple[SinkFile, ...]:
        files: list[SinkFile] = []
        with translated(self._folder):
            for part in parts:
                files.append(self._file(f"{stem}-{len(files):04}.{self._format.value}", layout, part, parts))
            if files:
                sync_path(self._folder)
        return tuple(files)

    def commit(self, entry: Entry) -> None:
        path, hidden = self._log / entry.name, self._log / f"{_TEMPORARY}{entry.name}"
        with translated(self._folder):
            if self._last >= 0 and not (self._log / f"{self._last:020}.json").exists():
                raise SqlError("58P01", f'the entries that were in "{self._log}" are gone')
            with hidden.open("w") as file:
                file.write(entry.to_json() + "\n")
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(hidden, path)
            except FileExistsError:
                raise taken(str(self._folder)) from None
            finally:
                hidden.unlink()
            sync_path(self._log)
        self._last = entry.version

    def _file(self, name: str, layout: SinkLayout, first: OutputBlock, rest: Iterator[OutputBlock]) -> SinkFile:
        """Writes one file from the first part and as many further parts as fit."""
        hidden = self._folder / f"{_TEMPORARY}{name}"
        rows, low, high = first.rows, int(first.changes.epochs.min()), int(first.changes.epochs.max())
        with hidden.open("wb") as file:
            with DataWriter(file, self._format, layout.arrow_schema()) as writer:
                writer.write(first.fields, first.dictionary)
                while rows < FILE_ROWS and (part := next(rest, None)) is not None:
                    writer.write(part.fields, part.dictionary)
                    rows += part.rows
                    high = max(high, int(part.changes.epochs.max()))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        os.replace(hidden, self._folder / name)
        return SinkFile(name, rows, size, low, high)

    def _sweep(self, last: Entry | None) -> None:
        """Deletes unfinished files, and files later than the last entry, which no entry names."""
        for folder in (self._folder, self._log):
            for name in os.listdir(folder):
                found = _FILE.match(name)
                beyond = found is not None and folder is self._folder and _is_beyond(found, last)
                if beyond or name.startswith(_TEMPORARY):
                    (folder / name).unlink(missing_ok=True)


def _is_beyond(found: re.Match[str], last: Entry | None) -> bool:
    """Whether a file is later than what the last entry covers."""
    if last is None or int(found[1]) != last.generation:
        return last is None or int(found[1]) > last.generation
    return found[2] != "snapshot" and int(found[2]) >= last.upto
