-- Which package meets a name: the package of that name, else the first (by name) that provides it.
CREATE VIEW meets AS
  SELECT package AS name, package AS met_by FROM packages
  UNION ALL
  SELECT v.virtual, min(v.package) FROM provides v
  WHERE NOT EXISTS (SELECT 1 FROM packages p WHERE p.package = v.virtual)
    AND EXISTS (SELECT 1 FROM packages p WHERE p.package = v.package)
  GROUP BY v.virtual;

-- package → what it directly needs. Of each clause of depends and pre-depends the first alternative that can be met.
CREATE MATERIALIZED VIEW needs AS
  SELECT DISTINCT d.package, m.met_by AS needs
  FROM (SELECT a.package, a.kind, a.clause, min(a.alternative) AS alternative
        FROM depends a JOIN meets n ON n.name = a.target
        WHERE a.kind IN ('depends', 'pre-depends')
        GROUP BY a.package, a.kind, a.clause) first
  JOIN depends d ON d.package = first.package AND d.kind = first.kind
    AND d.clause = first.clause AND d.alternative = first.alternative
  JOIN meets m ON m.name = d.target;

-- Direct dependencies by section.
CREATE MATERIALIZED VIEW section_dependencies AS
  SELECT p.section, count(DISTINCT p.package) AS packages, count(*) AS dependencies
  FROM packages p JOIN needs n ON n.package = p.package
  GROUP BY p.section;

-- Everything that each chosen package needs, transitively.
CREATE MATERIALIZED VIEW needed AS
  WITH RECURSIVE needed(package, needs) AS (
    SELECT c.package, n.needs FROM chosen c JOIN needs n ON n.package = c.package
    UNION
    SELECT d.package, n.needs FROM needed d JOIN needs n ON n.package = d.needs)
  SELECT package, needs FROM needed;

-- Everything that would break if a watched library went away.
CREATE MATERIALIZED VIEW would_break AS
  WITH RECURSIVE broken(library, package) AS (
    SELECT w.library, n.package FROM watched w JOIN needs n ON n.needs = w.library
    UNION
    SELECT b.library, n.package FROM broken b JOIN needs n ON n.needs = b.package)
  SELECT library, package FROM broken;

-- The installed size that each chosen package pulls in, itself included where it is part of a cycle.
CREATE MATERIALIZED VIEW pulled_size AS
  SELECT d.package, count(*) AS packages, sum(p.installed_kib) AS installed_kib, max(p.installed_kib) AS largest_kib
  FROM needed d JOIN packages p ON p.package = d.needs
  GROUP BY d.package;

-- Clauses, wishes included, that no package and no provide can meet by name.
CREATE MATERIALIZED VIEW unmet AS
  SELECT d.package, d.kind, d.clause, min(d.target) AS target
  FROM depends d
  WHERE d.kind IN ('depends', 'pre-depends', 'recommends', 'suggests')
  GROUP BY d.package, d.kind, d.clause
  EXCEPT ALL
  SELECT d.package, d.kind, d.clause, min(d.target)
  FROM depends d
  WHERE (d.package, d.kind, d.clause) IN
    (SELECT m.package, m.kind, m.clause FROM depends m JOIN meets n ON n.name = m.target)
  GROUP BY d.package, d.kind, d.clause;

-- Dependency cycles among the libraries (section libs): pairs that need each other, through a recursive closure.
CREATE MATERIALIZED VIEW library_cycles AS
  WITH RECURSIVE edges AS (
    SELECT n.package AS a, n.needs AS b
    FROM needs n JOIN packages p ON p.package = n.package JOIN packages q ON q.package = n.needs
    WHERE p.section = 'libs' AND q.section = 'libs'),
  closure(a, b) AS (
    SELECT a, b FROM edges
    UNION
    SELECT c.a, e.b FROM closure c JOIN edges e ON e.a = c.b)
  SELECT x.a, x.b FROM closure x JOIN closure y ON y.a = x.b AND y.b = x.a WHERE x.a <= x.b;
