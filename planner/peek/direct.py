"""Runs plans of row programs, lookups and sums directly in numpy: INSERT, reads by key, aggregates of a few rows.

A dataflow for such a query takes longer to make than to run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ivm.distinct import distinct_rows
from ivm.graph import (
    Apart,
    Arrange,
    Concat,
    Consolidate,
    Errors,
    Gather,
    Join,
    Keep,
    Mapped,
    NodeId,
    Project,
    Threshold,
)
from ivm.operators.linear import set_apart
from ivm.rows import Words
from ivm.specs import inputs
from ivm.stops import poll
from ivm.trace.batch import Block
from ivm.trace.shards import sorted_block
from planner import gathers
from planner.aggregates.aggregate_reducers import AccumulateFold, CountFold
from planner.expr.context import Bounds, Context
from planner.memo import by_identity
from planner.peek.enough import Counted, passed
from planner.peek.keyed import is_keyed, run_keyed
from planner.peek.ranges import filters, narrowed, rows_of
from planner.peek.snapshot import Snapshot, static_side, stored_version, table_rows
from planner.physical.nodes import Constants, Group, Map, Node, Plan, Table, TableErrors
from planner.render.dataflow import constant_rows

GROUPED: Final = 1 << 14
"""The most rows that are grouped here: a dataflow sorts more of them on all cores, and in pieces."""


def run_direct(
    plan: Plan, snapshot: Snapshot, context: Context, bounds: Bounds | None = None,
    known: dict[NodeId, Counted] | None = None,
) -> tuple[Words, Words, Words | None] | None:  # fmt: skip
    """(rows, diffs, error rows), or None if the plan needs a dataflow. 53200: a join produces too many rows.

    ``known``: what takes the place of some nodes' inputs (``planner.peek.enough``).
    """
    bounds = bounds or Bounds()
    keyed = run_keyed(plan, snapshot, context, bounds)
    if keyed is not None:
        return keyed
    known = known or {}
    course = _course_of(plan, snapshot, frozenset(known))
    if course is None or (course.groups and _scanned(plan, course, snapshot, context, GROUPED) > GROUPED):
        return None
    direct = _Direct(plan, course, snapshot, context, bounds, known)
    rows, diffs = direct.rows(plan.rows)
    errors = None if plan.errors is None else direct.errors(plan.errors)
    return rows, diffs, errors


def is_short(plan: Plan, snapshot: Snapshot, rows: int, context: Context) -> bool:
    """Whether a plan runs directly and reads at most ``rows`` rows of the relations that it scans."""
    if is_keyed(plan, snapshot):
        return True
    course = _course_of(plan, snapshot)
    return course is not None and _scanned(plan, course, snapshot, context, rows) <= rows


def _scanned(plan: Plan, course: _Course, snapshot: Snapshot, context: Context, rows: int) -> int:
    """How many rows are read of the relations that are scanned; more than ``rows`` if that many or not known."""
    scanned = 0
    for number in course.scanned:
        if scanned > rows:
            break
        node = plan.nodes[number]
        access = None if isinstance(node, Table) else narrowed(*filters(plan)[number], snapshot, context)
        if access is not None:
            scanned += access.range.left
            continue
        version = snapshot.version(node.relation if isinstance(node, Table) else filters(plan)[number][0].relation)
        scanned += rows + 1 if version is None else version.count
    return scanned


@dataclass(frozen=True, slots=True)
class _Course:
    """How a plan is run: the looked-up side of each join, the nodes that scan a relation, or a part of it, and all
    that are computed. ``groups``: whether there are groups among these."""

    sides: dict[NodeId, str | None]
    scanned: tuple[NodeId, ...]
    seen: frozenset[NodeId]
    groups: bool


def _course_of(plan: Plan, snapshot: Snapshot, known: frozenset[NodeId] = frozenset()) -> _Course | None:
    """The plan's course over a snapshot; None if it needs a dataflow. ``known``: nodes that are given their input.

    Cost: the number of the plan's joins; the first time, the size of the plan.
    """
    sides = tuple(static_side(plan, join, snapshot) for _, join in _joins(plan))
    courses = _courses(plan)
    if (sides, known) not in courses:
        by_join = {number: side for (number, _), side in zip(_joins(plan), sides, strict=True)}
        courses[sides, known] = _course(plan, by_join, known)
    return courses[sides, known]


@by_identity
def _joins(plan: Plan) -> tuple[tuple[NodeId, Join], ...]:
    return tuple((NodeId(i), node) for i, node in enumerate(plan.nodes) if isinstance(node, Join))


@by_identity
def _courses(plan: Plan) -> dict[tuple[tuple[str | None, ...], frozenset[NodeId]], _Course | None]:
    """The memo of courses, by the looked-up sides of the plan's joins and the nodes that are given their input."""
    del plan
    return {}


