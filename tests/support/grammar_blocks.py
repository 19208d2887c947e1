"""WITH MUTUALLY RECURSIVE in random histories: blocks of up to three bindings, nested up to three deep.

A block is either monotone (unions of selects without negation or arithmetic: it terminates, and needs no limit) or
arbitrary: its bindings are negated, aggregated, sliced and outer joined, and it stops at a limit. With RETURN AT the
result is the state of that round. With ERROR AT a block that still changes then must give an error, which disappears
when a commit lets the block terminate. Bindings stay small: each row once, or grown by sums only.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.support.grammar import Columns, DeleteWhere, Dml, History, InsertRows, Maker, step
from tests.support.model import (
    Agg,
    Binding,
    Block,
    Col,
    Const,
    Derived,
    Exists,
    Expr,
    First,
    From,
    Joined,
    Op,
    Query,
    Recursion,
    Select,
    SetOp,
    Table,
)

Kinds = tuple[str, ...]
DEEPEST = 4
"""The nesting depth of the blocks in a ``DeepMaker``'s view."""
ROW: Columns = (("c0", "int"),)


class BlockMaker(Maker):
    """Generates views that are blocks, or that read one. ``open``: the bindings in scope."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.open: list[tuple[str, Columns]] = []
        self.monotone = False
        self.depth = 0

    def table(self, name: str | None = None) -> tuple[Table, list[Col]]:
        """A table or, equally likely, a binding of the enclosing blocks."""
        if name is not None or not self.open or self.chance(45):
            return super().table(name)
        known, columns = self.pick(self.open[-4:])
        alias = self.alias()
        return Table(known, alias, columns), [Col(alias, n, t) for n, t in columns]

    def kinds(self) -> Kinds:
        """The types of a binding's columns, at least one of them int."""
        return self.pick((("int",), ("int", "int"), ("int", "text"), ("text", "int")))

    def view(self, recursive: bool) -> Query:
        """A block, alone or with a query over it; sometimes inside WITH RECURSIVE."""
        choice = self.pick(("block", "block", "block", "derived", "operand", "recursion"))
        kinds: Kinds = ("int", "int") if choice == "recursion" else self.kinds()
        block = self.block(kinds)
        if choice == "operand":
            return SetOp(self.pick(("union", "except", "intersect")), self.chance(30), self.plain(kinds), block)
        if choice == "recursion":
            name = f"r{self.alias()}"
            columns: Columns = (("c0", "int"), ("c1", "int"))
            base = SetOp("union", False, self.plain(kinds), block)
            return Recursion(name, base, self.step(name, columns, False), False)
        if choice == "block":
            return block
        derived = Derived(block, self.alias())
        scope = [Col(derived.alias, n, t) for n, t in derived.columns]
        if self.chance(50):
            return self.grouped(derived, scope, None)
        other, more = self.table()
        joined = Joined(self.pick(("inner", "left")), derived, other, self.join_condition("inner", scope, more))
        return Select(joined, tuple(self.value("int", [*scope, *more], 1) for _ in range(2)))

    # -------------------------------------------------------------- blocks

    def block(self, kinds: Kinds) -> Block:
        """A block whose body has columns of these types."""
        outer = self.monotone, len(self.open)
        self.depth += 1
        self.monotone = self.monotone or self.chance(35)
        made = [(f"b{self.alias()}", self.kinds()) for _ in range(self.pick((1, 2, 2, 3)))]
        columns = [(name, tuple((f"c{i}", k) for i, k in enumerate(types))) for name, types in made]
        self.open += columns
        bindings = tuple(Binding(name, row, self.binding(name, row)) for name, row in columns)
        body = self.plain(kinds, columns[-1])
        del self.open[outer[1] :]
        limit = self.pick((None, 1, 2, 3, 5, 8)) if self.monotone else self.pick((1, 2, 3, 3, 4, 6))
        self.monotone = outer[0]
        self.depth -= 1
        return Block(bindings, body, limit, self.chance(60 if limit is not None else 0))

    def binding(self, name: str, columns: Columns) -> Query:
        """A binding's value: bounded, whatever it reads."""
        kinds = tuple(kind for _, kind in columns)
        if self.depth < 3 and self.chance(40 if self.depth == 1 else 50):
            return self.once(self.block(kinds))
        if self.monotone:
            return SetOp("union", False, self.plain(kinds), self.plain(kinds, (name, columns)))
        choice = self.pick(("plain", "group", "first", "set", "set", "grows", "outer"))
        if choice == "group":
            return self.groups(kinds)
        if choice == "first":
            query = self.plain(kinds)
            order = tuple((i, self.chance(40)) for i in range(len(kinds)))
            return First(query, order, self.pick((1, 2, 3)), self.pick((0, 0, 1)))
        if choice == "set":
            kind = self.pick(("union", "except", "except", "intersect"))
            return SetOp(kind, False, self.plain(kinds), self.plain(kinds, (name, columns)))
        if choice == "grows":
            table, scope = super().table()
            base = Select(table, self.outputs(kinds, scope))
            own = Table(name, self.alias(), columns)
            more = Select(own, tuple(Col(own.alias, n, t) for n, t in columns))
            return SetOp(self.pick(("union", "except")), True, base, more)
        if choice == "outer":
            joined, scope = self.outer()
            return Select(joined, self.outputs(kinds, scope), distinct=True)
        return self.plain(kinds, (name, columns))

    def outer(self) -> tuple[Joined, list[Col]]:
        """An outer join."""
        left, a = self.table()
        right, b = self.table()
        kind = self.pick(("left", "right", "full"))
        return Joined(kind, left, right, self.join_condition(kind, a, b)), a + b

    def once(self, block: Block) -> Select:
        """A block's distinct rows."""
        derived = Derived(block, self.alias())
        return Select(derived, tuple(Col(derived.alias, n, t) for n, t in derived.columns), distinct=True)

    def plain(self, kinds: Kinds, reads: tuple[str, Columns] | None = None) -> Select:
        """SELECT DISTINCT of one or two sources, ``reads`` among them if given."""
        if reads is None:
            source, scope = self.table()
        else:
            alias = self.alias()
            source, scope = Table(reads[0], alias, reads[1]), [Col(alias, n, t) for n, t in reads[1]]
        joined: From = source
        if self.chance(55):
            right, more = self.table()
            kind = "inner" if self.monotone else self.pick(("inner", "inner", "left"))
            joined, scope = Joined(kind, source, right, self.join_condition(kind, scope, more)), scope + more
        return Select(joined, self.outputs(kinds, scope), self.condition(scope), True)

    def outputs(self, kinds: Kinds, scope: Sequence[Col]) -> tuple[Expr, ...]:
        """Columns or constants, so that a round creates no new values."""
        return tuple(self.pick([c for c in scope if c.type == k] or [self.constant(k)]) for k in kinds)

    def condition(self, scope: Sequence[Col]) -> Expr | None:
        """A predicate; if the block is to be monotone, one that is monotone in what it reads."""
        if self.chance(45):
            return None
        if not self.monotone:
            return self.predicate(scope, 1)
        if self.chance(40):
            source, inner = self.table()
            return Exists(Select(source, (self.constant("int"),), self.correlation(inner, scope)))
        kind = self.pick(("int", "text"))
        columns = [c for c in scope if c.type == kind]
        if not columns:
            return None
        return Op(self.pick(("<=", "<>", "=", ">")), (self.pick(columns), self.constant(kind)), "bool")

    def groups(self, kinds: Kinds) -> Select:
        """One row for each group: the first column is the key if there is one of its type, the others are
        aggregates."""
        source, scope = self.table()
        first = [c for c in scope if c.type == kinds[0]]
        keys = (self.pick(first),) if len(kinds) > 1 and first else ()
        aggs = tuple(self.aggregate(kind, scope) for kind in kinds[len(keys) :])
        return Select(source, where=self.condition(scope), keys=keys, aggs=aggs)

    def aggregate(self, kind: str, scope: Sequence[Col]) -> Agg:
        """An aggregate of this type."""
        columns: list[Expr] = [c for c in scope if c.type == kind]
        if kind == "text":
            return Agg(self.pick(("min", "max")), self.pick(columns or [self.constant(kind)]), False, kind)
        if not columns:
            return Agg("count", None, False, kind)
        return Agg(self.pick(("min", "max", "count", "sum")), self.pick(columns), False, kind)


