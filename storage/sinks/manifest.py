"""The change log beside a sink's files: numbered entries, each of which makes its files count, all at once.

A reader that goes by the entries sees every change exactly once, whatever happened to the server between: a file that
no entry names does not count. Entry n is ``_changes/<n in 20 digits>.json``.
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
    """SNAPSHOT: a generation begins with all rows at ``upto``; START: it begins without them; CHANGES: those of the
    epochs after ``after`` up to ``upto``; PROGRESS: there were none."""

    SNAPSHOT = "snapshot"
    START = "start"
    CHANGES = "changes"
    PROGRESS = "progress"


@dataclass(frozen=True, slots=True)
class SinkFile:
    """A file, or the folder that Spark wrote, by its path under the sink's; the first and last epoch in it."""

    path: str
    rows: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Totals:
    """What a generation has so far."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def plus(self, files: tuple[SinkFile, ...]) -> Totals:
        rows, size = sum(f.rows for f in files), sum(f.bytes for f in files)
        return Totals(self.files + len(files), self.rows + rows, self.bytes + size)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. ``owner``: the sink's own random name. ``relation``: the id of what is read, ``restarts``: how often
    the sink was restarted, ``columns``: what the relation's are called: where one differs, a new generation begins.
    ``layout``: what the files look like, told by the first entry of a generation."""

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
    """The inverse of ``to_json``. XX001: it is none."""
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
    """The error for a folder that another sink writes, or has written."""
    return SqlError("55006", f'"{where}" already has the changes of another sink',
                    hint="Choose an empty folder, or remove what is there.")  # fmt: skip
