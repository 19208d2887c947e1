"""SEARCH and CYCLE: columns that a recursive query's rows get beside their own.

Each row gets a sequence to sort by (SEARCH): the rows from the first one to it (DEPTH FIRST), or its depth and itself
(BREADTH FIRST); and a mark and the path to it (CYCLE): a row whose columns are in its path already is marked, and no
step is taken from it. The recursive term reads the columns of the row that it comes from by name, but not by ``*``.
Source: PostgreSQL's rewriteSearchCycle.c describes the same columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8
from planner.expr.functions.library import overloads
from planner.expr.scalar import Call, Case, Literal, Scalar
from planner.logical.nodes import Filter, Project, Rel, schema
from planner.logical.traversal import own_columns
from sql.bind.coerce import cast, resolve_unknown, try_common_type, type_name
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.operators import operator
from sql.bind.rows import make_row
from sql.bind.scope import NameScope
from sql.catalog.column_types import array_of
from sql.syntax.nodes import queries as nodes


@dataclass(frozen=True, slots=True)
class Added:
    """The columns that the clauses of a query add. ``marks``: the mark's values, for a cycle and for none."""

    env: Environment
    cte: nodes.Cte
    names: tuple[str, ...]
    marks: tuple[Scalar, Scalar] | None

    @property
    def new(self) -> tuple[str, ...]:
        """The added columns' names, in order."""
        search = () if self.cte.search is None else (self.cte.search.sequence,)
        return (*search, *(() if self.cte.cycle is None else (self.cte.cycle.mark, self.cte.cycle.path)))

    def base(self, rel: Rel) -> Rel:
        """The first rows with their columns."""
        own, added = own_columns(schema(rel)), []
        if self.cte.search is not None:
            row = self._row(own, self.cte.search.columns)
            added.append(self._with_depth(Literal(0, INT8), row) if self.cte.search.breadth else _array(row))
        if self.cte.cycle is not None and self.marks is not None:
            added += [self.marks[1], _array(self._row(own, self.cte.cycle.columns))]
        return Project(rel, (*own, *added))

    def step(self, rel: Rel) -> Rel:
        """The rows of a step, whose last columns are those of the rows that they come from, with their own."""
        count, columns = len(self.names), own_columns(schema(rel))
        own, before, added = columns[:count], list(columns[count:]), []
        if self.cte.search is not None:
            sequence, row = before.pop(0), self._row(own, self.cte.search.columns)
            if self.cte.search.breadth:
                depth = Call("field of row", (sequence, Literal(0, INT4)), INT8, True)
                one = Call("+(int8,int8)", (depth, Literal(1, INT8)), INT8, True)
                added.append(self._with_depth(one, row))
            else:
                added.append(self._appended(sequence, row))
        if self.cte.cycle is not None and self.marks is not None:
            mark, path = before
            row = self._row(own, self.cte.cycle.columns)
            rel = Filter(rel, operator(self.env, "<>", [mark, self.marks[0]], self.cte.cycle.at, "pg_catalog"))
            seen = operator(self.env, "@>", [path, _array(row)], self.cte.cycle.at, "pg_catalog")
            value = Case(((seen, self.marks[0]),), self.marks[1], self.marks[0].type)
            added += [value, self._appended(path, row)]
        return Project(rel, (*own, *added))

    def _row(self, own: Sequence[Scalar], names: tuple[str, ...]) -> Scalar:
        values = [own[self.names.index(name)] for name in names]
        return make_row(values, [f"f{i}" for i in range(1, len(values) + 1)])

    @staticmethod
    def _with_depth(depth: Scalar, row: Scalar) -> Scalar:
        assert isinstance(row, Call)
        return make_row([depth, *row.args], ["*DEPTH*", *(name for name, _ in row.type.fields)])

    def _appended(self, array: Scalar, row: Scalar) -> Scalar:
        return operator(self.env, "||", [array, _array(row)], self.cte.at, "pg_catalog")

    def reading(self, right: nodes.QueryBody) -> nodes.QueryBody:
        """The recursive term with these columns of the row that it reads. Raises 42601, 0A000."""
        shadowed = (
            isinstance(right, nodes.Query)
            and right.with_ is not None
            and any(inner.name == self.cte.name for inner in right.with_.ctes)
        )
        if isinstance(right, nodes.Query) and not shadowed:
            return replace(right, body=self.reading(right.body))
        if isinstance(right, nodes.SetQuery):
            message = "with a SEARCH or CYCLE clause, the right side of the UNION must be a SELECT"
            raise SqlError("42601", message)
        found = _reference(right.from_, self.cte.name) if isinstance(right, nodes.Select) else None
        if found is None:
            raise SqlError(
                "0A000", "with a SEARCH or CYCLE clause, the recursive reference to WITH query "
                f'"{self.cte.name}" must be at the top level of its right-hand SELECT',
            )  # fmt: skip
        assert isinstance(right, nodes.Select)
        names = (nodes.Name((found.alias or found.name, name), found.at) for name in self.new)
        return replace(right, targets=(*right.targets, *(nodes.Target(name, None, found.at) for name in names)))


