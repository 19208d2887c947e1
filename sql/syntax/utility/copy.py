"""COPY with its old and new option syntax, CREATE TABLE … FROM files, and SUBSCRIBE."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.queries import Expr, Preparable, Query, TableName
from sql.syntax.nodes.statements import CopyStatement, CreateFromStatement, OptionValue, SubscribeStatement

Option = tuple[str, OptionValue, int]


class CopyGrammar(DefinitionGrammar):
    """Statements that move data in and out."""

    def copy(self) -> CopyStatement:
        at = self.advance().start
        columns: tuple[tuple[str, int], ...] = ()
        source: TableName | Preparable | SubscribeStatement
        options: list[Option] = []
        if self.is_symbol("("):
            source = self._source()
        else:
            if self.accept("binary"):
                options.append(("format", "binary", at))
            source = self.table_name()
            if self.is_symbol("("):
                columns = self.names()
        if not self.is_one_of("from", "to"):
            raise self.error()
        to = self.advance().value == "to"
        path: str | None = None
        if self.token.kind is TokenKind.STRING:
            path = self.string()
        elif not (self.accept("stdin") or self.accept("stdout")):
            raise self.error()
        options += self._options()
        where = None
        if self.is_word("where"):
            if to:
                message = "WHERE clause not allowed with COPY TO"
                raise SqlError("42601", message, position=self.token.start + 1)
            self.advance()
            where = self.expression()
        return CopyStatement(source, columns, to, path, tuple(options), at, where)

    def starts_create_from(self) -> bool:
        """Whether CREATE TABLE … FROM 'uri' is next."""
        at = self.index
        try:
            self._create_head()
            return self.is_word("from")
        except SqlError:
            return False
        finally:
            self.index = at

    def create_from(self) -> CreateFromStatement:
        """``CREATE [TEMP] TABLE [IF NOT EXISTS] name FROM 'uri' [WITH (…)] [WITH [NO] DATA]``."""
        at = self.token.start
        temporary, exists, table = self._create_head()
        self.expect("from")
        path = self.string()
        options: tuple[Option, ...] = ()
        empty = self._no_data()
        if empty is None and self.accept("with"):
            options = self.enclosed(self._new_option)
            empty = self._no_data()
        return CreateFromStatement(table, temporary, exists, path, options, bool(empty), at)

    def _create_head(self) -> tuple[bool, bool, TableName]:
        self.expect("create")
        temporary = self.accept("temporary") or self.accept("temp")
        self.expect("table")
        return temporary, self.accept("if", "not", "exists"), self.table_name()

    def _no_data(self) -> bool | None:
        """``WITH [NO] DATA``: True for NO DATA, None if neither is next."""
        if self.accept("with", "no", "data"):
            return True
        return False if self.accept("with", "data") else None

    def _source(self) -> Preparable | SubscribeStatement:
        self.expect_symbol("(")
        statement = self.subscribe() if self.is_word("subscribe") else self.preparable()
        self.expect_symbol(")")
        return statement

    def _options(self) -> Iterable[Option]:
        self.accept("with")
        return self.enclosed(self._new_option) if self.is_symbol("(") else self._old_options()

    def _new_option(self) -> Option:
        at = self.token.start
        name = self.label()
        if name == "max" and self.accept("rejects"):
            name = "max_rejects"
        self.accept_symbol("=")
        return name, self.enclosed(self._mapped) if name == "mapping" else self._option_value(), at

    def _mapped(self) -> tuple[str, str]:
        """``name in the file AS column``; the name is a word, a string or a field's number."""
        plain = self.token.kind in (TokenKind.STRING, TokenKind.NUMBER)
        found = self.advance().value if plain else self.label()
        self.expect("as")
        return found, self.name()

    def _option_value(self) -> str | bool | tuple[str, ...]:
        token = self.token
        if self.is_symbol(",") or self.is_symbol(")"):
            return True
        if self.accept_symbol("*"):
            return "*"
        if self.is_symbol("("):
            return self.enclosed(self.name)
        if token.kind is TokenKind.WORD and token.value in ("true", "on", "false", "off"):
            self.advance()
            return token.value in ("true", "on")
        if token.value == "-" and self.accept_symbol("-"):
            if self.token.kind is not TokenKind.NUMBER:
                raise self.error()
            return f"-{self.advance().value}"
        if token.kind in (TokenKind.END, TokenKind.SYMBOL):
            raise self.error()
        self.advance()
        return token.value

    def _old_options(self) -> list[Option]:
        options: list[Option] = []
        while not self.at_end() and not self.is_word("where"):
            at = self.token.start
            if self.is_one_of("binary", "csv"):
                options.append(("format", self.advance().value, at))
            elif self.accept("header"):
                options.append(("header", True, at))
            elif self.is_one_of("delimiter", "null", "quote", "escape", "encoding", "delimiters"):
                name = self.advance().value
                self.accept("as")
                options.append((name.removesuffix("s") if name == "delimiters" else name, self.string(), at))
            elif self.accept("force", "quote"):
                options.append(("force_quote", self._column_list(), at))
            elif self.accept("force", "not", "null"):
                options.append(("force_not_null", self._column_list(), at))
            elif self.accept("force", "null"):
                options.append(("force_null", self._column_list(), at))
            elif self.accept("freeze"):
                options.append(("freeze", True, at))
            else:
                raise self.error()
        return options

    def _column_list(self) -> str | tuple[str, ...]:
        return "*" if self.accept_symbol("*") else self.listed(self.name)

    def subscribe(self) -> SubscribeStatement:
        at = self.advance().start
        self.accept("to")
        source: TableName | Query
        if self.is_symbol("("):
            self.advance()
            source = self.query()
            self.expect_symbol(")")
        elif self.starts_query():
            source = self.query()
        else:
            source = self.table_name()
        as_of: Expr | None = None
        if isinstance(source, Query) and source.as_of is not None:
            as_of = source.as_of
            source = replace(source, as_of=None, as_of_at_least=False)
        snapshot, progress, as_of, up_to = self._subscribe_clauses(as_of)
        return SubscribeStatement(source, snapshot, progress, as_of, up_to, at)

    def _subscribe_clauses(self, as_of: Expr | None) -> tuple[bool, bool, Expr | None, Expr | None]:
        snapshot, progress = True, False
        up_to: Expr | None = None
        while True:
            if self.is_word("envelope") or self.is_word("within"):
                raise unsupported(f"SUBSCRIBE … {self.token.value.upper()}", position=self.token.start + 1)
            if self.accept("with"):
                values = dict(self.enclosed(self._subscribe_option))
                snapshot, progress = values.get("snapshot", True), values.get("progress", False)
            elif self.is_word("as", "of"):
                as_of, _ = self.as_of()
            elif self.accept("up", "to"):
                up_to = self.expression()
            else:
                return snapshot, progress, as_of, up_to

    def _subscribe_option(self) -> tuple[str, bool]:
        name = self.label()
        if name not in ("snapshot", "progress"):
            self.index -= 1
            raise self.error()
        self.accept_symbol("=")
        value = self._option_value()
        return name, value is True or value in ("true", "on", "1")