class DeepMaker(Maker):
    """Generates blocks over the edges of a graph: nested ``DEEPEST`` deep, each reading its own binding and the
    enclosing ones. They are nested loops, each with a limit."""

    def deep(self, around: tuple[str, ...] = ()) -> Block:
        """The block inside those that have these bindings."""
        name = f"b{self.alias()}"
        inside = (*around, name)
        parts: list[Query] = [self.nodes(), self.along(name)]
        if len(inside) < DEEPEST:
            derived = Derived(self.deep(inside), self.alias())
            parts.append(Select(derived, (Col(derived.alias, "c0", "int"),), distinct=True))
        parts += [self.along(binding) for binding in (*around[-1:], *around[:1])]
        self.rng.shuffle(parts)
        value, *rest = parts
        for part in rest:
            value = SetOp(self.pick(("union", "union", "union", "union", "except", "intersect")), False, value, part)
        own = Table(name, self.alias(), ROW)
        body = Select(own, (Col(own.alias, "c0", "int"),))
        return Block((Binding(name, ROW, value),), body, self.pick((1, 2, 3, 4, 5, 6)), self.chance(60))

    def nodes(self) -> Select:
        """The start nodes of some edges."""
        edges, (src, _) = self.table("e")
        return Select(edges, (src,), Op("<=", (src, self.constant("int")), "bool"), True)

    def along(self, binding: str) -> Select:
        """A binding's nodes, or their successors."""
        reads = Table(binding, self.alias(), ROW)
        node = Col(reads.alias, "c0", "int")
        if self.chance(30):
            return Select(reads, (node,))
        edges, (src, dst) = self.table("e")
        return Select(Joined("inner", reads, edges, Op("=", (node, src), "bool")), (dst,), distinct=True)

    def change(self, nodes: int = 7) -> Dml:
        """Insert or delete edges; most lead forward, some back."""
        if self.chance(50):
            edges = [(n, n + 1) for n in range(nodes) if self.chance(40)]
            back = (self.rng.randrange(nodes), self.rng.randrange(nodes))
            return InsertRows("e", (*edges, back))
        node = Col("e", self.pick(("src", "dst")), "int")
        return DeleteWhere("e", Op("=", (node, Const(self.rng.randrange(nodes), "int")), "bool"))


def deep_history(seed: int, steps: int = 6) -> History:
    """The history of a seed, with one view that nests four blocks."""
    maker = DeepMaker(random.Random(seed))
    view = ("v0", maker.deep())
    return History((view,), tuple(((maker.change(), maker.change()),) for _ in range(steps)))


def block_history(seed: int, steps: int = 8, views: int = 2) -> History:
    """The history of a seed, in which all views are blocks."""
    maker = BlockMaker(random.Random(seed))
    made = tuple((f"v{i}", maker.view(True)) for i in range(views))
    return History(made, tuple(step(maker) for _ in range(steps)))
