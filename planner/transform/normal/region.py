"""The inputs of inner joins side by side, with conditions that do not depend on the inputs' order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from ivm.words import BOOL
from planner.expr.scalar import Call, Column, Scalar
from planner.logical.nodes import Rel, schema
from planner.logical.traversal import renumber, settle, shift
from planner.transform.join_order import column_equality
from planner.transform.normal.form import filtered
from planner.transform.normal.scalar import in_order, normal


@dataclass(frozen=True, slots=True)
class Class:
    """Columns that are equal under ``function``, ascending."""

    function: str
    members: tuple[Column, ...]

    def equality(self, left: Column, right: Column) -> Scalar:
        """The equality of two members."""
        return Call(self.function, (left, right), BOOL, left.nullable or right.nullable)


Classes = tuple[Class, ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Inputs side by side, conditions over all their columns, and the positions of the original plan's columns."""

    inputs: tuple[Rel, ...]
    predicates: tuple[Scalar, ...]
    places: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of columns of all inputs."""
        return sum(len(schema(rel)) for rel in self.inputs)

    @property
    def starts(self) -> list[int]:
        """The first column of each input, then the width."""
        starts = [0]
        for rel in self.inputs:
            starts.append(starts[-1] + len(schema(rel)))
        return starts

    @property
    def owners(self) -> list[int]:
        """The input of each column."""
        return [i for i, rel in enumerate(self.inputs) for _ in schema(rel)]

    def reordered(self, chosen: tuple[int, ...]) -> Joined:
        """The same join with its inputs, and with them its conditions, in the order ``chosen``."""
        starts = self.starts
        inputs = tuple(self.inputs[i] for i in chosen)
        place: dict[int, int] = {}
        for i in chosen:
            for c in range(starts[i], starts[i + 1]):
                place[c] = len(place)
        row = tuple(c for rel in inputs for c in schema(rel))
        moved = tuple(normal(settle(renumber(p, place.__getitem__), row)) for p in self.predicates)
        return Joined(inputs, in_order(moved), tuple(place[p] for p in self.places))

    def settled(self) -> Joined:
        """Moves equalities between columns of one input into that input, which leaves one member of a class in each."""
        found, others = classes(self.predicates)
        owner, starts = self.owners, self.starts
        own: list[list[Scalar]] = [[] for _ in self.inputs]
        kept: list[Scalar] = []
        for known in found:
            firsts = []
            for i, some in groupby(known.members, lambda c: owner[c.index]):
                first, *rest = some
                firsts.append(first)
                own[i] += [shift(known.equality(first, c), -starts[i]) for c in rest]
            kept += [known.equality(firsts[0], c) for c in firsts[1:]]
        inputs = tuple(
            filtered(rel, tuple(normal(settle(p, schema(rel))) for p in more)) if more else rel
            for rel, more in zip(self.inputs, own, strict=True)
        )
        return Joined(inputs, (*kept, *others), self.places)


def classes(predicates: tuple[Scalar, ...]) -> tuple[Classes, tuple[Scalar, ...]]:
    """The classes of columns that the predicates equate, and the other predicates."""
    parent: dict[int, int] = {}
    columns: dict[int, Column] = {}
    functions: dict[int, str] = {}
    others = []

    def root(i: int) -> int:
        while parent.setdefault(i, i) != i:
            i = parent[i]
        return i

    for predicate in predicates:
        pair = column_equality(predicate)
        if pair is None or not isinstance(predicate, Call):
            others.append(predicate)
            continue
        for column in pair:
            columns[column.index] = column
            functions[column.index] = predicate.function
        one, two = root(pair[0].index), root(pair[1].index)
        parent[max(one, two)] = min(one, two)
    members: dict[int, list[Column]] = {}
    for i in sorted(columns):
        members.setdefault(root(i), []).append(columns[i])
    return tuple(Class(functions[i], tuple(m)) for i, m in sorted(members.items())), tuple(others)
