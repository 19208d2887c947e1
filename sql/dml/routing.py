"""Which partition a row belongs to, and the errors for rows that belong to none or to another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ivm.errors import SqlError, Subject
from ivm.rows import Mask, RowSet, Vector, Words, pack, unpack
from ivm.words import ColumnType
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate, evaluated
from sql.bind.partitions import conditions, key_expressions
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.partitioning import PartitionBound
from sql.dml.constraints import fit, row_text
from sql.dml.key_index import KeyIndex
from storage.types.text import format_text


@dataclass(frozen=True, slots=True)
class Routed:
    """The rows of one partition, in its own layout. ``places``: their positions among the routed rows."""

    leaf: Relation
    places: Words
    rows: Words


@dataclass(frozen=True, slots=True)
class Router:
    """Routes rows for one statement. Rows of a partitioned table have its ``row_schema``."""

    catalog: Catalog
    keys: KeyIndex
    context: Context

    def route(self, table: Relation, rows: Words) -> list[Routed]:
        """The rows, grouped by leaf partition. Raises 23514, 23502."""
        return self._route(self.catalog.relations[table.id], rows, np.arange(len(rows)))

    def _route(self, table: Relation, rows: Words, places: Words) -> list[Routed]:
        if table.partitioning is None:
            return [Routed(table, places, rows)]
        found = self._placed(table, rows)
        if (found < 0).any():
            raise self._homeless(table, rows[int(np.flatnonzero(found < 0)[0])])
        result = []
        for number, child in enumerate(self._children(table)):
            chosen = np.flatnonzero(found == number)
            if len(chosen):
                result += self._route(child, self.converted(table, child, rows[chosen]), places[chosen])
        return result

    def check(self, table: Relation, rows: Words) -> None:
        """23514 for the first row, in a partition's layout, that violates the partition's bounds."""
        taken = self.taken(table, rows)
        if not taken.all():
            columns = unpack(rows[np.flatnonzero(~taken)[:1]], table.row_schema)
            raise SqlError(
                "23514", f'new row for relation "{table.name}" violates partition constraint',
                f"Failing row contains {row_text(table, columns, self.context.dictionary)}.",
                subject=Subject(table.schema_name, table.name),
            )  # fmt: skip

    def taken(self, table: Relation, rows: Words) -> Mask:
        """For each row, whether a partition and its ancestors accept it."""
        result = np.ones(len(rows), np.bool_)
        child = self.catalog.relations[table.id]
        while child.bound is not None and len(rows):
            parent = next(r for r in self.catalog.relations.values() if r.oid == child.parents[0])
            rows = self.converted(child, parent, rows)
            result &= self._placed(parent, rows) == [c.id for c in self._children(parent)].index(child.id)
            child = parent
        return result

    def meets(self, source: Relation, table: Relation, rows: Words, bound: PartitionBound) -> bool:
        """Whether any row of ``source`` is within this bound of the partitioned table."""
        if bound.kind == "default" or not len(rows):
            return False
        columns = unpack(self.converted(source, table, rows), table.row_schema)
        vectors = evaluated(conditions(table, (bound,)), columns, len(rows), self.context)
        return bool(_met(vectors[0]).any())

    def _children(self, table: Relation) -> list[Relation]:
        return [self.catalog.relations[i] for i in table.children]

    def _placed(self, table: Relation, rows: Words) -> Words:
        """For each row, the index of the child that accepts it; -1 if none does."""
        children = self._children(table)
        result = np.full(len(rows), -1, np.int64)
        columns = unpack(rows, table.row_schema)
        known = self.keys.partitions(table, tuple(c.bound for c in children if c.bound is not None))
        vectors = evaluated(known, columns, len(rows), self.context)
        numbers = [i for i, c in enumerate(children) if c.bound is not None and c.bound.kind != "default"]
        for number, vector in zip(numbers, vectors, strict=True):
            result[_met(vector)] = number
        for number, child in enumerate(children):
            if child.bound is not None and child.bound.kind == "default":
                result[result < 0] = number
        return result

    def converted(self, source: Relation, target: Relation, rows: Words) -> Words:
        """Rows of one table converted to another's layout, matching columns by name. Raises 23502."""
        if source.row_schema == target.row_schema and _names(source) == _names(target):
            return rows
        given = dict(zip(_names(source), unpack(rows, source.row_schema), strict=True))
        vectors: list[Vector] = [given[name] for name in _names(target)]
        columns = zip(target.columns, vectors, strict=True)
        schema = tuple(ColumnType(c.type, v.nulls is not None) for c, v in columns)
        return fit(target, RowSet(pack(vectors, schema, len(rows)), schema), self.context)

    def _homeless(self, table: Relation, row: Words) -> SqlError:
        key = table.partitioning
        assert key is not None, "rows are routed through partitioned tables"
        exprs = key_expressions(table.name, table.columns, key)
        vectors, _ = evaluate(exprs, unpack(row.reshape(1, -1), table.row_schema), 1, self.context)
        texts = [format_text(e.type, v, self.context.dictionary)[0] for e, v in zip(exprs, vectors, strict=True)]
        values = ", ".join("null" if t is None else t.decode() for t in texts)
        return SqlError(
            "23514", f'no partition of relation "{table.name}" found for row',
            f"Partition key of the failing row contains ({', '.join(key.keys)}) = ({values}).",
            subject=Subject(table.schema_name, table.name),
        )  # fmt: skip


def _met(vector: Vector) -> Mask:
    return np.asarray(vector.words != 0 if vector.nulls is None else (vector.words != 0) & ~vector.nulls)


def _names(table: Relation) -> list[str]:
    return [c.name for c in table.columns]
