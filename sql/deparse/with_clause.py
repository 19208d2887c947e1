"""WITH as PostgreSQL's ruleutils.c lays it out, and WITH MUTUALLY RECURSIVE in the same way."""

from __future__ import annotations

from collections.abc import Callable

from planner.identifiers import quoted
from sql.deparse.context import Reader
from sql.deparse.json_calls import written_type
from sql.deparse.shown import ExpressionWriter
from sql.deparse.writer import STEP
from sql.syntax.nodes import queries as nodes


class WithWriter:
    """``query``: writes a subquery."""

    def __init__(self, reader: Reader, exprs: ExpressionWriter, query: Callable[[nodes.Query], None]) -> None:
        self._reader = reader
        self._exprs = exprs
        self._out = exprs.out
        self._query = query

    def write(self, node: nodes.With) -> None:
        """The clause, and the beginning of the line after it."""
        self._out.level += STEP
        self._out(f" WITH {'MUTUALLY ' if node.mutually else ''}{'RECURSIVE ' if node.recursive else ''}")
        self._block_options(node)
        for i, cte in enumerate(node.ctes):
            self._out(", " if i else "")
            self._cte(cte)
        self._out.line("", -STEP)

    def _block_options(self, node: nodes.With) -> None:
        """Those of WITH MUTUALLY RECURSIVE."""
        options = []
        if node.limit is not None:
            options.append(f"{'RETURN AT ' if node.return_at_limit else ''}RECURSION LIMIT {node.limit}")
        if node.priority is not None:
            options.append(f"PRIORITY BY {self._exprs.text(self._reader.value(node.priority))}")
        if node.no_priority:
            options.append("NO PRIORITY")
        self._out(f"({', '.join(options)}) " if options else "")

    def _cte(self, cte: nodes.Cte) -> None:
        self._out(quoted(cte.name))
        if cte.types:
            pairs = zip(cte.columns, cte.types, strict=True)
            self._out(f" ({', '.join(f'{quoted(c)} {written_type(self._reader, t)}' for c, t in pairs)})")
        elif cte.columns:
            self._out(f"({', '.join(map(quoted, cte.columns))})")
        words = {True: "MATERIALIZED ", False: "NOT MATERIALIZED ", None: ""}[cte.materialized]
        self._out(f" AS {words}(")
        self._out.line("")
        assert isinstance(cte.query, nodes.Query), "a view changes no data"
        self._query(cte.query)
        self._out.line(")")
        if cte.search is not None:
            columns = ", ".join(map(quoted, cte.search.columns))
            order = "BREADTH" if cte.search.breadth else "DEPTH"
            self._out(f" SEARCH {order} FIRST BY {columns} SET {quoted(cte.search.sequence)}")
        if cte.cycle is not None:
            self._out(f" CYCLE {', '.join(map(quoted, cte.cycle.columns))} SET {quoted(cte.cycle.mark)}")
            if cte.marks is not None:
                value, otherwise = (self._exprs.text(self._reader.value(mark)) for mark in cte.marks)
                self._out(f" TO {value} DEFAULT {otherwise}")
            self._out(f" USING {quoted(cte.cycle.path)}")
