"""Attempts of ordinary roles to read, change or become what they may not: ``tests/support/escapes.txt``, and in several
steps ``escape_scenarios.txt``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from ivm.errors import SqlError
from tests.support import escape_scenarios
from tests.support.escape_scenarios import MARKS, play, scenarios
from tests.support.paths import ROOT
from tests.support.sessions import Client, Server

PROBES: Final = (ROOT / "tests" / "support" / "escapes.txt").read_text().splitlines()
SETUP: Final = """
create role ann login; create role bob login; create role boss superuser login password 'x';
create role mon login; grant pg_monitor to mon;
create table secret (a int, b text); insert into secret values (1, 's3cret'); create view sv as select * from secret;
create materialized view sm as select * from secret; create sequence sq;
create schema hidden; create table hidden.h (a int);
create function hidden.hf() returns int language sql as 'select 1';
create function definer() returns text language plpgsql security definer as
  $$begin return (select b from public.secret); end$$; revoke execute on function definer() from public;
create table open (a int); grant select, insert on open to public; create type ty as enum ('a');
create domain dom as int; create table cols (a int, b int);
grant select (a), update (a) on cols to ann, mon;
create function trig() returns trigger language plpgsql as
  $$begin insert into public.secret values (2, 't'); return new; end$$
"""
_MONITORS: Final = ("steps", "loads", "sources", "stalls")
ALLOWED: Final = {
    "ann": frozenset[str](),
    "mon": frozenset({"verify materialized view sm", *(f"select * from freshet.{name}" for name in _MONITORS)}),
}
STATE: Final = (
    "SELECT oid, rolname, rolsuper, rolcreaterole, rolbypassrls, rolcanlogin, rolpassword FROM pg_authid",
    "SELECT roleid, member FROM pg_auth_members", "SELECT a, b FROM secret", "SELECT * FROM cols",
    "SELECT relname, relowner, relacl, relrowsecurity FROM pg_class WHERE relnamespace <> 11",
    "SELECT proname, proowner, proacl FROM pg_proc WHERE oid > 16384", "SELECT nspname, nspacl FROM pg_namespace",
    "SELECT datdba FROM pg_database",
)  # fmt: skip
WRONG: Final = ("XX000", "00000")


@pytest.fixture(scope="module")
def castle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "x.csv").write_text("a\n1\n")
    server = Server(tmp_path_factory.mktemp("castle"), (folder,), python=True, places=(str(folder),))
    client = server.client()
    client.run(SETUP)
    yield server
    client.close()
    server.close()


def state_of(castle: Server) -> list[object]:
    """Everything that nobody but the superuser may change."""
    client = castle.client()
    found: list[object] = [client.sorted(query) for query in STATE]
    client.close()
    return found


@pytest.mark.parametrize("role", ["ann", "mon"])
def test_no_way_out(castle: Server, role: str) -> None:
    assert len(PROBES) > 200
    before = state_of(castle)
    for probe in PROBES:
        client = castle.client(role)
        assert tried(client, probe, role) is None, probe
        client.close()
    assert state_of(castle) == before


def tried(client: Client, probe: str, role: str) -> str | None:
    """What is wrong with how a probe ended; None for nothing."""
    try:
        client.run(probe)
        ended = "00000"
    except SqlError as error:
        ended = error.sqlstate
    if ended in WRONG and probe not in ALLOWED[role]:
        return ended
    if client.session.state.failed or client.session.state.in_block:
        client.run("ROLLBACK")
    who = client.rows("SELECT session_user, current_user")
    return None if who == [(role, role)] else str(who)


SHOWN: Final = {"What others run": ("mon",)}
"""The roles that may see it, in these scenarios: pg_monitor sees the statements of others."""
KEPT: Final = (
    "SELECT rolname, rolsuper, rolcreaterole, rolbypassrls, rolcanlogin, rolpassword FROM pg_authid",
    "SELECT roleid, member FROM pg_auth_members", "SELECT * FROM vault", "SELECT * FROM guarded",
    "SELECT b FROM cols WHERE b > 0",
    "SELECT * FROM diary WHERE who = 'boss'", "SELECT * FROM family WHERE who = 'boss'", "SELECT * FROM hidden.h",
    "SELECT relname, relowner, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::\"char\", "
    "relowner)), relrowsecurity FROM pg_class WHERE relnamespace = 2200 AND relname <> 'lent'",
    "SELECT polname, polroles FROM pg_policy", "SELECT nspname, nspacl FROM pg_namespace WHERE nspname <> 'play'",
    "SELECT proname, proowner, proacl FROM pg_proc WHERE oid > 16384 AND pronamespace = 2200",
)  # fmt: skip


@pytest.fixture(scope="module")
def tower(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("files")
    (folder / "x.csv").write_text("a\n1\n")
    server = Server(tmp_path_factory.mktemp("tower"), (folder,), python=True, places=(str(folder),))
    client = server.client()
    for statement in escape_scenarios.SETUP:
        client.run(statement)
    client.close()
    yield server
    server.close()


@pytest.mark.parametrize("role", ["ann", "mon"])
def test_nothing_is_told(tower: Server, role: str) -> None:
    client = tower.client()
    before = [client.sorted(query) for query in KEPT]
    attempts, wrong = 0, []
    for scenario in scenarios():
        for step, state, told in play(tower, scenario, role):
            attempts += 1
            if MARKS.search(told) and role not in SHOWN.get(scenario.title, ()):
                wrong.append(f"{scenario.title}: {step.text} tells {told}")
            if step.state not in (None, state) or state == "XX000":
                wrong.append(f"{scenario.title}: {step.text} ends with {state}")
    assert not wrong
    assert attempts > 400
    client.run("DROP SCHEMA play CASCADE")
    assert [client.sorted(query) for query in KEPT] == before
    client.close()
