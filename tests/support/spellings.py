"""Random queries, each in many spellings: one seed determines a query's meaning, another its wording.

The grammar is in docs/internals/test-grammars.md. Tables are those of ``tests.planner.test_sql``: t(a, b), u(id, x) and
e(src, dst).
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

COLUMNS = {"t": ("a", "b"), "u": ("id", "x"), "e": ("src", "dst")}
SIGNS = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
NEGATED = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

Cell = tuple[int, str]
"""(the input's number, the column's name)."""
Term = tuple[str, Cell | int, Cell | int] | Cell | int
"""A sum or product, a column, or a constant."""


@dataclass(frozen=True)
class Compare:
    sign: str
    left: Term
    right: Term


@dataclass(frozen=True)
class Member:
    cell: Cell
    values: tuple[int, ...]


@dataclass(frozen=True)
class Between:
    cell: Cell
    low: int
    high: int


@dataclass(frozen=True)
class Semi:
    """Whether a table has a row with ``column`` equal to the cell and another column above ``bound``."""

    cell: Cell
    table: str
    column: str
    other: str
    bound: int
    negated: bool


Condition = Compare | Member | Between | Semi


@dataclass(frozen=True)
class Meaning:
    """Joined tables under conditions, some terms of each row; ``kind``: rows, distinct or groups."""

    tables: tuple[str, ...]
    equalities: tuple[tuple[Cell, Cell], ...]
    conditions: tuple[Condition, ...]
    outer: str | None
    terms: tuple[Term, ...]
    kind: str
    sums: tuple[str, ...]


def meaning(seed: int) -> tuple[Meaning, ...]:
    """The meaning of a seed's query: one arm, or two that are united."""
    rnd = random.Random(seed)
    first = _arm(rnd, rnd.choice(("rows", "rows", "distinct", "groups")), rnd.randint(1, 3))
    if first.kind == "groups" or rnd.random() < 0.7:
        return (first,)
    return first, _arm(rnd, first.kind, len(first.terms))


def _arm(rnd: random.Random, kind: str, width: int) -> Meaning:
    some = rnd.choice("tue") if rnd.random() < 0.2 else "tue"
    tables = tuple(rnd.choice(some) for _ in range(rnd.choice((1, 1, 2, 2, 3))))
    cells = [(i, c) for i, t in enumerate(tables) for c in COLUMNS[t]]
    equalities = tuple(
        (rnd.choice([c for c in cells if c[0] < i]), (i, rnd.choice(COLUMNS[tables[i]]))) for i in range(1, len(tables))
    )
    if len(tables) > 1 and rnd.random() < 0.4:
        equalities += tuple((rnd.choice(cells), rnd.choice(cells)) for _ in range(rnd.randint(1, 2)))
        equalities = tuple(e for e in equalities if e[0][0] != e[1][0])
    outer = rnd.choice("tue") if len(tables) == 1 and rnd.random() < 0.4 else None
    alone = len(tables) == 1 and outer is None
    conditions = tuple(_condition(rnd, cells, alone and i == 0) for i in range(rnd.randint(0, 3)))
    if outer is not None:
        equalities = ((rnd.choice(cells), (1, rnd.choice(COLUMNS[outer]))),)
        cells += [(1, c) for c in COLUMNS[outer]]
    terms = tuple(dict.fromkeys(_term(rnd, cells) for _ in range(width)))
    terms = (*terms, *(cells[i % len(cells)] for i in range(width - len(terms))))
    sums = tuple(rnd.sample(("count(*)", "sum", "max", "count"), rnd.randint(1, 3)))
    return Meaning(tables, equalities, conditions, outer, terms, kind, sums if kind == "groups" else ())


def _term(rnd: random.Random, cells: list[Cell]) -> Term:
    if rnd.random() < 0.7:
        return rnd.choice(cells)
    return rnd.choice("+*"), rnd.choice(cells), rnd.choice((rnd.choice(cells), rnd.randint(1, 3)))


def _condition(rnd: random.Random, cells: list[Cell], alone: bool) -> Condition:
    """``alone``: the condition may overflow. Only one may, and only of a single table: it would see other rows in a
    join's ON than in WHERE, and other rows after another one that may overflow."""
    cell = rnd.choice(cells)
    match rnd.randint(0, 4):
        case 0:
            return Member(cell, tuple(rnd.sample(range(1, 6), 3)))
        case 1:
            low = rnd.randint(1, 3)
            return Between(cell, low, low + rnd.randint(0, 3))
        case 2:
            table = rnd.choice("tue")
            column, other = rnd.sample(COLUMNS[table], 2)
            return Semi(cell, table, column, other, rnd.randint(1, 3), rnd.random() < 0.3)
        case _:
            other = _term(rnd, cells) if alone else rnd.choice(cells)
            return Compare(rnd.choice(tuple(SIGNS)), cell, rnd.choice((other, rnd.randint(1, 5))))


def spelled(arms: tuple[Meaning, ...], seed: int) -> tuple[str, tuple[int, ...]]:
    """A text of the query, and for each of its columns the number of the meaning's column."""
    writer = _Writer(random.Random(seed))
    width = len(arms[0].terms) + len(arms[0].sums)
    order = writer.shuffled(range(width))
    texts = [writer.arm(arm, order, len(arms) > 1) for arm in writer.shuffled(arms)]
    if len(texts) == 1:
        return texts[0], tuple(order)
    if arms[0].kind == "rows":
        return " union all ".join(texts), tuple(order)
    if writer.rnd.random() < 0.5:
        return " union ".join(texts), tuple(order)
    columns = ", ".join(f"c{i}" for i in order)
    return f"select distinct {columns} from ({' union all '.join(texts)}) united", tuple(order)


