"""FROM as PostgreSQL's ruleutils.c lays it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from planner.identifiers import quoted
from sql.deparse.context import Item, names_in
from sql.deparse.expressions import ExpressionReader
from sql.deparse.items import Level, has_windows, real_columns
from sql.deparse.json_calls import json_table, written_type
from sql.deparse.shown import ExpressionWriter
from sql.deparse.tree import Shown
from sql.deparse.writer import ITEM, JOIN, STEP
from sql.syntax.nodes import queries as nodes

_JOINS = {"inner": "JOIN", "cross": "CROSS JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}


class FromWriter:
    """``query``: writes a subquery."""

    def __init__(
        self, reader: ExpressionReader, exprs: ExpressionWriter, query: Callable[[nodes.Query], None]
    ) -> None:  # fmt: skip
        self._reader = reader
        self._context = reader.context
        self._exprs = exprs
        self._out = exprs.out
        self._query = query
        self._level = Level()

    def write(self, refs: Sequence[nodes.TableRef], level: Level) -> None:
        """The clause, if there are items."""
        outer, self._level = self._level, level
        for i, ref in enumerate(refs):
            if i == 0:
                self._out.line(" FROM ", -STEP, STEP, 2)
                self._item(ref)
                continue
            self._out(", ")
            text = self._out.apart(partial(self._item, ref))
            if not self._out.fits(text):
                self._out.line("", -STEP, STEP, ITEM)
            self._out(text)
        self._level = outer

    def _item(self, ref: nodes.TableRef) -> None:
        match ref:
            case nodes.TableName():
                self._table(ref)
            case nodes.DerivedTable():
                self._out("LATERAL (" if ref.lateral else "(")
                self._query(ref.query)
                self._out(")")
                self._alias(ref, required=ref.alias is not None)
            case nodes.FunctionTable():
                self._functions(ref)
            case nodes.JsonTable():
                self._exprs.write(json_table(self._reader, ref), casts=False)
                self._alias(ref, required=True)
            case nodes.JoinedTable():
                self._join(ref)
            case _:
                assert_never(ref)

    def _alias(self, ref: nodes.TableRef, *, required: bool, columns: bool | None = None) -> None:
        """The alias, with the names of the columns if ``columns``; None: if they are not the item's own."""
        item = self._context.items.get(ref.at)
        if item is None:
            return
        columns = item.renamed if columns is None else columns
        if required or columns:
            self._out(f" {quoted(item.alias)}")
            self._out(f"({', '.join(map(quoted, item.columns))})" if columns and item.columns else "")

    def _table(self, ref: nodes.TableName) -> None:
        range_ = self._context.notes.ranges.get(ref.at)
        relation = None if range_ is None else range_.relation
        name, own = quoted(ref.name), ref.name
        if relation is not None:
            name, own = self._context.names.relation(relation), self._context.names.current(relation).name
        elif ref.schema_name is not None:
            name = f"{quoted(ref.schema_name)}.{name}"
        self._out(f"ONLY {name}" if ref.only else name)
        item = self._context.items.get(ref.at)
        self._alias(ref, required=ref.alias is not None or (item is not None and item.alias != own))
        if ref.sample is not None:
            self._sample(ref.sample)

    def _sample(self, sample: nodes.Sample) -> None:
        self._out(f" TABLESAMPLE {'.'.join(map(quoted, sample.method[-1:]))} (")
        self._exprs.many([self._reader.value(a) for a in sample.args], casts=False)
        self._out(")")
        if sample.seed is not None:
            self._out(" REPEATABLE (")
            self._exprs.write(self._reader.value(sample.seed), casts=False)
            self._out(")")

    def _functions(self, ref: nodes.FunctionTable) -> None:
        if has_windows(ref):
            self._time_windows(ref)
            return
        places = self._context.notes.places
        inner = any(places[n.at].at in self._level.offsets for n in names_in(ref.functions) if n.at in places)
        self._out("LATERAL " if ref.lateral or inner else "")
        shown = [self._reader.value(f) for f in ref.functions]
        listed = len(shown) > 1 or (bool(ref.definitions) and ref.ordinality)
        if self._is_unnest(ref):
            self._out("UNNEST(")
            self._exprs.many(
                [a for f in ref.functions if isinstance(f, nodes.Apply) for a in self._reader.items(f.args)]
            )
            self._out(")")
        elif listed:
            self._rows_from(ref, shown)
        else:
            self._exprs.write(shown[0], casts=True)
        self._out(" WITH ORDINALITY" if ref.ordinality else "")
        if not listed and ref.definitions and ref.definitions[0]:
            self._alias(ref, required=True, columns=False)
            self._definitions(ref.definitions[0], self._context.items.get(ref.at))
        else:
            self._alias(ref, required=True, columns=True)

    def _is_unnest(self, ref: nodes.FunctionTable) -> bool:
        calls = [f for f in ref.functions if isinstance(f, nodes.Apply) and f.name[-1] == "unnest"]
        several = sum(len(call.args) for call in calls) > 1
        return several and len(calls) == len(ref.functions) and not ref.definitions

    def _rows_from(self, ref: nodes.FunctionTable, shown: Sequence[Shown]) -> None:
        self._out("ROWS FROM(")
        for i, function in enumerate(shown):
            self._out(", " if i else "")
            self._exprs.write(function, casts=True)
            if ref.definitions and ref.definitions[i]:
                self._out(" AS ")
                self._definitions(ref.definitions[i], None)
        self._out(")")

    def _definitions(self, definitions: nodes.Definitions, item: Item | None) -> None:
        """A column definition list, under the item's own names."""
        names = [name for name, _, _ in definitions] if item is None else item.columns
        pairs = zip(names, definitions, strict=False)
        self._out(f"({', '.join(f'{quoted(n)} {written_type(self._reader, t)}' for n, (_, t, _) in pairs)})")

    def _time_windows(self, ref: nodes.FunctionTable) -> None:
        """TUMBLE and HOP, whose first argument is a relation and whose second is a column of it."""
        call = ref.functions[0]
        assert isinstance(call, nodes.Apply)
        source, column, *rest = call.args
        range_ = self._context.notes.ranges.get(source.at)
        self._out(f"{quoted(call.name[0])}(")
        if isinstance(source, nodes.Subquery):
            self._out("(")
            self._query(source.query)
            self._out(")")
        elif range_ is not None and range_.relation is not None:
            self._out(self._context.names.relation(range_.relation))
        elif isinstance(source, nodes.Name):
            self._out(".".join(map(quoted, source.parts)))
        assert isinstance(column, nodes.Name)
        place = self._context.notes.places.get(column.at)
        real = None if range_ is None else real_columns(self._context, range_)
        known = real is not None and place is not None and place.column is not None
        name = real[place.column] if known and real and place and place.column is not None else column.parts[-1]
        self._out(f", {quoted(name)}, ")
        self._exprs.many([self._reader.value(a) for a in rest])
        self._out(")")
        self._alias(ref, required=ref.alias is not None)

    def _join(self, ref: nodes.JoinedTable) -> None:
        pretty = self._out.pretty
        enclosed = not pretty or ref.alias is not None
        self._out("(" if enclosed else "")
        self._item(ref.left)
        word, _, kind = ref.kind.rpartition(" ")
        merged = self._context.notes.merged.get(ref.at, ())
        using = [name for name, _, _ in merged] or (list(ref.using) if not ref.natural else [])
        crossed = kind == "cross" or (kind == "inner" and ref.on is None and not using)
        words = "CROSS JOIN" if crossed else f"{'ASOF ' if word == 'asof' else ''}{_JOINS[kind]}"
        self._out.line(f" {words} ", -STEP, STEP, JOIN)
        nested = pretty and isinstance(ref.right, nodes.JoinedTable) and ref.right.alias is None
        self._out("(" if nested else "")
        self._item(ref.right)
        self._out(")" if nested else "")
        self._out(" FOR SYSTEM_TIME AS OF PROCTIME()" if word == "proctime" else "")
        self._condition(ref, using, crossed)
        self._out(")" if enclosed else "")
        if ref.alias is not None:
            self._alias(ref, required=True)

    def _condition(self, ref: nodes.JoinedTable, using: Sequence[str], crossed: bool) -> None:
        if using:
            self._out(f" USING ({', '.join(map(quoted, using))})")
            self._out(f" AS {quoted(ref.using_alias)}" if ref.using_alias is not None else "")
        elif ref.on is not None:
            self._out(" ON " if self._out.pretty else " ON (")
            self._exprs.write(self._reader.value(ref.on), casts=False)
            self._out("" if self._out.pretty else ")")
        elif not crossed:
            self._out(" ON TRUE")
