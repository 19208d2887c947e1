"""Queries that mean the same get one plan, however they are written; queries that do not get different ones."""

from __future__ import annotations

import random
import sys

import pytest

from ivm.inspect import nodes
from planner.render.holdings import arrangements
from tests.planner.test_sql import RELATIONS, bound
from tests.planner.transform.test_demand import commit
from tests.support.planner_bench import World
from tests.support.spellings import meaning, spelled

EQUAL = (
    ("select t.a, u.x from t join u on t.a = u.id", "select t.a, u.x from u join t on t.a = u.id"),
    ("select t.a, u.x from t, u where u.id = t.a", "select q.a, v.x from u v inner join t q on q.a = v.id"),
    ("select t.a, e.dst from t join u on t.b = u.id join e on e.src = u.x",
     "select t.a, e.dst from e, u, t where u.x = e.src and u.id = t.b"),
    ("select t.b, u.n from t join u on t.a = u.id and t.b = u.x",
     "select t.b, u.n from t join u on t.b = u.x and u.id = t.a"),
    ("select t.a from t join u on t.a = u.id join e on u.id = e.src",
     "select t.a from t join e on t.a = e.src join u on t.a = u.id"),
    ("select x.a, y.b from t x join t y on x.a = y.b", "select y.a, x.b from t x join t y on y.a = x.b"),
    ("select x.src, z.dst from e x, e y, e z where x.dst = y.src and y.dst = z.src",
     "select z.src, y.dst from e x, e y, e z where z.dst = x.src and x.dst = y.src"),
    ("select t.a, u.x from t left join u on t.a = u.id", "select t.a, u.x from u right join t on u.id = t.a"),
    ("select t.a, u.x from t full join u on t.a = u.id and t.b < u.x",
     "select t.a, u.x from u full join t on u.x > t.b and u.id = t.a"),
    ("select * from t join u on t.a = u.id where t.b > 2 and u.x < 4",
     "select q.a, q.b, q.s, r.id, r.x, r.n from (select * from u where 4 > x) r"
     " join (select * from t where b > 2) q on q.a = r.id"),
    ("select t.a, u.x from t left join u on t.a = u.id where u.x > 1",
     "select t.a, u.x from t join u on t.a = u.id where u.x > 1"),
    ("select a from t where a > 1 and b < 3", "select a from t where b < 3 and 1 < a"),
    ("select a from t where a = b or s = 'a'", "select a from t where s = 'a' or b = a"),
    ("select a from t where a in (3, 1, 2)", "select a from t where a in (1, 2, 3, 1)"),
    ("select a from t where a between 2 and 4", "select a from t where a <= 4 and a >= 2"),
    ("select a + b from t", "select b + a from t"),
    ("select a * b + 1 from t where a > 1 and a > 1", "select 1 + b * a from t where a > 1"),
    ("select a from t where not (a < b)", "select a from t where a >= b"),
    ("select a, b from t where a + b = 3 and b is not null",
     "select a, b from t where 3 = b + a and b is not null and b is not null"),
    ("select a, b, s from t where a > 1", "select s, b, a from t where a > 1"),
    ("select a, count(*) from t group by a", "select count(*) c, q.a z from (select s, b, a from t) q group by q.a"),
    ("select sum(b), a, s from t group by a, s",
     "with q as (select * from t) select s, a, sum(b) from q group by s, a"),
    ("select sum(b), max(b), count(*) from t group by a", "select a, count(*), max(b), sum(b) from t group by a"),
    ("select distinct a, b from t", "select b, a from t group by a, b"),
    ("select distinct a from t", "select a from t group by 1"),
    ("select a from t union select x from u", "select x from u union select a from t"),
    ("select a from t union all select x from u union all select src from e",
     "select src from e union all (select x from u union all select a from t)"),
    ("select distinct a from (select a from t union all select x from u) q", "select a from t union select x from u"),
    ("select a from t union select a from t union select x from u", "select x from u union (select distinct a from t)"),
    ("select a, b from t intersect select src, dst from e", "select src, dst from e intersect select a, b from t"),
    ("select a, b from t except select src, dst from e",
     "select z.a, z.b from (select b, a from t except select dst, src from e) z"),
    ("select a from t where a in (select x from u)", "select a from t where exists (select 1 from u where u.x = t.a)"),
    ("select a from t where exists (select 1 from u where u.x = t.a and u.id > 1)",
     "select a from t where a in (select distinct x from u where 1 < id)"),
    ("select a from t where a in (select x from u) and b in (select src from e)",
     "select a from t where exists (select from e where t.b = src) and exists (select from u where x = t.a)"),
    ("select a from t where not exists (select 1 from u where u.x = t.a)",
     "select t.a from t where not exists (select * from u where t.a = x)"),
    ("with recursive r(x, y) as (select src, dst from e union select r.x, e.dst from r join e on r.y = e.src)"
     " select * from r",
     "with recursive q(x, y) as (select src, dst from e union select q.x, e.dst from e, q where e.src = q.y)"
     " select y, x from q"),
    ("with mutually recursive p (x int) as (select src from e union select t.b from p join t on p.x = t.a)"
     " select x from p",
     "with mutually recursive p (z int) as (select b from t, p where t.a = z union select src from e)"
     " select z from p"),
    ("select t.b from t, u, e where t.a = u.id and t.a = e.src and u.id = 3 and e.src = 4",
     "select t.b from t, e, u where t.a = e.src and t.a = u.id and u.id = 3 and e.src = 4"),
    # inputs that are the same table and swap, as seen by the join's reader
    ("select x.a, count(y.a) from t x join t y on x.b = y.b group by 1",
     "select y.a, count(x.a) from t x join t y on x.b = y.b group by 1"),
    ("select x.id, y.id, y.x, count(x.x), count(*) from u x join u y on x.x = y.x and x.id = y.id group by 1, 2, 3",
     "select y.id, x.id, x.x, count(*), count(y.x) from u x join u y on y.id = x.id and y.x = x.x group by 1, 2, 3"),
    ("select x.a, y.a, u.n from t x join t y on x.b = y.b left join u on x.a = u.id and y.a = u.x",
     "select y.a, x.a, u.n from t x join t y on x.b = y.b left join u on y.a = u.id and x.a = u.x"),
    ("select x.a, y.b from t x full join t y on x.a = y.b", "select y.a, x.b from t x full join t y on y.a = x.b"),
    ("select x.a p, y.a q from t x join t y on x.b = y.b union all select id, x from u",
     "select y.a p, x.a q from t x join t y on x.b = y.b union all select id, x from u"),
    ("select q.p, e.dst from (select distinct x.a p, y.a q from t x join t y on x.b = y.b) q join e on q.p = e.src",
     "select r.q, e.dst from (select distinct x.a p, y.a q from t x join t y on x.b = y.b) r join e on r.q = e.src"),
    ("select x.a, y.a from t x join t y on x.b = y.b where exists (select from u where u.id = x.a and u.x = y.b)"
     " and not exists (select from e where e.src = x.b and e.dst = y.a)",
     "select y.a, x.a from t x join t y on x.b = y.b where not exists (select from e where e.src = y.b and e.dst = x.a)"
     " and exists (select from u where u.id = y.a and u.x = x.b)"),
    ("select p, q from (select src p, dst q, dst r from e union all select dst, src, src from e"
     " union all select a, b, b from t) o",
     "select q, p from (select b q, a r, a p from t union all select src, dst, dst from e"
     " union all select dst, src, src from e) o"),
    ("select e1.src, e4.dst from e e1, e e2, e e3, e e4, e e5, e e6 where e1.dst = e2.src and e2.dst = e3.src"
     " and e3.dst = e4.src and e4.dst = e5.src and e5.dst = e6.src and e6.dst = e1.src",
     "select e5.src, e2.dst from e e6, e e2, e e1, e e4, e e5, e e3 where e1.dst = e2.src and e3.dst = e4.src"
     " and e2.dst = e3.src and e4.dst = e5.src and e6.dst = e1.src and e5.dst = e6.src"),
)  # fmt: skip
GROUPED = (
    ("select a, sum(b), count(*) from t group by a", "select a, sum(b) from t group by a"),
    ("select a, sum(b) from t group by a", "select a, count(b), count(*), sum(b) from t group by a"),
    ("select a, sum(b) s from t group by a", "select * from (select a, sum(b) s from t group by a) q where s > 3"),
)  # fmt: skip
DIFFERENT = (
    ("select a from t where a > 1", "select a from t where a >= 1"),
    ("select a - b from t", "select b - a from t"),
    ("select a from t where a < b", "select a from t where b < a"),
    ("select a, b from t union all select src, dst from e", "select a, b from t union all select dst, src from e"),
    ("select t.a, u.x from t left join u on t.a = u.id", "select t.a, u.x from u left join t on t.a = u.id"),
    ("select a, b from t except select src, dst from e", "select src, dst from e except select a, b from t"),
    ("select x.a, y.b from t x join t y on x.a = y.b", "select x.a, y.b from t x join t y on y.a = x.b"),
    ("select a from t where a in (select x from u)", "select a from t where a not in (select x from u)"),
    ("select distinct a, b from t", "select a, b from t"),
    ("select a from t union select x from u", "select a from t union all select x from u"),
    ("select sum(b) from t group by a", "select sum(a) from t group by b"),
    ("select x.a, count(y.b) from t x join t y on x.b = y.b group by 1",
     "select x.a, count(y.b) from t x join t y on x.b = y.b and x.a = y.a group by 1"),
    ("select x.a, y.a from t x join t y on x.b = y.b left join u on x.a = u.id and y.a = u.x where n is null",
     "select x.a, y.a from t x join t y on x.b = y.b left join u on x.a = u.x and y.a = u.id where n is null"),
)  # fmt: skip


