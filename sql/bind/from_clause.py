"""FROM: tables, views, CTEs, subqueries, functions and joins, with the namespace that they make.

Every right side of a join is bound under a scope of the left side, so that levels count alike whether or not the
join turns out to be lateral; where it does not, the right side's references move one level out.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL
from planner.expr.functions.table import overloads
from planner.expr.functions.table_functions import table_overloads
from planner.expr.scalar import And, Coalesce, Column, Literal, Scalar
from planner.logical.levels import relevel, relevel_rel, unlift
from planner.logical.nodes import Filter, Get, Join, JoinKind, Project, Rel, TableFunction, Values, schema
from sql.bind import routines, table_functions
from sql.bind.asof import asof
from sql.bind.coerce import cast, common_type, resolve_unknown
from sql.bind.environment import Environment
from sql.bind.expression import Binder, operator
from sql.bind.family import family, oid_column
from sql.bind.names import column_name
from sql.bind.proctime import locked
from sql.bind.scope import HAVE_OIDS, Namespace, Range, Scope, Visible, never_null, rename, shift
from sql.bind.walk import has_subquery, rel_references
from sql.catalog.catalog import Relation, RelationKind
from sql.catalog.search_path import Lookup, Recorder
from sql.parse import parse
from sql.syntax import nodes

Source = tuple[Rel, Namespace]
_UNIT = Values(((),), ())
_TRUE = Literal(True, BOOL)
_KINDS = {
    "inner": JoinKind.INNER, "cross": JoinKind.INNER, "left": JoinKind.LEFT, "right": JoinKind.RIGHT,
    "full": JoinKind.FULL,
}  # fmt: skip


def bind_from(
    env: Environment, refs: Sequence[nodes.TableRef], outer: Scope | None, *, changed: bool = False
) -> Source:
    """The FROM list as one relation; a row without columns when it is empty. ``changed``: its first table is what an
    UPDATE or DELETE changes."""
    if not refs:
        return _UNIT, Namespace()
    first = _changed(env, refs[0]) if changed else None
    rel, namespace = first or _bind_ref(env, refs[0], outer, outer)
    for ref in refs[1:]:
        left = Scope(namespace, outer, clause="FROM", target=namespace.ranges[0] if changed else None)
        right = _bind_ref(env, ref, left, Scope(parent=outer, hidden=namespace))
        rel, namespace = _cross(rel, namespace, right, ref.at)
    return rel, namespace


def _changed(env: Environment, ref: nodes.TableRef) -> Source | None:
    """The wide rows of what UPDATE or DELETE changes; None where that is one table's rows as they are."""
    assert isinstance(ref, nodes.TableName), "a target is a table"
    relation = lookup(env, ref)
    if not env.oids and (ref.only or not relation.children):
        return None
    rel = family(env, relation, only=ref.only, extras=True, oid=True).rel
    namespace = _named(visible_columns(rel, relation), ref, relation)
    oid = oid_column(rel, relation)
    assert isinstance(oid.expr, Column)
    return rel, Namespace(namespace.visible, (replace(namespace.ranges[0], oid=oid, marker=oid.expr),))


def visible_columns(rel: Rel, relation: Relation) -> tuple[Visible, ...]:
    """A relation's columns, with which its rows begin."""
    columns = schema(rel)
    return tuple(
        Visible(c.name, Column(i, columns[i].type, columns[i].nullable), relation.oid, i + 1)
        for i, c in enumerate(relation.columns)
        if c.name  # a view does not see what came after it
    )


def _cross(left: Rel, names: Namespace, right: Source, at: int) -> Source:
    """A comma between two items of FROM."""
    _check_aliases(names, right[1], at)
    moved = shift(right[1], len(schema(left)), False)
    namespace = Namespace((*names.visible, *moved.visible), (*names.ranges, *moved.ranges))
    return _combine(JoinKind.INNER, left, right[0], _TRUE), namespace


def _check_aliases(left: Namespace, right: Namespace, at: int) -> None:
    taken = {(r.alias, r.schema_name if r.relation is not None else None) for r in left.ranges}
    for range_ in right.ranges:
        if (range_.alias, range_.schema_name if range_.relation is not None else None) in taken:
            raise SqlError("42712", f'table name "{range_.alias}" specified more than once', position=at + 1)


