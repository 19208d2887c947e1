"""UPDATE and DELETE of the row with a key, and INSERT of one row of values, without plans and blocks of rows.

Most statements of short transactions are of these forms. Each form is made once for a statement, and decides then
whether it may stand for the statement at all; ``run`` gives None, before it has changed anything, for what only the
general way (``sql.dml.changes``) can do or report.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final, Protocol

import numpy as np

from ivm.graph import Gather
from ivm.rows import Vector
from ivm.words import Schema, Storage, row_width
from planner import gathers
from planner.expr.context import Context
from planner.expr.evaluate.evaluator import evaluate
from planner.expr.scalar import Column, Literal, Parameter, Scalar
from planner.logical.nodes import Values
from planner.logical.traversal import has_subquery
from planner.peek.affected import AskedKey
from planner.peek.keyed import Keyed, keyed
from planner.physical.key_checks import KeyName
from planner.physical.nodes import Plan
from planner.physical.one_row_formula import RowFormula, one_row_formula
from planner.physical.row_programs import MapFilter, Stage
from sql.bind.constraints import domain_columns
from sql.bind.generation import generated_columns
from sql.catalog.catalog import Catalog, Relation, RelationKind
from sql.dml.fast_insert import plain_cell
from sql.dml.key_index import LATEST, KeyIndex, Rules
from sql.dml.row_changes import RowChanger
from sql.engine.engine import Engine
from sql.engine.read_set import Reading
from sql.engine.row_locks import Strength
from sql.engine.writer import Writer
from sql.statements.statements import DataChange, Delete, Insert, Update
from storage.types.codec import encode_one

FEW: Final = 64
"""The most pending updates that are looked through for a row."""
_WORD: Final = Struct("=q")
_BOTH: Final = np.array([-1, 1], np.int64)
_BOTH.flags.writeable = False
_NOTHING: Final = Vector(np.zeros(0, np.int64))
_NULL: Final = np.ones(1, np.bool_)
Row = list[int]
"""The words of a row in its table's layout."""


class OneRow(Protocol):
    """A statement that changes one row at most."""

    def run(self, changer: RowChanger) -> int | None:
        """The number of rows that it has changed, 0 or 1; None: it has done nothing, and the general way must.

        Raises BlockedError, and the errors of constraints.
        """
        ...

    def reading(self, context: Context) -> Reading | None:
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
    match statement:
        case Insert() if table.id not in links.outgoing and not keys.rules(table).exclusions:
            return _insert(statement)  # others may need a step when the row has been added already
        case Update() | Delete() if plan is not None and not links.touch(table.id):
            return _keyed_change(statement, plan, keys.rules(table), context)
        case _:
            return None


def _insert(statement: Insert) -> OneRow | None:
    source, table = statement.source, statement.table
    whole = statement.conflict is None and statement.finishing is None and not statement.layers
    if not whole or statement.returning is not None or not isinstance(source, Values) or len(source.rows) != 1:
        return None
    cells = source.rows[0]
    if len(cells) != len(table.columns) or any(
        not isinstance(c, Literal | Parameter) and has_subquery(c) for c in cells
    ):
        return None
    given = tuple(plain_cell(cell, column.type) for cell, column in zip(cells, table.columns, strict=True))
    computed = Stage.of(tuple(cell for cell, plain in zip(cells, given, strict=True) if plain is None))
    return RowInsert(table, table.row_schema, given, computed, tuple(i for i, g in enumerate(given) if g is None))


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
        return _delete(statement, plan, found, found.keys)
    return _update(statement, found, found.keys, rules, primary.key_check.key, context)


def _delete(statement: Delete, plan: Plan, found: Keyed, key: Literal | Parameter) -> OneRow | None:
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


