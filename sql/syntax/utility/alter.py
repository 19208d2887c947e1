"""ALTER TABLE, VIEW, MATERIALIZED VIEW and INDEX."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from sql.catalog.sequence_options import SequenceOptions
from sql.statements.definitions import (
    AlterConstraint,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    SetIdentity,
    SetNotNull,
    Unchanged,
    Validate,
)  # fmt: skip
from sql.statements.partitions import Attach, Detach
from sql.syntax.grammar.sequences import sequence_option
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes import alter as nodes_alter
from sql.syntax.nodes.queries import TableName
from sql.syntax.nodes.statements import Utility
from sql.syntax.utility.policies import row_security
from sql.syntax.utility.renaming import renaming
from sql.syntax.utility.schemas import SchemaGrammar
from sql.syntax.utility.triggers import enabling

_KINDS = ("table", "view", "materialized view", "index")
_ATTACHMENTS = ("attach partition", "detach partition", "inherit", "no inherit")
_HARMLESS = (
    ("set", "without", "cluster"), ("set", "without", "oids"), ("set", "logged"), ("set", "unlogged"),
    ("replica", "identity", "full"), ("replica", "identity", "nothing"), ("replica", "identity", "default"),
)  # fmt: skip
_SEQUENCE_WORDS = (
    "generated", "increment", "minvalue", "maxvalue", "no", "start", "restart", "cache", "cycle", "sequence",
)  # fmt: skip
_OTHER_CONSTRAINTS = ("check", "unique", "foreign", "exclude")


class AlterGrammar(SchemaGrammar):
    """ALTER of tables, views and indexes."""

    def alter(self) -> nodes_alter.AlterTableStatement | Utility:
        """Raises 0A000 for objects that cannot be altered and for changes that are not supported."""
        start = self.advance().start
        kind = next((k for k in _KINDS if self.accept(*k.split())), None)
        if kind is None:
            raise unsupported(f"ALTER {self.token.value.upper()}", position=start + 1)
        if self.is_word("all", "in"):
            raise unsupported(f"ALTER {kind.upper()} ALL", position=start + 1)
        if_exists = self.accept("if", "exists")
        at = self.token.start
        table = self.only_table(self.accept("only"))
        renamed = renaming(self, kind, table, if_exists)
        if renamed is not None:
            return Utility(renamed)
        if kind == "view" and self.is_one_of("set", "reset", "alter"):
            return nodes_alter.AlterTableStatement(table, if_exists, (self._view_change(),), at)
        if kind != "table":
            if self.at_end():
                raise self.error()
            raise unsupported(f"ALTER {kind.upper()} … {self.token.value.upper()}", position=start + 1)
        if (attached := self._attachment(table)) is not None:
            return Utility(attached)
        if (enabled := enabling(self, table, if_exists)) is not None:
            return Utility(enabled)
        if kind == "table" and (security := row_security(self, table, if_exists)) is not None:
            return Utility(security)
        return nodes_alter.AlterTableStatement(table, if_exists, self.listed(self._change), at, table.only)

    def _view_change(self) -> nodes_alter.Change:
        if self.accept("set"):
            return nodes_alter.SetOptions(self.view_options())
        if self.accept("reset"):
            return nodes_alter.SetOptions(reset=self.enclosed(self.label))
        self.expect("alter")
        self.accept("column")
        change = self._column_change(self.name())
        if not isinstance(change, nodes_alter.SetDefault):
            raise self.error()
        return change

    def _attachment(self, table: TableName) -> Attach | Detach | None:
        """ATTACH or DETACH PARTITION, INHERIT or NO INHERIT, if one is next."""
        own = (table.schema_name, table.name)
        kind = next((k for k in _ATTACHMENTS if self.accept(*k.split())), None)
        if kind is None:
            return None
        other = self.table_name()
        named = (other.schema_name, other.name)
        match kind:
            case "attach partition":
                return Attach(own, named, self.partition_bound())
            case "detach partition":
                if self.is_word("concurrently") or self.is_word("finalize"):
                    raise unsupported("DETACH PARTITION CONCURRENTLY", position=self.token.start + 1)
                return Detach(own, named, True)
            case "inherit":
                return Attach(named, own, None)
            case _:
                return Detach(named, own, False)

    def _change(self) -> nodes_alter.Change:
        start = self.token
        if self.accept("add"):
            return self._add()
        if self.accept("drop"):
            if self.accept("constraint"):
                if_exists = self.accept("if", "exists")
                name = self.name()
                self.cascade()
                return DropConstraint(name, if_exists)
            self.accept("column")
            if_exists = self.accept("if", "exists")
            name = self.name()
            return DropColumn(name, if_exists, self.cascade())
        if self.accept("alter", "constraint"):
            return self._alter_constraint()
        if self.accept("alter"):
            self.accept("column")
            return self._column_change(self.name())
        if self.accept("validate", "constraint"):
            return Validate(self.name())
        if self._harmless():
            return Unchanged()
        if self.at_end():
            raise self.error()
        raise unsupported(f"ALTER TABLE … {start.value.upper()}", position=start.start + 1)

    def _alter_constraint(self) -> AlterConstraint:
        """``name [[NOT] DEFERRABLE] [INITIALLY {DEFERRED | IMMEDIATE}]``."""
        name = self.name()
        never, deferrable, deferred = False, False, False
        while not (self.at_end() or self.is_symbol(",")):
            at = self.token.start
            if self.accept("not", "deferrable"):
                never = True
            elif self.accept("initially", "deferred"):
                deferrable = deferred = True
            elif self.accept("deferrable"):
                deferrable = True
            else:
                self.expect("initially", "immediate")
            if never and deferred:
                raise SqlError("42601", "constraint declared INITIALLY DEFERRED must be DEFERRABLE", position=at + 1)
        return AlterConstraint(name, deferrable and not never, deferred)

    def _harmless(self) -> bool:
        """What tells PostgreSQL how to store or to reread a table, and has no meaning here."""
        if self.is_one_of("set", "reset") and self.is_symbol("(", 1):
            self.index += 1
            self.enclosed(self._index_option)
            return True
        if self.accept("cluster", "on") or (self.is_word("replica", "identity", "using") and self._past(4)):
            self.name()
            return True
        return any(self.accept(*words) for words in _HARMLESS)

    def _past(self, count: int) -> bool:
        self.index += count
        return True

    def _add(self) -> nodes_alter.Change:
        at = self.token.start
        place = self.ahead(2) if self.is_word("constraint") else self.token
        if place.value in _OTHER_CONSTRAINTS and place.kind is TokenKind.WORD:
            return nodes_alter.AddConstraint(self.constraint())
        name = self.name() if self.accept("constraint") else None
        if self.accept("primary", "key"):
            if self.is_word("using"):
                raise unsupported("PRIMARY KEY USING INDEX", position=at + 1)
            return nodes_alter.AddPrimaryKey(name, self.names(), at)
        if name is not None:
            raise self.error()
        self.accept("column")
        if_not_exists = self.accept("if", "not", "exists")
        return nodes_alter.AddColumn(self.column_definition(), if_not_exists)

    def _column_change(self, column: str) -> nodes_alter.Change:
        at = self.token.start
        if self.accept("set", "default"):
            return nodes_alter.SetDefault(column, self.changed_default())
        if self.accept("drop", "default"):
            return nodes_alter.SetDefault(column, None)
        if self.accept("set", "not", "null"):
            return SetNotNull(column, True)
        if self.accept("drop", "expression"):
            return DropExpression(column, self.accept("if", "exists"))
        if self.accept("drop", "not", "null"):
            return SetNotNull(column, False)
        if self.accept("type") or self.accept("set", "data", "type"):
            type_ = self.type_name()
            if self.is_word("collate"):
                raise unsupported("COLLATE in ALTER TABLE", position=self.token.start + 1)
            return nodes_alter.SetType(column, type_, self.expression() if self.accept("using") else None, at)
        change = self._identity_change(column) or self._storage_change(column)
        if change is not None:
            return change
        words = self.token.value.upper(), self.ahead().value.upper()
        if words[0] in ("SET", "ADD", "DROP", "RESET", "RESTART"):
            raise unsupported(f"ALTER COLUMN … {' '.join(words).strip()}", position=at + 1)
        raise self.error()

    def _storage_change(self, column: str) -> Unchanged | None:
        """SET STORAGE, STATISTICS or COMPRESSION, and options of a column."""
        if self.accept("set", "storage") or self.accept("set", "compression"):
            self.label()
            return Unchanged(column)
        if self.accept("set", "statistics"):
            self.accept_symbol("-")
            self.integer()
            return Unchanged(column)
        if self.is_one_of("set", "reset") and self.is_symbol("(", 1):
            self.index += 1
            self.enclosed(self._index_option)
            return Unchanged(column)
        return None

    def _identity_change(self, column: str) -> SetIdentity | DropIdentity | None:
        """ADD GENERATED … AS IDENTITY, SET GENERATED, SET of a sequence's options, RESTART, DROP IDENTITY."""
        at = self.token.start
        if self.accept("drop", "identity"):
            return DropIdentity(column, self.accept("if", "exists"))
        if self.accept("add", "generated"):
            kind = self._generated_kind()
            self.expect("as")
            _, options, _ = self.identity_options(at, always=kind == "always")
            return SetIdentity(column, kind, options, True)
        if not (self.is_word("restart") or (self.is_word("set") and self.ahead().value in _SEQUENCE_WORDS)):
            return None
        kind_, options = None, SequenceOptions()
        while self.is_one_of("set", "restart"):
            self.accept("set")
            if self.accept("generated"):
                kind_ = self._generated_kind()
            else:
                options = sequence_option(self, options)
        return SetIdentity(column, kind_, options, False)

    def _generated_kind(self) -> str:
        if self.accept("always"):
            return "always"
        self.expect("by", "default")
        return "by default"
