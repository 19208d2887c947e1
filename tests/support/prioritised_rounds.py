"""PRIORITY BY evaluated naively, round by round: the oracle for blocks whose result depends on the order of rows.

docs/guide/priorities.md: a row of a binding becomes visible when its priority is reached; each priority has a stride of
rounds, and RECURSION LIMIT bounds the number of rounds in which something changes. Rounds in which nothing can happen
are skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from ivm.errors import SqlError
from planner.expr.scalar import Scalar
from planner.logical.nodes import LetRec, Reference, Rel
from tests.support.planner_model import Bag, Model, Row

STRIDE = 1 << 20
"""More rounds than any block here takes without a limit."""
Reads = dict[int, set[int]]


def references(plan: object) -> Iterator[int]:
    """The bindings that a plan reads, including those of blocks inside it."""
    if isinstance(plan, Reference):
        yield plan.binding
    elif isinstance(plan, tuple):
        for part in plan:
            yield from references(part)
    elif is_dataclass(plan):
        for field in fields(plan):
            yield from references(getattr(plan, field.name))


class Block:
    """A block's bindings: ``needed`` by the body, and ``variables``, which a later round reads."""

    def __init__(self, rel: LetRec) -> None:
        self.place = {binding: i for i, (binding, _) in enumerate(rel.bindings)}
        self.reads = {binding: set(references(value)) & self.place.keys() for binding, value in rel.bindings}
        self.needed = set(references(rel.body)) & self.place.keys()
        while more := {b for a in self.needed for b in self.reads[a]} - self.needed:
            self.needed |= more
        self.variables = {b for a in self.needed for b in self.reads[a] if self.place[b] >= self.place[a]}
        self.priorities: dict[int, Scalar | None] = dict.fromkeys(self.place)
        if rel.priorities:
            self.priorities.update(zip(self.place, rel.priorities, strict=True))
        self.stride = STRIDE if rel.limit is None or not rel.priorities else 1 << (rel.limit - 1).bit_length()
        self.last = (rel.limit or STRIDE) - 1

    def changes(self, binding: int) -> bool:
        """Whether it reads a value of another round, directly or through an earlier binding. Other bindings have no
        priority."""
        return any(self.place[b] >= self.place[binding] or self.changes(b) for b in self.reads[binding])


def difference(left: Bag, right: Bag) -> Bag:
    """The difference with negative counts, without zeros."""
    rows = {row: left[row] - right[row] for row in {*left, *right}}
    return Counter({row: n for row, n in rows.items() if n})


class Rounds(Model):
    """The naive interpreter with priorities and limits."""

    wrong = 0
    """The number of blocks with an error in the present rounds."""

    def answer(self, rel: Rel) -> Bag | None:
        """The rows; None if the view must have an error."""
        self.wrong = 0
        found = self.rel(rel)
        return None if self.wrong else found

    def letrec(self, rel: LetRec, outer: tuple[Row, ...]) -> Bag:
        assert not rel.return_at_limit
        block, around = Block(rel), self.wrong
        seen: dict[int, Bag] = {b: Counter() for b in block.needed}
        standing: dict[int, Bag] = {b: Counter() for b in block.variables}
        beyond: dict[int, Bag] = {b: Counter() for b in block.variables}
        now, waiting, ends = 0, {0}, False
        while not ends:
            self.wrong = around
            self.bindings.update(standing)
            before, waiting = dict(seen), set()
            for binding, value in rel.bindings:
                if binding in block.needed:
                    rows = self.rel(value, outer)
                    if block.changes(binding) and (expr := block.priorities[binding]) is not None:
                        rows, later = self.introduced(expr, rows, now, block.stride)
                        waiting |= later
                    seen[binding] = self.bindings[binding] = rows
            rests = True
            for b in block.variables:
                change = difference(seen[b], before[b])
                if now % block.stride >= block.last:
                    beyond[b] = difference(beyond[b], difference(Counter(), change))
                elif change:
                    standing[b] = difference(standing[b], difference(Counter(), change))
                    rests = False
            ends = rests and not waiting
            now = min(waiting) if rests and waiting else now + 1
        self.wrong += any(beyond.values())
        return self.rel(rel.body, outer)

    def introduced(self, expr: Scalar, rows: Bag, now: int, stride: int) -> tuple[Bag, set[int]]:
        """The rows whose priority has been reached, and the rounds for which others wait. Rows without a priority are
        errors."""
        seen: Bag = Counter()
        waiting: set[int] = set()
        for row, n in rows.items():
            try:
                priority = self.eval(expr, row, ())
            except SqlError:
                priority = None
            if priority is None or priority < 0:
                self.wrong += 1
            elif priority * stride > now:
                waiting.add(priority * stride)
            else:
                seen[row] = n
        return seen, waiting