def _array(row: Scalar) -> Scalar:
    (function,) = overloads("array")
    return Call(function.key, (row,), array_of(row.type), False)


def _reference(refs: Sequence[nodes.TableRef], name: str) -> nodes.TableName | None:
    """Where FROM reads the recursive query."""
    for ref in refs:
        if isinstance(ref, nodes.TableName) and ref.schema_name is None and ref.name == name:
            return ref
        found = _reference((ref.left, ref.right), name) if isinstance(ref, nodes.JoinedTable) else None
        if found is not None:
            return found
    return None


def added(env: Environment, cte: nodes.Cte, left: nodes.QueryBody, names: tuple[str, ...]) -> Added | None:
    """What the clauses of a recursive query add to its columns ``names``; None: it has none. Raises 42601, 0A000,
    42804, 42883."""
    if cte.search is None and cte.cycle is None:
        return None
    if isinstance(left, nodes.SetQuery):
        raise SqlError("0A000", "with a SEARCH or CYCLE clause, the left side of the UNION must be a SELECT")
    _check_names(cte, names)
    return Added(env, cte, names, None if cte.cycle is None else _marks(env, cte, cte.cycle.at))


def _marks(env: Environment, cte: nodes.Cte, at: int) -> tuple[Scalar, Scalar]:
    if cte.marks is None:
        return Literal(True, BOOL), Literal(False, BOOL)
    binder = ExpressionBinder(env, NameScope(clause="CYCLE"), "CYCLE")
    value, default = (binder.bind(node) for node in cte.marks)
    common = try_common_type([value.type, default.type])
    if common is None:
        first, second = type_name(value.type), type_name(default.type)
        raise SqlError("42804", f"CYCLE types {first} and {second} cannot be matched", position=cte.marks[1].at + 1)
    pair = [resolve_unknown(env, cast(env, e, common, "implicit", at), at) for e in (value, default)]
    return pair[0], pair[1]


def _check_names(cte: nodes.Cte, names: tuple[str, ...]) -> None:
    """Raises 42601 as parse_cte.c does."""
    search, cycle = cte.search, cte.cycle
    if search is not None:
        _check_columns("search", search.columns, names, search.at)
        _check_new("search sequence", search.sequence, names, search.at)
    if cycle is not None:
        _check_columns("cycle", cycle.columns, names, cycle.at)
        _check_new("cycle mark", cycle.mark, names, cycle.at)
        _check_new("cycle path", cycle.path, names, cycle.at)
        if cycle.mark == cycle.path:
            raise _same("cycle mark", "cycle path", cycle.at)
    if search is not None and cycle is not None:
        for other, what in ((cycle.mark, "cycle mark"), (cycle.path, "cycle path")):
            if search.sequence == other:
                raise _same("search sequence", what, search.at)


def _check_columns(what: str, columns: tuple[str, ...], names: tuple[str, ...], at: int) -> None:
    for i, name in enumerate(columns):
        if name not in names:
            raise SqlError("42601", f'{what} column "{name}" not in WITH query column list', position=at + 1)
        if name in columns[:i]:
            raise SqlError("42701", f'{what} column "{name}" specified more than once', position=at + 1)


def _check_new(what: str, name: str, names: tuple[str, ...], at: int) -> None:
    if name in names:
        message = f'{what} column name "{name}" already used in WITH query column list'
        raise SqlError("42601", message, position=at + 1)


def _same(one: str, two: str, at: int) -> SqlError:
    return SqlError("42601", f"{one} column name and {two} column name are the same", position=at + 1)
