"""A cache of bound statements and their plans by text: parsing and planning cost more than a small commit."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakValueDictionary

from ivm.errors import SqlError, unsupported
from ivm.graph import Project
from ivm.words import SqlType
from planner.logical.nodes import Rel
from planner.logical.traversal import gets
from planner.lower.plan import lower
from planner.memo import LARGE
from planner.options import DEFAULT, Planning
from planner.peek.keyed import looks_up_words
from planner.physical.nodes import Plan, Table, TableErrors
from planner.transform.pipeline import optimize
from sql.bind.literals import reading
from sql.bind.statement import bind_statement
from sql.bind.uses import Asking
from sql.bind.variables import Variables
from sql.catalog.access import Access
from sql.catalog.catalog import Catalog, Relation
from sql.catalog.search_path import TEMPORARY, Recorder, SearchPath, SearchPathReader
from sql.coordination.planning import is_long
from sql.dml.one_row import OneRow
from sql.engine.counts import counted_relation
from sql.engine.indexing import PATIENCE, Wish, wishes
from sql.engine.snapshot import Published, StoredIndexes
from sql.parse import StatementText
from sql.settings.settings import Settings
from sql.statements.definitions import AlterTable, CreateTable, CreateView, Definition
from sql.statements.policies import AlterPolicy, CreatePolicy
from sql.statements.queries import Query
from sql.statements.statements import BoundStatement, Explain, Statement

CACHED: Final = 2000
CACHED_CHARACTERS: Final = 1 << 20
"""A limit on the total size of the cached texts: a bound long list of VALUES takes about forty times the memory of its
text."""

WIDE: Final = 200
"""From so many columns on, planning a query takes several milliseconds, however short its text."""


class StaleError(SqlError):
    """The statement must be bound again: the catalog has changed."""

    def __init__(self) -> None:
        super().__init__("40001", "could not serialize access due to a concurrent change of a relation")


@dataclass(slots=True, eq=False, weakref_slot=True)
class Prepared:
    """A bound statement. ``seen``: every relation that binding looked up. ``stored``: those of them in the catalog.
    ``plan``: the plan of its rows, once it has been made."""

    text: str
    bound: BoundStatement
    seen: frozenset[int]
    plan: Plan | None = None
    inputs: frozenset[int] = frozenset()
    wishes: tuple[Wish, ...] = ()
    stored: tuple[Relation, ...] = ()
    counted: int | None = None
    """The relation whose rows the statement counts, if it does nothing else."""
    plain: bool = False
    """Whether the plan needs no dictionary: it only moves stored values, or counts rows."""
    names: tuple[tuple[str, ...], ...] = ()
    """The variables that its last parameters stand for, in a routine's statement."""
    runs: int = 0
    planning: Planning = DEFAULT
    secured: str | None = None
    """A table whose policies took part in binding it."""
    shows_rows: bool = True
    """Whether an error may show the row that has it."""
    denied: SqlError | None = None
    """Why the role that it was bound for may not run it."""
    access: Access | None = None
    """What ``denied`` was decided by; None if nothing had to be asked."""
    form: tuple[int, OneRow | None] | None = None
    """How it changes one row at most, over which version of the catalog, once that has been looked at."""
    _arranged: int = -1
    _calls_only: bool | None = None

    @property
    def calls_only(self) -> bool:
        """Whether it is a query that sees nothing of the database but by the functions that it calls."""
        if self._calls_only is None:
            statement = self.bound.statement
            self._calls_only = isinstance(statement, Query) and not statement.locks and not set(gets(statement.rel))
        return self._calls_only

    def check_current(self, catalog: Catalog) -> None:
        """Raise StaleError if another session has dropped or changed a relation since this was bound, or what roles may
        do."""
        relations = catalog.relations
        for relation in self.stored:
            known = relations.get(relation.id)
            if known is not relation and known != relation:
                raise StaleError
        if self.access is not None and self.access is not catalog.access:
            raise StaleError

    def check_allowed(self) -> None:
        """Raise 42501 if the role that it was bound for may not run it."""
        if self.denied is not None:
            raise replace(self.denied)

    def check_secured(self, settings: Settings) -> None:
        """Raise 42501 for one who would rather have an error than the rows that policies leave (pg_dump)."""
        allowed = self.denied is None or self.denied.sqlstate == "0A000"
        if allowed and self.secured is not None and not settings.boolean("row_security"):
            message = f'query would be affected by row-level security policy for table "{self.secured}"'
            raise SqlError("42501", message)

    def shown(self, error: SqlError) -> SqlError:
        """An error of the statement, without the row if the role may not see it."""
        return replace(error, detail=None, of_row=False) if error.of_row and not self.shows_rows else error

    def plan_of(self, rel: Rel, published: Published) -> Plan:
        """The physical plan of the statement's rows. It is made again when the set of arrangements has changed.

        Invariant: ``rel`` is the same in every call.
        """
        if self.plan is None or self._arranged != published.arranged:
            optimized = optimize(rel, self.planning.demanding)
            arranged = published.arranged
            self.inputs = frozenset(gets(rel))
            self.wishes = wishes(optimized, published)
            self.counted = counted_relation(optimized)
            plan = lower(optimized, StoredIndexes(published, one_shot=True, planning=self.planning))
            moves = all(isinstance(node, Table | TableErrors | Project) for node in plan.nodes)
            self.plain = moves or self.counted is not None or looks_up_words(plan)
            self.plan, self._arranged = plan, arranged  # last: another thread may plan it too
        self.runs += 1
        assert self.plan is not None
        return self.plan

    @property
    def long(self) -> bool:
        """Whether it is planned on a thread of its own."""
        statement = self.bound.statement
        return is_long(self.text) or (isinstance(statement, Query) and len(statement.columns) >= WIDE)

    def planned(self, published: Published) -> bool:
        """Whether ``plan_of`` would return the cached plan."""
        return self.plan is not None and self._arranged == published.arranged

    def overdue(self) -> tuple[Wish, ...]:
        """The arrangements to create now because the statement has run often enough; mostly none."""
        return self.wishes if self.runs > PATIENCE else ()


