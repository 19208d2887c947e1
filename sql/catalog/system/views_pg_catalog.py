"""The views of pg_catalog, one relation per paragraph: ``oid name relkind: column type, …``; ``!`` marks NOT NULL.

Parsed by ``definitions.py``; taken from PostgreSQL 15.
"""

from __future__ import annotations

from typing import Final

VIEWS: Final = """
12000 pg_roles v: rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin
    bool, rolreplication bool, rolconnlimit int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool,
    rolconfig text[], oid oid
12014 pg_user v: usename name, usesysid oid, usecreatedb bool, usesuper bool, userepl bool, usebypassrls bool,
    passwd text, valuntil timestamptz, useconfig text[]
12010 pg_group v: groname name, grosysid oid, grolist oid[]
12104 pg_settings v: name text, setting text, unit text, category text, short_desc text, extra_desc text, context
    text, vartype text, source text, min_val text, max_val text, enumvals text[], boot_val text, reset_val text,
    sourcefile text, sourceline int4, pending_restart bool
12033 pg_tables v: schemaname name, tablename name, tableowner name, tablespace name, hasindexes bool, hasrules
    bool, hastriggers bool, rowsecurity bool
12028 pg_views v: schemaname name, viewname name, viewowner name, definition text
12038 pg_matviews v: schemaname name, matviewname name, matviewowner name, tablespace name, hasindexes bool,
    ispopulated bool, definition text
12043 pg_indexes v: schemaname name, tablename name, indexname name, tablespace name, indexdef text
12048 pg_sequences v: schemaname name, sequencename name, sequenceowner name, data_type regtype, start_value int8,
    min_value int8, max_value int8, increment_by int8, cycle bool, cache_size int8, last_value int8
12023 pg_rules v: schemaname name, tablename name, rulename name, definition text
12018 pg_policies v: schemaname name, tablename name, policyname name, permissive text, roles name[], cmd text, qual
    text, with_check text
12053 pg_stats v: schemaname name, tablename name, attname name, inherited bool, null_frac float4, avg_width int4,
    n_distinct float4, most_common_vals text[], most_common_freqs float4[], histogram_bounds text[], correlation
    float4, most_common_elems text[], most_common_elem_freqs float4[], elem_count_histogram float4[]
12222 pg_stat_activity v: datid oid, datname name, pid int4, leader_pid int4, usesysid oid, usename name,
    application_name text, client_addr text, client_hostname text, client_port int4, backend_start timestamptz,
    xact_start timestamptz, query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event
    text, state text, backend_xid oid, backend_xmin oid, query_id int8, query text, backend_type text
12073 pg_locks v: locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid
    oid, classid oid, objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath
    bool, waitstart timestamptz
12249 pg_stat_ssl v: pid int4, ssl bool, version text, cipher text, bits int4, client_dn text, client_serial numeric,
    issuer_dn text
12253 pg_stat_gssapi v: pid int4, gss_authenticated bool, principal text, encrypted bool
12114 pg_hba_file_rules v: line_number int4, type text, database text[], user_name text[], address text, netmask text,
    auth_method text, options text[], error text
12077 pg_cursors v: name text, statement text, is_holdable bool, is_binary bool, is_scrollable bool, creation_time
    timestamptz
12095 pg_prepared_statements v: name text, statement text, prepare_time timestamptz, parameter_types regtype[], from_sql
    bool, generic_plans int8, custom_plans int8
12090 pg_prepared_xacts v: transaction oid, gid text, prepared timestamptz, owner name, database name
12126 pg_timezone_names v: name text, abbrev text, utc_offset interval, is_dst bool
12122 pg_timezone_abbrevs v: abbrev text, utc_offset interval, is_dst bool
12081 pg_available_extensions v: name name, default_version text, installed_version text, comment text
12068 pg_publication_tables v: pubname name, schemaname name, tablename name, attnames name[], rowfilter text
12099 pg_seclabels v: objoid oid, classoid oid, objsubid int4, objtype text, objnamespace oid, objname text,
    provider text, label text
12327 pg_user_mappings v: umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]
12142 pg_stat_all_tables v: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan
    int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8,
    n_dead_tup int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum
    timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8,
    analyze_count int8, autoanalyze_count int8
12161 pg_stat_user_tables v: relid oid, schemaname name, relname name, seq_scan int8, seq_tup_read int8, idx_scan
    int8, idx_tup_fetch int8, n_tup_ins int8, n_tup_upd int8, n_tup_del int8, n_tup_hot_upd int8, n_live_tup int8,
    n_dead_tup int8, n_mod_since_analyze int8, n_ins_since_vacuum int8, last_vacuum timestamptz, last_autovacuum
    timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, vacuum_count int8, autovacuum_count int8,
    analyze_count int8, autoanalyze_count int8
12266 pg_stat_database v: datid oid, datname name, numbackends int4, xact_commit int8, xact_rollback int8, blks_read
    int8, blks_hit int8, tup_returned int8, tup_fetched int8, tup_inserted int8, tup_updated int8, tup_deleted int8,
    conflicts int8, temp_files int8, temp_bytes int8, deadlocks int8, checksum_failures int8, checksum_last_failure
    timestamptz, blk_read_time float8, blk_write_time float8, session_time float8, active_time float8,
    idle_in_transaction_time float8, sessions int8, sessions_abandoned int8, sessions_fatal int8, sessions_killed
    int8, stats_reset timestamptz
12192 pg_stat_user_indexes v: relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, idx_scan
    int8, idx_tup_read int8, idx_tup_fetch int8
12257 pg_replication_slots v: slot_name name, plugin name, slot_type text, datoid oid, database name, temporary
    bool, active bool, active_pid int4, xmin oid, catalog_xmin oid, restart_lsn text, confirmed_flush_lsn text,
    wal_status text, safe_wal_size int8, two_phase bool
12227 pg_stat_replication v: pid int4, usesysid oid, usename name, application_name text, client_addr text,
    client_hostname text, client_port int4, backend_start timestamptz, backend_xmin oid, state text, sent_lsn text,
    write_lsn text, flush_lsn text, replay_lsn text, write_lag interval, flush_lag interval, replay_lag interval,
    sync_priority int4, sync_state text, reply_time timestamptz
12322 pg_stat_progress_copy v: pid int4, datid oid, datname name, relid oid, command text, type text,
    bytes_processed int8, bytes_total int8, tuples_processed int8, tuples_excluded int8, tuples_skipped int8
"""
