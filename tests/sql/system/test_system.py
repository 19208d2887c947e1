"""pg_catalog and information_schema over a small catalog, and the functions that clients call on them."""

from __future__ import annotations

import pytest

from ivm.errors import SqlError
from ivm.words import INT4, INT8, REGCLASS, REGNAMESPACE, REGPROC, REGTYPE, TEXT, Kind, SqlType
from planner.identifiers import split_name
from sql.catalog.access import Access, RoleNames
from sql.catalog.catalog import INTERNAL_SCHEMAS, Catalog, Relation, RelationKind, TableColumn
from sql.catalog.keys import INDEX_BASE
from sql.catalog.roles import BOOTSTRAP_ID
from sql.catalog.search_path import DEFAULT_PATH, SearchPathReader
from sql.system.functions import SystemFunctions
from sql.system.relations import ROWS, rows, system_relations
from sql.system.state import CopyInfo, CursorInfo, HbaLine, LockInfo, SessionInfo, StatementInfo, TlsInfo
from storage.dictionary import Dictionary
from storage.types import codec
from storage.types.text_style import DEFAULT_STYLE

TABLE = Relation(
    16384, "public", "t", RelationKind.TABLE,
    (TableColumn("a", INT4), TableColumn("b", TEXT, False, "'x'"), TableColumn("C d", SqlType(Kind.NUMERIC, 10, 2))),
    (0, 2),
)  # fmt: skip
VIEW = Relation(16385, "public", "v", RelationKind.VIEW, (TableColumn("a", INT4),), definition="select a from t;")
MATERIALIZED = Relation(
    16386, "public", "m", RelationKind.MATERIALIZED_VIEW, (TableColumn("c", INT8),), definition="select 1 c"
)
ERRORS = Relation(13998, "freshet", "view_errors", RelationKind.SYSTEM, (TableColumn("view", TEXT),))


class State:
    roles = RoleNames(Access(), "me")
    role = session_role = BOOTSTRAP_ID
    database = "db"

    def types(self) -> list[Relation]:
        return []

    def routines(self) -> list[Relation]:
        return []

    def operators(self) -> list[Relation]:
        return []

    def relations(self) -> list[Relation]:
        return [TABLE, VIEW, MATERIALIZED, ERRORS]

    def schemas(self) -> dict[str, int]:
        return {"public": 2200, **INTERNAL_SCHEMAS}

    def comments(self) -> dict[tuple[int, int, int], str]:
        return {(1259, TABLE.oid, 2): "of a column", (1262, 5, 0): "of the database"}

    path = DEFAULT_PATH
    constants = DEFAULT_STYLE

    @property
    def reader(self) -> SearchPathReader:
        catalog = Catalog().with_relations({r.id: r for r in self.relations()}, 20000, 1)
        return SearchPathReader(catalog, self.path)

    def settings(self) -> list[tuple[str, str]]:
        return [("TimeZone", "UTC")]

    def locks(self) -> list[LockInfo]:
        return [LockInfo("relation", 7, "RowExclusiveLock", relation=TABLE.id)]

    def cursors(self) -> list[CursorInfo]:
        return []

    def prepared_statements(self) -> list[StatementInfo]:
        return []

    def sessions(self) -> list[SessionInfo]:
        tls = TlsInfo("TLSv1.3", "TLS_AES_256_GCM_SHA384", 256, "/CN=me", 1 << 150, "/CN=us", "me")
        return [SessionInfo(7, "me", 10, "db", 5, "psql", "active", "select 1", 5, 6, tls=tls)]

    def hba_lines(self) -> list[HbaLine]:
        return [
            HbaLine(
                1, "hostssl", ("all",), ("me", "+us"), "10.0.0.0", "255.0.0.0", "cert", ("clientcert=verify-full",)
            ),
            HbaLine(2, error="no"),
        ]

    def copies(self) -> list[CopyInfo]:
        return [CopyInfo(7, 16384, False, "PIPE", 10, 0, 3, 1)]


FUNCTIONS = SystemFunctions(State(), {"timezone": "UTC"}.get, 7)
BY_NAME = {(r.schema_name, r.name): r for r in system_relations()}