def _update(
    statement: Update, found: Keyed, key: Literal | Parameter, rules: Rules, name: KeyName, context: Context
) -> OneRow | None:
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
    """``given``: the constant or parameter of each column, None for those that are ``computed`` for ``places``."""

    table: Relation
    schema: Schema
    given: tuple[Literal | Parameter | None, ...]
    computed: Stage
    places: tuple[int, ...]

    def run(self, changer: RowChanger) -> int | None:
        context, schema = changer.context, self.schema
        row, fits = [0] * row_width(schema), True
        for i, cell in enumerate(self.given):
            if cell is not None:
                datum = _datum(cell, context)
                word = 0 if datum is None else encode_one(schema[i].type, datum, context.dictionary)
                fits &= _put(row, schema, i, word, datum is None)
        if fits and self.places:
            vectors, failures = evaluate(self.computed.exprs, (), 1, context)
            if failures is not None:
                raise failures.errors[0]
            for i, vector in zip(self.places, vectors, strict=True):
                fits &= _put(row, schema, i, int(vector.words[0]), _is_null(vector))
        if not fits:  # the general way says which column
            return None
        changer.insert_plain(self.table, np.array([row], np.int64))
        return 1

    def reading(self, context: Context) -> Reading | None:
        return None


@dataclass(frozen=True, slots=True)
class RowUpdate:
    """``key``: the primary key's value; ``restore``: from an arranged row to one of the table; ``tests``: what the row
    must meet besides; ``name``: of the primary key, which stays as it is, as do all unique keys. New values are
    ``computed`` for the columns at ``places``, or ``copied`` (to, from), unless the ``formula`` gives the whole row."""

    table: Relation
    schema: Schema
    key: Literal | Parameter
    restore: Gather
    tests: tuple[Stage, ...]
    name: KeyName
    formula: RowFormula | None
    computed: Stage
    places: tuple[int, ...]
    copied: tuple[tuple[int, int], ...]

    def run(self, changer: RowChanger) -> int | None:
        writer, context, table = changer.writer, changer.context, self.table
        found = _find(writer, table, self.key, self.restore, context)
        if found is None:
            return None
        word, old = found
        new = None if self.formula is None or not old else self.formula.run(old, context)
        holds = bool(old) and (bool(new) if new is not None else _holds(self.tests, old, self.schema, context))
        if not holds:
            return None if holds is None else 0
        writer.lock_row(table, (table.id, self.name, _WORD.pack(word)), Strength.NO_KEY_UPDATE)
        if new is None:
            new = self._new(old, context)
        if new is None:
            return None
        writer.add(table.id, np.array([old, new], np.int64), _BOTH)
        return 1

    def reading(self, context: Context) -> Reading | None:
        return _reading(self.table, self.key, context)

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
    key: Literal | Parameter
    restore: Gather
    tests: tuple[Stage, ...]

    def run(self, changer: RowChanger) -> int | None:
        table, context = self.table, changer.context
        found = _find(changer.writer, table, self.key, self.restore, context)
        if found is None:
            return None
        old = found[1]
        holds = bool(old) and _holds(self.tests, old, self.schema, context)
        if not holds:
            return None if holds is None else 0
        rows = np.array([old], np.int64)
        changer.apply(table, rows, rows[:0])
        return 1

    def reading(self, context: Context) -> Reading | None:
        return _reading(self.table, self.key, context)


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


def _find(
    writer: Writer, table: Relation, key: Literal | Parameter, restore: Gather, context: Context
) -> tuple[int, Row] | None:
    """(the key's word, the row with it, [] if there is none); None as of ``find_row``."""
    datum = _datum(key, context)
    if datum is None:
        return 0, []
    word = encode_one(key.type, datum, context.dictionary)
    row = find_row(writer, table, word, restore, shown=writer.checks_reads)
    return None if row is None else (word, row)


def _reading(table: Relation, key: Literal | Parameter, context: Context) -> Reading | None:
    datum = _datum(key, context)
    if datum is None or key.type.storage is not Storage.DIRECT:
        return None
    asked = AskedKey(table.primary_key[0], encode_one(key.type, datum, context.dictionary))
    return Reading(frozenset((table.id,)), asked)


def _datum(cell: Literal | Parameter, context: Context) -> object:
    return cell.value if isinstance(cell, Literal) else context.parameters[cell.index - 1]


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
