"""The arrangements in which indexes look up their keys, and how the parts of their keys are shown."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import unsupported
from planner.expr.scalar import Scalar
from planner.identifiers import quoted
from planner.memo import by_identity
from planner.physical.key_checks import KeyCheck, computed_key_check, key_check
from sql.bind.entry_points import empty_environment
from sql.bind.exclusion import Exclusion, excluded
from sql.bind.index_terms import bound_index
from sql.bind.names import UNNAMED, column_name
from sql.bind.renamed import renamed_text
from sql.catalog.catalog import Relation
from sql.catalog.keys import Index
from sql.parse import parse_expression
from sql.syntax.nodes import queries as nodes


@by_identity
def _meaning(table: Relation) -> dict[int, tuple[tuple[Scalar, ...], Scalar | None]]:
    """The parts and the predicate of each index with expressions or a predicate, over the table's columns."""
    return {i.id: _bound(table, i) for i in table.indexes if i.computed}


def _bound(table: Relation, index: Index) -> tuple[tuple[Scalar, ...], Scalar | None]:
    return bound_index(empty_environment(), table, index)


def index_parts(table: Relation, index: Index) -> tuple[Scalar, ...]:
    """The parts of an index's key, over the table's columns."""
    return _of(table, index)[0]


def _of(table: Relation, index: Index) -> tuple[tuple[Scalar, ...], Scalar | None]:
    return _meaning(table)[index.id] if index in table.indexes and index.computed else _bound(table, index)


@by_identity
def _exclusions(table: Relation) -> dict[int, Exclusion]:
    return {i.id: excluded(table.schema, i, *_bound(table, i)) for i in table.indexes if i.operators}


def exclusion_of(table: Relation, index: Index) -> Exclusion:
    """What an EXCLUDE constraint demands."""
    known = _exclusions(table).get(index.id) if index in table.indexes else None
    return known or excluded(table.schema, index, *_bound(table, index))


def key_check_of(table: Relation, index: Index) -> KeyCheck:
    """The arrangement by which an index looks up its keys."""
    if index.operators:
        return exclusion_of(table, index).key_check
    if not index.computed:
        return key_check(table.schema, index.columns, not index.nulls_distinct)
    parts, predicate = _of(table, index)
    return computed_key_check(table.schema, parts, predicate, not index.nulls_distinct)


def expression_name(text: str) -> str:
    """What an expression contributes to an index's name."""
    found = column_name(empty_environment(), parse_expression(text))
    return "expr" if found == UNNAMED else found


def part_text(table: Relation, index: Index, number: int) -> str:
    """A part of an index's key in the form of pg_get_indexdef: an expression that is no call is in parentheses."""
    part = index.parts[number]
    if isinstance(part, int):
        return quoted(table.columns[part].name)
    return part if isinstance(parse_expression(part), nodes.Apply) else f"({part})"


def renamed_index(before: Relation, after: Relation, index: Index, old: str, new: str) -> Index:
    """An index after its table or a column was renamed. Raises 0A000 where replacing the name in its texts would change
    their meaning."""
    if not index.computed:
        return index
    own = before.name == old
    texts = tuple(None if e is None else renamed_text(e, old, new, table=own) for e in index.expressions)
    where = None if index.where is None else renamed_text(index.where, old, new, table=own)
    found = replace(index, expressions=texts, where=where)
    if _bound(after, found) != _bound(before, index):
        raise unsupported(f"renaming a name that index {index.name} uses")
    return found
