-- PageRank, twenty rounds, with integer mass: a node keeps 150,000 and hands 85 % of what it has to its successors in
-- equal parts, rounded down. Small differences die out by the rounding, so that a change of an edge stays local.
CREATE MATERIALIZED VIEW pagerank AS
WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 20)
  degree (node int, edges bigint) AS (SELECT src, count(*) FROM edge GROUP BY src),
  rank (node int, mass bigint) AS (
    SELECT node, sum(mass) FROM (
      SELECT node, 150000::bigint AS mass FROM node
      UNION ALL
      SELECT e.dst, r.mass * 85 / 100 / d.edges
      FROM rank r JOIN degree d ON d.node = r.node JOIN edge e ON e.src = r.node) AS given
    GROUP BY node)
SELECT node, mass FROM rank;