def _course(plan: Plan, sides: dict[NodeId, str | None], known: frozenset[NodeId]) -> _Course | None:
    todo = [plan.rows] if plan.errors is None else [plan.errors, plan.rows]
    spared = passed(plan, known)
    seen: set[NodeId] = set()
    scanned: list[NodeId] = []
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        node = plan.nodes[number]
        if isinstance(node, Errors) and node.input in spared and node.input not in seen:
            continue
        match node:
            case Map() | Arrange() if number in known:
                pass
            case Table():
                scanned.append(number)
            case Map() if number in filters(plan):
                scanned.append(number)
            case TableErrors() | Constants() | Project() | Errors() | Concat() | Consolidate() | Apart():
                todo += inputs(node)
            case Map():
                todo.append(node.input)
            case Group() if _is_sum(plan, node):
                todo.append(node.input)
            case Threshold() if isinstance(plan.nodes[node.input], Arrange):
                todo.append(node.input)
            case Arrange() if not node.order:
                todo.append(node.input)
            case Join():
                moving = node.right if sides[number] == "left" else node.left
                if sides[number] is None or not isinstance(plan.nodes[moving], Arrange | Threshold):
                    return None
                todo.append(moving)
            case _:
                return None
    groups = any(isinstance(plan.nodes[number], Group) for number in seen)
    return _Course(sides, tuple(scanned), frozenset(seen), groups)


def _is_sum(plan: Plan, group: Group) -> bool:
    """Whether a group's rows are needed in no order, and nothing but their sums."""
    return isinstance(group.fold, AccumulateFold | CountFold) and isinstance(plan.nodes[group.input], Arrange)


