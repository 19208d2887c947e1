"""Writes expressions, as PostgreSQL's ruleutils.c lays them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, assert_never

from planner.identifiers import quoted
from sql.deparse import tree
from sql.deparse.parentheses import is_closed
from sql.deparse.tree import Shown
from sql.deparse.writer import ITEM, Writer
from sql.syntax.nodes import queries as nodes

_KEYWORDS: Final = ("COALESCE", "NULLIF", "GREATEST", "LEAST", "GROUPING")
Subquery = Callable[[nodes.Query], None]


class ExpressionWriter:
    """``subquery``: writes a query that stands in an expression."""

    def __init__(self, out: Writer, subquery: Subquery) -> None:
        self.out = out
        self._subquery = subquery

    def text(self, expr: Shown, *, casts: bool = False) -> str:
        """An expression's text alone."""
        return self.out.apart(lambda: self.write(expr, casts=casts))

    def write(self, expr: Shown, *, casts: bool) -> None:
        """``casts``: implicit casts are shown where they are outermost."""
        match expr:
            case tree.Variable() | tree.Word():
                self.out(expr.text)
            case tree.Constant():
                self.constant(expr, expr.labelled)
            case tree.Coercion():
                self._coercion(expr, casts)
            case tree.Operation():
                self._enclosed(lambda: self._operation(expr))
            case tree.Differs():
                self._enclosed(lambda: self._between(expr, expr.left, " IS DISTINCT FROM ", expr.right))
            case tree.Quantified():
                self._enclosed(lambda: self._quantified(expr))
            case tree.Logic():
                self._enclosed(lambda: self._logic(expr))
            case tree.Test():
                self._enclosed(lambda: self._test(expr))
            case tree.Collated():
                self._enclosed(lambda: self._collated(expr, casts))
            case _:
                self._form(expr)

    def _form(
        self,
        expr: tree.Link | tree.Cases | tree.Array | tree.RowValue | tree.RowComparison | tree.FunctionCall
        | tree.Phrase | tree.Part | tree.FieldOf,
    ) -> None:  # fmt: skip
        match expr:
            case tree.Link():
                self._link(expr)
            case tree.Cases():
                self._cases(expr)
            case tree.Array():
                self._listed("ARRAY[", expr.items, "]" if expr.items else f"]::{expr.type}")
            case tree.RowValue():
                self._row(expr.items)
                self.out("" if expr.type is None else f"::{expr.type}")
            case tree.RowComparison():
                self.out("(")
                self._row(expr.left)
                self.out(f" {expr.symbol} ")
                self._row(expr.right)
                self.out(")")
            case tree.FunctionCall():
                self._call(expr)
            case tree.Phrase():
                self._phrase(expr)
            case tree.Part():
                self._part(expr)
            case tree.FieldOf():
                inside = isinstance(expr.arg, tree.Part | tree.FieldOf)
                self._wrapped(not inside, lambda: self.write(expr.arg, casts=True))
                self.out(f".{quoted(expr.name)}")
            case _:
                assert_never(expr)

    def outermost(self, expr: Shown, *, casts: bool) -> None:
        """An expression that stands by itself: a whole row says its type."""
        self.write(expr, casts=casts)
        if isinstance(expr, tree.Variable) and expr.row is not None:
            self.out(f"::{expr.row}")

    def constant(self, expr: tree.Constant, labelled: bool) -> None:
        """A constant, with its type if ``labelled``."""
        self.out(f"{expr.text}::{expr.label}" if labelled else expr.text)

    def many(self, exprs: Iterable[Shown], *, casts: bool = True) -> None:
        """Expressions with commas between them."""
        for i, expr in enumerate(exprs):
            self.out(", " if i else "")
            self.write(expr, casts=casts)

    def sort_key(self, expr: Shown) -> None:
        """An expression of ORDER BY, GROUP BY and their like, which must not be taken for a number or a name."""
        if isinstance(expr, tree.Constant):
            self.constant(expr, True)
        elif isinstance(expr, tree.Variable):
            self.write(expr, casts=True)
        else:
            self._wrapped(self.out.pretty or _looks_called(expr), lambda: self.write(expr, casts=True))

    def order(self, items: Iterable[tree.SortItem]) -> None:
        """The items of ORDER BY."""
        for i, item in enumerate(items):
            self.out(", " if i else "")
            self.sort_key(item.key)
            self.out(item.tail)

    def inside(self, expr: Shown, parent: Shown, *, casts: bool) -> None:
        """A part of another expression, in parentheses if pretty text needs them."""
        needed = self.out.pretty and not is_closed(expr, parent)
        self._wrapped(needed, lambda: self.write(expr, casts=casts))

    def _wrapped(self, needed: bool, write: Callable[[], None]) -> None:
        self.out("(" if needed else "")
        write()
        self.out(")" if needed else "")

    def _enclosed(self, write: Callable[[], None]) -> None:
        """In parentheses, which pretty text has only where ``inside`` puts them."""
        self._wrapped(not self.out.pretty, write)

    def _listed(self, opening: str, items: Iterable[Shown], closing: str) -> None:
        self.out(opening)
        self.many(items)
        self.out(closing)

    def _row(self, items: Iterable[Shown]) -> None:
        self.out("ROW(")
        for i, item in enumerate(items):
            self.out(", " if i else "")
            self.outermost(item, casts=True)
        self.out(")")

    def _coercion(self, expr: tree.Coercion, casts: bool) -> None:
        if expr.implicit and not casts:
            self.inside(expr.arg, expr, casts=False)
            return
        if isinstance(expr.arg, tree.Constant) and expr.arg.type is not None and expr.arg.type == expr.to:
            self.constant(expr.arg, False)
        else:
            self._enclosed(lambda: self.inside(expr.arg, expr, casts=False))
        self.out(f"::{expr.type}")

    def _operation(self, expr: tree.Operation) -> None:
        if len(expr.args) == 1:
            self.out(f"{expr.symbol} ")
            self.inside(expr.args[0], expr, casts=True)
            return
        self._between(expr, expr.args[0], f" {expr.symbol} ", expr.args[1])

    def _between(self, parent: Shown, left: Shown, words: str, right: Shown) -> None:
        self.inside(left, parent, casts=True)
        self.out(words)
        self.inside(right, parent, casts=True)

    def _quantified(self, expr: tree.Quantified) -> None:
        self.inside(expr.left, expr, casts=True)
        self.out(f" {expr.symbol} {'ALL' if expr.every else 'ANY'} (")
        self.inside(expr.array, expr, casts=True)
        self.out(")")

    def _logic(self, expr: tree.Logic) -> None:
        if expr.kind == "NOT":
            self.out("NOT ")
            self.inside(expr.args[0], expr, casts=False)
            return
        for i, arg in enumerate(expr.args):
            self.out(f" {expr.kind} " if i else "")
            self.inside(arg, expr, casts=False)

    def _test(self, expr: tree.Test) -> None:
        self.inside(expr.arg, expr, casts=expr.null)
        self.out(f" IS {expr.words}")

    def _collated(self, expr: tree.Collated, casts: bool) -> None:
        self.inside(expr.arg, expr, casts=casts)
        self.out(f" COLLATE {expr.collation}")

    def _link(self, expr: tree.Link) -> None:
        self.out("ARRAY(" if expr.kind == "array" else "(")
        if len(expr.left) == 1:
            self.write(expr.left[0], casts=True)
        elif expr.left:
            self._listed("(", expr.left, ")")
        words = {"any": f" {expr.symbol} ANY (", "all": f" {expr.symbol} ALL (", "row": f" {expr.symbol} ("}
        words |= {"exists": "EXISTS ("}
        opening = " IN (" if expr.kind == "any" and expr.symbol == "=" else words.get(expr.kind, "")
        self.out(opening)
        self._subquery(expr.query)
        self.out("))" if opening else ")")

    def _cases(self, expr: tree.Cases) -> None:
        self.out.line("CASE", 0, ITEM)
        if expr.operand is not None:
            self.out(" ")
            self.write(expr.operand, casts=True)
        for condition, result in expr.arms:
            self.out.line("WHEN ")
            self.write(condition, casts=False)
            self.out(" THEN ")
            self.write(result, casts=True)
        self.out.line("ELSE ")
        self.write(expr.otherwise, casts=True)
        self.out.line("END", -ITEM)

    def _call(self, expr: tree.FunctionCall) -> None:
        self.out(f"{expr.name}({'DISTINCT ' if expr.distinct else ''}{'*' if expr.star else ''}")
        names = expr.names or (None,) * len(expr.args)
        for i, (arg, name) in enumerate(zip(expr.args, names, strict=True)):
            self.out(", " if i else "")
            self.out("VARIADIC " if expr.variadic and i == len(expr.args) - 1 else "")
            self.out("" if name is None else f"{quoted(name)} => ")
            self.write(arg, casts=True)
        if expr.order:
            self.out(") WITHIN GROUP (ORDER BY " if expr.within else " ORDER BY ")
            self.order(expr.order)
        self.out(")")
        if expr.filter is not None:
            self.out(" FILTER (WHERE ")
            self.write(expr.filter, casts=False)
            self.out(")")
        self.out(expr.nulls)
        if expr.over is not None:
            self.out(" OVER ")
            self.window(expr.over)

    def window(self, expr: tree.Window) -> None:
        """What follows OVER, or a name of WINDOW."""
        if expr.alone:
            self.out(quoted(expr.name or ""))
            return
        parts = [] if expr.name is None else [quoted(expr.name)]
        if expr.partition:
            parts.append("PARTITION BY " + ", ".join(self.out.apart(partial(self.sort_key, e)) for e in expr.partition))
        if expr.order:
            parts.append("ORDER BY " + self.out.apart(lambda: self.order(expr.order)))
        if expr.frame is not None:
            parts.append(self._frame(expr.frame))
        self.out(f"({' '.join(parts)})")

    def _frame(self, frame: tree.Frame) -> str:
        start = self._frame_end(frame.start)
        words = start if frame.end is None else f"BETWEEN {start} AND {self._frame_end(frame.end)}"
        return f"{frame.mode} {words}{frame.exclude}"

    def _frame_end(self, end: tree.FrameEnd) -> str:
        return end.words if end.offset is None else f"{self.text(end.offset)} {end.words}"

    def _phrase(self, expr: tree.Phrase) -> None:
        for part in expr.parts:
            if isinstance(part, str):
                self.out(part)
            elif expr.grouped:
                self.inside(part, expr, casts=False)
            else:
                self.write(part, casts=False)

    def _part(self, expr: tree.Part) -> None:
        self._wrapped(not isinstance(expr.arg, tree.Variable | tree.FieldOf), lambda: self.write(expr.arg, casts=False))
        for low, high, is_slice in expr.bounds:
            self.out("[")
            if low is not None:
                self.write(low, casts=False)
            self.out(":" if is_slice else "")
            if high is not None:
                self.write(high, casts=False)
            self.out("]")


def _looks_called(expr: Shown) -> bool:
    """Whether an expression might be taken for ROLLUP or CUBE."""
    if isinstance(expr, tree.Coercion):
        return expr.function
    return isinstance(expr, tree.Phrase) or (isinstance(expr, tree.FunctionCall) and expr.name not in _KEYWORDS)