def records(name: str, schema: str = "pg_catalog") -> list[dict[str, object]]:
    relation = BY_NAME[schema, name]
    names = [c.name for c in relation.columns]
    return [dict(zip(names, row, strict=True)) for row in rows(relation.id, State())]


def test_ids_are_postgres_s_and_unique() -> None:
    ids = [r.id for r in system_relations()]
    assert len(set(ids)) == len(ids)
    assert all(0 < i < 16384 for i in ids)
    assert BY_NAME["pg_catalog", "pg_class"].id == 1259
    assert set(ROWS) <= set(ids)
    with pytest.raises(KeyError):
        rows(1, State())


def test_every_row_is_of_its_relation_s_types() -> None:
    dictionary = Dictionary(b"s" * 16)
    for relation in system_relations():
        found = rows(relation.id, State())
        for i, column in enumerate(relation.columns):
            values = [row[i] for row in found]
            assert column.nullable or None not in values, f"{relation.name}.{column.name}"
            assert codec.decode(column.type, codec.encode(column.type, values, dictionary), dictionary) == values


def test_relations_and_their_kinds() -> None:
    found = {r["relname"]: r for r in records("pg_class")}
    assert [found[n]["relkind"] for n in ("t", "t_pkey", "v", "m", "view_errors", "pg_class", "pg_tables")] == [
        "r", "i", "v", "m", "v", "r", "v",
    ]  # fmt: skip
    assert (found["t"]["relhasindex"], found["v"]["relhasindex"], found["t"]["relnatts"]) == (True, False, 3)
    assert found["view_errors"]["relnamespace"] == next(
        n["oid"] for n in records("pg_namespace") if n["nspname"] == "freshet"
    )
    assert [r["matviewname"] for r in records("pg_matviews")] == ["m"]
    assert {"t": "BASE TABLE", "v": "VIEW"}.items() <= {
        r["table_name"]: r["table_type"] for r in records("tables", "information_schema")
    }.items()


def test_columns_keys_and_defaults() -> None:
    columns = [r for r in records("pg_attribute") if r["attrelid"] == TABLE.id]
    assert [(r["attname"], r["atttypid"], r["atttypmod"], r["attnotnull"]) for r in columns] == [
        ("a", 23, -1, True), ("b", 25, -1, True), ("C d", 1700, 655366, True),
    ]  # fmt: skip
    assert [r["attstorage"] for r in columns] == ["p", "x", "m"]
    assert [(r["adrelid"], r["adnum"], r["adbin"]) for r in records("pg_attrdef")] == [(TABLE.id, 2, "'x'::text")]
    assert [(r["indexrelid"], r["indkey"]) for r in records("pg_index")] == [(INDEX_BASE + TABLE.id, (1, 3))]
    assert [(r["conname"], r["contype"], r["conkey"]) for r in records("pg_constraint")] == [("t_pkey", "p", (1, 3))]
    usage = records("key_column_usage", "information_schema")
    assert [(r["column_name"], r["ordinal_position"]) for r in usage] == [("a", 1), ("C d", 2)]
    described = [r for r in records("columns", "information_schema") if r["table_name"] == "t"]
    assert [(r["data_type"], r["numeric_precision"], r["is_nullable"]) for r in described] == [
        ("integer", 32, "NO"), ("text", None, "NO"), ("numeric", 10, "NO"),
    ]  # fmt: skip


def test_types_and_the_server() -> None:
    types = {r["typname"]: r for r in records("pg_type")}
    assert (types["int4"]["oid"], types["int4"]["typarray"], types["_int4"]["typelem"]) == (23, 1007, 23)
    assert FUNCTIONS.reg_out(REGPROC, int(str(types["_int4"]["typinput"]))) == "array_in"
    assert FUNCTIONS.reg_out(REGPROC, int(str(types["timestamptz"]["typsend"]))) == "timestamptz_send"
    assert [r["datname"] for r in records("pg_database")] == ["db", "template1", "template0"]
    assert [r["rolname"] for r in records("pg_roles") if r["rolcanlogin"]] == ["me"]
    assert [r["setting"] for r in records("pg_settings")] == ["UTC"]
    assert [(r["pid"], r["query"]) for r in records("pg_stat_activity")] == [(7, "select 1")]


