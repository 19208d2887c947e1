-- PageRank, twenty rounds, with integer mass: a node keeps 100 and hands 85 % of what it has to its successors in equal
-- parts, rounded to whole numbers. A difference that rounding takes away goes no further, so that a change of an edge
-- stays local: it costs the same in a graph of any size. A greater mass than 100 is more precise and less local (README).
CREATE MATERIALIZED VIEW pagerank AS
WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 20)
  degree (node int, edges bigint) AS (SELECT src, count(*) FROM edge GROUP BY src),
  part (node int, mass int) AS (
    SELECT r.node, (17 * r.mass + 10 * d.edges) / (20 * d.edges) FROM rank r JOIN degree d ON d.node = r.node),
  rank (node int, mass bigint) AS (
    SELECT node, sum(mass) FROM (
      SELECT node, 100 AS mass FROM node
      UNION ALL
      SELECT e.dst, p.mass FROM part p JOIN edge e ON e.src = p.node) AS given
    GROUP BY node)
SELECT node, mass FROM rank;