def world() -> World:
    made = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    rows = [(1, (i % 4 + 1, i % 3 + 1, "ab"[i % 2]), 1) for i in range(12)]
    rows += [(2, (i, (i * 2) % 5, None), 1) for i in range(1, 5)] + [(3, (i, j), 1) for i in (1, 2, 4) for j in (2, 3)]
    made.commit([*rows, (1, (None, 2, None), 1)])
    return made


def held(made: World) -> tuple[int, int]:
    """Nodes, and arrangements except the views' own rows and errors."""
    found = arrangements(made.dataflow, made.renderer.stored)
    return len(nodes(made.dataflow)), sum(a.kind not in ("Output", "Errors") for a in found)


@pytest.mark.parametrize(("one", "two"), EQUAL)
def test_equal_plans_are_one(one: str, two: str) -> None:
    made = world()
    empty = held(made)
    made.install(100, bound(one).rel)
    before = held(made)
    made.install(101, bound(two).rel)
    after = held(made)
    assert after[1] == before[1]
    assert after[0] - before[0] <= 3  # the columns in another order; an Output for rows and one for errors
    made.check()
    made.commit([(1, (1, 1, "a"), 1), (2, (5, 1, None), 1), (3, (1, 5), 1), (3, (1, 2), -1)])
    made.check()
    made.renderer.drop_relation(100)
    made.views.pop(100)
    made.commit([(1, (1, 1, "a"), -1), (2, (5, 1, None), -1), (1, (2, 2, "b"), 1)])
    made.check()
    made.renderer.drop_relation(101)
    assert held(made) == empty


