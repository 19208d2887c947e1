"""Partition keys and bounds, and the check that existing rows fit them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ivm.errors import SqlError
from ivm.rows import Words
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.scalar import Scalar
from sql.bind.partitions import bound_value, edge_text, key_expressions
from sql.catalog.catalog import Relation
from sql.catalog.partitioning import MAXIMUM, MINIMUM, VALUE, Edge, PartitionBound, WrittenBound
from sql.dml.row_changes import RowChanger
from sql.engine.writer import Writer
from sql.statements.definitions import CreateTable
from storage.types.text import format_text, parse_datum


def partition_parts(changer: RowChanger, table: Relation, statement: CreateTable) -> Relation:
    """A new table with its partition key and bound. Raises the errors of ``new_bound``."""
    table = replace(table, partitioning=statement.partitioning)
    if statement.bound is None:
        return table
    catalog = changer.writer.catalog
    parent = catalog.relations[statement.parents[0].id]
    return replace(table, bound=new_bound(changer, parent, table, statement.bound))


def check_keys(table: Relation) -> None:
    """0A000 if a unique key of a partitioned table does not contain its partition key."""
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


def new_bound(changer: RowChanger, parent: Relation, table: Relation, written: WrittenBound) -> PartitionBound:
    """The bound of a new partition. Raises 42P17, 42804; 23514 if the default partition has rows that belong in it."""
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
    if bound.kind == "hash":
        _check_moduli(table, bound, siblings)
        return bound
    _check_overlap(exprs, table, bound, siblings)
    if default is not None:
        _check_default(changer, parent, default, bound)
    return bound


def _evaluated(
    exprs: Sequence[Scalar], strategy: str, names: Sequence[str], written: WrittenBound, context: Context
) -> PartitionBound:
    if written.kind not in ("default", strategy):
        raise SqlError("42P16", f"invalid bound specification for a {strategy} partition")
    if strategy == "hash":
        return _hash_bound(written)
    if written.kind == "default":
        return PartitionBound("default")
    if written.kind == "list":
        values = (_text(exprs[0], text, names[0], context) for text in written.values)
        return PartitionBound("list", tuple(dict.fromkeys(values)))
    for which, edges in (("FROM", written.lower), ("TO", written.upper)):
        if len(edges) != len(exprs):
            raise SqlError("42P16", f"{which} must specify exactly one value per partitioning column")
    lower, upper = (_edges(exprs, names, texts, context) for texts in (written.lower, written.upper))
    return PartitionBound("range", lower=lower, upper=upper)


def _hash_bound(written: WrittenBound) -> PartitionBound:
    if written.kind == "default":
        raise SqlError("42P16", "a hash-partitioned table may not have a default partition")
    modulus, remainder = written.modulus, written.remainder
    if modulus <= 0:
        raise SqlError("42P16", "modulus for hash partition must be an integer value greater than zero")
    if remainder >= modulus:
        raise SqlError("42P16", "remainder for hash partition must be less than modulus")
    return PartitionBound("hash", modulus=modulus, remainder=remainder)


def _place_of_hash(named: tuple[PartitionBound, str]) -> tuple[int, int]:
    return named[0].modulus, named[0].remainder


def _check_moduli(table: Relation, bound: PartitionBound, siblings: Sequence[Relation]) -> None:
    """42P16 unless, of two neighbouring moduli, one is a factor of the other; 42P17 for rows of another partition."""
    others = sorted(((s.bound, s.name) for s in siblings if s.bound is not None), key=_place_of_hash)
    below = [o for o in others if o[0].modulus < bound.modulus][-1:]
    above = [o for o in others if o[0].modulus >= bound.modulus][:1]
    detail = None
    if below and bound.modulus % below[0][0].modulus:
        detail = f'is not divisible by {below[0][0].modulus}, the modulus of existing partition "{below[0][1]}".'
    elif above and above[0][0].modulus % bound.modulus:
        detail = f'is not a factor of {above[0][0].modulus}, the modulus of existing partition "{above[0][1]}".'
    if detail is not None:
        message = "every hash partition modulus must be a factor of the next larger modulus"
        raise SqlError("42P16", message, f"The new modulus {bound.modulus} {detail}")
    for other, name in others:
        if (bound.remainder - other.remainder) % min(bound.modulus, other.modulus) == 0:
            raise SqlError("42P17", f'partition "{table.name}" would overlap partition "{name}"')


def _text(key: Scalar, text: str, name: str, context: Context) -> str | None:
    value = bound_value(key, text, name)
    (vector,) = evaluated((value,), [], 1, context)
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


def _check_overlap(
    exprs: Sequence[Scalar], table: Relation, bound: PartitionBound, siblings: Sequence[Relation]
) -> None:
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


def _datums(exprs: Sequence[Scalar], bound: PartitionBound) -> set[object]:
    return {None if v is None else parse_datum(exprs[0].type, v) for v in bound.values}


def _place(exprs: Sequence[Scalar], edges: tuple[Edge, ...]) -> list[Any]:
    """A sort key for the ends of ranges."""
    return [
        (kind, parse_datum(e.type, text) if kind == VALUE else 0) for e, (kind, text) in zip(exprs, edges, strict=False)
    ]


def leaves(writer: Writer, table: Relation) -> list[tuple[Relation, Words]]:
    """The rows of a table and of all its descendants."""
    published = writer.snapshot()
    tables = (table, *writer.catalog.below(table))
    return [(t, published.rows(t.id, published.ordinal)[0]) for t in tables]


def _check_default(changer: RowChanger, parent: Relation, default: Relation, bound: PartitionBound) -> None:
    """23514 if the default partition has rows that belong in the new partition."""
    router = changer.router()
    for table, rows in leaves(changer.writer, default):
        if router.meets(table, parent, rows, bound):
            message = (
                f'updated partition constraint for default partition "{default.name}" would be violated by some row'
            )
            raise SqlError("23514", message)
