"""FROM: tables, views, CTEs, subqueries, functions and joins, and the namespace that they make.

The right side of a join is always bound one level below the left side, so that levels count alike whether or not the
join is lateral; if it is not, the right side's outer references move one level out (``sql.bind.joins.join``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL
from planner.expr.scalar import Column, Scalar, SortKey
from planner.logical.levels import relevel_rel
from planner.logical.nodes import Get, JoinKind, Project, Rel, schema
from sql.bind import time_windows
from sql.bind.bound_query import UNIT
from sql.bind.coerce import cast
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.function_table import function_table
from sql.bind.inheritance_tree import inherited_rows, oid_column, wide_rows
from sql.bind.joins import TRUE, as_of_join, check_aliases, join, joined_names, merged_sides, using_condition
from sql.bind.json_tables import json_table
from sql.bind.lookup import lookup
from sql.bind.namespace import HAVE_OIDS, Namespace, Range, Visible, relation_columns, rename, shift, visible_columns
from sql.bind.row_security import readable
from sql.bind.sampling import check_sampled, sampled
from sql.bind.scope import NameScope
from sql.bind.subquery import bind_ordered
from sql.bind.uses import Use
from sql.catalog.catalog import Relation, RelationKind
from sql.parse import parse
from sql.syntax.nodes import queries as nodes

FromItem = tuple[Rel, Namespace]
"""An item of FROM: its rows, and the names that it makes visible."""
_KINDS = {
    "inner": JoinKind.INNER, "cross": JoinKind.INNER, "left": JoinKind.LEFT, "right": JoinKind.RIGHT,
    "full": JoinKind.FULL,
}  # fmt: skip


def bind_from(env: Environment, refs: Sequence[nodes.TableRef], outer: NameScope | None) -> FromItem:
    """The FROM list as one relation; a row without columns if the list is empty."""
    if not refs:
        return UNIT, Namespace()
    return with_others(env, _bind_ref(env, refs[0], outer, outer), refs[1:], outer, None)


def changed_rows(env: Environment, table: Relation, ref: nodes.TableName, use: Use | None) -> FromItem:
    """The rows of a table, or of a view with INSTEAD OF triggers, that a statement changes, named as in ``ref``.
    ``use``: the statement's use of it."""
    if table.kind is RelationKind.VIEW:
        rel, _ = _view(env, table)
        return rel, named(relation_columns(table, schema(rel), use), ref, table)
    if changes_tree(env, table, only=ref.only):
        rel = wide_rows(env, table, only=ref.only).rel
        namespace = named(relation_columns(table, schema(rel), use), ref, table)
        oid = replace(oid_column(rel, table), use=use)
        assert isinstance(oid.expr, Column)
        return rel, Namespace(namespace.visible, (replace(namespace.ranges[0], oid=oid, marker=oid.expr),))
    return _marked(env, stored(env, table, ref, use, commands=""))


def changes_tree(env: Environment, table: Relation, *, only: bool) -> bool:
    """Whether the rows to change are wide rows: of several tables, or with a tableoid."""
    return env.oids or (not only and bool(table.children))


def bind_merged(env: Environment, target: Namespace, ref: nodes.TableRef) -> FromItem:
    """The source of MERGE, which cannot name the target. Raises 42712."""
    return _bind_ref(env, ref, NameScope(hidden=target), NameScope(hidden=target))


def with_others(
    env: Environment, first: FromItem, refs: Sequence[nodes.TableRef], outer: NameScope | None, target: Range | None
) -> FromItem:
    """The first item joined with the others. ``target``: the table to change."""
    rel, namespace = first
    for ref in refs:
        left = NameScope(namespace, outer, clause="FROM", target=target)
        right = _bind_ref(env, ref, left, NameScope(parent=outer, hidden=namespace))
        rel, namespace = _cross(rel, namespace, right, ref.at)
    return rel, namespace


def _cross(left: Rel, names: Namespace, right: FromItem, at: int) -> FromItem:
    """Two items of FROM with a comma between them."""
    check_aliases(names, right[1], at)
    moved = shift(right[1], len(schema(left)), False)
    namespace = Namespace((*names.visible, *moved.visible), (*names.ranges, *moved.ranges))
    return join(JoinKind.INNER, left, right[0], TRUE), namespace


def _bind_ref(env: Environment, ref: nodes.TableRef, lateral: NameScope | None, plain: NameScope | None) -> FromItem:
    """One item. ``lateral``: the scope of LATERAL items and functions; ``plain``: that of others, of equal depth."""
    rel, namespace = _bind_item(env, ref, lateral, plain)
    if env.notes is not None:
        env.notes.item(ref.at, namespace)
    return _marked(env, (rel, namespace))