class _Writer:
    """Writes one query; all choices are derived from the seed."""

    def __init__(self, rnd: random.Random) -> None:
        self.rnd = rnd
        self.names: list[str] = []

    def shuffled(self, items: Iterable[T]) -> list[T]:
        found = list(items)
        self.rnd.shuffle(found)
        return found

    def maybe(self) -> bool:
        return self.rnd.random() < 0.5

    def cell(self, cell: Cell) -> str:
        return f"{self.names[cell[0]]}.{cell[1]}"

    def term(self, term: Term) -> str:
        if isinstance(term, int):
            return str(term)
        if len(term) == 2:
            return self.cell(term)
        left, right = self.shuffled([term[1], term[2]])
        return f"({self.term(left)} {term[0]} {self.term(right)})"

    def compare(self, sign: str, left: Term, right: Term) -> str:
        if self.rnd.random() < 0.2:
            return f"not ({self.compare(NEGATED[sign], left, right)})"
        if self.maybe():
            return f"{self.term(right)} {SIGNS[sign]} {self.term(left)}"
        return f"{self.term(left)} {sign} {self.term(right)}"

    def condition(self, condition: Condition) -> str:
        match condition:
            case Compare():
                return self.compare(condition.sign, condition.left, condition.right)
            case Member():
                values = self.shuffled(condition.values)
                if self.maybe():
                    return "(" + " or ".join(self.compare("=", condition.cell, v) for v in values) + ")"
                return f"{self.cell(condition.cell)} in ({', '.join(map(str, values))})"
            case Between():
                if self.maybe():
                    return f"{self.cell(condition.cell)} between {condition.low} and {condition.high}"
                low = self.compare(">=", condition.cell, condition.low)
                return f"{self.compare('<=', condition.cell, condition.high)} and {low}"
            case Semi():
                return self.semi(condition)

    def semi(self, semi: Semi) -> str:
        """IN and EXISTS; if negated only EXISTS, since NOT IN means something else with NULLs."""
        if semi.negated or self.maybe():
            parts = self.shuffled([f"w.{semi.column} = {self.cell(semi.cell)}", f"w.{semi.other} >= {semi.bound}"])
            no = "not " if semi.negated else ""
            return f"{no}exists (select {self.rnd.choice(('1', '*'))} from {semi.table} w where {' and '.join(parts)})"
        distinct = "distinct " if self.maybe() else ""
        inner = f"select {distinct}w.{semi.column} from {semi.table} w where {semi.bound} <= w.{semi.other}"
        return f"{self.cell(semi.cell)} in ({inner})"

    def table(self, name: str, alias: str) -> str:
        if self.rnd.random() < 0.3:
            return f"(select {', '.join(self.shuffled(COLUMNS[name]))} from {name}) {alias}"
        return f"{name} {alias}"

    def arm(self, arm: Meaning, order: list[int], named: bool) -> str:
        count = len(arm.tables) + (arm.outer is not None)
        self.names = [f"{self.rnd.choice('pqr')}{i}" for i in range(count)]
        conditions = [self.condition(c) for c in arm.conditions]
        conditions += self.rnd.sample(conditions, min(len(conditions), self.rnd.randint(0, 1)))
        joined = self.joined(arm) if arm.outer is None else self.outer(arm)
        source, more = joined
        where = self.shuffled([*more, *conditions])
        shown = [*map(self.term, arm.terms), *self.sums(arm)]
        columns = ", ".join(f"{shown[i]} c{i}" for i in order)
        text = f"{source}{' where ' + ' and '.join(where) if where else ''}"
        if arm.kind == "rows" or (arm.kind == "distinct" and named):
            return f"select {columns} {text}"
        if arm.kind == "distinct" and self.maybe():
            return f"select distinct {columns} {text}"
        keys = ", ".join(map(str, self.shuffled([k + 1 for k, i in enumerate(order) if i < len(arm.terms)])))
        return f"select {columns} {text} group by {keys}"

    def sums(self, arm: Meaning) -> list[str]:
        first = (0, COLUMNS[arm.tables[0]][1])
        return [s if "*" in s else f"{s}({self.cell(first)})" for s in arm.sums]

    def joined(self, arm: Meaning) -> tuple[str, list[str]]:
        """FROM, and the remaining equalities for WHERE."""
        equalities = [self.compare("=", a, b) for a, b in arm.equalities]
        parts = self.shuffled([(i, self.table(t, self.names[i])) for i, t in enumerate(arm.tables)])
        if len(parts) == 1 or self.maybe():
            return "from " + ", ".join(text for _, text in parts), equalities
        text = f"from {parts[0][1]}"
        placed = {parts[0][0]}
        for number, table in parts[1:]:
            placed.add(number)
            ready = [e for e, (a, b) in zip(equalities, arm.equalities, strict=True)
                     if {a[0], b[0]} <= placed and number in (a[0], b[0])]  # fmt: skip
            text += f" join {table} on {' and '.join(self.shuffled(ready)) or 'true'}"
        return text, []

    def outer(self, arm: Meaning) -> tuple[str, list[str]]:
        kept, other = self.table(arm.tables[0], self.names[0]), self.table(arm.outer or "t", self.names[1])
        ((a, b),) = arm.equalities
        on = self.compare("=", a, b)
        return f"from {f'{kept} left join {other}' if self.maybe() else f'{other} right join {kept}'} on {on}", []
