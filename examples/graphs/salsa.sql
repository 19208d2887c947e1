-- SALSA, ten rounds, with integer mass: a walk that goes back and forth along edges. An authority hands its mass to the
-- hubs that point to it, a hub to the authorities that it points to, in equal parts. In the first round there is no
-- hub yet, and each authority gets its first million.
CREATE MATERIALIZED VIEW salsa AS
WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 10)
  points_to (node int, edges bigint) AS (SELECT src, count(*) FROM edge GROUP BY src),
  pointed_at (node int, edges bigint) AS (SELECT dst, count(*) FROM edge GROUP BY dst),
  authority (node int, mass bigint) AS (
    SELECT node, 1000000 FROM pointed_at WHERE NOT EXISTS (SELECT FROM hub)
    UNION ALL
    SELECT e.dst, sum(h.mass / p.edges) FROM hub h JOIN points_to p ON p.node = h.node JOIN edge e ON e.src = h.node
    GROUP BY e.dst),
  hub (node int, mass bigint) AS (
    SELECT e.src, sum(a.mass / p.edges)
    FROM authority a JOIN pointed_at p ON p.node = a.node JOIN edge e ON e.dst = a.node
    GROUP BY e.src)
SELECT 'authority' AS role, node, mass FROM authority UNION ALL SELECT 'hub', node, mass FROM hub;
