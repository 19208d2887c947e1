"""What binding a statement carries along, and the way from the lower layers of the binder to the upper ones.

SQL's grammar is recursive: an expression holds subqueries, FROM holds queries and views, WITH holds statements that
change data. The modules of this folder import downwards only (``sql.bind.statement`` lists the layers); where the
grammar leads back up, a module calls ``Environment.binder``, ``Environment.bind_query`` or ``Environment.bind_change``,
whose implementations ``sql.bind.entry_points`` supplies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Protocol

from ivm.errors import SqlError, unsupported
from ivm.words import TEXT, UNKNOWN, Kind, SqlType
from planner.expr.scalar import Literal, Parameter, Scalar, SortKey
from planner.logical.nodes import Rel
from sql.bind.bound_query import BoundQuery, NamedRel
from sql.bind.notes import Notes
from sql.bind.scope import NameScope
from sql.bind.uses import Asking, Use
from sql.bind.variables import Variables
from sql.catalog.catalog import CatalogReader, Relation
from sql.catalog.column_types import array_of, is_type_name, type_from_name
from sql.catalog.search_path import pinned
from sql.statements.statements import DataChange
from sql.syntax.nodes import queries as nodes

MAX_PARAMETERS = 65535


class Parameters:
    """The types of ``$1, $2, …``: declared by the client, or inferred from the first use that determines one."""

    def __init__(self, given: tuple[SqlType | None, ...] = (), variables: Variables | None = None) -> None:
        """``variables``: what names mean in a routine's statement, whose numbered parameters are those ``given``."""
        self.types: list[SqlType | None] = [None if t is None or t.kind is Kind.UNKNOWN else t for t in given]
        self._given = MAX_PARAMETERS if variables is None else len(given)
        self._variables = variables
        self._places: dict[int, int] = {}
        """Where each parameter first stands while it has no type."""
        self._open: list[int] = []
        """The parameters that are arguments of any type while they have none."""
        if variables is not None:
            variables.used.clear()

    @property
    def of_routine(self) -> bool:
        """Whether they are those of a routine's statement, not a client's."""
        return self._variables is not None

    def reference(self, index: int, at: int) -> Parameter:
        """The parameter as an expression, of type UNKNOWN until its type is inferred. Raises 42P02."""
        variable = None if self._variables is None else self.variable((f"${index}",))
        if variable is not None:
            return variable
        if not 1 <= index <= self._given:
            raise SqlError("42P02", f"there is no parameter ${index}", position=at + 1)
        while len(self.types) < index:
            self.types.append(None)
        type_ = self.types[index - 1]
        if type_ is None:
            self._places.setdefault(index, at)
        return Parameter(index, type_ or UNKNOWN)

    def variable(self, name: tuple[str, ...]) -> Parameter | None:
        """The parameter that stands for a variable; None if the name means none."""
        variables = self._variables
        type_ = None if variables is None else variables.type_of(name)
        if variables is None or type_ is None:
            return None
        if name not in variables.used:
            variables.used.append(name)
            self.types.append(type_)
        return Parameter(self._given + variables.used.index(name) + 1, type_)

    def fields(self, name: tuple[str, ...]) -> tuple[tuple[str, Parameter], ...] | None:
        """The fields that ``name.*`` stands for; None if no record has the name."""
        labels = None if self._variables is None else self._variables.fields(name)
        if labels is None:
            return None
        found = [(label, self.variable((*name, label))) for label in labels]
        return tuple((label, value) for label, value in found if value is not None)

    def preferred(self, name: tuple[str, ...]) -> Parameter | None:
        """The variable that a name means even if a column has it too."""
        return self.variable(name) if self._variables is not None and self._variables.preferred else None

    def check_conflict(self, name: tuple[str, ...], at: int) -> None:
        """42702: the name of a column means a variable too."""
        variables = self._variables
        if variables is not None and variables.conflicts and variables.type_of(name) is not None:
            message = f'column reference "{name[-1]}" is ambiguous'
            detail = "It could refer to either a PL/pgSQL variable or a table column."
            raise SqlError("42702", message, detail, position=at + 1)

    def infer(self, index: int, type_: SqlType) -> SqlType:
        """The parameter's type, which becomes ``type_`` if it has none yet."""
        known = self.types[index - 1]
        if known is None:
            known = self.types[index - 1] = type_.plain
        return known

    def leave_open(self, index: int) -> Parameter:
        """The parameter as an argument that may have any type, which says nothing of its own."""
        self._open.append(index)
        return Parameter(index, TEXT)

    def finished(self) -> tuple[SqlType, ...]:
        """All types once the statement is bound; text where none was inferred. Raises 42P18 for an argument of any type
        that has none, and 42P08 for one that another use, further on, gives a type."""
        for index in self._open:
            message = f"could not determine data type of parameter ${index}"
            if self.types[index - 1] is None:
                raise SqlError("42P18", message)
            raise SqlError("42P08", message, position=self._places[index] + 1)
        return tuple(t or TEXT for t in self.types)


