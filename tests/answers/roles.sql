GRANT USAGE ON SCHEMA roles TO PUBLIC

CREATE ROLE r_alice LOGIN; CREATE USER r_bob; CREATE ROLE r_group; CREATE ROLE r_nobody NOINHERIT

CREATE ROLE r_bob

CREATE ROLE pg_mine

CREATE ROLE "public"

CREATE ROLE none

CREATE ROLE r_x LOGIN NOLOGIN

CREATE ROLE r_x CONNECTION LIMIT -2

CREATE ROLE r_x FAST

ALTER ROLE r_missing LOGIN

DROP ROLE r_missing

DROP ROLE IF EXISTS r_missing

GRANT r_group TO r_bob; GRANT r_group TO r_bob

GRANT r_group TO r_nobody WITH ADMIN OPTION

GRANT r_bob TO r_group

REVOKE r_alice FROM r_bob

SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit, rolpassword, rolvaliduntil, rolbypassrls FROM pg_roles WHERE rolname LIKE 'r\_%' ORDER BY 1

SELECT r.rolname, m.rolname, g.rolname = session_user, a.admin_option FROM pg_auth_members a JOIN pg_roles r ON r.oid = roleid JOIN pg_roles m ON m.oid = member JOIN pg_roles g ON g.oid = grantor WHERE r.rolname LIKE 'r\_%' ORDER BY 1, 2

CREATE TABLE t (a int PRIMARY KEY, b int, c text); INSERT INTO t VALUES (1, 2, 'x'), (2, 3, 'y')

CREATE TABLE u (x int, y int); INSERT INTO u VALUES (1, 10), (2, 20)

SET ROLE r_alice; SELECT current_user, current_role, current_user = session_user, current_setting('role'), current_setting('is_superuser')

SELECT * FROM t

SELECT count(*) FROM t

INSERT INTO t VALUES (3)

UPDATE t SET b = 1

DELETE FROM t

TRUNCATE t

MERGE INTO t USING u ON a = x WHEN MATCHED THEN DELETE

CREATE TABLE mine (a int)

CREATE ROLE r_other

SET ROLE r_bob

SET SESSION AUTHORIZATION r_missing

SET ROLE r_missing

RESET ROLE; SELECT current_user = session_user

BEGIN; SET ROLE r_bob; ROLLBACK; SELECT current_user = session_user

BEGIN; SET LOCAL ROLE r_bob; SAVEPOINT s; SET LOCAL ROLE r_alice; ROLLBACK TO s; SELECT current_user

COMMIT; SELECT current_user = session_user

SET SESSION AUTHORIZATION r_bob; SELECT current_user, session_user, current_setting('role')

SET ROLE r_group; SELECT current_user, session_user

SET ROLE r_alice

SET SESSION AUTHORIZATION r_alice

RESET SESSION AUTHORIZATION; SELECT current_user = session_user

GRANT SELECT (a), UPDATE (b) ON t TO r_alice; GRANT INSERT ON t TO r_group

SELECT attname, replace(attacl::text, session_user, 'me') FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum

SELECT relacl::text[] = ARRAY[session_user || '=arwdDxt/' || session_user, 'r_group=a/' || session_user] FROM pg_class WHERE oid = 't'::regclass

SET ROLE r_alice; SELECT a FROM t ORDER BY a

SELECT count(*) FROM t

SELECT * FROM t

SELECT t FROM t

SELECT a FROM t WHERE b = 2

SELECT a FROM t ORDER BY c

SELECT a FROM t GROUP BY a HAVING max(b) > 1

SELECT x.a FROM t x JOIN t y USING (a) ORDER BY 1

SELECT x.a FROM t x JOIN t y USING (b)

SELECT a FROM t WHERE a IN (SELECT x FROM u)

WITH q AS (SELECT a FROM t) SELECT * FROM q ORDER BY 1

SELECT a FROM t FOR UPDATE

SELECT 1 FROM t WHERE EXISTS (SELECT b FROM t)

UPDATE t SET b = 5

UPDATE t SET b = a

