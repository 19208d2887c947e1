"""pg_trigger, information_schema.triggers, and pg_get_triggerdef."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from planner.identifiers import quoted
from sql.catalog.catalog import Relation
from sql.catalog.system.definitions import Datums, Row
from sql.catalog.triggers import Trigger
from sql.system.state import SystemState
from sql.system.texts import trigger_condition

_BITS: Final = {"insert": 4, "delete": 8, "update": 16, "truncate": 32}
_TIMINGS: Final = {"before": 2, "after": 0, "instead of": 64}
_COPIES: Final = 0x7000_0000
_ORDER: Final = ("insert", "delete", "update", "truncate")
"""The order of the events in a definition."""


def _all(state: SystemState) -> Iterator[tuple[Relation, Trigger, int]]:
    """All triggers with their tables, partitions' copies of their table's row triggers too; then the oid of the
    trigger above, or 0."""
    tables = {r.oid: r for r in state.relations()}
    for relation in tables.values():
        for trigger in relation.triggers:
            yield relation, trigger, 0
        above, up = relation, []
        while above.bound is not None:
            above = tables[above.parents[0]]
            up.append(above)
        for i, table in enumerate(up):
            for trigger in table.triggers:
                if trigger.row:
                    parent = trigger.id if i == 0 else _copy(trigger, up[0])
                    yield relation, replace(trigger, id=_copy(trigger, relation)), parent


def _copy(trigger: Trigger, partition: Relation) -> int:
    """The oid of a partition's copy of a trigger."""
    return _COPIES + (trigger.id * 65_521 + partition.oid) % (1 << 28)


def pg_trigger(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, trigger, parent in _all(state):
        names = [c.name for c in relation.columns]
        yield row(
            oid=trigger.id, tgrelid=relation.oid, tgparentid=parent, tgname=trigger.name, tgfoid=trigger.function,
            tgtype=int(trigger.row) + _TIMINGS[trigger.timing] + sum(_BITS[e] for e in trigger.events),
            tgenabled=trigger.enabled, tgisinternal=False, tgconstrrelid=0, tgconstrindid=0, tgconstraint=0,
            tgdeferrable=trigger.deferrable, tginitdeferred=trigger.deferred, tgnargs=len(trigger.arguments),
            tgattr=tuple(names.index(c) + 1 for c in trigger.columns if c in names),
            tgargs=b"".join(a.encode() + b"\0" for a in trigger.arguments), tgqual=trigger.condition,
            tgoldtable=trigger.old_table, tgnewtable=trigger.new_table,
        )  # fmt: skip


def triggers(state: SystemState, row: Row) -> Iterator[Datums]:
    for relation, trigger, _ in _all(state):
        for event in trigger.events:
            if event == "truncate":
                continue
            yield row(
                trigger_catalog=state.database, trigger_schema=relation.schema_name, trigger_name=trigger.name,
                event_manipulation=event.upper(), event_object_catalog=state.database,
                event_object_schema=relation.schema_name, event_object_table=relation.name,
                action_order=_place(relation, trigger, event),
                action_condition=trigger_condition(state, relation, trigger, pretty=False),
                action_statement=_call(state.routines(), trigger, lambda f: f.schema_name in state.path.places),
                action_orientation="ROW" if trigger.row else "STATEMENT", action_timing=trigger.timing.upper(),
                action_reference_old_table=trigger.old_table, action_reference_new_table=trigger.new_table,
            )  # fmt: skip


def _place(relation: Relation, trigger: Trigger, event: str) -> int:
    """Its place among the triggers that fire at the same time, from 1."""
    own = trigger.timing, trigger.row
    names = [t.name for t in relation.triggers if (t.timing, t.row) == own and event in t.events]
    return sorted(names).index(trigger.name) + 1


def trigger_definition(
    state: SystemState, oid: int, shown: Callable[[Relation], str], visible: Callable[[Relation], bool], *, pretty: bool
) -> str | None:  # fmt: skip
    """The statement that creates a trigger; None if there is none. ``shown``: a relation's name; ``visible``: whether
    the search path finds a function."""
    found = next(((r, t) for r, t, _ in _all(state) if t.id == oid), None)
    if found is None:
        return None
    relation, trigger = found
    events = [_event(trigger, event) for event in _ORDER if event in trigger.events]
    parts = [
        f"CREATE {'CONSTRAINT ' if trigger.constraint else ''}TRIGGER {quoted(trigger.name)} {trigger.timing.upper()}",
        " OR ".join(events), f"ON {shown(relation)}",
    ]  # fmt: skip
    if trigger.constraint:
        initially = "DEFERRED" if trigger.deferred else "IMMEDIATE"
        parts.append(f"{'' if trigger.deferrable else 'NOT '}DEFERRABLE INITIALLY {initially}")
    tables = (("OLD", trigger.old_table), ("NEW", trigger.new_table))
    given = [f"{label} TABLE AS {quoted(table)}" for label, table in tables if table is not None]
    if given:
        parts.append(f"REFERENCING {' '.join(given)}")
    parts.append(f"FOR EACH {'ROW' if trigger.row else 'STATEMENT'}")
    if trigger.condition is not None:
        parts.append(f"WHEN ({trigger_condition(state, relation, trigger, pretty=pretty)})")
    parts.append(_call(state.routines(), trigger, visible))
    return " ".join(parts)


def _event(trigger: Trigger, event: str) -> str:
    columns = f" OF {', '.join(map(quoted, trigger.columns))}" if event == "update" and trigger.columns else ""
    return event.upper() + columns


def _call(routines: Iterable[Relation], trigger: Trigger, visible: Callable[[Relation], bool]) -> str:
    function = next((r for r in routines if r.oid == trigger.function), None)
    name = quoted("?" if function is None or function.routine is None else function.routine.name)
    place = "" if function is None or visible(function) else f"{quoted(function.schema_name)}."
    arguments = ", ".join("'" + a.replace("'", "''") + "'" for a in trigger.arguments)
    return f"EXECUTE FUNCTION {place}{name}({arguments})"
