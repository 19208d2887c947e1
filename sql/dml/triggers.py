"""Triggers of one statement: which fire when, and on which rows.

BEFORE triggers of rows run row by row, each after the rows before it have been changed (``sql.dml.triggered``). What a
statement changes is noted in ``Events``; at its end AFTER triggers run: those of rows in the order of the changes, then
those of the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ivm.errors import SqlError
from ivm.rows import Mask, Vector, Words, pack, unpack
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluated
from sql.bind.entry_points import environment_of
from sql.bind.triggers import bound_condition
from sql.catalog.catalog import Relation
from sql.catalog.search_path import SearchPathReader
from sql.catalog.triggers import Trigger
from sql.dml.key_index import KeyIndex
from sql.dml.routing import Router
from sql.engine.writer import Writer
from storage.types.codec import decode, encode

Datums = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Firing:
    """One call of a trigger's function. ``table``: whose rows ``old`` and ``new`` are; None where there are none.

    ``tables``: the transition tables, by name, as rows of ``table``.
    """

    trigger: Trigger
    table: Relation
    event: str
    old: Datums | None = None
    new: Datums | None = None
    tables: tuple[tuple[str, Words], ...] = ()


class TriggerCaller(Protocol):
    """Runs trigger functions; the session implements it. ``trigger_depth``: how many triggers are running."""

    trigger_depth: int

    def fire(self, writer: Writer, firing: Firing) -> Datums | None:
        """The row that the function returns, with the columns of the table; None for NULL."""


class Firer(Protocol):
    """What changes rows (``sql.dml.row_changes``). ``events``: what the running statement has changed; ``quiet``: the
    statement's own triggers fire further out."""

    writer: Writer
    keys: KeyIndex
    context: Context
    caller: TriggerCaller | None
    events: Events | None
    quiet: bool

    def router(self) -> Router: ...

    def apply(self, table: Relation, old: Words, new: Words) -> None: ...


@dataclass(frozen=True, slots=True)
class Event:
    """Rows of one table that a statement has changed: ``new[i]`` replaces ``old[i]`` in an update; one of both is None
    else. ``assigned``: the columns that the statement sets, by name; None: those that differ."""

    table: Relation
    old: Words | None
    new: Words | None
    assigned: frozenset[str] | None = None

    @property
    def kind(self) -> str:
        return "insert" if self.old is None else "delete" if self.new is None else "update"


@dataclass(slots=True)
class Events:
    """What a statement has changed so far. ``assigned``: as in ``Event``, of what is noted next. ``followed``: the
    tables that referential actions have changed, and how."""

    found: list[Event] = field(default_factory=list)
    assigned: frozenset[str] | None = None
    followed: list[tuple[Relation, str]] = field(default_factory=list)

    def note(self, table: Relation, old: Words, new: Words, replaced: Words | None) -> None:
        """Note a change; the parameters are as for ``RowChanger.apply``."""
        if replaced is not None and len(replaced):
            self.found.append(Event(table, old, replaced, self.assigned))
            new = _others(new, replaced)
        elif replaced is None and len(old):
            self.found.append(Event(table, old, None))
        if len(new):
            self.found.append(Event(table, None, new))


def _others(rows: Words, taken: Words) -> Words:
    """The rows without those taken, each as often as it is taken."""
    if len(rows) == len(taken):
        return rows[:0]
    left: dict[bytes, int] = {}
    for row in taken:
        left[row.tobytes()] = left.get(row.tobytes(), 0) + 1
    kept = []
    for i, row in enumerate(rows):
        key = row.tobytes()
        if left.get(key, 0):
            left[key] -= 1
        else:
            kept.append(i)
    return np.ascontiguousarray(rows[kept])


def triggers_of(changer: Firer, table: Relation, timing: str, event: str, row: bool) -> list[Trigger]:
    """The triggers of a table that fire then, in their order."""
    known = changer.keys.links(changer.writer.catalog).triggers.get(table.id, ())
    return [t for t in known if t.timing == timing and t.row == row and event in t.events]


@contextmanager
def firing(
    changer: Firer, table: Relation, kinds: Sequence[str], assigned: frozenset[str] | None = None, *,
    follows: bool = False,
) -> Iterator[None]:  # fmt: skip
    """Around one statement on a table: its BEFORE triggers of statements, and at its end the AFTER triggers.

    ``follows``: a referential action, a statement of its own inside of another one.
    """
    quiet = changer.quiet and not follows
    if quiet or changer.caller is None or not changer.keys.links(changer.writer.catalog).triggers:
        yield
        return
    if follows and changer.events is not None:
        with _following(changer, changer.events, changer.caller, table, kinds):
            yield
        return
    outer, changer.events = changer.events, Events(assigned=assigned)
    changer.quiet, loud = True, changer.quiet
    try:
        for kind in kinds:
            _fire_statement(changer, table, "before", kind, assigned, ())
        yield
        found = changer.events
        _after_rows(changer, found)
        for kind in reversed(kinds):
            _fire_statement(changer, table, "after", kind, assigned, found.found)
        for other, kind in found.followed:
            _fire_statement(changer, other, "after", kind, None, [e for e in found.found if e.table.id == other.id])
    finally:
        changer.events, changer.quiet = outer, loud


