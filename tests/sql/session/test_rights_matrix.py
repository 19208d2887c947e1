"""Every statement × every kind of role: who may run it is as in PostgreSQL 15, and a refused one changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

import pytest

from ivm.errors import SqlError
from sql.bind.statement import bind_statement
from sql.catalog import acl
from sql.catalog.catalog import Catalog
from sql.catalog.search_path import SearchPathReader
from sql.parse import split
from sql.statements import definitions, types
from sql.statements import statements as bound
from sql.statements.comments import Comment
from sql.statements.roles import Grant
from sql.syntax.utility import comments
from tests.support.rights_matrix import OWN_SETUP, ROLES, SETUP, WARNED, Row, rows
from tests.support.sessions import Client, Server

BESIDES: Final = {"23503", "23505", "55000", "0A000", "2BP01", "22023", "25001", "55P02", "55006"}
"""How a statement that a role may run fails here for another reason."""


@pytest.fixture(scope="module")
def kingdom(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "in.csv").write_text("1\t2\n")
    server = Server(tmp_path_factory.mktemp("kingdom"), (folder,), python=True, places=(str(folder),))
    client = server.client()
    for statement in (*SETUP, *OWN_SETUP, f"CREATE SINK snk FROM t INTO '{folder}/snk'"):
        client.run(statement)
    client.close()
    yield server, folder
    server.close()


def matrix(folder: Path) -> list[Row]:
    return rows(db="db", out=str(folder / "out.csv"), sink=str(folder / "sink"), **{"in": str(folder / "in.csv")})


def ready(server: Server, row: Row, role: str, *, block: bool) -> Client:
    """A session in which the role can run the row's statement at once."""
    client = server.client()
    client.run("SET search_path TO mx")
    if block:
        client.run("BEGIN")
    if row.before:
        client.run(row.before)
    client.run(f"SET ROLE mx_{role}")
    client.notices()
    return client


def refused(server: Server, row: Row, role: str) -> bool:
    """Whether the role may not run the statement; what it changes is rolled back."""
    client = ready(server, row, role, block=not row.alone)
    state = ended(client, row.statement)
    client.close()
    assert state in {None, "42501", *BESIDES}, (row.statement, role, state)
    return state == "42501" or any(WARNED.search(notice.message) for notice in client.notices())


def ended(client: Client, statement: str) -> str | None:
    """How a statement ends: its SQLSTATE."""
    try:
        client.results(statement, b"")
    except SqlError as error:
        return error.sqlstate
    return None


def unchanged(server: Server, row: Row, role: str) -> bool:
    """Whether the refused statement leaves everything as it was, without a block that would be rolled back."""
    client = ready(server, row, role, block=False)
    before, settings = server.coordinator.engine.published, dict(client.session.state.settings.values)
    state = ended(client, row.statement)
    assert state in (None, "42501"), (row.statement, role, state)
    after = server.coordinator.engine.published
    same = after.catalog is before.catalog or defined(after.catalog) == defined(before.catalog)
    same = same and (after.ordinal == before.ordinal or row.statement.startswith(("GRANT", "REVOKE")))  # a warning
    same = same and client.session.state.settings.values == settings
    client.close()
    return same


def defined(catalog: Catalog) -> tuple[object, ...]:
    access = catalog.access
    lists = {what: acl for what in access.acls if (acl := access.acl(what)) != replace(access, acls={}).acl(what)}
    granted = access.roles, access.memberships, access.owners, lists, access.defaults
    return catalog.relations, catalog.schemas, catalog.comments, *granted


def contents(server: Server) -> list[object]:
    client = server.client()
    client.run("SET search_path TO mx")
    tables = ("t", "u", "pub", "sub.t", "ids", "parts", "kid", "m", "pg_authid", "pg_auth_members")
    found: list[object] = [client.sorted(f"SELECT * FROM {table}") for table in tables]
    client.close()
    return found


def test_matrix(kingdom: tuple[Server, Path]) -> None:
    server, folder = kingdom
    before, wrong = contents(server), []
    for row in matrix(folder):
        for role in ROLES:
            no = refused(server, row, role)
            if no is (role in row.allowed):
                wrong.append(f"{role} {'may not' if no else 'may'}: {row.statement}")
            elif no and not row.before and not unchanged(server, row, role):
                wrong.append(f"{role}, refused, changed something: {row.statement}")
    assert not wrong
    assert contents(server) == before


def leaves(union: object) -> Iterator[type]:
    """The members of a union of unions."""
    members = get_args(union)
    if not members and isinstance(union, type):
        yield union
    for member in members:
        yield from leaves(member)


def met(statement: object) -> Iterator[object]:
    """The kinds of statement, and of change in it, that a bound statement is."""
    yield type(statement)
    match statement:
        case bound.NoOperation():
            yield statement.tag
            yield from ((statement.tag, cared.kind) for cared in statement.cared)
        case Comment():
            yield "comment", statement.kind
        case Grant():
            yield "grant", statement.kind
        case definitions.AlterTable() | types.AlterComposite():
            yield from map(type, statement.changes)
        case types.AlterDomain():
            yield type(statement.change)
        case definitions.Drop():
            yield "drop", statement.kind.name
        case _:
            pass


def test_no_statement_is_missing(kingdom: tuple[Server, Path]) -> None:
    """A new kind of statement needs a row."""
    server, folder = kingdom
    client = server.client()
    client.run("SET search_path TO mx")
    state = client.session.state
    found: set[object] = set()
    for row in matrix(folder):
        for text in (s.text for s in split(row.statement)):
            catalog = SearchPathReader(state.catalog, state.path(state.catalog))
            found |= set(met(bind_statement(text, catalog).statement))
    client.close()
    wanted: set[object] = set()
    for union in (bound.Statement, definitions.Change, types.DomainChange, types.AttributeChange):
        wanted |= set(leaves(union))
    wanted |= {"ANALYZE", "CLUSTER", "REINDEX", "CHECKPOINT", "CREATE EXTENSION"}
    wanted |= {("REINDEX", kind) for kind in ("table", "index", "schema", "database", "system")}
    wanted |= {("comment", kind) for kind in comments.KINDS} | {("grant", kind) for kind in acl.ALL if kind != "c"}
    wanted |= {("drop", kind) for kind in ("TABLE", "VIEW", "MATERIALIZED_VIEW", "SEQUENCE", "SOURCE", "SINK")}
    wanted.discard(definitions.SetLocal)  # only inside ALTER TABLE of a table with descendants
    assert wanted <= found, sorted(map(str, wanted - found))
