# What tools ask of the catalogs, in our own words: each asks for the relations, columns and functions that its tool asks
# for, over schema shop of everything.sql. A name ends with the licence of the tool that it was read from.

## PostgREST, functions (MIT)
WITH RECURSIVE base (oid, below, schema, base) AS (
  SELECT oid, typbasetype, typnamespace, coalesce(nullif(typbasetype, 0), oid) FROM pg_type
  UNION
  SELECT base.oid, t.typbasetype, t.typnamespace, coalesce(nullif(t.typbasetype, 0), t.oid)
  FROM base JOIN pg_type t ON base.below = t.oid
), arguments AS (
  SELECT p.oid, array_agg((coalesce(name, ''), type::regtype::text,
      CASE type WHEN 'bit'::regtype THEN 'bit varying' WHEN 'character[]'::regtype THEN 'character varying[]'
        ELSE type::regtype::text END,
      idx <= pronargs - pronargdefaults, coalesce(mode = 'v', false)) ORDER BY idx) AS args,
    count(*) = count(name) AND count(*) = 1 AND (array_agg(type))[1] IN ('xml'::regtype, 'json'::regtype) AS single
  FROM pg_proc p, unnest(proargnames, proargtypes, proargmodes) WITH ORDINALITY AS _ (name, type, mode, idx)
  WHERE type IS NOT NULL GROUP BY p.oid
)
SELECT n.nspname, p.proname, obj_description(p.oid, 'pg_proc'), coalesce(a.args::text, '{}'), tn.nspname, t.typname,
  b.schema::regnamespace::text, p.proretset, t.typtype, p.provolatile, p.provariadic > 0, p.proconfig, a.single
FROM pg_proc p LEFT JOIN arguments a ON a.oid = p.oid JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN base b ON b.oid = p.prorettype AND b.below = 0 JOIN pg_type t ON t.oid = b.base
JOIN pg_namespace tn ON tn.oid = t.typnamespace
WHERE n.nspname = 'shop' AND p.prokind = 'f' AND p.proname NOT LIKE 'span%' ORDER BY 1, 2

## PostgREST, columns of tables (MIT)
SELECT c.relname, a.attname, d.description,
  CASE WHEN t.typbasetype != 0 AND ad.adbin IS NULL THEN pg_get_expr(t.typdefaultbin, 0)
    WHEN a.attidentity = 'd' THEN format('nextval(%L)', seq.objid::regclass) WHEN a.attgenerated = 's' THEN null
    ELSE pg_get_expr(ad.adbin, ad.adrelid)::text END,
  NOT (a.attnotnull OR t.typtype = 'd' AND t.typnotnull), format_type(a.atttypid, a.atttypmod),
  information_schema._pg_char_max_length(
    information_schema._pg_truetypid(a.*, t.*), information_schema._pg_truetypmod(a.*, t.*)),
  (SELECT array_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid)
FROM pg_attribute a LEFT JOIN pg_description d ON d.objoid = a.attrelid AND d.objsubid = a.attnum
  AND d.classoid = 'pg_class'::regclass
LEFT JOIN (pg_attrdef ad JOIN pg_depend dep ON dep.refobjid = ad.adrelid AND dep.deptype = 'i'
    AND dep.refobjsubid = ad.adnum JOIN pg_class s ON s.oid = dep.objid AND s.relkind = 'S') ON false
LEFT JOIN pg_depend seq ON seq.refobjid = a.attrelid AND seq.refobjsubid = a.attnum AND seq.deptype = 'i'
JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'm', 'p') AND c.relnamespace = 'shop'::regnamespace
ORDER BY c.relname, a.attnum

## PostgREST, relationships (MIT)
SELECT conname, conrelid::regclass::text, confrelid::regclass::text, conrelid = confrelid,
  (SELECT array_agg(row(cols.attname, refs.attname)::text ORDER BY ord)
   FROM unnest(conkey, confkey) WITH ORDINALITY AS _ (col, ref, ord)
   JOIN pg_attribute cols ON cols.attrelid = conrelid AND cols.attnum = col
   JOIN pg_attribute refs ON refs.attrelid = confrelid AND refs.attnum = ref),
  conkey IN (SELECT conkey FROM pg_constraint p WHERE p.contype IN ('p', 'u') AND p.conrelid = f.conrelid)
