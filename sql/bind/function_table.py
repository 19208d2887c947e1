"""Functions in FROM: one call, or several side by side (ROWS FROM), with or without a number of each row.

Of several functions the shorter results are padded with NULLs. Where each is a built-in table function they are one
(``planner.expr.functions.lockstep``); any others are joined by the numbers of their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ivm.errors import SqlError
from ivm.words import BOOL, INT8, ColumnType, Kind, SqlType
from planner.expr.functions.library import overloads
from planner.expr.functions.lockstep import lockstep
from planner.expr.functions.table_functions import TABLE_FUNCTIONS, table_overloads
from planner.expr.scalar import Call, Coalesce, Column, Literal, Scalar, SortKey
from planner.logical.nodes import Join, JoinKind, Numbering, Project, Rel, TableFunction, TopK, schema
from planner.logical.traversal import own_columns
from sql.bind import parameters, routine_resolution, routines, table_functions
from sql.bind.bound_query import UNIT
from sql.bind.coerce import resolve_unknown
from sql.bind.domains import domain_value
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.names import column_name
from sql.bind.namespace import Namespace, rename, visible_columns
from sql.bind.row_fields import fields_of
from sql.bind.scope import NameScope
from sql.catalog.composite import has_domains, without_domain
from sql.syntax.nodes import queries as nodes


@dataclass(frozen=True, slots=True)
class _Rows:
    """What one function returns. ``row``: the type of its rows, where it returns rows."""

    rel: Rel
    names: list[str]
    row: SqlType | None = None


def function_table(env: Environment, ref: nodes.FunctionTable, outer: NameScope | None) -> tuple[Rel, Namespace]:
    """The functions' rows and the names of their columns. Raises 42601, 42701, 42803, 42809, 42883."""
    binder = ExpressionBinder(env, NameScope(parent=outer, clause="FROM"), "functions in FROM")
    if ref.ordinality and ref.definitions and not ref.listed:
        raise SqlError(
            "42601", "WITH ORDINALITY cannot be used with a column definition list",
            hint="Put the column definition list inside ROWS FROM().", position=ref.definitions[0][0][2] + 1,
        )  # fmt: skip
    definitions = ref.definitions or ((),) * len(ref.functions)
    parts = [_rows(binder, f, d, ref) for f, d in zip(ref.functions, definitions, strict=True)]
    numbered = ref.ordinality or len(parts) > 1
    rel = _beside(parts) if numbered else parts[0].rel
    names = [name for part in parts for name in part.names]
    order = (SortKey(Column(len(names), INT8, False)),) if numbered else ()
    if ref.ordinality:
        names.append("ordinality")
    visible = visible_columns(names, schema(rel)[: len(names)])
    found = rename(Namespace(visible), ref.alias or _name(env, ref.functions[0]), ref.columns, ref.at)
    row = parts[0].row if len(parts) == 1 and not ref.ordinality else None
    named = row if row is not None and row.named is not None else None
    scalar = len(names) == len(parts) == 1 and parts[0].row is None and not ref.definitions
    return rel, replace(found, ranges=(replace(found.ranges[0], row=named, scalar=scalar),), order=order)


def _name(env: Environment, node: nodes.Expr) -> str:
    return node.name[-1] if isinstance(node, nodes.Apply) else column_name(env, node)


def _rows(
    binder: ExpressionBinder, node: nodes.Expr, definitions: nodes.Definitions, ref: nodes.FunctionTable
) -> _Rows:
    """One function's rows; a row that is a value is its fields."""
    if isinstance(node, nodes.Apply):
        node = table_functions.defining(binder, parameters.without_void(binder, node), definitions)
    found = _routine(binder, node, definitions, ref.at) if isinstance(node, nodes.Apply) else None
    returned: SqlType | None = None
    if found is not None:
        rel, names, own, returned = found
        definitions = ()
    elif isinstance(node, nodes.Apply) and table_functions.is_table_function(node.name[-1]):
        rel, names, own = _table_function(binder, node, definitions, ref)
        definitions = ()
    else:
        own = False
        rel, names = Project(UNIT, (resolve_unknown(binder.env, binder.bind(node), ref.at),)), [_name(binder.env, node)]
    if definitions:
        raise table_functions.no_definitions(definitions[0][2])
    row = schema(rel)[0].type
    if len(names) == 1 and row.fields:
        (column,) = schema(rel)
        fields = fields_of(Column(0, column.type, column.nullable))
        return _Rows(Project(rel, fields), [name for name, _ in row.fields], row)
    if len(names) == 1 and len(ref.functions) == 1 and ref.alias is not None and not own:
        names = [ref.alias]
    return _Rows(rel, names, returned)