def _combine(kind: JoinKind, left: Rel, right: Rel, on: Scalar) -> Rel:
    """The join; ``right`` was bound one level below ``left``, whether it uses that or not."""
    used = rel_references(right)
    if any(level == 0 for level, _ in used):
        if kind is JoinKind.LEFT and has_subquery(on):
            # a subquery in the condition is one of the right side: of its rows only those that meet it are there
            width = len(schema(left))
            met = relevel(on, lambda level, i: (0, i - width) if level == 0 and i >= width else (level + 1, i))
            return Join(kind, left, Filter(right, met), _TRUE, True)
        function = _function_over(left, right) if kind is JoinKind.INNER else None
        if function is not None:
            return function if on == _TRUE else Filter(function, on)
        return Join(kind, left, right, on, True)
    if used:
        right = relevel_rel(right, lambda level, index: (level - 1, index), 1)
    if isinstance(left, Values) and not left.schema and kind is JoinKind.INNER and on == _TRUE:
        return right
    return Join(kind, left, right, on)


def _function_over(left: Rel, right: Rel) -> Rel | None:
    """A lateral function call is a TableFunction right over the left side."""
    if not isinstance(right, TableFunction) or right.input != _UNIT or any(has_subquery(a) for a in right.args):
        return None
    return replace(right, input=left, args=tuple(unlift(a) for a in right.args))


def _bind_ref(env: Environment, ref: nodes.TableRef, lateral: Scope | None, plain: Scope | None) -> Source:
    """One item. ``lateral``: what LATERAL items and functions see; ``plain``: what the others do, at equal levels."""
    rel, namespace = _bind_item(env, ref, lateral, plain)
    if len(namespace.ranges) != 1 or namespace.ranges[0].alias not in env.marked or namespace.ranges[0].padded:
        return rel, namespace
    columns = schema(rel)
    marked = Project(rel, (*(Column(i, c.type, c.nullable) for i, c in enumerate(columns)), _TRUE))
    range_ = replace(namespace.ranges[0], marker=Column(len(columns), BOOL, False))
    return marked, Namespace(namespace.visible, (range_,))


def _bind_item(env: Environment, ref: nodes.TableRef, lateral: Scope | None, plain: Scope | None) -> Source:
    match ref:
        case nodes.TableName():
            return _table(env, ref, lateral)
        case nodes.DerivedTable():
            return _derived(env, ref, lateral if ref.lateral else plain)
        case nodes.FunctionTable():
            return _function(env, ref, lateral)
        case nodes.JoinedTable():
            source = _joined(env, ref, lateral, plain)
            return (source[0], rename(source[1], ref.alias, ref.columns, ref.at)) if ref.alias else source


def reads_working_table(env: Environment, refs: Sequence[nodes.TableRef]) -> bool:
    """Whether the working table of a recursion is read right here, not in a subquery."""
    for ref in refs:
        if isinstance(ref, nodes.JoinedTable):
            if reads_working_table(env, (ref.left, ref.right)):
                return True
        elif isinstance(ref, nodes.TableName) and ref.schema_name is None:
            found = env.ctes.get(ref.name)
            if found is not None and found.working:
                return True
    return False


def lookup(env: Environment, ref: nodes.TableName, strict: bool = False) -> Relation:
    """The relation that a name means. Raises 42P01; ``strict``: 3F000 where there is no such schema."""
    relation = env.catalog.resolve(ref.schema_name, ref.name)
    if relation is None or relation.kind is RelationKind.FUNCTION:
        if strict and ref.schema_name is not None:
            env.catalog.home(ref.schema_name, False)
        shown = f"{ref.schema_name}.{ref.name}" if ref.schema_name else ref.name
        message, hint = f'relation "{shown}" does not exist', _nearest(env, ref.name)
        raise SqlError("42P01", message, hint=hint, position=ref.at + 1)
    if relation.kind is RelationKind.SINK:
        hint = "freshet.sinks tells how far it is; its rows are where it writes them."
        raise SqlError("42809", f'"{relation.name}" is a sink', hint=hint, position=ref.at + 1)
    if isinstance(env.catalog, Recorder):
        env.catalog.note(ref.schema_name, ref.name, ref.at)
    return relation


