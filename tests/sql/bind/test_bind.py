"""The binder: names, types and errors as PostgreSQL 15 gave them, and the plans of representative queries."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8, NUMERIC, TEXT, ColumnType, Kind, SqlType
from planner.expr.scalar import (
    Aggregate,
    Call,
    Coalesce,
    Column,
    Exists,
    Literal,
    OuterColumn,
    Parameter,
    Quantified,
    ScalarSubquery,
    SortKey,
)
from planner.logical.nodes import (
    Distinct,
    Filter,
    Finishing,
    Get,
    Join,
    JoinKind,
    LetRec,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetOperation,
    TableFunction,
    TopK,
    Values,
    schema,
)
from planner.logical.traversal import gets
from sql.bind.statement import bind_statement
from sql.bind.walk import rel_references
from sql.statements import definitions, queries
from sql.statements import statements as bound
from storage.types.type_names import type_oid, typmod
from tests.support.bind_fake import FakeCatalog, query
from tests.support.paths import ANSWERS

DESCRIBED: dict[str, Any] = json.loads((ANSWERS / "bind_describe.json").read_text())
ERRORS: dict[str, Any] = json.loads((ANSWERS / "bind_errors.json").read_text())
CATALOG = FakeCatalog(DESCRIBED["ddl"])
ERROR_CATALOG = FakeCatalog(ERRORS["ddl"])
T, U, W = 16384, 16385, 16386


@pytest.mark.parametrize("case", DESCRIBED["queries"], ids=lambda c: c["sql"][:60])
def test_columns_and_parameters_are_postgres_s(case: dict[str, Any]) -> None:
    """Names, OIDs and typmods of the columns, OIDs of the parameters."""
    statement = bind_statement(case["sql"], CATALOG)
    columns = getattr(statement.statement, "columns", ())
    assert [[c.name, type_oid(c.type), typmod(c.type)] for c in columns] == case["columns"]
    assert [type_oid(p) for p in statement.parameters] == case["parameters"]


@pytest.mark.parametrize("case", ERRORS["errors"], ids=lambda c: c["sql"][:60])
def test_errors_are_postgres_s(case: dict[str, Any]) -> None:
    """SQLSTATE, message and position; the hint where Postgres's is the same."""
    with pytest.raises(SqlError) as caught:
        bind_statement(case["sql"], ERROR_CATALOG)
    error = caught.value
    assert [error.sqlstate, error.message, error.position] == [case["sqlstate"], case["message"], case["position"]]
    if case["hint"] is not None:
        assert error.hint == case["hint"]


def checked(sql: str) -> queries.Query:
    """Binds a query and makes the checks that hold for every plan."""
    result = query(sql, CATALOG)
    assert not rel_references(result.rel), "a whole query refers to nothing outside"
    columns = schema(result.rel)
    width = result.finishing.width or len(columns)
    assert [c.type for c in result.columns] == [c.type for c in columns[:width]]
    return result


def project(sql: str) -> Project:
    rel = checked(sql).rel
    assert isinstance(rel, Project)
    return rel


def get(relation: int) -> Get:
    found = CATALOG.by_id(relation)
    assert found is not None
    return Get(relation, found.schema)


A = Column(0, INT4, False)
B = Column(1, TEXT, True)


def test_filter_and_projection() -> None:
    rel = project("select b, a + 1 from t where a > 5")
    greater = Call(">(int4,int4)", (A, Literal(5, INT4)), BOOL, False)
    assert rel.input == Filter(get(T), greater)
    assert rel.exprs == (B, Call("+(int4,int4)", (A, Literal(1, INT4)), INT4, False))


def test_order_by_a_hidden_column() -> None:
    result = checked("select b from t order by a desc, b limit 3")
    assert result.finishing == Finishing(
        (SortKey(A and Column(1, INT4, False), True, True), SortKey(Column(0, TEXT, True))), Literal(3, INT8), None, 1
    )
    assert [c.name for c in result.columns] == ["b"]


