"""UPDATE and DELETE of the row with a key, and INSERT of one row of values, without plans and blocks of rows.

Most statements of short transactions are of these forms. Each form is made once for a statement, and decides then
whether it may stand for the statement at all; ``run`` gives None, before it has changed anything, for what only the
general way (``sql.dml.changes``) can do or report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, Protocol

import numpy as np

from ivm.graph import Gather
from ivm.rows import Vector, Words
from ivm.trace.trace import LATEST
from ivm.words import Schema, SqlType, Storage, row_width
from planner import gathers
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.functions.library import called_function
from planner.expr.parts import walk
from planner.expr.scalar import Column, Literal, Parameter, Scalar
from planner.logical.nodes import Values
from planner.logical.traversal import has_subquery
from planner.peek.affected import AskedKey
from planner.peek.keyed import Keyed, keyed
from planner.physical.key_checks import KeyCheck, KeyName
from planner.physical.nodes import Plan
from planner.physical.one_row_formula import RowFormula, one_row_formula
from planner.physical.row_programs import MapFilter, Stage
from sql.bind.constraints import domain_columns
from sql.bind.generation import generated_columns
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.dml.fast_insert import plain_cell
from sql.dml.instants import Instant, instant_of
from sql.dml.key_index import KeyIndex, Rules
from sql.dml.row_changes import RowChanger
from sql.engine.engine import Engine
from sql.engine.key_notes import Place
from sql.engine.read_set import Reading
from sql.engine.row_locks import Strength
from sql.engine.writer import Writer
from sql.statements.statements import DataChange, Delete, Insert, Update
from storage.dictionary import Dictionary
from storage.types.codec import encoder_of
from storage.types.zones import to_local

FEW: Final = 64
"""The most pending updates that are looked through for a row."""
_WORD: Final = Struct("=q")
_BOTH: Final = np.array([-1, 1], np.int64)
_BOTH.flags.writeable = False
_ONE: Final = np.ones(1, np.int64)
_ONE.flags.writeable = False
_NONE: Final[dict[bytes, int]] = {}
_NOTHING: Final = Vector(np.zeros(0, np.int64))
_NULL: Final = np.ones(1, np.bool_)
Encoder = Callable[[Any, Dictionary], int]
Key = tuple[Literal | Parameter, Encoder]
"""A key's value, and what encodes it."""
Row = list[int]
"""The words of a row in its table's layout."""


@dataclass(slots=True)
class Given:
    """What one run of a statement is given. ``times``: now() and the session's time zone; ``general``: makes what the
    general way takes, for what needs it."""

    writer: Writer
    parameters: tuple[object, ...]
    times: Callable[[], tuple[int, str]]
    general: Callable[[], RowChanger]
    _changer: RowChanger | None = None

    @property
    def changer(self) -> RowChanger:
        if self._changer is None:
            self._changer = self.general()
        return self._changer

    @property
    def context(self) -> Context:
        return self.changer.context


class OneRow(Protocol):
    """A statement that changes one row at most."""

    def run(self, given: Given) -> int | None:
        """The number of rows that it has changed, 0 or 1; None: it has done nothing, and the general way must.

        Raises BlockedError, and the errors of constraints.
        """
        ...

    def reading(self, given: Given) -> Reading | None:
        """What it has read; None: what its plan reads."""
        ...


def one_row(
    statement: DataChange, plan: Plan | None, catalog: Catalog, keys: KeyIndex, context: Context
) -> OneRow | None:
    """The form that stands for a statement as long as the catalog is this one; None: there is none."""
    table, links = statement.table, keys.links(catalog)
    fires = table.id in links.triggers
    if table.kind is not RelationKind.TABLE or table.partitioning is not None or table.bound is not None or fires:
        return None
    if generated_columns(table) or domain_columns(table) or table.empties:
        return None
    rules = keys.rules(table)
    match statement:
        case Insert() if table.id not in links.outgoing and not rules.exclusions:
            # a foreign key or an exclusion may need a step when the row has been added already
            asked = rules.conditions or rules.computed or links.touch(table.id)
            bare = not asked and not rules.tracked
            return _insert(statement, bare=bare, key=None if asked else _only_key(rules))
        case Update() | Delete() if plan is not None and not links.touch(table.id):
            return _keyed_change(statement, plan, rules, context)
        case _:
            return None


def _only_key(rules: Rules) -> KeyCheck | None:
    """What looks up a table's only key, if that is one column that is NOT NULL and checked at once."""
    if len(rules.keys) != 1 or len(rules.tracked) != 1:
        return None
    (key,) = rules.keys
    check = key.key_check
    simple = check.plain and not check.computed and len(check.columns) == 1 and not key.index.deferrable
    return check if simple and not check.schema[check.columns[0]].nullable else None