@pytest.mark.parametrize(("one", "two"), GROUPED)
def test_other_aggregates_read_the_same_groups(one: str, two: str) -> None:
    made = world()
    made.install(100, bound(one).rel)
    before = held(made)
    made.install(101, bound(two).rel)
    assert held(made)[1] == before[1]
    made.check()


def test_average_and_sum_read_the_same_groups() -> None:
    made = world()
    made.install(100, bound("select a, sum(b), count(*) from t group by a").rel)
    before = held(made)
    made.install(101, bound("select avg(b), a from t group by a").rel)
    assert held(made)[1] == before[1]


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_other_plans_are_not_shared(one: str, two: str) -> None:
    made = world()
    made.install(100, bound(one).rel)
    made.install(101, bound(two).rel)
    made.check()
    outputs = [made.renderer.stored[v].rows for v in (100, 101)]
    assert outputs[0] != outputs[1]


VIEWS = 8
"""Queries of one history, two spellings of each."""


def play(seed: int, steps: int = 4) -> None:
    """Creates views of random queries, then of equivalent ones: only the columns' other order is added; all are right
    at every epoch; in the end nothing is left."""
    rnd = random.Random(seed)
    made = World({r.id: (r.schema, r.primary_key) for r in RELATIONS.values()})
    for _ in range(4):
        commit(made, rnd)
    empty = held(made)
    meanings = [meaning(seed * VIEWS + i) for i in range(VIEWS)]
    texts = []
    for i, arms in enumerate(meanings):
        one, two = spelled(arms, 2 * (seed * VIEWS + i)), spelled(arms, 2 * (seed * VIEWS + i) + 1)
        texts.append((one, two))
        made.install(100 + i, bound(one[0]).rel)
    for i, (one, two) in enumerate(texts):
        before = held(made)
        made.install(200 + i, bound(two[0]).rel)
        after = held(made)
        assert after[1] == before[1], (seed, i, one[0], two[0])
        assert after[0] - before[0] <= 3, (seed, i, one[0], two[0])
    for step in range(steps):
        if step == steps - 1:
            for i in range(VIEWS):
                gone = rnd.choice((100, 200)) + i
                made.renderer.drop_relation(gone)
                made.views.pop(gone)
        commit(made, rnd)
        for view, rel in made.views.items():
            assert made.view(view) == made.model(rel), (seed, view, texts[view % 100][view // 200])
    for view in list(made.views):
        made.renderer.drop_relation(view)
    assert held(made) == empty


@pytest.mark.parametrize("seed", range(8))
def test_other_spellings_of_random_queries_are_the_same_plans(seed: int) -> None:
    play(seed)


def main() -> None:
    """Histories of other seeds: python -m tests.planner.transform.test_equal_plans FIRST COUNT."""
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        play(seed)
    print(f"{count} histories of {2 * VIEWS} views agree")


if __name__ == "__main__":
    main()
