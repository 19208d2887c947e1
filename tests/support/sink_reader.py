"""An independent reader of a sink's folder: it relies on the entries of ``_changes`` alone, with pyarrow and csv."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = tuple[Any, ...]
Change = tuple[int, int, Row]
"""Epoch, diff, row."""


def entries(folder: Path) -> list[dict[str, Any]]:
    """All entries; checks that they are numbered from 0 without gaps, in the order of time."""
    names = sorted(p.name for p in (folder / "_changes").iterdir() if p.name[0] != ".")
    assert names == [f"{i:020}.json" for i in range(len(names))]
    found = [json.loads((folder / "_changes" / name).read_text()) for name in names]
    for before, after in pairwise(found):
        if before["generation"] == after["generation"]:
            assert after["after"] == before["upto"] < after["upto"], (before, after)
        else:
            assert after["generation"] == before["generation"] + 1
    return found


def latest(folder: Path) -> list[dict[str, Any]]:
    """The entries of the last generation."""
    found = entries(folder)
    return [e for e in found if e["generation"] == found[-1]["generation"]]


def records(folder: Path, entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The contents of an entry's files, in order."""
    for file in entry["files"]:
        path = folder / file["path"]
        found = list(_records(path))
        assert len(found) == file["rows"]
        assert path.stat().st_size == file["bytes"]
        epochs = [int(r["mz_timestamp"]) for r in found]
        assert (min(epochs), max(epochs)) == (file["first"], file["last"])
        assert epochs == sorted(epochs)
        assert all(entry["after"] < e <= entry["upto"] or entry["kind"] == "snapshot" for e in epochs)
        yield from found


def _records(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        yield from pq.ParquetFile(path).read().to_pylist()
    elif path.suffix == ".jsonl":
        yield from (json.loads(line) for line in path.read_text().splitlines())
    else:
        with path.open(newline="") as file:
            yield from csv.DictReader(file)


def changes(folder: Path) -> list[Change]:
    """A CHANGELOG's changes of the last generation, in order."""
    found = []
    for entry in latest(folder):
        for record in records(folder, entry):
            epoch, diff, *row = record.values()
            found.append((int(epoch), int(diff), tuple(map(hashable, row))))
    return found


def contents(of: list[Change], at: int) -> Counter[Row]:
    """The rows at an epoch."""
    rows: Counter[Row] = Counter()
    for epoch, diff, row in of:
        if epoch <= at:
            rows[row] += diff
    assert all(n >= 0 for n in rows.values()), "no row goes that is not there"
    return +rows


def stray(folder: Path) -> set[str]:
    """Files that no entry lists."""
    named = {file["path"] for entry in entries(folder) for file in entry["files"]}
    return {p.name for p in folder.iterdir() if p.name != "_changes"} - named


def hashable(value: Any) -> Any:
    """A hashable form of a value, equal to itself even for NaN."""
    if isinstance(value, list):
        return tuple(map(hashable, value))
    return "NaN" if value != value else value  # noqa: PLR0124