def _insert(statement: Insert, *, bare: bool, key: KeyCheck | None) -> OneRow | None:
    source, table = statement.source, statement.table
    whole = statement.conflict is None and statement.finishing is None and not statement.layers
    if not whole or statement.returning is not None or not isinstance(source, Values) or len(source.rows) != 1:
        return None
    cells = source.rows[0]
    if len(cells) != len(table.columns) or any(
        not isinstance(c, Literal | Parameter) and (has_subquery(c) or _has_effects(c)) for c in cells
    ):
        return None
    kept = [_kept(cell, column.type) for cell, column in zip(cells, table.columns, strict=True)]
    plain = tuple(
        (i, cell, encoder_of(cell.type)) for i, cell in enumerate(kept) if isinstance(cell, Literal | Parameter)
    )
    instants = tuple((i, cell) for i, cell in enumerate(kept) if isinstance(cell, Instant))
    places = tuple(i for i, cell in enumerate(kept) if cell is None)
    computed = Stage.of(tuple(cells[i] for i in places))
    schema, place = table.row_schema, None if key is None else (table.id, key.key)
    return RowInsert(table, schema, plain, instants, computed, places, bare, key, place, row_width(schema))


def _has_effects(cell: Scalar) -> bool:
    """Whether it may do more than give a value: wait, lock, notify, set."""
    called = [f for part in walk(cell) if (f := called_function(part)) is not None]
    return any(f.volatility == "volatile" and not f.only_draws for f in called)


def _kept(cell: Scalar, type_: SqlType) -> Literal | Parameter | Instant | None:
    """What a cell of a column's type is, if it need not be evaluated."""
    return plain_cell(cell, type_) or (instant_of(cell) if cell.type == type_ else None)


def _keyed_change(statement: Update | Delete, plan: Plan, rules: Rules, context: Context) -> OneRow | None:
    table, found = statement.table, keyed(plan)
    layers = isinstance(statement, Update) and statement.layers
    others = statement.branches or layers or statement.returning is not None
    if others or found is None or found.is_array or found.relation != table.id:
        return None
    if len(table.primary_key) != 1 or found.key != table.primary_key or rules.exclusions or rules.computed:
        return None
    if any(key.key_check.computed for key in rules.keys):
        return None
    primary = next((k for k in rules.keys if k.index.columns == table.primary_key), None)
    if primary is None or not primary.key_check.plain or not isinstance(found.keys, Parameter | Literal):
        return None
    if found.keys.type != table.columns[table.primary_key[0]].type:
        return None
    if isinstance(statement, Delete):
        return _delete(statement, plan, found, (found.keys, encoder_of(found.keys.type)))
    return _update(statement, found, (found.keys, encoder_of(found.keys.type)), rules, primary.key_check.key, context)


def _delete(statement: Delete, plan: Plan, found: Keyed, key: Key) -> OneRow | None:
    table, program, schema = statement.table, found.program, statement.table.schema
    tests: tuple[Stage, ...] = ()
    if program is None and plan.schema != schema:
        return None
    if program is not None:
        if not isinstance(program, MapFilter) or program.schema != schema:
            return None
        if program.exprs is not None and not _in_order(program.exprs, len(schema)):
            return None
        tests = program.tests
    return RowDelete(table, schema, key, found.gather, tests)


def _update(statement: Update, found: Keyed, key: Key, rules: Rules, name: KeyName, context: Context) -> OneRow | None:
    table, program = statement.table, found.program
    schema, width = table.schema, len(table.columns)
    if not isinstance(program, MapFilter) or program.exprs is None or program.schema != schema:
        return None
    if len(program.exprs) != 2 * width or not _in_order(program.exprs[:width], width):
        return None
    new = program.exprs[width:]
    changed = [i for i, e in enumerate(new) if not (isinstance(e, Column) and e.index == i)]
    if rules.conditions or any(i in key.index.columns for key in rules.keys for i in changed):
        return None
    copied = tuple((i, e.index) for i in changed if isinstance(e := new[i], Column))
    places = tuple(i for i in changed if not isinstance(new[i], Column))
    computed = Stage.of(tuple(new[i] for i in places))
    formula = one_row_formula(schema, program.predicates, new, context)
    return RowUpdate(table, schema, key, found.gather, program.tests, name, formula, computed, places, copied)


def _in_order(exprs: tuple[Scalar, ...], width: int) -> bool:
    return len(exprs) == width and all(isinstance(e, Column) and e.index == i for i, e in enumerate(exprs))


