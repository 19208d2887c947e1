"""INSERT, UPDATE and DELETE, and what MERGE shares with them."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from sql.syntax.grammar.queries import QueryGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes import queries as nodes


class ChangeGrammar(QueryGrammar):
    """``at`` of a statement is the offset of its first token, WITH included."""

    def preparable(self) -> nodes.Preparable:
        at = self.token.start
        with_ = self.with_clause()
        changed = self.change(with_, at)
        return self.whole_query(self.query_operand(), at, with_) if changed is None else changed

    def change(self, with_: nodes.With | None, at: int) -> nodes.Change | None:
        """A statement that changes rows, after its WITH; None for a query."""
        if self.accept("insert"):
            return self._insert(with_, at)
        if self.accept("update"):
            return self._update(with_, at)
        if self.accept("delete"):
            return self._delete(with_, at)
        return None

    def target_table(self) -> nodes.TableName:
        """The table to change, with its alias."""
        table = self.only_table(self.accept("only"))
        if self.accept("as") or (self.is_name() and not self.is_word("set")):
            return replace(table, alias=self.name())
        return table

    def returning(self) -> tuple[nodes.Target, ...] | None:
        """``RETURNING`` and its select list, if it is next."""
        return self.targets() if self.accept("returning") else None

    def _insert(self, with_: nodes.With | None, at: int) -> nodes.InsertStatement:
        self.expect("into")
        table = self.table_name()
        if self.accept("as"):
            table = replace(table, alias=self.name())
        given: tuple[tuple[tuple[str, int], nodes.Parts], ...] = ()
        if self.is_symbol("(") and not self._starts_inner_query():
            self.index += 1
            given = self.listed(lambda: (self.located_name(), self._parts()))
            self.expect_symbol(")")
        columns = tuple(c for c, _ in given)
        parts = tuple(p for _, p in given) if any(p for _, p in given) else ()
        overriding = self.overriding()
        source = None
        if self.accept("default"):
            self.expect("values")
        else:
            source = self.query()
        conflict = self._on_conflict()
        return nodes.InsertStatement(table, columns, source, self.returning(), conflict, at, with_, overriding, parts)

    def _starts_inner_query(self) -> bool:
        """Whether a query stands inside the parenthesis that is next."""
        self.index += 1
        found = self.starts_query()
        self.index -= 1
        return found

    def overriding(self) -> str | None:
        """``OVERRIDING {SYSTEM | USER} VALUE``."""
        if not self.accept("overriding"):
            return None
        word = self.accept_one_of("system", "user")
        if word is None:
            raise self.error()
        self.expect("value")
        return word

    def assigned_column(self) -> tuple[str, int]:
        """A column to assign, and its offset."""
        at = self.token.start
        column = self.name()
        if self.is_symbol("[") or self.is_symbol("."):
            raise self.refusal("assignment to a part of a column")
        return column, at

    def _on_conflict(self) -> nodes.ConflictClause | None:
        at = self.token.start
        if not self.accept("on"):
            return None
        self.expect("conflict")
        columns: tuple[tuple[str, int], ...] = ()
        expressions: tuple[nodes.Expr, ...] = ()
        predicate = None
        constraint: tuple[str, int] | None = None
        if self.is_symbol("("):
            parts = self.enclosed(self._conflict_part)
            columns = tuple((name, at) for name, expr, at in parts if expr is None)
            expressions = tuple(expr for _, expr, _ in parts if expr is not None)
            predicate = self.where()
        elif self.accept("on", "constraint"):
            constraint = self.located_name()
        self.expect("do")
        assignments, where = None, None
        if not self.accept("nothing"):
            self.expect("update", "set")
            assignments = self.assignments()
            where = self.where()
        return nodes.ConflictClause(columns, constraint, assignments, where, at, expressions, predicate)

    def _conflict_part(self) -> tuple[str, nodes.Expr | None, int]:
        """A column's name, or "" and an expression; its offset."""
        at = self.token.start
        name, expression = self.index_part()
        return name, None if expression is None else expression[1], at

    def index_part(self) -> tuple[str, tuple[str, nodes.Expr] | None]:
        """A column's name, or "" and an expression: ``{column | call | (expression)} [COLLATE c] [operator class]``."""
        name, expression = "", None
        if self.accept_symbol("("):
            expression = self.sourced()
            self.expect_symbol(")")
        elif self.is_symbol("(", 1) or self.is_symbol(".", 1):
            expression = self.sourced()
        else:
            name = self.name()
        if self.accept("collate"):
            self.qualified()
        if self.is_name() and not self.is_word("nulls") and not self.is_word("where"):
            self.index += 1  # an operator class: there is one order
        return name, expression

    def sourced(self) -> tuple[str, nodes.Expr]:
        """An expression with its text."""
        start = self.token.start
        found = self.expression()
        return self.source(start, self.index), found

    def _update(self, with_: nodes.With | None, at: int) -> nodes.UpdateStatement:
        table = self.target_table()
        self.expect("set")
        assignments = self.assignments()
        from_ = self.table_list() if self.accept("from") else ()
        return nodes.UpdateStatement(table, assignments, from_, self.where(), self.returning(), at, with_)

    def assignment(self) -> nodes.Assignment:
        """``column = value`` or ``(column, …) = row``."""
        if self.is_symbol("("):
            columns = self.names()
            self.expect_symbol("=")
            return nodes.Assignment(columns, self._row_source(), True)
        column = self.located_name()
        parts = self._parts()
        self.expect_symbol("=")
        at = self.token.start
        value = self.value_or_default()
        if not parts:
            return nodes.Assignment((column,), value, False)
        if isinstance(value, nodes.Default):
            what = "a subfield" if isinstance(parts[0], nodes.FieldPart) else "an array element"
            raise SqlError("0A000", f"cannot set {what} to DEFAULT", position=at + 1)
        return nodes.Assignment((column,), nodes.PartValues(((parts, value),), column[1]), False)

    def assignments(self) -> tuple[nodes.Assignment, ...]:
        """The list after SET, in which those to parts of one column are one."""
        found: list[nodes.Assignment] = []
        for one in self.listed(self.assignment):
            name = one.columns[0][0]
            place = next((i for i, f in enumerate(found) if f.columns[0][0] == name), None)
            before = None if place is None else found[place].source
            if (
                place is None
                or not isinstance(one.source, nodes.PartValues)
                or not isinstance(before, nodes.PartValues)
            ):
                found.append(one)
            else:
                both = nodes.PartValues((*before.items, *one.source.items), before.at)
                found[place] = replace(found[place], source=both)
        return tuple(found)

    def _parts(self) -> nodes.Parts:
        """The subscripts and fields after an assigned column."""
        parts: list[nodes.Part | nodes.FieldPart] = []
        while self.is_symbol("[") or self.is_symbol("."):
            at = self.token.start
            if self.advance().value == ".":
                parts.append(nodes.FieldPart(self.label(), at))
                continue
            low = None if self.is_symbol(":") else self.expression()
            is_slice = self.accept_symbol(":")
            high = None if not is_slice or self.is_symbol("]") else self.expression()
            self.expect_symbol("]")
            parts.append(nodes.Part(low, high, is_slice, at))
        return tuple(parts)

    def _row_source(self) -> nodes.Expr:
        """The right side of ``(a, b) = …``."""
        token = self.token
        if self.is_symbol("(") and self._starts_inner_query():
            found = self.parenthesised()
            return nodes.RowExpr(found, token.start) if isinstance(found, tuple) else nodes.Subquery(found, token.start)
        row = self.accept("row")
        if not self.is_symbol("("):
            return self.expression()
        bare = self.ahead().kind is not TokenKind.SYMBOL
        values = self.value_row()
        if len(values) == 1 and isinstance(values[0], nodes.Star) and bare and not row:
            return values[0]
        return nodes.RowExpr(values, token.start)

    def _delete(self, with_: nodes.With | None, at: int) -> nodes.DeleteStatement:
        self.expect("from")
        table = self.target_table()
        using = self.table_list() if self.accept("using") else ()
        return nodes.DeleteStatement(table, using, self.where(), self.returning(), at, with_)