FROM pg_constraint f WHERE contype = 'f' AND connamespace = 'shop'::regnamespace AND conparentid = 0 ORDER BY 1

## Hasura, tables (Apache-2.0)
SELECT c.relname, jsonb_build_object(
  'columns', (SELECT jsonb_agg(jsonb_build_object(
      'name', a.attname, 'position', a.attnum, 'type', coalesce(base.typname, t.typname), 'kind', t.typtype,
      'is_nullable', NOT a.attnotnull, 'description', col_description(c.oid, a.attnum),
      'is_insertable', NOT (a.attidentity = 'a' OR a.attgenerated = 's')) ORDER BY a.attnum)
    FROM pg_attribute a LEFT JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_type base ON t.typtype = 'd' AND base.oid = t.typbasetype
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
  'primary_key', (SELECT jsonb_build_object('name', k.relname, 'columns', (
      SELECT jsonb_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey)))
    FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid WHERE i.indrelid = c.oid AND i.indisprimary),
  'unique', (SELECT jsonb_agg(k.relname ORDER BY k.relname) FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid
    WHERE i.indrelid = c.oid AND i.indisunique AND NOT i.indisprimary),
  'view_info', CASE WHEN c.relkind = 'm' THEN jsonb_build_object(
    'is_updatable', pg_relation_is_updatable(c.oid, true) & 4 = 4,
    'is_insertable', pg_relation_is_updatable(c.oid, true) & 8 = 8) END,
  'description', d.description)
FROM jsonb_to_recordset('[{"schema": "shop", "name": "customer"}, {"schema": "shop", "name": "sale"},
    {"schema": "shop", "name": "rich"}, {"schema": "shop", "name": "totals"}]') AS asked (schema text, name text)
JOIN pg_namespace n ON n.nspname = asked.schema JOIN pg_class c ON c.relname = asked.name AND c.relnamespace = n.oid
LEFT JOIN pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = c.oid AND d.objsubid = 0
WHERE c.relkind IN ('r', 't', 'v', 'm', 'f', 'p') AND n.nspname NOT LIKE 'pg_%' ORDER BY 1

## Hasura, foreign keys (Apache-2.0)
SELECT q.t, q.conname, json_agg(ac.attname ORDER BY ac.attnum)::text, json_agg(afc.attname ORDER BY ac.attnum)::text
FROM (SELECT ct.relname AS t, r.conrelid, r.conname, r.confrelid, unnest(r.conkey) AS c, unnest(r.confkey) AS rc
    FROM pg_constraint r JOIN pg_class ct ON ct.oid = r.conrelid WHERE r.contype = 'f') q
JOIN pg_attribute ac ON q.c = ac.attnum AND q.conrelid = ac.attrelid
JOIN pg_attribute afc ON q.rc = afc.attnum AND q.confrelid = afc.attrelid GROUP BY q.t, q.conname ORDER BY 1, 2

## Hasura, functions (Apache-2.0)
SELECT p.proname, d.description, p.provariadic <> 0::oid, p.provolatile::text = 'i'::character(1)::text,
  length(pg_get_functiondef(p.oid)) > 0, tn.nspname, t.typname, t.typtype, p.proretset,
  (SELECT coalesce(json_agg(json_build_object('schema', q.s, 'name', q.n, 'type', q.k)), '[]')::text FROM (
    SELECT pt.typname AS n, pn.nspname AS s, pt.typtype AS k
    FROM unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) WITH ORDINALITY AS a (oid, place)
    LEFT JOIN pg_type pt ON pt.oid = a.oid LEFT JOIN pg_namespace pn ON pn.oid = pt.typnamespace ORDER BY a.place) q),
  to_json(coalesce(p.proargnames, ARRAY[]::text[]))::text, p.pronargdefaults,
  EXISTS (SELECT 1 FROM information_schema.tables
    WHERE table_schema = tn.nspname::text AND table_name = t.typname::text)
FROM pg_proc p JOIN pg_type t ON t.oid = p.prorettype JOIN pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN pg_description d ON d.objoid = p.oid
WHERE p.pronamespace = 'shop'::regnamespace AND p.proname NOT LIKE 'span%'
  AND NOT EXISTS (SELECT 1 FROM pg_aggregate WHERE aggfnoid::oid = p.oid) ORDER BY 1

