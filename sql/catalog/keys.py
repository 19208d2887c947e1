"""Indexes and constraints of a relation, as stored in the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

INDEX_BASE: Final = 0x4000_0000
"""The offset of a primary key index's oid from its table's."""
CONSTRAINT_BASE: Final = 0x5000_0000
"""The offset of a constraint's oid from its index's."""
NAME_BYTES: Final = 63
"""The maximum length of a name in Postgres, in bytes."""


@dataclass(frozen=True, slots=True)
class Index:
    """An arrangement of a relation by ``columns`` (positions); ``unique`` rejects duplicates.

    ``id`` is its oid. ``constraint``: created by PRIMARY KEY or UNIQUE, and dropped with that constraint.
    ``nulls_distinct``: rows with a NULL in the key are never duplicates. ``descending`` and ``nulls_first``: by column,
    as written; they are only displayed, since an arrangement has no order. ``included``: columns of INCLUDE.
    ``deferrable``, ``deferred``: DEFERRABLE, INITIALLY DEFERRED.
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
    deferrable: bool = False
    deferred: bool = False
    expressions: tuple[str | None, ...] = ()
    """Of an index over expressions, for each part of its key the expression's text; None: the next of ``columns``."""
    where: str | None = None
    """The predicate of a partial index, as SQL text: the index has only the rows for which it is true."""
    used: tuple[int, ...] = ()
    """The columns that expressions and predicate name, ordered by position."""
    operators: tuple[str, ...] = ()
    """Of an EXCLUDE constraint: the operator of each part. No two rows may meet them all."""

    @property
    def computed(self) -> bool:
        """Whether it has expressions or a predicate. Such a unique index rejects rows, but is no key of the table."""
        return bool(self.expressions) or self.where is not None

    @property
    def arranged(self) -> bool:
        """Whether it is an arrangement. Those of other methods are kept to be shown, and serve nothing."""
        return self.method in ("btree", "hash") or bool(self.operators)

    @property
    def width(self) -> int:
        """The number of its key's parts."""
        return len(self.expressions) or len(self.columns)

    @property
    def parts(self) -> tuple[str | int, ...]:
        """Its key's parts: a column's position, or an expression's text."""
        columns = iter(self.columns)
        return tuple(next(columns) if e is None else e for e in self.expressions or (None,) * len(self.columns))


def constraint_oid(index: Index) -> int:
    """The oid of the constraint behind an index."""
    return index.id - INDEX_BASE + CONSTRAINT_BASE if index.primary else index.id + CONSTRAINT_BASE


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
    """A CHECK condition, as SQL text. ``columns``: those that it names, ordered by position. ``local``: it is the
    table's own, and not only inherited. ``valid``: all rows meet it, not only new ones."""

    id: int
    name: str
    text: str
    columns: tuple[int, ...] = ()
    local: bool = True
    no_inherit: bool = False
    valid: bool = True


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` (positions) refer to a row of the table with oid ``parent`` by its unique ``keys`` (names, in the
    order of the parent's index). The actions: no action, restrict, cascade, set null or set default. ``changed``: the
    columns that ON DELETE SET changes, all if empty. ``valid``: as in ``Check``."""

    id: int
    name: str
    columns: tuple[int, ...]
    parent: int
    keys: tuple[str, ...]
    on_delete: str = "no action"
    on_update: str = "no action"
    changed: tuple[int, ...] = ()
    valid: bool = True
    deferrable: bool = False
    deferred: bool = False
    full: bool = False
    """MATCH FULL: its columns are all NULL, or none is."""
    origin: int = 0
    """Of a partition: the id of its table's foreign key that it is a copy of; 0: it is the table's own."""
