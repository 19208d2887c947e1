"""Column definitions, as CREATE TABLE and ALTER TABLE have them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from ivm.errors import SqlError
from sql.catalog.sequence_options import SequenceOptions
from sql.syntax.grammar.partitions import PartitionGrammar
from sql.syntax.grammar.sequences import sequence_options
from sql.syntax.nodes.columns import ColumnDefinition
from sql.syntax.nodes.constraints import Constraint
from sql.syntax.nodes.queries import Expr, TypeName

_SERIAL: Final = {
    "serial": "int4", "serial4": "int4", "bigserial": "int8", "serial8": "int8", "smallserial": "int2",
    "serial2": "int2",
}  # fmt: skip
_COLLATIONS: Final = ("default", "C", "POSIX", "ucs_basic")


@dataclass(slots=True)
class _Parts:
    """What has been read after a column's type."""

    constraints: list[Constraint] = field(default_factory=list)
    nullable: bool | None = None
    """Whether NULL or NOT NULL is declared; an identity column or a serial one declares NOT NULL."""
    conflict: int | None = None
    """Where the other of the two is declared too."""
    collated: int | None = None
    defaults: list[tuple[Expr, str]] = field(default_factory=list)
    identities: list[tuple[str, SequenceOptions, int]] = field(default_factory=list)
    expressions: list[tuple[Expr, str]] = field(default_factory=list)


def _declare(parts: _Parts, at: int, *, nullable: bool) -> None:
    if parts.nullable is (not nullable) and parts.conflict is None:
        parts.conflict = at
    parts.nullable = nullable


class ColumnGrammar(PartitionGrammar):
    """A column's name, type and constraints."""

    def partition_column(self, table: str) -> ColumnDefinition:
        """``name [WITH OPTIONS] constraint …``, a column of PARTITION OF."""
        at = self.token.start
        name = self.name()
        self.accept("with", "options")
        parts = self._column_parts(name, at)
        given = self._generated(name, None, table, parts)
        self._check_null(name, table, parts)
        default = parts.defaults[-1] if parts.defaults else None
        expression = parts.expressions[-1] if parts.expressions else None
        return ColumnDefinition(
            name, None, parts.nullable is False, default, tuple(parts.constraints), at, given, expression
        )

    def _check_null(self, name: str, table: str, parts: _Parts) -> None:
        """42601 for a column that is declared NULL and NOT NULL."""
        if parts.conflict is not None:
            message = f'conflicting NULL/NOT NULL declarations for column "{name}" of table "{table}"'
            self.postpone(SqlError("42601", message, position=parts.conflict + 1))

    def _column_parts(self, name: str, at: int, nullable: bool | None = None) -> _Parts:
        parts = _Parts(nullable=nullable)
        while not (self.at_end() or self.is_symbol(",") or self.is_symbol(")")):
            self._column_part(parts, ((name, at),))
        return parts

    def column_definition(self, table: str = "") -> ColumnDefinition:
        """``table``: the table's name, for errors."""
        at = self.token.start
        name = self.name()
        type_ = self.type_name()
        parts = self._column_parts(name, at, False if type_.name in _SERIAL else None)
        generated = self._generated(name, type_, table, parts)
        self._check_null(name, table, parts)
        if type_.name in _SERIAL:
            type_ = replace(type_, name=_SERIAL[type_.name])
        not_null = parts.nullable is False
        default = parts.defaults[-1] if parts.defaults else None
        expression = parts.expressions[-1] if parts.expressions else None
        return ColumnDefinition(
            name, type_, not_null, default, tuple(parts.constraints), at, generated, expression, parts.collated
        )

    def default(self) -> tuple[Expr, str]:
        """A DEFAULT's expression and its text."""
        start = self.token.start
        return self.restricted(), self.source(start, self.index)

    def changed_default(self) -> tuple[Expr, str]:
        """The expression of SET DEFAULT and its text: nothing follows it, so it may be any."""
        start = self.token.start
        return self.expression(), self.source(start, self.index)

    def _column_part(self, parts: _Parts, own: tuple[tuple[str, int], ...]) -> None:
        token = self.token
        name = self.constraint_name()
        keyed = self.column_constraint(name, own, token.start)
        if keyed is not None:
            parts.constraints.append(keyed)
        elif self.accept("not"):
            self.expect("null")
            _declare(parts, token.start, nullable=False)
        elif self.accept("default"):
            parts.defaults.append(self.default())
        elif self.accept("collate"):
            collation = self.qualified()[-1]
            if collation not in _COLLATIONS:
                raise self.refusal(f'collation "{collation}"', token)
            parts.collated = token.start
        elif self.accept("generated"):
            self._identity_or_expression(parts, token.start)
        else:
            self.expect("null")
            _declare(parts, token.start, nullable=True)

    def _identity_or_expression(self, parts: _Parts, at: int) -> None:
        """``ALWAYS AS (expression) STORED``, or ``{ALWAYS | BY DEFAULT} AS IDENTITY [(options)]``."""
        by_default = self.token
        always = self.accept("always")
        if not always:
            self.expect("by", "default")
        self.expect("as")
        if not self.accept_symbol("("):
            parts.identities.append(self.identity_options(at, always=always))
            _declare(parts, at, nullable=False)
            return
        start = self.token.start
        expr = self.expression()
        parts.expressions.append((expr, self.source(start, self.index)))
        self.expect_symbol(")")
        self.expect("stored")
        if not always:
            message = "for a generated column, GENERATED ALWAYS must be specified"
            raise SqlError("42601", message, position=by_default.start + 1)

    def identity_options(self, at: int, *, always: bool) -> tuple[str, SequenceOptions, int]:
        """``IDENTITY [(options)]``."""
        self.expect("identity")
        options = SequenceOptions()
        if self.accept_symbol("("):
            options = sequence_options(self)
            self.expect_symbol(")")
        return "always" if always else "by default", options, at

    def _generated(
        self, name: str, type_: TypeName | None, table: str, parts: _Parts
    ) -> tuple[str, SequenceOptions] | None:
        """The sequence that the column's numbers come from. 42601 for more than one source of values."""
        serial = type_ is not None and type_.name in _SERIAL
        if type_ is not None and serial and type_.array:
            self.postpone(SqlError("0A000", "array of serial is not implemented", position=type_.at + 1))
        if len(parts.identities) + len(parts.defaults) + len(parts.expressions) + serial > 1:
            what = "both default and identity specified" if parts.identities else "multiple default values specified"
            what = "multiple identity specifications" if len(parts.identities) > 1 else what
            if parts.expressions:
                others = "identity" if parts.identities else "default"
                what = f"both {others} and generation expression specified"
                what = "multiple generation clauses specified" if len(parts.expressions) > 1 else what
            place = parts.identities[0][2] + 1 if parts.identities else None
            self.postpone(SqlError("42601", f'{what} for column "{name}" of table "{table}"', position=place))
        if serial:
            return "default", SequenceOptions()
        return parts.identities[0][:2] if parts.identities else None
