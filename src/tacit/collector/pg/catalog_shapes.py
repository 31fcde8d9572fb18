"""The tables of PostgreSQL's catalogue that clients ask for: the names and kinds of their columns."""

FILLED = {
    "pg_namespace": "oid:oid nspname:name nspowner:oid nspacl:texts",
    "pg_class": "oid:oid relname:name relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid "
    "relfilenode:oid reltablespace:oid relpages:int4 reltuples:float4 relallvisible:int4 reltoastrelid:oid "
    "relhasindex:bool relisshared:bool relpersistence:char relkind:char relnatts:int2 relchecks:int2 relhasrules:bool "
    "relhastriggers:bool relhassubclass:bool relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool "
    "relreplident:char relispartition:bool relrewrite:oid relhasoids:bool relacl:texts reloptions:texts "
    "relpartbound:text",
    "pg_attribute": "attrelid:oid attname:name atttypid:oid attstattarget:int4 attlen:int2 attnum:int2 attndims:int4 "
    "attcacheoff:int4 atttypmod:int4 attbyval:bool attalign:char attstorage:char attcompression:char attnotnull:bool "
    "atthasdef:bool atthasmissing:bool attidentity:char attgenerated:char attisdropped:bool attislocal:bool "
    "attinhcount:int4 attcollation:oid attacl:texts attoptions:texts attfdwoptions:texts",
    "pg_type": "oid:oid typname:name typnamespace:oid typowner:oid typlen:int2 typbyval:bool typtype:char "
    "typcategory:char typispreferred:bool typisdefined:bool typdelim:char typrelid:oid typsubscript:regproc "
    "typelem:oid typarray:oid typinput:regproc typoutput:regproc typreceive:regproc typsend:regproc typmodin:regproc "
    "typmodout:regproc typanalyze:regproc typalign:char typstorage:char typnotnull:bool typbasetype:oid typtypmod:int4 "
    "typndims:int4 typcollation:oid typdefault:text typacl:texts",
    "pg_database": "oid:oid datname:name datdba:oid encoding:int4 datcollate:name datctype:name datistemplate:bool "
    "datallowconn:bool datconnlimit:int4 datlastsysoid:oid dattablespace:oid datacl:texts datlocprovider:char "
    "daticulocale:text datcollversion:text",
    "pg_roles": "oid:oid rolname:name rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool "
    "rolcanlogin:bool rolreplication:bool rolconnlimit:int4 rolpassword:text rolvaliduntil:text rolbypassrls:bool "
    "rolconfig:texts",
    "pg_user": "usename:name usesysid:oid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd:text "
    "valuntil:text useconfig:texts",
    "pg_tables": "schemaname:name tablename:name tableowner:name tablespace:name hasindexes:bool hasrules:bool "
    "hastriggers:bool rowsecurity:bool",
    "pg_description": "objoid:oid classoid:oid objsubid:int4 description:text",
    "pg_settings": "name:text setting:text unit:text category:text short_desc:text context:text vartype:text "
    "source:text boot_val:text reset_val:text",
    "pg_am": "oid:oid amname:name amhandler:regproc amtype:char",
    "pg_tablespace": "oid:oid spcname:name spcowner:oid spcacl:texts spcoptions:texts",
    "pg_get_keywords": "word:text catcode:char barelabel:bool catdesc:text baredesc:text",
    "information_schema.schemata": "catalog_name:name schema_name:name schema_owner:name",
    "information_schema.tables": "table_catalog:name table_schema:name table_name:name table_type:text "
    "is_insertable_into:text is_typed:text",
    "information_schema.columns": "table_catalog:name table_schema:name table_name:name column_name:name "
    "ordinal_position:int4 column_default:text is_nullable:text data_type:text character_maximum_length:int4 "
    "character_octet_length:int4 numeric_precision:int4 numeric_precision_radix:int4 numeric_scale:int4 "
    "datetime_precision:int4 interval_type:text character_set_name:name collation_name:name domain_name:name "
    "udt_catalog:name udt_schema:name udt_name:name is_identity:text identity_generation:text is_generated:text "
    "generation_expression:text is_updatable:text",
    "information_schema.table_privileges": "grantor:name grantee:name table_catalog:name table_schema:name "
    "table_name:name privilege_type:text is_grantable:text with_hierarchy:text",
}

