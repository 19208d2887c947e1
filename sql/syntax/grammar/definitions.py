"""CREATE TABLE, VIEW and INDEX, DROP and TRUNCATE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from planner.identifiers import quoted
from sql.catalog.catalog import OnCommit
from sql.catalog.partitioning import Partitioning, WrittenBound
from sql.syntax.grammar.like import LikeGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.columns import ColumnDefinition
from sql.syntax.nodes.constraints import Constraint, CreateIndexStatement
from sql.syntax.nodes.queries import Cte, Name, Query, Select, TableName, Target, With
from sql.syntax.nodes.statements import (
    CreateTableStatement,
    CreateViewStatement,
    DropStatement,
    LikeClause,
    Statement,
    TruncateStatement,
)

_STORAGE_PARAMETERS: Final = ("fillfactor", "oids")
_OTHER_OBJECTS: Final = frozenset(
    """
    access aggregate cast collation conversion database default domain event extension foreign function group
    language large operator owned policy procedural procedure publication role routine rule schema
    sequence server statistics subscription tablespace text transform trigger trusted type user sink
    source secret connection cluster
    """.split()  # noqa: SIM905
)
_WORDS: Final = (TokenKind.WORD, TokenKind.QUOTED)
MOST_PARTS: Final = 10_000
DEFAULT_PARTS: Final = 8


@dataclass(slots=True)
class ViewOptions:
    """A materialized view's options: who computes its first contents, who maintains it, and in how many parts."""

    hydrate: str | None = None
    spark: bool = False
    parts: int | None = None

    @property
    def wanted(self) -> int:
        """The number of partitions; 0 unless Spark maintains the view. 22023 for options that exclude each other."""
        if self.parts is not None and not self.spark:
            raise SqlError("22023", "PARTITIONS is for views that Spark maintains", hint="Write MAINTAIN = spark too.")
        if self.hydrate is not None and self.spark:
            raise SqlError("22023", "HYDRATE is for views that the server maintains",
                           hint="What Spark maintains it computes from the start.")  # fmt: skip
        return (self.parts or DEFAULT_PARTS) if self.spark else 0


