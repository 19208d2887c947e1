"""Plans as the binder would create them, by name: the planner's tests install and run them."""

from __future__ import annotations

from ivm.words import BOOL, INT4, INT8, NUMERIC, TEXT, ColumnType, SqlType
from planner.expr.scalar import (
    Aggregate,
    And,
    Call,
    Case,
    Coalesce,
    Column,
    Exists,
    Literal,
    Or,
    OuterColumn,
    Quantified,
    Scalar,
    ScalarSubquery,
    SortKey,
)  # fmt: skip
from planner.logical.nodes import (
    Distinct,
    Filter,
    Get,
    Join,
    JoinKind,
    LetRec,
    Project,
    Recursive,
    Reduce,
    Reference,
    Rel,
    SetKind,
    SetOperation,
    TableFunction,
    TopK,
    Values,
)  # fmt: skip

T_ROW = (ColumnType(INT4), ColumnType(INT4))
U_ROW = (ColumnType(INT4, False), ColumnType(INT4), ColumnType(TEXT))
E_ROW = (ColumnType(INT4, False), ColumnType(INT4, False))
TABLES = {1: (T_ROW, ()), 2: (U_ROW, (0,)), 3: (E_ROW, ())}
ONE = (ColumnType(INT4),)
T, U, E = Get(1, T_ROW), Get(2, U_ROW), Get(3, E_ROW)
TRUE = Literal(True, BOOL)


def c(index: int, type_: SqlType = INT4) -> Column:
    return Column(index, type_)


def o(level: int, index: int, type_: SqlType = INT4) -> OuterColumn:
    return OuterColumn(level, index, type_)


def lit(value: object, type_: SqlType = INT4) -> Literal:
    return Literal(value, type_)


def eq(left: Scalar, right: Scalar) -> Call:
    return Call("=(int4,int4)", (left, right), BOOL)


def lt(left: Scalar, right: Scalar) -> Call:
    return Call("<(int4,int4)", (left, right), BOOL)


def add(left: Scalar, right: Scalar) -> Call:
    return Call("+(int4,int4)", (left, right), INT4)


def neg(expr: Scalar) -> Call:
    return Call("not", (expr,), BOOL)


def call(function: str, *args: Scalar, type_: SqlType = INT8, **options: object) -> Aggregate:
    return Aggregate(function, args, type_, not function.startswith("count"), **options)  # type: ignore[arg-type]


COUNT = call("count(*)")
MATCH = Filter(U, eq(c(0), o(1, 0)))
BELOW = Filter(U, lt(c(0), o(1, 0)))
SECOND = Project(U, (c(1),))
LOOP = Reference(7, ONE)
STEP = Project(Join(JoinKind.INNER, LOOP, E, eq(c(0), c(1))), (c(2),))


def total(rel: Rel, aggregate: Aggregate = COUNT) -> ScalarSubquery:
    return ScalarSubquery(Reduce(rel, (), (aggregate,)), aggregate.type)


def recursion(step: Rel, every: bool) -> Recursive:
    return Recursive(7, Project(T, (c(0),)), step, every, ONE)


