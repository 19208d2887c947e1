-- Lengths of the shortest paths from each landmark. Taking a landmark away takes its rows away.
CREATE MATERIALIZED VIEW shortest_paths AS
WITH MUTUALLY RECURSIVE
  path (landmark int, node int, length bigint) AS (
    SELECT landmark, node, min(length) FROM (
      SELECT node AS landmark, node, 0::bigint AS length FROM landmark
      UNION ALL
      SELECT p.landmark, e.dst, p.length + e.length FROM path p JOIN edge e ON e.src = p.node) AS offered
    GROUP BY landmark, node)
SELECT landmark, node, length FROM path;
