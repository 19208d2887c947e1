"""Maintained views over json and jsonb equal their queries after every insertion, update and deletion."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sessions import Server

VIEWS = {
    "elements": "SELECT t.k, e.value FROM t, jsonb_array_elements(t.b -> 'a') e",
    "texts": "SELECT t.k, e.value, e.ordinality FROM t, json_array_elements_text(t.j -> 'a') WITH ORDINALITY e",
    "members": "SELECT e.key, count(*), count(e.value) AS present FROM t, jsonb_each_text(t.b) e GROUP BY e.key",
    "keys": "SELECT DISTINCT json_object_keys(j) AS key FROM t",
    "records": "SELECT t.k, x.* FROM t, jsonb_to_record(t.b) AS x(a jsonb, n numeric, s text)",
    "changed": "SELECT b - 'a' AS rest, b || '{\"n\": null}' AS more, jsonb_set(b, '{a,0}', 'true') AS first FROM t",
    "groups": "SELECT b -> 'n' AS n, count(*), min(b ->> 's') AS s FROM t GROUP BY b -> 'n'",
    "gathered": "SELECT k, jsonb_agg(b ORDER BY b), json_agg(DISTINCT b -> 'n')::text AS n, jsonb_agg_strict(b) FILTER "
    "(WHERE b ? 'a'), jsonb_object_agg(coalesce(b ->> 's', '-'), b -> 'n' ORDER BY b), "
    "json_object_agg_strict(coalesce(k, 0), b -> 's')::text AS o FROM t GROUP BY k",
    "rows": "SELECT k, json_agg(t)::text AS t, jsonb_agg(b) AS b, json_object_agg(coalesce(k, 0), t)::text AS o, "
    "jsonb_agg(DISTINCT (k, b)) AS d, json_agg_strict((b, k))::text AS s, jsonb_agg(t ORDER BY b) AS a FROM t "
    "GROUP BY k",
    "values": "SELECT JSON_VALUE(b, '$.n' RETURNING int DEFAULT -1 ON ERROR) AS n, JSON_ARRAYAGG(b -> 's' ORDER BY b "
    "RETURNING jsonb) AS s, count(*) FILTER (WHERE j IS JSON OBJECT WITH UNIQUE KEYS) AS o FROM t WHERE "
    "JSON_EXISTS(b, '$.a ? (@.size() > $k)' PASSING k AS k) OR JSON_QUERY(b, '$.a' WITH WRAPPER) IS NULL GROUP BY 1",
    "tables": "SELECT t.k, x.* FROM t LEFT JOIN JSON_TABLE(b, '$' PASSING k AS k COLUMNS (n numeric, s text, "
    "NESTED '$.a[*] ? (@ != $k)' COLUMNS (o FOR ORDINALITY, a jsonb PATH '$'))) x ON true",
    "paths": "SELECT k, jsonb_path_query(b, '$.a[*] ? (@ > 0 || @.type() == \"object\")') AS found FROM t",
    "matched": "SELECT count(*), jsonb_agg(jsonb_path_query_first(b, '$.**.b')) AS f FROM t WHERE b @? '$.a[1]'",
    "beside": "SELECT k, jsonb_agg(k) OVER (ORDER BY k, b ROWS 1 PRECEDING) FROM t",
    "built": "SELECT json_build_object('k', k, 'b', b)::text AS o, row_to_json(t)::text AS r FROM t",
}
DOCUMENTS = (
    "NULL", "'{}'", "'{\"a\": []}'", "'{\"a\": [1, null, \"x\"], \"n\": 1.0}'", "'{\"n\": 7, \"s\": \"y\"}'",
    "'{\"a\": [1, 1.00, {\"b\": [2]}], \"s\": null, \"n\": -2e3}'", "'{\"a\": [\"\\u00e9\"], \"z\": {\"a\": 1}}'",
)  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


def test_views_over_json_are_maintained(server: Server) -> None:
    client = server.client()
    rnd = random.Random(7)
    client.run("CREATE TABLE t (k int, b jsonb, j json)")
    for name, query in VIEWS.items():
        client.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for step in range(12):
        document = rnd.choice(DOCUMENTS)
        match step % 4:
            case 0 | 1:
                rows = [f"({rnd.randint(1, 3)}, {d}, {d})" for d in (document, rnd.choice(DOCUMENTS), document)]
                client.run(f"INSERT INTO t VALUES {', '.join(rows)}")
            case 2:
                client.run(f"UPDATE t SET b = {document}, j = {document} WHERE k = {rnd.randint(1, 3)}")
            case _:
                client.run(f"DELETE FROM t WHERE k = {rnd.randint(1, 3)}")
        for name, query in VIEWS.items():
            assert client.sorted(f"SELECT * FROM {name}") == client.sorted(query), (step, name)
    for name in VIEWS:
        assert client.rows(f"VERIFY MATERIALIZED VIEW {name}") == []
