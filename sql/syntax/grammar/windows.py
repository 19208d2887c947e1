"""ORDER BY, and the windows of OVER and WINDOW with their frames."""

from __future__ import annotations

from ivm.errors import SqlError
from sql.syntax.grammar.operators import OperatorGrammar
from sql.syntax.nodes import queries as nodes

_EXCLUDED = {"current": ("row",), "no": ("others",)}


class WindowGrammar(OperatorGrammar):
    """ORDER BY and windows."""

    def order_by(self) -> tuple[nodes.OrderItem, ...]:
        """ORDER BY, if it is next; () if not."""
        if not self.accept("order"):
            return ()
        self.expect("by")
        return self.listed(self._order_item)

    def _order_item(self) -> nodes.OrderItem:
        at = self.token.start
        expr = self.expression()
        using = None
        if self.accept("using"):
            operator_at = self.token.start
            _, symbol = self.operator_symbol()
            descending = symbol in (">", "~>~")
            using = None if symbol in ("<", ">") else (symbol, operator_at)
        else:
            descending = self.accept_one_of("asc", "desc") == "desc"
        nulls_first: bool | None = None
        if self.is_word("nulls", "first") or self.is_word("nulls", "last"):
            nulls_first = self.ahead().value == "first"
            self.index += 2
        return nodes.OrderItem(expr, descending, nulls_first, at, using)

    def named_windows(self) -> tuple[tuple[str, nodes.Over], ...]:
        """``WINDOW name AS (…), …``, if it is next; () if not."""
        return self.listed(self._named_window) if self.accept("window") else ()

    def _named_window(self) -> tuple[str, nodes.Over]:
        name = self.name()
        self.expect("as")
        return name, self._specification()

    def over(self) -> nodes.Over:
        """``name`` or ``([name] [PARTITION BY …] [ORDER BY …] [frame])``, after OVER."""
        at = self.token.start
        if not self.is_symbol("("):
            return nodes.Over((), (), at, self.name(), True)
        return self._specification()

    def _specification(self) -> nodes.Over:
        at = self.token.start
        self.expect_symbol("(")
        clause = self.is_one_of("range", "rows", "groups") or self.is_word("partition", "by")
        name = self.name() if self.is_name() and not clause else None
        partition = self.expressions() if self.accept("partition", "by") else ()
        order = self.order_by()
        mode = self.accept_one_of("rows", "range", "groups")
        frame = None if mode is None else self._frame(mode)
        self.expect_symbol(")")
        return nodes.Over(partition, order, at, name, False, frame)

    def _frame(self, mode: str) -> nodes.FrameClause:
        short = not self.accept("between")
        if not short:
            start = self._bound()
            self.expect("and")
            end = self._bound()
            _check(start, end)
        else:
            start, end = self._bound(), nodes.FrameBound(self.token.start)
            if start.following and start.offset is not None:
                raise _wrong("frame starting from following row cannot end with current row", start)
            _check(start, end)
        if not self.accept("exclude"):
            return nodes.FrameClause(mode, start, end, short=short)
        word = self.accept_one_of("current", "no", "group", "ties")
        if word is None:
            raise self.error()
        self.expect(*_EXCLUDED.get(word, ()))
        return nodes.FrameClause(mode, start, end, word, short)

    def _bound(self) -> nodes.FrameBound:
        at = self.token.start
        if self.accept("current", "row"):
            return nodes.FrameBound(at)
        unbounded = self.is_word("unbounded", "preceding") or self.is_word("unbounded", "following")
        self.index += unbounded
        offset = None if unbounded else self.expression()
        side = self.accept_one_of("preceding", "following")
        if side is None:
            raise self.error()
        return nodes.FrameBound(at, side == "following", unbounded, offset)


def _check(start: nodes.FrameBound, end: nodes.FrameBound) -> None:
    """Raises 42P20 for bounds in the wrong order."""
    ends_before = end.offset is not None and not end.following
    ends_here = end.offset is None and not end.unbounded
    if start.unbounded and start.following:
        raise _wrong("frame start cannot be UNBOUNDED FOLLOWING", start)
    if end.unbounded and not end.following:
        raise _wrong("frame end cannot be UNBOUNDED PRECEDING", end)
    if start.offset is None and not start.unbounded and ends_before:
        raise _wrong("frame starting from current row cannot have preceding rows", end)
    if start.offset is not None and start.following and (ends_before or ends_here):
        raise _wrong("frame starting from following row cannot have preceding rows", end)


def _wrong(message: str, bound: nodes.FrameBound) -> SqlError:
    return SqlError("42P20", message, position=bound.at + 1)