PLAIN: dict[str, Rel] = {
    "table": T,
    "filter": Filter(T, eq(c(0), lit(1))),
    "project": Project(T, (c(1), add(c(0), lit(1)))),
    "filter project": Project(Filter(Project(T, (add(c(0), c(1)), c(0))), lt(c(0), lit(6))), (c(1),)),
    "three way join": Project(
        Filter(Join(JoinKind.INNER, Join(JoinKind.INNER, T, U, TRUE), E, TRUE), And((eq(c(0), c(5)), eq(c(2), c(6))))),
        (c(1), c(4, TEXT), c(6)),
    ),
    "left then filtered": Filter(Join(JoinKind.LEFT, T, U, eq(c(0), c(2))), lt(c(3), lit(4))),
    "full then filtered": Filter(Join(JoinKind.FULL, T, U, eq(c(0), c(2))), lt(c(1), lit(4))),
    "left one sided": Join(JoinKind.LEFT, T, U, And((eq(c(0), c(2)), lt(c(1), lit(3)), lt(c(3), lit(4))))),
    "self join": Join(JoinKind.INNER, T, T, And((eq(c(0), c(2)), lt(c(1), c(3))))),
    "constant": Join(JoinKind.INNER, T, U, And((eq(c(0), c(2)), eq(c(0), lit(2))))),
    "distinct": Distinct(T),
    "union": SetOperation(SetKind.UNION, False, T, E),
    "union all": SetOperation(SetKind.UNION, True, T, Project(U, (c(0), c(1)))),
    "intersect": SetOperation(SetKind.INTERSECT, False, T, E),
    "intersect all": SetOperation(SetKind.INTERSECT, True, T, E),
    "except": SetOperation(SetKind.EXCEPT, False, T, E),
    "except all": SetOperation(SetKind.EXCEPT, True, T, E),
    "set filter": Filter(SetOperation(SetKind.EXCEPT, True, T, E), lt(c(0), lit(4))),
    "top": TopK(T, (), (SortKey(c(1), True, True), SortKey(c(0))), lit(3, INT8), lit(1, INT8)),
    "top text": TopK(U, (), (SortKey(c(2, TEXT)),), lit(2, INT8), None),
    "distinct on": TopK(T, (c(0),), (SortKey(c(1), True, True),), lit(1, INT8), None),
    "series": TableFunction(T, "generate_series(int4,int4)", (c(0), lit(3)), ONE),
    "group": Reduce(
        T, (c(0),),
        (
            COUNT, call("count(any)", c(1)), call("min(int4)", c(1), type_=INT4), call("max(int4)", c(1), type_=INT4),
            call("count(any)", c(1), distinct=True), call("sum(int4)", c(1), filter=lt(c(1), lit(3))),
        ),
    ),
    "group text": Reduce(U, (c(1),), (call("max(text)", c(2, TEXT), type_=TEXT), COUNT)),
    "global": Reduce(T, (), (COUNT, call("min(int4)", c(1), type_=INT4), call("sum(int4)", c(1), distinct=True))),
    "group filter": Filter(
        Reduce(T, (c(0), c(1)), (COUNT,)),
        And((lt(c(0), lit(4)), Call("<(int8,int8)", (lit(1, INT8), c(2, INT8)), BOOL))),
    ),
    "coalesce": Project(T, (Coalesce((c(0), c(1), lit(0)), INT4), Case(((lt(c(0), c(1)), c(0)),), c(1), INT4))),
}  # fmt: skip
for _kind in JoinKind:
    PLAIN[f"{_kind.value} equal"] = Join(_kind, T, U, eq(c(0), c(2)))
    PLAIN[f"{_kind.value} less"] = Join(_kind, T, U, lt(c(1), c(3)))
    PLAIN[f"{_kind.value} mixed"] = Join(_kind, T, U, And((eq(c(0), c(2)), lt(c(1), c(3)))))
    PLAIN[f"{_kind.value} always"] = Join(_kind, T, U, TRUE)

