GRANT USAGE ON SCHEMA privileges TO PUBLIC; CREATE ROLE r_owner; CREATE ROLE r_user LOGIN; CREATE ROLE r_group; GRANT r_group TO r_user

CREATE TABLE t (a int PRIMARY KEY, b int); INSERT INTO t VALUES (1, 2); ALTER TABLE t OWNER TO r_owner

CREATE FUNCTION invoker() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM privileges.t'

CREATE FUNCTION definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM privileges.t'

CREATE FUNCTION definer_expression() RETURNS text LANGUAGE sql SECURITY DEFINER RETURN current_user::text

CREATE FUNCTION who() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN INSERT INTO privileges.t VALUES (2, 3); RETURN current_user || session_user; END'

CREATE FUNCTION becomes() RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN SET ROLE r_user; RETURN current_user; END'

ALTER FUNCTION definer OWNER TO r_owner; ALTER FUNCTION definer_expression() OWNER TO r_owner; ALTER FUNCTION who() OWNER TO r_owner; ALTER FUNCTION becomes() OWNER TO r_owner

SELECT proname, prosecdef, pg_get_userbyid(proowner) = 'r_owner' FROM pg_proc WHERE proname IN ('invoker', 'definer', 'who') ORDER BY 1

SELECT proname, pg_get_userbyid(proowner) FROM pg_proc WHERE proname IN ('definer', 'who') ORDER BY 1

DROP FUNCTION invoker(); SET ROLE r_user

SELECT definer()

SELECT definer_expression(), current_user = session_user

SELECT who() = 'r_owner' || session_user, current_user = session_user

SELECT becomes()

SELECT definer() FROM generate_series(1, 2)

CREATE OR REPLACE FUNCTION definer() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'

ALTER FUNCTION who() SECURITY INVOKER

DROP FUNCTION definer()

RESET ROLE; REVOKE EXECUTE ON FUNCTION definer() FROM PUBLIC; SELECT proacl FROM pg_proc WHERE proname = 'definer'

SET ROLE r_user; SELECT definer()

SELECT 1 WHERE definer() > 0

RESET ROLE; GRANT EXECUTE ON FUNCTION definer() TO r_group; SET ROLE r_user; SELECT definer()

SELECT has_function_privilege('definer()', 'EXECUTE'), has_function_privilege('r_owner', 'definer()', 'execute'), has_function_privilege('public', 'definer()', 'EXECUTE')

RESET ROLE; CREATE SEQUENCE s; SET ROLE r_user

SELECT nextval('s')

SELECT setval('s', 5)

SELECT last_value FROM s

RESET ROLE; GRANT USAGE ON SEQUENCE s TO r_user; SET ROLE r_user; SELECT nextval('s'), currval('s'), lastval()

SELECT setval('s', 5)

SELECT last_value FROM s

RESET ROLE; GRANT SELECT, UPDATE ON s TO r_user; SET ROLE r_user; SELECT setval('s', 5); SELECT last_value FROM s

RESET ROLE; SELECT relacl::text[] @> ARRAY['r_user=rwU/' || session_user] FROM pg_class WHERE oid = 's'::regclass

CREATE TABLE ser (a serial, b int); CREATE TABLE ident (a int GENERATED ALWAYS AS IDENTITY, b int); GRANT INSERT ON ser, ident TO r_user; SET ROLE r_user; INSERT INTO ident (b) VALUES (1)

INSERT INTO ser (b) VALUES (1)

RESET ROLE; GRANT USAGE ON ser_a_seq TO r_user; SET ROLE r_user; INSERT INTO ser (b) VALUES (1)

RESET ROLE; CREATE TYPE mood AS ENUM ('sad', 'ok'); REVOKE USAGE ON TYPE mood FROM PUBLIC; GRANT CREATE ON SCHEMA privileges TO r_user; SET ROLE r_user; CREATE TABLE moody (m mood)

CREATE TABLE moodies (m mood[])

SELECT 'ok'::mood

CREATE TYPE pair AS (m mood, n int)

CREATE DOMAIN moodily AS mood

CREATE FUNCTION moody(m mood) RETURNS int LANGUAGE sql AS 'SELECT 1'

CREATE TABLE plain (a int); ALTER TABLE plain ADD COLUMN m mood

RESET ROLE; REVOKE USAGE ON LANGUAGE sql FROM PUBLIC; SET ROLE r_user; CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'

RESET ROLE; GRANT USAGE ON LANGUAGE sql TO PUBLIC; SELECT has_language_privilege('r_user', 'sql', 'USAGE')

GRANT USAGE ON LANGUAGE c TO r_user

GRANT USAGE ON LANGUAGE missing TO r_user

