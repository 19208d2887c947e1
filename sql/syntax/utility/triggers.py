"""CREATE, ALTER and DROP TRIGGER."""

from __future__ import annotations

from ivm.errors import SqlError, unsupported
from sql.statements.triggers import DropTrigger, EnableTrigger, RenameTrigger
from sql.syntax.grammar.definitions import DefinitionGrammar
from sql.syntax.lexing.lexer import TokenKind
from sql.syntax.nodes.queries import TableName
from sql.syntax.nodes.statements import Utility
from sql.syntax.nodes.triggers import CreateTriggerStatement

Event = tuple[str, tuple[tuple[str, int], ...]]


def trigger_statement(cursor: DefinitionGrammar) -> CreateTriggerStatement | Utility | None:
    """The whole statement, None if another one is next. Raises 0A000 for rules and event triggers."""
    for verb in ("create", "alter", "drop"):
        if cursor.is_word(verb, "event", "trigger"):
            raise unsupported("event triggers", "Triggers on tables and views are there.", cursor.token.start + 1)
    if cursor.is_word("create", "rule") or cursor.is_word("create", "or", "replace", "rule"):
        raise unsupported("rules", "Write an INSTEAD OF trigger on a view.", cursor.token.start + 1)
    if cursor.accept("drop", "trigger"):
        exists = cursor.accept("if", "exists")
        name = cursor.name()
        cursor.expect("on")
        table = cursor.table_name()
        cursor.cascade()
        return Utility(DropTrigger(name, (table.schema_name, table.name), exists))
    if cursor.accept("alter", "trigger"):
        return Utility(_rename(cursor))
    kinds = (("trigger",), ("constraint", "trigger"))
    if not any(cursor.is_word(*words, *kind) for words in (("create",), ("create", "or", "replace")) for kind in kinds):
        return None
    return _create(cursor)


def _rename(cursor: DefinitionGrammar) -> RenameTrigger:
    name = cursor.name()
    cursor.expect("on")
    table = cursor.table_name()
    if cursor.is_word("depends") or cursor.is_word("no", "depends"):
        raise unsupported("ALTER TRIGGER … DEPENDS ON EXTENSION")
    cursor.expect("rename", "to")
    return RenameTrigger(name, (table.schema_name, table.name), cursor.name())


def _create(cursor: DefinitionGrammar) -> CreateTriggerStatement:
    at = cursor.token.start
    cursor.expect("create")
    replace = cursor.accept("or", "replace")
    constraint = cursor.accept("constraint")
    if constraint and replace:
        raise SqlError("0A000", "CREATE OR REPLACE CONSTRAINT TRIGGER is not supported")
    cursor.expect("trigger")
    name = cursor.name()
    timing = "instead of" if cursor.accept("instead", "of") else cursor.accept_one_of("before", "after")
    if timing is None or (constraint and timing != "after"):
        raise cursor.error()
    events = [_event(cursor)]
    while cursor.accept("or"):
        events.append(_event(cursor))
    if len({e for e, _ in events}) < len(events):
        raise SqlError("42601", "duplicate trigger events specified", position=at + 1)
    cursor.expect("on")
    table = cursor.table_name()
    if constraint and cursor.accept("from"):
        cursor.table_name()
    deferrable, deferred = _deferral(cursor) if constraint else (False, False)
    transitions = _transitions(cursor)
    row = _each(cursor) if cursor.accept("for") else False
    if constraint and not row:
        raise cursor.error()
    condition = None
    if cursor.accept("when"):
        cursor.expect_symbol("(")
        start = cursor.token.start
        expr = cursor.expression()
        condition = expr, cursor.source(start, cursor.index)
        cursor.expect_symbol(")")
    cursor.expect("execute")
    if not cursor.accept("function"):
        cursor.expect("procedure")
    function = cursor.table_name()
    return CreateTriggerStatement(
        name, replace, timing, tuple(events), table, row, condition, transitions, function, _arguments(cursor),
        constraint, deferrable, deferred, at,
    )  # fmt: skip


def _event(cursor: DefinitionGrammar) -> Event:
    word = cursor.accept_one_of("insert", "update", "delete", "truncate")
    if word is None:
        raise cursor.error()
    columns: tuple[tuple[str, int], ...] = ()
    if word == "update" and cursor.accept("of"):
        columns = cursor.listed(cursor.located_name)
    return word, columns


def _each(cursor: DefinitionGrammar) -> bool:
    cursor.accept("each")
    word = cursor.accept_one_of("row", "statement")
    if word is None:
        raise cursor.error()
    return word == "row"


def _deferral(cursor: DefinitionGrammar) -> tuple[bool, bool]:
    """[NOT] DEFERRABLE and INITIALLY …, in any order."""
    deferrable: bool | None = None
    deferred = False
    while True:
        if cursor.accept("not", "deferrable"):
            deferrable = False
        elif cursor.accept("deferrable"):
            deferrable = True
        elif cursor.accept("initially", "deferred"):
            deferred = True
        elif not cursor.accept("initially", "immediate"):
            break
    if deferred and deferrable is False:
        raise SqlError("42601", "constraint declared INITIALLY DEFERRED must be DEFERRABLE")
    return bool(deferrable or deferred), deferred


def _transitions(cursor: DefinitionGrammar) -> tuple[tuple[bool, str], ...]:
    if not cursor.accept("referencing"):
        return ()
    found: list[tuple[bool, str]] = []
    while word := cursor.accept_one_of("old", "new"):
        if cursor.accept("row"):
            hint = "Use OLD TABLE or NEW TABLE for naming transition tables."
            raise SqlError("0A000", "ROW variable naming in the REFERENCING clause is not supported", hint=hint)
        cursor.expect("table")
        cursor.accept("as")
        found.append((word == "new", cursor.name()))
    if not found:
        raise cursor.error()
    return tuple(found)


def _arguments(cursor: DefinitionGrammar) -> tuple[str, ...]:
    """``(a, 'b', 1)``: all become texts."""
    cursor.expect_symbol("(")
    found: list[str] = []
    while not cursor.accept_symbol(")"):
        if found:
            cursor.expect_symbol(",")
        token = cursor.token
        if token.kind in (TokenKind.STRING, TokenKind.NUMBER, TokenKind.WORD, TokenKind.QUOTED):
            found.append(cursor.advance().value)
        else:
            raise cursor.error()
    return tuple(found)


def enabling(cursor: DefinitionGrammar, table: TableName, if_exists: bool) -> EnableTrigger | None:
    """ENABLE or DISABLE TRIGGER of ALTER TABLE, None if another change is next."""
    enabled = None
    if cursor.is_word("disable", "trigger"):
        enabled = "D"
    elif cursor.is_word("enable", "trigger"):
        enabled = "O"
    elif cursor.is_word("enable", "always", "trigger"):
        enabled = "A"
    elif cursor.is_word("enable", "replica", "trigger"):
        enabled = "R"
    if enabled is None:
        return None
    cursor.index += 2 + (enabled in "AR")
    all_ = cursor.is_word("all") or cursor.is_word("user")
    name = cursor.label()
    return EnableTrigger(None if all_ else name, (table.schema_name, table.name), enabled, if_exists)
