"""Random histories for the oracle: the schema, the queries' grammar and the DML, generated from one seed.

A seed instead of Hypothesis, whose mutations would repeat most of a history; ``tests/support/replay.py`` shrinks
failures by removing views, steps and statements. The grammar is in docs/internals/test-grammars.md. A history has views
(some recursive, some reading tables only through subqueries), then steps of one to three transactions of one or two
statements, with NULLs, duplicates and updates of keys.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.support.model import (
    Agg,
    Col,
    Compare,
    Const,
    Derived,
    Exists,
    Expr,
    First,
    From,
    In,
    Joined,
    Op,
    Query,
    Recursion,
    Scalar,
    Select,
    SetOp,
    Table,
    Timed,
    When,
)

T = TypeVar("T")
Columns = tuple[tuple[str, str], ...]

SCHEMA: dict[str, Columns] = {
    "t0": (("a", "int"), ("b", "int"), ("s", "text")),
    "t1": (("a", "int"), ("b", "int")),
    "t2": (("id", "int"), ("a", "int"), ("s", "text")),
    "e": (("src", "int"), ("dst", "int")),
}
NOT_NULL = {("t2", "id"), ("e", "src"), ("e", "dst")}
KEY = {"t2": 0}
TEXTS = ("", "a", "b", "ab", "B", "é")


@dataclass(frozen=True, slots=True)
class InsertRows:
    table: str
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class DeleteWhere:
    """``where`` refers to the table by its name as the alias."""

    table: str
    where: Expr


@dataclass(frozen=True, slots=True)
class UpdateWhere:
    table: str
    column: int
    value: Expr
    where: Expr


Dml = InsertRows | DeleteWhere | UpdateWhere


@dataclass(frozen=True, slots=True)
class History:
    """``views``: by name; ``steps``: each a tuple of transactions, each a tuple of statements."""

    views: tuple[tuple[str, Query], ...]
    steps: tuple[tuple[tuple[Dml, ...], ...], ...]


class Maker:
    """Generates queries; ``fresh`` numbers the aliases, ``scope`` lists the columns that an expression may use."""

    def __init__(self, rng: random.Random, asof: int = 0) -> None:
        """``asof``: the percentage of ASOF joins."""
        self.rng = rng
        self.asof = asof
        self.aliases = 0

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, uniformly."""
        return self.rng.choice(options)

    def chance(self, percent: int) -> bool:
        """True with this probability."""
        return self.rng.random() * 100 < percent

    def alias(self) -> str:
        self.aliases += 1
        return f"x{self.aliases}"

    # -------------------------------------------------------------- expressions

    def constant(self, kind: str) -> Const:
        if kind == "int":
            return Const(self.pick((0, 1, 2, 3, 5, -1)), kind)
        return Const(self.pick(TEXTS), kind)

    def value(self, kind: str, scope: Sequence[Col], depth: int) -> Expr:
        """An int or text expression."""
        columns = [c for c in scope if c.type == kind]
        deep = ("op", "op", "when", "coalesce", "scalar") if depth else ()
        choice = self.pick(("column",) * 6 + ("constant",) + deep)
        if choice == "column" and columns:
            return self.pick(columns)
        if choice == "op":
            if kind == "text":
                return Op("||", (self.value(kind, scope, depth - 1), self.constant(kind)), kind)
            args = (self.value(kind, scope, depth - 1), self.value(kind, scope, 0))
            return Op(self.pick(("+", "-")), args, kind)
        if choice == "when":
            yes, no = self.value(kind, scope, 0), self.value(kind, scope, 0)
            return When(self.predicate(scope, depth - 1), yes, no, kind)
        if choice == "coalesce":
            return Op("coalesce", (self.value(kind, scope, depth - 1), self.constant(kind)), kind)
        if choice == "scalar":
            return self.scalar(kind, scope)
        return self.constant(kind)

    def scalar(self, kind: str, scope: Sequence[Col]) -> Expr:
        """A scalar subquery: an aggregate without GROUP BY, mostly correlated."""
        source, inner = self.table()
        columns = [c for c in inner if c.type == kind]
        if kind == "int" and (not columns or self.chance(40)):
            agg = Agg("count", None, False, "int")
        elif columns:
            agg = Agg(self.pick(("max", "min")), self.pick(columns), False, kind)
        else:
            return self.constant(kind)
        where = self.correlation(inner, scope)
        return Scalar(Select(source, where=where, keys=(), aggs=(agg,)), kind)

    def correlation(self, inner: Sequence[Col], outer: Sequence[Col]) -> Expr | None:
        """A comparison of an inner column with an outer column of the same type."""
        pairs = [(i, o) for i in inner for o in outer if i.type == o.type]
        if not pairs or self.chance(20):
            return None
        a, b = self.pick(pairs)
        return Op(self.pick(("=", "=", "=", "<", "<>")), (a, b), "bool")

    def predicate(self, scope: Sequence[Col], depth: int) -> Expr:
        """A three-valued condition."""
        simple = ("compare", "compare", "null", "distinct")
        choice = self.pick(simple + (("and", "or", "not", "exists", "in", "in", "quantified") if depth > 0 else ()))
        if choice == "null":
            return Op(self.pick(("is null", "is not null")), (self.value("int", scope, 0),), "bool")
        if choice in ("and", "or"):
            return Op(choice, (self.predicate(scope, depth - 1), self.predicate(scope, 0)), "bool")
        if choice == "not":
            return Op("not", (self.predicate(scope, depth - 1),), "bool")
        if choice == "exists":
            source, inner = self.table()
            return Exists(Select(source, (Const(1, "int"),), self.correlation(inner, scope)))
        if choice in ("in", "quantified"):
            return self.membership(choice, scope)
        kind = self.pick(("int", "int", "text"))
        args = (self.value(kind, scope, max(0, depth - 1)), self.value(kind, scope, 0))
        name = "is distinct from" if choice == "distinct" else self.pick(("=", "=", "<", "<=", ">", ">=", "<>"))
        return Op(name, args, "bool")

    def membership(self, choice: str, scope: Sequence[Col]) -> Expr:
        """[NOT] IN, or a comparison with ANY or ALL of a subquery."""
        source, inner = self.table()
        column = self.pick([c for c in inner if c.type == "int"])
        query = Select(source, (column,), self.correlation(inner, scope) if self.chance(50) else None)
        arg = self.value("int", scope, 0)
        if choice == "in":
            return In(arg, query, self.chance(50))
        return Compare(arg, self.pick(("=", "<", ">=", "<>")), self.chance(50), query)

    # -------------------------------------------------------------- FROM

    def table(self, name: str | None = None) -> tuple[Table, list[Col]]:
        name = name or self.pick(tuple(SCHEMA))
        alias = self.alias()
        return Table(name, alias, SCHEMA[name]), [Col(alias, n, t) for n, t in SCHEMA[name]]

    def source(self, depth: int) -> tuple[From, list[Col]]:
        """A table, a subquery, or a join of two sources."""
        choice = self.pick(("table", "join", "join", "derived") if depth > 0 else ("table",))
        if choice == "table":
            return self.table()
        if choice == "derived":
            derived = Derived(self.query(depth - 1), self.alias())
            return derived, [Col(derived.alias, n, t) for n, t in derived.columns]
        left, a = self.source(depth - 1)
        if self.asof and self.chance(self.asof):
            return self.timed(left, a, depth)
        right, b = self.source(0)
        kind = self.pick(("inner", "inner", "left", "left", "right", "full", "cross"))
        return Joined(kind, left, right, self.join_condition(kind, a, b)), a + b

    def timed(self, left: From, a: list[Col], depth: int) -> tuple[From, list[Col]]:
        """An ASOF JOIN of a source with a table or any query, by 0 to 2 keys, with a point of any type."""
        right: Table | Derived
        right, b = self.table()
        if depth > 1 and self.chance(30):
            right = Derived(self.query(self.pick((0, 1))), self.alias())
            b = [Col(right.alias, n, t) for n, t in right.columns]
        pairs = [(x, y) for x in a for y in b if x.type == y.type]
        if not pairs:
            return left, a
        x, y = self.pick(pairs)
        point: Expr = Op("+", (x, Const(1, "int")), "int") if x.type == "int" and self.chance(20) else x
        keys = tuple(self.pick(pairs) for _ in range(self.pick((0, 1, 1, 2))))
        sign = self.pick((">=", ">=", ">", "<=", "<"))
        only = tuple(self.predicate(side, 0) for side in (a, b) if self.chance(20))
        return Timed(left, right, keys, (point, y), sign, self.chance(50), self.chance(20), only), a + b

    def join_condition(self, kind: str, a: Sequence[Col], b: Sequence[Col]) -> Expr:
        pairs = [(x, y) for x in a for y in b if x.type == y.type]
        if not pairs:
            return Op("=", (Const(1, "int"), Const(1, "int")), "bool")
        on: Expr = Op("=", self.pick(pairs), "bool")
        # Postgres supports FULL JOIN only on hashable or mergeable conditions, so those stay plain equalities.
        if kind != "full" and self.chance(25):
            on = Op("and", (on, Op(self.pick(("<", "<>", "is distinct from")), self.pick(pairs), "bool")), "bool")
        elif kind != "full" and self.chance(15):
            on = Op(self.pick(("<", "<>")), self.pick(pairs), "bool")
        return on

    # -------------------------------------------------------------- queries

    def query(self, depth: int) -> Query:
        """Any query that is not recursive."""
        choice = self.pick(("select", "select", "group", "group", "set", "set", "first") if depth > 0 else ("select",))
        if choice == "set":
            return self.set_operation(depth)
        if choice == "first":
            inner = self.query(depth - 1)
            order = tuple((i, self.chance(40)) for i in range(len(inner.columns)))
            return First(inner, order, self.pick((1, 2, 3)), self.pick((0, 0, 1)))
        source, scope = self.source(depth)
        where = self.predicate(scope, depth) if self.chance(60) else None
        if choice == "group":
            return self.grouped(source, scope, where)
        kinds = [self.pick(("int", "int", "text")) for _ in range(self.pick((1, 2, 3)))]
        return Select(source, tuple(self.value(k, scope, depth) for k in kinds), where, self.chance(25))

    def grouped(self, source: From, scope: Sequence[Col], where: Expr | None) -> Select:
        keys = tuple(self.pick(list(scope)) for _ in range(self.pick((0, 1, 1, 2))))
        aggs = tuple(self.agg(scope) for _ in range(self.pick((1, 2, 3))))
        having: Expr | None = None
        counts = [i for i, a in enumerate(aggs) if a.type == "int"]
        if counts and self.chance(30):
            having = Op(self.pick((">", "<>")), (Col("agg", f"a{self.pick(counts)}", "int"), Const(1, "int")), "bool")
        return Select(source, where=where, keys=keys, aggs=aggs, having=having)

    def agg(self, scope: Sequence[Col]) -> Agg:
        name = self.pick(("count", "count", "sum", "min", "max"))
        if name == "count" and self.chance(40):
            return Agg("count", None, False, "int")
        column = self.pick([c for c in scope if c.type == "int" or name != "sum"] or [None])
        if column is None:
            return Agg("count", None, False, "int")
        distinct = name in ("count", "sum") and self.chance(30)
        return Agg(name, column, distinct, "int" if name == "count" else column.type)

    def set_operation(self, depth: int) -> SetOp:
        left = self.query(depth - 1)
        source, scope = self.source(depth - 1)
        right = Select(source, tuple(self.value(t, scope, 0) for _, t in left.columns))
        kind = self.pick(("union", "except", "except", "intersect", "intersect"))
        return SetOp(kind, self.chance(60), left, right)

    # -------------------------------------------------------------- recursion

    def recursion(self) -> Recursion:
        """A recursion that terminates: UNION over values that only come from tables, or UNION ALL with a bounded
        depth."""
        name = f"r{self.alias()}"
        keep_all = self.chance(35)
        source, scope = self.table()
        ints = [c for c in scope if c.type == "int"]
        outputs: tuple[Expr, ...] = (self.pick(ints), self.pick(ints))
        base_where = self.predicate(scope, 1) if self.chance(40) else None
        if keep_all:
            outputs = (*outputs, Const(0, "int"))
        base = Select(source, outputs, base_where)
        columns: Columns = tuple((f"c{i}", "int") for i in range(len(outputs)))
        return Recursion(name, base, self.step(name, columns, keep_all), keep_all)

    def step(self, name: str, columns: Columns, keep_all: bool) -> Select:
        """The recursive term: linear, or with DISTINCT or an aggregate over the working table in a subquery."""
        work = Table(name, self.alias(), columns)
        inner = [Col(work.alias, n, t) for n, t in columns]
        shape = self.pick(("linear", "linear", "distinct", "aggregate"))
        reference: From = work
        if shape == "distinct":
            reference = Derived(Select(work, tuple(inner), distinct=True), self.alias())
        elif shape == "aggregate":
            # Postgres rejects an aggregate that reads the working table itself, but not one over a subquery of it.
            rows = Derived(Select(work, tuple(inner)), self.alias())
            below = [Col(rows.alias, n, t) for n, t in rows.columns]
            last = tuple(Agg(self.pick(("min", "max")), c, False, "int") for c in below[1:])
            reference = Derived(Select(rows, keys=(below[0],), aggs=last), self.alias())
        assert isinstance(reference, Table | Derived)
        seen = [Col(reference.alias, n, t) for n, t in reference.columns]
        other, scope = self.table(self.pick(("e", "e", "t1", "t0")))
        kind = self.pick(("inner", "inner", "inner", "left"))
        joined = Joined(kind, reference, other, Op("=", (self.pick(seen[:2]), self.pick(scope[:2])), "bool"))
        ints = [c for c in (*seen[:2], *scope) if c.type == "int"]
        outputs: tuple[Expr, ...] = (self.pick(ints), self.pick(ints))
        where = self.predicate([*seen, *scope], 1) if self.chance(35) else None
        if keep_all:
            outputs = (*outputs, Op("+", (seen[2], Const(1, "int")), "int"))
            bound = Op("<", (seen[2], Const(2, "int")), "bool")
            where = bound if where is None else Op("and", (bound, where), "bool")
        return Select(joined, outputs, where)

    def view(self, recursive: bool) -> Query:
        """A view's query; a recursive one may be wrapped in a group, join or filter."""
        if not recursive:
            return self.query(2)
        query = self.recursion()
        if self.chance(60):
            return query
        derived = Derived(query, self.alias())
        scope = [Col(derived.alias, n, t) for n, t in derived.columns]
        if self.chance(50):
            return self.grouped(derived, scope, None)
        other, more = self.table()
        joined = Joined(self.pick(("inner", "left")), derived, other, self.join_condition("inner", scope, more))
        return Select(joined, tuple(self.value("int", [*scope, *more], 1) for _ in range(2)))

    # -------------------------------------------------------------- DML

    def row(self, table: str) -> tuple[Any, ...]:
        cells: list[Any] = []
        for name, kind in SCHEMA[table]:
            nullable = (table, name) not in NOT_NULL
            if nullable and self.chance(20):
                cells.append(None)
            elif kind == "int":
                cells.append(self.rng.randint(0, 5))
            else:
                cells.append(self.pick(TEXTS))
        return tuple(cells)

    def statement(self) -> Dml:
        table = self.pick(tuple(SCHEMA))
        choice = self.pick(("insert", "insert", "insert", "delete", "update"))
        if choice == "insert":
            rows = tuple(self.row(table) for _ in range(self.pick((1, 1, 2, 4))))
            return InsertRows(table, rows + rows[:1] if table not in KEY and self.chance(20) else rows)
        scope = [Col(table, n, t) for n, t in SCHEMA[table]]
        where = self.predicate(scope, 1)
        if choice == "delete":
            return DeleteWhere(table, where)
        index = self.pick(range(len(scope)))
        name, kind = SCHEMA[table][index]
        value: Expr = self.constant(kind) if (table, name) in NOT_NULL else self.value(kind, scope, 1)
        return UpdateWhere(table, index, value, where)


def history(seed: int, steps: int = 20, views: int = 3, recursive: bool = False, asof: int = 0) -> History:
    """The history of a seed: steps over views, about a third of them recursive (the first one always, if
    ``recursive``).

    ``asof``: the percentage of ASOF joins.
    """
    maker = Maker(random.Random(seed), asof)
    made = tuple((f"v{i}", maker.view((recursive and i == 0) or maker.chance(33))) for i in range(views))
    return History(made, tuple(step(maker) for _ in range(steps)))


def step(maker: Maker) -> tuple[tuple[Dml, ...], ...]:
    """A step's transactions."""
    transactions = maker.pick((1, 1, 2, 3))
    return tuple(tuple(maker.statement() for _ in range(maker.pick((1, 1, 2)))) for _ in range(transactions))
