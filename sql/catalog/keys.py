"""Indexes and constraints of a relation, as stored in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

INDEX_BASE: Final = 0x4000_0000
"""The offset of a primary key index's oid from its table's."""
NAME_BYTES: Final = 63
"""The maximum length of a name in Postgres, in bytes."""


@dataclass(frozen=True, slots=True)
class Index:
    """An arrangement of a relation by ``columns`` (positions); ``unique`` rejects duplicates.

    ``id`` is its oid. ``constraint``: created by PRIMARY KEY or UNIQUE, and dropped with that constraint.
    ``nulls_distinct``: rows with a NULL in the key are never duplicates. ``descending`` and ``nulls_first``: by column,
    as written; they are only displayed, since an arrangement has no order. ``included``: columns of INCLUDE.
    """

    id: int
    name: str
    columns: tuple[int, ...]
    unique: bool = False
    primary: bool = False
    constraint: bool = False
    nulls_distinct: bool = True
    method: str = "btree"
    descending: tuple[bool, ...] = ()
    nulls_first: tuple[bool, ...] = ()
    included: tuple[int, ...] = ()


def index_to_json(index: Index) -> dict[str, object]:
    """Leaves out default values; ``index_from_json`` reads it back."""
    found: dict[str, object] = {"id": index.id, "name": index.name, "columns": list(index.columns)}
    for name in _OPTIONAL:
        value = getattr(index, name)
        if value != getattr(_USUAL, name):
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


def index_from_json(data: Mapping[str, Any]) -> Index:
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    return Index(**fields)


_USUAL: Final = Index(0, "", ())
_OPTIONAL: Final = (
    "unique", "primary", "constraint", "nulls_distinct", "method", "descending", "nulls_first", "included",
)  # fmt: skip


def object_name(relation: str, columns: str, label: str) -> str:
    """``relation_columns_label`` in at most 63 bytes, shortening the longer of the first two parts (makeObjectName)."""
    first, second = relation.encode(), columns.encode()
    overhead = len(label) + 1 + (1 if columns else 0)
    while len(first) + len(second) + overhead > NAME_BYTES:
        if len(first) > len(second):
            first = first[:-1]
        else:
            second = second[:-1]
    parts = [first.decode(errors="ignore"), second.decode(errors="ignore"), label]
    return "_".join(p for p in parts if p)


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK condition, as SQL text. ``columns``: those that it names, ordered by position."""

    id: int
    name: str
    text: str
    columns: tuple[int, ...] = ()


def check_to_json(check: Check) -> list[object]:
    """The inverse of ``check_from_json``."""
    return [check.id, check.name, check.text, list(check.columns)]


def check_from_json(data: list[Any]) -> Check:
    id_, name, text, columns = data
    return Check(id_, name, text, tuple(columns))


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` (positions) refer to a row of the table with oid ``parent`` by its unique ``keys`` (names, in the
    order of the parent's index). The actions: no action, restrict, cascade, set null or set default. ``changed``: the
    columns that ON DELETE SET changes, all if empty."""

    id: int
    name: str
    columns: tuple[int, ...]
    parent: int
    keys: tuple[str, ...]
    on_delete: str = "no action"
    on_update: str = "no action"
    changed: tuple[int, ...] = ()


def foreign_key_to_json(key: ForeignKey) -> list[object]:
    """The inverse of ``foreign_key_from_json``."""
    actions = [key.on_delete, key.on_update, list(key.changed)]
    return [key.id, key.name, list(key.columns), key.parent, list(key.keys), *actions]


def foreign_key_from_json(data: list[Any]) -> ForeignKey:
    id_, name, columns, parent, keys, on_delete, on_update, changed = data
    return ForeignKey(id_, name, tuple(columns), parent, tuple(keys), on_delete, on_update, tuple(changed))