CREATE TABLE hides (a int PRIMARY KEY, b text CHECK (b <> 'secret')); INSERT INTO hides VALUES (1, 'x'); GRANT INSERT ON hides TO r_user; SET ROLE r_user

INSERT INTO hides VALUES (1, 'y')

RESET ROLE; GRANT SELECT ON hides TO r_user; SET ROLE r_user

INSERT INTO hides VALUES (1, 'y')

INSERT INTO hides VALUES (2, 'secret')

SELECT tableoid = 'hides'::regclass FROM hides

RESET ROLE; REVOKE SELECT ON hides FROM r_user; GRANT SELECT (b) ON hides TO r_user; SET ROLE r_user; SELECT tableoid = 0 FROM hides

RESET ROLE; GRANT SELECT (tableoid) ON hides TO r_user; SET ROLE r_user; SELECT tableoid = 0 FROM hides

RESET ROLE; GRANT USAGE ON TYPE mood TO r_user; SET ROLE r_user; CREATE TABLE moody (m mood); SELECT has_type_privilege('mood', 'USAGE'), has_type_privilege('r_owner', 'mood', 'USAGE')

CREATE TABLE keyed (a int REFERENCES t)

RESET ROLE; GRANT REFERENCES (a) ON t TO r_user; SET ROLE r_user; CREATE TABLE keyed (a int REFERENCES t)

SELECT * FROM t FOR UPDATE

RESET ROLE; GRANT SELECT ON t TO r_user; SET ROLE r_user; SELECT * FROM t FOR UPDATE

SELECT * FROM t FOR SHARE

RESET ROLE; GRANT UPDATE (b) ON t TO r_user; SET ROLE r_user; SELECT * FROM t WHERE a = 1 FOR UPDATE

SELECT has_table_privilege('t', 'SELECT'), has_table_privilege('t', 'INSERT'), has_table_privilege('t', 'UPDATE'), has_any_column_privilege('t', 'UPDATE'), has_column_privilege('t', 'b', 'UPDATE'), has_column_privilege('t', 'a', 'UPDATE'), has_column_privilege('t', 2::int2, 'UPDATE'), has_column_privilege('t', 'a', 'SELECT')

SELECT has_table_privilege('t', 'INSERT, SELECT'), has_table_privilege('t', 'SELECT WITH GRANT OPTION'), has_table_privilege('r_owner', 't', 'SELECT WITH GRANT OPTION'), has_table_privilege('r_owner', 't', 'INSERT')

SELECT has_table_privilege('t', 'FLY')

SELECT has_table_privilege('r_missing', 't', 'SELECT')

SELECT has_table_privilege('missing', 'SELECT')

SELECT has_table_privilege(1::oid, 'SELECT')

SELECT has_column_privilege('t', 'zz', 'SELECT')

SELECT has_schema_privilege('privileges', 'USAGE'), has_schema_privilege('privileges', 'CREATE'), has_schema_privilege('r_owner', 'privileges', 'CREATE'), has_schema_privilege('public', 'privileges', 'USAGE'), has_schema_privilege('pg_catalog', 'USAGE'), has_schema_privilege('pg_catalog', 'CREATE')

SELECT has_schema_privilege('nowhere', 'USAGE')

SELECT has_sequence_privilege('s', 'USAGE'), has_sequence_privilege('r_owner', 's', 'USAGE')

SELECT has_sequence_privilege('t', 'USAGE')

SELECT has_database_privilege(current_database(), 'CONNECT'), has_database_privilege(current_database(), 'CREATE'), has_database_privilege(current_database(), 'TEMP'), has_language_privilege('sql', 'USAGE')

SELECT pg_has_role('r_group', 'MEMBER'), pg_has_role('r_group', 'USAGE'), pg_has_role('r_owner', 'MEMBER'), pg_has_role('r_user', 'r_group', 'MEMBER'), pg_has_role('r_group', 'r_user', 'USAGE'), pg_has_role('r_group', 'MEMBER WITH ADMIN OPTION')

SELECT pg_has_role('r_group', 'FLY')

RESET ROLE; CREATE SCHEMA gs CREATE TABLE gt (a int) GRANT SELECT ON gt TO r_user CREATE VIEW gv AS SELECT 1

SELECT has_table_privilege('r_user', 'gs.gt', 'SELECT'), has_table_privilege('r_user', 'gs.gv', 'SELECT')

DROP SCHEMA gs CASCADE

CREATE SCHEMA ds; ALTER DEFAULT PRIVILEGES IN SCHEMA ds GRANT SELECT ON TABLES TO r_user; ALTER DEFAULT PRIVILEGES IN SCHEMA ds GRANT EXECUTE ON FUNCTIONS TO r_user; ALTER DEFAULT PRIVILEGES IN SCHEMA ds GRANT USAGE ON SEQUENCES TO r_user