@dataclass(frozen=True, slots=True)
class RowInsert:
    """``plain``: for columns, by their places, the constant or parameter and what encodes it; ``instants``: for others
    the moment that they are; the rest are ``computed`` for ``places``. ``bare``: nothing is asked of the table's rows,
    and nothing refers to them; ``key``: nothing but that this one is free, whose changes are noted at ``place``.
    ``width``: of a row."""

    table: Relation
    schema: Schema
    plain: tuple[tuple[int, Literal | Parameter, Encoder], ...]
    instants: tuple[tuple[int, Instant], ...]
    computed: Stage
    places: tuple[int, ...]
    bare: bool
    key: KeyCheck | None
    place: Place | None
    width: int

    def run(self, given: Given) -> int | None:
        schema, dictionary, parameters = self.schema, given.writer.engine.dictionary, given.parameters
        row, fits = [0] * self.width, True
        for i, cell, encode in self.plain:
            datum = cell.value if isinstance(cell, Literal) else parameters[cell.index - 1]
            fits &= _put(row, schema, i, 0 if datum is None else encode(datum, dictionary), datum is None)
        if self.instants:
            now, zone = given.times()
            for i, instant in self.instants:
                row[i] = to_local(now, zone) if instant is Instant.LOCAL else now
        if fits and self.places:
            vectors, failures = evaluate(self.computed.exprs, (), 1, given.context)
            if failures is not None:
                raise failures.errors[0]
            for i, vector in zip(self.places, vectors, strict=True):
                fits &= _put(row, schema, i, int(vector.words[0]), _is_null(vector))
        if not fits:  # the general way says which column
            return None
        rows = np.array([row], np.int64)
        if self.bare:
            given.writer.use(self.table)
            given.writer.add(self.table.id, rows, _ONE)
        elif self.key is None or not self._is_added(given.writer, self.key, row[self.key.columns[0]], rows):
            given.changer.insert_plain(self.table, rows)
        return 1

    def _is_added(self, writer: Writer, key: KeyCheck, word: int, rows: Words) -> bool:
        """Whether the row has been added; otherwise the general way adds it, or says that its key is taken."""
        table, name, place = self.table, _WORD.pack(word), self.place
        assert place is not None, "that of the key"
        if writer.locks_in(table):
            writer.lock_row(table, (*place, name), Strength.UPDATE)
        held = 0
        for notes in (writer.engine.key_notes(), writer.notes.unfed):
            if table.id in notes.bulk:
                return False
            held += notes.since.get(place, _NONE).get(name, 0)
        found = writer.engine.key_arrangement(table.id, key).lookup_one(word, LATEST)
        if found is None or len(found) + held > 0:
            return False
        writer.notes.note(len(writer.updates), place, name, 1)
        writer.add(table.id, rows, _ONE)
        return True

    def reading(self, given: Given) -> Reading | None:
        return None


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """``key``: the primary key; ``restore``: from an arranged row to one of the table; ``tests``: what the row must
    meet besides; ``name``: of the primary key, which stays as it is, as do all unique keys. New values are ``computed``
    for the columns at ``places``, or ``copied`` (to, from), unless the ``formula`` gives the whole row."""

    table: Relation
    schema: Schema
    key: Key
    restore: Gather
    tests: tuple[Stage, ...]
    name: KeyName
    formula: RowFormula | None
    computed: Stage
    places: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]

    def run(self, given: Given) -> int | None:
        writer, table, formula = given.writer, self.table, self.formula
        found = _find(given, table, self.key, self.restore)
        if found is None:
            return None
        word, old = found
        new = None if formula is None or not old else formula.run(old, given.parameters, writer.engine.dictionary)
        holds = bool(old) and (bool(new) if new is not None else _holds(self.tests, old, self.schema, given.context))
        if not holds:
            return None if holds is None else 0
        writer.lock_row(table, (table.id, self.name, _WORD.pack(word)), Strength.NO_KEY_UPDATE)
        if new is None:
            new = self._new(old, given.context)
        if new is None:
            return None
        writer.add(table.id, np.array([old, new], np.int64), _BOTH)
        return 1

    def reading(self, given: Given) -> Reading | None:
        return _reading(self.table, self.key, given)

    def _new(self, old: Row, context: Context) -> Row | None:
        """The new row; None if the general way must report an error."""
        schema, new, fits = self.schema, old.copy(), True
        for to, come in self.copied:
            fits &= _put(new, schema, to, old[come], _lacks(old, schema, come))
        if self.places:
            vectors, failures = evaluate(self.computed.exprs, _columns(old, schema, self.computed), 1, context)
            if failures is not None:
                return None
            for i, vector in zip(self.places, vectors, strict=True):
                fits &= _put(new, schema, i, int(vector.words[0]), _is_null(vector))
        return new if fits else None