def test_a_subquery_s_limit_is_a_top_k() -> None:
    rel = project("select * from (select b from t order by a limit 3 offset 1) q").input
    assert rel == TopK(
        Project(get(T), (B, A)), (), (SortKey(Column(1, INT4, False)),), Literal(3, INT8), Literal(1, INT8)
    )


def test_grouping() -> None:
    rel = project("select b, sum(a) + 1 from t group by b having count(*) > 1")
    reduce = Reduce(
        get(T), (B,),
        (Aggregate("sum(int4)", (A,), INT8, False), Aggregate("count(*)", (), INT8, False)),
    )  # fmt: skip
    condition = Call(">(int8,int4)", (Column(2, INT8, False), Literal(1, INT4)), BOOL, False)
    assert rel.input == Filter(reduce, condition)
    one = Call("+(int8,int4)", (Column(1, INT8, False), Literal(1, INT4)), INT8, False)
    assert rel.exprs == (Column(0, TEXT, True), one)


def test_grouping_by_a_primary_key_gives_the_other_columns() -> None:
    rel = project("select b, count(*) from t group by a").input
    assert isinstance(rel, Reduce)
    assert rel.keys == (A, B)


def test_having_alone_does_not_read_its_input() -> None:
    """PostgreSQL answers one row to this, division by zero or not."""
    rel = project("select 1 from t where 1 / a = 1 having 1 < 2").input
    assert isinstance(rel, Filter)
    assert rel.input == Values(((),), ())


def test_set_returning_functions_in_lockstep() -> None:
    rel = project("select generate_series(1, 3), unnest(x) from u")
    assert isinstance(rel.input, TableFunction)
    assert rel.input.function == "2 generate_series(int4,int4) | 1 unnest"
    assert [e.index for e in rel.exprs if isinstance(e, Column)] == [3, 4]


def test_an_aggregate_of_the_outer_query_belongs_to_it() -> None:
    rel = project("select (select sum(t.a) from u) from t group by b")
    assert isinstance(rel.input, Reduce)
    assert [a.function for a in rel.input.aggregates] == ["sum(int4)"]
    subquery = rel.exprs[0]
    assert isinstance(subquery, ScalarSubquery)
    assert rel_references(subquery.rel) == {(0, 1)}


def test_outer_columns_count_levels() -> None:
    rel = project("select 1 from t where exists (select 1 from u where u.a = t.a and exists (select t.b, u.d))").input
    assert isinstance(rel, Filter)
    assert isinstance(rel.predicate, Exists)
    inner = rel.predicate.rel
    assert rel_references(inner) == {(0, 0), (0, 1)}
    assert isinstance(inner, Project)
    assert isinstance(inner.input, Filter)
    nested = inner.input.predicate.args[1]  # type: ignore[union-attr]
    assert isinstance(nested, Exists)
    assert isinstance(nested.rel, Project)
    assert [(e.level, e.index) for e in nested.rel.exprs if isinstance(e, OuterColumn)] == [(2, 1), (1, 1)]


def test_derived_tables_are_no_level() -> None:
    rel = project("select (select q.n from (select t.a as n) q) from t").exprs[0]
    assert isinstance(rel, ScalarSubquery)
    assert isinstance(rel.rel, Project)
    assert rel.rel.input == Project(Values(((),), ()), (OuterColumn(1, 0, INT4, False),))


def test_in_and_not_in() -> None:
    rel = project("select 1 from t where a not in (select a from u)").input
    assert isinstance(rel, Filter)
    assert isinstance(rel.predicate, Call)
    assert rel.predicate.function == "not"
    inner = rel.predicate.args[0]
    assert isinstance(inner, Quantified)
    assert inner.comparison == Call("=(int4,int4)", (OuterColumn(1, 0, INT4, False), Column(0, INT4)), BOOL, True)