def _marked(env: Environment, item: FromItem) -> FromItem:
    """The item, with a column that only padding makes NULL if one is needed."""
    rel, namespace = item
    if len(namespace.ranges) != 1 or namespace.ranges[0].alias not in env.marked or namespace.ranges[0].padded:
        return rel, namespace
    columns = schema(rel)
    marked = Project(rel, (*(Column(i, c.type, c.nullable) for i, c in enumerate(columns)), TRUE))
    range_ = replace(namespace.ranges[0], marker=Column(len(columns), BOOL, False))
    return marked, Namespace(namespace.visible, (range_,))


def _bind_item(env: Environment, ref: nodes.TableRef, lateral: NameScope | None, plain: NameScope | None) -> FromItem:
    match ref:
        case nodes.TableName():
            rel, namespace = _table(env, ref, lateral)
            if ref.sample is not None:
                check_sampled(namespace.ranges[0].relation, ref.at)
                rel = sampled(env, rel, ref.sample, lateral)
            return rel, namespace
        case nodes.DerivedTable():
            return _derived(env, ref, lateral if ref.lateral else plain)
        case nodes.FunctionTable():
            if (view := _view_of_function(ref)) is not None:
                return _table(env, view, lateral)
            windows = time_windows.windowed(ref)
            return function_table(env, ref, lateral) if windows is None else _derived(env, windows, plain)
        case nodes.JsonTable():
            return json_table(env, ref, lateral)
        case nodes.JoinedTable():
            source = _joined(env, ref, lateral, plain)
            return (source[0], rename(source[1], ref.alias, ref.columns, ref.at)) if ref.alias else source


_VIEWS: Final = {
    "pg_show_all_settings": "pg_settings", "pg_lock_status": "pg_locks", "pg_cursor": "pg_cursors",
    "pg_prepared_statement": "pg_prepared_statements", "pg_timezone_names": "pg_timezone_names",
    "pg_timezone_abbrevs": "pg_timezone_abbrevs", "pg_hba_file_rules": "pg_hba_file_rules",
    "pg_available_extensions": "pg_available_extensions",
}  # fmt: skip
"""The functions that PostgreSQL's views of pg_catalog are made of, and the views."""


def _view_of_function(ref: nodes.FunctionTable) -> nodes.TableName | None:
    """The view instead of the function that gives its rows."""
    call = ref.functions[0]
    if len(ref.functions) > 1 or ref.ordinality or ref.definitions or not isinstance(call, nodes.Apply) or call.args:
        return None
    view = _VIEWS.get(call.name[-1]) if call.name[:-1] in ((), ("pg_catalog",)) else None
    alias = ref.alias or call.name[-1]
    return None if view is None else nodes.TableName("pg_catalog", view, ref.at, alias, ref.columns)


def reads_working_table(env: Environment, refs: Sequence[nodes.TableRef]) -> bool:
    """Whether FROM reads the working table of a recursion, subqueries aside."""
    for ref in refs:
        if isinstance(ref, nodes.JoinedTable):
            if reads_working_table(env, (ref.left, ref.right)):
                return True
        elif isinstance(ref, nodes.TableName) and ref.schema_name is None:
            found = env.ctes.get(ref.name)
            if found is not None and found.working:
                return True
    return False


def _table(env: Environment, ref: nodes.TableName, outer: NameScope | None) -> FromItem:
    """A CTE or a relation of the catalog. Raises 42P01, 42809, 0A000."""
    if ref.schema_name is None and ref.name in env.ctes:
        found = env.ctes[ref.name]
        if found is not None and found.silent:
            message = f'WITH query "{ref.name}" does not have a RETURNING clause'
            raise SqlError("0A000", message, position=ref.at + 1)
        if found is not None:
            visible = visible_columns(found.columns, schema(found.rel)[: len(found.columns)])
            if found.hidden:
                shown, rest = visible[: -found.hidden], visible[-found.hidden :]
                visible = (*shown, *(replace(column, hidden=True) for column in rest))
            deeper = (0 if outer is None else outer.depth) - found.depth
            rel = relevel_rel(found.rel, lambda level, index: (level + deeper, index), 1) if deeper else found.rel
            return rel, named(visible, ref, None, found.order)
    relation = lookup(env, ref)
    use = env.use(relation)
    if use is not None:
        use.need("r")
    return stored(env, relation, ref, use, "rw" if ref.at in env.locked else "r")


def stored(
    env: Environment, relation: Relation, ref: nodes.TableName, use: Use | None, commands: str = "r"
) -> FromItem:
    """A relation of the catalog; a view is replaced by its definition. ``commands``: whose policies are applied."""
    order: tuple[SortKey, ...] = ()
    if relation.kind is RelationKind.VIEW:
        rel, order = _view(env, relation)
    elif (relation.children and not ref.only) or (env.oids and relation.kind in HAVE_OIDS):
        rel = inherited_rows(env, relation, only=ref.only)
    else:
        rel = Get(relation.id, relation.schema)
    rel = readable(env, relation, rel, use, commands)
    namespace = named(relation_columns(relation, schema(rel), use), ref, relation, order)
    if env.oids and relation.kind in HAVE_OIDS:
        oid = replace(oid_column(rel, relation), use=use)
        namespace = Namespace(namespace.visible, (replace(namespace.ranges[0], oid=oid),))
    return rel, namespace


