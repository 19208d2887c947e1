"""Attempts in several steps to read what is not one's own: ``escape_scenarios.txt``.

A scenario is a title and its steps, each ``who: statement``. ``ann`` is who attacks, whatever the role's name, which
``$who`` stands for; ``me`` the superuser, ``vic`` another ordinary role. An attacker's step may end with ``!`` and the
SQLSTATE that it must end with; without one it may succeed. In no case may the attacker be told one of ``MARKS``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from sql.statements.results import CopyInResult, CopyOutResult, RowsResult
from tests.support.paths import ROOT
from tests.support.sessions import Client, Server, text_rows

MARKS: Final = re.compile("s3cret(?!s)|4711")
"""What only the superuser may see. ``s3crets`` is the attacker's own."""
_STEP: Final = re.compile(r"(?P<who>\w+): (?P<text>.+?)(?: !(?P<state>\w{5}))?")
SETUP: Final = (
    "create role ann login; create role mon login; grant pg_monitor to mon; create role vic login;"
    "create role boss superuser login password 'x'; create table vault (a int unique, b text);"
    "insert into vault values (4711, 's3cret'); create materialized view vault_view as select * from vault;"
    "create table open (a int primary key); insert into open values (1); grant select, insert on open to public;"
    "create table lent (a int, b text); create view open_view as select length(b) as a from vault;"
    "grant all on open_view to public; create view invoker_view with (security_invoker) as select * from vault;"
    "grant all on invoker_view to public; create sequence counter start 4711;"
    "create table diary (a int primary key, b text, who name); alter table diary enable row level security;"
    "create policy own on diary using (who = current_user); grant all on diary to public;"
    "insert into diary values (1, 'x', 'ann'), (2, 'x', 'mon'), (4711, 's3cret', 'boss');"
    "create table cols (a int unique check (a > 0), b int); insert into cols values (1, 4711), (3, 4711);"
    "grant select (a), insert (a), update (a) on cols to public; create table guarded (a int, b text, who name);"
    "insert into guarded values (1, 'x', 'all'), (4711, 's3cret', 'boss');"
    "create view barrier_view with (security_barrier) as select a, b from guarded where who = 'all';"
    "grant all on barrier_view to public; create table allowed (who name); grant select on allowed to public;"
    "create table by_list (a int, who name); insert into by_list values (4711, 'ann'), (4711, 'mon');"
    "alter table by_list enable row level security; grant select on by_list to public;"
    "create policy p on by_list using (who in (select who from allowed));"
    "create table drop_box (a int primary key check (a <> 1), b text default 's3cret');"
    "create table null_box (a int not null, b text default 's3cret');"
    "create table child_box (a int references vault (a), b text default 's3cret');"
    "create table excluded_box (a int, b text default 's3cret', exclude (b with =));"
    "insert into excluded_box values (0); create table part_box (b text default 's3cret', a int) partition by list (b);"
    "create table view_box (a int, b text default 's3cret');"
    "create view check_box as select a from view_box where b <> 's3cret' with check option;"
    "grant insert on drop_box, null_box, child_box, excluded_box, check_box to public; grant insert (a) on part_box "
    "to public; create table family (a int, b text, who name) partition by list (a);"
    "create table family_kid partition of family for values in (4711); create table family_rest partition of family "
    "default; insert into family values (4711, 's3cret', 'boss'), (1, 'x', 'ann'); grant all on family to public;"
    "alter table family enable row level security; create policy own on family using (who = current_user);"
    "create table serial_table (a serial); grant insert on serial_table to public;"
    "create schema hidden; create table hidden.h (a int, b text default 's3cret'); insert into hidden.h values (4711);"
    "create type hidden.ht as enum ('s3cret'); create function hidden.hf() returns text language sql as "
    "$$select 's3cret'$$; grant all on hidden.h to public",
    "create function hidden_definer() returns text language plpgsql security definer as "
    "$$begin return (select b from public.vault); end$$",
    "create function hidden_binary(text, text) returns text language plpgsql security definer as "
    "$$begin return (select b from public.vault); end$$",
    "create function hidden_trigger() returns trigger language plpgsql security definer as "
    "$$begin new.b = (select b from public.vault); return new; end$$",
    "revoke execute on function hidden_definer, hidden_binary, hidden_trigger from public",
    "create function careful_definer() returns bigint language plpgsql security definer as "
    "$$begin return (select count(*) from public.vault where upper(b) = 'X' and now() > '2001-01-01'); end$$",
    "create function definer_fails() returns int language plpgsql security definer as "
    "$$begin perform 1 / (select count(*) - 1 from public.vault); return 1; end$$",
    "create function definer_sleeps() returns int language plpgsql security definer as $$begin loop end loop; end$$",
    "create function definer_runs(text) returns int language plpgsql security definer as "
    "$$begin execute $1; return 1; end$$",
    "create procedure definer_commits() language plpgsql security definer as "
    "$$begin insert into public.lent values (0); commit; raise exception 'x'; end$$",
    "create function definer_fills() returns int language plpgsql security definer as "
    "$$begin insert into play.t values (1); return 1; end$$",
    "create function definer_counts() returns int language plpgsql security definer as "
    "$$begin perform nextval('public.counter'); return 1; end$$",
    "create materialized view broken_view as select b::int as x from vault; grant select on broken_view to public",
)
_BEFORE: Final = (
    "truncate lent; alter table lent disable row level security; revoke all on lent from public;"
    "drop schema if exists play cascade; create schema play; grant all on schema play to public"
)
_TOOLS: Final = (
    "create function play.leak(text) returns bool language plpgsql as $$begin raise notice '%', $1; return true; end$$",
    "create function play.leak2(text, text) returns bool language plpgsql as "
    "$$begin raise notice '% %', $1, $2; return true; end$$",
    "create function play.leak_state(text, text) returns text language plpgsql as "
    "$$begin raise notice '% %', $1, $2; return $2; end$$",
    "create function play.fired() returns trigger language plpgsql as "
    "$$begin raise notice '%', (select max(b) from public.vault); return new; end$$",
    "grant all on all functions in schema play to public",
)


