"""The tables of pg_catalog, one relation per paragraph: ``oid name relkind: column type, …``; ``!`` marks NOT NULL.

Parsed by ``definitions.py``; taken from PostgreSQL 15.
"""

from __future__ import annotations

from typing import Final

TABLES: Final = """
1259 pg_class r: oid oid!, relname name!, relnamespace oid!, reltype oid!, reloftype oid!, relowner oid!, relam
    oid!, relfilenode oid!, reltablespace oid!, relpages int4!, reltuples float4!, relallvisible int4!,
    reltoastrelid oid!, relhasindex bool!, relisshared bool!, relpersistence char!, relkind char!, relnatts int2!,
    relchecks int2!, relhasrules bool!, relhastriggers bool!, relhassubclass bool!, relrowsecurity bool!,
    relforcerowsecurity bool!, relispopulated bool!, relreplident char!, relispartition bool!, relrewrite oid!,
    relfrozenxid oid!, relminmxid oid!, relacl text[], reloptions text[], relpartbound text
2615 pg_namespace r: oid oid!, nspname name!, nspowner oid!, nspacl text[]
1249 pg_attribute r: attrelid oid!, attname name!, atttypid oid!, attstattarget int4!, attlen int2!, attnum int2!,
    attndims int4!, attcacheoff int4!, atttypmod int4!, attbyval bool!, attalign char!, attstorage char!,
    attcompression char!, attnotnull bool!, atthasdef bool!, atthasmissing bool!, attidentity char!, attgenerated
    char!, attisdropped bool!, attislocal bool!, attinhcount int4!, attcollation oid!, attacl text[], attoptions
    text[], attfdwoptions text[], attmissingval text[]
2604 pg_attrdef r: oid oid!, adrelid oid!, adnum int2!, adbin text!
1247 pg_type r: oid oid!, typname name!, typnamespace oid!, typowner oid!, typlen int2!, typbyval bool!, typtype
    char!, typcategory char!, typispreferred bool!, typisdefined bool!, typdelim char!, typrelid oid!, typsubscript
    regproc!, typelem oid!, typarray oid!, typinput regproc!, typoutput regproc!, typreceive regproc!, typsend
    regproc!, typmodin regproc!, typmodout regproc!, typanalyze regproc!, typalign char!, typstorage char!,
    typnotnull bool!, typbasetype oid!, typtypmod int4!, typndims int4!, typcollation oid!, typdefaultbin text,
    typdefault text, typacl text[]
2610 pg_index r: indexrelid oid!, indrelid oid!, indnatts int2!, indnkeyatts int2!, indisunique bool!,
    indnullsnotdistinct bool!, indisprimary bool!, indisexclusion bool!, indimmediate bool!, indisclustered bool!,
    indisvalid bool!, indcheckxmin bool!, indisready bool!, indislive bool!, indisreplident bool!, indkey int2vector!,
    indcollation oidvector!, indclass oidvector!, indoption int2vector!, indexprs text, indpred text
2606 pg_constraint r: oid oid!, conname name!, connamespace oid!, contype char!, condeferrable bool!, condeferred
    bool!, convalidated bool!, conrelid oid!, contypid oid!, conindid oid!, conparentid oid!, confrelid oid!,
    confupdtype char!, confdeltype char!, confmatchtype char!, conislocal bool!, coninhcount int4!, connoinherit
    bool!, conkey int2[], confkey int2[], conpfeqop oid[], conppeqop oid[], conffeqop oid[], confdelsetcols int2[],
    conexclop oid[], conbin text
2609 pg_description r: objoid oid!, classoid oid!, objsubid int4!, description text!
1262 pg_database r: oid oid!, datname name!, datdba oid!, encoding int4!, datlocprovider char!, datistemplate bool!,
    datallowconn bool!, datconnlimit int4!, datfrozenxid oid!, datminmxid oid!, dattablespace oid!, datcollate
    text!, datctype text!, daticulocale text, datcollversion text, datacl text[]
1260 pg_authid r: oid oid!, rolname name!, rolsuper bool!, rolinherit bool!, rolcreaterole bool!, rolcreatedb bool!,
    rolcanlogin bool!, rolreplication bool!, rolbypassrls bool!, rolconnlimit int4!, rolpassword text, rolvaliduntil
    timestamptz
1261 pg_auth_members r: roleid oid!, member oid!, grantor oid!, admin_option bool!
2601 pg_am r: oid oid!, amname name!, amhandler regproc!, amtype char!
1255 pg_proc r: oid oid!, proname name!, pronamespace oid!, proowner oid!, prolang oid!, procost float4!, prorows
    float4!, provariadic oid!, prosupport regproc!, prokind char!, prosecdef bool!, proleakproof bool!, proisstrict
    bool!, proretset bool!, provolatile char!, proparallel char!, pronargs int2!, pronargdefaults int2!, prorettype
    oid!, proargtypes oidvector!, proallargtypes oid[], proargmodes char[], proargnames text[], proargdefaults text,
    protrftypes oid[], prosrc text!, probin text, prosqlbody text, proconfig text[], proacl text[]
2611 pg_inherits r: inhrelid oid!, inhparent oid!, inhseqno int4!, inhdetachpending bool!
3350 pg_partitioned_table r: partrelid oid!, partstrat char!, partnatts int2!, partdefid oid!, partattrs int2vector!,
    partclass oid[]!, partcollation oid[]!, partexprs text
2620 pg_trigger r: oid oid!, tgrelid oid!, tgparentid oid!, tgname name!, tgfoid oid!, tgtype int2!, tgenabled
    char!, tgisinternal bool!, tgconstrrelid oid!, tgconstrindid oid!, tgconstraint oid!, tgdeferrable bool!,
    tginitdeferred bool!, tgnargs int2!, tgattr int2vector!, tgargs bytea!, tgqual text, tgoldtable name, tgnewtable
    name
3256 pg_policy r: oid oid!, polname name!, polrelid oid!, polcmd char!, polpermissive bool!, polroles oid[]!,
    polqual text, polwithcheck text
2618 pg_rewrite r: oid oid!, rulename name!, ev_class oid!, ev_type char!, ev_enabled char!, is_instead bool!,
    ev_qual text!, ev_action text!
3456 pg_collation r: oid oid!, collname name!, collnamespace oid!, collowner oid!, collprovider char!,
    collisdeterministic bool!, collencoding int4!, collcollate text, collctype text, colliculocale text, collversion
    text
2616 pg_opclass r: oid oid!, opcmethod oid!, opcname name!, opcnamespace oid!, opcowner oid!, opcfamily oid!,
    opcintype oid!, opcdefault bool!, opckeytype oid!
2753 pg_opfamily r: oid oid!, opfmethod oid!, opfname name!, opfnamespace oid!, opfowner oid!
2602 pg_amop r: oid oid!, amopfamily oid!, amoplefttype oid!, amoprighttype oid!, amopstrategy int2!, amoppurpose
    char!, amopopr oid!, amopmethod oid!, amopsortfamily oid!
2603 pg_amproc r: oid oid!, amprocfamily oid!, amproclefttype oid!, amprocrighttype oid!, amprocnum int2!, amproc
    regproc!
2617 pg_operator r: oid oid!, oprname name!, oprnamespace oid!, oprowner oid!, oprkind char!, oprcanmerge bool!,
    oprcanhash bool!, oprleft oid!, oprright oid!, oprresult oid!, oprcom oid!, oprnegate oid!, oprcode regproc!,
    oprrest regproc!, oprjoin regproc!
2605 pg_cast r: oid oid!, castsource oid!, casttarget oid!, castfunc oid!, castcontext char!, castmethod char!
2600 pg_aggregate r: aggfnoid regproc!, aggkind char!, aggnumdirectargs int2!, aggtransfn regproc!, aggfinalfn
    regproc!, aggcombinefn regproc!, aggserialfn regproc!, aggdeserialfn regproc!, aggmtransfn regproc!,
    aggminvtransfn regproc!, aggmfinalfn regproc!, aggfinalextra bool!, aggmfinalextra bool!, aggfinalmodify char!,
    aggmfinalmodify char!, aggsortop oid!, aggtranstype oid!, aggtransspace int4!, aggmtranstype oid!,
    aggmtransspace int4!, agginitval text, aggminitval text
2612 pg_language r: oid oid!, lanname name!, lanowner oid!, lanispl bool!, lanpltrusted bool!, lanplcallfoid oid!,
    laninline oid!, lanvalidator oid!, lanacl text[]
3381 pg_statistic_ext r: oid oid!, stxrelid oid!, stxname name!, stxnamespace oid!, stxowner oid!, stxstattarget
    int4!, stxkeys int2[]!, stxkind char[]!, stxexprs text
6104 pg_publication r: oid oid!, pubname name!, pubowner oid!, puballtables bool!, pubinsert bool!, pubupdate bool!,
    pubdelete bool!, pubtruncate bool!, pubviaroot bool!
6106 pg_publication_rel r: oid oid!, prpubid oid!, prrelid oid!, prqual text, prattrs int2[]
6237 pg_publication_namespace r: oid oid!, pnpubid oid!, pnnspid oid!
6100 pg_subscription r: oid oid!, subdbid oid!, subskiplsn text!, subname name!, subowner oid!, subenabled bool!,
    subbinary bool!, substream bool!, subtwophasestate char!, subdisableonerr bool!, subconninfo text!, subslotname
    name, subsynccommit text!, subpublications text[]!
6102 pg_subscription_rel r: srsubid oid!, srrelid oid!, srsubstate char!, srsublsn text
3118 pg_foreign_table r: ftrelid oid!, ftserver oid!, ftoptions text[]
1417 pg_foreign_server r: oid oid!, srvname name!, srvowner oid!, srvfdw oid!, srvtype text, srvversion text, srvacl
    text[], srvoptions text[]
2328 pg_foreign_data_wrapper r: oid oid!, fdwname name!, fdwowner oid!, fdwhandler oid!, fdwvalidator oid!, fdwacl
    text[], fdwoptions text[]
1418 pg_user_mapping r: oid oid!, umuser oid!, umserver oid!, umoptions text[]
1213 pg_tablespace r: oid oid!, spcname name!, spcowner oid!, spcacl text[], spcoptions text[]
6243 pg_parameter_acl r: oid oid!, parname text!, paracl text[]
3501 pg_enum r: oid oid!, enumtypid oid!, enumsortorder float4!, enumlabel name!
3541 pg_range r: rngtypid oid!, rngsubtype oid!, rngmultitypid oid!, rngcollation oid!, rngsubopc oid!, rngcanonical
    regproc!, rngsubdiff regproc!
2224 pg_sequence r: seqrelid oid!, seqtypid oid!, seqstart int8!, seqincrement int8!, seqmax int8!, seqmin int8!,
    seqcache int8!, seqcycle bool!
2608 pg_depend r: classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!, refobjsubid int4!,
    deptype char!
1214 pg_shdepend r: dbid oid!, classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!, deptype
    char!
2396 pg_shdescription r: objoid oid!, classoid oid!, description text!
3079 pg_extension r: oid oid!, extname name!, extowner oid!, extnamespace oid!, extrelocatable bool!, extversion
    text!, extconfig oid[], extcondition text[]
3466 pg_event_trigger r: oid oid!, evtname name!, evtevent name!, evtowner oid!, evtfoid oid!, evtenabled char!,
    evttags text[]
2607 pg_conversion r: oid oid!, conname name!, connamespace oid!, conowner oid!, conforencoding int4!, contoencoding
    int4!, conproc regproc!, condefault bool!
826 pg_default_acl r: oid oid!, defaclrole oid!, defaclnamespace oid!, defaclobjtype char!, defaclacl text[]!
3596 pg_seclabel r: objoid oid!, classoid oid!, objsubid int4!, provider text!, label text!
3592 pg_shseclabel r: objoid oid!, classoid oid!, provider text!, label text!
3394 pg_init_privs r: objoid oid!, classoid oid!, objsubid int4!, privtype char!, initprivs text[]!
3576 pg_transform r: oid oid!, trftype oid!, trflang oid!, trffromsql regproc!, trftosql regproc!
2995 pg_largeobject_metadata r: oid oid!, lomowner oid!, lomacl text[]
2964 pg_db_role_setting r: setdatabase oid!, setrole oid!, setconfig text[]
3602 pg_ts_config r: oid oid!, cfgname name!, cfgnamespace oid!, cfgowner oid!, cfgparser oid!
3603 pg_ts_config_map r: mapcfg oid!, maptokentype int4!, mapseqno int4!, mapdict oid!
3600 pg_ts_dict r: oid oid!, dictname name!, dictnamespace oid!, dictowner oid!, dicttemplate oid!, dictinitoption
    text
3601 pg_ts_parser r: oid oid!, prsname name!, prsnamespace oid!, prsstart regproc!, prstoken regproc!, prsend
    regproc!, prsheadline regproc!, prslextype regproc!
3764 pg_ts_template r: oid oid!, tmplname name!, tmplnamespace oid!, tmplinit regproc!, tmpllexize regproc!
"""
