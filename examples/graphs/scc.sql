-- Strongly connected components as a doubly nested fixpoint (Differential Dataflow, CIDR 2013, figures 7 and 8).
-- In each round of the outer loop the least node that reaches a node is its label, edges between different labels go,
-- and the same is done once more with the edges turned round. What is left are the edges inside of a component.
CREATE MATERIALIZED VIEW scc AS
WITH MUTUALLY RECURSIVE
  kept (src int, dst int) AS (SELECT src, dst FROM edge EXCEPT SELECT src, dst FROM cut),
  forward (node int, label int) AS (
    WITH MUTUALLY RECURSIVE reached (node int, label int) AS (
      SELECT node, min(label) FROM (
        SELECT src AS node, src AS label FROM kept
        UNION ALL SELECT dst, dst FROM kept
        UNION ALL SELECT k.dst, r.label FROM reached r JOIN kept k ON k.src = r.node) AS offered
      GROUP BY node)
    SELECT node, label FROM reached),
  turned (src int, dst int) AS (
    SELECT k.dst, k.src FROM kept k JOIN forward a ON a.node = k.src JOIN forward b ON b.node = k.dst
    WHERE a.label = b.label),
  backward (node int, label int) AS (
    WITH MUTUALLY RECURSIVE reached (node int, label int) AS (
      SELECT node, min(label) FROM (
        SELECT src AS node, src AS label FROM turned
        UNION ALL SELECT dst, dst FROM turned
        UNION ALL SELECT t.dst, r.label FROM reached r JOIN turned t ON t.src = r.node) AS offered
      GROUP BY node)
    SELECT node, label FROM reached),
  cut (src int, dst int) AS (
    SELECT src, dst FROM edge
    EXCEPT
    SELECT t.dst, t.src FROM turned t JOIN backward a ON a.node = t.src JOIN backward b ON b.node = t.dst
    WHERE a.label = b.label)
SELECT n.node, coalesce(f.label, n.node) AS component FROM node n LEFT JOIN forward f ON f.node = n.node;
