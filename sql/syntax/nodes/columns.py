"""The syntax tree of a column definition."""

from __future__ import annotations

from dataclasses import dataclass

from sql.catalog.sequence_options import SequenceOptions
from sql.syntax.nodes.constraints import Constraint
from sql.syntax.nodes.queries import Expr, TypeName


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column of CREATE TABLE or ADD COLUMN.

    ``default``: the expression and its text. ``constraints``: those written with the column. ``generated``: the kind
    (``sql.catalog.catalog.Generated``) and the sequence's options. ``expression``: of a generated column, and its text.
    """

    name: str
    type: TypeName | None
    """None in PARTITION OF, where the column has the type of its table's."""
    not_null: bool
    default: tuple[Expr, str] | None
    constraints: tuple[Constraint, ...]
    at: int
    generated: tuple[str, SequenceOptions] | None = None
    expression: tuple[Expr, str] | None = None
    collated: int | None = None
    """Where COLLATE is written."""
