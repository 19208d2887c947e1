"""Expressions: the dispatch on the kinds of syntax nodes, whose binding is in modules of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, UNKNOWN, Kind, SqlType
from planner.expr.scalar import Aggregate, And, Coalesce, Column, Exists, Literal, Or, Scalar, ScalarSubquery
from planner.logical.nodes import Reduce, schema
from sql.bind import arrays, calls, comparisons, conditional, json_calls, routine_resolution, rows
from sql.bind.alike import chain
from sql.bind.arrival import ordered_aggregates
from sql.bind.bound_query import NamedRel
from sql.bind.coerce import cast, resolve_unknown, to_boolean
from sql.bind.collations import check_collatable
from sql.bind.environment import Environment
from sql.bind.literals import number, standing_at, typed_literal
from sql.bind.operators import negate, operator
from sql.bind.positions import position
from sql.bind.scalar_functions import apply_function
from sql.bind.scope import NameScope, find_column, find_range_columns, missing_table
from sql.bind.subquery import bind_ordered, bind_subquery
from sql.catalog.column_types import array_of
from sql.catalog.composite import domain_oid, without_domain
from sql.syntax.nodes import queries as nodes


@dataclass(slots=True)
class ExpressionBinder:
    """The implementation of ``Binder``, which documents the fields."""

    env: Environment
    scope: NameScope
    clause: str
    inside_aggregate: bool = False

    def bind(self, expr: nodes.Expr) -> Scalar:
        """The bound expression; an untyped literal or parameter keeps the type UNKNOWN."""
        bound = self._bound(expr)
        if self.env.notes is not None:
            self.env.notes.values[id(expr)] = expr, bound
        return bound

    def _bound(self, expr: nodes.Expr) -> Scalar:
        match expr:
            case nodes.Operator():
                return self._operator(expr)
            case nodes.Name():
                return self._name(expr)
            case nodes.Apply():
                return calls.call(self, expr)
            case nodes.CaseExpr():
                return conditional.case(self, expr)
            case nodes.Number():
                return standing_at(expr.at, number(expr.text))
            case nodes.String():
                return self.env.untyped(expr.value, expr.at)
            case nodes.Bits():
                return typed_literal(expr.value, SqlType(Kind.BIT), "explicit", expr.at)
            case nodes.Null():
                return Literal(None, UNKNOWN)
            case nodes.Boolean():
                return Literal(expr.value, BOOL)
            case nodes.Param():
                return self.env.parameters.reference(expr.index, expr.at)
            case nodes.Alike() | nodes.Mixed():
                return chain(self, expr)
            case nodes.Given():
                assert isinstance(expr.value, Scalar)
                return expr.value
            case nodes.Cast():
                return self._cast(expr)
            case nodes.AndExpr():
                return And(tuple(self.condition(a, "AND") for a in expr.args))
            case nodes.OrExpr():
                return Or(tuple(self.condition(a, "OR") for a in expr.args))
            case nodes.NotExpr():
                return negate(self.condition(expr.arg, "NOT"))
            case nodes.Subquery():
                return self._subquery(expr)
            case nodes.ExistsExpr():
                return Exists(self.query(expr.query).rel)
            case nodes.Collate():
                return self._collate(expr)
            case nodes.Star():
                return self._whole_row(expr)
            case nodes.Default():
                raise SqlError("42601", "DEFAULT is not allowed in this context", position=expr.at + 1)
            case nodes.RowExpr():
                return rows.row(self, expr)
            case nodes.Field():
                return self._field(expr)
            case nodes.JsonCall():
                return json_calls.json_call(self, expr)
            case nodes.AllFields():
                message = 'row expansion via "*" is not supported here'
                raise SqlError("0A000", message, position=expr.at + 1)
            case _:
                return self._form(expr)

    def _form(
        self,
        expr: nodes.IsTest | nodes.DistinctTest | nodes.InList | nodes.InQuery | nodes.Between | nodes.Quantifier
        | nodes.ArrayQuery | nodes.ArrayExpr | nodes.Subscript,
    ) -> Scalar:  # fmt: skip
        match expr:
            case nodes.IsTest():
                return comparisons.is_test(self, expr)
            case nodes.DistinctTest():
                return comparisons.distinct_test(self, expr)
            case nodes.InList():
                return comparisons.in_list(self, expr)
            case nodes.InQuery():
                return comparisons.in_query(self, expr)
            case nodes.Between():
                return comparisons.between(self, expr)
            case nodes.Quantifier():
                return comparisons.quantifier(self, expr)
            case nodes.ArrayExpr():
                return arrays.array(self, expr)
            case nodes.ArrayQuery():
                return self._array_query(expr)
            case nodes.Subscript():
                return arrays.subscript(self, expr)
            case _:
                assert_never(expr)

    def _name(self, expr: nodes.Name) -> Scalar:
        """A column, or a table's whole row where no column has the name. Raises 42702, 42703, 42P01."""
        parameters = self.env.parameters
        preferred = parameters.preferred(expr.parts)
        if preferred is not None:
            return preferred
        try:
            column = find_column(self.scope, expr.parts, expr.at)
            parameters.check_conflict(expr.parts, expr.at)
            if self.env.notes is not None:
                self.env.notes.name(self.scope, expr, column)
            return column
        except SqlError as error:
            if error.sqlstate not in ("42703", "42P01"):
                raise
            variable = parameters.variable(expr.parts)
            if variable is not None:
                return variable
            found = self._row(expr.parts, expr.at) or self._function_of_row(expr)
            if found is None and expr.parts[-1] == "tableoid":
                found = rows.table_oid(self.scope, expr.parts[:-1], expr.at)
            if found is None and expr.parts[-1] == "xmin":
                found = rows.catalog_xmin(self.scope, expr.parts[:-1], expr.at)
            if found is None:
                raise
            return found

    def _row(self, qualifier: tuple[str, ...], at: int) -> Scalar | None:
        """A table's whole row; None where no table has the name."""
        found = rows.whole_row(self.env, self.scope, qualifier, at)
        if self.env.notes is not None:
            self.env.notes.row(self.scope, qualifier, at)
        return found

    def _function_of_row(self, expr: nodes.Name) -> Scalar | None:
        """``t.f`` as ``f(t)``, for a user's function f, or ``a.f`` of a function's argument; None if it is neither."""
        name = expr.parts[-1]
        row = rows.argument(self.env, self.scope, expr.parts[:-1], expr.at) if len(expr.parts) > 1 else None
        if row is not None:
            return rows.field_of(row, nodes.Field(expr, name, expr.at))
        if len(expr.parts) == 1 or not routine_resolution.routine_overloads(self.env, (name,)):
            return None
        if rows.whole_row(self.env, self.scope, expr.parts[:-1], expr.at) is None:
            return None
        star = nodes.Star(expr.parts[:-1], expr.at)
        return self._taken(expr, nodes.Apply((name,), (star,), expr.at))

    def _taken(self, expr: nodes.Expr, call: nodes.Apply) -> Scalar:
        """A call for which an expression of another form stands."""
        if self.env.notes is not None:
            self.env.notes.instead[id(expr)] = expr, call
        return self.bind(call)

    def _field(self, expr: nodes.Field) -> Scalar:
        """``(row).f``, or ``f(row)`` for a user's function f."""
        try:
            return rows.field(self, expr)
        except SqlError as error:
            if error.sqlstate != "42703" or not routine_resolution.routine_overloads(self.env, (expr.name,)):
                raise
        return self._taken(expr, nodes.Apply((expr.name,), (expr.expr,), expr.at))

    def _whole_row(self, star: nodes.Star) -> Scalar:
        """``t.*`` as a value. Raises 42601, 42P01."""
        if not star.qualifier:
            raise SqlError("42601", 'row expansion via "*" is not supported here', position=star.at + 1)
        found = self._row(star.qualifier, star.at) or rows.argument(self.env, self.scope, star.qualifier, star.at)
        if found is None:
            found = self.env.parameters.variable(star.qualifier)
        if found is None:
            raise missing_table(self.scope, star.qualifier, star.at)
        return found

    def bind_items(self, items: Sequence[nodes.Expr]) -> list[Scalar]:
        """A list of expressions, in which ``t.*`` stands for the columns of t."""
        bound: list[Scalar] = []
        for item in items:
            if isinstance(item, nodes.Star) and item.qualifier:
                fields = self.env.parameters.fields(item.qualifier)
                if fields is not None:
                    bound += [value for _, value in fields]
                    continue
                columns = find_range_columns(self.scope, item)
                if self.env.notes is not None:
                    self.env.notes.star(self.scope, item.at, [(c.name, c.expr) for c in columns])
                bound += [c.expr for c in columns]
            elif isinstance(item, nodes.AllFields):
                bound += [e for _, e in rows.all_fields(self.typed(item.expr), item.at)]
            else:
                bound.append(self.bind(item))
        return bound

    def typed(self, expr: nodes.Expr) -> Scalar:
        """The bound expression, as text if its type is UNKNOWN."""
        return resolve_unknown(self.env, self.bind(expr), expr.at)

    def condition(self, expr: nodes.Expr, what: str) -> Scalar:
        """A boolean expression; ``what`` names it in errors. Raises 42804."""
        bound = self.bind(expr)
        return bound if bound.type is BOOL else to_boolean(self.env, bound, what, position(expr))

    def query(self, query: nodes.Query) -> NamedRel:
        """A subquery, whose enclosing level is ``scope``."""
        return bind_subquery(self.env, query, self.scope)

    def _subquery(self, expr: nodes.Subquery) -> Scalar:
        """A scalar subquery. Raises 42601 where it has several columns."""
        table = self.query(expr.query)
        columns = schema(table.rel)
        if len(columns) != 1:
            raise SqlError("42601", "subquery must return only one column", position=expr.at + 1)
        return ScalarSubquery(table.rel, columns[0].type)

    def _array_query(self, expr: nodes.ArrayQuery) -> Scalar:
        """ARRAY(query): array_agg of the query in its order, an empty array if it has no rows. Raises 42601."""
        table, order = bind_ordered(self.env, expr.query, self.scope)
        columns = schema(table.rel)
        if len(table.names) != 1:
            raise SqlError("42601", "subquery must return only one column", position=expr.at + 1)
        type_ = array_of(columns[0].type)
        key = "array_agg(anyarray)" if columns[0].type.kind is Kind.ARRAY else "array_agg(anynonarray)"
        argument = Column(0, columns[0].type, columns[0].nullable)
        rel, aggregates = ordered_aggregates(table.rel, order, [Aggregate(key, (argument,), type_)])
        subquery = ScalarSubquery(Reduce(rel, (), tuple(aggregates)), type_)
        return Coalesce((subquery, Literal((), type_)), type_)

    def _collate(self, expr: nodes.Collate) -> Scalar:
        if expr.collation[-1] not in ("default", "C", "POSIX", "ucs_basic"):
            shown = expr.collation[-1]
            raise unsupported(f'collation "{shown}"', 'Only the code-point collation "C" exists.', expr.at + 1)
        inner = resolve_unknown(self.env, self.bind(expr.expr), expr.at)
        check_collatable(inner.type, expr.at)
        return inner

    def _cast(self, expr: nodes.Cast) -> Scalar:
        target = self.env.field_type(expr.type)
        if self.env.notes is not None and domain_oid(target) is not None:
            self.env.notes.domains[id(expr)] = expr, target
        return self._cast_to(expr, target)

    def _cast_to(self, expr: nodes.Cast, target: SqlType) -> Scalar:
        inner = expr.expr
        if isinstance(inner, nodes.ArrayExpr):
            made = arrays.array(self, inner, without_domain(target))
            return cast(self.env, made, target, "explicit", expr.at)
        bound = self.bind(inner)
        return cast(self.env, bound, target, "explicit", expr.at, attempt=expr.attempt)

    def _operator(self, expr: nodes.Operator) -> Scalar:
        if len(expr.args) == 2 and isinstance(expr.args[0], nodes.RowExpr):
            return comparisons.compare_rows(self, expr.symbol, expr.args[0], expr.args[1], expr.at, expr.schema)
        args = [self.bind(a) for a in expr.args]
        if expr.symbol == "at time zone":
            return apply_function(self.env, "timezone", [args[1], args[0]], expr.at)
        if expr.symbol == "similar to":
            pattern = apply_function(self.env, "similar_to_escape", args[1:], expr.at)
            return operator(self.env, "~", [args[0], pattern], expr.at)
        if len(args) == 3:
            pattern = apply_function(self.env, "like_escape", args[1:], expr.at)
            return operator(self.env, expr.symbol, [args[0], pattern], expr.at)
        return operator(self.env, expr.symbol, args, expr.at, expr.schema)
