-- The paper's demonstration: who mentions whom, within a window of time that slides forwards and back; the strongly
-- connected components of that graph, and the most used hashtag of each component.
-- The window is a table with a row for each second that is shown, so that a slide costs what comes and goes with it.
CREATE TABLE mention (at int NOT NULL, author int NOT NULL, mentioned int NOT NULL);
CREATE TABLE hashtag (at int NOT NULL, author int NOT NULL, tag text NOT NULL);
CREATE TABLE shown (at int PRIMARY KEY);

CREATE VIEW edge AS SELECT DISTINCT m.author AS src, m.mentioned AS dst FROM mention m JOIN shown s ON s.at = m.at;
CREATE VIEW node AS SELECT src AS node FROM edge UNION SELECT dst FROM edge;

-- scc.sql is the same over these views

CREATE VIEW component AS
SELECT c.component, count(*) AS people FROM scc c GROUP BY c.component HAVING count(*) > 1;

CREATE MATERIALIZED VIEW topics AS
SELECT DISTINCT ON (used.component) used.component, c.people, used.tag, used.times FROM (
  SELECT c.component, h.tag, count(*) AS times
  FROM hashtag h JOIN shown s ON s.at = h.at JOIN scc c ON c.node = h.author
  GROUP BY c.component, h.tag) AS used
JOIN component c ON c.component = used.component
ORDER BY used.component, used.times DESC, used.tag;