def test_any_of_an_array_parameter_is_a_quantified_unnest() -> None:
    statement = bind_statement("select * from t where a = any($1)", CATALOG)
    array = SqlType(Kind.ARRAY, element=INT4)
    assert statement.parameters == (array,)
    assert isinstance(statement.statement, queries.Query)
    rel = statement.statement.rel
    assert isinstance(rel, Project)
    assert isinstance(rel.input, Filter)
    predicate = rel.input.predicate
    assert isinstance(predicate, Quantified)
    unknown = Coalesce((Parameter(1, array), Literal((None,), array)), array)
    expected = TableFunction(Values(((),), ()), "unnest", (unknown,), (ColumnType(INT4, True),))
    assert predicate.rel == expected


def test_outer_joins_make_nullable() -> None:
    rel = project("select t.a, t2.a from t left join t t2 on t.b = t2.b")
    assert [e.nullable for e in rel.exprs] == [False, True]
    rel = project("select a, t.b from t full join u using (a)")
    assert [e.nullable for e in rel.exprs] == [True, True]


def test_lateral_only_where_it_is_used() -> None:
    used = project("select * from t, lateral (select d from u where u.a = t.a) q").input
    assert isinstance(used, Join)
    assert used.lateral
    unused = project("select (select 1 from u, lateral (select t.b) q) from t").exprs[0]
    assert isinstance(unused, ScalarSubquery)
    join = unused.rel.input  # type: ignore[union-attr]
    assert isinstance(join, Join)
    assert not join.lateral
    assert join.right == Project(Values(((),), ()), (OuterColumn(1, 1, TEXT, True),))


def test_a_function_of_the_left_side_stands_over_it() -> None:
    rel = project("select * from u, unnest(u.x) with ordinality").input
    assert isinstance(rel, TableFunction)
    assert rel.input == get(U)
    assert rel.ordinality
    left = project("select * from u left join unnest(u.x) e on true").input
    assert isinstance(left, Join)
    assert left.lateral
    assert left.kind is JoinKind.LEFT


def test_set_returning_functions_in_the_select_list() -> None:
    rel = project("select a, unnest(x) + 1 from u")
    array = SqlType(Kind.ARRAY, element=INT4)
    assert rel.input == TableFunction(get(U), "unnest", (Column(2, array, True),), (ColumnType(INT4, True),))
    assert rel.exprs[1] == Call("+(int4,int4)", (Column(3, INT4, True), Literal(1, INT4)), INT4, True)


def test_set_operations_cast_to_the_common_type() -> None:
    rel = checked("select a from t union all select 1.5 union all select '7'").rel
    assert isinstance(rel, SetOperation)
    assert schema(rel) == schema(rel.right) == (ColumnType(NUMERIC, False),)
    assert isinstance(rel.left, SetOperation)
    assert schema(rel.left.left)[0].type == schema(rel.left.right)[0].type == NUMERIC


def test_intersect_binds_tighter() -> None:
    rel = checked("select a from t union select a from u intersect select 1").rel
    assert isinstance(rel, SetOperation)
    assert isinstance(rel.right, SetOperation)


def test_a_subquery_needs_no_alias() -> None:
    """As from PostgreSQL 16 on: only its columns can be named."""
    rel = project("select a, b from (select 1 as a), (values (2)) v(b)")
    assert len(rel.exprs) == 2


def test_distinct_on() -> None:
    rel = checked("select distinct on (b) a from t order by b, a desc").rel
    assert isinstance(rel, TopK)
    assert rel.keys == (Column(1, TEXT, True),)
    assert rel.limit == Literal(1, INT8)
    assert isinstance(checked("select distinct b from t").rel, Distinct)


def test_distinct_on_within_a_set_operation() -> None:
    rel = checked("select distinct on (b) a from t union select a from u order by 1").rel
    assert isinstance(rel, SetOperation)
    assert [len(schema(side)) for side in (rel.left, rel.right)] == [1, 1]