@dataclass(frozen=True, slots=True)
class RowDelete:
    """``key``, ``restore`` and ``tests``: as of ``RowUpdate``."""

    table: Relation
    schema: Schema
    key: Key
    restore: Gather
    tests: tuple[Stage, ...]

    def run(self, given: Given) -> int | None:
        table = self.table
        found = _find(given, table, self.key, self.restore)
        if found is None:
            return None
        old = found[1]
        holds = bool(old) and (not self.tests or _holds(self.tests, old, self.schema, given.context))
        if not holds:
            return None if holds is None else 0
        rows = np.array([old], np.int64)
        given.changer.apply(table, rows, rows[:0])
        return 1

    def reading(self, given: Given) -> Reading | None:
        return _reading(self.table, self.key, given)


def find_row(writer: Writer, table: Relation, word: int, restore: Gather, *, shown: bool) -> Row | None:
    """The row with this word as its primary key, as the writer sees it, [] if there is none. None: it takes a step to
    tell, or a closer look, or it is to be ``shown`` and not durable yet. Cost: a seek, and the pending updates.
    ``restore``: from an arranged row to a table's."""
    engine = writer.engine
    writer.catch_up((table.id,))
    pending = writer.updates[writer.fed :]
    if len(pending) > FEW or table.id in engine.touched:
        return None
    found = _stored(engine, table, word, LATEST)
    if found is None:
        return None
    durable = engine.published.ordinal
    ahead = shown and engine.rests and durable < engine.timeline.last
    if ahead and _stored(engine, table, word, durable) != found:
        return None
    row = (gathers.apply_to_one(restore, found) or []) if found else []
    place = table.primary_key[0]
    for update in pending:
        if update.relation != table.id:
            continue
        if len(update.rows) > FEW:
            return None
        for changed, diff in zip(update.rows.tolist(), update.diffs.tolist(), strict=True):
            if changed[place] != word:
                continue
            if diff == 1 and not row:
                row = changed
            elif diff == -1 and row == changed:
                row = []
            else:
                return None
    return row


def _stored(engine: Engine, table: Relation, word: int, at: int) -> Row | None:
    """The arranged row with a key as of the last step, [] if there is none; None: it takes a closer look."""
    version = engine.arrangement(table.id)
    rows = version.lookup_one(word, at)
    if rows is None:  # it has changed several times of late
        rows, diffs, _ = version.lookup(np.array([[word]], np.int64), at)
        if diffs.tolist() not in ([], [1]):
            return None
    return rows[0].tolist() if len(rows) else []


def _find(given: Given, table: Relation, key: Key, restore: Gather) -> tuple[int, Row] | None:
    """(the key's word, the row with it, [] if there is none); None as of ``find_row``."""
    writer, (cell, encode) = given.writer, key
    datum = _datum(cell, given.parameters)
    if datum is None:
        return 0, []
    word = encode(datum, writer.engine.dictionary)
    row = find_row(writer, table, word, restore, shown=False)
    return None if row is None else (word, row)


def _reading(table: Relation, key: Key, given: Given) -> Reading | None:
    cell, encode = key
    datum = _datum(cell, given.parameters)
    if datum is None or cell.type.storage is not Storage.DIRECT:
        return None
    asked = AskedKey(table.primary_key[0], encode(datum, given.writer.engine.dictionary))
    return Reading(frozenset((table.id,)), asked)


def _datum(cell: Literal | Parameter, parameters: tuple[object, ...]) -> object:
    return cell.value if isinstance(cell, Literal) else parameters[cell.index - 1]


def _columns(row: Row, schema: Schema, stage: Stage) -> list[Vector]:
    """The columns that a stage uses, as vectors of one row; the others are placeholders."""
    vectors = [_NOTHING] * len(schema)
    for i in stage.used:
        vectors[i] = Vector(np.array([row[i]], np.int64), _NULL if _lacks(row, schema, i) else None)
    return vectors


def _holds(tests: tuple[Stage, ...], row: Row, schema: Schema, context: Context) -> bool | None:
    """Whether a row meets all conditions; None: one of them fails."""
    for test in tests:
        (result,), failures = evaluate(test.exprs, _columns(row, schema, test), 1, context)
        if failures is not None:
            return None
        if not result.words[0] or _is_null(result):
            return False
    return True


def _is_null(vector: Vector) -> bool:
    return vector.nulls is not None and bool(vector.nulls[0])


def _lacks(row: Row, schema: Schema, column: int) -> bool:
    """Whether a row's column is NULL."""
    return schema[column].nullable and bool(row[len(schema) + column // 64] >> column % 64 & 1)


def _put(row: Row, schema: Schema, column: int, word: int, null: bool) -> bool:
    """Put a value into a row. False: it is NULL, and the column is NOT NULL."""
    row[column] = 0 if null else word
    if not schema[column].nullable:
        return not null
    at, bit = len(schema) + column // 64, column % 64
    mask = -1 << 63 if bit == 63 else 1 << bit
    row[at] = row[at] | mask if null else row[at] & ~mask
    return True
