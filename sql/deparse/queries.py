"""Queries as PostgreSQL's ruleutils.c lays them out: each clause on a line of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from ivm.words import INT8, SqlType
from planner.identifiers import quoted
from sql.bind.names import UNNAMED
from sql.deparse.clauses import sort_tail, window
from sql.deparse.context import Context
from sql.deparse.expressions import ExpressionReader
from sql.deparse.from_items import FromWriter
from sql.deparse.items import Level, entered
from sql.deparse.shown import ExpressionWriter
from sql.deparse.tree import Shown, SortItem, Variable
from sql.deparse.with_clause import WithWriter
from sql.deparse.writer import ITEM, STEP, Writer
from sql.syntax.nodes import queries as nodes

Types = Sequence[SqlType]


def unwrapped(body: nodes.QueryBody) -> nodes.QueryBody:
    """What stands in parentheses that say nothing."""
    while isinstance(body, nodes.Query) and replace(body, body=body.body, at=0) == nodes.Query(body.body, 0):
        body = body.body
    return body


@dataclass(frozen=True, slots=True)
class Heading:
    """What a query's columns are called and are. ``names``: if they differ from its own; ``shown``: a column without a
    name says so; ``types``: what untyped literals become."""

    names: tuple[str, ...] | None = None
    shown: bool = True
    types: tuple[SqlType, ...] = ()


class QueryWriter:
    """Writes one query, and those in it."""

    def __init__(self, context: Context, out: Writer) -> None:
        self.out = out
        self.context = context
        self.reader = ExpressionReader(context)
        self.level = Level()
        self.exprs = ExpressionWriter(out, self._link)
        self._from = FromWriter(self.reader, self.exprs, self._subquery)
        self._with = WithWriter(self.reader, self.exprs, self._subquery)

    def query(self, node: nodes.Query, heading: Heading) -> None:
        """A query with all its clauses."""
        outer = self.level
        with self.out.query():
            body = unwrapped(node.body)
            if isinstance(body, nodes.Select):
                self.level = entered(self.context, body.from_, outer)
            if node.with_ is not None:
                self._with.write(node.with_)
            self._body(node, self._typed(node, heading))
        self.level = outer

    def _typed(self, node: object, heading: Heading) -> Heading:
        """The heading with the types that binding has noted for a query or its body."""
        found = self.context.notes.columns.get(id(node))
        return heading if found is None else Heading(heading.names, heading.shown, found[1])

    def _subquery(self, node: nodes.Query) -> None:
        """A query in FROM or WITH."""
        self.query(node, Heading())

    def _link(self, node: nodes.Query) -> None:
        """A query in an expression, whose columns have no names of their own."""
        self.query(node, Heading(shown=False))

    def _body(self, node: nodes.Query, heading: Heading) -> None:
        body = unwrapped(node.body)
        outputs: list[Shown] | None = None
        match body:
            case nodes.Select():
                outputs = self._select(body, heading)
            case nodes.ValuesList():
                self._values(body, heading)
            case nodes.SetQuery():
                self._set_query(body, self._typed(body, heading))
            case nodes.Query():
                self.out("(")
                self.query(body, heading)
                self.out(")")
            case _:
                assert_never(body)
        self._tail(node, outputs)

    # SELECT.

    def _select(self, node: nodes.Select, heading: Heading) -> list[Shown]:
        """A SELECT up to its windows; the expressions of its select list."""
        self.out.level += STEP
        targets = self._targets(node, heading.types)
        outputs = [shown for _, shown in targets]
        self.out(" SELECT")
        if node.distinct == ():
            self.out(" DISTINCT")
        elif node.distinct is not None:
            self.out(" DISTINCT ON (")
            self._keys([self._output(e, outputs) for e in node.distinct])
            self.out(")")
        self._target_list(targets, heading)
        self._from.write(node.from_, self.level)
        if node.where is not None:
            self._clause(" WHERE ", 1)
            self.exprs.write(self.reader.value(node.where), casts=False)
        if node.group is not None:
            self._clause(" GROUP BY ", 1)
            self.out("DISTINCT " if node.group_distinct else "")
            self._group(node.group, outputs)
        if node.having is not None:
            self._clause(" HAVING ", 0)
            self.exprs.write(self.reader.value(node.having), casts=False)
        for i, (name, over) in enumerate(node.windows):
            if i == 0:
                self._clause(" WINDOW ", 1)
            self.out(f"{', ' if i else ''}{quoted(name)} AS ")
            self.exprs.window(window(self.reader, over))
        return outputs

    def _clause(self, words: str, plus: int) -> None:
        self.out.line(words, -STEP, STEP, plus)

    def _targets(self, node: nodes.Select, types: Types) -> list[tuple[str | None, Shown]]:
        """The select list with its stars expanded: names and expressions."""
        found: list[tuple[str | None, Shown]] = []
        for target in node.targets:
            expr = target.expr
            if isinstance(expr, nodes.Star) and expr.at in self.context.notes.stars:
                found += self.reader.star(expr)
            elif isinstance(expr, nodes.AllFields):
                found += self.reader.all_fields(expr)
            else:
                wanted = types[len(found)] if len(found) < len(types) else None
                found.append(
                    (target.alias or self.context.notes.titles.get(target.at), self.reader.value(expr, wanted))
                )
        return found

    def _target_list(self, targets: Sequence[tuple[str | None, Shown]], heading: Heading) -> None:
        several_lines = False
        for i, (name, shown) in enumerate(targets):
            named = heading.names[i] if heading.names is not None and i < len(heading.names) else name
            text = self.out.apart(partial(self._target, shown, named, heading.shown))
            self.out(", " if i else " ")
            if text.startswith("\n"):
                self.out.trim()
            elif i and (several_lines or not self.out.fits(text)):
                self.out.line("", -STEP, STEP, ITEM)
            several_lines = "\n" in text[1:]
            self.out(text)

    def _target(self, shown: Shown, name: str | None, visible: bool) -> None:
        self.exprs.outermost(shown, casts=True)
        own = shown.name if isinstance(shown, Variable) else None if visible else UNNAMED
        if name is not None and name != own:
            self.out(f" AS {quoted(name)}")

    def _output(self, node: nodes.Expr, outputs: Sequence[Shown]) -> Shown:
        """An item of ORDER BY, GROUP BY or DISTINCT ON: the column of the select list that it is, or itself."""
        found = self.context.notes.outputs.get(id(node))
        if found is not None and 0 <= found[1] < len(outputs):
            return outputs[found[1]]
        return self.reader.value(node)

    def _keys(self, keys: Sequence[Shown]) -> None:
        for i, key in enumerate(keys):
            self.out(", " if i else "")
            self.exprs.sort_key(key)

    def _group(self, items: Sequence[nodes.GroupItem], outputs: Sequence[Shown]) -> None:
        has_sets = any(isinstance(i, nodes.GroupingSets) and (i.kind != "list" or not i.items) for i in items)
        flat: list[nodes.GroupItem] = []
        for item in items:
            is_list = isinstance(item, nodes.GroupingSets) and item.kind == "list" and bool(item.items)
            flat += item.items if is_list and isinstance(item, nodes.GroupingSets) else (item,)
        if not has_sets and not flat:
            self.out("()")
        for i, item in enumerate(flat):
            self.out(", " if i else "")
            self._group_item(item, outputs, bare=True)

    def _group_item(self, item: nodes.GroupItem, outputs: Sequence[Shown], *, bare: bool) -> None:
        """``bare``: a single expression stands without parentheses."""
        if not isinstance(item, nodes.GroupingSets):
            self.out("" if bare else "(")
            self.exprs.sort_key(self._output(item, outputs))
            self.out("" if bare else ")")
            return
        opening = {"rollup": "ROLLUP(", "cube": "CUBE(", "sets": "GROUPING SETS (", "list": "("}[item.kind]
        self.out(opening)
        for i, inner in enumerate(item.items):
            self.out(", " if i else "")
            self._group_item(inner, outputs, bare=item.kind != "sets")
        self.out(")")

    # VALUES and set operations.

    def _values(self, node: nodes.ValuesList, heading: Heading) -> None:
        found = self.context.notes.columns.get(id(node))
        types = heading.types or (found[1] if found is not None else ())
        self.out.level += STEP
        self.out(" VALUES ")
        for i, row in enumerate(node.rows):
            self.out(", (" if i else "(")
            for n, value in enumerate(row):
                self.out("," if n else "")
                wanted = types[n] if n < len(types) else None
                self.exprs.outermost(self.reader.coerced(value, wanted), casts=False)
            self.out(")")

    def _set_query(self, node: nodes.SetQuery, heading: Heading) -> None:
        left, right = unwrapped(node.left), unwrapped(node.right)
        changes = isinstance(left, nodes.SetQuery) and (left.kind, left.all) != (node.kind, node.all)
        if changes:
            self.out("(")
            self.out.line("", STEP)
        self._operand(left, heading)
        self.out.line(") " if changes else "", -STEP if changes else 0)
        self.out(f"{node.kind.upper()} {'ALL ' if node.all else ''}")
        nested = isinstance(right, nodes.SetQuery)
        self.out("(" if nested else "")
        self.out.line("", STEP if nested else 0)
        self._operand(right, Heading(heading.names, False, heading.types))
        self.out.level -= STEP if nested else 0
        if nested:
            self.out.line(")")

    def _operand(self, node: nodes.QueryBody, heading: Heading) -> None:
        node = unwrapped(node)
        if isinstance(node, nodes.SetQuery):
            self._set_query(node, heading)
            return
        outer = self.level
        with self.out.query():
            match node:
                case nodes.Select():
                    self.level = entered(self.context, node.from_, outer)
                    self._select(node, heading)
                case nodes.ValuesList():
                    self._values(node, heading)
                case nodes.Query():
                    self.out("(")
                    self.query(node, heading)
                    self.out(")")
                case _:
                    assert_never(node)
        self.level = outer

    # The clauses behind a body.

    def _tail(self, node: nodes.Query, outputs: list[Shown] | None) -> None:
        """``outputs``: the select list; None behind what is no SELECT, where ORDER BY has numbers."""
        if node.order:
            self._clause(" ORDER BY ", 1)
            if outputs is None:
                self.out(", ".join(self._numbered(item) for item in node.order))
            else:
                self.exprs.order(SortItem(self._output(i.expr, outputs), sort_tail(i)) for i in node.order)
        if node.offset is not None:
            self._clause(" OFFSET ", 0)
            self.exprs.write(self.reader.coerced(node.offset, INT8), casts=False)
        if node.limit is not None and node.ties:
            self._clause(" FETCH FIRST (", 0)
            self.exprs.write(self.reader.coerced(node.limit, INT8), casts=False)
            self.out(") ROWS WITH TIES")
        elif node.limit is not None:
            self._clause(" LIMIT ", 0)
            if isinstance(node.limit, nodes.Null):
                self.out("ALL")
            else:
                self.exprs.write(self.reader.coerced(node.limit, INT8), casts=False)
        for locking in node.locking:
            tables = ", ".join(quoted(name) for name, _ in locking.tables)
            wait = f" {locking.wait.upper()}" if locking.wait else ""
            self._clause(f" {locking.clause}{' OF ' + tables if tables else ''}{wait}", 0)
        if node.as_of is not None:
            self._clause(f" AS OF {'AT LEAST ' if node.as_of_at_least else ''}", 0)
            self.exprs.write(self.reader.value(node.as_of), casts=False)

    def _numbered(self, item: nodes.OrderItem) -> str:
        found = self.context.notes.outputs.get(id(item.expr))
        key = (
            str(found[1] + 1) if found is not None and found[1] >= 0 else self.exprs.text(self.reader.value(item.expr))
        )
        return f"{key}{sort_tail(item)}"
