-- A directed graph, and where shortest paths are to start.
CREATE TABLE edge (src int NOT NULL, dst int NOT NULL, length int NOT NULL DEFAULT 1, PRIMARY KEY (src, dst));
CREATE TABLE landmark (node int PRIMARY KEY);

CREATE VIEW node AS SELECT src AS node FROM edge UNION SELECT dst FROM edge;
