CREATE DOMAIN posint AS int DEFAULT 1 CHECK (value > 0) CONSTRAINT small CHECK (VALUE < 100 AND value <> 50);

CREATE DOMAIN code AS varchar(5) DEFAULT 'a' CHECK (value ~ '^a' OR length(value) > 3);

CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';

CREATE TABLE t (id int PRIMARY KEY, a int DEFAULT 1 + 2, b text DEFAULT 'x', c varchar(10) DEFAULT 'abc', d timestamptz DEFAULT now(), e numeric(8,2) DEFAULT 1, f date DEFAULT '2020-01-01', g bool DEFAULT true, h int DEFAULT -1, i text DEFAULT lower('A') || 'b', j int[] DEFAULT '{1,2}', k int GENERATED ALWAYS AS (a * 2 + id) STORED, l timestamp DEFAULT CURRENT_TIMESTAMP, m jsonb DEFAULT '{"a" : 1}', n int DEFAULT NULL, o text DEFAULT CASE WHEN true THEN 'p' END, p float8 DEFAULT 1.5, q bigint DEFAULT 5, s serial, u text GENERATED ALWAYS AS (upper(b)) STORED, v interval DEFAULT '1 day', w char(3) DEFAULT 'ab');

CREATE TABLE checked (a int CHECK (a > 0), b text CHECK (b IN ('x', 'y') OR b IS NULL), c varchar(5), d int, CONSTRAINT two CHECK (a < d AND length(c) > 2), CONSTRAINT three CHECK (c LIKE 'a%' AND NOT (a = 5)), CONSTRAINT four CHECK (CASE WHEN a > 1 THEN d > 1 ELSE true END), CONSTRAINT five CHECK (a BETWEEN 1 AND 10), CONSTRAINT six CHECK (d IS NOT NULL) NO INHERIT, CONSTRAINT seven CHECK (checked.d % 2 = 0));

ALTER TABLE checked ADD CONSTRAINT eight CHECK (d <> 7) NOT VALID;

CREATE INDEX i1 ON t (lower(b));

CREATE INDEX i2 ON t ((a + id), b DESC);

CREATE INDEX i3 ON t (a) WHERE a > 1 AND b = 'x';

CREATE UNIQUE INDEX i4 ON t (upper(b), (a IS NULL)) WHERE b IS NOT NULL;

CREATE INDEX i5 ON t ((b || 'x'), coalesce(a, 0));

CREATE TABLE pl (a int, b text) PARTITION BY LIST (lower(b));

CREATE TABLE pl1 PARTITION OF pl FOR VALUES IN ('x', 'y', NULL);

CREATE TABLE pr (a int, b date) PARTITION BY RANGE (a, b);

CREATE TABLE pr1 PARTITION OF pr FOR VALUES FROM (1, '2020-01-01') TO (10, MAXVALUE);

CREATE TABLE px (a int, b int) PARTITION BY RANGE ((a + b));

CREATE TABLE px1 PARTITION OF px FOR VALUES FROM (MINVALUE) TO (10);

CREATE TRIGGER t1 BEFORE UPDATE ON t FOR EACH ROW WHEN (old.a IS DISTINCT FROM new.a AND new.b = 'x') EXECUTE FUNCTION tf();

CREATE TRIGGER t2 AFTER INSERT ON t FOR EACH ROW WHEN (new.a > 1) EXECUTE FUNCTION tf();

SELECT conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint WHERE contype = 'c' AND (conrelid = 'checked'::regclass OR conname ~ '^(posint|small|code)') ORDER BY conname COLLATE "C";

SELECT adnum, pg_get_expr(adbin, adrelid), pg_get_expr(adbin, adrelid, true) FROM pg_attrdef WHERE adrelid = 't'::regclass ORDER BY adnum;

SELECT column_name, column_default, generation_expression FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;

SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 1, true), pg_get_indexdef(indexrelid, 1, false), pg_get_expr(indpred, indrelid), pg_get_expr(indpred, indrelid, true) FROM pg_index WHERE indrelid = 't'::regclass ORDER BY 1;

SELECT relname, pg_get_expr(relpartbound, oid), pg_get_partkeydef(oid) FROM pg_class WHERE relname ~ '^p[lrx]1?$' ORDER BY relname;

SELECT tgname, pg_get_triggerdef(oid), pg_get_triggerdef(oid, true) FROM pg_trigger WHERE tgrelid = 't'::regclass AND NOT tgisinternal ORDER BY tgname;

SELECT trigger_name, action_condition FROM information_schema.triggers WHERE event_object_table = 't' ORDER BY trigger_name;