@dataclass(frozen=True, slots=True)
class CteBinding:
    """A CTE in scope: its plan (the same object at each use) and its columns' names.

    ``depth``: the depth of the scope around it, from which its outer references count. ``working``: it is the working
    table of a recursion that is being bound. ``silent``: a data-modifying statement without RETURNING, which cannot be
    read. ``order``: of its rows, where it has one; ``rel`` may then have hidden columns. ``hidden``: how many of
    the last columns ``*`` leaves out.
    """

    name: str
    columns: tuple[str, ...]
    rel: Rel
    working: bool = False
    depth: int = 0
    silent: bool = False
    order: tuple[SortKey, ...] = ()
    hidden: int = 0


class Binder(Protocol):
    """Binds the expressions of one clause. ``sql.bind.expression.ExpressionBinder`` is the implementation; the modules
    below it, each of which binds some kinds of expressions, see this much of it.

    ``scope``: the names of the query level. ``clause``: the clause's name in errors (WHERE, GROUP BY, …).
    ``inside_aggregate``: the expression being bound is an argument of an aggregate.
    """

    env: Environment
    scope: NameScope
    clause: str
    inside_aggregate: bool

    def bind(self, expr: nodes.Expr) -> Scalar:
        """The bound expression; an untyped literal or parameter keeps the type UNKNOWN."""

    def bind_items(self, items: Sequence[nodes.Expr]) -> list[Scalar]:
        """A list of expressions, in which ``t.*`` stands for the columns of t."""

    def typed(self, expr: nodes.Expr) -> Scalar:
        """The bound expression, as text if its type is UNKNOWN."""

    def condition(self, expr: nodes.Expr, what: str) -> Scalar:
        """A boolean expression; ``what`` names it in errors. Raises 42804."""

    def query(self, query: nodes.Query) -> NamedRel:
        """A subquery, whose enclosing level is ``scope``."""


@dataclass(frozen=True, slots=True)
class EntryPoints:
    """The upper layers' entry points, as ``Environment`` gives them to the lower layers."""

    binder: Callable[[Environment, NameScope, str], Binder]
    query: Callable[[Environment, nodes.Query, NameScope | None], BoundQuery]
    change: Callable[[Environment, nodes.Change], DataChange]
    operator: Callable[[Environment, Relation, Sequence[Scalar], int], Scalar]


