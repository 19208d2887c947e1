"""SQL through binder and planner, maintained and one-shot, against DuckDB on the same rows (where it agrees with
Postgres)."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb

from ivm.words import FLOAT8, INT4, INT8, NUMERIC, TEXT, Kind, SqlType
from planner.lower.plan import lower
from planner.peek.order_limit import finish
from planner.peek.run import run
from planner.transform.pipeline import optimize
from sql.bind.statement import bind_statement
from sql.catalog.catalog import NO_OPERATORS, Operators, Relation, RelationKind, TableColumn
from sql.parse import StatementText
from sql.statements.queries import Query
from tests.support.planner_bench import Row, World, decode

MONEY = SqlType(Kind.NUMERIC, 10, 2)


def relation(number: int, name: str, columns: str, key: tuple[int, ...] = ()) -> Relation:
    kinds = {"int": INT4, "bigint": INT8, "text": TEXT, "double": FLOAT8, "numeric": NUMERIC, "money": MONEY}
    made = []
    for column in columns.split(", "):
        column_name, kind = column.rstrip("!").split()
        made.append(TableColumn(column_name, kinds[kind], not column.endswith("!")))
    return Relation(number, "public", name, RelationKind.TABLE, tuple(made), key)


RELATIONS = {
    r.name: r
    for r in (
        relation(1, "t", "a int, b int, s text"),
        relation(2, "u", "id int!, x int, n money", (0,)),
        relation(3, "e", "src int!, dst int!", (0, 1)),
        relation(4, "f", "k bigint, v double, d numeric"),
    )
}
QUERIES = """
select a, count(*), sum(b), min(s), max(s), avg(b) from t group by a;
select t.a, u.x from t left join u on t.a = u.id where u.x > 2 or u.x is null;
select * from t full join u on t.a = u.id and t.b < u.x;
select a from t where exists (select 1 from u where u.id = t.a and u.x > t.b);
select a from t where a not in (select x from u);
select a from t where a not in (select x from u where x is not null);
select a, (select max(x) from u where u.id < t.a) from t;
select a, (select count(*) from u where u.id <= t.a
    and exists (select 1 from e where e.src = u.id and e.dst = t.b)) from t;
select t.a, l.m from t left join lateral (select max(dst) m from e where e.src = t.a group by e.src) l on true;
select a, case when a is null then (select max(x + 1) from u) when b > 3 then (select min(x + b) from u) else b end
    from t;
with recursive r(n) as (select id from u union select e.dst from r join e on r.n = e.src) select n from r;
with recursive r(n, d) as (select id, 0 from u union all select e.dst, d + 1 from r join e on r.n = e.src where d < 3)
    select n, d, count(*) from r group by n, d;
select e.src, sum(distinct e.src), sum(distinct t.b) from e full join t on e.dst = t.a
    where e.dst is not null group by e.src;
select e.src, count(*), max(t.b), sum(distinct t.b) from t full join e on e.dst = t.a where e.src > 0 group by e.src;
select distinct a, s from t;
select a from t union select x from u;
select a, b from t except all select src, dst from e;
select a, b from t intersect all select src, dst from e;
select a, b from t intersect select src, dst from e;
select s, string_agg(s, ',' order by a) from t group by s;
select u.id from u where u.n = (select max(n) from u);
select sum(n), avg(n), count(distinct n) from u;
select k, sum(v), avg(v), sum(d) from f group by k;
select d, count(*) from f group by d;
select count(distinct d) from f;
select distinct v from f;
select f1.k, f2.k from f f1 join f f2 on f1.d = f2.d;
select u.id, f.k from u join f on u.n = f.d;
select t.a from t join f on t.a = f.k;
select u.id, f.k from u left join f on u.n = f.d and f.v > 0;
select t.a from t, u, e where t.a = e.src and e.dst = u.id and u.x = t.b;
select a from t where (a, b) in (select src, dst from e);
select a, a in (select x from u) from t;
select a, b > all (select x from u where x is not null) from t;
select t.a, g from t, lateral generate_series(1, t.a) g(g) where t.a is not null;
with c as (select a, count(*) n from t group by a)
    select c1.a, c2.n from c c1 join c c2 on c1.a = c2.a where c2.n >= (select min(n) from c);
select max(a) filter (where b > 2), count(*) filter (where s = 'a') from t;
select a from t group by a having sum(b) > (select avg(x) from u);
select coalesce(t.a, u.id), count(*) from t full join u on t.b = u.x group by 1;
select t1.a from t t1 where not exists (select 1 from t t2 where t2.a > t1.a);
select t1.a, t1.b from t t1 where t1.b = (select min(t2.b) from t t2 where t2.a = t1.a);
select src from e e1 where not exists (select 1 from e e2 where e2.src = e1.dst
    and not exists (select 1 from u where u.id = e2.dst and u.x = e1.src));
