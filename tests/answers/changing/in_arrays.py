"""``= ANY`` and ``<> ALL`` of arrays that differ by row, and functions that put arrays together and write them."""

from __future__ import annotations

SETUP = (
    "CREATE TABLE o (id int PRIMARY KEY, ids int[], w int, tags text[], n numeric[], f float8[], m numeric)",
    "CREATE TABLE b (id int PRIMARY KEY, x int)",
    "INSERT INTO o VALUES (1, '{1,2}', 2, '{a,b}', '{1.50,2}', '{0,1.5}', 1.5), (2, '{}', 1, '{}', '{}', '{}', 2), "
    "(3, NULL, 1, NULL, NULL, NULL, NULL), (4, '{1,NULL}', 1, '{NULL,1}', '{NaN,NULL}', '{NaN,-0}', 'NaN'), "
    "(5, '{1,NULL}', 3, '{5}', '{123456789012345678901.00}', '{Infinity}', 123456789012345678901), "
    "(6, '[0:2]={1,2,3}', 3, '{b,\"\"}', '{0.0,NULL}', NULL, 0), (7, '{7}', NULL, NULL, '{-1}', '{2}', -1.000)",
    "INSERT INTO o SELECT g, ARRAY[g, NULL, g % 9], g % 9, ARRAY[g::text, 'a'], ARRAY[g / 3.0, g], "
    "ARRAY[g * 0.5, NULL], g / 3.0 FROM generate_series(10, 90) AS x(g)",
    "INSERT INTO b SELECT g, g % 3 FROM generate_series(1, 12) AS x(g)",
)
CHANGES = (
    "UPDATE o SET ids = ids || 3, tags = 'z'::text || tags, n = n || m WHERE id < 20",
    "DELETE FROM b WHERE id IN (2, 7)",
    "INSERT INTO o VALUES (100, '{8,8}', 8, '{x}', '{1,1.0}', '{1}', 1.00)",
    "UPDATE o SET w = 8, tags = '{}', f = f || '{NULL}' WHERE id > 80",
    "DELETE FROM o WHERE id % 7 = 2",
    "INSERT INTO o SELECT id + 1000, ids, w, tags, n, f, m FROM o WHERE id < 12",
)
_WHOLE = (
    "w = ANY (ids), w <> ALL (ids), w = ALL (ids), NOT w = ANY (ids), w::bigint = ANY (ids), 1.0 = ANY (ids)",
    "'a' = ANY (tags), id::text = ANY (tags), 'b' <> ALL (tags), 'a'::varchar = ANY (tags), NULL = ANY (tags)",
    "m = ANY (n), 0 = ANY (n), m <> ALL (n), 1.5 = ANY (n), 'NaN' = ANY (n), 0 = ANY (f), '-0' = ANY (f)",
    "w = ANY (ids || 1), w = ANY (ids || NULL), w = ANY (ARRAY[id, w]), w = ANY (ids[1:2]), w = ANY (NULL::int[])",
    "ids || w, w || ids, ids || ids, ids || '{}', NULL::int[] || ids, ids || NULL::int[], ids || '{5,NULL}'",
    "tags || 'q'::text, 'q'::text || tags, n || m, m || n, array_append(f, 'NaN'), array_prepend(NULL, tags)",
    "array_to_string(ids, ','), array_to_string(ids, ',', '*'), array_to_string(tags, w::text, 'none'), "
    "array_to_string(n, '; '), array_to_string(f, ' ', NULL), array_to_string(ids, NULL)",
)


def queries() -> list[str]:
    """In select lists, conditions, joins and subqueries."""
    return [
        *(f"SELECT id, {part} FROM o" for part in _WHOLE),
        "SELECT id FROM o WHERE w = ANY (ids)",
        "SELECT id FROM o WHERE w <> ALL (ids)",
        "SELECT id FROM o WHERE NOT w = ANY (ids)",
        "SELECT o.id, b.id FROM o JOIN b ON b.id = ANY (o.ids)",
        "SELECT o.id, b.x FROM o LEFT JOIN b ON b.id = ANY (o.ids) AND b.x > 0",
        "SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM b WHERE b.id = ANY (o.ids))",
        "SELECT o.id FROM o WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.id = ANY (o.ids))",
        "SELECT id, (SELECT max(x) FROM b WHERE b.id = ANY (o.ids)) FROM o",
        "SELECT b.id FROM b WHERE id = ANY (ARRAY(SELECT w FROM o))",
        "SELECT w = ANY (ids), count(*), string_agg(array_to_string(tags, '-'), ',' ORDER BY id) FROM o GROUP BY 1",
    ]
