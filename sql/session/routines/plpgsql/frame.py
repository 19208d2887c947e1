"""One running call: its variables, the values of SQL in it, and assignments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, Kind, SqlType
from planner.expr.parts import walk
from planner.expr.scalar import Column, Literal, Scalar
from planner.logical.nodes import Finishing, Project, Rel
from sql.bind.bound_query import UNIT
from sql.bind.coerce import castable, type_name
from sql.bind.domains import domain_value
from sql.bind.entry_points import ENTRY_POINTS
from sql.bind.environment import Environment, Parameters
from sql.bind.variables import Variables
from sql.bind.volatile import is_volatile
from sql.bind.walk import has_subquery
from sql.catalog.catalog import Relation
from sql.catalog.composite import has_domains, without_domain
from sql.coordination.prepared import Prepared
from sql.parse import StatementText
from sql.session.routines.nested import Nested, Outcome, Row
from sql.session.routines.plpgsql.naming import shown
from sql.session.routines.plpgsql.scope import Name, Scope, Variable
from sql.statements.queries import OutputColumn, Query
from sql.syntax.plpgsql.nodes import Fragment, Node, Target
from storage.types.arrays import Row as RowDatum
from storage.types.text import format_datum, parse_datum

_SERIAL: Final = count()
_KNOWN: Final = 4096
"""How many bound fragments are remembered."""


@dataclass(eq=False, slots=True)
class Bound:
    """A fragment's statement. ``catalog``: the version it was bound to, with the search path; ``types``: those of the
    variables that it uses; ``exprs``: its select list, if it reads no relation; ``waits``: whether that may wait."""

    prepared: Prepared
    catalog: object
    types: tuple[SqlType, ...]
    exprs: tuple[Scalar, ...] | None
    waits: bool

    @classmethod
    def of(cls, prepared: Prepared, catalog: object, types: tuple[SqlType, ...]) -> Bound:
        """Looks at what the statement is made of."""
        exprs = _plain(prepared)
        waits = bool(prepared.bound.interpreted) or any(map(is_volatile, exprs or ()))
        return cls(prepared, catalog, types, exprs, waits)


_bound: dict[Fragment, Bound] = {}


class Leave:
    """Why the statements after this one do not run."""


@dataclass(frozen=True, slots=True)
class Jump(Leave):
    """EXIT or CONTINUE."""

    again: bool
    label: str | None


RETURNED: Final = Leave()


@dataclass(eq=False, slots=True)
class Frame:
    """``scope``: the innermost block's; ``steps``: what runs each kind of statement.

    ``result``: what RETURN gave, with its type. ``rows``: those of RETURN NEXT and RETURN QUERY. ``statement``: the one
    that runs, for the context of errors. ``handled``: the error of the handler that runs. ``row_count``: of the last
    statement. ``tables``: a trigger's transition tables, by name, with their columns' names.
    """

    nested: Nested
    steps: Mapping[type, Callable[[Any, Any], Leave | None]]
    scope: Scope
    conflict: str
    columns: tuple[SqlType, ...]
    returns_set: bool
    signature: str
    outputs: tuple[Variable, ...] = ()
    result: tuple[object, SqlType] | None = None
    rows: list[Row] = field(default_factory=list)
    statement: Node | str | None = None
    handled: SqlError | None = None
    row_count: int = 0
    tables: Mapping[str, tuple[tuple[str, ...], Rel]] = field(default_factory=dict)
    completed: list[SqlError] = field(default_factory=list)
    found: Variable = field(default_factory=lambda: Variable("found", BOOL, False))

    def run(self, body: Sequence[Node]) -> Leave | None:
        """Run statements, up to one that leaves."""
        for node in body:
            self.nested.between()
            self.statement = node
            left = self.steps[type(node)](self, node)
            if left is not None:
                return left
        return None

    # SQL.

    def bound(self, fragment: Fragment) -> Bound:
        """A fragment's statement, bound anew where the catalog or a record's fields have changed."""
        nested = self.nested
        known = None if self.tables else _bound.get(fragment)
        now = nested.meaning
        if known is not None and known.catalog == now:
            try:
                if all(self._type_of(n) == t for n, t in zip(known.prepared.names, known.types, strict=True)):
                    return known
            except SqlError:
                pass
        text = fragment.text if fragment.statement else f"SELECT {fragment.text}"
        try:
            prepared = self.prepare(text)
        except SqlError as error:
            raise within(error, fragment) from None
        types = tuple(self._type_of(n) or BOOL for n in prepared.names)
        if self.tables:
            return Bound.of(prepared, nested.meaning, types)
        if len(_bound) >= _KNOWN:
            _bound.clear()
        found = _bound[fragment] = Bound.of(prepared, nested.meaning, types)
        return found

    def prepare(self, text: StatementText | str, types: Sequence[SqlType] = (), own: bool = True) -> Prepared:
        """Bind a statement; ``own``: names in it may mean variables."""
        if not own:
            variables = Variables(lambda _: None, None if not self.tables else next(_SERIAL), tables=self.tables)
            return self.nested.prepare(text, types, variables)
        preferred, conflicts = self.conflict == "use_variable", self.conflict == "error"
        variables = Variables(self._type_of, next(_SERIAL), conflicts, preferred, self._fields, self.tables)
        return self.nested.prepare(text, types, variables)

    def _type_of(self, name: Name) -> SqlType | None:
        found = self.scope.find(name)
        return None if found is None else found[0].part(found[1])[1]

    def _fields(self, name: Name) -> tuple[str, ...] | None:
        found = self.scope.find(name)
        if found is None or found[1] or not found[0].composite:
            return None
        if found[0].type is None:
            found[0].place("*")
        assert found[0].type is not None, "it has fields"
        return tuple(label for label, _ in found[0].type.fields)

    def values(self, prepared: Prepared) -> tuple[object, ...]:
        """The values of the variables that a statement uses."""
        found = []
        for name in prepared.names:
            variable, rest = self.scope.known(name)
            found.append(variable.part(rest)[0])
        return tuple(found)

    def execute(self, fragment: Fragment) -> Outcome:
        """Run a fragment."""
        return self.nested.attempt(lambda: self._run(fragment))

    def _run(self, fragment: Fragment) -> Outcome:
        bound = self.bound(fragment)
        try:
            return self.nested.run(bound.prepared, self.values(bound.prepared))
        except SqlError as error:
            raise within(error, fragment, runs=True) from None

    def value(self, fragment: Fragment) -> tuple[object, SqlType]:
        """An expression's value and type; NULL if it is a query without rows. Raises 42601, 21000."""
        bound = self.bound(fragment)
        if bound.exprs is not None and len(bound.exprs) == 1:
            bound.prepared.check_allowed()
            exprs, given = bound.exprs, self.values(bound.prepared)
            if bound.waits:
                found = self.nested.attempt(lambda: self.nested.values(exprs, given))
            else:
                found = self.nested.values(exprs, given)
            return found[0], exprs[0].type
        outcome = self.execute(fragment)
        columns = outcome.columns or ()
        if len(columns) != 1:
            shown = f'query "{fragment.text}" returned {len(columns)} column' + ("s" if len(columns) != 1 else "")
            raise SqlError("42601", shown)
        if len(outcome.rows) > 1:
            raise SqlError("21000", f'query "{fragment.text}" returned more than one row')
        return outcome.rows[0][0] if outcome.rows else None, columns[0].type

    def value_as(self, fragment: Fragment, wanted: SqlType) -> object:
        """An expression's value as a type."""
        value, type_ = self.value(fragment)
        return self.cast(value, type_, wanted)

    def condition(self, fragment: Fragment) -> bool:
        """Whether a condition is true."""
        return self.value_as(fragment, BOOL) is True

    def text(self, value: object, type_: SqlType) -> str:
        """A datum's text form."""
        return format_datum(type_, value, self.nested.style)

    def cast(self, value: object, type_: SqlType, wanted: SqlType) -> object:
        """A datum as another type, by an assignment cast or through its text."""
        if type_ == wanted or value is None:
            return value
        if wanted.kind is Kind.RECORD and type_.kind is Kind.RECORD and isinstance(value, tuple):
            return self.row(value, type_, wanted) if wanted.fields else value
        if type_.kind is not Kind.UNKNOWN and castable(type_, wanted, "assignment"):
            return self.nested.cast(value, type_, wanted)
        return parse_datum(wanted, self.text(value, type_), self.nested.style)

    def checked(self, value: object, type_: SqlType, domain: Relation | None) -> object:
        """The value, if it meets the constraints of its domain, or of those of its fields. Raises 23502, 23514."""
        if domain is None and not has_domains(type_):
            return value
        env = Environment(self.nested.names, Parameters(), ENTRY_POINTS)
        expr = domain_value(env, replace(type_, domain=domain), Literal(value, without_domain(type_)))
        return self.nested.values((expr,), ())[0]

    def row(self, value: Row, type_: SqlType, wanted: SqlType) -> Row:
        """A row with the fields of another row type, by their order; those too many are left out."""
        have = [t for _, t in type_.fields]
        return RowDatum(
            self.cast(value[i], have[i], want) if i < len(have) else None for i, (_, want) in enumerate(wanted.fields)
        )

    def type_name(self, type_: SqlType) -> str:
        """A type as errors name it."""
        return type_name(type_)

    # Errors.

    def where(self) -> str:
        """This call's line in the context of an error."""
        node = self.statement
        place = "" if node is None else f" {node}" if isinstance(node, str) else f" line {node.line} at {shown(node)}"
        return f"PL/pgSQL function {self.signature}{place}"

    def complete(self, error: SqlError) -> None:
        """Add this call to an error's context, once."""
        if not any(error is seen for seen in self.completed):
            self.completed.append(error)
            error.within(self.where())

    # Assignments.

    def set(self, variable: Variable, value: object, type_: SqlType) -> None:
        """Give a variable a value. Raises 22005, 22004, and what the cast raises."""
        self.assignable(variable)
        self.initialise(variable, value, type_)

    def assignable(self, variable: Variable) -> None:
        """22005 if the variable is a constant."""
        if variable.constant:
            raise SqlError("22005", f'variable "{variable.name}" is declared CONSTANT')

    def initialise(self, variable: Variable, value: object, type_: SqlType) -> None:
        """The same, of a constant too."""
        if variable.composite:
            self._set_row(variable, value, type_)
            return
        assert variable.type is not None, "only records have none"
        value = self.checked(self.cast(value, type_, variable.type), variable.type, variable.domain)
        if value is None and variable.not_null:
            raise SqlError("22004", f'null value cannot be assigned to variable "{variable.name}" declared NOT NULL')
        variable.value = value

    def _set_row(self, variable: Variable, value: object, type_: SqlType) -> None:
        if value is None:
            variable.value = None
            if variable.record and type_.kind is Kind.RECORD and type_.fields:
                variable.type = type_
            return
        if type_.kind is not Kind.RECORD or not isinstance(value, tuple):
            if not variable.record and type_.kind in (Kind.TEXT, Kind.VARCHAR, Kind.UNKNOWN):
                assert variable.type is not None, "a row variable has a type"
                read = parse_datum(variable.type, str(value), self.nested.style)
                variable.value = self.checked(read, variable.type, variable.domain)
                return
            raise SqlError("42804", "cannot assign non-composite value to a record variable")
        if variable.record:
            variable.type, variable.value = type_, RowDatum(value)
        else:
            assert variable.type is not None, "a row variable has a type"
            made = self.row(value, type_, variable.type)
            variable.value = self.checked(made, variable.type, variable.domain)

    def assign(self, target: Target, value: object, type_: SqlType) -> None:
        """Assign to a variable or a field."""
        variable, rest = self.scope.known(target.name)
        if not rest:
            self.set(variable, value, type_)
            return
        place = variable.place(rest[0])
        assert variable.type is not None, "it has the field"
        fields = list(variable.value) if isinstance(variable.value, tuple) else [None] * len(variable.type.fields)
        wanted = variable.type.fields[place][1]
        fields[place] = self.checked(self.cast(value, type_, wanted), wanted, wanted.domain)
        variable.value = RowDatum(fields)

    def assign_value(self, targets: Sequence[Target], value: object, type_: SqlType) -> None:
        """Assign a value, or the fields of a row to several targets."""
        if len(targets) == 1:
            self.assign(targets[0], value, type_)
            return
        columns = tuple(OutputColumn(name, t) for name, t in type_.fields)
        self.assign_row(targets, value if isinstance(value, tuple) else None, columns)

    def output_row(self) -> Row:
        """The values of the output variables."""
        return tuple(v.value for v in self.outputs)

    def assign_row(self, targets: Sequence[Target], row: Row | None, columns: Sequence[OutputColumn]) -> None:
        """Assign a query's row to a record or row variable, or its columns to scalars; None: NULLs."""
        if len(targets) == 1:
            variable, rest = self.scope.known(targets[0].name)
            if variable.composite and not rest:
                self._assign_whole(variable, row, columns)
                return
        for i, target in enumerate(targets):
            there = row is not None and i < len(columns)
            value, type_ = (row[i], columns[i].type) if there and row is not None else (None, BOOL)
            self.assign(target, value, type_)

    def _assign_whole(self, variable: Variable, row: Row | None, columns: Sequence[OutputColumn]) -> None:
        one = columns[0].type if len(columns) == 1 else None
        if one is not None and one.kind is Kind.RECORD and one.fields and (row is None or row[0] is not None):
            inner = row[0] if row is not None else None
            if not variable.record:
                self.set(variable, inner, one)
                return
        made = SqlType(Kind.RECORD, fields=tuple((c.name, c.type) for c in columns))
        self.set(variable, row, made)

    def row_type(self, columns: Sequence[OutputColumn]) -> SqlType:
        """The type of a query's rows."""
        return SqlType(Kind.RECORD, fields=tuple((c.name, c.type) for c in columns))


def _plain(prepared: Prepared) -> tuple[Scalar, ...] | None:
    """The select list of a query that reads no relation, and calls no set-returning function."""
    statement = prepared.bound.statement
    if not isinstance(statement, Query) or not isinstance(statement.rel, Project) or statement.rel.input != UNIT:
        return None
    finishing = statement.finishing
    if finishing not in (Finishing(), Finishing(project=finishing.project)):
        return None
    exprs = statement.rel.exprs if finishing.project is None else finishing.project
    reads = any(isinstance(part, Column) for expr in exprs for part in walk(expr))
    return None if reads or any(map(has_subquery, exprs)) else exprs


def within(error: SqlError, fragment: Fragment, runs: bool = False) -> SqlError:
    """An error of a fragment: its position counts there; without one, a line of its context tells the fragment."""
    shown = fragment.assignment or fragment.text
    if error.query is None and error.position is not None:
        if not fragment.statement:
            error.position = max(error.position - len("SELECT "), 1) + len(shown) - len(fragment.text)
        error.query = shown
    elif error.query is None and (fragment.statement or not runs):
        kind = "SQL statement" if fragment.statement else "SQL expression"
        error.within(f'{kind if fragment.assignment is None else "PL/pgSQL assignment"} "{shown}"')
    return error
