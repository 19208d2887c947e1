"""The queries by which tools read the catalogs give what they give on PostgreSQL 15."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest

from tests.clients.make_catalogs import ANSWERS, SCHEMA, queries, run
from tests.support.program import Program


@pytest.mark.client("queries of PostgREST, Hasura, Grafana, Metabase, DBeaver, pgAdmin")
def test_answers_are_those_of_postgresql(program: Program, record_property: Callable[[str, object], None]) -> None:
    dsn = program.database("catalogs")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(SCHEMA.read_bytes())
    expected, found = json.loads(ANSWERS.read_text()), run(dsn)
    assert list(expected) == list(queries()), "run make_catalogs again"
    record_property("right", sum(found[name] == answer for name, answer in expected.items()))
    record_property("of", len(expected))
    assert {name: found[name] for name, answer in expected.items() if found[name] != answer} == {}