NESTED: dict[str, Rel] = {
    "exists": Filter(T, Exists(MATCH)),
    "not exists": Filter(T, neg(Exists(MATCH))),
    "in": Filter(T, Quantified(SECOND, eq(o(1, 0), c(0)), False)),
    "not in": Filter(T, neg(Quantified(SECOND, eq(o(1, 0), c(0)), False))),
    "in value": Project(T, (c(0), Quantified(SECOND, eq(o(1, 0), c(0)), False))),
    "all value": Project(T, (c(0), Quantified(SECOND, lt(o(1, 0), c(0)), True))),
    "all": Filter(T, Quantified(SECOND, lt(o(1, 0), c(0)), True)),
    "not all": Filter(T, neg(Quantified(SECOND, lt(o(1, 0), c(0)), True))),
    "pair not in": Filter(
        T, neg(Quantified(Project(U, (c(0), c(1))), And((eq(o(1, 0), c(0)), eq(o(1, 1), c(1)))), False))
    ),
    "any correlated": Project(
        T, (c(0), Quantified(Project(Filter(U, lt(c(0), o(1, 1))), (c(1),)), lt(o(1, 0), c(0)), False))
    ),
    "scalar": Project(T, (c(0), ScalarSubquery(Project(MATCH, (c(1),)), INT4))),
    "scalar count": Project(T, (c(0), total(BELOW), total(BELOW, call("sum(int4)", c(1))))),
    "scalar top": Project(
        T,
        (c(0), ScalarSubquery(
            Project(TopK(BELOW, (), (SortKey(c(1), True, True),), lit(1, INT8), None), (c(1),)), INT4
        )),
    ),
    "exists value": Project(T, (c(0), Exists(U), Exists(MATCH))),
    "two levels": Filter(T, Exists(Filter(U, Exists(Filter(E, And((eq(c(0), o(1, 0)), eq(c(1), o(2, 0))))))))),
    "two levels count": Project(
        T,
        (total(Filter(U, eq(o(1, 0), total(Filter(E, And((lt(c(0), o(1, 0)), lt(c(1), o(2, 0))))),
                                           call("max(int4)", c(0), type_=INT4))))), c(0)),
    ),
    "lateral": Join(JoinKind.INNER, T, Reduce(BELOW, (), (COUNT,)), TRUE, True),
    "lateral on subquery": Join(
        JoinKind.INNER, T, BELOW, Exists(Filter(E, And((eq(c(0), o(1, 0)), eq(c(1), o(1, 2)))))), True
    ),
    "lateral left": Join(JoinKind.LEFT, T, BELOW, lt(c(3), c(1)), True),
    "lateral top": Join(
        JoinKind.LEFT, T, TopK(BELOW, (), (SortKey(c(1)),), lit(2, INT8), lit(1, INT8)), TRUE, True
    ),
    "lateral top of outer": Join(
        JoinKind.INNER, T,
        TopK(BELOW, (), (SortKey(c(0)),), Call("cast", (o(1, 1),), INT8), lit(1, INT8)), TRUE, True,
    ),
    "lateral series": Join(
        JoinKind.INNER, T, TableFunction(Values(((),), ()), "generate_series(int4,int4)", (lit(2), o(1, 0)), ONE), TRUE,
        True,
    ),
    "case": Project(T, (Case(((lt(c(0), lit(3)), ScalarSubquery(Project(MATCH, (c(1),)), INT4)),), lit(0), INT4),)),
    "left on subquery": Join(
        JoinKind.LEFT, T, U, And((eq(c(0), c(2)), Exists(Filter(E, And((eq(c(0), o(1, 0)), eq(c(1), o(1, 3))))))))
    ),
    "full on subquery": Join(
        JoinKind.FULL, T, U, And((eq(c(0), c(2)), Exists(Filter(E, And((eq(c(0), o(1, 0)), lt(c(1), o(1, 3))))))))
    ),
    "set operation": Project(
        T, (c(0), total(SetOperation(SetKind.EXCEPT, False, Project(BELOW, (c(0),)), Project(E, (c(0),)))))
    ),
    "correlated values": Project(
        T, (total(SetOperation(SetKind.UNION, False, Values(((o(1, 0),), (o(1, 1),)), ONE), SECOND)),)
    ),
    "correlated outer join": Project(
        T,
        (c(0), total(Join(
            JoinKind.FULL, Filter(U, lt(c(0), o(1, 0))), Filter(E, lt(c(1), o(1, 0))), eq(c(0), c(3))
        ))),
    ),
    "having": Filter(Reduce(T, (c(0),), (COUNT,)), Exists(MATCH)),
    "aggregate argument": Reduce(T, (c(0),), (call("sum(int8)", total(Filter(U, lt(c(0), o(1, 1)))), type_=NUMERIC),)),
    "correlated recursion": Project(
        T,
        (c(0), total(Recursive(
            9, Values(((o(1, 0),),), ONE),
            Project(Join(JoinKind.INNER, Reference(9, ONE), E, eq(c(0), c(1))), (c(2),)), False, ONE,
        ))),
    ),
    "or exists": Filter(T, Or((eq(c(1), lit(1)), Exists(MATCH)))),
}  # fmt: skip

LOOPS: dict[str, Rel] = {
    "reach": recursion(STEP, False),
    "aggregate in step": recursion(
        Filter(Project(Reduce(LOOP, (), (COUNT, call("max(int4)", c(0), type_=INT4))), (add(c(1), lit(1)),)),
               lt(c(0), lit(6))), False,
    ),
    "group in step": recursion(
        Filter(Project(Reduce(LOOP, (c(0),), (COUNT,)), (add(c(0), lit(2)),)), lt(c(0), lit(7))), True
    ),
    "counter": recursion(Filter(Project(LOOP, (add(c(0), lit(1)),)), lt(c(0), lit(5))), True),
    "distinct in step": recursion(
        Filter(Project(Distinct(LOOP), (add(c(0), lit(1)),)), lt(c(0), lit(5))), True
    ),
    "not in step": recursion(
        Project(
            Filter(Join(JoinKind.INNER, LOOP, E, eq(c(0), c(1))), neg(Exists(Filter(U, eq(c(0), o(1, 2)))))), (c(2),)
        ),
        False,
    ),
    "mutual": LetRec(
        (
            (20, SetOperation(SetKind.UNION, False, Project(T, (c(0),)),
                              Project(Join(JoinKind.INNER, Reference(21, ONE), E, eq(c(0), c(1))), (c(2),)))),
            (21, Distinct(SetOperation(SetKind.UNION, True, Reference(20, ONE), SECOND))),
        ),
        (ONE, ONE),
        Join(JoinKind.INNER, Reference(20, ONE), Reference(21, ONE), lt(c(0), c(1))),
    ),
}  # fmt: skip
