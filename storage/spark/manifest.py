"""A scattered view's folder: immutable files, and a manifest that says which of them count.

manifest.json         the files of every part as of an epoch; replaced atomically by a rename
parts/…               files of the parts' traces, and of the view's own rows
changes/…             the changes of the view's rows, for subscriptions and sinks
jobs/<name>/…         a job's input and its report; deleted when the next job has been applied

A job writes files under names of its own, which nobody reads before a manifest names them. A job that fails, is
retried or is left unfinished therefore changes nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from storage.files import replace_file

_NAME: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class Layer:
    """A file of one part: ``file`` relative to the folder, its number of updates, and its size in bytes."""

    file: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Changes:
    """A file of the view's own updates: ``rows`` of them, at epochs after the previous file's ``upto`` up to this
    ``upto``."""

    file: str
    upto: int
    rows: int


Layers = Mapping[int, tuple[Layer, ...]]
"""By partition number (``planner.distributed.partitioning``): the files whose updates add up to a part."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The state after job ``number``: everything up to ``epoch`` has been applied. ``plan``: identifies the plan that
    the parts belong to. ``parts``: the number of parts of each fragment. ``changes``: all changes of the view's rows
    after the epoch ``since``, oldest first."""

    number: int
    epoch: int
    plan: str
    parts: int
    layers: dict[int, tuple[Layer, ...]] = field(default_factory=dict)
    changes: tuple[Changes, ...] = ()
    since: int = 0

    @property
    def files(self) -> set[str]:
        """All files that count."""
        layers = {layer.file for layers in self.layers.values() for layer in layers}
        return layers | {changes.file for changes in self.changes}


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest, None if there is none yet. XX001: it cannot be read, or a file that it names is
    missing."""
    try:
        found = json.loads((folder / _NAME).read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise SqlError("XX001", "a scattered view's manifest is damaged", str(error)) from error
    layers = {int(place): tuple(Layer(*layer) for layer in some) for place, some in found.pop("layers").items()}
    changes = tuple(Changes(*some) for some in found.pop("changes", ()))
    found.setdefault("since", found["epoch"])  # written before changes were kept
    manifest = Manifest(**found, layers=layers, changes=changes)
    missing = sorted(file for file in manifest.files if not (folder / file).exists())
    if missing:
        raise SqlError("XX001", "a scattered view's folder is damaged", f"{missing[0]} is missing in {folder}")
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Durably and atomically replaces the folder's manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    data = asdict(manifest)
    data["layers"] = {
        place: [(layer.file, layer.rows, layer.size) for layer in some] for place, some in manifest.layers.items()
    }
    data["changes"] = [(changes.file, changes.upto, changes.rows) for changes in manifest.changes]
    replace_file(folder / _NAME, json.dumps(data))


def clean(folder: Path, manifest: Manifest) -> int:
    """Deletes files that do not count: those of older generations and of failed jobs. Returns how many. No job may be
    running."""
    kept = manifest.files
    found = [path for name in ("parts", "changes") for path in (folder / name).glob("*")]
    gone = [path for path in found if f"{path.parent.name}/{path.name}" not in kept]
    for path in gone:
        path.unlink(missing_ok=True)
    shutil.rmtree(folder / "jobs", ignore_errors=True)
    return len(gone)
