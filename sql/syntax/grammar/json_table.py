"""JSON_TABLE of PostgreSQL 17 in FROM."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError
from sql.syntax.grammar.operands import OperandGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.json_calls import JsonCall, JsonColumn, JsonPlan, JsonTable
from sql.syntax.nodes.queries import Null


class JsonTableGrammar(OperandGrammar):
    """``JSON_TABLE(value, path [AS name] [PASSING …] COLUMNS (…) [ERROR | EMPTY ON ERROR])``"""

    def is_json_table(self) -> bool:
        """Whether it is next."""
        return self.is_word("json_table") and self.is_symbol("(", 1)

    def json_table(self) -> JsonTable:
        """Up to the closing parenthesis. Raises 42601, 42712."""
        at = self.advance().start
        self.expect_symbol("(")
        value = self.json_value()
        if not self.accept_symbol(","):
            raise self.error()
        names: list[str] = []
        path = self._json_path(names)
        passing = self.json_passing()
        plan = self._json_columns(path, names)
        strict = False
        if self.is_one_of("error", "empty"):
            strict = self.advance().value == "error"
            self.accept("array")
            self.expect("on", "error")
        self.expect_symbol(")")
        return JsonTable(value, plan, passing, strict, at)

    def _json_path(self, names: list[str]) -> str:
        """A path's text, with its name if it has one."""
        token = self.token
        if token.kind is not TokenKind.STRING:
            message = "only string constants are supported in JSON_TABLE path specification"
            raise SqlError("0A000", message, position=token.start + 1)
        self.index += 1
        if self.accept("as"):
            self._new(self.name(), names, self.ahead(-1).start)
        return token.value

    def _new(self, name: str, names: list[str], at: int) -> None:
        if name in names:
            raise SqlError("42712", f"duplicate JSON_TABLE column or path name: {name}", position=at + 1)
        names.append(name)

    def _json_columns(self, path: str, names: list[str]) -> JsonPlan:
        self.expect("columns")
        columns: list[JsonColumn] = []
        nested: list[JsonPlan] = []
        self.expect_symbol("(")
        while True:
            if self.accept("nested"):
                self.accept("path")
                nested.append(self._json_columns(self._json_path(names), names))
            else:
                columns.append(self._json_column(names))
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return JsonPlan(path, tuple(columns), tuple(nested))

    def _json_column(self, names: list[str]) -> JsonColumn:
        at = self.token.start
        name = self.name()
        self._new(name, names, at)
        if self.accept("for", "ordinality"):
            return JsonColumn(name, at)
        type_ = self.type_name()
        if self.accept("exists"):
            path = self._own_path()
            found = self.json_behaviours("json_exists")
            call = JsonCall("json_exists", (Null(at),), at, on_error=found.get("error", "false"))
            return JsonColumn(name, at, type_, call, path)
        is_query = self.accept("format", "json")
        path = self._own_path()
        options = self.json_wrapper()
        quotes = self.json_quotes()
        is_query = is_query or bool(options) or quotes is not None
        found = self.json_behaviours("json_query")
        call = JsonCall("json_query" if is_query else "json_value", (Null(at),), at, options)
        if quotes == "omit":
            call = replace(call, options=(*options, "omit"))
        call = replace(call, on_empty=found.get("empty", "null"), on_error=found.get("error", "null"))
        return JsonColumn(name, at, type_, call, path)

    def _own_path(self) -> str | None:
        if not self.accept("path"):
            return None
        if self.token.kind is not TokenKind.STRING:
            raise self.error()
        return self.advance().value
