"""CREATE TRIGGER, and the conditions of triggers."""

from __future__ import annotations

from ivm.errors import SqlError
from planner.expr.scalar import Column, Scalar
from planner.logical.traversal import columns_of, has_subquery
from sql.bind.entry_points import empty_environment
from sql.bind.environment import Environment
from sql.bind.lookup import lookup
from sql.bind.namespace import Namespace, Range, Visible
from sql.bind.scope import NameScope
from sql.catalog.catalog import LABELS, Relation, RelationKind
from sql.catalog.triggers import Trigger
from sql.parse import parse_expression
from sql.statements.triggers import CreateTrigger
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes.triggers import CreateTriggerStatement


def create_trigger(env: Environment, node: CreateTriggerStatement) -> CreateTrigger:
    """CREATE TRIGGER. Raises 42P01, 42809, 42703, 42701, 42883, 42P17, 0A000, and what is wrong with WHEN."""
    table = lookup(env, node.table)
    _check_kind(node, table)
    function = _function(env, node.function)
    columns = tuple(name for _, names in node.events for name in _columns(table, names))
    tables = _transition_tables(node, table)
    trigger = Trigger(
        0, node.name, node.timing, tuple(event for event, _ in node.events), node.row, function.oid, node.arguments,
        columns, None if node.condition is None else node.condition[1], tables.get(False), tables.get(True),
        "O", node.constraint, node.deferrable, node.deferred,
    )  # fmt: skip
    if node.condition is not None:
        if node.timing == "instead of":
            raise SqlError("0A000", "INSTEAD OF triggers cannot have WHEN conditions")
        _check_condition(trigger, table, bound_condition(env, table, trigger, node.condition[0]))
    return CreateTrigger(table, trigger, node.replace)


def _check_kind(node: CreateTriggerStatement, table: Relation) -> None:
    events = [event for event, _ in node.events]
    if table.kind is RelationKind.VIEW:
        if node.timing != "instead of" and node.row:
            detail = "Views cannot have row-level BEFORE or AFTER triggers."
            raise SqlError("42809", f'"{table.name}" is a view', detail)
        if "truncate" in events:
            raise SqlError("42809", f'"{table.name}" is a view', "Views cannot have TRUNCATE triggers.")
    elif table.kind is not RelationKind.TABLE:
        label = LABELS.get(table.kind, "system catalog")
        if table.kind is RelationKind.SYSTEM:
            message = f'permission denied: "{table.name}" is a system catalog'
            raise SqlError("42501", message, position=node.table.at + 1)
        raise SqlError("42809", f'relation "{table.name}" cannot have triggers',
                       f"This operation is not supported for {label}s.")  # fmt: skip
    elif node.timing == "instead of":
        kind = "a partitioned table" if table.partitioning is not None else "a table"
        raise SqlError("42809", f'"{table.name}" is {kind}', "Tables cannot have INSTEAD OF triggers.")
    if "truncate" in events and node.row:
        raise SqlError("0A000", "TRUNCATE FOR EACH ROW triggers are not supported")
    if node.timing == "instead of":
        if not node.row:
            raise SqlError("0A000", "INSTEAD OF triggers must be FOR EACH ROW")
        if any(columns for _, columns in node.events):
            raise SqlError("0A000", "INSTEAD OF triggers cannot have column lists")


def _function(env: Environment, name: nodes.TableName) -> Relation:
    """The trigger function. Raises 42883, 42P17."""
    found = [
        r for r in env.catalog.routines(name.schema_name, name.name) if r.routine is not None and not r.routine.types
    ]
    if not found:
        shown = f"{name.schema_name}.{name.name}" if name.schema_name else name.name
        raise SqlError("42883", f"function {shown}() does not exist")
    routine = found[0].routine
    if routine is None or not routine.trigger:
        raise SqlError("42P17", f"function {name.name} must return type trigger")
    return found[0]


def _columns(table: Relation, names: tuple[tuple[str, int], ...]) -> list[str]:
    found: list[str] = []
    for name, _ in names:
        if all(c.name != name for c in table.columns):
            raise SqlError("42703", f'column "{name}" of relation "{table.name}" does not exist')
        if name in found:
            raise SqlError("42701", f'column "{name}" specified more than once')
        found.append(name)
    return found