class Statements:
    """The shared cache. Its key has everything that a text's meaning depends on: the catalog, the search path, the
    parameters' types, the settings of text forms and of the planner. The search path says who asks.

    Invariant: nothing in it refers to a catalog. What was bound over one that nobody has any more goes when something
    is bound over a catalog that is new here.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[object, ...], Prepared] = OrderedDict()
        self._large: WeakValueDictionary[tuple[object, ...], Prepared] = WeakValueDictionary()
        """Statements that are large, as long as somebody holds them."""
        self._catalogs: WeakValueDictionary[int, Catalog] = WeakValueDictionary()
        """Those of the known statements, by version."""
        self._characters = 0
        self._guard = threading.Lock()
        """Long statements are bound on threads of their own."""

    def prepare(
        self, statement: StatementText, catalog: Catalog, path: SearchPath, types: tuple[SqlType | None, ...],
        settings: Settings, variables: Variables | None = None,
    ) -> Prepared:  # fmt: skip
        """The bound statement. SqlError, with the position in the statement, if the text is wrong."""
        key = self._key(statement.text, catalog, path, types, settings, variables)
        found = self._find(key)
        if found is None:
            found = self.bind(statement, catalog, path, settings, types, variables)
            if variables is None or not variables.tables:
                self._keep(key, found, catalog)
        found.check_secured(settings)
        return found

    def known(
        self, statement: StatementText, catalog: Catalog, path: SearchPath, settings: Settings
    ) -> Prepared | None:
        """The statement, if it has been bound. Raises 42501."""
        found = self._find(self._key(statement.text, catalog, path, (), settings))
        if found is not None:
            found.check_secured(settings)
        return found

    def _key(
        self, text: str, catalog: Catalog, path: SearchPath, types: tuple[SqlType | None, ...], settings: Settings,
        variables: Variables | None = None,
    ) -> tuple[object, ...]:  # fmt: skip
        known = None if variables is None else variables.key
        return text, catalog.version, shared(path, catalog, text), types, settings.constants, settings.planning, known

    def _find(self, key: tuple[object, ...]) -> Prepared | None:
        with self._guard:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found
            return self._large.get(key)

    def bind(
        self, statement: StatementText, catalog: Catalog, path: SearchPath, settings: Settings,
        types: tuple[SqlType | None, ...] = (), variables: Variables | None = None,
    ) -> Prepared:  # fmt: skip
        """The bound statement, which is not kept. Raises as ``prepare`` does."""
        recorder = Recorder(SearchPathReader(catalog, path))
        # one who may do everything is asked too: a view may belong to another
        asking = Asking(catalog.access, path.role, path.role) if catalog.access.has_others else None
        with reading(settings.constants) as literals:
            bound = bind_statement(replace(statement, offset=0), recorder, types, variables, asking)
        if literals and isinstance(bound.statement, CreateView | CreateTable | AlterTable | CreatePolicy | AlterPolicy):
            _refuse_session_literal(literals[0])
        stored = tuple(catalog.relations[i] for i in recorder.seen | recorder.inherited if i in catalog.relations)
        found = Prepared(statement.text, bound, frozenset(recorder.seen), stored=stored, planning=settings.planning)
        found.names = () if variables is None else tuple(variables.used)
        if asking is not None and runs(bound.statement) and (asking.uses or asking.calls):
            found.denied, found.access = asking.denied(), catalog.access
            found.secured = asking.secured[0].name if asking.secured else None
            found.shows_rows = asking.sees_rows()
        return found

    def _keep(self, key: tuple[object, ...], prepared: Prepared, catalog: Catalog) -> None:
        with self._guard:
            if len(prepared.text) >= LARGE:
                self._large[key] = prepared
                return
            if catalog.version not in self._catalogs:
                self._forget_old()
                self._catalogs[catalog.version] = catalog
            if key not in self._known:
                self._characters += len(prepared.text)
            self._known[key] = prepared
            while len(self._known) > CACHED or (self._characters > CACHED_CHARACTERS and len(self._known) > 1):
                self._characters -= len(self._known.popitem(last=False)[1].text)

    def has(self, version: object) -> bool:
        """Whether somebody has the catalog of this version, over which something was bound."""
        return version in self._catalogs

    def _forget_old(self) -> None:
        """Forgets what nobody can ask for again."""
        for key in [key for key in self._known if key[1] not in self._catalogs]:
            self._characters -= len(self._known.pop(key).text)


def shared(path: SearchPath, catalog: Catalog, text: str) -> SearchPath:
    """The search path as far as it matters to what a text means: a session's own schema matters where it is there, or
    where the statement may make it."""
    if path.temporary in catalog.schemas or path.temporary in path.named or not _READS.match(text):
        return path
    return path if "temp" in text.lower() else replace(path, temporary=TEMPORARY)


_READS: Final = re.compile(r"\s*(?:select|insert|update|delete|values|with)\b", re.IGNORECASE)


def runs(statement: Statement) -> bool:
    """Whether a statement reads or changes rows itself: a definition is asked about when what it defines is used."""
    match statement:
        case CreateView():
            return statement.materialized
        case CreateTable():
            return statement.source is not None
        case Explain():
            return runs(statement.statement)
        case _:
            return not isinstance(statement, Definition)


def _refuse_session_literal(literal: str) -> None:
    """Refuse a literal that depends on the session: a definition is bound again in other sessions, where its constants
    must mean the same."""
    raise unsupported(
        f"the constant '{literal}' in a definition, whose meaning depends on this session's settings,",
        hint="Write dates as YYYY-MM-DD, and timestamps with time zone with their offset from UTC.",
    )