def _nearest(env: Environment, name: str) -> str | None:
    """A word on the relation that may have been meant."""
    reader = env.catalog.catalog if isinstance(env.catalog, Recorder) else env.catalog
    known = [n for s, n in reader.catalog.names if s in reader.path.places] if isinstance(reader, Lookup) else []
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f'Perhaps you meant to reference the relation "{close[0]}".' if close else None


def _table(env: Environment, ref: nodes.TableName, outer: Scope | None) -> Source:
    if ref.schema_name is None and ref.name in env.ctes:
        found = env.ctes[ref.name]
        if found is not None and found.silent:
            message = f'WITH query "{ref.name}" does not have a RETURNING clause'
            raise SqlError("0A000", message, position=ref.at + 1)
        if found is not None:
            columns = zip(found.columns, schema(found.rel), strict=True)
            visible = tuple(Visible(n, Column(i, c.type, c.nullable)) for i, (n, c) in enumerate(columns))
            deeper = (0 if outer is None else outer.depth) - found.depth
            rel = relevel_rel(found.rel, lambda level, index: (level + deeper, index), 1) if deeper else found.rel
            return rel, _named(visible, ref, None)
    relation = lookup(env, ref)
    return stored(env, relation, ref)


def stored(env: Environment, relation: Relation, ref: nodes.TableName) -> Source:
    """A relation of the catalog; a view's definition takes its place."""
    if relation.kind is RelationKind.VIEW:
        rel = _view(env, relation)
    elif (relation.children and not ref.only) or (env.oids and relation.kind in HAVE_OIDS):
        rel = family(env, relation, only=ref.only, extras=False, oid=env.oids).rel
    else:
        rel = Get(relation.id, relation.schema)
    namespace = _named(visible_columns(rel, relation), ref, relation)
    if env.oids and relation.kind in HAVE_OIDS:
        namespace = Namespace(namespace.visible, (replace(namespace.ranges[0], oid=oid_column(rel, relation)),))
    return rel, namespace


def _view(env: Environment, relation: Relation) -> Rel:
    from sql.bind.query import bind_query

    if relation.id in env.views:
        message = f'infinite recursion detected in rules for relation "{relation.name}"'
        raise SqlError("42P17", message)
    assert relation.definition is not None
    statement = parse(relation.definition)
    assert isinstance(statement, nodes.Query)
    rel = bind_query(env.for_view(relation), statement, None).rel
    found = schema(rel)
    if [c.type for c in found] == [c.type for c in relation.columns]:
        return rel
    exprs = (Column(i, c.type, c.nullable) for i, c in enumerate(found))
    wanted = relation.columns
    return Project(rel, tuple(cast(env, e, w.type, "explicit", 0) for e, w in zip(exprs, wanted, strict=True)))


def _named(visible: tuple[Visible, ...], ref: nodes.TableName, relation: Relation | None) -> Namespace:
    alias = ref.alias or ref.name
    if len(ref.columns) > len(visible):
        message = f'table "{alias}" has {len(visible)} columns available but {len(ref.columns)} columns specified'
        raise SqlError("42P10", message, position=ref.at + 1)
    visible = tuple(replace(v, name=ref.columns[i]) if i < len(ref.columns) else v for i, v in enumerate(visible))
    schema_name = relation.schema_name if relation is not None and ref.alias is None else None
    return Namespace(visible, (Range(alias, visible, schema_name, relation, never_null(visible)),))


def _derived(env: Environment, ref: nodes.DerivedTable, outer: Scope | None) -> Source:
    from sql.bind.query import bind_query

    if ref.alias is None:
        what = "VALUES" if isinstance(ref.query.body, nodes.ValuesList) else "subquery"
        example = "(VALUES ...)" if what == "VALUES" else "(SELECT ...)"
        raise SqlError(
            "42601", f"{what} in FROM must have an alias", hint=f"For example, FROM {example} [AS] foo.",
            position=ref.at + 1,
        )  # fmt: skip
    table = bind_query(env, ref.query, outer)
    columns = zip(table.names, schema(table.rel), strict=True)
    visible = tuple(Visible(n, Column(i, c.type, c.nullable)) for i, (n, c) in enumerate(columns))
    return table.rel, rename(Namespace(visible), ref.alias, ref.columns, ref.at)