def _transition_tables(node: CreateTriggerStatement, table: Relation) -> dict[bool, str]:
    """The names of the transition tables, by whether it is the new one. Raises 42P17, 0A000, 42809."""
    events = [event for event, _ in node.events]
    found: dict[bool, str] = {}
    for new, name in node.transitions:
        if node.timing != "after":
            raise SqlError("42P17", "transition table name can only be specified for an AFTER trigger")
        if table.kind is RelationKind.VIEW:
            raise SqlError("42809", f'"{table.name}" is a view', "Triggers on views cannot have transition tables.")
        if "truncate" in events:
            raise SqlError("42P17", "TRUNCATE triggers with transition tables are not supported")
        if len(events) > 1:
            message = "transition tables cannot be specified for triggers with more than one event"
            raise SqlError("0A000", message)
        if any(columns for _, columns in node.events):
            raise SqlError("0A000", "transition tables cannot be specified for triggers with column lists")
        if node.row and (table.partitioning is not None or table.bound is not None):
            what = f'"{table.name}" is a partition' if table.bound else f'"{table.name}" is a partitioned table'
            detail = "ROW triggers with transition tables are not supported on partitioned tables."
            raise SqlError("0A000", what, detail)
        label = "NEW" if new else "OLD"
        if ("delete" if new else "insert") in events:
            allowed = "an INSERT or UPDATE" if new else "a DELETE or UPDATE"
            raise SqlError("42P17", f"{label} TABLE can only be specified for {allowed} trigger")
        if new in found:
            raise SqlError("42P17", f"{label} TABLE cannot be specified multiple times")
        found[new] = name
    if len(set(found.values())) < len(found):
        raise SqlError("42P17", "OLD TABLE name and NEW TABLE name cannot be the same")
    return found


def changed_rows(table: Relation) -> Namespace:
    """The names of a condition: the old row's columns, then the new row's."""
    width = len(table.columns)
    ranges = (
        Range(name, tuple(Visible(c.name, Column(start + i, c.type)) for i, c in enumerate(table.columns)))
        for name, start in (("old", 0), ("new", width))
    )
    return Namespace((), tuple(ranges))


def bound_condition(env: Environment, table: Relation, trigger: Trigger, node: nodes.Expr | None = None) -> Scalar:
    """WHEN over (the old row's columns, the new row's). Raises 42703, 42P01, 42804."""
    assert trigger.condition is not None, "the trigger has one"
    expr = parse_expression(trigger.condition) if node is None else node
    scope = NameScope(changed_rows(table), clause="trigger WHEN conditions")
    return env.binder(scope, "trigger WHEN conditions").condition(expr, "WHEN")


def condition_columns(table: Relation, trigger: Trigger) -> frozenset[int]:
    """The positions of the columns that WHEN names."""
    if trigger.condition is None:
        return frozenset()
    condition = bound_condition(empty_environment(), table, trigger)
    return frozenset(i % len(table.columns) for i in columns_of(condition))


def _check_condition(trigger: Trigger, table: Relation, condition: Scalar) -> None:
    """Raises 0A000, 42P17."""
    if has_subquery(condition):
        raise SqlError("0A000", "cannot use subquery in trigger WHEN condition")
    used = columns_of(condition)
    width = len(table.columns)
    if used and not trigger.row:
        raise SqlError("42P17", "statement trigger's WHEN condition cannot reference column values")
    if "insert" in trigger.events and any(i < width for i in used):
        raise SqlError("42P17", "INSERT trigger's WHEN condition cannot reference OLD values")
    if "delete" in trigger.events and any(i >= width for i in used):
        raise SqlError("42P17", "DELETE trigger's WHEN condition cannot reference NEW values")
    generated = {width + i for i, c in enumerate(table.columns) if c.expression is not None}
    if trigger.timing == "before" and generated & set(used):
        name = next(table.columns[i - width].name for i in sorted(generated & set(used)))
        message = "BEFORE trigger's WHEN condition cannot reference NEW generated columns"
        raise SqlError("42P17", message, f'Column "{name}" is a generated column.')