CREATE TABLE ds.t (a int); CREATE VIEW ds.v AS SELECT 1; CREATE SEQUENCE ds.s; SELECT relname, replace(relacl::text, session_user, 'me') FROM pg_class WHERE relnamespace = 'ds'::regnamespace ORDER BY 1

SELECT defaclobjtype, replace(defaclacl::text, session_user, 'me') FROM pg_default_acl ORDER BY 1

ALTER DEFAULT PRIVILEGES FOR ROLE r_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES FOR ROLE r_owner GRANT ALL ON SCHEMAS TO r_user WITH GRANT OPTION; SELECT defaclobjtype, defaclacl FROM pg_default_acl WHERE pg_get_userbyid(defaclrole) = 'r_owner' ORDER BY 1

ALTER DEFAULT PRIVILEGES IN SCHEMA ds GRANT USAGE ON SCHEMAS TO r_user

ALTER DEFAULT PRIVILEGES GRANT SELECT (a) ON TABLES TO r_user

ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON TABLES TO r_user

ALTER DEFAULT PRIVILEGES FOR ROLE r_owner GRANT EXECUTE ON FUNCTIONS TO PUBLIC; ALTER DEFAULT PRIVILEGES FOR ROLE r_owner REVOKE ALL ON SCHEMAS FROM r_user; SELECT count(*) FROM pg_default_acl WHERE defaclrole = (SELECT oid FROM pg_roles WHERE rolname = 'r_owner')

SET ROLE r_user; ALTER DEFAULT PRIVILEGES FOR ROLE r_owner GRANT SELECT ON TABLES TO PUBLIC

RESET ROLE; GRANT SELECT ON ALL TABLES IN SCHEMA privileges TO r_group; SELECT count(*) FROM pg_class WHERE relnamespace = 'privileges'::regnamespace AND relacl::text LIKE '%r_group=r/%'

REVOKE ALL ON ALL TABLES IN SCHEMA privileges FROM r_group; SELECT count(*) FROM pg_class WHERE relnamespace = 'privileges'::regnamespace AND relacl::text LIKE '%r_group=%'

GRANT ALL ON ALL SEQUENCES IN SCHEMA privileges TO r_group; GRANT ALL ON ALL FUNCTIONS IN SCHEMA privileges TO r_group; SELECT count(*) FROM pg_proc WHERE pronamespace = 'privileges'::regnamespace AND proacl::text LIKE '%r_group=X%'

GRANT SELECT ON ALL TABLES IN SCHEMA nowhere TO r_group

GRANT CREATE ON SCHEMA nowhere TO r_group

GRANT EXECUTE ON FUNCTION nowhere() TO r_group

GRANT SELECT ON SCHEMA privileges TO r_group

GRANT USAGE ON FUNCTION definer() TO r_group

GRANT ALL ON DATABASE nowhere TO r_group

SELECT a.privilege_type, a.is_grantable, pg_get_userbyid(a.grantee) FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 't'::regclass ORDER BY 3, 1

SELECT acldefault('r', oid), acldefault('f', oid), acldefault('n', oid), acldefault('T', oid), acldefault('s', oid), acldefault('d', oid), acldefault('c', oid) FROM pg_roles WHERE rolname = 'r_owner'

SELECT grantee, privilege_type, is_grantable FROM information_schema.table_privileges WHERE table_name = 't' AND table_schema = 'privileges' AND grantee LIKE 'r\_%' ORDER BY 1, 2

SELECT grantee, column_name, privilege_type, is_grantable FROM information_schema.column_privileges WHERE table_name = 't' AND table_schema = 'privileges' AND grantee = 'r_user' ORDER BY 1, 2, 3

CREATE VIEW privileges.over_t AS SELECT * FROM t

DROP OWNED BY r_owner

DROP VIEW over_t

SET ROLE r_user

DROP OWNED BY r_owner

RESET ROLE; DROP OWNED BY r_group; SELECT count(*) FROM pg_proc WHERE pronamespace = 'privileges'::regnamespace AND proacl::text LIKE '%r_group=X%'

REASSIGN OWNED BY r_user TO r_owner; SELECT tablename, tableowner FROM pg_tables WHERE schemaname = 'privileges' AND tablename IN ('t', 'moody', 'keyed') ORDER BY 1

DROP OWNED BY r_owner; SELECT count(*) FROM pg_tables WHERE schemaname = 'privileges' AND tablename IN ('t', 'moody', 'keyed')

CREATE ROLE r_last; GRANT SELECT ON ds.t TO r_last

DROP ROLE r_last

DROP OWNED BY r_user, r_last; DROP ROLE r_last; DROP SCHEMA ds CASCADE; DROP ROLE r_user, r_owner, r_group