@contextmanager
def _following(
    changer: Firer, events: Events, caller: TriggerCaller, table: Relation, kinds: Sequence[str]
) -> Iterator[None]:
    """The same around a referential action: its BEFORE triggers are one deeper, as in the trigger that PostgreSQL makes
    the action of; its AFTER triggers run at the end of the outer statement."""
    assigned, events.assigned = events.assigned, None
    caller.trigger_depth += 1
    try:
        for kind in kinds:
            _fire_statement(changer, table, "before", kind, None, ())
            if (table, kind) not in events.followed:
                events.followed.append((table, kind))
        yield
    finally:
        events.assigned = assigned
        caller.trigger_depth -= 1


def _fire_statement(
    changer: Firer, table: Relation, timing: str, event: str, assigned: frozenset[str] | None,
    changes: Sequence[Event],
) -> None:  # fmt: skip
    for trigger in triggers_of(changer, table, timing, event, row=False):
        if trigger.columns and event == "update" and assigned is not None and not assigned & set(trigger.columns):
            continue
        if trigger.condition is not None and not _met(changer, table, trigger, [], 1).all():
            continue
        _call(changer, Firing(trigger, table, event, tables=_tables(changer, table, trigger, changes)))


def _tables(
    changer: Firer, table: Relation, trigger: Trigger, changes: Sequence[Event]
) -> tuple[tuple[str, Words], ...]:
    """The transition tables of a trigger, in the table's layout."""
    found: list[tuple[str, Words]] = []
    width = len(table.row_schema)
    for name, new in ((trigger.old_table, False), (trigger.new_table, True)):
        if name is None:
            continue
        parts = [(e.table, e.new if new else e.old) for e in changes if e.kind in trigger.events]
        router = changer.router()
        rows = [router.converted(own, table, r) for own, r in parts if r is not None]
        found.append((name, np.concatenate(rows) if rows else _no_rows(changer, table, width)))
    return tuple(found)


def _no_rows(changer: Firer, table: Relation, width: int) -> Words:
    schema = table.row_schema
    return pack([Vector(np.zeros(0, np.int64)) for _ in range(width)], schema, 0)


def _after_rows(changer: Firer, events: Events) -> None:
    """Run the AFTER triggers of the rows, row by row; those of one row in the order of their names."""
    for event in events.found:
        triggers = triggers_of(changer, event.table, "after", event.kind, row=True)
        if not triggers:
            continue
        columns, count = both_rows(event)
        old = None if event.old is None else rows_of(event.table, event.old, changer.context)
        new = None if event.new is None else rows_of(event.table, event.new, changer.context)
        masks = [_fires(changer, event, trigger, columns, count) for trigger in triggers]
        tables = [_tables(changer, event.table, trigger, events.found) for trigger in triggers]
        for i in range(count):
            for trigger, mask, given in zip(triggers, masks, tables, strict=True):
                if mask[i]:
                    pair = None if old is None else old[i], None if new is None else new[i]
                    _call_or_defer(changer, Firing(trigger, event.table, event.kind, *pair, given))


def both_rows(event: Event) -> tuple[list[Vector], int]:
    """The columns of the old rows and of the new ones, NULL where there are none."""
    rows = event.old if event.old is not None else event.new
    assert rows is not None, "an event has rows"
    count = len(rows)
    columns: list[Vector] = []
    for part in (event.old, event.new):
        if part is None:
            absent = Vector(np.zeros(count, np.int64), np.ones(count, np.bool_))
            columns += [absent] * len(event.table.columns)
        else:
            columns += unpack(part, event.table.schema)
    return columns, count


def _fires(changer: Firer, event: Event, trigger: Trigger, columns: list[Vector], count: int) -> Mask:
    """For each row, whether a trigger's columns and WHEN let it fire."""
    found = np.ones(count, np.bool_)
    if trigger.columns and event.kind == "update":
        found &= of_columns(event, trigger)
    if trigger.condition is not None:
        found &= _met(changer, event.table, trigger, columns, count)
    return found