def _function(env: Environment, ref: nodes.FunctionTable, outer: Scope | None) -> Source:
    binder = Binder(env, Scope(parent=outer, clause="FROM"), "functions in FROM")
    first = ref.functions[0]
    name = first.name[-1] if isinstance(first, nodes.Apply) else column_name(env, first)
    routine = _routine(binder, first) if isinstance(first, nodes.Apply) and len(ref.functions) == 1 else None
    if routine is not None:
        if ref.ordinality:
            raise unsupported("ORDINALITY of such functions", position=ref.at + 1)
        rel, names = routine
    elif isinstance(first, nodes.Apply) and table_functions.is_table_function(name):
        rel, names = _table_function(binder, ref, name)
    else:
        if len(ref.functions) > 1 or ref.ordinality:
            raise unsupported("ROWS FROM or ORDINALITY of such functions", position=ref.at + 1)
        expr = resolve_unknown(env, binder.bind(first), ref.at)
        rel, names = Project(_UNIT, (expr,)), [name]
    if ref.alias is not None and len(names) - ref.ordinality == 1:
        names[0] = ref.alias
    columns = zip(names, schema(rel), strict=True)
    visible = tuple(Visible(n, Column(i, c.type, c.nullable)) for i, (n, c) in enumerate(columns))
    return rel, rename(Namespace(visible), ref.alias or name, ref.columns, ref.at)


def _routine(binder: Binder, node: nodes.Apply) -> tuple[Rel, list[str]] | None:
    """A user's function's rows and columns' names, if it is one."""
    found = routines.entries(binder.env, node.name)
    builtin = (*table_overloads(node.name[-1]), *overloads(node.name[-1])) if len(node.name) == 1 else ()
    call = routines.applied(binder, node, found, builtin) if found else None
    if call is not None and call.entry.routine.aggregate:
        message = "aggregate functions are not allowed in functions in FROM"
        raise SqlError("42803", message, position=node.at + 1)
    return None if call is None else routines.in_from(binder, call)


def _table_function(binder: Binder, ref: nodes.FunctionTable, name: str) -> tuple[Rel, list[str]]:
    args: list[Scalar] = []
    for function in ref.functions:
        if not isinstance(function, nodes.Apply) or (len(ref.functions) > 1 and function.name[-1] != "unnest"):
            raise unsupported("ROWS FROM of several functions", position=ref.at + 1)
        if function.star or function.distinct or function.over is not None or function.filter is not None:
            message = f"{name} is not an aggregate function"
            raise SqlError("42809", message, position=function.at + 1)
        args += [binder.bind(a) for a in function.args]
    key, bound, columns = table_functions.apply(binder.env, name, args, ref.at)
    known = "relid" if name == "pg_partition_ancestors" else name
    names = [known] * len(columns) + (["ordinality"] if ref.ordinality else [])
    return TableFunction(_UNIT, key, bound, columns, ref.ordinality), names


def _joined(env: Environment, ref: nodes.JoinedTable, lateral: Scope | None, plain: Scope | None) -> Source:
    left = _bind_ref(env, ref.left, lateral, plain)
    inner = Scope(left[1], lateral, clause="FROM")
    right = _bind_ref(env, ref.right, inner, Scope(parent=plain, hidden=left[1]))
    word, _, joined = ref.kind.rpartition(" ")
    kind, timed = _KINDS[joined], word == "asof"
    if inner.used and word:
        raise unsupported("LATERAL on the right of an as-of join", position=ref.at + 1)
    if inner.used and kind in (JoinKind.RIGHT, JoinKind.FULL):
        raise SqlError(
            "42P10", "invalid reference to FROM-clause entry in a LATERAL item",
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.", position=ref.at + 1,
        )  # fmt: skip
    _check_aliases(left[1], right[1], ref.right.at)
    width = len(schema(left[0]))
    left_names = shift(left[1], 0, False)
    right_names = shift(right[1], width, False)
    using = ref.using
    if ref.natural:
        right_side = [v.name for v in right_names.visible]
        using = tuple(v.name for v in left_names.visible if v.name in right_side)
    if using:
        on, merged = _using(env, using, left_names, right_names, kind, ref.at, timed)
    else:
        on, merged = _on(env, ref, left_names, right_names, plain), ()
    rel = _timed(word, left[0], right[0], on, kind, ref.at) if word else _combine(kind, left[0], right[0], on)
    names = _joined_names(left_names, right_names, using, merged, kind)
    if ref.using_alias is not None:
        merged_range = Range(ref.using_alias, names.visible[: len(merged)])
        _check_aliases(names, Namespace((), (merged_range,)), ref.at)
        names = Namespace(names.visible, (*names.ranges, merged_range))
    return rel, names


