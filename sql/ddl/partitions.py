"""Partitions come and go: bounds, what they must not overlap, ATTACH and DETACH, INHERIT and NO INHERIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ivm.errors import SqlError, unsupported
from ivm.rows import Words
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.scalar import Scalar
from sql.bind.partitions import bound_value, edge_text, key_expressions
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.partitioning import MAXIMUM, MINIMUM, VALUE, Bound, Edge, WrittenBound
from sql.ddl.alter_views import rebuild_views
from sql.dml.routing import Router
from sql.engine.writer import Writer
from sql.statements.definitions import CreateTable
from sql.statements.partitions import Attach, Detach
from storage.types.text import format_text, parse_datum

if TYPE_CHECKING:
    from sql.ddl.create import Definer
    from sql.dml.changes import Changer


def partition_parts(changer: Changer, table: Relation, statement: CreateTable) -> Relation:
    """A new table with its partition key and its bound. Raises what ``new_bound`` raises."""
    table = replace(table, partitioning=statement.partitioning)
    if statement.bound is None:
        return table
    catalog = changer.writer.catalog
    parent = catalog.relations[statement.parents[0].id]
    return replace(table, bound=new_bound(changer, parent, table, statement.bound))


def check_keys(table: Relation) -> None:
    """0A000 where a partitioned table's key is not one within each partition alone."""
    key = table.partitioning
    if key is None:
        return
    for index in table.keys:
        kind = "PRIMARY KEY" if index.primary else "UNIQUE"
        if not all(key.columns):
            detail = f"{kind} constraints cannot be used when partition keys include expressions."
            raise SqlError("0A000", f"unsupported {kind} constraint with partition key definition", detail)
        own = {table.columns[i].name for i in index.columns}
        for column in key.columns:
            if column not in own:
                raise SqlError(
                    "0A000", "unique constraint on partitioned table must include all partitioning columns",
                    f'{kind} constraint on table "{table.name}" lacks column "{column}" which is part of the '
                    "partition key.",
                )  # fmt: skip


def new_bound(changer: Changer, parent: Relation, table: Relation, written: WrittenBound) -> Bound:
    """The bound of a partition to be. Raises 42P17, 42804; 23514 where the default partition has rows for it."""
    writer, context = changer.writer, changer.context
    key = parent.partitioning
    assert key is not None, "the parent is partitioned"
    exprs = key_expressions(parent.name, parent.columns, key)
    bound = _evaluated(exprs, key.strategy, key.keys, written, context)
    siblings = [writer.catalog.relations[i] for i in parent.children]
    default = next((s for s in siblings if s.bound is not None and s.bound.kind == "default"), None)
    if bound.kind == "default" and default is not None:
        message = f'partition "{table.name}" conflicts with existing default partition "{default.name}"'
        raise SqlError("42P17", message)
    _check_overlap(exprs, table, bound, siblings)
    if default is not None:
        _check_default(changer, parent, default, bound)
    return bound


def _evaluated(
    exprs: Sequence[Scalar], strategy: str, names: Sequence[str], written: WrittenBound, context: Context
) -> Bound:
    if written.kind not in ("default", strategy):
        raise SqlError("42P16", f"invalid bound specification for a {strategy} partition")
    if written.kind == "default":
        return Bound("default")
    if written.kind == "list":
        values = (_text(exprs[0], text, names[0], context) for text in written.values)
        return Bound("list", tuple(dict.fromkeys(values)))
    for which, edges in (("FROM", written.lower), ("TO", written.upper)):
        if len(edges) != len(exprs):
            raise SqlError("42P16", f"{which} must specify exactly one value per partitioning column")
    lower, upper = (_edges(exprs, names, texts, context) for texts in (written.lower, written.upper))
    return Bound("range", lower=lower, upper=upper)


def _text(key: Scalar, text: str, name: str, context: Context) -> str | None:
    value = bound_value(key, text, name)
    (vector,), failures = evaluate((value,), [], 1, context)
    if failures is not None:
        raise failures.errors[0]
    found = format_text(key.type, vector, context.dictionary)[0]
    return None if found is None else found.decode()


