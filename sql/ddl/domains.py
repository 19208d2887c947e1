"""CREATE DOMAIN and ALTER DOMAIN, as changes of a writer's catalog. What is new is checked for the rows there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from ivm.errors import SqlError, unsupported
from ivm.rows import unpack
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from planner.expr.scalar import Column
from sql.bind.domains import domain_value
from sql.bind.entry_points import empty_environment
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.keys import Check
from sql.ddl.names import free_name
from sql.engine.writer import Writer
from sql.statements.types import (
    CreateDomain,
    DomainChange,
    DomainCheck,
    DomainDefault,
    DomainNotNull,
    DropDomainCheck,
    RenameDomainCheck,
    ValidateDomainCheck,
)


def create_domain(writer: Writer, schema_name: str, statement: CreateDomain) -> None:
    """The new domain. Raises 42710."""
    engine = writer.engine
    oid = engine.next_id(writer.catalog)
    created = engine.timeline.epoch(engine.timeline.last) + 1
    columns = (statement.value,)
    made = Relation(
        oid, schema_name, statement.name, RelationKind.TYPE, columns, created=created, domain=True
    )  # fmt: skip
    writer.create(made, None)
    for check in statement.checks:
        made = _with_check(writer, made, check)
        writer.redefine(made)


def _with_check(writer: Writer, domain: Relation, check: DomainCheck) -> Relation:
    taken = {c.name for c in domain.checks}
    if check.name in taken:
        raise SqlError("42710", f'constraint "{check.name}" for domain "{domain.name}" already exists')
    name = check.name or free_name(domain, (), "check", taken)
    made = Check(writer.engine.next_id(writer.catalog), name, check.text, valid=check.valid)
    return replace(domain, checks=(*domain.checks, made))


@dataclass(frozen=True, slots=True)
class DomainAlterer:
    """Runs ALTER DOMAIN. ``contexts`` makes a context of the writer's state; ``say`` sends a notice."""

    writer: Writer
    contexts: Callable[[], Context]
    say: Callable[[str], None]

    def run(self, domain: Relation, change: DomainChange) -> None:
        """Raises 23502 and 23514 for rows that there are, 42704, 42710."""
        (value,) = domain.columns
        if not isinstance(change, DomainDefault | RenameDomainCheck | ValidateDomainCheck):
            self._check_unread(domain)
        match change:
            case DomainDefault():
                domain = replace(domain, columns=(replace(value, default=change.text),))
            case DomainNotNull():
                if change.not_null and value.nullable:
                    self._check_nulls(domain)
                domain = replace(domain, columns=(replace(value, nullable=not change.not_null),))
            case DomainCheck():
                domain = _with_check(self.writer, domain, change)
                if change.valid:
                    self._check_rows(domain, domain.checks[-1])
            case ValidateDomainCheck():
                found = self._find(domain, change.name)
                if not found.valid:
                    self._check_rows(domain, found)
                domain = _changed(domain, found, replace(found, valid=True))
            case RenameDomainCheck():
                found = self._find(domain, change.name)
                if any(c.name == change.new for c in domain.checks):
                    raise SqlError("42710", f'constraint "{change.new}" for domain {domain.name} already exists')
                domain = _changed(domain, found, replace(found, name=change.new))
            case DropDomainCheck():
                kept = tuple(c for c in domain.checks if c.name != change.name)
                if len(kept) == len(domain.checks):
                    missing = _missing(domain, change.name)
                    if not change.if_exists:
                        raise missing
                    self.say(f"{missing.message}, skipping")
                domain = replace(domain, checks=kept)
            case _:
                assert_never(change)
        self.writer.redefine(domain)

    def _check_unread(self, domain: Relation) -> None:
        """Raises 0A000 if a materialized view has values that were checked by the present constraints."""
        over = [user.id for user, _ in self.writer.catalog.using(domain) if user.kind is RelationKind.TYPE]
        for other in self.writer.catalog.dependents([domain.id, *over]):
            if other.kind is RelationKind.MATERIALIZED_VIEW:
                what = f"changing the constraints of a domain that materialized view {other.name} may cast to"
                raise unsupported(what, f"Drop {other.name} first and create it again.")

    def _find(self, domain: Relation, name: str) -> Check:
        found = next((c for c in domain.checks if c.name == name), None)
        if found is None:
            raise _missing(domain, name)
        return found

    def _columns(self, domain: Relation) -> Iterator[tuple[Relation, int, TableColumn]]:
        """The tables' columns of the domain and of those over it: with their positions. Raises 0A000 for a column with
        a row inside that has a field of the domain, as Postgres does."""
        for user, column in self.writer.catalog.using(domain):
            inside = column.domain is None
            if user.domain and not inside:
                yield from self._columns(user)
                continue
            self._check_rowless(domain, user)
            if inside and user.kind is RelationKind.TABLE:
                raise _in_use(domain, user, column)
            if user.kind is RelationKind.TABLE and user.partitioning is None:
                yield user, user.columns.index(column), column

    def _check_rowless(self, domain: Relation, row: Relation) -> None:
        """Raises 0A000 for a table's column with a row of this type inside."""
        for table, column in self.writer.catalog.using(row):
            if table.kind is RelationKind.TABLE:
                raise _in_use(domain, table, column)

    def _check_nulls(self, domain: Relation) -> None:
        published = self.writer.snapshot()
        for table, place, column in self._columns(domain):
            self.writer.lock_whole(table)
            rows, _ = published.rows(table.id, published.ordinal)
            nulls = unpack(rows, table.schema)[place].nulls
            if nulls is not None and nulls.any():
                raise SqlError("23502", f'column "{column.name}" of table "{table.name}" contains null values')

    def _check_rows(self, domain: Relation, check: Check) -> None:
        value = replace(domain.columns[0], nullable=True, domain=None)
        alone = replace(domain, columns=(value,), checks=(check,))
        published, env = self.writer.snapshot(), empty_environment()
        for table, place, column in self._columns(domain):
            self.writer.lock_whole(table)
            rows, _ = published.rows(table.id, published.ordinal)
            checked = domain_value(env, replace(column.type, domain=alone), Column(place, column.type, column.nullable))
            try:
                evaluated((checked,), unpack(rows, table.schema), len(rows), self.contexts())
            except SqlError as error:
                if error.sqlstate != "23514":
                    raise
                message = f'column "{column.name}" of table "{table.name}" contains values that violate the new'
                raise SqlError("23514", f"{message} constraint") from None


def _changed(domain: Relation, old: Check, new: Check) -> Relation:
    return replace(domain, checks=tuple(new if c is old else c for c in domain.checks))


def _missing(domain: Relation, name: str) -> SqlError:
    return SqlError("42704", f'constraint "{name}" of domain "{domain.name}" does not exist')


def _in_use(domain: Relation, table: Relation, column: TableColumn) -> SqlError:
    """For a column that has values of the domain inside of others."""
    return SqlError("0A000", f'cannot alter type "{domain.name}" because column "{table.name}.{column.name}" uses it')