def _view(env: Environment, relation: Relation) -> tuple[Rel, tuple[SortKey, ...]]:
    """The rows of a view, as the types that its columns had when it was created, and their order. Raises 42P17."""
    if relation.id in env.views:
        message = f'infinite recursion detected in rules for relation "{relation.name}"'
        raise SqlError("42P17", message)
    assert relation.definition is not None
    statement = parse(relation.definition)
    assert isinstance(statement, nodes.Query)
    table, order = bind_ordered(env.for_view(relation), statement, None)
    rel, wanted = table.rel, relation.columns
    found = schema(rel)
    if [c.type for c in found[: len(wanted)]] == [c.type for c in wanted]:
        return rel, order
    exprs = (Column(i, c.type, c.nullable) for i, c in enumerate(found))
    shown = tuple(cast(env, e, w.type, "explicit", 0) for e, w in zip(exprs, wanted, strict=False))
    return Project(rel, shown), ()


def named(
    visible: tuple[Visible, ...], ref: nodes.TableName, relation: Relation | None, order: tuple[SortKey, ...] = ()
) -> Namespace:
    """The namespace of one table, with rows in this order, under its alias. Raises 42P10."""
    renamed = rename(Namespace(visible), ref.alias or ref.name, ref.columns, ref.at)
    schema_name = relation.schema_name if relation is not None and ref.alias is None else None
    (table,) = renamed.ranges
    range_ = Range(table.alias, table.columns, schema_name, relation, table.marker, at=table.at)
    return Namespace(renamed.visible, (range_,), order)


def _derived(env: Environment, ref: nodes.DerivedTable, outer: NameScope | None) -> FromItem:
    """A subquery in FROM. One without an alias cannot be named (PostgreSQL 16)."""
    table, order = bind_ordered(env, ref.query, outer)
    found = Namespace(visible_columns(table.names, schema(table.rel)[: len(table.names)]))
    if ref.alias is not None:
        found = rename(found, ref.alias, ref.columns, ref.at)
    return table.rel, replace(found, order=order)


def _joined(env: Environment, ref: nodes.JoinedTable, lateral: NameScope | None, plain: NameScope | None) -> FromItem:
    left = _bind_ref(env, ref.left, lateral, plain)
    inner = NameScope(left[1], lateral, clause="FROM")
    right = _bind_ref(env, ref.right, inner, NameScope(parent=plain, hidden=left[1]))
    word, _, joined = ref.kind.rpartition(" ")
    kind, last_sign = _KINDS[joined], ">=" if word == "asof" else "="
    if inner.used and word:
        raise unsupported("LATERAL on the right of an as-of join", position=ref.at + 1)
    if inner.used and kind in (JoinKind.RIGHT, JoinKind.FULL):
        raise SqlError(
            "42P10", "invalid reference to FROM-clause entry in a LATERAL item",
            detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.", position=ref.at + 1,
        )  # fmt: skip
    check_aliases(left[1], right[1], ref.right.at)
    width = len(schema(left[0]))
    left_names = shift(left[1], 0, False)
    right_names = shift(right[1], width, False)
    using = ref.using
    if ref.natural:
        right_side = [v.name for v in right_names.visible]
        using = tuple(v.name for v in left_names.visible if v.name in right_side)
    if using:
        on, merged = using_condition(env, using, left_names, right_names, kind, last_sign, ref.at)
        if env.notes is not None:
            sides = merged_sides(using, left_names, right_names, kind, ref.at)
            env.notes.join(ref.at, using, left_names, right_names, sides)
    else:
        on, merged = _on(env, ref, left_names, right_names, plain), ()
    rel = as_of_join(word, left[0], right[0], on, kind, ref.at) if word else join(kind, left[0], right[0], on)
    names = joined_names(left_names, right_names, using, merged, kind)
    if ref.using_alias is not None:
        merged_range = Range(ref.using_alias, names.visible[: len(merged)])
        if any(r.alias == ref.using_alias for r in names.ranges):
            raise SqlError("42712", f'table name "{ref.using_alias}" specified more than once')
        names = Namespace(names.visible, (*names.ranges, merged_range))
    return rel, names


def _on(env: Environment, ref: nodes.JoinedTable, left: Namespace, right: Namespace, outer: NameScope | None) -> Scalar:
    if ref.on is None:
        return TRUE
    both = Namespace((*left.visible, *right.visible), (*left.ranges, *right.ranges))
    binder = ExpressionBinder(env, NameScope(both, outer, clause="JOIN conditions"), "JOIN conditions")
    return binder.condition(ref.on, "JOIN/ON")
