"""Random recursive queries with conditions on their rows, as SQL over tables t(a, b, s), u(id, x, n) and e(src, dst).

The grammar is in docs/internals/test-grammars.md.
"""

from __future__ import annotations

import random

BASES = (
    "select src, dst from e", "select a, b from t", "select a, b from t where b is not null",
    "select src, dst from e where src < 4", "select t.a, e.dst from t join e on t.b = e.src",
    "select id, x from u", "select a, a from t", "select a, b from t where s = 'a' union all select src, dst from e",
)  # fmt: skip
STEPS = (
    "select r.x, e.dst from r join e on r.y = e.src {where}",
    "select e.src, r.y from r join e on e.dst = r.x {where}",
    "select r.x, t.b from r join t on r.y = t.a {where}",
    "select t.a, r.y from t join r on t.b = r.x {where}",
    "select r.x, t.b from r join t on r.y = t.a and t.b <> r.x {where}",
    "select r.x, t.b from r join t on r.y = t.a join e on e.src = t.b and e.dst = t.a {where}",
    "select r.x, t.b from r left join t on r.y = t.a where r.y is not null",
    "select e.dst, f.dst from r join e on r.x = e.src join e f on r.y = f.src {where}",
    "select e.dst, t.b from r join e on r.x = e.src join t on r.y = t.a {where}",
    "select q.x, q.m from (select r.x, min(t.b) m from (select * from r) r join t on r.y = t.a {where} group by r.x) q",
    "select q.m, q.b from (select min(r.x) m, t.b from (select * from r) r join t on r.y = t.a {where} group by t.b) q",
    "select q.x, t.b from (select distinct x, y from r) q join t on q.y = t.a",
    "select r.x, t.b from r join t on r.y = t.a where not exists (select 1 from u where u.id = t.b and u.x = r.x)",
    "select r.x, t.b from r join t on r.y = t.a where t.b not in (select x from u where x is not null)",
    "select r.y, r.x from r {where}",
    "select r.x, r.y + 1 from r where r.y < 8",
    "select u.id, t.b from r join t on r.y = t.a join u on u.x = r.x {where}",
    "select r.x, u.x from r join t on r.y = t.a cross join u where u.id = 2",
    "(select distinct on (r.x) r.x, t.b from r join t on r.y = t.a order by r.x, t.b)",
    "select r.x, t.b from r join t on r.y = t.a where 12 / t.b > 2",
)  # fmt: skip
WHERES = ("", "", "where r.x < 5", "where r.y > 1", "where r.x is not null", "where r.x < r.y")
ASKED = (
    "x = {c}", "y = {c}", "x = {c}", "y = {c}", "x = {c} and y = {k}", "x in ({c}, {k})", "y in ({c}, {k})", "x < {c}",
    "y > {c}", "x is null", "y is null", "x = y", "x = {c} or x is null", "y = {c} and x < {k}", "x + 0 = {c}",
    "x between {c} and {k}", "x = {c} and 6 / y > 0", "y = {c}::bigint", "not x <> {c}",
)  # fmt: skip
READS = (
    "select * from r where {p}", "select * from r where {p}", "select * from r where {p}",
    "select count(*), sum(y) from r where {p}", "select x, count(*) from r where {p} group by x",
    "select * from r where {p} union all select * from r where {q}",
    "select l.x, m.y from r l join r m on l.y = m.x where l.x = {c}",
    "select l.x, m.y from (select * from r where {p}) l join (select * from r where {q}) m on l.y = m.x",
    "select u.id, q.y from u left join (select * from r where {p}) q on q.x = u.id",
    "select u.x, r.y from u join r on r.x = u.x where u.id = {c}",
    "select * from r where {p} and y in (select x from u)",
    "select r.* from r join u on r.x = u.x", "select r.x, u.id from r join u on r.y = u.x where u.id > {c}",
    "select * from r where x in (select x from u)", "select * from r where y in (select a from t where b > {c})",
    "select * from r where exists (select 1 from t where t.a = r.x and t.b = r.y)",
    "select r.x, count(*) from t join r on r.y = t.b and r.x = t.a group by r.x",
    "select u.id, r.y from u left join r on r.x = u.x", "select * from r where not (x in (select id from u))",
    "select * from (select distinct x from r) q where q.x = {c}",
)  # fmt: skip


def query(seed: int) -> str:
    """The query of a seed."""
    rnd = random.Random(seed)
    base, step, where = rnd.choice(BASES), rnd.choice(STEPS), rnd.choice(WHERES)
    step = step.format(where=where)
    every = rnd.random() < 0.3 and "(select" not in step and " union " not in base
    columns, kind = "x, y", "union"
    if every:
        columns, kind = "x, y, d", "union all"
        base = base.replace(" from ", ", 0 from ", 1)
        step = step.replace(" from r", ", r.d + 1 from r", 1).replace(" from t join r", ", r.d + 1 from t join r", 1)
        step += " and r.d < 3" if " where " in step else " where r.d < 3"
    read = rnd.choice(READS)
    for name in ("{p}", "{q}"):
        read = read.replace(name, f"({rnd.choice(ASKED)})", 1)
    read = read.replace("{c}", str(rnd.randint(1, 5))).replace("{k}", str(rnd.randint(1, 5)))
    return f"with recursive r({columns}) as ({base} {kind} {step}) {read}"


BLOCKS = (
    "r(x int, y int) as ({base} union select r.x, e.dst from r join e on r.y = e.src)",
    "r(x int, y int) as ({base} union select e.src, r.y from e join r on r.x = e.dst)",
    "p(x int, y int) as ({base} union select r.x, t.b from r join t on r.y = t.a),"
    " r(x int, y int) as (select x, y from p where y < 5)",
    "r(x int, y int) as (select x, min(y) from ({base} union all select r.x, e.dst from r join e on r.y = e.src)"
    " q(x, y) group by x)",
    "p(x int) as (select x from u), r(x int, y int) as ({base} union select p.x, r.y from p join r on r.x = p.x"
    " union select r.x, t.b from r left join t on r.y = t.a)",
    "p(x int, y int) as ({base} except select x, y from r where y > 4),"
    " r(x int, y int) as (select p.x, e.dst from p join e on e.src = p.y union select id, x from u)",
    "r(x int, y int) as ({base} union select a.x, b.y from r a join r b on a.y = b.x)",
    "r(x int, y int) as ({base} union select distinct q.x, q.y from (select * from r) q where not exists"
    " (select 1 from t where t.a = q.x and t.b > q.y))",
)


def block(seed: int) -> str:
    """A WITH MUTUALLY RECURSIVE query of a seed."""
    rnd = random.Random(seed)
    base = rnd.choice([b for b in BASES if " union " not in b])
    read = rnd.choice(READS)
    for name in ("{p}", "{q}"):
        read = read.replace(name, f"({rnd.choice(ASKED)})", 1)
    read = read.replace("{c}", str(rnd.randint(1, 5))).replace("{k}", str(rnd.randint(1, 5)))
    text = rnd.choice(BLOCKS)
    may_swing = " except " in text or "min(" in text
    limit = " (return at recursion limit 5)" if may_swing or rnd.random() < 0.2 else ""
    return f"with mutually recursive{limit} {text.replace('{base}', base)} {read}"
