"""INSERT, UPDATE, DELETE, CREATE TABLE and VIEW, DROP, TRUNCATE: sqlglot's nodes by PostgreSQL's grammar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivm.errors import SqlError
from sql.syntax.rules.partitions import PartitionRules

_STORAGE_PARAMETERS: Final = ("fillfactor", "security_barrier", "security_invoker", "oids")


_OTHER_OBJECTS = frozenset(
    """
    access aggregate cast collation conversion database default domain event extension foreign function group
    language large operator owned policy procedural procedure publication role routine rule schema
    sequence server statistics subscription tablespace text transform trigger trusted type user sink
    source secret connection cluster
    """.split()  # noqa: SIM905
)


MOST_PARTS: Final = 10_000
DEFAULT_PARTS: Final = 8


@dataclass(slots=True)
class ViewOptions:
    """What is said of a materialized view: who computes its first contents (``hydrate``), whether Spark maintains it,
    and in how many parts."""

    hydrate: str | None = None
    spark: bool = False
    parts: int | None = None

    @property
    def wanted(self) -> int:
        """The parts; 0 where Spark does not maintain it. 22023: options that do not go together."""
        if self.parts is not None and not self.spark:
            raise SqlError("22023", "PARTITIONS is for views that Spark maintains", hint="Write MAINTAIN = spark too.")
        if self.hydrate is not None and self.spark:
            raise SqlError("22023", "HYDRATE is for views that the server maintains",
                           hint="What Spark maintains it computes from the start.")  # fmt: skip
        return (self.parts or DEFAULT_PARTS) if self.spark else 0


class DataRules(PartitionRules):
    """Statements. ``meta["at"]`` of a statement is its first token's offset, WITH included."""

    def statement(self) -> exp.Expr:
        """What sqlglot parses: a query, DML, or DDL of tables and views."""
        match self._curr.token_type:
            case TokenType.CREATE:
                return self._parse_create()
            case TokenType.DROP:
                return self._parse_drop()
            case TokenType.TRUNCATE:
                return self._parse_truncate_table()
            case _:
                return self.preparable()

    def preparable(self) -> exp.Expr:
        """A query, INSERT, UPDATE or DELETE, with its WITH."""
        token = self._curr
        start = self._index
        with_ = self._parse_with()
        node: exp.Expr
        match self._curr.token_type:
            case TokenType.INSERT:
                node = self._parse_insert()
            case TokenType.UPDATE:
                node = self._parse_update()
            case TokenType.DELETE:
                node = self._parse_delete()
            case TokenType.SELECT | TokenType.VALUES | TokenType.TABLE | TokenType.L_PAREN:
                if with_ is None:
                    return self.query()
                node = self.query()
                node.meta["query_at"] = token.start
            case _:
                if with_ is not None and self._index == start:
                    self._retreat(start)
                raise self.syntax_error()
        node.set("with_", with_)
        return self.located(node, token)

    def _target_table(self) -> exp.Table:
        table = self.only_table(bool(self._match(TokenType.ONLY)))
        if self._match(TokenType.ALIAS) or self._curr.token_type in self.UPDATE_ALIAS_TOKENS:
            table.set("alias", exp.TableAlias(this=self.identifier()))
        return table

    def _parse_returning(self) -> exp.Returning | None:
        return exp.Returning(expressions=self.targets()) if self._match(TokenType.RETURNING) else None

    def _parse_insert(self) -> exp.Insert:
        self.expect(TokenType.INSERT)
        self.expect(TokenType.INTO)
        table = self._parse_table_parts()
        if self._match(TokenType.ALIAS):
            table.set("alias", exp.TableAlias(this=self.identifier()))
        columns = None
        if self._curr.token_type == TokenType.L_PAREN and not self.starts_query(1):
            columns = self._insert_columns()
        overriding = self._overriding()
        default = self._curr.token_type == TokenType.DEFAULT
        if default:
            self._advance()
            self.expect(TokenType.VALUES)
        source = None if default else self.query()
        node = exp.Insert(
            this=exp.Schema(this=table, expressions=columns), expression=source, default=default,
            conflict=self._parse_on_conflict(), returning=self._parse_returning(),
        )  # fmt: skip
        node.meta["overriding"] = overriding
        return node

    def _overriding(self) -> str | None:
        """``OVERRIDING {SYSTEM | USER} VALUE``."""
        if not self.accept_word("overriding"):
            return None
        for word in ("system", "user"):
            if self.accept_word(word):
                self.expect_word("value")
                return word
        raise self.syntax_error()

    def _insert_columns(self) -> list[exp.Identifier]:
        self.expect(TokenType.L_PAREN)
        columns = self._parse_csv(self._assigned_column)
        self.expect(TokenType.R_PAREN)
        return columns

    def _assigned_column(self) -> exp.Identifier:
        column = self.identifier()
        if self._curr.token_type in (TokenType.L_BRACKET, TokenType.DOT):
            raise self.refusal("assignment to a part of a column")
        return column

    def _parse_on_conflict(self) -> exp.OnConflict | None:
        token = self._curr
        if not self._match(TokenType.ON):
            return None
        self.expect_word("conflict")
        keys: list[exp.Identifier] = []
        constraint: exp.Identifier | None = None
        if self._curr.token_type == TokenType.L_PAREN:
            keys = self._conflict_target()
        elif self.accept_word("on", "constraint"):
            constraint = self.identifier()
        self.expect_word("do")
        node = exp.OnConflict(conflict_keys=keys, constraint=constraint)
        if not self.accept_word("nothing"):
            self.expect(TokenType.UPDATE)
            self.expect(TokenType.SET)
            node.set("expressions", self._parse_csv(self._parse_update_assignment))
            node.set("where", self._parse_where())
        return self.located(node, token)

    def _conflict_target(self) -> list[exp.Identifier]:
        """``(a, b)``. Anything richer than names is refused."""
        self._advance()
        found: list[exp.Identifier] = []
        while True:
            token = self._curr
            found.append(self.identifier() if token.token_type in self.ID_VAR_TOKENS else self._no_column())
            if self._match(TokenType.R_PAREN):
                break
            if not self._match(TokenType.COMMA):
                raise self.refusal("ON CONFLICT with an expression, a collation or an operator class", token)
        if self._curr.token_type == TokenType.WHERE:
            raise self.refusal("ON CONFLICT with a partial index")
        return found

    def _no_column(self) -> exp.Identifier:
        if self._curr.token_type == TokenType.L_PAREN:
            raise self.refusal("ON CONFLICT with an expression")
        raise self.syntax_error()

    def _parse_update(self) -> exp.Update:
        self.expect(TokenType.UPDATE)
        table = self._target_table()
        self.expect(TokenType.SET)
        assignments = self._parse_csv(self._parse_update_assignment)
        from_ = self.from_items() if self._match(TokenType.FROM) else None
        return exp.Update(
            this=table, expressions=assignments, from_=from_ and exp.From(this=from_), where=self._parse_where(),
            returning=self._parse_returning(),
        )  # fmt: skip

    def _parse_where(self, skip_where_token: bool = False) -> exp.Where | None:
        if not self._match(TokenType.WHERE):
            return None
        if self.is_word("current", "of"):
            raise self.refusal("WHERE CURRENT OF")
        return exp.Where(this=self._parse_disjunction())

    def _parse_update_assignment(self) -> exp.EQ:
        if self._curr.token_type == TokenType.L_PAREN:
            columns = exp.Tuple(expressions=self.identifiers())
            self.expect(TokenType.EQ)
            return exp.EQ(this=columns, expression=self._row_source())
        column = self._assigned_column()
        self.expect(TokenType.EQ)
        return exp.EQ(this=column, expression=self.value_or_default())

    def _row_source(self) -> exp.Expr:
        token = self._curr
        if token.token_type == TokenType.L_PAREN and self.starts_query(1):
            node = self._parse_paren()
            if isinstance(node, exp.Subquery):
                return node
            return node if isinstance(node, exp.Tuple) else self.located(exp.Tuple(expressions=[node]), token)
        row = self.accept_word("row")
        if self._curr.token_type != TokenType.L_PAREN:
            return self._parse_disjunction()
        value = self.located(self._parse_value(), token)
        single = value.expressions[0] if len(value.expressions) == 1 and not row else None
        if isinstance(single, exp.Star) or (isinstance(single, exp.Column) and isinstance(single.this, exp.Star)):
            return self.located(exp.Paren(this=single), token)
        return value

    def _parse_delete(self) -> exp.Delete:
        self.expect(TokenType.DELETE)
        self.expect(TokenType.FROM)
        table = self._target_table()
        using = [self.from_items()] if self._match(TokenType.USING) else None
        return exp.Delete(this=table, using=using, where=self._parse_where(), returning=self._parse_returning())

    def _parse_create(self) -> exp.Create:
        token = self._curr
        self.expect(TokenType.CREATE)
        replace = self._match(TokenType.OR)
        if replace:
            self.expect(TokenType.REPLACE)
        if self.is_word("global") or self.is_word("local"):
            self._advance()
        temporary = self._match(TokenType.TEMPORARY)
        if not temporary:
            self.accept_word("unlogged")
        if not temporary and self.accept_word("materialized"):
            self.expect(TokenType.VIEW)
            return self.located(self._create_view(replace, materialized=True), token)
        if self._match(TokenType.VIEW):
            return self.located(self._create_view(replace, materialized=False, temporary=temporary), token)
        if self.is_word("recursive", "view"):
            raise self.refusal("CREATE RECURSIVE VIEW", token)
        if self._curr.token_type == TokenType.TABLE and not replace:
            self._advance()
            return self.located(self._create_table(temporary), token)
        unique = bool(self._match(TokenType.UNIQUE))
        if self.is_word("index") and not (replace or temporary):
            self._advance()
            return self.located(self.create_index(unique), token)
        if unique:
            raise self.syntax_error()
        if self._curr.text in _OTHER_OBJECTS and self.is_word(self._curr.text):
            raise self.refusal(f"CREATE {self._curr.text.upper()}", token)
        raise self.syntax_error()

    def _create_view(self, replace: bool, *, materialized: bool, temporary: bool = False) -> exp.Create:
        exists = self.accept_word("if", "not", "exists")
        table = self._parse_table_parts()
        columns = self.identifiers() if self._curr.token_type == TokenType.L_PAREN else None
        options = ViewOptions()
        retain = self.storage_options(options if materialized else None)
        self.expect(TokenType.ALIAS)
        start = self._curr.start
        query = self.query()
        create = exp.Create(
            this=exp.Schema(this=table, expressions=columns), kind="VIEW", expression=query, replace=replace,
            exists=exists,
        )  # fmt: skip
        text = self.sql[start : self._prev.end + 1]
        create.meta.update(materialized=materialized, temporary=temporary, retain=retain, text=text, text_at=start)
        create.meta.update(hydrate=options.hydrate, parts=options.wanted)
        self._with_data()
        return create

    def _with_data(self) -> bool:
        """WITH [NO] DATA; whether there shall be data."""
        token = self._curr
        if not self._match(TokenType.WITH):
            return True
        if any(self.is_word(word) for word in ("check", "cascaded", "local")):
            raise self.refusal("WITH CHECK OPTION", token)
        without = self.accept_word("no")
        self.expect_word("data")
        return not without
        if any(self.is_word("with", word) for word in ("check", "cascaded", "local")):
            raise self.refusal("WITH CHECK OPTION")
        return True

    def storage_options(self, options: ViewOptions | None = None) -> str | None:
        """``WITH (RETAIN HISTORY [=] [FOR] '1 hour')``; PostgreSQL's own storage parameters are read and ignored.
        ``options``: takes ``HYDRATE = spark``, ``MAINTAIN = spark`` and ``PARTITIONS = n``, where they may stand."""
        if self.accept_word("without", "oids") or not self._match(TokenType.WITH):
            return None
        retain: str | None = None
        self.expect(TokenType.L_PAREN)
        while True:
            if self.accept_word("retain", "history"):
                self._match(TokenType.EQ)
                self._match(TokenType.FOR)
                if self._curr.token_type != TokenType.STRING:
                    raise self.syntax_error()
                retain = self._curr.text
                self._advance()
            elif options is not None and self.accept_word("hydrate"):
                options.hydrate = self._one_of("HYDRATE", "auto", "spark", "local")
            elif options is not None and self.accept_word("maintain"):
                options.spark = self._one_of("MAINTAIN", "spark", "local") == "spark"
            elif options is not None and self.accept_word("partitions"):
                options.parts = self._partitions()
            else:
                self._storage_parameter()
            if not self._match(TokenType.COMMA):
                break
        self.expect(TokenType.R_PAREN)
        return retain

    def _one_of(self, option: str, *values: str) -> str:
        self._match(TokenType.EQ)
        token = self._curr
        given = token.text.lower() if token.token_type == TokenType.STRING else self.label().name.lower()
        if token.token_type == TokenType.STRING:
            self._advance()
        if given not in values:
            hint = f"Write {', '.join(values[:-1])} or {values[-1]}."
            raise SqlError("22023", f'invalid value for {option}: "{given}"', hint=hint, position=token.start + 1)
        return given

    def _partitions(self) -> int:
        self._match(TokenType.EQ)
        token = self._curr
        if token.token_type != TokenType.NUMBER:
            raise self.syntax_error()
        self._advance()
        if not token.text.isdigit() or not 1 <= int(token.text) <= MOST_PARTS:
            raise SqlError("22023", f"PARTITIONS must be between 1 and {MOST_PARTS}", position=token.start + 1)
        return int(token.text)

    def _storage_parameter(self) -> None:
        token = self._curr
        name = self.label().name
        while self._match(TokenType.DOT):
            self.label()
        if name not in _STORAGE_PARAMETERS and not name.startswith("auto"):
            raise self.refusal(f'option "{name}"', token)
        if self._match(TokenType.EQ):
            if self.at_end():
                raise self.syntax_error()
            self._advance()

    def _create_table(self, temporary: bool) -> exp.Create:
        exists = self.accept_word("if", "not", "exists")
        table = self._parse_table_parts()
        if self.is_word("of"):
            raise self.refusal("CREATE TABLE … OF")
        parent = self._parse_table_parts() if self.accept_word("partition", "of") else None
        names: list[exp.Identifier] | None = None
        elements: list[exp.Expr] = []
        listed = False
        if self._curr.token_type == TokenType.L_PAREN:
            if self._is_column_list():
                names = self.identifiers()
            else:
                elements, listed = self._table_elements(), True
        elif parent is not None:
            listed = True
        elif self._curr.token_type not in (TokenType.ALIAS, TokenType.WITH, TokenType.ON):
            raise self.syntax_error()
        bound = None if parent is None else self.partition_bound()
        inherits = self._inherits() if listed and parent is None else []
        partitioning = self.partition_by() if listed else None
        for word in ("partition", "using", "tablespace"):
            if self.is_word(word):
                raise self.refusal(word.split()[0].upper())
        retain = self.storage_options()
        goes = self._on_commit(temporary)
        source: exp.Expr | None = None
        data = True
        if not listed and self._curr.token_type != TokenType.ALIAS:
            raise self.syntax_error()
        if not listed and self._match(TokenType.ALIAS):
            if self.is_word("execute"):
                raise self.refusal("CREATE TABLE AS EXECUTE")
            source = self.query()
            data = self._with_data()
        create = exp.Create(
            this=exp.Schema(this=table, expressions=names or elements), kind="TABLE", expression=source,
            exists=exists,
        )  # fmt: skip
        create.meta.update(temporary=temporary, retain=retain, no_data=not data, names=names is not None, goes=goes)
        create.meta.update(inherits=inherits if parent is None else [parent], bound=bound, partitioning=partitioning)
        return create

    def _inherits(self) -> list[exp.Table]:
        """``INHERITS (table, …)``, if it is next."""
        if not self.accept_word("inherits"):
            return []
        self.expect(TokenType.L_PAREN)
        parents: list[exp.Table] = self._parse_csv(self._parse_table_parts)
        self.expect(TokenType.R_PAREN)
        return parents

    def _on_commit(self, temporary: bool) -> bool:
        """ON COMMIT; whether it says DROP."""
        if not self.is_word("on", "commit"):
            return False
        if not temporary:
            raise SqlError("42P16", "ON COMMIT can only be used on temporary tables")
        if self.is_word("on", "commit", "delete"):
            raise self.refusal("ON COMMIT DELETE ROWS")
        if self.accept_word("on", "commit", "drop"):
            return True
        if not self.accept_word("on", "commit", "preserve", "rows"):
            raise self.syntax_error()
        return False

    def _is_column_list(self) -> bool:
        """``(a, b) AS``: names alone, as CREATE TABLE AS has them."""
        ahead = 1
        while self.ahead(ahead).token_type not in self.RESERVED_TOKENS:
            if self.ahead(ahead + 1).token_type == TokenType.R_PAREN:
                return True
            if self.ahead(ahead + 1).token_type != TokenType.COMMA:
                return False
            ahead += 2
        return False

    def _table_elements(self) -> list[exp.Expr]:
        self.expect(TokenType.L_PAREN)
        elements: list[exp.Expr] = []
        if self._curr.token_type != TokenType.R_PAREN:
            elements = self._parse_csv(self._parse_field_def)
        self.expect(TokenType.R_PAREN)
        return elements

    def _parse_field_def(self) -> exp.Expr:
        """A column, or a table constraint."""
        if self._curr.token_type == TokenType.LIKE:
            raise self.refusal("LIKE in CREATE TABLE")
        return self.table_constraint() or self.column_definition()

    def column_definition(self) -> exp.ColumnDef:
        """A column's name, type and constraints."""
        token = self._curr
        name = self.identifier()
        type_ = self._parse_types()
        constraints: list[exp.Expr] = []
        while not self.at_end() and self._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN):
            constraint = self._column_constraint()
            if constraint is not None:
                constraints.append(constraint)
        return self.located(exp.ColumnDef(this=name, kind=type_, constraints=constraints), token)

    def _column_constraint(self) -> exp.Expr | None:
        token = self._curr
        name = self.constraint_name()
        if self._match(TokenType.NOT):
            self.expect(TokenType.NULL)
            return exp.NotNullColumnConstraint()
        if self._match(TokenType.NULL):
            return None
        keyed = self.keyed_constraint(name, token)
        if keyed is not None:
            return keyed
        self.refuse_half("primary")
        if self._match(TokenType.DEFAULT):
            return self.default()
        if self._match(TokenType.COLLATE):
            collation = self.dotted().expressions[-1].name
            if collation not in ("default", "C", "POSIX", "ucs_basic"):
                raise self.refusal(f'collation "{collation}"', token)
            return None
        if self.accept_word("generated"):
            return self._identity(token)
        raise self.syntax_error()

    def _identity(self, token: Token) -> exp.GeneratedAsIdentityColumnConstraint:
        """``{ALWAYS | BY DEFAULT} AS IDENTITY [(options)]``; the options stay text."""
        always = self.accept_word("always")
        if not always:
            self.expect_word("by", "default")
        self.expect_word("as")
        if not self.accept_word("identity"):
            if self._curr.token_type == TokenType.L_PAREN:
                raise self.refusal("generated columns", token)
            raise self.syntax_error()
        node = self.located(exp.GeneratedAsIdentityColumnConstraint(this=always), token)
        start = self._curr.end + 1
        if self._match(TokenType.L_PAREN):
            while self._curr.token_type != TokenType.R_PAREN:
                if self.at_end():
                    raise self.syntax_error()
                self._advance()
            node.meta.update(options=self.sql[start : self._curr.start], options_at=start)
            self._advance()
        return node

    def default(self) -> exp.DefaultColumnConstraint:
        """An expression after DEFAULT, with its text in ``meta``."""
        start = self._curr.start
        default = exp.DefaultColumnConstraint(this=self.restricted())
        default.meta["text"] = self.sql[start : self._prev.end + 1]
        return default

    def _parse_drop(self, exists: bool = False, kind: str | None = None) -> exp.Drop:
        token = self._curr
        self.expect(TokenType.DROP)
        if self.accept_word("materialized"):
            self.expect(TokenType.VIEW)
            kind = "materialized view"
        elif self.accept_word("sequence"):
            kind = "sequence"
        elif self.is_word("source") or self.is_word("sink"):
            kind = self._curr.text.lower()
            self._advance()
        elif self._match_set((TokenType.TABLE, TokenType.VIEW)):
            kind = str(self._prev.text)
        elif self.accept_word("index"):
            kind = "index"
            self.accept_word("concurrently")
        elif self._curr.text in _OTHER_OBJECTS and self.is_word(self._curr.text):
            raise self.refusal(f"DROP {self._curr.text.upper()}", token)
        else:
            raise self.syntax_error()
        exists = self.accept_word("if", "exists")
        names = self._parse_csv(self._parse_table_parts)
        cascade = self.accept_word("cascade")
        if not cascade:
            self.accept_word("restrict")
        return exp.Drop(tables=names, kind=kind, exists=exists, cascade=cascade)

    def _parse_truncate_table(self) -> exp.TruncateTable:
        self.expect(TokenType.TRUNCATE)
        self._match(TokenType.TABLE)
        only = bool(self._match(TokenType.ONLY))
        names = self._parse_csv(lambda: self.only_table(only))
        restart = not self.accept_word("continue", "identity") and self.accept_word("restart", "identity")
        cascade = not self.accept_word("restrict") and self.accept_word("cascade")
        node = exp.TruncateTable(expressions=names)
        node.meta.update(restart=restart, cascade=cascade)
        return node


__all__ = ["DataRules", "Token"]