class DefinitionGrammar(LikeGrammar):
    """Statements about tables, views and indexes."""

    def table_statement(self) -> Statement:
        """CREATE, DROP or TRUNCATE."""
        at = self.token.start
        if self.accept("create"):
            return self._create(at)
        if self.accept("drop"):
            return self._drop(at)
        self.expect("truncate")
        return self._truncate()

    def _create(self, at: int) -> CreateTableStatement | CreateViewStatement | CreateIndexStatement:
        replaces = self.accept("or")
        if replaces:
            self.expect("replace")
        self.accept_one_of("global", "local")
        temporary = self.accept_one_of("temp", "temporary") is not None
        if not temporary:
            self.accept("unlogged")
        materialized = not temporary and self.accept("materialized")
        if materialized or self.is_word("view"):
            self.expect("view")
            view = self._create_view(at, materialized=materialized)
            return replace(view, replace=replaces, temporary=temporary)
        if self.accept("recursive", "view"):
            return replace(self._create_recursive_view(at), replace=replaces, temporary=temporary)
        if not replaces and self.accept("table"):
            return self._create_table(at, temporary)
        unique = self.accept("unique")
        if not (replaces or temporary) and self.accept("index"):
            return self.create_index(at, unique=unique)
        if unique:
            raise self.error()
        raise self._other_object("CREATE", at)

    def _other_object(self, verb: str, at: int) -> SqlError:
        """0A000 for an object that PostgreSQL has, else 42601."""
        if self.is_one_of(*_OTHER_OBJECTS):
            return SqlError("0A000", f"{verb} {self.token.value.upper()} is not supported", position=at + 1)
        return self.error()

    def _create_view(self, at: int, *, materialized: bool) -> CreateViewStatement:
        exists = materialized and self.accept("if", "not", "exists")
        table = self.table_name()
        if self.is_symbol("("):
            table = replace(table, columns=self.enclosed(self.name))
        if not materialized:
            return self._create_plain_view(table, at)
        options = ViewOptions()
        retain = self._storage_options(options)
        self.expect("as")
        start = self.token.start
        query = self.query()
        text, parts = self.source(start, self.index), options.wanted
        self._with_data()
        return CreateViewStatement(
            table, query, text, start, True, False, exists, retain, at, hydrate=options.hydrate, parts=parts
        )

    def _create_plain_view(self, table: TableName, at: int) -> CreateViewStatement:
        retains = self.is_word("with") and self.ahead(2).value == "retain"
        retain = self._storage_options() if retains else None
        options = self.view_options() if self.accept("with") else ()
        self.expect("as")
        start = self.token.start
        query = self.query()
        text = self.source(start, self.index)
        options = (*options, *self.check_option())
        return CreateViewStatement(table, query, text, start, False, False, False, retain, at, options=options)

    def _create_recursive_view(self, at: int) -> CreateViewStatement:
        """``name (column, …) AS query``: a view of all rows of a recursive query of its own name (view.sgml)."""
        table = self.table_name()
        columns = self.enclosed(self.name)
        options = self.view_options() if self.accept("with") else ()
        self.expect("as")
        start = self.token.start
        query = self.query()
        shown = ", ".join(map(quoted, columns))
        before = f"WITH RECURSIVE {quoted(table.name)} ({shown}) AS ("
        text = f"{before}{self.source(start, self.index)}) SELECT {shown} FROM {quoted(table.name)}"
        option = self.token
        if self.check_option():
            message = "WITH CHECK OPTION not supported on recursive views"
            raise SqlError("0A000", message, position=option.start + 1)
        with_ = With(True, (Cte(table.name, columns, query, start),), start)
        targets = tuple(Target(Name((column,), start), None, start) for column in columns)
        whole = Select(targets, (TableName(None, table.name, start),), None, None, None, None, start)
        return CreateViewStatement(
            table, Query(whole, start, with_), text, start - len(before), False, False, False, None, at, options=options
        )

    def _with_data(self) -> bool:
        """WITH [NO] DATA; whether there shall be data."""
        if not self.accept("with"):
            return True
        without = self.accept("no")
        self.expect("data")
        return not without

    def _storage_options(self, options: ViewOptions | None = None) -> str | None:
        """``WITH (RETAIN HISTORY [=] [FOR] '1 hour', …)``: the history to retain.

        ``options`` takes ``HYDRATE = spark``, ``MAINTAIN = spark`` and ``PARTITIONS = n``, None where these may not
        stand. PostgreSQL's own storage parameters are ignored.
        """
        if self.accept("without", "oids") or not self.accept("with"):
            return None
        retain: str | None = None
        self.expect_symbol("(")
        while True:
            if self.accept("retain", "history"):
                self.accept_symbol("=")
                self.accept("for")
                retain = self.string()
            elif options is not None and self.accept("hydrate"):
                options.hydrate = self._one_of("HYDRATE", "auto", "spark", "local")
            elif options is not None and self.accept("maintain"):
                options.spark = self._one_of("MAINTAIN", "spark", "local") == "spark"
            elif options is not None and self.accept("partitions"):
                options.parts = self._partitions()
            else:
                self._storage_parameter()
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return retain

    def _one_of(self, option: str, *values: str) -> str:
        self.accept_symbol("=")
        token = self.token
        given = (self.string() if token.kind is TokenKind.STRING else self.label()).lower()
        if given not in values:
            hint = f"Write {', '.join(values[:-1])} or {values[-1]}."
            raise SqlError("22023", f'invalid value for {option}: "{given}"', hint=hint, position=token.start + 1)
        return given

    def _partitions(self) -> int:
        self.accept_symbol("=")
        token = self.token
        if token.kind is not TokenKind.NUMBER:
            raise self.error()
        self.index += 1
        if not token.value.isdigit() or not 1 <= int(token.value) <= MOST_PARTS:
            raise SqlError("22023", f"PARTITIONS must be between 1 and {MOST_PARTS}", position=token.start + 1)
        return int(token.value)

    def _storage_parameter(self) -> None:
        token = self.token
        name = self.dotted()[0]
        if name not in _STORAGE_PARAMETERS and not name.startswith("auto"):
            raise self.refusal(f'option "{name}"', token)
        if self.accept_symbol("="):
            if self.at_end():
                raise self.error()
            self.index += 1

    def _create_table(self, at: int, temporary: bool) -> CreateTableStatement:
        exists = self.accept("if", "not", "exists")
        table = self.table_name()
        if self.is_word("of"):
            raise self.refusal("CREATE TABLE … OF")
        parents: tuple[TableName, ...] = (self.table_name(),) if self.accept("partition", "of") else ()
        partition = bool(parents)
        columns: tuple[ColumnDefinition, ...] = ()
        constraints: tuple[Constraint, ...] = ()
        likes: list[LikeClause] = []
        listed = partition
        if not partition and self._is_column_list():
            table = replace(table, columns=self.enclosed(self.name))
        elif self.is_symbol("("):
            columns, constraints = self._table_elements(table.name, None if partition else likes)
            listed = True
        elif not partition and not self.is_one_of("as", "with", "on"):
            raise self.error()
        bound: WrittenBound | None = self.partition_bound() if partition else None
        if listed and not partition:
            parents = self._inherits()
        partitioning: Partitioning | None = self.partition_by() if listed else None
        if self.is_one_of("partition", "using", "tablespace"):
            raise self.refusal(self.token.value.upper())
        retain = self._storage_options()
        on_commit = self._on_commit(temporary)
        source, data = (None, True) if listed else self._table_source()
        return CreateTableStatement(
            table, columns, constraints, exists, retain, source, not data, at, temporary, on_commit, parents, bound,
            partitioning, tuple(likes),
        )  # fmt: skip

    def _table_source(self) -> tuple[Query, bool]:
        """``AS query [WITH [NO] DATA]``."""
        self.expect("as")
        if self.is_word("execute"):
            raise self.refusal("CREATE TABLE AS EXECUTE")
        source = self.query()
        return source, self._with_data()

    def _inherits(self) -> tuple[TableName, ...]:
        """``INHERITS (table, …)``, if it is next."""
        return self.enclosed(self.table_name) if self.accept("inherits") else ()

    def _on_commit(self, temporary: bool) -> OnCommit:
        """``ON COMMIT {PRESERVE ROWS | DELETE ROWS | DROP}``"""
        if not self.accept("on", "commit"):
            return "preserve"
        if not temporary:
            raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
        if self.accept("drop"):
            return "drop"
        if self.accept("delete", "rows"):
            return "delete"
        self.expect("preserve", "rows")
        return "preserve"

    def _is_column_list(self) -> bool:
        """``(a, b)``: names alone, as CREATE TABLE AS has them."""
        ahead = 1
        while self.is_symbol("(") and self.ahead(ahead).kind in _WORDS:
            if self.is_symbol(")", ahead + 1):
                return True
            if not self.is_symbol(",", ahead + 1):
                return False
            ahead += 2
        return False

    def _table_elements(
        self, table: str, likes: list[LikeClause] | None
    ) -> tuple[tuple[ColumnDefinition, ...], tuple[Constraint, ...]]:
        """The columns, and all constraints in the order of the text. ``likes`` takes the LIKE clauses; None for a
        partition, which has neither these nor columns' types."""
        columns: list[ColumnDefinition] = []
        constraints: list[Constraint] = []
        self.expect_symbol("(")
        while columns or constraints or likes or not self.is_symbol(")"):
            if likes is not None and self.is_word("like"):
                likes.append(self.like_clause(len(columns)))
            elif (constraint := self.constraint_if_next()) is not None:
                constraints.append(constraint)
            else:
                columns.append(self.partition_column(table) if likes is None else self.column_definition(table))
                constraints += columns[-1].constraints
            if not self.accept_symbol(","):
                break
        self.expect_symbol(")")
        return tuple(columns), tuple(constraints)

    def _drop(self, at: int) -> DropStatement:
        if self.accept("materialized"):
            self.expect("view")
            kind = "materialized view"
        else:
            found = self.accept_one_of("sequence", "source", "sink", "table", "view", "index")
            if found is None:
                raise self._other_object("DROP", at)
            kind = found
        if kind == "index":
            self.accept("concurrently")
        exists = self.accept("if", "exists")
        return DropStatement(kind, self.listed(self.table_name), exists, self.cascade())

    def _truncate(self) -> TruncateStatement:
        self.accept("table")
        names = self.listed(lambda: self.only_table(self.accept("only")))
        restart = not self.accept("continue", "identity") and self.accept("restart", "identity")
        return TruncateStatement(names, restart, self.cascade())
