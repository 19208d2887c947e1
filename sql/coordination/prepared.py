"""Bound statements and their plans, kept by text: parsing and planning cost more than a small commit."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ivm.errors import SqlError, unsupported
from ivm.graph import Project
from ivm.words import BOOL as BOOLEAN
from ivm.words import BYTEA, INT8, TEXT, SqlType
from planner.logical.nodes import Rel
from planner.logical.traversal import gets
from planner.lower.plan import lower
from planner.options import DEFAULT, Planning
from planner.physical.nodes import Plan, Table, TableErrors
from planner.transform.pipeline import optimize
from sql.bind.literals import reading
from sql.bind.statement import bind_statement
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.search_path import Lookup, Recorder, SearchPath
from sql.engine.counts import counted_relation
from sql.engine.indexing import PATIENCE, Wish, wishes
from sql.engine.snapshot import Published, StoredIndexes
from sql.parse import StatementText
from sql.settings.settings import Settings
from sql.statements.definitions import AlterTable, CreateTable, CreateView
from sql.statements.queries import OutputColumn, Query
from sql.statements.statements import (
    BoundStatement,
    Compound,
    Delete,
    Execute,
    Explain,
    Fetch,
    Insert,
    Show,
    Statement,
    Subscribe,
    Update,
    Verify,
    VerifyDictionary,
)
from storage.types.text_style import TextStyle

if TYPE_CHECKING:
    from sql.session.session import Session

CACHED: Final = 2000
CACHED_CHARACTERS: Final = 1 << 20
"""Of all texts together: what is bound takes some forty times the memory of a long list of VALUES."""


class StaleError(SqlError):
    """A statement must be bound again: the catalog has moved on under it."""

    def __init__(self) -> None:
        super().__init__("40001", "could not serialize access due to a concurrent change of a relation")


@dataclass(slots=True, eq=False)
class Prepared:
    """A bound statement. ``seen``: every relation that binding asked for; ``stored``: those of them that people made.
    ``plan``: of its rows, once made."""

    text: str
    bound: BoundStatement
    seen: frozenset[int]
    plan: Plan | None = None
    inputs: frozenset[int] = frozenset()
    wishes: tuple[Wish, ...] = ()
    stored: tuple[Relation, ...] = ()
    counted: int | None = None
    """The relation whose rows the statement counts, if that is all that it does."""
    plain: bool = False
    """Whether the plan makes no new values: it moves what is stored, or counts it."""
    runs: int = 0
    planning: Planning = DEFAULT
    _arranged: int = -1

    def check_current(self, catalog: Catalog) -> None:
        """Raises StaleError when another session has dropped or changed a relation since this was bound."""
        if any(catalog.relations.get(r.id) != r for r in self.stored):
            raise StaleError

    def plan_of(self, rel: Rel, published: Published) -> Plan:
        """The physical plan of the statement's rows, made anew when there are other arrangements to look things up in.

        Invariant: always asked with the same ``rel``.
        """
        if self.plan is None or self._arranged != published.arranged:
            optimized = optimize(rel, self.planning.demanding)
            self.inputs = frozenset(gets(rel))
            self._arranged = published.arranged
            self.wishes = wishes(optimized, published)
            self.counted = counted_relation(optimized)
            self.plan = lower(optimized, StoredIndexes(published, one_shot=True, planning=self.planning))
            moves = all(isinstance(node, Table | TableErrors | Project) for node in self.plan.nodes)
            self.plain = moves or self.counted is not None
        self.runs += 1
        return self.plan

    def planned(self, published: Published) -> bool:
        """Whether ``plan_of`` has nothing to do."""
        return self.plan is not None and self._arranged == published.arranged

    def overdue(self) -> tuple[Wish, ...]:
        """The arrangements to make now: the statement keeps coming."""
        return self.wishes if self.runs > PATIENCE else ()


class Statements:
    """The shared cache. What a text means depends on the catalog, the search path, the parameters' types and the
    time zone."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], Prepared] = OrderedDict()
        self._characters = 0

    def prepare(
        self, statement: StatementText, catalog: Catalog, path: SearchPath, types: tuple[SqlType | None, ...],
        settings: Settings,
    ) -> Prepared:  # fmt: skip
        """The bound statement; SqlError where the text is wrong, with the position in the statement."""
        text = statement.text
        style = TextStyle(settings.get("timezone"), formats=settings.formats)
        key = (text, catalog.version, path, types, style, settings.planning)
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        recorder = Recorder(Lookup(catalog, path))
        with reading(style) as literals:
            bound = bind_statement(StatementText(text, 0, statement.tokens), recorder, types)
        if literals and isinstance(bound.statement, CreateView | CreateTable | AlterTable):
            _refuse_session_literal(literals[0])
        stored = tuple(catalog.relations[i] for i in recorder.seen | recorder.inherited if i in catalog.relations)
        found = Prepared(text, bound, frozenset(recorder.seen), stored=stored, planning=settings.planning)
        self._known[key] = found
        self._characters += len(text)
        while len(self._known) > CACHED or (self._characters > CACHED_CHARACTERS and len(self._known) > 1):
            self._characters -= len(self._known.popitem(last=False)[1].text)
        return found


def _refuse_session_literal(literal: str) -> None:
    """A definition is bound again later, in other sessions: its constants must not change their meaning there."""
    raise unsupported(
        f"the constant '{literal}' in a definition, whose meaning depends on this session's settings,",
        hint="Write dates as YYYY-MM-DD, and timestamps with time zone with their offset from UTC.",
    )


def returned(statement: Insert | Update | Delete) -> tuple[OutputColumn, ...] | None:
    """RETURNING's columns."""
    return None if statement.returning is None else statement.columns


def output_columns(statement: Statement, session: Session) -> tuple[OutputColumn, ...] | None:
    """The columns of a statement's rows, None when it gives none; never runs anything."""
    match statement:
        case Query():
            return statement.columns
        case Insert() | Update() | Delete():
            return returned(statement)
        case Compound():
            return output_columns(statement.main, session)
        case Explain():
            return (OutputColumn("QUERY PLAN", TEXT),)
        case Verify():
            return (*(OutputColumn(c.name, c.type) for c in statement.view.columns), OutputColumn("diff", INT8))
        case VerifyDictionary():
            return (OutputColumn("problem", TEXT), OutputColumn("id", INT8), OutputColumn("value", BYTEA))
        case Show():
            return session.show_columns(statement)
        case Subscribe():
            return subscribe_columns(statement)
        case Execute():
            named = session.named(statement.name)
            return None if named.prepared is None else output_columns(named.prepared.bound.statement, session)
        case Fetch():
            return None if statement.move else session.cursor_columns(statement.name)
        case _:
            return None


def subscribe_columns(statement: Subscribe) -> tuple[OutputColumn, ...]:
    """mz_timestamp, [mz_progressed,] mz_diff, and the query's columns."""
    progress = (OutputColumn("mz_progressed", BOOLEAN),) if statement.progress else ()
    return (OutputColumn("mz_timestamp", INT8), *progress, OutputColumn("mz_diff", INT8), *statement.query.columns)
