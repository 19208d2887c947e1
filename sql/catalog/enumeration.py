"""Enums in the catalog: their labels, and the position of an added one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import EnumType
from planner.identifiers import quoted

GAP: Final = 1 << 40
"""The distance between labels that are declared together: it can be halved forty times."""
LONGEST: Final = 63


@dataclass(frozen=True, slots=True)
class Label:
    """``word``: its value, in sort order. ``oid``: pg_enum.oid."""

    word: int
    text: str
    oid: int


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enum of one catalog. ``type``: the single object shared by the types of columns and expressions; it has the
    name and labels last published, while this object has those of its own catalog."""

    type: EnumType
    name: str
    labels: tuple[Label, ...]

    def publish(self) -> None:
        """Makes this name and these labels the ones by which the type is shown and its values are read and printed."""
        self.type.name, self.type.shown = self.name, quoted(self.name)
        self.type.hold((label.word, label.text) for label in self.labels)

    def find(self, text: str) -> int | None:
        """A label's index, None if there is no such label."""
        return next((i for i, label in enumerate(self.labels) if label.text == text), None)


def declared(oid: int, name: str, texts: tuple[str, ...]) -> Enumeration:
    """A new enum with these labels. The oids following its own are its array's and the labels'. Raises 42602, 23505."""
    for text in texts:
        check_label(text)
    for i, text in enumerate(texts):
        if text in texts[:i]:
            detail = f"Key (enumtypid, enumlabel)=({oid}, {text}) already exists."
            message = 'duplicate key value violates unique constraint "pg_enum_typid_label_index"'
            raise SqlError("23505", message, detail)
    labels = tuple(Label(i * GAP, text, oid + 2 + i) for i, text in enumerate(texts))
    made = Enumeration(EnumType(oid, oid + 1, name, quoted(name)), name, labels)
    made.publish()
    return made


def check_label(text: str) -> None:
    """Raises 42602 if the label is too long."""
    if len(text.encode()) > LONGEST:
        detail = f"Labels must be {LONGEST} bytes or less."
        raise SqlError("42602", f'invalid enum label "{text}"', detail)


def added(enum: Enumeration, text: str, oid: int, neighbor: tuple[str, bool] | None) -> Enumeration:
    """Adds a label: last, or before (True) or after a neighbor. Raises 22023."""
    labels = enum.labels
    place = len(labels)
    if neighbor is not None:
        found = enum.find(neighbor[0])
        if found is None:
            raise SqlError("22023", f'"{neighbor[0]}" is not an existing enum label')
        place = found if neighbor[1] else found + 1
    word = _between(labels, place)
    return replace(enum, labels=(*labels[:place], Label(word, text, oid), *labels[place:]))


def _between(labels: tuple[Label, ...], place: int) -> int:
    if not labels:
        return 0
    if place == 0:
        return labels[0].word - GAP
    if place == len(labels):
        return labels[-1].word + GAP
    low, high = labels[place - 1].word, labels[place].word
    if high - low < 2:
        hint = "Make a new type, and change the columns to it through text."
        raise unsupported("one more label between two that have had so many put between them", hint)
    return (low + high) // 2


def renamed(enum: Enumeration, old: str, new: str) -> Enumeration:
    """Renames a label. Raises 22023, 42710."""
    check_label(new)
    place = enum.find(old)
    if place is None:
        raise SqlError("22023", f'"{old}" is not an existing enum label')
    if enum.find(new) is not None:
        raise SqlError("42710", f'enum label "{new}" already exists')
    label = replace(enum.labels[place], text=new)
    return replace(enum, labels=(*enum.labels[:place], label, *enum.labels[place + 1 :]))


def enum_to_json(enum: Enumeration) -> dict[str, object]:
    """The inverse of ``enum_from_json``."""
    labels = [[label.word, label.text, label.oid] for label in enum.labels]
    return {"array_oid": enum.type.array_oid, "labels": labels}


def enum_from_json(oid: int, name: str, data: Mapping[str, Any], known: EnumType | None) -> Enumeration:
    """``known``: the type's existing object, if there is one."""
    labels = tuple(Label(*label) for label in data["labels"])
    made = Enumeration(known or EnumType(oid, data["array_oid"], name, quoted(name)), name, labels)
    made.publish()
    return made
