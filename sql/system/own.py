"""The relations of schema ``freshet``, in which the server reports on itself.

Their rows are live: ``sql/session/own_relations.py`` computes them, and ``docs/reference/relations.md`` documents them.
"""

from __future__ import annotations

from typing import Final

from sql.catalog.system.definitions import defined

_RELATIONS: Final = """
13990 view_errors v: view text!, sqlstate text!, message text!, row text
13991 hydrations v: view text!, pid int4, phase text!, operators int8, done int8, updates int8, behind int8,
    started timestamptz, by text, step text
13992 arrangements v: operator_id int8!, name text!, relation text, key text[]!, reads text[]!, in_loop bool!,
    records int8!, size int8!, users text[]!
13993 views v: view text!, status text!, hydrated bool!, records int8, operators int8, shared int8, size int8,
    own_size int8
13996 dictionary v: living int8!, dead int8!, bytes int8!, sweeps int8!, swept int8!
13989 steps v: latest int8!, of int8!, p50_us float8!, p99_us float8!, longest_us float8!
13995 stalls v: started timestamptz!, thread text!, seconds float8!, statement text, view text, operator text,
    function text, place text
13997 workers v: worker int4!, parts int8!, cpu_ms int8!
13980 loads v: load_id text!, relation text!, source text!, engine text!, pid int4, state text!, rows int8!,
    rows_total int8, rejects int8!, epoch int8, started timestamptz!, finished timestamptz, error text
13981 rejects v: load_id text!, relation text!, file text, line int8, column_name text, text text!, sqlstate text!,
    reason text!
13985 secrets v: name text!
13986 sinks v: sink text!, relation text!, uri text!, format text!, envelope text!, state text!, epoch int8, lag
    interval, generation int8, version int8, files int8!, rows int8!, bytes int8!, error text
13987 sources v: source text!, table text!, system text!, state text!, since timestamptz!, batch int8, rows int8!,
    committed timestamptz, lag interval, error text, detail text, failed timestamptz, failures int4!
13988 spark_jobs v: view text!, job int8!, started timestamptz!, milliseconds int8!, epoch int8!, commits int8!,
    updates int8!, parts_touched int8!, parts_held int8!, rows_read int8!, bytes_read int8!, rows_written int8!,
    bytes_written int8!, error text
"""
"""In the form of ``tables_pg_catalog``."""

OWN_RELATIONS: Final = tuple(d.relation for d in defined("freshet", _RELATIONS))
VIEW_ERRORS: Final = next(r for r in OWN_RELATIONS if r.name == "view_errors")
