"""Views that can be changed: the table behind a simple view, and how the view's columns follow from the table's.

The rules are those of PostgreSQL's view_query_is_auto_updatable and rewriteTargetView. A view over a view makes one
layer each; a layer's expressions read the table's row and the columns of the layers below it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from ivm.words import OID
from planner.expr.scalar import Column, Scalar
from planner.logical.nodes import schema
from sql.bind.coerce import cast, resolve_unknown
from sql.bind.environment import Environment
from sql.bind.expression import ExpressionBinder
from sql.bind.from_clause import changes_tree, named
from sql.bind.inheritance_tree import TABLEOID, TABLEOID_ATTRIBUTE, wide_rows
from sql.bind.lookup import lookup
from sql.bind.namespace import Namespace, Range, Visible
from sql.bind.scope import NameScope
from sql.bind.selection import bind_targets
from sql.bind.target import Target, changed_table, table_target
from sql.bind.uses import Use
from sql.catalog.catalog import Relation, RelationKind
from sql.parse import parse
from sql.statements.statements import ViewLayer
from sql.syntax.nodes import queries as nodes

_REFUSALS: Final = {
    "insert": ("insert into view", "inserting into"), "update": ("update view", "updating"),
    "delete": ("delete from view", "deleting from"),
}  # fmt: skip
_SINGLE: Final = "Views that do not select from a single table or view are not automatically updatable."


@dataclass(frozen=True, slots=True)
class _Opened:
    """A view's target with what its layers are bound over. ``width``: of the table's row."""

    target: Target
    width: int


def bind_target(env: Environment, name: nodes.TableName, what: str) -> Target:
    """The table or view that a statement changes. ``what``: insert, update or delete, followed by " merge"
    if a MERGE does it. Raises 42P01, 42501, 42809,
    55000."""
    relation = lookup(env, name)
    if relation.kind is RelationKind.VIEW:
        if fires_instead(relation, what):
            return table_target(relation, env.use(relation))
        return _opened(env, relation, what, env.use(relation), checked=False).target
    if relation.kind is RelationKind.MATERIALIZED_VIEW and what.endswith("merge"):
        detail = "This operation is not supported for materialized views."
        raise SqlError("42809", f'cannot execute MERGE on relation "{relation.name}"', detail)
    return table_target(changed_table(relation, name), env.use(relation), only=name.only)


def fires_instead(view: Relation, what: str) -> bool:
    """Whether an INSTEAD OF trigger does what a statement asks of a view."""
    return any(t.timing == "instead of" and what in t.events for t in view.triggers)


def row_width(env: Environment, table: Relation, what: str, *, only: bool) -> int:
    """The number of columns of the rows that a statement changes: the table's, or those of wide rows."""
    if what == "insert":
        return len(table.columns) + env.oids
    if changes_tree(env, table, only=only):
        return len(schema(wide_rows(env, table, only=only).rel))
    return len(table.columns)


def _opened(env: Environment, view: Relation, what: str, use: Use | None, *, checked: bool) -> _Opened:
    """``use``: of the view. ``checked``: a view above has a cascaded check option."""
    if view.id in env.views:
        raise SqlError("42P17", f'infinite recursion detected in rules for relation "{view.name}"')
    assert view.definition is not None
    definition = parse(view.definition)
    assert isinstance(definition, nodes.Query)
    select, ref = _simple(definition, lambda detail: _refused(view, what, detail))
    env = env.for_view(view)
    relation = lookup(env, ref)
    used = env.use(relation, use)
    if relation.kind is RelationKind.VIEW and fires_instead(relation, what):
        inner, width = table_target(relation, used), len(relation.columns)
    elif relation.kind is RelationKind.VIEW:
        cascaded = checked or view.option("check_option") == "cascaded"
        below = _opened(env, relation, what, used, checked=cascaded)
        inner, width = below.target, below.width
    elif relation.kind is RelationKind.TABLE:
        inner, width = table_target(relation, used, only=ref.only), row_width(env, relation, what, only=ref.only)
    else:
        raise _refused(view, what, _SINGLE)
    namespace = named(row_columns(inner, width), ref, relation)
    if env.oids and not inner.layers:
        oid = Visible(TABLEOID, Column(width - 1, OID, False), relation.oid, TABLEOID_ATTRIBUTE)
        namespace = Namespace(namespace.visible, (replace(namespace.ranges[0], oid=oid),))
    checked = checked or view.option("check_option") is not None
    layer = replace(_layer(env, view, inner, width, select, namespace, what), checked=checked)
    if all(place is None for place in layer.places):
        raise _refused(view, what, "Views that have no updatable columns are not automatically updatable.")
    layers = (*inner.layers, layer)
    return _Opened(Target(view, inner.table, layer.places, inner.only, layers, use, inner.base), width)


