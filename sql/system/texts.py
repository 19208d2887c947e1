"""Definitions as the system relations and functions show them: made from their trees, with present names."""

from __future__ import annotations

from collections.abc import Callable

from ivm.errors import SqlError
from planner.identifiers import quoted
from sql.catalog.catalog import Relation, TableColumn
from sql.catalog.keys import Check, Index
from sql.catalog.partitioning import Partitioning
from sql.catalog.policies import Guard
from sql.catalog.triggers import Trigger
from sql.deparse.definitions import Definitions
from sql.deparse.names import Names
from sql.deparse.views import view_query
from sql.system.state import SystemState, is_null


def names_of(state: SystemState) -> Names:
    """The names and the style in which a session sees definitions."""
    return Names(state.reader, state.constants)


def view_definition(view: Relation, state: SystemState, *, pretty: bool = False, width: int = 0) -> str:
    """A view's query, in the form of pg_get_viewdef."""
    return view_query(view, names_of(state), pretty=pretty, width=width)


def _shown(write: Callable[[str], str], stored: str) -> str:
    """The text that ``write`` makes; the stored one where the reader's search path does not find what it names."""
    try:
        return write(stored)
    except SqlError:
        return stored


def default_text(state: SystemState, table: Relation, column: TableColumn, *, pretty: bool = False) -> str | None:
    """A column's DEFAULT, or what it is generated from, in the form of pg_get_expr; an identity column has none."""
    stored = column.default if column.expression is None else column.expression
    if column.generated is None and is_null(stored):
        return None
    if stored is not None and column.generated is None:
        columns = () if column.expression is None else table.columns
        definitions = Definitions(names_of(state), columns, table.name, pretty=pretty)
        return _shown(lambda text: definitions.text(text, column.type), stored)
    return _next_value(state, column)


def domain_default(state: SystemState, domain: Relation) -> str | None:
    """A domain's DEFAULT, in the form of pg_get_expr."""
    (value,) = domain.columns
    if is_null(value.default) or value.default is None:
        return None
    definitions = Definitions(names_of(state), (), domain.name)
    return _shown(lambda text: definitions.text(text, value.type), value.default)


def _next_value(state: SystemState, column: TableColumn) -> str | None:
    assert column.generated is not None
    sequence = None if column.generated.identity else state.reader.by_id(column.generated.sequence)
    if sequence is None:
        return None
    name = quoted(sequence.name)
    if sequence.schema_name not in state.path.places:
        name = f"{quoted(sequence.schema_name)}.{name}"
    literal = name.replace("'", "''")
    return f"nextval('{literal}'::regclass)"


def stored_text(state: SystemState, table: Relation, text: str, *, pretty: bool) -> str:
    """An expression over a table as pg_get_expr shows it; what is none, as a partition's bound, as it is."""
    return _shown(Definitions(names_of(state), table.columns, table.name, pretty=pretty).text, text)


def policy_text(state: SystemState, table: Relation, guard: Guard | None) -> str | None:
    """A condition of a policy as pg_get_expr shows it."""
    if guard is None:
        return None
    return _shown(Definitions.of_policy(names_of(state), table, guard).text, guard.text)


def check_definition(state: SystemState, owner: Relation, check: Check, *, pretty: bool) -> str:
    """A CHECK of a table or domain, in the form of pg_get_constraintdef."""
    names = names_of(state)
    if owner.domain:
        definitions = Definitions.of_domain(names, owner, pretty=pretty)
    else:
        definitions = Definitions(names, owner.columns, owner.name, pretty=pretty)
    text = f"CHECK ({_shown(definitions.text, check.text)})"
    text += " NO INHERIT" if check.no_inherit else ""
    return text if check.valid else f"{text} NOT VALID"


def index_part(state: SystemState, table: Relation, index: Index, number: int, *, pretty: bool = False) -> str:
    """A part of an index's key, in the form of pg_get_indexdef."""
    part = index.parts[number]
    if isinstance(part, int):
        return quoted(table.columns[part].name)
    return _shown(Definitions(names_of(state), table.columns, table.name, pretty=pretty).key, part)


def index_predicate(state: SystemState, table: Relation, index: Index, *, pretty: bool = False) -> str | None:
    """The predicate of a partial index, in the form of pg_get_expr."""
    if index.where is None:
        return None
    return _shown(Definitions(names_of(state), table.columns, table.name, pretty=pretty).text, index.where)


def partition_key(state: SystemState, table: Relation, key: Partitioning) -> str:
    """The result of pg_get_partkeydef."""
    definitions = Definitions(names_of(state), table.columns, table.name)
    parts = [
        quoted(column) if column else _shown(definitions.key, text)
        for column, text in zip(key.columns, key.keys, strict=True)
    ]
    return f"{key.strategy.upper()} ({', '.join(parts)})"


def trigger_condition(state: SystemState, table: Relation, trigger: Trigger, *, pretty: bool) -> str | None:
    """WHEN of a trigger without its parentheses."""
    if trigger.condition is None:
        return None
    return _shown(Definitions.of_trigger(names_of(state), table, pretty=pretty).text, trigger.condition)