UPDATE t SET b = b + 1

UPDATE t SET b = 1 WHERE c = 'x'

UPDATE t SET b = 7 WHERE a = 1 RETURNING a

UPDATE t SET b = 7 RETURNING b

UPDATE t SET c = 'z'

DELETE FROM t WHERE a = 1

INSERT INTO t VALUES (9)

SET ROLE r_bob; INSERT INTO t VALUES (9)

INSERT INTO t VALUES (10) RETURNING a

INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING

INSERT INTO t VALUES (1) ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING

INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING

INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 3

COPY t TO STDOUT

COPY (SELECT * FROM t) TO STDOUT

EXPLAIN SELECT * FROM t

PREPARE p AS SELECT * FROM t

EXECUTE p

DECLARE c CURSOR WITH HOLD FOR SELECT * FROM t

CREATE TEMP TABLE copied AS SELECT * FROM t

ALTER TABLE t ADD COLUMN z int

ALTER TABLE t RENAME TO tt

ALTER TABLE t OWNER TO r_bob

DROP TABLE t

CREATE INDEX ON t (b)

COMMENT ON TABLE t IS 'mine'

GRANT SELECT ON t TO r_alice

RESET ROLE; GRANT SELECT ON t TO r_group; SET ROLE r_bob; SELECT * FROM t ORDER BY a

RESET ROLE; GRANT UPDATE (b) ON t TO r_bob; GRANT SELECT (a) ON t TO r_bob; SET ROLE r_bob; INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.b + 100

INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET c = 'new'

RESET ROLE; REVOKE ALL ON t FROM r_group, r_bob; REVOKE ALL (a, b) ON t FROM r_bob; GRANT INSERT (a), SELECT (a) ON t TO r_bob; SET ROLE r_bob; INSERT INTO t (a) VALUES (20)

INSERT INTO t (a, b) VALUES (21, 1)

INSERT INTO t (a) VALUES (22) RETURNING a

INSERT INTO t (a) VALUES (22) RETURNING *

RESET ROLE; GRANT SELECT ON u TO r_bob; GRANT DELETE ON u TO r_bob; SET ROLE r_bob; DELETE FROM u WHERE y = 20

MERGE INTO u USING t ON x = a WHEN MATCHED THEN DELETE

MERGE INTO u USING t ON x = a WHEN MATCHED THEN UPDATE SET y = 1

MERGE INTO u USING t ON x = b WHEN MATCHED THEN DELETE

MERGE INTO u USING t ON x = a WHEN NOT MATCHED THEN INSERT VALUES (1, 2)

RESET ROLE; DELETE FROM u; INSERT INTO u VALUES (1, 10), (2, 20); REVOKE ALL ON t, u FROM r_bob; REVOKE ALL (a) ON t FROM r_bob; CREATE VIEW v AS SELECT x, y FROM u WHERE y > 5; CREATE VIEW vi WITH (security_invoker) AS SELECT x, y FROM u

GRANT ALL ON v, vi TO r_bob; SET ROLE r_bob; SELECT * FROM v ORDER BY x

SELECT * FROM vi

INSERT INTO v VALUES (3, 30); SELECT * FROM v ORDER BY x

UPDATE v SET y = y + 1 WHERE x = 3 RETURNING *

DELETE FROM v WHERE x = 3

INSERT INTO vi VALUES (3, 30)

UPDATE vi SET y = 1

DELETE FROM vi

RESET ROLE; ALTER VIEW v OWNER TO r_alice; SET ROLE r_bob; SELECT * FROM v

INSERT INTO v VALUES (4, 40)

UPDATE v SET y = 1

RESET ROLE; SELECT * FROM v

GRANT INSERT ON u TO r_alice; SET ROLE r_bob; INSERT INTO v VALUES (4, 40)

INSERT INTO v VALUES (5, 50) RETURNING x

RESET ROLE; GRANT UPDATE (y) ON u TO r_alice; SET ROLE r_bob; UPDATE v SET y = 41