def of_columns(event: Event, trigger: Trigger) -> Mask:
    """For each row, whether one of the trigger's columns is set (``assigned`` None: has changed)."""
    assert event.old is not None, "an update"
    assert event.new is not None, "an update"
    if event.assigned is not None:
        return np.full(len(event.old), bool(event.assigned & set(trigger.columns)))
    changed = np.zeros(len(event.old), np.bool_)
    pairs = zip(unpack(event.old, event.table.schema), unpack(event.new, event.table.schema), strict=True)
    for column, (before, after) in zip(event.table.columns, pairs, strict=True):
        if column.name in trigger.columns:
            changed |= before.words != after.words
            for one, other in ((before, after), (after, before)):
                if one.nulls is not None:
                    changed |= one.nulls & ~(other.nulls if other.nulls is not None else np.bool_(False))
    return changed


def _met(changer: Firer, table: Relation, trigger: Trigger, columns: list[Vector], count: int) -> Mask:
    """For each row, whether WHEN is true."""
    names = SearchPathReader(changer.writer.catalog)
    condition = bound_condition(environment_of(names), table, trigger)
    (result,) = evaluated((condition,), columns, count, changer.context)
    true = np.asarray(result.words != 0)
    return true if result.nulls is None else true & ~result.nulls


def rows_of(table: Relation, rows: Words, context: Context) -> list[Datums]:
    """Rows of words as datums."""
    vectors = unpack(rows, table.schema)
    columns = [decode(c.type, v, context.dictionary) for c, v in zip(table.columns, vectors, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def fire_before(changer: Firer, table: Relation, kind: str, old: Datums | None, new: Datums | None) -> Datums | None:
    """The row that the BEFORE triggers of a row give (the old one of a deletion), None to leave the row out."""
    assigned = None if changer.events is None else changer.events.assigned
    row = old if kind == "delete" else new
    for trigger in triggers_of(changer, table, "before", kind, row=True):
        if not _wanted(changer, table, kind, trigger, old, row if kind != "delete" else None, assigned):
            continue
        found = _call(changer, Firing(trigger, table, kind, old, row if kind != "delete" else None))
        if found is None:
            return None
        row = row if kind == "delete" else found
    return row


def _wanted(
    changer: Firer, table: Relation, kind: str, trigger: Trigger, old: Datums | None, new: Datums | None,
    assigned: frozenset[str] | None,
) -> bool:  # fmt: skip
    if trigger.columns and kind == "update":
        assert old is not None, "an update"
        assert new is not None, "an update"
        names = [c.name for c in table.columns]
        differ = frozenset(n for n, a, b in zip(names, old, new, strict=True) if a != b)
        if not (differ if assigned is None else assigned) & set(trigger.columns):
            return False
    if trigger.condition is None:
        return True
    columns = [
        encode(c.type, [None if row is None else row[i]], changer.context.dictionary)
        for row in (old, new)
        for i, c in enumerate(table.columns)
    ]
    return bool(_met(changer, table, trigger, columns, 1)[0])


def fire_instead(changer: Firer, view: Relation, kind: str, old: Datums | None, new: Datums | None) -> Datums | None:
    """The row that the INSTEAD OF triggers of a view give, None to leave the row out."""
    row = old if kind == "delete" else new
    for trigger in triggers_of(changer, view, "instead of", kind, row=True):
        found = _call(changer, Firing(trigger, view, kind, old, row if kind != "delete" else None))
        if found is None:
            return None
        row = row if kind == "delete" else found
    return row


def _call_or_defer(changer: Firer, firing_: Firing) -> None:
    trigger, writer = firing_.trigger, changer.writer
    if trigger.constraint and writer.is_deferred(trigger):
        writer.deferred.append((trigger.id, lambda: _ignore(_call(changer, firing_))))
        return
    _call(changer, firing_)


def _ignore(row: Datums | None) -> None:
    """What an AFTER trigger returns has no meaning."""


def _call(changer: Firer, firing_: Firing) -> Datums | None:
    caller = changer.caller
    if caller is None:
        raise SqlError("0A000", f"triggers on {firing_.table.name} are not supported in this place")
    found = caller.fire(changer.writer, firing_)
    check_unchanged(changer.writer, firing_.table)
    return found


def check_unchanged(writer: Writer, table: Relation) -> None:
    """55006 where a function has altered or dropped the table that the statement changes."""
    now = writer.catalog.relations.get(table.id)
    if now is None or (now.columns, now.all_indexes, now.bound) != (table.columns, table.all_indexes, table.bound):
        verb = "CREATE INDEX" if now is not None and now.columns == table.columns else "ALTER TABLE"
        message = f'cannot {verb} "{table.name}" because it is being used by active queries in this session'
        raise SqlError("55006", message)
