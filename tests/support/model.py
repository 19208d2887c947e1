"""The oracle: a small SQL of its own, interpreted row by row over Python values.

It shares no code with ``planner/`` or ``sql/``. Queries are these dataclasses; ``tests/support/model_sql.py`` writes
them as SQL text for the server. ``Interpreter`` computes their multiset from scratch, recursion round by round as the
standard defines it (a working table; the step sees only the last round's new rows). NULL is None, a row a tuple, a
multiset a Counter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

Row = tuple[Any, ...]
Bag = Counter[Row]


# ------------------------------------------------------------------ expressions


@dataclass(frozen=True, slots=True)
class Col:
    """A column of a FROM item, found in the nearest scope with that alias."""

    alias: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Const:
    value: Any
    type: str


@dataclass(frozen=True, slots=True)
class Op:
    """An operator or function, by the names of ``OPERATORS``."""

    name: str
    args: tuple[Expr, ...]
    type: str


@dataclass(frozen=True, slots=True)
class When:
    """CASE WHEN condition THEN yes ELSE no END."""

    condition: Expr
    yes: Expr
    no: Expr
    type: str


@dataclass(frozen=True, slots=True)
class Scalar:
    """A subquery with at most one row and with one column."""

    query: Query
    type: str


@dataclass(frozen=True, slots=True)
class Exists:
    query: Query
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class In:
    """``arg [NOT] IN (query)``."""

    arg: Expr
    query: Query
    negated: bool
    type: str = "bool"


@dataclass(frozen=True, slots=True)
class Compare:
    """``arg op ANY|ALL (query)``."""

    arg: Expr
    op: str
    every: bool
    query: Query
    type: str = "bool"


Expr = Col | Const | Op | When | Scalar | Exists | In | Compare


# ------------------------------------------------------------------ queries


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table, view or recursive reference by name, under an alias."""

    name: str
    alias: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Derived:
    """A subquery in FROM."""

    query: Query
    alias: str

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.query.columns


@dataclass(frozen=True, slots=True)
class Joined:
    """``left kind JOIN right ON condition``; kind is inner, left, right, full or cross."""

    kind: str
    left: From
    right: From
    on: Expr


@dataclass(frozen=True, slots=True)
class Timed:
    """``left ASOF [LEFT] JOIN right ON keys equal AND left point sign right point AND only``; sign is >=, >, <= or <.

    ``loose``: NULL keys compare equal too. ``only``: conditions, each on one side only.
    """

    left: From
    right: Table | Derived
    keys: tuple[tuple[Expr, Expr], ...]
    points: tuple[Expr, Expr]
    sign: str
    outer: bool
    loose: bool = False
    only: tuple[Expr, ...] = ()

    @property
    def tests(self) -> tuple[Expr, ...]:
        """The conditions that a match fulfils."""
        name = "is not distinct from" if self.loose else "="
        keys = tuple(Op(name, pair, "bool") for pair in self.keys)
        return (*keys, Op(self.sign, self.points, "bool"), *self.only)


From = Table | Derived | Joined | Timed


