-- Weakly connected components: each node's label is the least node that it is connected with, whatever the direction.
CREATE MATERIALIZED VIEW wcc AS
WITH MUTUALLY RECURSIVE
  beside (a int, b int) AS (SELECT src, dst FROM edge UNION SELECT dst, src FROM edge),
  label (node int, component int) AS (
    SELECT node, min(component) FROM (
      SELECT node, node AS component FROM node
      UNION ALL
      SELECT beside.b, label.component FROM label JOIN beside ON beside.a = label.node) AS offered
    GROUP BY node)
SELECT node, component FROM label;
