"""Who may run what: the rows of ``rights_matrix.txt``, and the objects and roles that they are about.

A row is a cell for each role of ``ROLES``, ``+`` for allowed and ``-`` for 42501 (or PostgreSQL's warning that it
leaves out what is not the role's), then the statement. ``*`` before it: PostgreSQL 15 has no such statement, or answers
otherwise for the reason that the comment above gives. ``!``: it cannot run in a transaction block. What stands before
``>>`` is run by the superuser in the same session. ``python -m tests.answers.check_rights`` asks a PostgreSQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tests.support.paths import ROOT

ROLES: Final = ("super", "owner", "member", "granted", "column", "public", "reader", "nobody")
"""``granted`` has all privileges, ``column`` those on column a of t, ``public`` what everybody has, ``reader``
pg_read_all_data. ``nobody`` is a member of the owner without INHERIT: it may become the owner, and has nothing else."""
SETUP: Final = (
    "CREATE ROLE mx_super SUPERUSER", "CREATE ROLE mx_owner", "CREATE ROLE mx_member", "GRANT mx_owner TO mx_member",
    "CREATE ROLE mx_granted", "CREATE ROLE mx_column", "CREATE ROLE mx_public", "CREATE ROLE mx_reader",
    "GRANT pg_read_all_data TO mx_reader", "CREATE ROLE mx_nobody NOINHERIT", "GRANT mx_owner TO mx_nobody",
    "CREATE ROLE mx_spare", "CREATE SCHEMA mx", "CREATE SCHEMA sub", "CREATE SCHEMA other",
    "GRANT USAGE ON SCHEMA mx TO PUBLIC", "SET search_path TO mx",
    "CREATE TABLE t (a int PRIMARY KEY, b int CONSTRAINT t_check CHECK (b < 100))",
    "CREATE TABLE u (a int, b int)", "CREATE TABLE pub (a int)", "CREATE TABLE sub.t (a int)",
    "CREATE INDEX t_b ON t (b)",
    "ALTER TABLE t ADD CONSTRAINT t_b_fkey FOREIGN KEY (b) REFERENCES t", "CREATE SEQUENCE s",
    "CREATE TABLE ids (i int GENERATED ALWAYS AS IDENTITY, g int GENERATED ALWAYS AS (7) STORED)",
    "CREATE TABLE parts (a int) PARTITION BY LIST (a)", "CREATE TABLE part1 PARTITION OF parts FOR VALUES IN (1)",
    "CREATE TABLE part8 (a int)", "CREATE TABLE kid (a int, b int)", "CREATE TABLE parent_kid () INHERITS (u)",
    "CREATE VIEW v AS SELECT a, b FROM t", "CREATE VIEW inv WITH (security_invoker) AS SELECT a, b FROM t",
    "CREATE MATERIALIZED VIEW m AS SELECT b, count(*) AS n FROM t GROUP BY b",
    "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT $1'", "REVOKE ALL ON FUNCTION f FROM PUBLIC",
    "CREATE FUNCTION open_f(int) RETURNS int LANGUAGE sql AS 'SELECT $1'",
    "CREATE PROCEDURE p() LANGUAGE plpgsql AS 'BEGIN END'", "REVOKE ALL ON PROCEDURE p FROM PUBLIC",
    "CREATE PROCEDURE open_p() LANGUAGE plpgsql AS 'BEGIN END'",
    "CREATE AGGREGATE agg(int) (SFUNC = int4pl, STYPE = int)",
    "CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE FUNCTION hidden_fired() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "REVOKE ALL ON FUNCTION hidden_fired FROM PUBLIC", "CREATE TYPE lab AS ENUM ('x')",
    "REVOKE ALL ON TYPE lab FROM PUBLIC",
    "CREATE TYPE pair AS (a int, b int)", "CREATE DOMAIN dom AS int CONSTRAINT dom_check CHECK (value > -1000)",
    "REVOKE ALL ON DOMAIN dom FROM PUBLIC", "CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq)",
    "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION fired()",
    "CREATE POLICY pol ON t USING (false)",
    *(f"ALTER {kind} {name} OWNER TO mx_owner" for kind, name in (
        *(("TABLE", n) for n in ("t", "u", "pub", "sub.t", "ids", "parts", "part1", "part8", "kid", "parent_kid")),
        ("SEQUENCE", "s"), ("VIEW", "v"), ("VIEW", "inv"), ("MATERIALIZED VIEW", "m"), ("FUNCTION", "f(int)"),
        ("FUNCTION", "open_f(int)"), ("PROCEDURE", "p()"), ("PROCEDURE", "open_p()"), ("AGGREGATE", "agg(int)"),
        ("FUNCTION", "fired()"), ("TYPE", "lab"), ("TYPE", "pair"), ("DOMAIN", "dom"), ("OPERATOR", "=== (int, int)"),
        ("SCHEMA", "mx"), ("SCHEMA", "sub"),
    )),
    "GRANT ALL ON t, u, v, inv, m, pub, sub.t, parts TO mx_granted", "GRANT ALL ON SEQUENCE s TO mx_granted",
    "GRANT ALL ON FUNCTION f, fired, hidden_fired TO mx_granted", "GRANT ALL ON PROCEDURE p TO mx_granted",
    "GRANT ALL ON TYPE lab, dom TO mx_granted", "GRANT ALL ON SCHEMA sub TO mx_granted",
    "GRANT SELECT (a), INSERT (a), UPDATE (a), REFERENCES (a) ON t TO mx_column", "GRANT SELECT ON pub TO PUBLIC",
    "INSERT INTO t VALUES (1, 1)", "INSERT INTO pub VALUES (1)", "SELECT nextval('s')",
)  # fmt: skip
OWN_SETUP: Final = ("CREATE SOURCE src FROM RATE (ROWS_PER_SECOND 1) INTO kid", "ALTER SOURCE src PAUSE")
"""What PostgreSQL does not have. Sources and sinks belong to the superuser who made them."""
WARNED: Final = re.compile(r'no privileges (were granted|could be revoked)|skipping "')
"""PostgreSQL's warnings that a statement has left out what it may not do."""
_ROW: Final = re.compile(r"(?P<marks>[*!]*) ?(?P<cells>[-+]+) (?P<rest>.+)")


@dataclass(frozen=True, slots=True)
class Row:
    """``allowed``: the roles that may run the statement. ``own``, ``alone``: the marks ``*`` and ``!``."""

    statement: str
    before: str
    allowed: frozenset[str]
    own: bool
    alone: bool


def rows(**places: str) -> list[Row]:
    """The matrix, with ``$name`` replaced in the statements."""
    found = []
    for line in (ROOT / "tests" / "support" / "rights_matrix.txt").read_text().splitlines():
        if not line or line[0] in "#=":
            continue
        parts = _ROW.fullmatch(line)
        assert parts is not None, line
        rest = parts["rest"]
        for name, value in places.items():
            rest = rest.replace(f"${name}", value)
        before, _, statement = rest.rpartition(" >> ")
        allowed = frozenset(role for role, cell in zip(ROLES, parts["cells"], strict=True) if cell == "+")
        found.append(Row(statement, before, allowed, "*" in parts["marks"], "!" in parts["marks"]))
    return found
