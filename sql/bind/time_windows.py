"""TUMBLE and HOP in FROM: a relation's rows with the windows of time that they fall into.

``TUMBLE(rel, col, size)`` and ``HOP(rel, col, slide, size)`` append ``window_start`` and ``window_end``. They are
written as the subqueries that they mean, over ``date_bin``; windows are counted from 1970-01-01. Rows without a time
are in no window.
"""

from __future__ import annotations

from typing import Final

from ivm.errors import SqlError
from sql.syntax.nodes import queries as nodes
from storage.types.order import interval_total
from storage.types.text_interval import parse_interval

ARGUMENTS: Final = {"tumble": 3, "hop": 4}
_ORIGIN: Final = "1970-01-01 00:00:00+00"
_SOURCE, _NUMBER = "source", "number"


def windowed(ref: nodes.FunctionTable) -> nodes.DerivedTable | None:
    """The subquery that TUMBLE or HOP stands for; None for other functions. Raises 42883."""
    call = ref.functions[0]
    if not isinstance(call, nodes.Apply) or len(ref.functions) > 1 or call.name[-1] not in ARGUMENTS or call.name[1:]:
        return None
    (name,) = call.name
    source = _relation(call.args[0]) if call.args else None
    if source is None or len(call.args) != ARGUMENTS[name] or not isinstance(call.args[1], nodes.Name):
        signature = (
            "tumble(relation, column, interval)" if name == "tumble" else "hop(relation, column, interval, interval)"
        )
        raise SqlError("42883", f"{name} is written {signature}", position=call.at + 1)
    made = _Windows(source, call.args[1], call.args[2], call.args[-1], call.at)
    query = nodes.Query(made.tumbling() if name == "tumble" else made.hopping(), call.at)
    alias = ref.alias if ref.alias is not None else name
    return nodes.DerivedTable(query, ref.at, alias, ref.columns, ref.lateral)


def _relation(arg: nodes.Expr) -> nodes.TableRef | None:
    if isinstance(arg, nodes.Subquery):
        return nodes.DerivedTable(arg.query, arg.at, _SOURCE)
    if not isinstance(arg, nodes.Name) or len(arg.parts) > 2:
        return None
    schema = arg.parts[0] if len(arg.parts) > 1 else None
    return nodes.TableName(schema, arg.parts[-1], arg.at, _SOURCE)


class _Windows:
    """The queries over one relation, whose rows are named ``source``."""

    def __init__(
        self, source: nodes.TableRef, column: nodes.Name, slide: nodes.Expr, size: nodes.Expr, at: int
    ) -> None:  # fmt: skip
        self.source = source
        self.column = nodes.Name((_SOURCE, column.parts[-1]), column.at)
        self.slide = _interval(slide, at)
        self.size = _interval(size, at)
        self.at = at

    def tumbling(self) -> nodes.Select:
        """Each row with its window."""
        return self._select(self._bin(), (self.source,), self._has_time())

    def hopping(self) -> nodes.Select:
        """Each row once for each window that it is in: the last one that begins before it, and earlier ones."""
        seconds = [self._call("date_part", nodes.String("epoch", self.at), e) for e in (self.size, self.slide)]
        most = self._operator("-", self._call("ceil", self._operator("/", *seconds)), nodes.Number("1", self.at))
        series = self._call("generate_series", nodes.Number("0", self.at), self._cast(most, "int4"))
        numbers = nodes.FunctionTable((series,), self.at, _NUMBER, (_NUMBER,))
        number = nodes.Name((_NUMBER, _NUMBER), self.at)
        start = self._operator("-", self._bin(), self._operator("*", self.slide, number))
        inside = self._operator(">", self._operator("+", start, self.size), self.column)
        return self._select(start, (self.source, numbers), nodes.AndExpr((self._has_time(), inside), self.at))

    def _select(self, start: nodes.Expr, from_: tuple[nodes.TableRef, ...], where: nodes.Expr) -> nodes.Select:
        targets = (
            nodes.Target(nodes.Star((_SOURCE,), self.at), None, self.at),
            nodes.Target(start, "window_start", self.at),
            nodes.Target(self._operator("+", start, self.size), "window_end", self.at),
        )
        return nodes.Select(targets, from_, where, None, None, None, self.at)

    def _bin(self) -> nodes.Expr:
        return self._call("date_bin", self.slide, self.column, nodes.String(_ORIGIN, self.at))

    def _has_time(self) -> nodes.Expr:
        return nodes.IsTest(self.column, "null", True, self.at)

    def _call(self, name: str, *args: nodes.Expr) -> nodes.Expr:
        return nodes.Apply(("pg_catalog", name), args, self.at)

    def _operator(self, symbol: str, *args: nodes.Expr) -> nodes.Expr:
        return nodes.Operator(symbol, args, self.at, "pg_catalog")

    def _cast(self, expr: nodes.Expr, type_: str) -> nodes.Expr:
        return nodes.Cast(expr, nodes.TypeName(type_, (), False, self.at), self.at)


def _interval(expr: nodes.Expr, at: int) -> nodes.Expr:
    """Raises 22023 for a constant that is not above zero."""
    constant = expr.expr if isinstance(expr, nodes.Cast) else expr
    if isinstance(constant, nodes.String) and interval_total(parse_interval(constant.value)) <= 0:
        raise SqlError("22023", "the size and the slide of windows must be greater than zero", position=at + 1)
    return nodes.Cast(expr, nodes.TypeName("interval", (), False, at), at)