def _timed(word: str, left: Rel, right: Rel, on: Scalar, kind: JoinKind, at: int) -> Rel:
    if rel_references(right):
        right = relevel_rel(right, lambda level, index: (level - 1, index), 1)
    return (asof if word == "asof" else locked)(left, right, on, kind is JoinKind.LEFT, at)


def _on(env: Environment, ref: nodes.JoinedTable, left: Namespace, right: Namespace, outer: Scope | None) -> Scalar:
    if ref.on is None:
        return _TRUE
    both = Namespace((*left.visible, *right.visible), (*left.ranges, *right.ranges))
    binder = Binder(env, Scope(both, outer, clause="JOIN conditions"), "JOIN conditions")
    return binder.condition(ref.on, "JOIN/ON")


def _side(namespace: Namespace, name: str, side: str, at: int) -> Visible:
    found = [v for v in namespace.visible if v.name == name]
    if not found:
        message = f'column "{name}" specified in USING clause does not exist in {side} table'
        raise SqlError("42703", message, position=at + 1)
    if len(found) > 1:
        message = f'common column name "{name}" appears more than once in {side} table'
        raise SqlError("42702", message, position=at + 1)
    return found[0]


def _using(
    env: Environment, using: tuple[str, ...], left: Namespace, right: Namespace, kind: JoinKind, at: int,
    timed: bool = False,
) -> tuple[Scalar, tuple[Visible, ...]]:  # fmt: skip
    """The condition of USING and the merged columns; ``timed``: of an ASOF JOIN, the last column's is >=."""
    if len(set(using)) != len(using):
        name = next(n for n in using if using.count(n) > 1)
        message = f'column name "{name}" appears more than once in USING clause'
        raise SqlError("42701", message, position=at + 1)
    conditions = []
    merged = []
    for name in using:
        a, b = _side(left, name, "left", at), _side(right, name, "right", at)
        sign = ">=" if timed and name == using[-1] else "="
        conditions.append(operator(env, sign, [a.expr, b.expr], at))
        merged.append(_merged(name, a, b, kind, at))
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions)), tuple(merged)


def _merged(name: str, a: Visible, b: Visible, kind: JoinKind, at: int) -> Visible:
    if a.expr.type != b.expr.type:
        common_type([a.expr.type, b.expr.type], "JOIN/USING", [at, at])
    if kind is JoinKind.RIGHT:
        return replace(b, name=name)
    if kind is not JoinKind.FULL:
        return replace(a, name=name)
    if a.expr.type != b.expr.type:
        raise unsupported("FULL JOIN USING columns of different types", position=at + 1)
    return Visible(name, Coalesce((_nullable(a.expr), _nullable(b.expr)), a.expr.type))


def _nullable(expr: Scalar) -> Scalar:
    return Column(expr.index, expr.type, True) if isinstance(expr, Column) else expr


def _joined_names(
    left: Namespace, right: Namespace, using: tuple[str, ...], merged: tuple[Visible, ...], kind: JoinKind
) -> Namespace:
    left = shift(left, 0, kind in (JoinKind.RIGHT, JoinKind.FULL))
    right = shift(right, 0, kind in (JoinKind.LEFT, JoinKind.FULL))
    rest = (v for v in (*left.visible, *right.visible) if v.name not in using)
    return Namespace((*merged, *rest), (*left.ranges, *right.ranges))