@dataclass(slots=True)
class Environment:
    """The state of binding one statement.

    ``ctes``: those in scope by name. ``bindings``: numbers for recursive bindings. ``views``: the views and functions
    being expanded, to detect cycles. ``origins``: each untyped literal with its offset, by the literal's identity, for
    the error where it does not fit its type. ``rows``: each ROW(…) with its fields before untyped ones became text, by
    its identity.
    ``marked``: the aliases of tables in FROM that get an extra column which only an outer join's padding makes NULL.
    ``oids``: stored relations in FROM get an extra column ``tableoid``, which no star expands to.
    ``interpreted``: the routines called that an interpreter runs, as shown to users.
    ``notes``: what is found out about the statement's own nodes, if that is asked for.
    ``asking``: as whom the statement is run; None: as one who may do everything.
    ``locked``: the offsets of the tables in FROM that FOR UPDATE or SHARE locks.
    ``top``: the statement's own WITH, the only one that may hold data-modifying statements; ``changes`` collects them.
    """

    catalog: CatalogReader
    parameters: Parameters
    entry_points: EntryPoints
    ctes: Mapping[str, CteBinding | None] = field(default_factory=dict)
    bindings: count[int] = field(default_factory=lambda: count(1))
    views: tuple[int, ...] = ()
    origins: dict[int, tuple[Literal, int]] = field(default_factory=dict)
    rows: dict[int, tuple[Scalar, tuple[Scalar, ...]]] = field(default_factory=dict)
    marked: frozenset[str] = frozenset()
    top: nodes.With | None = None
    changes: list[tuple[int, DataChange]] = field(default_factory=list)
    oids: bool = False
    interpreted: list[str] = field(default_factory=list)
    notes: Notes | None = None
    asking: Asking | None = None
    locked: frozenset[int] = frozenset()

    def binder(self, scope: NameScope, clause: str) -> Binder:
        """A binder for a clause's expressions."""
        return self.entry_points.binder(self, scope, clause)

    def bind_query(self, query: nodes.Query, outer: NameScope | None) -> BoundQuery:
        """A nested query. ``outer``: the enclosing level. Its columns may be of type UNKNOWN."""
        return self.entry_points.query(self, query, outer)

    def bind_change(self, node: nodes.Change) -> DataChange:
        """A data-modifying statement in WITH."""
        return self.entry_points.change(self, node)

    def call_operator(self, relation: Relation, args: Sequence[Scalar], at: int) -> Scalar:
        """A user's operator applied to operands of its types."""
        return self.entry_points.operator(self, relation, args, at)

    def with_ctes(self, ctes: Mapping[str, CteBinding | None]) -> Environment:
        """The same with these CTEs in scope instead."""
        return replace(self, ctes=ctes)

    def untyped(self, value: str, at: int) -> Literal:
        """An untyped literal, whose offset is remembered."""
        literal = Literal(value, UNKNOWN)
        self.origins[id(literal)] = literal, at
        return literal

    def origin(self, literal: Literal, otherwise: int) -> int:
        """The offset of a literal made by ``untyped``; ``otherwise`` for any other."""
        return self.origins.get(id(literal), (literal, otherwise))[1]

    def unresolved(self, row: Scalar) -> tuple[Scalar, ...] | None:
        """The fields of a ROW(…) as written, untyped ones included; None for any other expression."""
        return self.rows.get(id(row), (row, None))[1]

    def for_view(self, view: Relation) -> Environment:
        """The environment of a view's definition, which sees its own search path, no CTEs and no parameters."""
        catalog = pinned(self.catalog, view)
        views, asking = (*self.views, view.id), None if self.asking is None else self.asking.inside_view(view)
        return replace(
            self, catalog=catalog, ctes={}, parameters=Parameters(), views=views, notes=None, asking=asking,
            locked=frozenset(),
        )  # fmt: skip

    def use(self, relation: Relation, above: Use | None = None) -> Use | None:
        """A new use of a relation, if anybody asks. ``above``: the view whose change is one of this relation."""
        return None if self.asking is None else self.asking.use(relation, above)

    def type(self, name: nodes.TypeName) -> SqlType:
        """The type that a name means. Raises 42704, 0A000, 22023; 0A000 for a domain, see ``domain``."""
        if name.array and (domain := self.domain(replace(name, array=False))) is not None:
            return _array_of_domain(domain, name.at)
        text = name.name
        own = None if is_type_name(text) and name.schema in (None, "pg_catalog") else self._own_type(name)
        type_ = type_from_name(text, name.args, name.at + 1) if own is None else own
        return array_of(type_) if name.array else type_

    def domain(self, name: nodes.TypeName) -> Relation | None:
        """The domain that a name means, None if it means another type. Raises 42601."""
        if name.array or (is_type_name(name.name) and name.schema in (None, "pg_catalog")):
            return None
        found = self.catalog.type(name.schema, name.name)
        if found is None or not found.domain:
            return None
        if name.args:
            raise SqlError("42601", f'type modifier is not allowed for type "{found.name}"', position=name.at + 1)
        return found

    def field_type(self, name: nodes.TypeName) -> SqlType:
        """The type of a row's field, which may be a domain. Raises as ``type`` and ``domain``."""
        domain = self.domain(name)
        return self.type(name) if domain is None else replace(domain.columns[0].type, domain=domain)

    def _own_type(self, name: nodes.TypeName) -> SqlType | None:
        found = self.catalog.type(name.schema, name.name)
        if found is None and name.schema is not None:
            raise SqlError("42704", f'type "{name.schema}.{name.name}" does not exist', position=name.at + 1)
        if found is not None and name.args:
            raise SqlError("42601", f'type modifier is not allowed for type "{found.name}"', position=name.at + 1)
        if found is not None and found.domain:
            hint = "A domain can be the type of a table's column, and of a cast in a query: write its base type here."
            raise unsupported(f"domain {found.name} in this place", hint, name.at + 1)
        return None if found is None else found.type_named(name.name)


def _array_of_domain(domain: Relation, at: int) -> SqlType:
    element = domain.columns[0].type
    if element.element is not None:
        hint = "An array's elements are no arrays here: its dimensions have no types."
        raise unsupported(f"an array of domain {domain.name} over arrays", hint, at + 1)
    return array_of(replace(element, domain=domain))