select q.a, count(*) from (select a, b from t union all select id, x from u) q where q.a > 2 group by q.a;
select * from (select a, sum(b) sb from t group by a) q join u on q.a = u.id where q.a in (1, 2, 3) and u.x > 1;
select t.a, v.column1 from t join (values (1), (2), (2)) v(column1) on t.a = v.column1;
select a, case when b > 3 then (select min(x) from u where u.x > t.b) else 0 end from t;
select count(*) from t where s like 'a%' or exists (select 1 from u where u.x = t.b);
"""


def normal(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return round(float(value), 6) + 0.0


def rows_of(rows: Any) -> Counter[Row]:
    return Counter(tuple(normal(v) for v in row) for row in rows)


def bound(text: str) -> Query:
    class Catalog:
        def resolve(self, schema_name: str | None, name: str) -> Relation | None:
            return RELATIONS.get(name)

        def by_id(self, number: int) -> Relation | None:
            return next((r for r in RELATIONS.values() if r.id == number), None)

        def routines(self, schema_name: str | None, name: str) -> tuple[Relation, ...]:
            return ()

        def operators(self, schema_name: str | None, symbol: str) -> Operators:
            return NO_OPERATORS

        def type(self, schema_name: str | None, name: str) -> Relation | None:
            return None

        def home(self, schema_name: str | None, temporary: bool) -> str:
            return "public"

    statement = bind_statement(StatementText(text, 0), Catalog(), ()).statement
    assert isinstance(statement, Query)
    return statement


def new_row(table: str, rnd: random.Random) -> Row:
    some = rnd.choice((None, 1, 2, 3, 4, 5, 6))
    if table == "t":
        return (some, rnd.choice((None, 1, 2, 3, 4, 5)), rnd.choice((None, "a", "b", "ab", "zz")))
    if table == "u":
        return (rnd.randint(1, 6), some, rnd.choice((None, Decimal("1.50"), Decimal("2.00"), Decimal("-3.25"))))
    if table == "e":
        return (rnd.randint(1, 6), rnd.randint(1, 6))
    number = rnd.choice((None, Decimal("1.5"), Decimal("1.50"), Decimal("2.0")))
    return (some, rnd.choice((None, 0.5, 1.25, -2.0, 0.0)), number)


def twin() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(
        "create table t(a int, b int, s text); create table u(id int, x int, n decimal(10,2));"
        "create table e(src int, dst int); create table f(k bigint, v double, d decimal(20,4))"
    )
    return made


def change(world: World, other: duckdb.DuckDBPyConnection, rnd: random.Random) -> None:
    changes: list[tuple[int, Row, int]] = []
    for _ in range(4):
        table = rnd.choice(list(RELATIONS.values()))
        have = list(world.contents[table.id].elements())
        if have and rnd.random() < 0.35:
            if not any(t == table.id for t, _, _ in changes):
                changes.append((table.id, rnd.choice(have), -1))
            continue
        row = new_row(table.name, rnd)
        key = tuple(row[i] for i in table.primary_key)
        pending = [r for t, r, _ in changes if t == table.id]
        if not key or all(tuple(r[i] for i in table.primary_key) != key for r in (*have, *pending)):
            changes.append((table.id, row, 1))
    world.commit(changes)
    for table in RELATIONS.values():
        other.execute(f"delete from {table.name}")
        rows = list(world.contents[table.id].elements())
        if rows:
            other.executemany(f"insert into {table.name} values ({','.join('?' * len(rows[0]))})", rows)


def test_sql_equals_duckdb() -> None:
    world = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    other, rnd = twin(), random.Random(11)
    texts = [q.strip() for q in QUERIES.split(";\n") if q.strip()]
    queries = [bound(text) for text in texts]
    for i, query in enumerate(queries):
        world.install(100 + i, query.rel)
    world.views.clear()
    for _ in range(8):
        change(world, other, rnd)
        for i, (text, query) in enumerate(zip(texts, queries, strict=True)):
            expected = rows_of(other.execute(text).fetchall())
            seen = world.view_of(100 + i, world.renderer.stored[100 + i].schema)
            assert rows_of(seen.elements()) == expected, text
            rowset = run(lower(optimize(query.rel), world.indexes(True)), world, world.context)
            done = finish(rowset, query.finishing, world.context)
            assert rows_of(decode(done, world.dictionary)) == expected, text