def test_recursion() -> None:
    rel = project("with recursive r(n) as (select 1 union all select n + 1 from r where n < 9) select * from r").input
    assert isinstance(rel, Recursive)
    assert rel.schema == (ColumnType(INT4, False),)
    assert isinstance(rel.step, Project)
    assert isinstance(rel.step.input, Filter)
    assert rel.step.input.input == Reference(rel.binding, rel.schema)


def test_a_step_that_may_be_null_makes_the_recursion_nullable() -> None:
    sql = "with recursive r(n) as (select 1 union select u.a from u, r where u.a = r.n) select * from r"
    rel = project(sql).input
    assert isinstance(rel, Recursive)
    assert rel.schema == schema(rel.base) == schema(rel.step) == (ColumnType(INT4, True),)


def test_a_cte_is_one_object_at_each_use() -> None:
    rel = project("with q as (select distinct b from t) select * from q x, q y").input
    assert isinstance(rel, Join)
    assert rel.left is rel.right


def test_a_correlated_cte_used_further_in() -> None:
    rel = project("select (with q as (select t.a as n) select (select n from q)) from t")
    assert not rel_references(rel)
    outer = rel.exprs[0]
    assert isinstance(outer, ScalarSubquery)
    inner = outer.rel.exprs[0]  # type: ignore[union-attr]
    assert isinstance(inner, ScalarSubquery)
    assert rel_references(inner.rel) == {(1, 0)}


def test_mutual_recursion() -> None:
    sql = (
        "with mutually recursive (return at recursion limit 5) e(n int) as (select 0 union select n + 1 from o), "
        "o(n bigint) as (select n + 1 from e) select * from e, o"
    )
    rel = checked(sql).rel
    assert isinstance(rel, LetRec)
    assert (rel.limit, rel.return_at_limit) == (5, True)
    assert [s[0].type for s in rel.schemas] == [INT4, INT8]
    assert [schema(value) for _, value in rel.bindings] == list(rel.schemas)


def test_views_take_their_definition_s_place() -> None:
    catalog = FakeCatalog("create table t (a int not null); create view v (x) as select a + 1 from t")
    rel = query("select x from v where x = 1", catalog).rel
    assert set(gets(rel)) == {16384}


def test_insert_fills_defaults_and_casts() -> None:
    catalog = FakeCatalog("create table d (a bigint, b text default 'q', c varchar(3))")
    insert = bind_statement("insert into d (c, a) values ('abcd', 1), (default, $1)", catalog)
    assert insert.parameters == (INT8,)
    assert isinstance(insert.statement, bound.Insert)
    source = insert.statement.source
    assert isinstance(source, Values)
    varchar = SqlType(Kind.VARCHAR, 3)
    assert source.rows[0][:2] == (Literal(1, INT8), Literal("q", TEXT))
    assert source.rows[0][2] == Call("assignment_cast", (Literal("abcd", SqlType(Kind.VARCHAR)),), varchar, False)
    assert source.rows[1] == (Parameter(1, INT8), Literal("q", TEXT), Literal(None, varchar))


def test_update_yields_old_new_and_from() -> None:
    update = bind_statement("update t set b = u.d::text from u where u.a = t.a returning t.b, d", CATALOG).statement
    assert isinstance(update, bound.Update)
    assert len(schema(update.source)) == 3 + 3 + 3
    assert update.returning is not None
    assert [e.index for e in update.returning if isinstance(e, Column)] == [1, 4]


def test_delete_yields_old_and_using() -> None:
    delete = bind_statement("delete from t using u where u.a = t.a returning *", CATALOG).statement
    assert isinstance(delete, bound.Delete)
    assert len(schema(delete.source)) == 6
    assert len(delete.columns) == 6


def test_create_table() -> None:
    sql = "create table x (a int, b text default 'x' not null, primary key (a)) with (retain history for '1 hour')"
    create = bind_statement(sql, CATALOG).statement
    assert isinstance(create, definitions.CreateTable)
    assert create.primary_key == (0,)
    assert create.retain == 3_600_000_000
    assert [(c.name, c.nullable, c.default) for c in create.columns] == [("a", False, None), ("b", False, "'x'")]