def _edges(exprs: Sequence[Scalar], names: Sequence[str], texts: Sequence[str], context: Context) -> tuple[Edge, ...]:
    found: list[Edge] = []
    for expr, name, text in zip(exprs, names, texts, strict=True):
        infinite = {"minvalue": MINIMUM, "maxvalue": MAXIMUM}.get(text.lower(), VALUE)
        if found and found[-1][0] != VALUE and infinite != found[-1][0]:
            word = "MINVALUE" if found[-1][0] == MINIMUM else "MAXVALUE"
            raise SqlError("42804", f"every bound following {word} must also be {word}")
        value = "" if infinite != VALUE else _text(expr, text, name, context)
        if value is None:
            raise SqlError("42P17", "cannot specify NULL in range bound")
        found.append((infinite, value))
    return tuple(found)


def _check_overlap(exprs: Sequence[Scalar], table: Relation, bound: Bound, siblings: Sequence[Relation]) -> None:
    lower, upper = _place(exprs, bound.lower), _place(exprs, bound.upper)
    if bound.kind == "range" and lower >= upper:
        raise SqlError(
            "42P17", f'empty range bound specified for partition "{table.name}"',
            f"Specified lower bound {edge_text(bound.lower, exprs)} is greater than or equal to upper bound "
            f"{edge_text(bound.upper, exprs)}.",
        )  # fmt: skip
    for sibling in sorted(siblings, key=lambda s: _place(exprs, s.bound.lower) if s.bound is not None else []):
        other = sibling.bound
        assert other is not None, "a partition has a bound"
        if other.kind != bound.kind or bound.kind == "default":
            continue
        if bound.kind == "list":
            overlaps = bool(_datums(exprs, bound) & _datums(exprs, other))
        else:
            overlaps = lower < _place(exprs, other.upper) and _place(exprs, other.lower) < upper
        if overlaps:
            raise SqlError("42P17", f'partition "{table.name}" would overlap partition "{sibling.name}"')


def _datums(exprs: Sequence[Scalar], bound: Bound) -> set[object]:
    return {None if v is None else parse_datum(exprs[0].type, v) for v in bound.values}


def _place(exprs: Sequence[Scalar], edges: tuple[Edge, ...]) -> list[Any]:
    """What orders ends of ranges."""
    return [
        (kind, parse_datum(e.type, text) if kind == VALUE else 0) for e, (kind, text) in zip(exprs, edges, strict=False)
    ]


def _leaves(writer: Writer, table: Relation) -> list[tuple[Relation, Words]]:
    """The rows of a table and of those below it."""
    published = writer.snapshot()
    tables = (table, *writer.catalog.below(table))
    return [(t, published.rows(t.id, published.ordinal)[0]) for t in tables]


def _check_default(changer: Changer, parent: Relation, default: Relation, bound: Bound) -> None:
    """23514 where the default partition has rows that the new partition would take."""
    router = Router(changer.writer.catalog, changer.keys, changer.context)
    for table, rows in _leaves(changer.writer, default):
        if router.meets(table, parent, rows, bound):
            message = (
                f'updated partition constraint for default partition "{default.name}" would be violated by some row'
            )
            raise SqlError("23514", message)


def attach(definer: Definer, changer: Changer, statement: Attach) -> None:
    """ATTACH PARTITION or INHERIT."""
    parent, child = _named(definer, statement.parent), _named(definer, statement.child)
    catalog = definer.writer.catalog
    _check_attachable(parent, child, statement.bound is not None)
    if parent.id in (child.id, *(r.id for r in catalog.below(child))):
        detail = f'"{parent.name}" is already a child of "{child.name}".'
        raise SqlError("42P07", "circular inheritance not allowed", detail)
    if parent.oid in child.parents:
        raise SqlError("42P07", f'relation "{parent.name}" would be inherited from more than once')
    bound = None
    if statement.bound is not None:
        _check_no_others(parent, child)
        bound = new_bound(changer, parent, child, statement.bound)
    _check_columns(parent, child)
    _check_has_keys(parent, child)
    definer.writer.redefine(replace(child, parents=(*child.parents, parent.oid), bound=bound))
    child = definer.writer.catalog.relations[child.id]
    if bound is not None:
        router = Router(definer.writer.catalog, changer.keys, changer.context)
        for table, rows in _leaves(definer.writer, child):
            if not router.taken(child, router.converted(table, child, rows)).all():
                message = f'partition constraint of relation "{child.name}" is violated by some row'
                raise SqlError("23514", message)
    if not child.temporary:
        rebuild_views(definer.writer, definer.writer.catalog.above(child))


