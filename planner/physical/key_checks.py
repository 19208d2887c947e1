"""The arrangements in which indexes, UNIQUE and foreign keys look up equal keys.

Keys of types whose equal values may have different words are arranged by equality class. A row with a NULL in its key
is dropped, unless NULLs count as equal; then one more key word holds the keys' null bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ivm.rows import Words
from ivm.words import Schema
from planner import gathers
from planner.expr.context import Context
from planner.expr.row_errors import first_error
from planner.expr.scalar import Column, Scalar
from planner.logical.join_keys import by_class
from planner.logical.traversal import own_columns
from planner.physical.layouts import Arranging, Layout, arranged
from planner.physical.row_programs import MapFilter

KeyName = tuple[tuple[int, ...], bool, MapFilter | None]


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """Rows of ``schema`` arranged by ``columns``. ``program`` appends the equality classes if there are any; that of a
    ``computed`` key appends its expressions and keeps the rows of its predicate, and ``columns`` are places in its
    output.

    ``plain``: the arrangement is the one that lookups and joins by these columns use.
    """

    schema: Schema
    columns: tuple[int, ...]
    null_safe: bool
    program: MapFilter | None
    layout: Layout
    computed: bool = False

    @property
    def key(self) -> KeyName:
        """Identifies the key check among those of a relation."""
        return self.columns, self.null_safe, self.program if self.computed else None

    @property
    def plain(self) -> bool:
        return self.program is None and len(self.columns) == self.layout.key_width

    @property
    def arranging(self) -> Arranging:
        """How a plan names the arrangement."""
        return Arranging(self.program, self.layout.gather, self.layout.key_width)

    @property
    def parts(self) -> tuple[Scalar, ...]:
        """The parts of the key over the columns of ``schema``: equal values have equal words."""
        if self.computed and self.program is not None and self.program.exprs is not None:
            return tuple(self.program.exprs[c] for c in self.columns)
        return tuple(by_class(Column(c, self.schema[c].type, self.schema[c].nullable)) for c in self.columns)

    @property
    def predicates(self) -> tuple[Scalar, ...]:
        """The conditions of the rows that the arrangement has."""
        return () if self.program is None else self.program.predicates

    def keys(self, rows: Words, context: Context) -> tuple[Words, Words | None]:
        """(key words int64[m, key_width], each one's row index; None: all rows, in order).

        Rows without a key are dropped. SqlError: an expression's.
        """
        if self.computed:
            return self._computed(rows, context)
        if self.plain and not self.layout.gather.drop_if:
            first = self.columns[0]
            words = rows[:, first : first + 1] if len(self.columns) == 1 else rows[:, list(self.columns)]
            return np.ascontiguousarray(words), None
        moved, source = gathers.apply(self.layout.gather, self._classed(rows, context))
        return np.ascontiguousarray(moved[:, : self.layout.key_width]), source

    def _computed(self, rows: Words, context: Context) -> tuple[Words, Words | None]:
        assert self.program is not None, "a computed key has a program"
        made = self.program.run(rows, context)
        if made.errors is not None and len(made.errors):
            raise first_error(made.errors, context.dictionary)
        moved, source = gathers.apply(self.layout.gather, made.rows)
        if made.source is not None:
            source = made.source if source is None else made.source[source]
        return np.ascontiguousarray(moved[:, : self.layout.key_width]), source

    def restore(self, found: Words) -> Words:
        """Arranged rows as rows of ``schema``."""
        return gathers.apply(self.layout.restore(self.schema), found)[0]

    def _classed(self, rows: Words, context: Context) -> Words:
        return rows if self.program is None else self.program.run(rows, context).rows


@lru_cache(maxsize=4096)
def key_check(schema: Schema, columns: tuple[int, ...], null_safe: bool = False) -> KeyCheck:
    """The key check of a key. ``null_safe``: NULLs are equal to each other."""
    classed = [c for c in columns if schema[c].type.has_equality_class]
    program = None
    places = dict(zip(classed, range(len(schema), len(schema) + len(classed)), strict=True))
    if classed:
        classes = tuple(by_class(Column(c, schema[c].type, schema[c].nullable)) for c in classed)
        program = MapFilter(schema, (), (*own_columns(schema), *classes))
    laid = schema if program is None else program.output
    keys = [places.get(c, c) for c in columns]
    layout = arranged(laid, keys, [null_safe and laid[k].nullable for k in keys])
    return KeyCheck(schema, columns, null_safe, program, layout)


@lru_cache(maxsize=1024)
def computed_key_check(
    schema: Schema, parts: tuple[Scalar, ...], predicate: Scalar | None, null_safe: bool = False
) -> KeyCheck:
    """The key check of a key of expressions, for the rows that meet the predicate."""
    columns = tuple(range(len(schema), len(schema) + len(parts)))
    predicates = () if predicate is None else (predicate,)
    program = MapFilter(schema, predicates, (*own_columns(schema), *map(by_class, parts)))
    layout = arranged(program.output, columns, [null_safe and program.output[c].nullable for c in columns])
    return KeyCheck(schema, columns, null_safe, program, layout, computed=True)