def test_reg_types_in_and_out() -> None:
    for relation in (*system_relations(), TABLE, VIEW, MATERIALIZED, ERRORS):
        name = FUNCTIONS.reg_out(REGCLASS, relation.id)
        assert FUNCTIONS.reg_in(REGCLASS, name) == relation.id
    assert FUNCTIONS.reg_out(REGCLASS, ERRORS.id) == "freshet.view_errors"
    assert FUNCTIONS.reg_out(REGCLASS, INDEX_BASE + TABLE.id) == "t_pkey"
    assert FUNCTIONS.reg_in(REGCLASS, "public.T_pkey") == INDEX_BASE + TABLE.id
    assert FUNCTIONS.reg_out(REGCLASS, 99999) == "99999"
    assert FUNCTIONS.reg_in(REGCLASS, "4711") == 4711
    for oid, name in ((23, "integer"), (1007, "integer[]"), (2283, "anyelement"), (30, "oidvector")):
        assert FUNCTIONS.reg_out(REGTYPE, oid) == name
    assert FUNCTIONS.reg_in(REGTYPE, "character varying") == 1043
    assert FUNCTIONS.reg_in(REGNAMESPACE, "public") == 2200
    assert FUNCTIONS.reg_out(REGNAMESPACE, 11) == "pg_catalog"
    assert FUNCTIONS.reg_out(REGCLASS, 0) == "-"


@pytest.mark.parametrize(
    ("type_", "text", "sqlstate"),
    [
        (REGCLASS, "nope", "42P01"),
        (REGCLASS, '"T"', "42P01"),
        (REGCLASS, "freshet.t", "42P01"),
        (REGCLASS, "nope.t", "3F000"),
        (REGCLASS, "a.b.c.d", "42601"),
        (REGCLASS, "a..b", "42602"),
        (REGTYPE, "nope", "42704"),
        (REGTYPE, "hstore", "42704"),
        (REGPROC, "nope", "42883"),
        (REGNAMESPACE, "nope", "3F000"),
    ],
)
def test_unknown_names(type_: SqlType, text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as raised:
        FUNCTIONS.reg_in(type_, text)
    assert raised.value.sqlstate == sqlstate


def test_names_are_split_as_sql_reads_them() -> None:
    assert split_name("Public.T") == ("public", "t")
    assert split_name('"A.b"."c""d"') == ("A.b", 'c"d')
    assert split_name("db.s.t") == ("s", "t")
    with pytest.raises(SqlError):
        split_name('"open')


def test_definitions() -> None:
    assert FUNCTIONS.index_definition(INDEX_BASE + TABLE.id, 0) == (
        'CREATE UNIQUE INDEX t_pkey ON public.t USING btree (a, "C d")'
    )
    assert FUNCTIONS.index_definition(INDEX_BASE + TABLE.id, 2) == '"C d"'
    constraint = records("pg_constraint")[0]["oid"]
    assert FUNCTIONS.constraint_definition(int(str(constraint))) == 'PRIMARY KEY (a, "C d")'
    assert FUNCTIONS.view_definition(VIEW.id) == " SELECT t.a\n   FROM t;"
    assert FUNCTIONS.view_definition(TABLE.id) is None
    assert FUNCTIONS.table_is_visible(TABLE.id) is True
    assert FUNCTIONS.table_is_visible(ERRORS.id) is False
    assert FUNCTIONS.table_is_visible(1) is None
    assert FUNCTIONS.format_type(1700, 655366) == "numeric(10,2)"
    assert FUNCTIONS.format_type(1042, None) == "character"
    assert FUNCTIONS.format_type(22, -1) == "int2vector"
    assert FUNCTIONS.format_type(999999, None) == "???"
    assert (FUNCTIONS.setting("timezone"), FUNCTIONS.role_name(10), FUNCTIONS.backend_pid()) == ("UTC", "me", 7)