def _routine(
    binder: ExpressionBinder, node: nodes.Apply, definitions: nodes.Definitions, at: int
) -> tuple[Rel, list[str], bool, SqlType | None] | None:
    """A call of a user-defined function: its rows, its columns' names, whether these are its own, and the type of its
    rows, where it returns rows; None for a built-in one."""
    found = routine_resolution.routine_overloads(binder.env, node.name)
    builtin = (*table_overloads(node.name[-1]), *overloads(node.name[-1])) if len(node.name) == 1 else ()
    call = routine_resolution.resolve_routine(binder, node, found, builtin) if found else None
    if call is not None and call.overload.routine.aggregate:
        message = "aggregate functions are not allowed in functions in FROM"
        raise SqlError("42803", message, position=node.at + 1)
    if call is None:
        return None
    if binder.env.notes is not None:
        binder.env.notes.routines[id(node)] = node, call.overload.relation, call.types
    columns = [(name, binder.env.type(type_)) for name, type_, _ in definitions]
    rel, names = routines.routine_rows(binder, call, columns, at)
    result = call.routine.result
    row = result if isinstance(result, SqlType) and result.kind is Kind.RECORD else None
    return rel, names, bool(call.routine.outputs or call.routine.table or call.routine.record), row


def _table_function(
    binder: ExpressionBinder, node: nodes.Apply, definitions: nodes.Definitions, ref: nodes.FunctionTable
) -> tuple[Rel, list[str], bool]:
    name = node.name[-1]
    if node.star or node.distinct or node.over is not None or node.filter is not None:
        raise SqlError("42809", f"{name} is not an aggregate function", position=node.at + 1)
    args: list[Scalar] = [binder.bind(a) for a in parameters.positional(binder, name, node).args]
    if definitions or name in table_functions.DEFINED:
        args = [table_functions.defined_row(binder.env, name, definitions, ref.at), *args]
    key, bound, columns = table_functions.apply(binder.env, name, args, ref.at)
    own = [n for n, _, _ in definitions] or list(TABLE_FUNCTIONS[key].column_names([a.type for a in bound]))
    rel = _within_domains(binder.env, TableFunction(UNIT, key, bound, columns))
    return rel, own or [name] * len(columns), bool(own)


def _within_domains(env: Environment, rel: TableFunction) -> Rel:
    """The rows, checked where they are to have fields of domains."""
    if not any(c.type.domain is not None or has_domains(c.type) for c in rel.columns):
        return rel
    types = [without_domain(c.type) for c in rel.columns]
    plain = replace(rel, columns=tuple(ColumnType(t, c.nullable) for t, c in zip(types, rel.columns, strict=True)))
    values = [Column(i, type_, c.nullable) for i, (type_, c) in enumerate(zip(types, rel.columns, strict=True))]
    checked = (
        domain_value(env, c.type, value) if c.type.domain is not None or has_domains(c.type) else value
        for value, c in zip(values, rel.columns, strict=True)
    )
    return Project(plain, tuple(checked))


def _numbered(rel: Rel) -> Rel:
    """The rows with the number of each."""
    if isinstance(rel, TableFunction):
        return replace(rel, ordinality=True)
    if isinstance(rel, Project) and rel.input is UNIT:
        return Project(UNIT, (*rel.exprs, Literal(1, INT8)))
    return TopK(rel, (), (), None, None, (Numbering.ROW_NUMBER,))


def _beside(parts: Sequence[_Rows]) -> Rel:
    """The functions' rows side by side, with the number of each."""
    calls = [part.rel for part in parts if isinstance(part.rel, TableFunction)]
    if len(calls) == len(parts) > 1:
        key = lockstep([(call.function, len(call.args)) for call in calls])
        columns = tuple(ColumnType(c.type, True) for call in calls for c in call.columns)
        return TableFunction(UNIT, key, tuple(a for call in calls for a in call.args), columns, True)
    rel = _numbered(parts[0].rel)
    for part in parts[1:]:
        rel = _by_number(rel, _numbered(part.rel))
    return rel


def _by_number(left: Rel, right: Rel) -> Rel:
    """Two relations, whose last columns are the rows' numbers, as one, the shorter one padded with NULLs."""
    count, width = len(schema(left)), len(schema(left)) + len(schema(right))
    numbers = (Column(count - 1, INT8), Column(width - 1, INT8))
    joined = Join(JoinKind.FULL, left, right, Call("=(int8,int8)", numbers, BOOL, True))
    own = own_columns(schema(joined))
    return Project(joined, (*own[: count - 1], *own[count : width - 1], Coalesce(numbers, INT8)))
