"""Set-returning functions in every clause, drawn from a seed."""

from __future__ import annotations

import random

SEED, COUNT = 7, 260
SETUP = (
    "CREATE TABLE t (a int, b int)",
    "CREATE FUNCTION upto(int) RETURNS SETOF int LANGUAGE sql AS 'SELECT generate_series(1, $1)'",
    "INSERT INTO t VALUES (1, 2), (2, 1), (3, NULL), (2, 4)",
)
CHANGES = (
    "DELETE FROM t WHERE a = 2 AND b = 1",
    "INSERT INTO t VALUES (0, 5), (NULL, 3), (1, 2)",
    "UPDATE t SET a = 4 WHERE a = 3",
)
_PLAIN = ("a", "b", "a + 1")
_SETS = (
    "generate_series(1, a)", "generate_series(1, 2)", "unnest(ARRAY[a, b, 7])", "unnest(ARRAY[b, 1])",
    "generate_series(1, generate_series(1, a))", "unnest(ARRAY[generate_series(1, 2), b])", "generate_series(1, 3) + a",
    "generate_subscripts(ARRAY[a, b], 1)", "upto(a)", "upto(2)", "upto(upto(2))", "abs(-generate_series(a, 3))",
)  # fmt: skip
_WRONG = (
    "CASE WHEN a > 1 THEN generate_series(1, 2) END", "COALESCE(unnest(ARRAY[a, b]), 0)", "sum(generate_series(1, a))",
    "sum(generate_series(1, a)) OVER ()", "CASE generate_series(1, 2) WHEN 1 THEN a END",
)  # fmt: skip
_STATEMENTS = (
    "SELECT a FROM t WHERE generate_series(1, a) > 1",
    "SELECT a FROM t GROUP BY a HAVING generate_series(1, a) > 1",
    "SELECT a FROM t JOIN t u ON generate_series(1, 2) = u.a",
    "SELECT a FROM t LIMIT generate_series(1, 2)",
    "SELECT * FROM generate_series(1, generate_series(1, 2)) g",
    "VALUES (1, generate_series(1, 2))",
    "VALUES (1), (generate_series(1, 2))",
    "INSERT INTO t VALUES (1, 1), (generate_series(1, 2), 1)",
    "INSERT INTO t VALUES (1, 1) RETURNING generate_series(1, 2)",
    "UPDATE t SET a = generate_series(1, 2)",
    "WITH i AS (INSERT INTO t VALUES (generate_series(7, 8), DEFAULT) RETURNING a, b) SELECT a, b FROM i",
    "WITH i AS (INSERT INTO t SELECT a, generate_series(1, 2) FROM t WHERE a = 1 RETURNING *) SELECT * FROM i",
    "SELECT t.a, l.x, l.y FROM t, LATERAL (SELECT generate_series(1, a), unnest(ARRAY[b, a, 1])) l(x, y)",
    "SELECT t.a, l.x FROM t LEFT JOIN LATERAL (SELECT generate_series(2, a)) l(x) ON l.x > 2",
    "SELECT a, (SELECT count(*) FROM (SELECT generate_series(1, a), upto(3)) s) FROM t",
    "SELECT a FROM t WHERE b IN (SELECT generate_series(1, a))",
    "SELECT a, ARRAY(SELECT generate_series(1, a)) FROM t",
    "SELECT DISTINCT ON (a) a, unnest(ARRAY[1, 2, 3]) FROM t ORDER BY a",
    "SELECT DISTINCT ON (1) generate_series(1, 2), a, b FROM t ORDER BY 1, 2, 3",
    "SELECT count(*) OVER (PARTITION BY generate_series(1, 2)), a FROM t",
    "SELECT row_number() OVER (ORDER BY a, b, generate_series(1, 2)), generate_series(1, 2), a FROM t",
)


def queries() -> list[str]:
    """The queries of the seed, then those that are written out."""
    rnd = random.Random(SEED)
    drawn = dict.fromkeys(_query(rnd) for _ in range(COUNT))
    return [*drawn, *_STATEMENTS]


def _query(rnd: random.Random) -> str:
    shape = rnd.choice(("plain", "distinct", "on", "group", "group sets", "aggregate", "window", "union", "wrong"))
    sets = rnd.sample(_SETS, rnd.randint(1, 3))
    plain = rnd.sample(_PLAIN, rnd.randint(0, 2))
    match shape:
        case "plain" | "distinct":
            return _ordered(rnd, "DISTINCT " if shape == "distinct" else "", [*plain, *sets], "FROM t")
        case "on":
            items = ["a", "b", *sets]
            keys = ["a", "b", *(str(3 + i) for i in range(len(sets)))] if rnd.random() < 0.5 else ["a", "b DESC"]
            return f"SELECT DISTINCT ON (a) {_listed(items)} FROM t ORDER BY {', '.join(keys)}"
        case "group" | "group sets":
            of = [s for s in sets if "b" not in s] or ["generate_series(1, a)"]
            keys = ["a", *(rnd.sample(of, 1) if shape == "group sets" else [])]
            having = rnd.choice(("", " HAVING count(*) > 1", " HAVING max(b) < 5"))
            return _ordered(rnd, "", ["a", "count(*)", *of], f"FROM t GROUP BY {', '.join(keys)}{having}")
        case "aggregate":
            of = rnd.choice(("generate_series(1, max(a))", "unnest(array_agg(a ORDER BY a, b))", "upto(min(b))"))
            return f"SELECT {_listed(['count(*)', of])} FROM t"
        case "window":
            number = "count(*) OVER (PARTITION BY a)"
            return _ordered(rnd, "", [number, *plain, *sets], "FROM t")
        case "union":
            kind = rnd.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
            return f"SELECT {_listed(sets[:1])} FROM t {kind} SELECT {rnd.choice(_SETS)} FROM t"
        case _:
            return f"SELECT {_listed([*plain, rnd.choice(_WRONG)])} FROM t"


def _listed(items: list[str]) -> str:
    return ", ".join(f"{item} AS c{i}" for i, item in enumerate(items))


def _ordered(rnd: random.Random, distinct: str, items: list[str], rest: str) -> str:
    """The query, perhaps with an ORDER BY of all columns and a LIMIT."""
    text = f"SELECT {distinct}{_listed(items)} {rest}"
    if rnd.random() < 0.4:
        keys = [f"{i + 1}{rnd.choice(('', ' DESC'))}" for i in range(len(items))]
        text += f" ORDER BY {', '.join(keys)} LIMIT {rnd.randint(1, 6)}"
    return text
