"""Statements: the choice of a grammar by the first words, and the utility statements without a module of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ivm.errors import SqlError, unsupported
from planner.identifiers import quoted
from sql.statements import statements as bound
from sql.statements.statements import ExplainOptions
from sql.statements.vacuum import Vacuum
from sql.syntax.dialect import statement
from sql.syntax.grammar.cursor import Into
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.lexing.lexer import Token, TokenKind
from sql.syntax.nodes import statements as nodes_statements
from sql.syntax.nodes.queries import Expr, Query, Select, SetQuery
from sql.syntax.utility.alter import AlterGrammar
from sql.syntax.utility.care import care_statement
from sql.syntax.utility.comments import comment_statement
from sql.syntax.utility.connections import connection_statement
from sql.syntax.utility.databases import database_statement
from sql.syntax.utility.domains import domain_statement
from sql.syntax.utility.explain import explain_option, explain_options
from sql.syntax.utility.extensions import extension_statement
from sql.syntax.utility.grants import default_privileges, grant_statement
from sql.syntax.utility.operators import operator_statement
from sql.syntax.utility.policies import policy_statement
from sql.syntax.utility.roles import reassign_owned, role_statement
from sql.syntax.utility.routine_changes import routine_change
from sql.syntax.utility.routines import call_statement, routine_statement
from sql.syntax.utility.secrets import secret_statement
from sql.syntax.utility.sequences import sequence_statement
from sql.syntax.utility.sinks import sink_statement
from sql.syntax.utility.triggers import trigger_statement
from sql.syntax.utility.types import type_statement
from storage.types.zones import OFFSET_END, fixed_zone, parse_iso_offset

_LISTS: Final = ("datestyle", "search_path", "temp_tablespaces")
"""Settings that are lists."""
_UNSUPPORTED = ("security", "import", "load")
LOCK_MODES: Final = (
    "access share", "row share", "row exclusive", "share update exclusive", "share", "share row exclusive", "exclusive",
    "access exclusive",
)  # fmt: skip
_OWN_GRAMMARS: Final[tuple[Callable[[DefinitionGrammar], bound.Statement | None], ...]] = (
    secret_statement, sink_statement, sequence_statement, connection_statement, default_privileges, extension_statement,
)  # fmt: skip
"""Those that give None if the next statement is another one."""


def _created(statement: nodes_statements.Statement, into: Into) -> nodes_statements.Statement:
    """SELECT INTO as the CREATE TABLE AS that it is. Raises 42601 unless the target is that of the statement's first
    SELECT."""
    first: object = statement
    while isinstance(first, Query | SetQuery):
        first = first.body if isinstance(first, Query) else first.left
    if not isinstance(statement, Query) or not isinstance(first, Select) or first.at != into.select:
        raise SqlError("42601", "SELECT ... INTO is not allowed here", position=into.table.at + 1)
    return nodes_statements.CreateTableStatement(
        into.table, (), (), False, None, statement, False, into.table.at, into.temporary
    )


class StatementGrammar(AlterGrammar):
    """A whole statement."""

    def whole(self) -> nodes_statements.Statement:
        """The statement and nothing after it."""
        self.takes_into = True
        statement = self.statement()
        self.end()
        return statement if self.select_into is None else _created(statement, self.select_into)

    def statement(self) -> nodes_statements.Statement:
        """The statement that starts here."""
        token = self.token
        return statement(self, token.value if token.kind in (TokenKind.WORD, TokenKind.SYMBOL) else "")

    def definition(self) -> nodes_statements.Statement:
        """CREATE, ALTER, DROP or TRUNCATE."""
        if self.starts_schema():
            return self.schema_statement()
        if self.starts_create_from():
            return self.create_from()
        routine = routine_statement(self) or routine_change(self)
        if routine is not None:
            return routine
        own = operator_statement(self) or trigger_statement(self) or policy_statement(self)
        if own is not None:
            return own
        typed = type_statement(self) or domain_statement(self)
        if typed is not None:
            return typed
        database = database_statement(self, lambda: self._utility(self.token.value))
        if database is not None:
            return nodes_statements.Utility(database)
        role = role_statement(self, lambda: self._utility(self.token.value))
        if role is not None:
            return nodes_statements.Utility(role)
        for grammar in _OWN_GRAMMARS:
            found = grammar(self)
            if found is not None:
                return nodes_statements.Utility(found)
        return self.alter() if self.is_word("alter") else self.table_statement()

    def utility(self) -> nodes_statements.Statement:
        """A statement that neither changes rows nor defines anything."""
        word = self.token.value if self.token.kind is TokenKind.WORD else ""
        match word:
            case "comment":
                return comment_statement(self)
            case "grant" | "revoke":
                return grant_statement(self)
            case "reassign":
                return nodes_statements.Utility(reassign_owned(self))
            case "copy":
                return self.copy()
            case "call":
                return call_statement(self)
            case "subscribe":
                return self.subscribe()
            case "explain":
                return self._explain()
            case "verify":
                return self._verify()
            case "prepare" if not self.is_word("prepare", "transaction"):
                return self._prepare()
            case "execute":
                return self._execute()
            case "declare":
                return self._declare()
            case "refresh":
                return self._refresh()
            case "lock":
                return self._lock()
            case _:
                return nodes_statements.Utility(self._utility(word))

    def _utility(self, word: str) -> bound.Statement:
        start = self.token
        match word:
            case "analyze" | "analyse" | "cluster" | "reindex":
                return care_statement(self)
            case "checkpoint":
                self.advance()
                return bound.NoOperation("CHECKPOINT")
            case "vacuum":
                return self._vacuum()
            case "begin" | "start":
                return self._begin()
            case "commit" | "end":
                return bound.Commit(self._finish())
            case "rollback" | "abort":
                return self._rollback()
            case "savepoint" | "release":
                self.advance()
                self.accept("savepoint")
                return bound.Savepoint(word, self.label())
            case "set":
                return self._set()
            case "reset":
                self.advance()
                return bound.SetVariable(self._variable(), None, tag="RESET")
            case "show":
                self.advance()
                return bound.Show(self._variable())
            case "deallocate":
                self.advance()
                self.accept("prepare")
                return bound.Deallocate(None if self.accept("all") else self.label())
            case "fetch" | "move":
                return self._fetch()
            case "close":
                self.advance()
                return bound.Close(None if self.accept("all") else self.label())
            case "listen" | "unlisten":
                self.advance()
                if word == "unlisten" and self.accept_symbol("*"):
                    return bound.Listen(None, stop=True)
                return bound.Listen(self.name(), stop=word == "unlisten")
            case "notify":
                self.advance()
                channel = self.name()
                return bound.Notify(channel, self.string() if self.accept_symbol(",") else "")
            case "do":
                return self._do()
            case "discard":
                self.advance()
                return bound.Discard(self.label())
            case _:
                if self.is_word("prepare", "transaction"):
                    self.advance()
                    self.advance()
                    self.string()
                    return bound.PrepareTransaction()
                if word in _UNSUPPORTED:
                    raise unsupported(word.upper(), position=start.start + 1)
                raise self.error()

    def _do(self) -> bound.Do:
        """DO. Raises 42601, 0A000 for another language."""
        self.advance()
        text = language = None
        while not self.at_end():
            if text is None and self.token.kind is TokenKind.STRING:
                text = self.string()
            elif language is None and self.accept("language"):
                language = self.advance().value.lower()
            else:
                raise self.error()
        if text is None:
            raise SqlError("42601", "no inline code specified")
        if language not in (None, "plpgsql"):
            raise unsupported(f"DO in LANGUAGE {language}", "Write it in LANGUAGE plpgsql.")
        return bound.Do(text)

    def _rest(self) -> list[Token]:
        start = self.index
        self.index = len(self.tokens) - 1
        return self.tokens[start : self.index]

    def _verify(self) -> nodes_statements.Statement:
        self.advance()
        if self.accept("dictionary"):
            return nodes_statements.Utility(bound.VerifyDictionary())
        self.expect("materialized", "view")
        return nodes_statements.VerifyStatement(self.table_name())

    def _vacuum(self) -> Vacuum:
        """VACUUM [FULL] [FREEZE] [VERBOSE] [ANALYZE] [table, …], or VACUUM (option [value], …) …: tables
        and options but FULL are ignored."""
        self.advance()
        first, *others = self._rest() or [self.token]
        words = [token.value for token in (first, *others)]
        if first.value != "(":
            return Vacuum(words[0] == "full" and first.kind is TokenKind.WORD)
        options = words[1 : words.index(")")] if ")" in words else words[1:]
        said = options[options.index("full") + 1 :][:1] if "full" in options else ["off"]
        return Vacuum(said not in (["off"], ["false"], ["0"]))

    def _begin(self) -> bound.Begin:
        if self.accept("start"):
            self.expect("transaction")
            return bound.Begin(self._modes(), "START TRANSACTION")
        self.advance()
        self.accept_one_of("transaction", "work")
        return bound.Begin(self._modes())

    def _modes(self) -> bound.Modes:
        modes = bound.Modes()
        while not self.at_end():
            if self.accept("isolation", "level"):
                modes = replace(modes, isolation=self._isolation())
            elif self.accept("read", "only"):
                modes = replace(modes, read_only=True)
            elif self.accept("read", "write"):
                modes = replace(modes, read_only=False)
            elif self.accept("not", "deferrable"):
                modes = replace(modes, deferrable=False)
            elif self.accept("deferrable"):
                modes = replace(modes, deferrable=True)
            else:
                raise self.error()
            self.accept_symbol(",")
        return modes

    def _isolation(self) -> str:
        for words in (("serializable",), ("repeatable", "read"), ("read", "committed"), ("read", "uncommitted")):
            if self.accept(*words):
                return " ".join(words)
        if self.accept("strict", "serializable"):
            return "serializable"
        raise self.error()

    def _finish(self) -> bool:
        """What follows COMMIT or ROLLBACK; whether AND CHAIN does."""
        self.advance()
        if self.is_word("prepared"):
            raise unsupported("two-phase commit", position=self.token.start + 1)
        self.accept_one_of("transaction", "work")
        if self.accept("and", "no", "chain"):
            return False
        return self.accept("and", "chain")

    def _rollback(self) -> bound.Statement:
        chain = self._finish()
        if not chain and self.accept("to"):
            self.accept("savepoint")
            return bound.Savepoint("rollback", self.label())
        return bound.Rollback(chain)

    def _variable(self) -> str:
        if self.accept("time", "zone"):
            return "timezone"
        if self.accept("transaction", "isolation", "level"):
            return "transaction_isolation"
        if self.accept("session", "authorization"):
            return "session_authorization"
        return ".".join(self.dotted())

    def _set_constraints(self) -> bound.SetConstraints:
        """``{ALL | name, …} {DEFERRED | IMMEDIATE}``."""
        tables = None if self.accept("all") else self.listed(self.table_name)
        names = None if tables is None else tuple((t.schema_name, t.name) for t in tables)
        word = self.accept_one_of("deferred", "immediate")
        if word is None:
            raise self.error()
        return bound.SetConstraints(names, word == "deferred")

    def _set(self) -> bound.Statement:
        self.advance()
        if self.accept("constraints"):
            return self._set_constraints()
        if self.accept("session", "characteristics", "as", "transaction"):
            return bound.SetTransaction(self._modes(), session=True)
        if self.accept("transaction", "snapshot"):
            return bound.ImportSnapshot(self.string())
        if self.accept("transaction"):
            return bound.SetTransaction(self._modes())
        local = self.accept("local")
        if not local and not self.is_word("session", "authorization"):
            self.accept("session")
        if self.accept("time", "zone"):
            return bound.SetVariable("timezone", self._set_value("timezone"), local)
        if self.is_word("schema") and self.ahead().kind is TokenKind.STRING:
            self.advance()
            return bound.SetVariable("search_path", self._set_list(), local)
        if self.is_one_of("role", "names") and not self.is_symbol("=", 1) and self.ahead().value != "to":
            name = self.advance().value
            name = "client_encoding" if name == "names" else name
            return bound.SetVariable(name, self._set_value(name), local)
        name = self._variable()
        if name == "session_authorization" and not self.is_symbol("=") and not self.is_word("to"):
            return bound.SetVariable(name, self._set_value(name), local)
        if not self.accept_symbol("="):
            self.expect("to")
        if name == "search_path":
            return bound.SetVariable(name, self._set_list(), local)
        return bound.SetVariable(name, self._set_value(name), local)

    def _set_list(self) -> str | None:
        """Names, quoted where necessary so that the list can be parsed again."""
        if self.accept("default"):
            return None
        return ", ".join(map(quoted, self.listed(self._one_value)))

    def _set_value(self, name: str) -> str | None:
        if self.accept("default"):
            return None
        values = self.listed(self._one_value)
        if len(values) > 1 and name.lower() not in _LISTS:
            raise SqlError("22023", f"SET {name} takes only one argument")
        return ", ".join(values)

    def _one_value(self) -> str:
        sign = "-" if self.accept_symbol("-") else ""
        token = self.token
        if token.kind in (TokenKind.END, TokenKind.SYMBOL, TokenKind.PARAMETER):
            raise self.error()
        if token.value == "interval" and self.ahead().kind is TokenKind.STRING:
            self.advance()
            offset = parse_iso_offset(self.token.value)
            if offset is None or abs(offset) >= OFFSET_END:
                raise self.error()
            self.advance()
            if self.accept("hour"):
                self.accept("to", "minute")
            return fixed_zone(offset)
        self.advance()
        return sign + token.value

    def _explain(self) -> nodes_statements.ExplainStatement:
        self.advance()
        stage, options = "physical", ExplainOptions()
        if self.is_symbol("(") and not self.starts_query():
            found: dict[str, str | bool] = {}
            self.enclosed(lambda: explain_option(self, found))
            options = explain_options(found)
        elif self.is_one_of("logical", "optimized", "physical", "raw", "decorrelated"):
            word = self.advance().value
            stage = {"raw": "logical", "decorrelated": "optimized"}.get(word, word)
            self.accept("plan")
            self.expect("for")
        else:
            if self.is_one_of("analyze", "analyse"):
                self.advance()
                options = explain_options({"analyze": True})
            else:
                self.accept("plan", "for")
            self.accept("verbose")
        return nodes_statements.ExplainStatement(self.statement(), stage, options)

    def _prepare(self) -> nodes_statements.PrepareStatement:
        self.advance()
        name = self.name()
        types = self.enclosed(self.type_name) if self.is_symbol("(") else ()
        self.expect("as")
        start = self.token.start
        self.statement()
        return nodes_statements.PrepareStatement(name, types, self.source(start, self.index))

    def _execute(self) -> nodes_statements.ExecuteStatement:
        self.advance()
        name = self.name()
        arguments: tuple[Expr, ...] = ()
        if self.accept_symbol("("):
            arguments = self.expressions()
            self.expect_symbol(")")
        return nodes_statements.ExecuteStatement(name, arguments)

    def _declare(self) -> nodes_statements.DeclareStatement:
        self.advance()
        name = self.name()
        scroll: bool | None = None
        binary = False
        while self.is_one_of("binary", "insensitive", "asensitive", "no", "scroll"):
            if self.accept("binary"):
                binary = True
            elif self.accept("no"):
                self.expect("scroll")
                scroll = False
            elif self.accept("scroll"):
                scroll = True
            else:
                self.advance()
        self.expect("cursor")
        hold = self.accept("with", "hold")
        if not hold:
            self.accept("without", "hold")
        self.expect("for")
        statement = self.statement()
        if not isinstance(statement, nodes_statements.SubscribeStatement | Query):
            raise SqlError("42601", "DECLARE CURSOR can only be used with a query", position=1)
        return nodes_statements.DeclareStatement(name, statement, hold, scroll, binary)

    def _fetch(self) -> bound.Fetch:
        move = self.advance().value == "move"
        direction, count = self._direction()
        if not self.accept("from"):
            self.accept("in")
        name = self.label()
        return bound.Fetch(name, count, self._timeout(), move, direction)

    def _direction(self) -> tuple[bound.Direction, int | None]:
        single = {
            "next": (bound.Direction.FORWARD, 1), "prior": (bound.Direction.BACKWARD, 1),
            "first": (bound.Direction.ABSOLUTE, 1), "last": (bound.Direction.ABSOLUTE, -1),
            "all": (bound.Direction.FORWARD, None),
        }  # fmt: skip
        word = self.accept_one_of(*single)
        if word is not None:
            return single[word]
        word = self.accept_one_of("absolute", "relative")
        if word is not None:
            return bound.Direction(word), self._signed()
        direction = bound.Direction(self.accept_one_of("forward", "backward") or "forward")
        if self.accept("all"):
            return direction, None
        counted = self.token.kind is TokenKind.NUMBER or self.is_symbol("-") or self.is_symbol("+")
        return direction, self._signed() if counted else 1

    def _signed(self) -> int:
        negative = self.accept_symbol("-")
        if not negative:
            self.accept_symbol("+")
        return -self.integer() if negative else self.integer()

    def _timeout(self) -> float | None:
        """Materialize's ``FETCH … WITH (timeout = '1s')``."""
        if not self.accept("with"):
            return None
        self.expect_symbol("(")
        self.expect("timeout")
        self.accept_symbol("=")
        token = self.advance()
        self.expect_symbol(")")
        text = token.value.strip().lower()
        scale = 1.0
        for suffix, factor in (("ms", 0.001), ("milliseconds", 0.001), ("seconds", 1.0), ("second", 1.0), ("s", 1.0)):
            if text.endswith(suffix):
                text, scale = text[: -len(suffix)].strip(), factor
                break
        try:
            return float(text) * scale
        except ValueError:
            raise SqlError("22023", f'invalid timeout: "{token.value}"', position=token.start + 1) from None

    def _refresh(self) -> nodes_statements.Statement:
        self.advance()
        self.expect("materialized", "view")
        self.accept("concurrently")
        name = self.table_name()
        if not self.accept("with", "no", "data"):
            self.accept("with", "data")
        return nodes_statements.RefreshStatement(name)

    def _lock(self) -> nodes_statements.Statement:
        """LOCK [TABLE] name, … [IN mode MODE] [NOWAIT]."""
        self.advance()
        self.accept("table")
        names = tuple(self.listed(lambda: self.only_table(self.accept("only"))))
        mode = "access exclusive"
        if self.accept("in"):
            mode = ""
            while mode not in LOCK_MODES or not self.is_word("mode"):
                mode = f"{mode} {self.token.value}".strip()
                if self.at_end() or not any(known == mode or known.startswith(f"{mode} ") for known in LOCK_MODES):
                    raise self.error()
                self.advance()
            self.advance()
        return nodes_statements.LockStatement(names, mode, self.accept("nowait"))
