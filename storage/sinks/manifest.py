"""The change log beside a sink's files: numbered entries, each of which makes its files count atomically.

A reader that follows the entries sees every change exactly once, even across crashes: a file that no entry names does
not count. Entry n is ``_changes/<n in 20 digits>.json``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Final

from ivm.errors import SqlError

FOLDER: Final = "_changes"
FORMAT: Final = 1


class EntryKind(Enum):
    """SNAPSHOT: a generation begins with all rows at ``upto``; START: it begins without them; CHANGES: the changes at
    epochs after ``after`` up to ``upto``; PROGRESS: there were none in that range."""

    SNAPSHOT = "snapshot"
    START = "start"
    CHANGES = "changes"
    PROGRESS = "progress"


@dataclass(frozen=True, slots=True)
class SinkFile:
    """A file (or a folder, if Spark wrote it) by its path relative to the sink's; the first and last epoch in it."""

    path: str
    rows: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Totals:
    """A generation's totals so far."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def plus(self, files: tuple[SinkFile, ...]) -> Totals:
        rows, size = sum(f.rows for f in files), sum(f.bytes for f in files)
        return Totals(self.files + len(files), self.rows + rows, self.bytes + size)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. ``owner``: a random name that identifies the sink. A new generation begins when any of these changes:
    ``relation`` (the id of the relation read), ``restarts`` (of the sink), ``columns`` (the relation's column names).
    ``layout``: describes the files; set in a generation's first entry."""

    owner: str
    version: int
    generation: int
    kind: EntryKind
    after: int
    upto: int
    relation: int
    restarts: int = 0
    columns: tuple[str, ...] = ()
    files: tuple[SinkFile, ...] = ()
    totals: Totals = Totals()
    layout: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.version:020}.json"

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self), "kind": self.kind.value}, ensure_ascii=False)


def entry_from_json(text: str, where: str) -> Entry:
    """The inverse of ``to_json``. XX001 for any other text."""
    try:
        data = json.loads(text)
        if data.pop("format") != FORMAT:
            raise SqlError("XX001", f'"{where}" was written by another version')
        files = tuple(SinkFile(**each) for each in data.pop("files"))
        totals, kind = Totals(**data.pop("totals")), EntryKind(data.pop("kind"))
        columns = tuple(data.pop("columns", ()))
        return Entry(**data, columns=columns, files=files, totals=totals, kind=kind)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SqlError("XX001", f'"{where}" is damaged', detail=str(error)) from error


def taken(where: str) -> SqlError:
    """The error for a folder that another sink writes or has written."""
    return SqlError("55006", f'"{where}" already has the changes of another sink',
                    hint="Choose an empty folder, or remove what is there.")  # fmt: skip