@dataclass(frozen=True, slots=True)
class Step:
    who: str
    text: str
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    title: str
    steps: tuple[Step, ...]


def scenarios() -> list[Scenario]:
    found = []
    for block in (ROOT / "tests" / "support" / "escape_scenarios.txt").read_text().strip().split("\n\n"):
        title, *lines = block.splitlines()
        steps = []
        for line in lines:
            step = _STEP.fullmatch(line)
            assert step is not None, line
            steps.append(Step(step["who"], step["text"], step["state"]))
        found.append(Scenario(title.removeprefix("# "), tuple(steps)))
    return found


def play(server: Server, scenario: Scenario, role: str) -> list[tuple[Step, str, str]]:
    """The attacker's steps, each with how it ended and all that it was told."""
    clients = {"me": server.client()}
    clients["me"].run(_BEFORE)
    clients["ann"] = server.client(role)
    for text in _TOOLS:
        clients["ann"].run(text)
    told = []
    for step in scenario.steps:
        if step.who not in clients:
            clients[step.who] = server.client(step.who)
        client, text = clients[step.who], step.text.replace("$who", role)
        if step.who == "ann":
            told.append((step, *heard(client, text)))
        else:
            client.run(text)
    for client in clients.values():
        client.close()
    return told


def heard(client: Client, text: str) -> tuple[str, str]:
    """How a statement ends, and everything that the client is sent."""
    found: list[str] = []

    async def work() -> None:
        async for result in client.session.simple(text):
            match result:
                case CopyInResult():
                    await result.receiver.finish()
                case CopyOutResult():
                    async for chunk in result.data:
                        found.append(bytes(chunk).decode())
                case RowsResult():
                    found.extend(map(str, text_rows(result)))
                case _:
                    found.append(str(result))

    state = "00000"
    try:
        client.server.run(work(), timeout=20)
    except SqlError as error:
        client.server.run(client.session.fail())
        state = error.sqlstate
        found.append(f"{error.message} | {error.detail} | {error.hint} | {error.context}")
    found += [f"{n.message} | {n.detail} | {n.hint}" for n in client.notices()]
    return state, "\n".join(found)