## Grafana, tables of the search path (its own words; the tool is AGPL)
SELECT CASE WHEN quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(part[i]) = '"$user"' THEN user ELSE trim(part[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
        array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
      string_to_array(current_setting('search_path'), ',') AS part)
  THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END
FROM information_schema.tables WHERE quote_ident(table_schema) = 'shop' ORDER BY 1

## Grafana, columns of a table (its own words; the tool is AGPL)
SELECT quote_ident(column_name), data_type FROM information_schema.columns
WHERE CASE WHEN array_length(parse_ident('shop.customer'), 1) = 2
  THEN quote_ident(table_schema) = (parse_ident('shop.customer'))[1]
    AND quote_ident(table_name) = (parse_ident('shop.customer'))[2]
  ELSE quote_ident(table_name) = 'shop.customer' END ORDER BY ordinal_position

## Metabase, tables (its own words; the tool is AGPL)
SELECT n.nspname, c.relname, CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW'
    WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' END, d.description
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_stat_user_tables s ON s.schemaname = n.nspname AND s.relname = c.relname
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
  AND n.nspname = 'shop' ORDER BY 3, 1, 2

## Metabase, fields (its own words; the tool is AGPL)
SELECT c.column_name, CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN format('%s', c.udt_name)
    ELSE format('"%s"."%s"', c.udt_schema, c.udt_name) END, c.ordinal_position - 1, c.table_name,
  pk.column_name IS NOT NULL,
  col_description(format('%I.%I', c.table_schema::text, c.table_name::text)::regclass::oid, c.ordinal_position),
  column_default IS NULL AND is_nullable = 'NO' AND is_identity = 'NO', column_default LIKE '%nextval(%'
FROM information_schema.columns c
LEFT JOIN (SELECT t.table_schema, t.table_name, k.column_name FROM information_schema.table_constraints t
    JOIN information_schema.key_column_usage k ON t.constraint_name = k.constraint_name
      AND t.table_schema = k.table_schema AND t.table_name = k.table_name
    WHERE t.constraint_type = 'PRIMARY KEY') pk
  ON pk.table_schema = c.table_schema AND pk.table_name = c.table_name AND pk.column_name = c.column_name
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema = 'shop' ORDER BY 4, 3

## Metabase, foreign keys (its own words; the tool is AGPL)
SELECT fn.nspname, ft.relname, fc.attname, pn.nspname, pt.relname, pc.attname FROM pg_constraint c
JOIN pg_class ft ON ft.oid = c.conrelid JOIN pg_namespace fn ON fn.oid = c.connamespace
JOIN pg_attribute fc ON fc.attrelid = c.conrelid JOIN pg_class pt ON pt.oid = c.confrelid
JOIN pg_namespace pn ON pn.oid = pt.relnamespace JOIN pg_attribute pc ON pc.attrelid = c.confrelid
WHERE c.contype = 'f' AND fc.attnum = ANY (c.conkey) AND pc.attnum = ANY (c.confkey) AND fn.nspname = 'shop'
ORDER BY 2, 3, 6

## Metabase, privileges (its own words; the tool is AGPL)
SELECT t.name, has_any_column_privilege(current_user, '"' || t.schema || '"."' || t.name || '"', 'update'),
  has_table_privilege(current_user, '"' || t.schema || '"."' || t.name || '"', 'delete')
FROM (SELECT schemaname AS schema, tablename AS name FROM pg_tables UNION SELECT schemaname, viewname FROM pg_views
  UNION SELECT schemaname, matviewname FROM pg_matviews) t
WHERE t.schema = 'shop' AND has_schema_privilege(current_user, t.schema, 'usage') ORDER BY 1

## Metabase, indexes (its own words; the tool is AGPL)
SELECT q.t, trim(BOTH '"' FROM pg_get_indexdef(q.i, q.pos, false)), q.pos
FROM (SELECT ct.relname AS t, ci.oid AS i, (information_schema._pg_expandarray(x.indkey)).n AS pos
    FROM pg_class ct JOIN pg_namespace n ON n.oid = ct.relnamespace JOIN pg_index x ON x.indrelid = ct.oid
    JOIN pg_class ci ON ci.oid = x.indexrelid
    WHERE pg_get_expr(x.indpred, x.indrelid) IS NULL AND n.nspname = 'shop') q ORDER BY 1, 3, 2

## DBeaver, columns (Apache-2.0)
SELECT c.relname, a.attname, a.atttypid::regtype::text, a.attnotnull, a.attlen, a.attnum,
  pg_get_expr(ad.adbin, ad.adrelid, true), d.description, dep.objid IS NOT NULL
FROM pg_attribute a JOIN pg_class c ON a.attrelid = c.oid
LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum
LEFT JOIN pg_description d ON c.oid = d.objoid AND a.attnum = d.objsubid
LEFT JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum
  AND dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind NOT IN ('i', 'I', 'c') AND c.relnamespace = 'shop'::regnamespace AND a.attnum > 0
  AND c.relkind <> 'S' ORDER BY 1, 6

## DBeaver, constraints (Apache-2.0)
SELECT c.conname, c.contype, t.relname, rt.relname, d.description, pg_get_constraintdef(c.oid, true), c.conkey, c.confkey
FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid LEFT JOIN pg_class rt ON rt.oid = c.confrelid
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass
WHERE c.connamespace = 'shop'::regnamespace ORDER BY 3, 1

## DBeaver, indexes (Apache-2.0)
SELECT i.indkey::text, c.relname, tc.relname, am.amname, d.description, pg_get_expr(i.indpred, i.indrelid),
  pg_get_expr(i.indexprs, i.indrelid, true), i.indisunique, i.indisprimary, pg_get_indexdef(i.indexrelid, 1, true)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class tc ON tc.oid = i.indrelid
JOIN pg_am am ON am.oid = c.relam LEFT JOIN pg_description d ON i.indexrelid = d.objoid
WHERE tc.relnamespace = 'shop'::regnamespace ORDER BY 3, 2

## DBeaver, types (Apache-2.0)
SELECT t.typname, t.typtype, t.typcategory, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod), d.description
FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid LEFT JOIN pg_description d ON t.oid = d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') AND t.typnamespace = 'shop'::regnamespace
  AND t.typcategory <> 'A' ORDER BY 1

