"""DML and DDL."""

from __future__ import annotations

from dataclasses import replace

from ivm.errors import SqlError, unsupported
from sql.syntax.lexer import TokenKind
from sql.syntax.nodes import (
    Assignment,
    ColumnDefinition,
    CreateTableStatement,
    CreateViewStatement,
    Default,
    DeleteStatement,
    DropStatement,
    Expr,
    InsertStatement,
    Query,
    RowExpr,
    Subquery,
    TableName,
    Target,
    TruncateStatement,
    UpdateStatement,
    With,
)
from sql.syntax.queries import QueryGrammar

_OTHER_OBJECTS = frozenset(
    """
    access aggregate cast collation conversion database default domain event extension foreign function group
    index language large operator owned policy procedural procedure publication role routine rule schema
    sequence server statistics subscription tablespace text transform trigger trusted type unique user sink
    source secret connection cluster
    """.split()  # noqa: SIM905
)


class DataGrammar(QueryGrammar):
    """Adds INSERT, UPDATE, DELETE, CREATE, DROP and TRUNCATE."""

    defining = ""
    """The table whose definition is being read."""

    def value_or_default(self) -> Expr:
        at = self.token.start
        return Default(at) if self.accept("default") else self.expression()

    def _target_table(self) -> TableName:
        self.accept("only")
        table = self.table_name()
        self.accept_symbol("*")
        if self.accept("as"):
            return replace(table, alias=self.name())
        if self.is_name() and not self.is_word("set"):
            return replace(table, alias=self.name())
        return table

    def _returning(self) -> tuple[Target, ...] | None:
        return self.targets() if self.accept("returning") else None

    def insert(self, with_: With | None, at: int) -> InsertStatement:
        self.expect("insert")
        self.expect("into")
        table = self.table_name()
        if self.accept("as"):
            table = replace(table, alias=self.name())
        columns: tuple[tuple[str, int], ...] = ()
        if self.is_symbol("(") and not self.starts_query(1):
            columns = self._insert_columns()
        if self.accept("overriding"):
            raise unsupported("OVERRIDING", position=self.token.start + 1)
        source: Query | None = None
        if not self.accept("default", "values"):
            source = self.query()
        do_nothing = self._on_conflict()
        return InsertStatement(table, columns, source, self._returning(), do_nothing, at, with_)

    def _insert_columns(self) -> tuple[tuple[str, int], ...]:
        self.expect_symbol("(")
        columns = []
        while True:
            columns.append((self.token.start, self.name()))
            if self.is_symbol("[") or self.is_symbol("."):
                raise unsupported("assignment to a part of a column", position=self.token.start + 1)
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return tuple((name, at) for at, name in columns)

    def _on_conflict(self) -> bool:
        at = self.token.start
        if not self.accept("on", "conflict"):
            return False
        if self.is_symbol("("):
            raise_target = self._conflict_target()
            if raise_target:
                raise unsupported("ON CONFLICT with an expression", position=at + 1)
        elif self.is_word("on", "constraint"):
            self.index += 2
            self.name()
        self.expect("do")
        if self.accept("nothing"):
            return True
        raise unsupported("ON CONFLICT DO UPDATE", position=at + 1)

    def _conflict_target(self) -> bool:
        start = self.index
        self.advance()
        while self.is_name() and (self.is_symbol(",", 1) or self.is_symbol(")", 1)):
            self.advance()
            if self.accept_symbol(")"):
                return self.is_word("where")
            self.advance()
        self.index = start
        return True

    def update(self, with_: With | None, at: int) -> UpdateStatement:
        self.expect("update")
        table = self._target_table()
        self.expect("set")
        assignments = [self._assignment()]
        while self.accept_symbol(","):
            assignments.append(self._assignment())
        from_ = self.from_list() if self.accept("from") else ()
        where = self._where()
        return UpdateStatement(table, tuple(assignments), from_, where, self._returning(), at, with_)

    def _where(self) -> Expr | None:
        if not self.accept("where"):
            return None
        if self.is_word("current", "of"):
            raise unsupported("WHERE CURRENT OF", position=self.token.start + 1)
        return self.expression()

    def _assignment(self) -> Assignment:
        if self.is_symbol("("):
            columns = self.names()
            self.expect_symbol("=")
            return Assignment(columns, self._row_source(), True)
        column = ((self.token.start, self.name()),)
        if self.is_symbol("[") or self.is_symbol("."):
            raise unsupported("assignment to a part of a column", position=self.token.start + 1)
        self.expect_symbol("=")
        return Assignment(tuple((name, at) for at, name in column), self.value_or_default(), False)

    def _row_source(self) -> Expr:
        at = self.token.start
        query = self.parenthesised_query()
        if query is not None:
            return Subquery(query, at)
        self.accept("row")
        if not self.is_symbol("("):
            return self.expression()
        self.advance()
        items = [self.value_or_default()]
        while self.accept_symbol(","):
            items.append(self.value_or_default())
        self.expect_symbol(")")
        return RowExpr(tuple(items), at)

    def delete(self, with_: With | None, at: int) -> DeleteStatement:
        self.expect("delete")
        self.expect("from")
        table = self._target_table()
        using = self.from_list() if self.accept("using") else ()
        where = self._where()
        return DeleteStatement(table, using, where, self._returning(), at, with_)

    def create(self) -> CreateTableStatement | CreateViewStatement:
        at = self.token.start
        self.expect("create")
        replace_ = self.accept("or", "replace")
        if self.is_one_of("global", "local"):
            self.advance()
        temporary = self.accept("temporary") or self.accept("temp")
        if not temporary:
            self.accept("unlogged")
        elif not self.is_word("table"):
            raise unsupported("CREATE TEMPORARY VIEW", position=self.token.start + 1)
        if self.accept("materialized", "view"):
            return self._view(at, replace_, materialized=True)
        if self.accept("view"):
            return self._view(at, replace_, materialized=False)
        if self.is_word("recursive", "view"):
            raise unsupported("CREATE RECURSIVE VIEW", position=at + 1)
        if self.is_word("table") and not replace_:
            self.advance()
            return self._table(at, temporary)
        if self.token.kind is TokenKind.WORD and self.token.value in _OTHER_OBJECTS:
            raise unsupported(f"CREATE {self.token.value.upper()}", position=at + 1)
        raise self.error()

    def _if_not_exists(self) -> bool:
        return self.accept("if", "not", "exists")

    def _view(self, at: int, replace_: bool, *, materialized: bool) -> CreateViewStatement:
        if_not_exists = self._if_not_exists()
        table = self.table_name()
        if self.is_symbol("("):
            table = replace(table, columns=tuple(name for name, _ in self.names()))
        retain = self.storage_options()
        self.expect("as")
        start = self.token.start
        query = self.query()
        text = self.source(start, self.index)
        self._with_data()
        return CreateViewStatement(table, query, text, materialized, replace_, if_not_exists, retain, at)

    def _with_data(self) -> bool:
        """WITH [NO] DATA; whether there shall be data."""
        if self.accept("with", "no", "data"):
            return False
        if self.accept("with", "data"):
            return True
        if self.is_word("with", "check") or self.is_word("with", "cascaded") or self.is_word("with", "local"):
            raise unsupported("WITH CHECK OPTION", position=self.token.start + 1)
        return True

    def storage_options(self) -> str | None:
        """``WITH (RETAIN HISTORY [=] [FOR] '1 hour')``; Postgres's own storage parameters are accepted and ignored."""
        retain: str | None = None
        if self.accept("without", "oids") or not self.accept("with"):
            return None
        self.expect_symbol("(")
        while True:
            if self.accept("retain", "history"):
                self.accept_symbol("=")
                self.accept("for")
                retain = self.string()
            else:
                self._storage_parameter()
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return retain

    def _storage_parameter(self) -> None:
        at = self.token.start
        name = self.label()
        while self.accept_symbol("."):
            self.label()
        if name not in ("fillfactor", "security_barrier", "security_invoker", "oids") and not name.startswith("auto"):
            raise unsupported(f'option "{name}"', position=at + 1)
        if self.accept_symbol("="):
            self.advance()

    def _table(self, at: int, temporary: bool) -> CreateTableStatement:
        if_not_exists = self._if_not_exists()
        table = self.table_name()
        self.defining = table.name
        columns: list[ColumnDefinition] = []
        primary_key: tuple[tuple[str, int], ...] = ()
        named: tuple[str, ...] = ()
        if self.is_word("of") or self.is_word("partition"):
            raise unsupported(f"CREATE TABLE … {self.token.value.upper()}", position=self.token.start + 1)
        if self.is_symbol("(") and self._is_column_list():
            named = tuple(name for name, _ in self.names())
        elif self.accept_symbol("("):
            while not self.is_symbol(")"):
                primary_key = self._element(columns, primary_key)
                if not self.accept_symbol(","):
                    break
            self.expect_symbol(")")
        elif not self.is_one_of("as", "with"):
            raise self.error()
        for word in ("inherits", "partition", "using", "tablespace"):
            if self.is_word(word):
                raise unsupported(word.upper(), position=self.token.start + 1)
        retain = self.storage_options()
        if self.is_word("on", "commit") and not self.accept("on", "commit", "preserve", "rows"):
            raise unsupported("ON COMMIT", position=self.token.start + 1)
        source: Query | None = None
        data = True
        if (not columns or named) and self.accept("as"):
            source = self.query()
            data = self._with_data()
        table = replace(table, columns=named)
        return CreateTableStatement(
            table, tuple(columns), primary_key, if_not_exists, retain, source, not data, at, temporary
        )  # fmt: skip

    def _is_column_list(self) -> bool:
        """``(a, b) AS``: names alone, as CREATE TABLE AS has them."""
        ahead = 1
        while self.ahead(ahead).kind in (TokenKind.WORD, TokenKind.QUOTED):
            if self.is_symbol(")", ahead + 1):
                return True
            if not self.is_symbol(",", ahead + 1):
                return False
            ahead += 2
        return False

    def _element(
        self, columns: list[ColumnDefinition], primary_key: tuple[tuple[str, int], ...]
    ) -> tuple[tuple[str, int], ...]:
        """A column, or a table constraint; returns the primary key so far."""
        at = self.token.start
        if self.accept("constraint"):
            self.name()
        if self.is_word("primary", "key"):
            self.index += 2
            return self._once(primary_key, self.names(), at)
        if self.is_word("like"):
            raise unsupported("LIKE in CREATE TABLE", position=at + 1)
        for word in ("unique", "check", "foreign", "exclude"):
            if self.is_word(word):
                raise unsupported(f"{word.upper()} constraints", position=at + 1)
        column = self._column()
        columns.append(column)
        if not column.primary_key:
            return primary_key
        return self._once(primary_key, ((column.name, column.at),), at)

    def _once(
        self, old: tuple[tuple[str, int], ...], new: tuple[tuple[str, int], ...], at: int
    ) -> tuple[tuple[str, int], ...]:
        if old:
            message = f'multiple primary keys for table "{self.defining}" are not allowed'
            raise SqlError("42P16", message, position=at + 1)
        return new

    def _column(self) -> ColumnDefinition:
        at = self.token.start
        name = self.name()
        type_at = self.token.start
        type_ = self.type_name()
        if type_.name in ("serial", "bigserial", "smallserial", "serial4", "serial8", "serial2"):
            raise unsupported(f"type {type_.name}", position=type_at + 1)
        column = ColumnDefinition(name, type_, False, False, None, at)
        while not (self.is_symbol(",") or self.is_symbol(")")):
            column = self._column_constraint(column)
        return column

    def _column_constraint(self, column: ColumnDefinition) -> ColumnDefinition:
        at = self.token.start
        if self.accept("constraint"):
            self.name()
        if self.accept("not", "null"):
            return replace(column, not_null=True)
        if self.accept("null"):
            return column
        if self.accept("primary", "key"):
            return replace(column, not_null=True, primary_key=True)
        if self.accept("default"):
            start = self.token.start
            expr = self.expression(7)
            return replace(column, default=(expr, self.source(start, self.index)))
        if self.accept("collate"):
            collation = self.dotted()
            if collation[-1] not in ("default", "C", "POSIX", "ucs_basic"):
                raise unsupported(f'collation "{collation[-1]}"', position=at + 1)
            return column
        for word in ("unique", "check", "references", "generated"):
            if self.is_word(word):
                raise unsupported(f"{word.upper()} constraints", position=at + 1)
        raise self.error()

    def drop(self) -> DropStatement:
        at = self.token.start
        self.expect("drop")
        if self.accept("materialized", "view"):
            kind = "materialized view"
        elif self.is_one_of("table", "view"):
            kind = self.advance().value
        elif self.token.kind is TokenKind.WORD and self.token.value in _OTHER_OBJECTS:
            raise unsupported(f"DROP {self.token.value.upper()}", position=at + 1)
        else:
            raise self.error()
        if_exists = self.accept("if", "exists")
        names = self._table_names()
        cascade = self.accept("cascade")
        if not cascade:
            self.accept("restrict")
        return DropStatement(kind, names, if_exists, cascade)

    def _table_names(self) -> tuple[TableName, ...]:
        names = [self.table_name()]
        while self.accept_symbol(","):
            names.append(self.table_name())
        return tuple(names)

    def truncate(self) -> TruncateStatement:
        self.expect("truncate")
        self.accept("table")
        self.accept("only")
        names = self._table_names()
        self.accept("continue", "identity")
        if self.is_word("restart", "identity"):
            raise unsupported("RESTART IDENTITY", position=self.token.start + 1)
        if not self.accept("restrict"):
            self.accept("cascade")
        return TruncateStatement(names)