@dataclass(slots=True)
class _Direct:
    plan: Plan
    course: _Course
    snapshot: Snapshot
    context: Context
    bounds: Bounds
    given: dict[NodeId, Counted]
    known: dict[NodeId, Counted] = field(default_factory=dict)
    failed: dict[NodeId, Words] = field(default_factory=dict)

    def rows(self, number: NodeId) -> Counted:
        if number not in self.known:
            poll()
            self.known[number] = self._compute(number, self.plan.nodes[number])
        return self.known[number]

    def errors(self, number: NodeId) -> Words | None:
        """A node's error rows, if it has any."""
        node = self.plan.nodes[number]
        match node:
            case Concat():
                parts = [rows for rows in map(self.errors, node.inputs) if rows is not None]
                return np.concatenate(parts) if parts else None
            case Errors() if node.input in self.course.seen:
                self.rows(node.input)
                return self.failed.get(node.input)
            case Errors():
                return None
            case TableErrors():
                found = self.snapshot.errors(node.relation)
                return None if found is None else found[0]
            case _:
                return self.rows(number)[0]

    def _compute(self, number: NodeId, node: Node) -> Counted:
        match node:
            case Table():
                return table_rows(node, self.snapshot)
            case TableErrors():
                return self.snapshot.errors(node.relation) or _none(1)
            case Constants():
                words, errors = constant_rows(node.rows, node.schema, self.context)
                self._fail(number, errors)
                return words, np.ones(len(words), np.int64)
            case Project():
                return self._moved(node.input, node.gather)
            case Concat():
                return self._concat(node)
            case Map():
                return self._map(number, node)
            case Errors():
                self.rows(node.input)
                errors = self.failed.get(node.input, np.zeros((0, 1), np.int64))
                return errors, np.ones(len(errors), np.int64)
            case Arrange():
                rows, diffs = self._read(number) or self.rows(node.input)
                moved, source = gathers.apply(node.gather, rows)
                return moved, diffs if source is None else diffs[source]
            case Consolidate():
                return _consolidated(*self.rows(node.input))
            case Apart():
                rows, diffs = self.rows(node.input)
                whole, source = set_apart(rows, diffs)
                return whole, np.sign(diffs[source])
            case Threshold():
                rows, diffs = self.rows(node.input)
                return _threshold(rows, diffs, node.keep)
            case Join():
                return self._join(number, node)
            case Group():
                return self._group(number, node)
            case _:
                raise AssertionError(node)

    def _moved(self, number: NodeId, gather: Gather) -> Counted:
        rows, diffs = self.rows(number)
        moved, source = gathers.apply(gather, rows)
        return moved, diffs if source is None else diffs[source]

    def _fail(self, number: NodeId, errors: Words | None) -> None:
        if errors is not None and len(errors):
            self.failed[number] = errors

    def _concat(self, node: Concat) -> Counted:
        parts = [self.rows(i) for i in node.inputs]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _map(self, number: NodeId, node: Map) -> Counted:
        rows, diffs = self._read(number) or self.rows(node.input)
        mapped: Mapped = node.program.run(rows, self.context)
        self._fail(number, mapped.errors)
        out = diffs if mapped.source is None else diffs[mapped.source]
        if mapped.weights is None:
            return mapped.rows, out
        return mapped.rows, out * mapped.weights[:, 0] if node.program.diff_width == 1 else out[
            :, None
        ] * mapped.weights

    def _read(self, number: NodeId) -> Counted | None:
        """What takes the place of a node's input: what it is given, or the rows that its filter asks for of a stored
        relation; None: all of them, or it filters something else."""
        if number in self.given:
            return self.given[number]
        asked = filters(self.plan).get(number)
        access = None if asked is None else narrowed(*asked, self.snapshot, self.context)
        if access is None:
            return None
        self.bounds.check(8 * access.range.left * (len(access.restore.words) + 4))
        return rows_of(access)

    def _group(self, number: NodeId, node: Group) -> Counted:
        """[key | out vals] of each key's rows."""
        arranged = self.plan.nodes[node.input]
        assert isinstance(arranged, Arrange)
        rows, diffs = self.rows(node.input)
        if not len(rows):
            return _none(arranged.key_width + node.fold.out_width)
        given = Block.of(rows, np.zeros(len(rows), np.int64), diffs if diffs.ndim == 2 else diffs.reshape(-1, 1))
        rows, _, diffs = sorted_block(given).arrays()
        keys = rows[:, : arranged.key_width]
        first = np.ones(len(rows), np.bool_)
        first[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        starts = np.flatnonzero(first)
        keys, vals = keys[starts], np.ascontiguousarray(rows[:, arranged.key_width :])
        reduced = node.fold.bind(self.context)(keys, np.append(starts, len(rows)), vals, diffs)
        self._fail(number, reduced.errors)
        made = np.concatenate([keys[reduced.segment], reduced.vals], axis=1)
        return made, np.ones(len(made), np.int64)

    def _join(self, number: NodeId, node: Join) -> Counted:
        """[key | left val | right val] of the moving side's rows and the rows looked up by their keys."""
        side = self.course.sides[number]
        fixed, moving = (node.left, node.right) if side == "left" else (node.right, node.left)
        version = stored_version(self.plan, fixed, self.snapshot)
        assert version is not None
        rows, diffs = self.rows(moving)
        width = version.key_width
        keys, place = _distinct(rows[:, :width])
        found, counts, index = version.lookup(np.ascontiguousarray(keys), self.snapshot.at)
        matches = int(np.bincount(index, minlength=len(keys))[place].sum())
        self.bounds.check(8 * matches * (version.width + rows.shape[1] + 4))
        one, two = _pairs(place, index, len(keys))
        first, second = (rows[one], found[two]) if side == "right" else (found[two], rows[one])
        whole = np.concatenate([first, second[:, width:]], axis=1)
        out, kept = gathers.apply(node.gather, whole)
        both = diffs[one] * counts[two]
        return out, both if kept is None else both[kept]


def _distinct(rows: Words) -> tuple[Words, Words]:
    """The distinct rows in order, and each row's index among them."""
    if len(rows) == 1:
        return rows, np.zeros(1, np.int64)
    if rows.shape[1] == 1:
        words, inverse = np.unique(rows[:, 0], return_inverse=True)
        return words.reshape(-1, 1), inverse
    found = distinct_rows(rows)
    return found.rows, found.place


def _pairs(left: Words, right: Words, count: int) -> tuple[Words, Words]:
    """All (i, j) with left[i] == right[j]. Both are key numbers below ``count``."""
    if len(left) == 1:
        return np.zeros(len(right), np.int64), np.arange(len(right))
    order = np.argsort(right, kind="stable")
    starts = np.searchsorted(right[order], np.arange(count + 1))
    sizes = np.diff(starts)[left]
    one = np.repeat(np.arange(len(left)), sizes)
    offset = np.arange(len(one)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return one, order[np.repeat(starts[left], sizes) + offset]


def _threshold(rows: Words, diffs: Words, keep: Keep) -> Counted:
    if len(rows) == 1 and diffs[0] == 1:
        return rows, diffs
    found, inverse = _distinct(rows)
    counts = np.zeros(len(found), np.int64)
    np.add.at(counts, inverse, diffs)
    live = counts > 0
    return found[live], np.minimum(counts[live], 1) if keep is Keep.DISTINCT else counts[live]


def _consolidated(rows: Words, diffs: Words) -> Counted:
    if len(rows) == 1:
        return rows, diffs
    found, inverse = _distinct(rows)
    counts = np.zeros(len(found), np.int64)
    np.add.at(counts, inverse, diffs)
    return found[counts != 0], counts[counts != 0]


def _none(width: int) -> Counted:
    return np.zeros((0, width), np.int64), np.zeros(0, np.int64)