## DBeaver, functions (Apache-2.0)
SELECT p.proname, p.prokind, l.lanname, pg_get_expr(p.proargdefaults, 0), d.description,
  pg_get_function_result(p.oid), pg_get_function_identity_arguments(p.oid), oidvectortypes(p.proargtypes)
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang LEFT JOIN pg_description d ON d.objoid = p.oid AND d.objsubid = 0
WHERE p.pronamespace = 'shop'::regnamespace AND p.proname NOT LIKE 'span%' ORDER BY 1

## DBeaver, triggers (Apache-2.0)
SELECT x.tgname, x.tgenabled, x.tgtype, x.tgisinternal, n.nspname, d.description, pg_get_triggerdef(x.oid, true)
FROM pg_trigger x JOIN pg_proc p ON p.oid = x.tgfoid JOIN pg_namespace n ON n.oid = p.pronamespace
LEFT JOIN pg_description d ON d.objoid = x.oid AND d.objsubid = 0
WHERE x.tgrelid = 'shop.customer'::regclass AND NOT x.tgisinternal ORDER BY 1

## DBeaver, partitions and parents (Apache-2.0)
SELECT c.relname, pc.relname, i.inhseqno, pg_get_expr(c.relpartbound, c.oid, true), pg_get_partkeydef(c.oid)
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class pc ON pc.oid = i.inhparent
WHERE pc.relnamespace = 'shop'::regnamespace ORDER BY 2, 3, 1

## pgAdmin, properties of a table (PostgreSQL licence)
SELECT rel.relname, rel.relhassubclass, rel.reloftype, am.amname, rel.relkind, rel.relpersistence, rel.relhastriggers,
  con.conname, con.conkey, rel.reltoastrelid = 0 OR rel.reltoastrelid > 0, substring(array_to_string(rel.reloptions, ','),
  'fillfactor=([0-9]*)'), (SELECT setting FROM pg_show_all_settings() s WHERE s.name = 'default_table_access_method'),
  d.description, (SELECT count(*) FROM pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = false), rel.xmin IS NOT NULL,
  pg_get_userbyid(rel.relowner), coalesce(rel.relispartition, false)