RESET ROLE; GRANT SELECT ON u TO r_alice; SET ROLE r_bob; UPDATE v SET y = 42 WHERE x = 4

UPDATE v SET x = 1

RESET ROLE; REVOKE ALL ON v FROM r_bob; GRANT SELECT (x), UPDATE (y) ON v TO r_bob; SET ROLE r_bob; SELECT x FROM v ORDER BY x

SELECT y FROM v

UPDATE v SET y = 43 WHERE x = 4

UPDATE v SET y = y + 1

UPDATE v SET x = 1

RESET ROLE; CREATE VIEW vv AS SELECT * FROM vi; GRANT SELECT ON vv TO r_bob; SET ROLE r_bob

SELECT * FROM vv

RESET ROLE; GRANT SELECT ON u TO r_bob; SET ROLE r_bob; SELECT count(*) FROM vv

RESET ROLE; GRANT SELECT ON u TO r_alice WITH GRANT OPTION; SET ROLE r_alice; GRANT SELECT ON u TO r_group WITH GRANT OPTION; GRANT ALL ON u TO r_nobody

GRANT DELETE ON u TO r_nobody

SET ROLE r_nobody

RESET ROLE; SELECT has_table_privilege('r_nobody', 'u', 'SELECT')

REVOKE SELECT ON u FROM r_alice

REVOKE GRANT OPTION FOR SELECT ON u FROM r_alice

REVOKE GRANT OPTION FOR SELECT ON u FROM r_alice CASCADE; SELECT array_length(relacl, 1) FROM pg_class WHERE oid = 'u'::regclass

GRANT SELECT ON u TO PUBLIC WITH GRANT OPTION

GRANT EXECUTE ON TABLE u TO r_bob

GRANT FLY ON u TO r_bob

GRANT DELETE (x) ON u TO r_bob

GRANT SELECT (zz) ON u TO r_bob

GRANT SELECT ON missing TO r_bob

GRANT SELECT ON u TO r_missing

GRANT SELECT ON SEQUENCE u TO r_bob

DROP ROLE r_bob

DROP ROLE r_alice

SET ROLE r_bob; DROP ROLE r_alice

RESET ROLE; CREATE ROLE r_creator CREATEROLE; SET ROLE r_creator; CREATE ROLE r_made LOGIN; GRANT r_made TO r_bob

CREATE ROLE r_super SUPERUSER

ALTER ROLE r_made SUPERUSER

CREATE ROLE r_super REPLICATION

CREATE ROLE r_super BYPASSRLS

DROP ROLE r_creator

ALTER ROLE r_made RENAME TO r_called; DROP ROLE r_called

SET ROLE r_alice

RESET ROLE; CREATE SCHEMA sch; CREATE TABLE sch.st (a int); GRANT SELECT ON sch.st TO r_bob; SET ROLE r_bob; SELECT * FROM sch.st

RESET ROLE; GRANT USAGE ON SCHEMA sch TO r_bob; SET ROLE r_bob; SELECT * FROM sch.st

CREATE TABLE sch.other (a int)

CREATE VIEW sch.other AS SELECT 1

RESET ROLE; GRANT CREATE ON SCHEMA sch TO r_bob; SET ROLE r_bob; CREATE TABLE sch.other (a int); INSERT INTO sch.other VALUES (1); SELECT * FROM sch.other

SELECT tableowner FROM pg_tables WHERE tablename = 'other'

GRANT SELECT ON sch.other TO r_alice; SELECT relacl FROM pg_class WHERE oid = 'sch.other'::regclass

ALTER TABLE sch.other OWNER TO r_alice

RESET ROLE; ALTER TABLE sch.other OWNER TO r_alice; SELECT relacl FROM pg_class WHERE oid = 'sch.other'::regclass

DROP SCHEMA sch CASCADE; DROP VIEW vv, vi, v; DROP TABLE t, u

DROP ROLE r_alice, r_bob, r_group, r_nobody, r_creator

SELECT count(*) FROM pg_roles WHERE rolname LIKE 'r\_%'