@dataclass(frozen=True, slots=True)
class Agg:
    """count(*), or count, sum, min, max of an expression."""

    name: str
    arg: Expr | None
    distinct: bool
    type: str


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT [DISTINCT] outputs FROM source WHERE … [GROUP BY keys HAVING …].

    With ``keys`` not None it is grouped: the columns are the keys, then the aggregates (``outputs`` is empty), and
    ``having`` sees the aggregates as columns of the alias "agg" named a0, a1, ….
    """

    source: From
    outputs: tuple[Expr, ...] = ()
    where: Expr | None = None
    distinct: bool = False
    keys: tuple[Expr, ...] | None = None
    aggs: tuple[Agg, ...] = ()
    having: Expr | None = None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        parts = self.outputs if self.keys is None else (*self.keys, *self.aggs)
        return tuple((f"c{i}", p.type) for i, p in enumerate(parts))


@dataclass(frozen=True, slots=True)
class SetOp:
    """union, intersect or except, ALL or not."""

    kind: str
    all: bool
    left: Query
    right: Query

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.left.columns


@dataclass(frozen=True, slots=True)
class First:
    """ORDER BY every column (``order``: the columns' positions and whether each descends), then LIMIT and OFFSET."""

    query: Query
    order: tuple[tuple[int, bool], ...]
    limit: int
    offset: int

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.query.columns


@dataclass(frozen=True, slots=True)
class Recursion:
    """WITH RECURSIVE name AS (base UNION [ALL] step) SELECT * FROM name."""

    name: str
    base: Query
    step: Query
    all: bool

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.base.columns


@dataclass(frozen=True, slots=True)
class Binding:
    """``name(columns) AS (query)`` in a block."""

    name: str
    columns: tuple[tuple[str, str], ...]
    query: Query


@dataclass(frozen=True, slots=True)
class Block:
    """WITH MUTUALLY RECURSIVE [(RETURN AT | ERROR AT RECURSION LIMIT limit)] bindings body."""

    bindings: tuple[Binding, ...]
    body: Query
    limit: int | None = None
    return_at: bool = False

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.body.columns


Query = Select | SetOp | First | Recursion | Block


# ------------------------------------------------------------------ three-valued logic


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: None if any(a is None for a in args) else function(*args)


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


def _or(a: bool | None, b: bool | None) -> bool | None:
    return _not(_and(_not(a), _not(b)))


OPERATORS: Mapping[str, Callable[..., Any]] = {
    "+": _strict(lambda a, b: a + b),
    "-": _strict(lambda a, b: a - b),
    "*": _strict(lambda a, b: a * b),
    "=": _strict(lambda a, b: a == b),
    "<>": _strict(lambda a, b: a != b),
    "<": _strict(lambda a, b: a < b),
    "<=": _strict(lambda a, b: a <= b),
    ">": _strict(lambda a, b: a > b),
    ">=": _strict(lambda a, b: a >= b),
    "||": _strict(lambda a, b: a + b),
    "upper": _strict(lambda a: a.upper()),
    "length": _strict(len),
    "abs": _strict(abs),
    "and": _and,
    "or": _or,
    "not": _not,
    "is null": lambda a: a is None,
    "is not null": lambda a: a is not None,
    "is distinct from": lambda a, b: a != b,
    "is not distinct from": lambda a, b: a == b,
    "coalesce": lambda *args: next((a for a in args if a is not None), None),
}


# ------------------------------------------------------------------ the interpreter

Scope = dict[str, dict[str, Any]]


class TooLargeError(Exception):
    """The oracle would have to compare too many pairs of rows."""


@dataclass(slots=True)
class Interpreter:
    """Evaluates queries over tables (name → multiset); ``scopes`` holds the enclosing rows, innermost last."""

    tables: Mapping[str, Bag]
    scopes: list[Scope] = field(default_factory=list)
    recursive: dict[str, Bag] = field(default_factory=dict)
    rounds: int = 100
    pairs: int = 1 << 62
    """The remaining budget of row pairs for joins."""
    diverged: bool = False
    """Whether a block evaluated for the result has an error: it changed in its last round."""

    def query(self, query: Query) -> Bag:
        """The query's rows."""
        if isinstance(query, Select):
            return self._select(query)
        if isinstance(query, SetOp):
            return combine(query.kind, query.all, self.query(query.left), self.query(query.right))
        if isinstance(query, First):
            rows = sort_rows(list(self.query(query.query).elements()), query.order)
            return Counter(rows[query.offset : query.offset + query.limit])
        return self._block(query) if isinstance(query, Block) else self._recursion(query)

    def _block(self, query: Block) -> Bag:
        """Round by round: in each round the bindings get their values in textual order, until nothing changes."""
        parts, again = needed(query)
        for part in parts:
            self.recursive[part.name] = Counter()
        outside, inside, changed = self.diverged, False, True
        for _ in range(query.limit or self.rounds):
            before = {part.name: self.recursive[part.name] for part in parts}
            self.diverged = False  # only an error of the last round counts
            for part in parts:
                self.recursive[part.name] = self.query(part.query)
            inside = self.diverged
            changed = any(self.recursive[name] != before[name] for name in again)
            if all(self.recursive[name] == bag for name, bag in before.items()):
                break
        assert query.limit or not changed, "the generated block does not end"
        self.diverged = outside or inside or (changed and not query.return_at)
        return self.query(query.body)

    def _recursion(self, query: Recursion) -> Bag:
        fresh = self.query(query.base)
        if not query.all:
            fresh = Counter(set(fresh))
        result = Counter(fresh)
        for _ in range(self.rounds):
            if not fresh:
                return result
            self.recursive[query.name] = fresh
            step = self.query(query.step)
            fresh = step if query.all else Counter(set(step) - set(result))
            result += fresh
        raise AssertionError("the generated recursion does not end")

    def _select(self, query: Select) -> Bag:
        scopes = [
            (scope, n) for scope, n in self._from(query.source) if query.where is None or self.holds(scope, query.where)
        ]  # fmt: skip
        if query.keys is not None:
            return self._grouped(query, scopes)
        result: Bag = Counter()
        for scope, n in scopes:
            result[self._in(scope, query.outputs)] += n
        return Counter(set(result)) if query.distinct else result

    def _grouped(self, query: Select, scopes: list[tuple[Scope, int]]) -> Bag:
        assert query.keys is not None
        groups: dict[Row, list[tuple[Scope, int]]] = {} if query.keys else {(): []}
        for scope, n in scopes:
            groups.setdefault(self._in(scope, query.keys), []).append((scope, n))
        result: Bag = Counter()
        for key, members in groups.items():
            values = tuple(self._aggregate(agg, members) for agg in query.aggs)
            named = {"agg": {f"a{i}": v for i, v in enumerate(values)}}
            if query.having is None or self.holds(named, query.having):
                result[key + values] += 1
        return Counter(set(result)) if query.distinct else result

    def _aggregate(self, agg: Agg, members: Sequence[tuple[Scope, int]]) -> Any:
        if agg.arg is None:
            return sum(n for _, n in members)
        values: list[Any] = []
        for scope, n in members:
            (value,) = self._in(scope, (agg.arg,))
            if value is not None:
                values.extend([value] * n)
        if agg.distinct:
            values = list(set(values))
        return len(values) if agg.name == "count" else aggregate(agg.name, values)

    def _from(self, source: From) -> list[tuple[Scope, int]]:
        if isinstance(source, Joined):
            return self._join(source)
        if isinstance(source, Timed):
            return self._timed(source)
        if isinstance(source, Table):
            bag = self.recursive[source.name] if source.name in self.recursive else self.tables[source.name]
        else:
            bag = self.query(source.query)
        names = [name for name, _ in source.columns]
        return [({source.alias: dict(zip(names, row, strict=True))}, n) for row, n in bag.items()]

    def _join(self, join: Joined) -> list[tuple[Scope, int]]:
        left, right = self._from(join.left), self._from(join.right)
        self.pairs -= len(left) * len(right)
        if self.pairs < 0:
            raise TooLargeError
        pairs, matched_left, matched_right = [], set(), set()
        for i, (a, n) in enumerate(left):
            for j, (b, m) in enumerate(right):
                if join.kind == "cross" or self.holds(a | b, join.on):
                    pairs.append((a | b, n * m))
                    matched_left.add(i)
                    matched_right.add(j)
        if join.kind in ("left", "full"):
            empty = _empty(join.right)
            pairs += [(a | empty, n) for i, (a, n) in enumerate(left) if i not in matched_left]
        if join.kind in ("right", "full"):
            empty = _empty(join.left)
            pairs += [(empty | b, m) for j, (b, m) in enumerate(right) if j not in matched_right]
        return pairs

    def _timed(self, join: Timed) -> list[tuple[Scope, int]]:
        """Each left row with its match: of the right rows at the nearest point, the one that sorts first."""
        found = []
        right = [b for b, n in self._from(join.right) if n > 0]
        order = tuple((i, False) for i in range(len(join.right.columns)))
        for a, n in self._from(join.left):
            near = [b for b in right if all(self.holds(a | b, test) for test in join.tests)]
            points = [self.value(a | b, join.points[1]) for b in near]
            if points:
                best = max(points) if join.sign[0] == ">" else min(points)
                rows = [tuple(b[join.right.alias].values()) for b, p in zip(near, points, strict=True) if p == best]
                names = [name for name, _ in join.right.columns]
                found.append((a | {join.right.alias: dict(zip(names, sort_rows(rows, order)[0], strict=True))}, n))
            elif join.outer:
                found.append((a | _empty(join.right), n))
        return found

    def holds(self, scope: Scope, condition: Expr) -> bool:
        """Whether the condition is true (neither false nor NULL) for this row."""
        return self.value(scope, condition) is True

    def value(self, scope: Scope, expr: Expr) -> Any:
        """An expression's value for this row."""
        return self._in(scope, (expr,))[0]

    def _in(self, scope: Scope, exprs: Sequence[Expr]) -> Row:
        self.scopes.append(scope)
        try:
            return tuple(self._expr(e) for e in exprs)
        finally:
            self.scopes.pop()

    def _expr(self, expr: Expr) -> Any:
        match expr:
            case Const():
                return expr.value
            case Col():
                scope = next(s for s in reversed(self.scopes) if expr.alias in s)
                return scope[expr.alias][expr.name]
            case Op():
                return OPERATORS[expr.name](*(self._expr(a) for a in expr.args))
            case When():
                return self._expr(expr.yes if self._expr(expr.condition) is True else expr.no)
            case Scalar():
                rows = list(self.query(expr.query).elements())
                assert len(rows) <= 1, "the grammar makes scalar subqueries of one row"
                return rows[0][0] if rows else None
            case Exists():
                return bool(self.query(expr.query))
            case In():
                found = self._quantified(self._expr(expr.arg), "=", False, expr.query)
                return _not(found) if expr.negated else found
            case Compare():
                return self._quantified(self._expr(expr.arg), expr.op, expr.every, expr.query)

    def _quantified(self, value: Any, op: str, every: bool, query: Query) -> bool | None:
        result: bool | None = every
        for row in self.query(query):
            one = OPERATORS[op](value, row[0])
            result = _and(result, one) if every else _or(result, one)
        return result


def needed(block: Block) -> tuple[tuple[Binding, ...], set[str]]:
    """The bindings that the body needs, and the names of those read by a later round: by themselves or by an earlier
    binding."""
    reads = {part.name: names(part.query) for part in block.bindings}
    wanted = names(block.body) & reads.keys()
    while more := {n for name in wanted for n in reads[name] & reads.keys()} - wanted:
        wanted |= more
    parts = tuple(part for part in block.bindings if part.name in wanted)
    place = {part.name: i for i, part in enumerate(parts)}
    return parts, {n for i, part in enumerate(parts) for n in reads[part.name] if place.get(n, -1) >= i}


def names(node: Any) -> set[str]:
    """All tables and bindings that a query names."""
    if isinstance(node, tuple):
        return set().union(*(names(item) for item in node))
    if isinstance(node, Table):
        return {node.name}
    if not is_dataclass(node):
        return set()
    return set().union(*(names(getattr(node, part.name)) for part in fields(node)))


def _empty(source: From) -> Scope:
    if isinstance(source, Joined | Timed):
        return _empty(source.left) | _empty(source.right)
    return {source.alias: {name: None for name, _ in source.columns}}


def aggregate(name: str, values: list[Any]) -> Any:
    """sum, min or max of values without NULLs; None if there are none."""
    if not values:
        return None
    return {"sum": sum, "min": min, "max": max}[name](values)


def combine(kind: str, keep_all: bool, left: Bag, right: Bag) -> Bag:
    """UNION, INTERSECT, EXCEPT of multisets."""
    if not keep_all:
        left, right = Counter(set(left)), Counter(set(right))
    if kind == "union":
        both = left + right
        return both if keep_all else Counter(set(both))
    return left & right if kind == "intersect" else left - right


def sort_rows(rows: list[Row], order: Sequence[tuple[int, bool]]) -> list[Row]:
    """Rows sorted by columns; NULLs last if ascending, first if descending, as in Postgres."""
    for index, descending in reversed(order):
        rows.sort(key=lambda r: (r[index] is None, r[index] if r[index] is not None else 0), reverse=descending)
    return rows
