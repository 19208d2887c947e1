-- SALSA, ten rounds, with integer mass: a walk that goes back and forth along edges. An authority hands its mass to the
-- hubs that point to it, a hub to the authorities that it points to, in equal parts, rounded to whole numbers. In the
-- first round there is no hub yet, and each authority gets its first 300. A greater mass is more precise and less local.
CREATE MATERIALIZED VIEW salsa AS
WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 10)
  points_to (node int, edges bigint) AS (SELECT src, count(*) FROM edge GROUP BY src),
  pointed_at (node int, edges bigint) AS (SELECT dst, count(*) FROM edge GROUP BY dst),
  forth (node int, mass int) AS (
    SELECT h.node, (2 * h.mass + p.edges) / (2 * p.edges) FROM hub h JOIN points_to p ON p.node = h.node),
  authority (node int, mass bigint) AS (
    SELECT node, 300 FROM pointed_at WHERE NOT EXISTS (SELECT FROM hub)
    UNION ALL
    SELECT e.dst, sum(f.mass) FROM forth f JOIN edge e ON e.src = f.node GROUP BY e.dst),
  back (node int, mass int) AS (
    SELECT a.node, (2 * a.mass + p.edges) / (2 * p.edges) FROM authority a JOIN pointed_at p ON p.node = a.node),
  hub (node int, mass bigint) AS (
    SELECT e.src, sum(b.mass) FROM back b JOIN edge e ON e.dst = b.node GROUP BY e.src)
SELECT 'authority' AS role, node, mass FROM authority UNION ALL SELECT 'hub', node, mass FROM hub;
