"""One-shot queries: lookups instead of scans, errors as data, parameters, ORDER BY and slices."""

from __future__ import annotations

from collections import Counter

import pytest

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, INT8, NUMERIC, TEXT, ColumnType, Kind, SqlType
from planner.explain import explain
from planner.expr.context import Bounds, Context
from planner.expr.scalar import And, Call, Case, Literal, Or, Parameter, Quantified, ScalarSubquery, SortKey
from planner.logical.nodes import (
    Distinct,
    Filter,
    Finishing,
    Get,
    Join,
    JoinKind,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    TableFunction,
    Values,
)  # fmt: skip
from planner.lower.plan import lower
from planner.peek.direct import run_direct
from planner.peek.keyed import run_keyed
from planner.peek.order_limit import finish
from planner.peek.run import run
from planner.physical.nodes import Plan
from planner.transform.pipeline import optimize
from tests.support.planner_bench import Row, World, decode
from tests.support.planner_queries import (
    COUNT,
    ONE,
    PLAIN,
    SECOND,
    TABLES,
    E,
    T,
    U,
    add,
    c,
    call,
    eq,
    lit,
    lt,
    o,
)  # fmt: skip

INT4_ARRAY = SqlType(Kind.ARRAY, element=INT4)


@pytest.fixture
def world() -> World:
    world = World(TABLES)
    world.commit([(2, (i, i % 10, "x"), 1) for i in range(2000)] + [(1, (i, i * 2), 1) for i in range(5)])
    return world


def any_of(parameter: int) -> Quantified:
    items = TableFunction(Values(((),), ()), "unnest", (Parameter(parameter, INT4_ARRAY),), ONE)
    return Quantified(items, eq(o(1, 0), c(0)), False)


