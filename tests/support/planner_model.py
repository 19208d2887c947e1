"""A naive interpreter of logical plans: rows are tuples of datums, relations are Counters, subqueries run per row."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

from ivm.errors import SqlError
from planner.expr.scalar import (
    Aggregate,
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Exists,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Quantified,
    Scalar,
    ScalarSubquery,
    SortKey,
)  # fmt: skip
from planner.logical.nodes import (
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    LetRec,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetKind,
    SetOperation,
    TableFunction,
    TopK,
    Values,
    schema,
)  # fmt: skip

Row = tuple[Any, ...]
Bag = Counter[Row]


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise SqlError("22012", "division by zero")
    return int(a / b)


STRICT: dict[str, Callable[..., Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": _divide, "%": operator.mod, "not": operator.not_,
    "||": operator.add, "abs": abs,
}  # fmt: skip
LOOSE: dict[str, Callable[..., Any]] = {
    "is null": lambda a: a is None, "is not null": lambda a: a is not None, "is true": lambda a: a is True,
    "is false": lambda a: a is False, "is not true": lambda a: a is not True, "is not false": lambda a: a is not False,
    "is distinct from": lambda a, b: a != b, "is not distinct from": lambda a, b: a == b,
    "least": lambda *args: min((a for a in args if a is not None), default=None),
}  # fmt: skip


class Model:
    """Interprets plans over tables given as Counters of rows."""

    def __init__(self, tables: dict[int, Bag], parameters: Row = ()) -> None:
        self.tables, self.parameters = tables, parameters
        self.bindings: dict[int, Bag] = {}

    def rel(self, rel: Rel, outer: tuple[Row, ...] = ()) -> Bag:
        match rel:
            case Get():
                return Counter(self.tables[rel.relation])
            case Reference():
                return Counter(self.bindings[rel.binding])
            case Values():
                return Counter(tuple(self.eval(e, (), outer) for e in row) for row in rel.rows)
            case Filter():
                return bag((r, n) for r, n in self.rel(rel.input, outer).items()
                           if self.eval(rel.predicate, r, outer) is True)  # fmt: skip
            case Project():
                return bag((tuple(self.eval(e, r, outer) for e in rel.exprs), n)
                           for r, n in self.rel(rel.input, outer).items())  # fmt: skip
            case Join():
                return self.join(rel, outer)
            case Reduce():
                return self.reduce(rel, outer)
            case Distinct():
                return bag((r, 1) for r in self.rel(rel.input, outer))
            case TopK():
                return self.topk(rel, outer)
            case SetOperation():
                return set_operation(rel, self.rel(rel.left, outer), self.rel(rel.right, outer))
            case TableFunction():
                return bag(((*r, i), n) for r, n in self.rel(rel.input, outer).items()
                           for i in self.series(rel, r, outer))  # fmt: skip
            case Recursive():
                return self.recursive(rel, outer)
            case LetRec():
                return self.letrec(rel, outer)

    def series(self, rel: TableFunction, row: Row, outer: tuple[Row, ...]) -> range:
        low, high = (self.eval(a, row, outer) for a in rel.args)
        return range(0) if low is None or high is None else range(low, high + 1)

    def join(self, rel: Join, outer: tuple[Row, ...]) -> Bag:
        left = self.rel(rel.left, outer)
        right = Counter() if rel.lateral else self.rel(rel.right, outer)
        out: Bag = Counter()
        hit: set[Row] = set()
        nulls_l, nulls_r = (None,) * len(schema(rel.left)), (None,) * len(schema(rel.right))
        for a, n in left.items():
            found = False
            for r, m in (self.rel(rel.right, (a, *outer)) if rel.lateral else right).items():
                if self.eval(rel.on, (*a, *r), outer) is True:
                    found = True
                    hit.add(r)
                    if rel.kind not in (JoinKind.SEMI, JoinKind.ANTI):
                        out[(*a, *r)] += n * m
            if rel.kind is JoinKind.SEMI and found:
                out[a] += n
            if rel.kind is JoinKind.ANTI and not found:
                out[a] += n
            if rel.kind in (JoinKind.LEFT, JoinKind.FULL) and not found:
                out[(*a, *nulls_r)] += n
        if rel.kind in (JoinKind.RIGHT, JoinKind.FULL):
            for r, m in right.items():
                if r not in hit:
                    out[(*nulls_l, *r)] += m
        return out

    def reduce(self, rel: Reduce, outer: tuple[Row, ...]) -> Bag:
        groups: dict[Row, list[tuple[Row, int]]] = {} if rel.keys else {(): []}
        for r, n in self.rel(rel.input, outer).items():
            groups.setdefault(tuple(self.eval(k, r, outer) for k in rel.keys), []).append((r, n))
        return Counter((*k, *(self.aggregate(a, rows, outer) for a in rel.aggregates)) for k, rows in groups.items())

    def aggregate(self, call: Aggregate, rows: list[tuple[Row, int]], outer: tuple[Row, ...]) -> Any:
        if call.filter is not None:
            rows = [(r, n) for r, n in rows if self.eval(call.filter, r, outer) is True]
        if call.function == "count(*)":
            return sum(n for _, n in rows)
        values = [v for r, n in rows for v in [self.eval(call.args[0], r, outer)] * n if v is not None]
        if call.distinct:
            values = list(set(values))
        name = call.function.partition("(")[0]
        if name == "count":
            return len(values)
        if not values:
            return None
        return {"sum": sum, "min": min, "max": max, "any_value": min, "bool_or": any, "bool_and": all,
                "array_agg": lambda v: tuple(sorted(v))}[name](values)  # fmt: skip

    def topk(self, rel: TopK, outer: tuple[Row, ...]) -> Bag:
        groups: dict[Row, list[Row]] = {}
        for r, n in self.rel(rel.input, outer).items():
            groups.setdefault(tuple(self.eval(k, r, outer) for k in rel.keys), []).extend([r] * n)
        limit = None if rel.limit is None else self.eval(rel.limit, (), outer)
        offset = (0 if rel.offset is None else self.eval(rel.offset, (), outer)) or 0
        out: Bag = Counter()
        for rows in groups.values():
            out.update(self.sorted(rows, rel.order, outer)[offset : None if limit is None else offset + limit])
        return out

    def sorted(self, rows: list[Row], order: tuple[SortKey, ...], outer: tuple[Row, ...]) -> list[Row]:
        rows = sorted(rows, key=lambda r: tuple((v is None, v if v is not None else 0) for v in r))
        for key in reversed(order):
            value = {r: self.eval(key.expr, r, outer) for r in rows}
            some = sorted((r for r in rows if value[r] is not None), key=value.__getitem__)
            none = [r for r in rows if value[r] is None]
            if key.descending:
                some = stable_descending(some, value.__getitem__)
            rows = none + some if key.nulls_first else some + none
        return rows

    def recursive(self, rel: Recursive, outer: tuple[Row, ...]) -> Bag:
        work = self.rel(rel.base, outer)
        if not rel.all:
            work = Counter(set(work))
        total = Counter(work)
        for _ in range(1000):
            if not work:
                return total
            self.bindings[rel.binding] = work
            new = self.rel(rel.step, outer)
            work = new if rel.all else Counter(set(new) - set(total))
            total = total + work
        raise AssertionError("no fixpoint")

    def letrec(self, rel: LetRec, outer: tuple[Row, ...]) -> Bag:
        for binding, _ in rel.bindings:
            self.bindings[binding] = Counter()
        for _ in range(rel.limit if rel.limit is not None and rel.return_at_limit else 1000):
            before = {b: self.bindings[b] for b, _ in rel.bindings}
            for binding, value in rel.bindings:
                self.bindings[binding] = self.rel(value, outer)
            if all(before[b] == self.bindings[b] for b, _ in rel.bindings):
                return self.rel(rel.body, outer)
        if rel.return_at_limit:
            return self.rel(rel.body, outer)
        raise AssertionError("no fixpoint")

    def eval(self, expr: Scalar, row: Row, outer: tuple[Row, ...]) -> Any:
        match expr:
            case Column():
                return row[expr.index]
            case OuterColumn():
                return outer[expr.level - 1][expr.index]
            case Literal():
                return expr.value
            case Parameter():
                return self.parameters[expr.index - 1]
            case And():
                return three_valued((self.eval(a, row, outer) for a in expr.args), False)
            case Or():
                return three_valued((self.eval(a, row, outer) for a in expr.args), True)
            case Case():
                for condition, value in expr.arms:
                    if self.eval(condition, row, outer) is True:
                        return self.eval(value, row, outer)
                return self.eval(expr.otherwise, row, outer)
            case Coalesce():
                values = (self.eval(a, row, outer) for a in expr.args)
                return next((v for v in values if v is not None), None)
            case ScalarSubquery():
                rows = list(self.rel(expr.rel, (row, *outer)).elements())
                if len(rows) > 1:
                    raise SqlError("21000", "more than one row")
                return rows[0][0] if rows else None
            case Exists():
                return bool(self.rel(expr.rel, (row, *outer)))
            case Quantified():
                found = (self.eval(expr.comparison, r, (row, *outer)) for r in self.rel(expr.rel, (row, *outer)))
                return three_valued(found, not expr.every)
            case Call():
                args = [self.eval(a, row, outer) for a in expr.args]
                name = expr.function.partition("(")[0]
                if name in ("cast", "assignment_cast"):
                    return args[0]
                if name in LOOSE:
                    return LOOSE[name](*args)
                return None if None in args else STRICT[name](*args)


def stable_descending(rows: list[Row], key: Callable[[Row], Any]) -> list[Row]:
    """Descending by key, ties in the given order."""
    out: list[Row] = []
    for row in rows:
        at = next((i for i, r in enumerate(out) if key(r) < key(row)), len(out))
        out.insert(at, row)
    return out


def three_valued(values: Any, decides: bool) -> bool | None:
    """OR (``decides`` True) or AND (``decides`` False) with NULL."""
    null = False
    for value in values:
        if value is decides:
            return decides
        null = null or value is None
    return None if null else not decides


def bag(items: Any) -> Bag:
    out: Bag = Counter()
    for row, n in items:
        out[row] += n
    return out


def set_operation(rel: SetOperation, left: Bag, right: Bag) -> Bag:
    if not rel.all:
        left, right = Counter(set(left)), Counter(set(right))
    if rel.kind is SetKind.UNION:
        both = left + right
        return both if rel.all else Counter(set(both))
    return left & right if rel.kind is SetKind.INTERSECT else left - right