EMPTY = {
    "pg_index": "indexrelid:oid indrelid:oid indnatts:int2 indnkeyatts:int2 indisunique:bool indisprimary:bool "
    "indisexclusion:bool indimmediate:bool indisclustered:bool indisvalid:bool indisready:bool indislive:bool "
    "indisreplident:bool indkey:vector indcollation:oids indclass:oids indoption:vector indexprs:text indpred:text",
    "pg_constraint": "oid:oid conname:name connamespace:oid contype:char condeferrable:bool condeferred:bool "
    "convalidated:bool conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid confupdtype:char "
    "confdeltype:char confmatchtype:char conislocal:bool coninhcount:int4 connoinherit:bool conkey:int2s confkey:int2s "
    "conbin:text",
    "pg_attrdef": "oid:oid adrelid:oid adnum:int2 adbin:text",
    "pg_inherits": "inhrelid:oid inhparent:oid inhseqno:int4 inhdetachpending:bool",
    "pg_proc": "oid:oid proname:name pronamespace:oid proowner:oid prolang:oid prokind:char prosecdef:bool "
    "proleakproof:bool proisstrict:bool proretset:bool provolatile:char proparallel:char pronargs:int2 prorettype:oid "
    "proargtypes:oids proallargtypes:oids proargmodes:chars proargnames:texts prosrc:text proacl:texts "
    "proargdefaults:text probin:text proconfig:texts",
    "pg_trigger": "oid:oid tgrelid:oid tgparentid:oid tgname:name tgfoid:oid tgtype:int2 tgenabled:char "
    "tgisinternal:bool tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid tgdeferrable:bool tginitdeferred:bool",
    "pg_policy": "oid:oid polname:name polrelid:oid polcmd:char polpermissive:bool polroles:oids polqual:text "
    "polwithcheck:text",
    "pg_statistic_ext": "oid:oid stxrelid:oid stxname:name stxnamespace:oid stxowner:oid stxstattarget:int4 "
    "stxkeys:vector stxkind:chars stxexprs:text",
    "pg_publication": "oid:oid pubname:name pubowner:oid puballtables:bool pubinsert:bool pubupdate:bool "
    "pubdelete:bool pubtruncate:bool pubviaroot:bool",
    "pg_publication_rel": "oid:oid prpubid:oid prrelid:oid prqual:text prattrs:vector",
    "pg_publication_namespace": "oid:oid pnpubid:oid pnnspid:oid",
    "pg_subscription": "oid:oid subname:name subdbid:oid subowner:oid subenabled:bool subpublications:texts",
    "pg_user_mappings": "umid:oid srvid:oid srvname:name umuser:oid usename:name umoptions:texts",
    "pg_ts_config": "oid:oid cfgname:name cfgnamespace:oid cfgowner:oid cfgparser:oid",
    "pg_opfamily": "oid:oid opfmethod:oid opfname:name opfnamespace:oid opfowner:oid",
    "pg_collation": "oid:oid collname:name collnamespace:oid collowner:oid collprovider:char collisdeterministic:bool "
    "collencoding:int4 collcollate:text collctype:text colliculocale:text",
    "pg_rewrite": "oid:oid rulename:name ev_class:oid ev_type:char ev_enabled:char is_instead:bool",
    "pg_foreign_table": "ftrelid:oid ftserver:oid ftoptions:texts",
    "pg_foreign_server": "oid:oid srvname:name srvowner:oid srvfdw:oid srvtype:text srvversion:text srvacl:texts "
    "srvoptions:texts",
    "pg_foreign_data_wrapper": "oid:oid fdwname:name fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:texts "
    "fdwoptions:texts",
    "pg_user_mapping": "oid:oid umuser:oid umserver:oid umoptions:texts",
    "pg_partitioned_table": "partrelid:oid partstrat:char partnatts:int2 partdefid:oid partattrs:vector",
    "pg_extension": "oid:oid extname:name extowner:oid extnamespace:oid extrelocatable:bool extversion:text "
    "extconfig:oids extcondition:texts",
    "pg_available_extensions": "name:name default_version:text installed_version:text comment:text",
    "pg_enum": "oid:oid enumtypid:oid enumsortorder:float4 enumlabel:name",
    "pg_range": "rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid rngcanonical:regproc "
    "rngsubdiff:regproc",
    "pg_sequence": "seqrelid:oid seqtypid:oid seqstart:int8 seqincrement:int8 seqmax:int8 seqmin:int8 seqcache:int8 "
    "seqcycle:bool",
    "pg_sequences": "schemaname:name sequencename:name sequenceowner:name data_type:text last_value:int8",
    "pg_event_trigger": "oid:oid evtname:name evtevent:name evtowner:oid evtfoid:oid evtenabled:char evttags:texts",
    "pg_depend": "classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid refobjsubid:int4 deptype:char",
    "pg_shdepend": "dbid:oid classid:oid objid:oid objsubid:int4 refclassid:oid refobjid:oid deptype:char",
    "pg_shdescription": "objoid:oid classoid:oid description:text",
    "pg_seclabel": "objoid:oid classoid:oid objsubid:int4 provider:text label:text",
    "pg_language": "oid:oid lanname:name lanowner:oid lanispl:bool lanpltrusted:bool lanplcallfoid:oid lanacl:texts",
    "pg_operator": "oid:oid oprname:name oprnamespace:oid oprowner:oid oprkind:char oprleft:oid oprright:oid "
    "oprresult:oid oprcode:regproc",
    "pg_opclass": "oid:oid opcmethod:oid opcname:name opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid "
    "opcdefault:bool opckeytype:oid",
    "pg_aggregate": "aggfnoid:oid aggkind:char",
    "pg_cast": "oid:oid castsource:oid casttarget:oid castfunc:oid castcontext:char castmethod:char",
    "pg_conversion": "oid:oid conname:name connamespace:oid conforencoding:int4 contoencoding:int4 condefault:bool",
    "pg_default_acl": "oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype:char defaclacl:texts",
    "pg_auth_members": "roleid:oid member:oid grantor:oid admin_option:bool",
    "pg_db_role_setting": "setdatabase:oid setrole:oid setconfig:texts",
    "pg_largeobject_metadata": "oid:oid lomowner:oid lomacl:texts",
    "pg_locks": "locktype:text database:oid relation:oid pid:int4 mode:text granted:bool",
    "pg_stat_activity": "datid:oid datname:name pid:int4 usename:name application_name:text state:text query:text",
    "pg_stat_user_tables": "relid:oid schemaname:name relname:name n_live_tup:int8 n_dead_tup:int8",
    "pg_statio_user_tables": "relid:oid schemaname:name relname:name",
    "pg_views": "schemaname:name viewname:name viewowner:name definition:text",
    "pg_matviews": "schemaname:name matviewname:name matviewowner:name ispopulated:bool definition:text",
    "pg_indexes": "schemaname:name tablename:name indexname:name tablespace:name indexdef:text",
    "pg_timezone_names": "name:text abbrev:text utc_offset:text is_dst:bool",
    "pg_prepared_statements": "name:text statement:text from_sql:bool",
    "pg_cursors": "name:text statement:text is_holdable:bool",
    "information_schema.views": "table_catalog:name table_schema:name table_name:name view_definition:text",
    "information_schema.table_constraints": "constraint_catalog:name constraint_schema:name constraint_name:name "
    "table_catalog:name table_schema:name table_name:name constraint_type:text is_deferrable:text "
    "initially_deferred:text",
    "information_schema.key_column_usage": "constraint_catalog:name constraint_schema:name constraint_name:name "
    "table_catalog:name table_schema:name table_name:name column_name:name ordinal_position:int4 "
    "position_in_unique_constraint:int4",
    "information_schema.constraint_column_usage": "table_catalog:name table_schema:name table_name:name "
    "column_name:name constraint_catalog:name constraint_schema:name constraint_name:name",
    "information_schema.referential_constraints": "constraint_catalog:name constraint_schema:name "
    "constraint_name:name unique_constraint_catalog:name unique_constraint_schema:name unique_constraint_name:name "
    "update_rule:text delete_rule:text",
    "information_schema.routines": "specific_name:name routine_catalog:name routine_schema:name routine_name:name "
    "routine_type:text data_type:text",
    "information_schema.parameters": "specific_name:name specific_schema:name ordinal_position:int4 "
    "parameter_mode:text parameter_name:name data_type:text",
    "information_schema.sequences": "sequence_catalog:name sequence_schema:name sequence_name:name data_type:text",
    "information_schema.triggers": "trigger_schema:name trigger_name:name event_object_table:name",
    "information_schema.element_types": "object_schema:name object_name:name data_type:text",
    "information_schema.column_privileges": "table_schema:name table_name:name column_name:name grantee:name "
    "privilege_type:text",
}
