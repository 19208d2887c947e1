"""Ranges, network addresses, bit strings and times with a zone: stored, kept in arrays and keys, and maintained."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.profiles import scaled
from tests.support.sessions import Client, Server

VALUES = {
    "r int4range": ("'empty'", "'[1,5)'", "'[3,9)'", "'(,2)'", "'[7,)'", "'[1,4]'"),
    "n numrange": ("'empty'", "'[1.0,2)'", "'[1.00,2.0)'", "'[1,3.50]'", "'(,1)'"),
    "m int4multirange": ("'{}'", "'{[1,3),[5,9)}'", "'{[2,4)}'", "'{(,1)}'", "'{[1,3),[5,8]}'"),
    "i inet": ("'10.1.2.3/8'", "'10.0.0.0/8'", "'::1'", "'192.168.1.1'"),
    "c cidr": ("'10.0.0.0/8'", "'192.168.1.0/24'", "'::/0'"),
    "a macaddr": ("'08:00:2b:01:02:03'", "'08-00-2b-01-02-03'", "'ff:ff:ff:ff:ff:ff'"),
    "b bit(3)": ("B'101'", "B'001'", "B'110'"),
    "v varbit": ("B''", "B'1'", "B'10'", "B'0000000001'"),
    "t timetz": ("'04:05-08'", "'12:05+00'", "'04:05:06.5+01'"),
    "w tsvector": ("'fat:1 cat:2'", "'fat cat'", "'cat:1A rat:2'", "''"),
    "q tsquery": ("'fat & cat'", "'cat:A'", "'cat:B'", "'cat <-> rat'", "'!fat'", "''"),
    "d text": ("'the fat cats'", "'a rat''s tail'", "'of'"),
}
VIEWS = (
    "SELECT r, count(*) AS k, min(i), max(t), count(DISTINCT n) AS d FROM x GROUP BY r",
    "SELECT n, range_agg(r) AS a, range_intersect_agg(r) AS b, range_agg(m) AS c FROM x GROUP BY n",
    "SELECT DISTINCT n, v FROM x",
    "SELECT range_agg(m) AS a, range_intersect_agg(m) AS b, array_agg(i ORDER BY i, id) AS c FROM x",
    "SELECT p.id, q.id AS other, p.n * q.n AS common, p.r && q.r AS o FROM x p JOIN x q ON p.n = q.n AND p.b = q.b",
    "SELECT id, r @> 3 AS e, lower(r), upper(n), isempty(m), m - int4multirange(r) AS rest, b & B'110' AS k FROM x",
    "SELECT id, i << c AS w, host(i), a::macaddr8 AS l, v || b AS s, extract(hour from t) AS h, c::text AS z FROM x",
    "SELECT x.id, part FROM x, unnest(x.m) part WHERE part -|- x.r OR part @> 2",
    "SELECT q, count(*) AS k, array_agg(w ORDER BY w, id) AS w FROM x GROUP BY q",
    "SELECT p.id, q.id AS other, p.w || q.w AS w FROM x p JOIN x q ON p.w @@ q.q OR p.w = q.w",
    "SELECT id, to_tsvector('english', d) AS v FROM x WHERE to_tsvector('english', d) @@ "
    "to_tsquery('english', 'cat|rats')",
    "SELECT DISTINCT ON (c) c, r, t FROM x ORDER BY c, r DESC, t, id",
)


def _row(rnd: random.Random) -> str:
    return ", ".join("NULL" if rnd.random() < 0.15 else rnd.choice(texts) for texts in VALUES.values())


@pytest.fixture
def client(server: Server) -> Client:
    client = server.client()
    client.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return client


def _check(client: Client, step: object) -> None:
    for i, view in enumerate(VIEWS):
        assert client.rows(f"VERIFY MATERIALIZED VIEW v{i}") == [], (step, view)


def test_views_are_maintained(client: Client, server: Server) -> None:
    rnd = random.Random(3)
    client.run(f"CREATE TABLE x (id int PRIMARY KEY, {', '.join(VALUES)})")
    for i, view in enumerate(VIEWS):
        client.run(f"CREATE MATERIALIZED VIEW v{i} AS {view}")
    for step in range(scaled(25)):
        if rnd.random() < 0.5:
            rows = ", ".join(f"({step * 10 + k}, {_row(rnd)})" for k in range(rnd.randint(1, 3)))
            client.run(f"INSERT INTO x VALUES {rows}")
        elif rnd.random() < 0.5:
            client.run(f"DELETE FROM x WHERE id % {rnd.randint(2, 5)} = 0")
        else:
            names = [name.split()[0] for name in VALUES]
            client.run(f"UPDATE x SET ({', '.join(names)}) = ({_row(rnd)}) WHERE id % {rnd.randint(2, 6)} = 1")
        _check(client, step)
    client.run(f"INSERT INTO x VALUES (9999, {_row(random.Random(8))})")
    before = [client.sorted(f"SELECT * FROM v{i}") for i in range(len(VIEWS))]
    assert any(before)
    server.restart()
    again = server.client()
    assert before == [again.sorted(f"SELECT * FROM v{i}") for i in range(len(VIEWS))]
    again.run(f"INSERT INTO x VALUES (10000, {_row(rnd)})")
    _check(again, "restarted")


def test_keys_indexes_and_arrays(client: Client) -> None:
    client.run("CREATE TABLE k (r numrange PRIMARY KEY, i inet UNIQUE, a int4range[], b bit(2)[])")
    client.run("INSERT INTO k VALUES ('[1.0,2)', '1.2.3.4', '{\"[1,2)\",empty,NULL}', '{10,01}')")
    assert client.state("INSERT INTO k VALUES ('[1,2.00)', '::1')") == "23505"
    assert client.state("INSERT INTO k VALUES ('[1,3)', '1.2.3.4/32')") == "23505"
    assert client.rows("SELECT a[1], b[2], r FROM k WHERE i = '1.2.3.4'") == [("[1,2)", "01", "[1.0,2)")]
    assert client.rows("SELECT i FROM k WHERE r = '[1.00,2.0)' AND '[1,2)' = ANY (a)") == [("1.2.3.4",)]
    client.run("CREATE INDEX ON k (i); CREATE TABLE c (i inet REFERENCES k (i))")
    assert client.state("INSERT INTO c VALUES ('9.9.9.9')") == "23503"


def test_copy(client: Client, tmp_path: Path) -> None:
    client.run("CREATE TABLE c (r int4range, m nummultirange, i inet, v varbit, t timetz, a cidr[])")
    lines = ["[1,5)\t{[1.0,2),(3,)}\t10.1.2.3/8\t101\t04:05:06-08\t{10.0.0.0/8}", "empty\t{}\t\\N\t\t\\N\t{}"]
    client.run("COPY c FROM STDIN", copy="".join(f"{line}\n" for line in lines).encode())
    assert client.copy_out("COPY (SELECT * FROM c ORDER BY r DESC) TO STDOUT") == lines
    assert client.copy_out("COPY (SELECT * FROM c ORDER BY r DESC) TO STDOUT (FORMAT csv)")[0].startswith(
        '"[1,5)","{[1.0,2),(3,)}",10.1.2.3/8,101,'
    )