def _check_attachable(parent: Relation, child: Relation, partition: bool) -> None:
    if partition and parent.partitioning is None:
        raise SqlError("42P17", f'table "{parent.name}" is not partitioned')
    if child.bound is not None and partition:
        raise SqlError("42809", f'"{child.name}" is already a partition')
    if child.bound is not None:
        raise SqlError("42809", "cannot change inheritance of a partition")
    if not partition and child.partitioning is not None:
        raise SqlError("42809", "cannot change inheritance of partitioned table")
    if not partition and parent.partitioning is not None:
        raise SqlError("42809", f'cannot inherit from partitioned table "{parent.name}"')
    if not partition and parent.bound is not None:
        raise SqlError("42809", "cannot inherit from a partition")
    if partition and child.parents:
        raise SqlError("42809", "cannot attach inheritance child as partition")
    if partition and child.children and child.partitioning is None:
        raise SqlError("42809", "cannot attach inheritance parent as partition")
    if partition and child.temporary != parent.temporary:
        kinds = ("temporary", "permanent") if child.temporary else ("permanent", "temporary")
        message = f'cannot attach a {kinds[0]} relation as partition of {kinds[1]} relation "{parent.name}"'
        raise SqlError("42809", message)
    if not partition and parent.temporary and not child.temporary:
        raise SqlError("42809", f'cannot inherit from temporary relation "{parent.name}"')


def _check_no_others(parent: Relation, child: Relation) -> None:
    """42804 where a partition has columns that its table has not."""
    known = {c.name for c in parent.columns}
    for name in (c.name for c in child.columns if c.name not in known):
        raise SqlError(
            "42804", f'table "{child.name}" contains column "{name}" not found in parent "{parent.name}"',
            "The new partition may contain only the columns present in parent.",
        )  # fmt: skip


def _check_columns(parent: Relation, child: Relation) -> None:
    """42804 where a table has not what it is to inherit."""
    own = {c.name: c for c in child.columns}
    for column in parent.columns:
        found = own.get(column.name)
        if found is None:
            raise SqlError("42804", f'child table is missing column "{column.name}"')
        if found.type != column.type:
            message = f'child table "{child.name}" has different type for column "{column.name}"'
            raise SqlError("42804", message)
        if found.nullable and not column.nullable:
            raise SqlError("42804", f'column "{column.name}" in child table must be marked NOT NULL')
    checks = {c.name: c.text for c in child.checks}
    for check in parent.checks:
        if check.name not in checks:
            raise SqlError("42804", f'child table is missing constraint "{check.name}"')
        if checks[check.name] != check.text:
            message = f'child table "{child.name}" has different definition for check constraint "{check.name}"'
            raise SqlError("42804", message)


def _check_has_keys(parent: Relation, child: Relation) -> None:
    """0A000 where a partition lacks a key that its table has."""
    if parent.partitioning is None:
        return
    own = [{child.columns[i].name for i in index.columns} for index in child.keys]
    for index in parent.keys:
        if {parent.columns[i].name for i in index.columns} not in own:
            hint = f"Add one like {index.name} to {child.name} first."
            raise unsupported("attaching a partition without the keys of its table", hint=hint)


def detach(definer: Definer, statement: Detach) -> None:
    """DETACH PARTITION or NO INHERIT."""
    parent, child = _named(definer, statement.parent), _named(definer, statement.child)
    if parent.oid not in child.parents:
        if statement.partition:
            raise SqlError("42P01", f'relation "{child.name}" is not a partition of relation "{parent.name}"')
        raise SqlError("42P01", f'relation "{parent.name}" is not a parent of relation "{child.name}"')
    if not statement.partition and child.bound is not None:
        raise SqlError("42809", "cannot change inheritance of a partition")
    above = definer.writer.catalog.above(child)
    rest = tuple(p for p in child.parents if p != parent.oid)
    definer.writer.redefine(replace(child, parents=rest, bound=None))
    if not child.temporary:
        rebuild_views(definer.writer, above)


def _named(definer: Definer, name: tuple[str | None, str]) -> Relation:
    found = definer.names.resolve(*name)
    if found is None:
        raise SqlError("42P01", f'relation "{".".join(n for n in name if n is not None)}" does not exist')
    if found.kind is not RelationKind.TABLE:
        raise SqlError("42809", f'"{found.name}" is not a table')
    return found