FROM pg_class rel LEFT JOIN pg_tablespace s ON s.oid = rel.reltablespace LEFT JOIN pg_am am ON am.oid = rel.relam
LEFT JOIN pg_description d ON d.objoid = rel.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_constraint con ON con.conrelid = rel.oid AND con.contype = 'p'
WHERE rel.relkind IN ('r', 's', 't', 'p') AND rel.relnamespace = 'shop'::regnamespace ORDER BY 1

## pgAdmin, properties of a function (PostgreSQL licence)
SELECT pr.xmin IS NOT NULL, pr.proname, pr.prosrc, pr.procost > 0, pr.prokind = 'w', pr.prosecdef, pr.proleakproof,
  t.typname, n.nspname, l.lanname, oidvectortypes(pr.proargtypes), pr.proargnames, pr.pronargs, pr.pronargdefaults,
  pg_get_expr(pr.proargdefaults, 'pg_catalog.pg_class'::regclass), pg_get_userbyid(pr.proowner), d.description,
  (SELECT array_agg(provider || '=' || label) FROM pg_seclabels s WHERE s.objoid = pr.oid AND s.objsubid = 0)
FROM pg_proc pr JOIN pg_type t ON t.oid = pr.prorettype JOIN pg_language l ON l.oid = pr.prolang
JOIN pg_namespace n ON n.oid = pr.pronamespace
LEFT JOIN pg_description d ON d.objoid = pr.oid AND d.classoid = 'pg_proc'::regclass
WHERE pr.prokind IN ('f', 'w') AND n.nspname = 'shop' AND l.lanname IN ('sql', 'plpgsql') ORDER BY 2

## pgAdmin, the state of recovery (PostgreSQL licence)
SELECT pg_is_in_recovery(), CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END,
  pg_last_xact_replay_timestamp()

## Prisma, TypeORM and others, references in information_schema (in our own words)
SELECT r.constraint_name, r.unique_constraint_name, r.match_option, r.update_rule, r.delete_rule, k.table_name,
  k.column_name, k.ordinal_position, k.position_in_unique_constraint, u.table_name, u.column_name
FROM information_schema.referential_constraints r
JOIN information_schema.key_column_usage k ON k.constraint_name = r.constraint_name
JOIN information_schema.key_column_usage u ON u.constraint_name = r.unique_constraint_name
  AND u.ordinal_position = k.position_in_unique_constraint
WHERE r.constraint_schema = 'shop' ORDER BY 1, 8

## Constraints in information_schema (in our own words)
SELECT t.table_name, regexp_replace(t.constraint_name, '^\d+_\d+_', ''), t.constraint_type, t.is_deferrable,
  t.initially_deferred, t.nulls_distinct, c.check_clause
FROM information_schema.table_constraints t
LEFT JOIN information_schema.check_constraints c ON c.constraint_name = t.constraint_name
WHERE t.constraint_schema = 'shop' ORDER BY 1, 2

## What constraints and views use, in information_schema (in our own words)
SELECT 'column', table_name, constraint_name, column_name FROM information_schema.constraint_column_usage
WHERE constraint_schema = 'shop'
UNION ALL SELECT 'table', table_name, constraint_name, null FROM information_schema.constraint_table_usage
WHERE constraint_schema = 'shop'
UNION ALL SELECT 'view', table_name, view_name, null FROM information_schema.view_table_usage WHERE view_schema = 'shop'
ORDER BY 1, 2, 3, 4

## Routines in information_schema (in our own words)
SELECT r.routine_name, r.routine_type, r.data_type, r.type_udt_schema, r.type_udt_name, r.routine_body,
  r.external_language, r.is_deterministic, r.is_null_call, r.security_type, p.ordinal_position, p.parameter_mode,
  p.parameter_name, p.data_type, p.udt_name, p.parameter_default
FROM information_schema.routines r LEFT JOIN information_schema.parameters p ON p.specific_name = r.specific_name
WHERE r.routine_schema = 'shop' AND r.routine_name NOT LIKE 'span%' ORDER BY 1, 11

## Columns in information_schema (in our own words)
SELECT table_name, column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length,
  numeric_precision, numeric_scale, datetime_precision, interval_type, domain_name, udt_schema, udt_name, is_identity,
  identity_generation, is_generated, generation_expression, is_updatable
FROM information_schema.columns WHERE table_schema = 'shop' ORDER BY 1, 3