@pytest.mark.parametrize("of", ["table x (a int)", "table x", "materialized view x"])
@pytest.mark.parametrize("period", ["0 s", "-1 s"])
def test_some_history_is_kept(of: str, period: str) -> None:
    query = "" if "(" in of else "as select 1"
    with pytest.raises(SqlError, match="RETAIN HISTORY") as found:
        bind_statement(f"create {of} with (retain history for '{period}') {query}", CATALOG)
    assert found.value.sqlstate == "22023"


def test_a_view_s_limit_is_part_of_its_plan() -> None:
    view = bind_statement("create materialized view v as select b from t order by a limit 2", CATALOG).statement
    assert isinstance(view, definitions.CreateView)
    assert view.query.finishing == Finishing()
    assert isinstance(view.query.rel, Project)
    assert isinstance(view.query.rel.input, TopK)


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("select sum(a) over (order by a rows (select 1) preceding) from t", "a subquery in the offset of ROWS"),
        (
            "insert into t values (1) returning random() + (select max(a) from t)",
            "a volatile function beside a subquery in RETURNING",
        ),
        ('select b collate "de_DE" from t', 'collation "de_DE"'),
    ],
)
def test_what_is_not_there_is_named(sql: str, what: str) -> None:
    with pytest.raises(SqlError) as caught:
        bind_statement(sql, CATALOG)
    assert caught.value.sqlstate == "0A000"
    assert what in caught.value.message


def test_subscribe_copy_and_cursors() -> None:
    copy = bind_statement("copy (subscribe t with (progress, snapshot = false) as of 5) to stdout", CATALOG).statement
    assert isinstance(copy, bound.CopyTo)
    assert isinstance(copy.source, bound.Subscribe)
    assert (copy.source.progress, copy.source.snapshot) == (True, False)
    assert set(gets(copy.source.query.rel)) == {T}
    declared = bind_statement("declare c cursor for select a from t order by b", CATALOG).statement
    assert isinstance(declared, bound.Declare)
    load = bind_statement("copy t from '/x' with (format parquet, engine spark)", CATALOG).statement
    assert isinstance(load, bound.CopyFrom)
    assert (load.path, load.options.engine, load.options.format) == ("/x", "spark", bound.CopyFormat.PARQUET)


def test_psql_s_own_queries_bind() -> None:
    """The queries of \\d, \\dt, \\dv, \\dm, \\d name, \\l, \\dn, \\df, \\du … of PostgreSQL 15's psql."""
    from sql.system.relations import system_relations

    catalog = FakeCatalog()
    for relation in system_relations():
        catalog.add(relation)
    for text in (ANSWERS / "psql_queries.sql").read_text().split("\n;;\n"):
        bind_statement(text, catalog)


def test_same_text_binds_to_the_same_plan() -> None:
    for case in DESCRIBED["queries"]:
        first, second = (bind_statement(case["sql"], CATALOG) for _ in range(2))
        assert first == second


def rels(rel: Rel) -> int:
    from planner.logical.traversal import children

    return 1 + sum(rels(c) for c in children(rel))


def test_long_lists_bind_in_linear_time() -> None:
    """Long lists of rows, items or set operations cause no recursion."""
    values = ", ".join(f"({i}, 'x{i}', {i}.5)" for i in range(3000))
    insert = bind_statement(f"insert into t values {values}", CATALOG).statement
    assert isinstance(insert, bound.Insert)
    assert isinstance(insert.source, Project), "the numbers are cast to numeric(10,2)"
    assert isinstance(insert.source.input, Values)
    values += ", (1 + 1, 'x', 0.5)"
    insert = bind_statement(f"insert into t values {values}", CATALOG).statement
    assert isinstance(insert, bound.Insert)
    assert isinstance(insert.source, Values)
    items = ", ".join(map(str, range(2000)))
    assert rels(query(f"select a from t where a in ({items})", CATALOG).rel) == 3