LOOKUPS: dict[str, tuple[Rel, Row, int]] = {
    "key": (Filter(U, eq(c(0), Parameter(1, INT4))), (7,), 1),
    "null key": (Filter(U, eq(c(0), Parameter(1, INT4))), (None,), 0),
    "list": (Filter(U, Or((eq(c(0), lit(3)), eq(c(0), lit(4)), eq(lit(4), c(0))))), (), 2),
    "any": (Filter(U, any_of(1)), ((3, 4, 4, -1, None),), 2),
    "from small": (Filter(Join(JoinKind.INNER, U, T, eq(c(0), c(3))), lt(c(1), lit(3))), (), 3),
    "using values": (Join(JoinKind.INNER, Values(((lit(5),), (lit(5),)), ONE), U, eq(c(0), c(1))), (), 2),
    "in small": (Filter(U, Quantified(Project(T, (c(0),)), eq(o(1, 0), c(0)), False)), (), 5),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_reads_by_key_are_lookups(world: World, name: str) -> None:
    """The plan has no dataflow and reads no whole relation."""
    rel, parameters, count = LOOKUPS[name]
    plan = lower(optimize(rel), world.indexes(True))
    found = run_direct(plan, world, Context(world.dictionary, parameters))
    assert found is not None
    assert len(found[0]) == count
    if name != "any":  # the model has no unnest
        assert world.query(rel, parameters) == world.model(rel, parameters)
    assert "(shared)" in explain(rel, "physical", world.indexes(True))


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.SEMI])
def test_ranges_of_a_key_are_looked_up(world: World, kind: JoinKind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A join on inequalities with a large relation reads its rows in the range."""
    between = And((lt(c(0), c(2)), lt(c(2), add(c(1), lit(2)))))
    rel = Join(kind, T, U, between)
    expected = world.model(rel)
    assert sum(expected.values()) == (15 if kind is JoinKind.INNER else 5)
    whole = world.version
    monkeypatch.setattr(world, "version", lambda relation: None if relation == 2 else whole(relation))
    assert world.query(rel) == expected


KEYED: dict[str, tuple[Rel, list[Row]]] = {
    "one": (Filter(U, eq(c(0), Parameter(1, INT4))), [(7,), (-7,), (None,)]),
    "literal": (Filter(U, eq(lit(5), c(0))), [()]),
    "any": (Filter(U, any_of(1)), [((),), ((3,),), ((3, 4, 4, -1, None),), (None,), ((None,),), (tuple(range(90)),)]),
    "columns": (Project(Filter(U, eq(c(0), Parameter(1, INT4))), (c(2, TEXT), c(0))), [(7,), (3,)]),
    "computed": (Project(Filter(U, any_of(1)), (c(2, TEXT), Call("/(int4,int4)", (lit(10), c(1)), INT4))),
                 [((3,),), ((5, 7),), ((7, 700),), ((3, 4, 5, 700),), ((),)]),
}  # fmt: skip


def outcome(plan: Plan, world: World, context: Context) -> object:
    """The rows, or the error."""
    try:
        return Counter(decode(run(plan, world, context), world.dictionary))
    except SqlError as error:
        return error.sqlstate, error.message


@pytest.mark.parametrize("name", KEYED)
def test_keys_that_the_client_gives_are_looked_up_at_once(world: World, name: str) -> None:
    """By a separate path, which finds what the plan without a lookup finds."""
    rel, given = KEYED[name]
    world.commit(
        [(2, (5, 5, "x"), -1), (2, (5, 1, None), 1), (2, (3, 3, "x"), -1), (2, (3, 8, None), 1), (2, (5000, 3, ""), 1),
         (2, (700, 0, "zero"), 1)]
    )  # fmt: skip
    plan, scan = lower(optimize(rel), world.indexes(True)), lower(optimize(rel), world.indexes(False))
    for parameters in given:
        context = Context(world.dictionary, parameters)
        assert run_keyed(plan, world, context, Bounds()) is not None
        assert outcome(plan, world, context) == outcome(scan, world, context)


def test_plans_without_indexes_agree(world: World) -> None:
    for rel, parameters, _ in LOOKUPS.values():
        context = Context(world.dictionary, parameters)
        plan = lower(optimize(rel), world.indexes(False))
        assert Counter(decode(run(plan, world, context), world.dictionary)) == world.query(rel, parameters)


def divided(by: int) -> Call:
    return Call("/(int4,int4)", (lit(10), c(by)), INT4)


def test_errors_are_data() -> None:
    """A view with a failing row gives its error, and heals in the commit that removes the row."""
    world = World(TABLES)
    views = {
        100: Project(T, (divided(1),)),
        101: Reduce(T, (c(0),), (call("sum(int4)", divided(1)),)),
        102: Recursive(
            9, Project(T, (c(0),)),
            Project(Join(JoinKind.INNER, Reference(9, ONE), E, eq(c(0), c(1))), (divided(2),)), False, ONE,
        ),
        103: Project(T, (ScalarSubquery(Project(Filter(U, lt(c(0), o(1, 0))), (c(1),)), INT4),)),
    }  # fmt: skip
    world.commit([(1, (1, 0), 1), (1, (2, 5), 1), (2, (0, 1, None), 1), (2, (1, 1, None), 1), (3, (1, 0), 1)])
    for view, rel in views.items():
        world.install(view, rel)
        errors = world.errors(view)
        assert errors is not None
        assert len(errors[0]) == 1
        with pytest.raises(SqlError) as caught:
            world.query(rel)
        assert caught.value.sqlstate == ("21000" if view == 103 else "22012")
    world.commit([(1, (1, 0), -1), (2, (0, 1, None), -1)])
    world.check()
    for view in views:
        errors = world.errors(view)
        assert errors is not None
        assert not len(errors[0])


def test_a_branch_not_taken_does_not_fail() -> None:
    """The subquery's error arises only for rows that reach it."""
    world = World(TABLES)
    world.commit([(1, (1, 0), 1), (1, (2, 5), 1)])
    inner = ScalarSubquery(Project(Values(((),), ()), (Call("/(int4,int4)", (lit(10), o(1, 1)), INT4),)), INT4)
    guarded = Case(((Call("<>(int4,int4)", (c(1), lit(0)), BOOL), inner),), lit(-1), INT4)
    world.install(100, Project(T, (c(0), guarded)))
    assert world.view(100) == {(1, -1): 1, (2, 2): 1}
    world.check()


def test_order_and_slices() -> None:
    """ORDER BY on integers and text, in both directions, NULLs at either end; LIMIT, OFFSET and hidden columns."""
    world = World(TABLES)
    texts = ["b", None, "a", "ab", "zzzzzzzzzzz", "zzzzzzzzzza", "é", ""]
    world.commit([(2, (i, i % 3 or None, s), 1) for i, s in enumerate(texts)])
    rowset = run(lower(optimize(U), world.indexes(True)), world, world.context)
    rows = decode(rowset, world.dictionary)
    for descending in (False, True):
        for nulls_first in (False, True):
            order = (SortKey(c(2, TEXT), descending, nulls_first), SortKey(c(0)))
            done = decode(finish(rowset, Finishing(order), world.context), world.dictionary)
            some = sorted((r for r in rows if r[2] is not None), key=lambda r: r[2].encode(), reverse=descending)
            none = [r for r in rows if r[2] is None]
            assert done == (none + some if nulls_first else some + none)
    order = (SortKey(c(1), True), SortKey(c(0), True))
    sliced = finish(rowset, Finishing(order, lit(3, INT8), lit(1, INT8), 1), world.context)
    assert decode(sliced, world.dictionary) == [(2,), (7,), (4,)]
    with pytest.raises(SqlError) as caught:
        finish(rowset, Finishing((), Literal(-1, INT8)), world.context)
    assert caught.value.sqlstate == "2201W"


def test_equality_is_not_identity() -> None:
    """1.0 and 1.00 are one group, one distinct value, and join; the text of one of them is shown."""
    from decimal import Decimal

    row = (ColumnType(INT4, False), ColumnType(NUMERIC))
    table = Get(9, row)
    world = World({9: (row, ())})
    one, other = (1, Decimal("1.0")), (2, Decimal("1.00"))
    world.commit([(9, one, 1), (9, other, 1), (9, (3, Decimal("2.5")), 1)])
    number = c(1, NUMERIC)
    views = {
        100: Reduce(table, (number,), (COUNT,)),
        101: Distinct(Project(table, (number,))),
        102: Join(JoinKind.INNER, table, table, Call("=(numeric,numeric)", (number, c(3, NUMERIC)), BOOL)),
    }
    for view, rel in views.items():
        world.install(view, rel)
        assert world.view(view) == world.query(rel)
    assert sorted(world.view(100).elements()) == [(Decimal(1), 2), (Decimal("2.5"), 1)]
    assert len(world.view(101)) == 2
    assert sum(world.view(102).values()) == 5
    world.commit([(9, one, -1)])
    assert [str(r[0]) for r in sorted(world.view(101))] == ["1.00", "2.5"]
    assert sum(world.view(102).values()) == 2


def test_explain_stages(world: World) -> None:
    rel = Filter(T, Quantified(SECOND, eq(o(1, 0), c(0)), False))
    assert "ANY (subquery)" in explain(rel, "logical", world.indexes(False))
    assert "Join semi" in explain(rel, "optimized", world.indexes(False))
    physical = explain(PLAIN["inner equal"], "physical", world.indexes(False))
    assert "Arrange key [0] val [1, 2, 3] (shared)" in physical
