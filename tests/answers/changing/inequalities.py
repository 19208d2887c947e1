"""Joins on inequalities: bands, points in intervals, overlaps and orders, of every kind of join and of values."""

from __future__ import annotations

from itertools import product

SETUP = (
    "CREATE TABLE a (id int PRIMARY KEY, k int, i int, l bigint, d date, t timestamp, z timestamptz, f float8, "
    "r real, n numeric(8, 2), w numeric, s text, m time)",
    "CREATE TABLE b (k int, i int, j int, l bigint, o bigint, d date, e date, t timestamp, u timestamp, "
    "z timestamptz, y timestamptz, f float8, g float8, r real, q real, n numeric(8, 2), p numeric(8, 2), w numeric, "
    "v numeric, s text, c text, m time, h time)",
    "CREATE TABLE held (k int, x int, w numeric, s text, u timestamp, r int4range, n numrange, t tsrange, "
    "m int4multirange)",
    "INSERT INTO held VALUES (1, 5, 5.5, 'user-0000-5', '2026-01-05', '[1,6)', '[1.0,5.5)', '[2026-01-01,2026-01-05)', "
    "'{[1,2),[5,9)}'), (1, 9, 9, 'user-0000-9', 'infinity', '[9,)', '(9,)', '[2026-01-05,]', '{[9,)}'), "
    "(2, 0, 1.00, 'user-0000-0', '-infinity', '(,)', '[1.00,1]', '(,2026-01-05]', '{(,)}'), "
    "(2, 6, -7, 'user-0000-55', '2026-01-04', 'empty', 'empty', 'empty', '{}'), "
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (NULL, 1, 5.50, '', NULL, '[1,1]', '(5.5,6)', NULL, NULL)",
    "CREATE TABLE many AS SELECT i AS x, i % 7 AS k FROM generate_series(1, 900) i",
    "CREATE TABLE spans AS SELECT i * 3 AS lo, i * 3 + i % 5 * i % 40 - 1 AS hi, i % 7 AS k "
    "FROM generate_series(1, 300) i",
    "INSERT INTO a VALUES (1, 1, 5, 5, '2026-01-05', '2026-01-05 12:00', '2026-01-05 12:00+02', 5.5, 5.5, 5.5, 5.5, "
    "'e', '05:00'), (2, 1, -2147483648, -9223372036854775808, '-infinity', '-infinity', '-infinity', '-infinity', "
    "'-infinity', -999999.99, '-infinity', '', '00:00'), (3, 2, 2147483647, 9223372036854775807, 'infinity', "
    "'infinity', 'infinity', 'infinity', 'infinity', 999999.99, 'infinity', 'é', '24:00')",
    "INSERT INTO a VALUES (4, NULL, 0, 0, '2000-01-01', '2000-01-01', '2000-01-01 00:00+00', '-0', '-0', 0, 0.000, "
    "'0', '12:00'), (5, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
    "(6, 2, 7, 7, '2026-01-07', '2026-01-07', '2026-01-07 00:00+00', 'NaN', 'NaN', 'NaN', 'NaN', 'NaN', '07:00')",
    "INSERT INTO b VALUES (1, 5, 9, 5, 9, '2026-01-05', '2026-01-09', '2026-01-05 12:00', '2026-01-09', "
    "'2026-01-05 10:00+00', '2026-01-09 00:00+00', 5.5, 9, 5.5, 9, 5.5, 9, 5.50, 9.0, 'e', 'i', '05:00', '09:00')",
    "INSERT INTO b VALUES (2, -2147483648, 2147483647, -9223372036854775808, 9223372036854775807, '-infinity', "
    "'infinity', '-infinity', 'infinity', '-infinity', 'infinity', '-infinity', 'infinity', '-infinity', 'infinity', "
    "-999999.99, 999999.99, '-infinity', 'infinity', '', 'é', '00:00', '24:00')",
    "INSERT INTO b VALUES (2, 0, 0, 0, 0, '2000-01-01', '2000-01-01', '2000-01-01', '2000-01-01', "
    "'2000-01-01 00:00+00', '2000-01-01 00:00+00', 0, '-0', 0, '-0', 0, 0, 0, 0, '0', '0', '12:00', '12:00')",
    "INSERT INTO b VALUES (NULL, 9, 1, 9, 1, '2026-01-09', '2026-01-01', '2026-01-09', '2026-01-01', "
    "'2026-01-09 00:00+00', '2026-01-01 00:00+00', 9, 1, 9, 1, 9, 1, 9, 1, 'i', 'a', '09:00', '01:00')",
    "INSERT INTO b VALUES (1, NULL, 9, NULL, 9, NULL, 'infinity', NULL, 'infinity', NULL, 'infinity', NULL, 'NaN', "
    "NULL, 'NaN', NULL, 9, NULL, 'NaN', NULL, 'i', NULL, '09:00')",
)
CHANGES = (
    "INSERT INTO a SELECT id + 10, 3 - k, i, l, d, t, z, f, r, n, w, s, m FROM a",
    "INSERT INTO b SELECT * FROM b WHERE k = 1",
    "INSERT INTO b VALUES (NULL, 0, 5, 0, 5, '2026-01-01', '2026-01-05', '2026-01-01', '2026-01-05 12:00', "
    "'2026-01-01 00:00+00', '2026-01-05 10:00+00', 'NaN', 'NaN', 'NaN', 'NaN', 'NaN', 'NaN', 'NaN', 'NaN', 'a', 'e', "
    "'01:00', '05:00')",
    "DELETE FROM a WHERE id IN (2, 14)",
    "UPDATE b SET j = j + 1, o = NULL, e = e + 3, g = g + 1 WHERE i = 5",
    "UPDATE b SET k = 2, i = NULL, p = NULL WHERE i = 9",
    "DELETE FROM b WHERE i = -2147483648",
    "INSERT INTO held SELECT 3 - k, x + 1, w / 2, s || 'x', u - interval '1 day', r * '[3,100)', n * '[1,5.5]', t, m "
    "FROM held",
    "UPDATE held SET r = int4range(x, x + 3), n = 'empty', m = '{[0,3)}' WHERE x = 9",
    "DELETE FROM held WHERE x = 6 OR k IS NULL AND w = 5.50",
    "DELETE FROM many WHERE x % 3 = 0",
    "DELETE FROM spans WHERE lo % 4 = 1",
    "INSERT INTO many SELECT 5 * i, i % 3 FROM generate_series(1, 100) i",
    "UPDATE spans SET hi = hi + 9, k = (k + 1) % 7 WHERE lo % 5 = 0",
    "UPDATE spans SET hi = 2147483647 WHERE lo = 150",
)
_ENDS = ("i i j", "l l o", "d d e", "t t u", "z z y", "f f g", "r r q", "n n p", "w w v", "s s c", "m m h")
_CONDITIONS = (
    "a.{x} BETWEEN b.{lo} AND b.{hi}", "b.{lo} < a.{x} AND NOT a.{x} >= b.{hi}", "a.{x} < b.{hi}", "a.{x} >= b.{lo}",
    "a.k = b.k AND a.{x} >= b.{lo} AND b.{hi} > a.{x}",
)  # fmt: skip
_KINDS = (
    "SELECT a.id, b.{lo}, b.{hi} FROM a {kind} JOIN b ON {on}",
    "SELECT a.id FROM a WHERE {kind} (SELECT FROM b WHERE {on})",
    "SELECT k, {lo}, {hi} FROM b WHERE {kind} (SELECT FROM a WHERE {on})",
)
_STATEMENTS = (
    "SELECT a.id, b.i FROM a JOIN b ON a.i > b.i AND a.i <= b.i::bigint + 10",
    "SELECT a.id, b.i FROM a JOIN b ON a.l / 2 BETWEEN b.i / 2 AND b.j / 2 AND a.k IS NOT DISTINCT FROM b.k",
    "SELECT a.id, b.i FROM a LEFT JOIN b ON a.i BETWEEN b.l AND b.o AND a.k IS NOT DISTINCT FROM b.k",
    "SELECT a.id, b.i FROM a LEFT JOIN b ON a.i BETWEEN b.i AND b.j AND a.n > 0 AND b.p < 100",
    "SELECT a.id, b.i FROM a JOIN b ON a.i BETWEEN b.i AND b.j AND a.id % 2 + b.k = 2",
    "SELECT a.id, b.i FROM a JOIN b ON a.i BETWEEN SYMMETRIC b.i AND b.j",
    "SELECT a.id, b.i FROM a JOIN b ON a.i NOT BETWEEN b.i AND b.j",
    "SELECT a.id, b.i FROM a JOIN b ON a.d BETWEEN b.t AND b.u",
    "SELECT a.id, b.i FROM a JOIN b ON a.i BETWEEN b.n AND b.p",
    "SELECT a.id, b.i FROM a JOIN b ON a.r BETWEEN b.f AND b.g",
    "SELECT a.id, b.i FROM a JOIN b ON a.t BETWEEN b.t - interval '1 day' AND b.t + interval '2 days'",
    "SELECT x.i, x.j, y.i AS k, y.j AS l FROM b x JOIN b y ON x.i < y.j AND y.i < x.j",
    "SELECT x.k, y.k AS l FROM b x JOIN b y ON x.k = y.k AND x.t <= y.u AND y.t <= x.u",
    "SELECT x.i, y.i AS j FROM b x LEFT JOIN b y ON x.k = y.k AND x.f < y.g AND y.f < x.g",
    "SELECT x.i, y.i AS j FROM b x JOIN b y ON x.i < y.j AND y.d < x.e",
    "SELECT x.id, y.id AS i FROM a x FULL JOIN a y ON x.k = y.k AND x.i BETWEEN y.i - 5.0 AND y.l",
    "SELECT x.id, y.id AS i FROM a x FULL JOIN a y ON x.k = y.k AND x.l > y.i AND x.i <= y.l",
    "SELECT a.id, b.i, x.id AS j FROM a JOIN b ON a.i BETWEEN b.i AND b.j JOIN a x ON x.k = b.k AND x.f <= a.f",
    "SELECT id, (SELECT count(*) FROM b WHERE a.i BETWEEN b.i AND b.j) AS n FROM a",
    "SELECT id, (SELECT max(j) FROM b WHERE a.k = b.k AND a.i >= b.i AND a.i < b.j) AS n FROM a",
    "SELECT id, c.j FROM a, LATERAL (SELECT j FROM b WHERE a.i BETWEEN b.i AND b.j ORDER BY j LIMIT 1) c",
    "SELECT id FROM a WHERE k IN (SELECT k FROM b WHERE a.i > b.i)",
    "SELECT id FROM a WHERE k NOT IN (SELECT 3 - id FROM a x WHERE a.i > x.i)",
    "SELECT id FROM a WHERE i > ANY (SELECT i FROM b)",
    "SELECT id FROM a WHERE i > ALL (SELECT i FROM a x WHERE x.k = a.k AND x.id <> a.id)",
    "SELECT id FROM a WHERE NOT EXISTS (SELECT FROM a x WHERE x.k = a.k AND x.id > a.id)",
    "SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k IS NOT DISTINCT FROM a.k AND b.i < a.i)",
    "SELECT id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.i < a.i AND 10 / b.j > a.id)",
    "SELECT x % 50 AS x, count(*) AS n, sum(lo) AS lo, sum(hi) AS hi FROM many JOIN spans ON x BETWEEN lo AND hi "
    "GROUP BY 1",
    *(
        f"SELECT x.w, x.{c}, y.w AS v FROM held x {kind} held y ON x.{c} && y.{c}"
        for c, kind in product("rntm", ("JOIN", "LEFT JOIN"))
    ),
    "SELECT x.w, y.w AS v FROM held x JOIN held y ON x.k = y.k AND x.n && y.n AND x.w > y.w",
    "SELECT x.w, y.w AS v FROM held x JOIN held y ON x.r && y.m",
    "SELECT x.w, y.w AS v FROM held x JOIN held y ON NOT x.r && y.r",
    "SELECT x.w, y.r FROM held x JOIN held y ON y.r @> x.x",
    "SELECT x.w, y.m FROM held x JOIN held y ON x.x <@ y.m AND x.k IS NOT DISTINCT FROM y.k",
    "SELECT x.w, y.n FROM held x JOIN held y ON x.w <@ y.n",
    "SELECT a.n, y.n AS w FROM a JOIN held y ON a.n <@ y.n",
    "SELECT x.w, y.t FROM held x LEFT JOIN held y ON y.t @> x.u",
    "SELECT x.w, y.w AS v FROM held x JOIN held y ON x.r @> y.r",
    "SELECT x.w FROM held x WHERE NOT EXISTS (SELECT FROM held y WHERE y.r && x.r AND y.w <> x.w)",
    "SELECT x.w FROM held x WHERE EXISTS (SELECT FROM held y WHERE y.n @> x.w)",
    "SELECT x.s, y.s AS t FROM held x JOIN held y ON x.s > y.s AND x.s < y.s || '9'",
    "SELECT x.s FROM held x WHERE NOT EXISTS (SELECT FROM held y WHERE y.s > x.s)",
    "SELECT a.id, y.s FROM a JOIN held y ON a.d BETWEEN y.u AND y.u + interval '2 days'",
    "SELECT a.id, y.w FROM a JOIN held y ON a.n > y.w AND a.n < y.w + 7.25",
    "SELECT a.id, y.w FROM a JOIN held y ON a.i BETWEEN y.w AND y.w * 2 AND a.k = y.k",
    "SELECT x, lo, hi FROM many m JOIN spans s ON m.k = s.k AND x >= lo AND x < hi",
    "SELECT x.k, y.k AS l, count(*) AS n, sum(y.lo) AS lo FROM spans x JOIN spans y ON x.lo < y.hi AND y.lo < x.hi "
    "AND x.k <> y.k GROUP BY 1, 2",
    "SELECT x.lo, y.lo AS l FROM spans x LEFT JOIN spans y ON x.k = y.k AND x.lo <= y.hi AND y.lo <= x.hi - 9",
    "SELECT lo, count(x) AS n FROM spans LEFT JOIN many ON x > lo AND x < hi GROUP BY lo",
    "SELECT x FROM many WHERE NOT EXISTS (SELECT FROM spans WHERE x BETWEEN lo + 1 AND hi)",
    "SELECT lo FROM spans s WHERE NOT EXISTS (SELECT FROM spans p WHERE p.k = s.k AND p.lo > s.lo)",
    "SELECT k, count(*) AS n FROM many m WHERE EXISTS (SELECT FROM spans s WHERE s.k = m.k AND s.hi < m.x) GROUP BY k",
    "WITH RECURSIVE r (n) AS (SELECT 20 UNION SELECT s.hi FROM r JOIN spans s ON r.n BETWEEN s.lo AND s.hi) "
    "SELECT n FROM r",
    "WITH RECURSIVE r (lo, hi) AS (SELECT lo, hi FROM spans WHERE lo = 30 UNION SELECT s.lo, s.hi FROM r "
    "JOIN spans s ON r.lo < s.hi AND s.lo < r.hi AND s.k <> 3 WHERE s.lo < 200) SELECT lo, hi FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT m.x FROM r JOIN many m ON m.x BETWEEN r.x + 1 AND r.x + 3 "
    "WHERE EXISTS (SELECT FROM spans s WHERE m.x BETWEEN s.lo AND s.hi)) SELECT x FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT m.x FROM r JOIN many m ON m.x BETWEEN r.x AND r.x + 2 "
    "WHERE EXISTS (SELECT FROM spans s WHERE s.k = m.k AND s.lo < r.x - 20 OR r.x < 25)) SELECT x FROM r",
    "WITH RECURSIVE r (x) AS (SELECT 1 UNION SELECT m.x FROM r JOIN many m ON m.x BETWEEN r.x AND r.x + 2 "
    "WHERE NOT EXISTS (SELECT FROM spans s WHERE s.hi < m.x - 200)) SELECT x FROM r",
    "WITH RECURSIVE r (x, k) AS (SELECT 1, 1 UNION SELECT m.x, m.k FROM r JOIN many m "
    "ON m.k = r.k AND m.x > r.x AND m.x <= r.x + 30) SELECT x, k FROM r",
)


def queries() -> list[str]:
    """Every condition over every type, every kind of join over three types, and others."""
    made = []
    for (x, lo, hi), condition in product((ends.split() for ends in _ENDS), _CONDITIONS):
        on = condition.format(x=x, lo=lo, hi=hi)
        kinds = ("INNER", "LEFT", "RIGHT") if x in "ifd" else ("INNER",)
        made += [_KINDS[0].format(lo=lo, hi=hi, kind=kind, on=on) for kind in kinds]
        tests = product(_KINDS[1:], ("EXISTS", "NOT EXISTS")) if x in "ifd" else ()
        made += [text.format(lo=lo, hi=hi, kind=kind, on=on) for text, kind in tests]
    return [*made, *_STATEMENTS]