def row_columns(target: Target, width: int) -> tuple[Visible, ...]:
    """The columns of the target's relation over rows of the table's ``width`` columns and the layers' columns."""
    relation = target.relation
    if not target.layers:
        columns = enumerate(relation.columns)
        return tuple(
            Visible(c.name, Column(i, c.type, c.nullable), relation.oid, i + 1, use=target.use) for i, c in columns
        )
    layer = target.layers[-1]
    base = width + sum(len(below.exprs) for below in target.layers[:-1])
    pairs = zip(relation.columns, layer.exprs, strict=True)
    return tuple(
        Visible(c.name, Column(base + i, e.type, e.nullable), relation.oid, i + 1, use=target.use)
        for i, (c, e) in enumerate(pairs)
    )


def _layer(
    env: Environment, view: Relation, inner: Target, width: int, select: nodes.Select, namespace: Namespace, what: str
) -> ViewLayer:
    scope = NameScope(namespace, clause="WHERE")
    condition = None if select.where is None else ExpressionBinder(env, scope, "WHERE").condition(select.where, "WHERE")
    scope.aggregates, scope.functions, scope.windows, scope.clause = [], [], [], "SELECT"
    given = [resolve_unknown(env, t.expr) for t in bind_targets(env, scope, select.targets)]
    for what_returned, found in (
        ("aggregate", scope.aggregates), ("set-returning", scope.functions), ("window", scope.windows),
    ):  # fmt: skip
        if found:
            detail = f"Views that return {what_returned} functions are not automatically updatable."
            raise _refused(view, what, detail)
    columns = {c.expr: i for i, c in enumerate(namespace.ranges[0].columns)}
    found_at = [columns.get(expr) for expr in given]
    places = tuple(None if i is None else inner.places[i] for i in found_at)
    if inner.use is not None:
        inner.use.below = {i + 1: at + 1 for i, at in enumerate(found_at) if at is not None}
    pairs = zip(given, view.columns, strict=True)
    exprs = tuple(cast(env, e, c.type, "explicit", 0) for e, c in pairs)
    return ViewLayer(view, places, exprs, condition, False)


def _simple(query: nodes.Query, refused: Callable[[str], SqlError]) -> tuple[nodes.Select, nodes.TableName]:
    """The query as a SELECT from one relation. Raises 55000."""
    body = query.body
    reason = ""
    if isinstance(body, nodes.SetQuery):
        reason = "Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable."
    elif not isinstance(body, nodes.Select):
        reason = _SINGLE
    elif body.distinct is not None:
        reason = "Views containing DISTINCT are not automatically updatable."
    elif body.group is not None:
        reason = "Views containing GROUP BY are not automatically updatable."
    elif body.having is not None:
        reason = "Views containing HAVING are not automatically updatable."
    elif query.with_ is not None:
        reason = "Views containing WITH are not automatically updatable."
    elif query.limit is not None or query.offset is not None:
        reason = "Views containing LIMIT or OFFSET are not automatically updatable."
    elif len(body.from_) != 1 or not isinstance(body.from_[0], nodes.TableName):
        reason = _SINGLE
    elif body.from_[0].sample is not None:
        reason = "Views containing TABLESAMPLE are not automatically updatable."
    else:
        return body, body.from_[0]
    raise refused(reason)


def _refused(view: Relation, what: str, detail: str) -> SqlError:
    action, _, merging = what.partition(" ")
    done, doing = _REFUSALS[action]
    event = action.upper()
    hint = f"To enable {doing} the view, provide an INSTEAD OF {event} trigger"
    hint += f" or an unconditional ON {event} DO INSTEAD rule."
    if merging:
        hint = f"To enable {doing} the view using MERGE, provide an INSTEAD OF {event} trigger."
    return SqlError("55000", f'cannot {done} "{view.name}"', detail, hint)


def view_range(target: Target, width: int, alias: str) -> Namespace:
    """The namespace of a view that is changed, under its name in the statement."""
    visible = row_columns(target, width)
    return Namespace(visible, (Range(alias, visible, target.relation.schema_name, target.relation),))


def layer_exprs(target: Target) -> tuple[Scalar, ...]:
    """The columns of all layers."""
    return tuple(e for layer in target.layers for e in layer.exprs)


def updatable_columns(env: Environment, view: Relation, *, triggers: bool = False) -> tuple[int | None, ...] | str:
    """For each column of a view its position in the table behind it, None for one that is computed; why not if the view
    cannot be changed. ``triggers``: a view below may have INSTEAD OF triggers."""
    try:
        opened = _opened(env, view, "update", None, checked=False).target
        if opened.table.kind is RelationKind.VIEW and not triggers:
            return _SINGLE
        return opened.places
    except SqlError as error:
        if error.sqlstate != "55000":
            raise
        return error.detail or ""


def check_updatable(env: Environment, view: Relation) -> None:
    """Raises 0A000 for a view that cannot be changed, which cannot have a check option."""
    reason = updatable_columns(env, view, triggers=True)
    if isinstance(reason, str):
        raise SqlError("0A000", "WITH CHECK OPTION is supported only on automatically updatable views", hint=reason)
