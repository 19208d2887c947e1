"""Users' functions: CREATE FUNCTION checked, and calls replaced by the function's body.

A body is bound in a scope of its own whose one enclosing level is the arguments (by name, and as ``$1``). An expression
takes the arguments in; any other body becomes a subquery, laterally joined to one row of them. So a view over a
function is a view over what the function reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ivm.errors import SqlError, unsupported
from ivm.words import BOOL, UNKNOWN, Kind, SqlType
from planner.expr.scalar import And, Call, Case, Column, Literal, OuterColumn, Scalar, ScalarSubquery
from planner.logical.levels import lift
from planner.logical.nodes import Filter, Join, JoinKind, Project, Rel, TopK, Values, schema
from planner.logical.traversal import rewrite, walk
from sql.bind.coerce import cast, castable, type_name
from sql.bind.environment import Environment, Parameters
from sql.bind.overloads import Choice, no_function, resolve_anew
from sql.bind.scope import Namespace, Range, Scope, Visible
from sql.bind.volatile import is_volatile
from sql.bind.walk import has_subquery
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.column_types import format_type
from sql.catalog.routine import Argument, Routine
from sql.catalog.search_path import Recorder, pinned
from sql.parse import parse, parse_expression
from sql.statements.routines import CreateFunction, DropFunction
from sql.syntax import nodes, nodes_routines

if TYPE_CHECKING:
    from sql.bind.expression import Binder

_UNIT: Final = Values(((),), ())
_TRUE: Final = Literal(True, BOOL)


@dataclass(frozen=True, slots=True)
class Entry:
    """A routine as overload resolution looks at it."""

    relation: Relation
    routine: Routine

    @property
    def key(self) -> str:
        return f"routine {self.relation.id}"

    @property
    def name(self) -> str:
        return self.routine.name

    @property
    def args(self) -> tuple[SqlType, ...]:
        return self.routine.types

    @property
    def optional(self) -> int:
        return self.routine.optional


def entries(env: Environment, name: tuple[str, ...]) -> tuple[Entry, ...]:
    """The users' functions that a name may mean."""
    found = env.catalog.routines(name[-2] if len(name) > 1 else None, name[-1])
    return tuple(Entry(r, r.routine) for r in found if r.routine is not None)


def signature(name: str, types: Sequence[SqlType]) -> str:
    """``f(integer,text)``: what tells a function from the others."""
    return f"{name}({','.join(format_type(t, False) for t in types)})"


# Calls.


@dataclass(frozen=True, slots=True)
class Applied:
    """A call: the routine, and its arguments with defaults filled in, as the declared types."""

    entry: Entry
    args: tuple[Scalar, ...]


def applied(b: Binder, node: nodes.Apply, found: tuple[Entry, ...], others: Sequence[Any] = ()) -> Applied | None:
    """The routine that a call means; None for one of ``others``. Raises 42883, 42725."""
    given = [b.bind(a) for a in node.args]
    if any(node.names):
        entry = _by_names(found, node, given)
        return _filled(b.env, entry, _in_place(entry, node, given), node.at)
    types = tuple(a.type for a in given)
    try:
        choice: Choice[Any] | None = resolve_anew((*others, *found), types)
    except SqlError:
        raise no_function(node.name[-1], types, node.at, ambiguous=True) from None
    if choice is None:
        raise no_function(node.name[-1], types, node.at)
    if not isinstance(choice.overload, Entry):
        return None
    return _filled(b.env, choice.overload, dict(enumerate(given)), node.at)


def _by_names(found: tuple[Entry, ...], node: nodes.Apply, given: Sequence[Scalar]) -> Entry:
    """The routine whose arguments have these names and types. Raises 42883, 42725."""
    types = [a.type for a in given]
    fitting: list[tuple[int, Entry]] = []
    for entry in found:
        if not _accepts(entry, node):
            continue
        wanted = [entry.args[i] for i in _in_place(entry, node, given)]
        if all(t.kind is Kind.UNKNOWN or castable(t, w, "implicit") for t, w in zip(types, wanted, strict=True)):
            fitting.append((sum(t == w for t, w in zip(types, wanted, strict=True)), entry))
    best = max((score for score, _ in fitting), default=0)
    chosen = [entry for score, entry in fitting if score == best]
    if len(chosen) == 1:
        return chosen[0]
    pairs = zip(node.names, types, strict=True)
    shown = ", ".join(f"{n} => {type_name(t)}" if n is not None else type_name(t) for n, t in pairs)
    if chosen:
        hint = "Could not choose a best candidate function. You might need to add explicit type casts."
        raise SqlError("42725", f"function {node.name[-1]}({shown}) is not unique", hint=hint, position=node.at + 1)
    hint = "No function matches the given name and argument types. You might need to add explicit type casts."
    raise SqlError("42883", f"function {node.name[-1]}({shown}) does not exist", hint=hint, position=node.at + 1)


def _accepts(entry: Entry, node: nodes.Apply) -> bool:
    names = [a.name for a in entry.routine.arguments]
    given = {n for n in node.names if n is not None}
    first = sum(n is None for n in node.names)
    rest = entry.routine.arguments[first:]
    return given <= set(names[first:]) and all(a.default is not None or a.name in given for a in rest)


def _in_place(entry: Entry, node: nodes.Apply, given: Sequence[Scalar]) -> dict[int, Scalar]:
    names = [a.name for a in entry.routine.arguments]
    return {i if n is None else names.index(n): a for i, (n, a) in enumerate(zip(node.names, given, strict=True))}


def _filled(env: Environment, entry: Entry, given: dict[int, Scalar], at: int) -> Applied:
    env.catalog.by_id(entry.relation.id)  # so that who records what a statement needs hears of it
    args = []
    for i, argument in enumerate(entry.routine.arguments):
        expr = given.get(i)
        if expr is None:
            assert argument.default is not None, "resolved so"
            from sql.bind.expression import Binder

            inner = _inside(env, entry)
            expr = Binder(inner, Scope(clause="DEFAULT expressions"), "DEFAULT expressions").bind(
                parse_expression(argument.default)
            )
        args.append(cast(env, expr, argument.type, "implicit" if i in given else "assignment", at))
    return Applied(entry, tuple(args))


def scalar(b: Binder, call: Applied, at: int) -> Scalar:
    """A call as an expression."""
    routine = call.entry.routine
    if routine.table and len(call.entry.relation.columns) > 1:
        raise unsupported("a row as the value of a function", "Call it in FROM.", at + 1)
    rel = body(b.env, call.entry)
    inlined = _inlined(rel, call)
    if inlined is not None:
        if not routine.strict or not call.args:
            return inlined
        known = tuple(Call("is not null", (a,), BOOL, False) for a in call.args)
        return Case(
            ((And(known) if len(known) > 1 else known[0], inlined),), Literal(None, routine.result), routine.result
        )
    limited = TopK(rel, (), (), Literal(1, SqlType(Kind.INT8)), None)
    return ScalarSubquery(lateral(limited, call.entry, tuple(lift(a) for a in call.args)), routine.result)


def _inlined(rel: Rel, call: Applied) -> Scalar | None:
    """The body with the arguments in it, where it is no more than an expression."""
    if not isinstance(rel, Project) or rel.input != _UNIT or has_subquery(rel.exprs[0]):
        return None
    uses = [part.index for part in walk(rel.exprs[0]) if isinstance(part, OuterColumn)]
    for i, arg in enumerate(call.args):
        if uses.count(i) > 1 and (is_volatile(arg) or has_subquery(arg)):
            return None
    args = call.args

    def take_in(part: Scalar) -> Scalar | None:
        return args[part.index] if isinstance(part, OuterColumn) else None

    return rewrite(rel.exprs[0], take_in)


def lateral(rel: Rel, entry: Entry, args: tuple[Scalar, ...]) -> Rel:
    """The body's rows for these arguments, which are expressions as they stand in a subquery's first level."""
    given: Rel = Project(_UNIT, args)
    if entry.routine.strict and args:
        known = tuple(Call("is not null", (Column(i, a.type),), BOOL, False) for i, a in enumerate(args))
        given = Filter(given, And(known) if len(known) > 1 else known[0])
    joined = Join(JoinKind.INNER, given, rel, _TRUE, True)
    columns = schema(joined)[len(args) :]
    return Project(joined, tuple(Column(len(args) + i, c.type, c.nullable) for i, c in enumerate(columns)))


def in_from(b: Binder, call: Applied) -> tuple[Rel, list[str]]:
    """A call in FROM: its rows and columns' names."""
    entry = call.entry
    names = [c.name for c in entry.relation.columns]
    if not entry.routine.returns_set:
        return Project(_UNIT, (scalar(b, call, 0),)), names
    return lateral(body(b.env, entry), entry, call.args), names


# Bodies.


def _inside(env: Environment, entry: Entry) -> Environment:
    if entry.relation.id in env.views:
        raise unsupported(f"the recursive function {signature(entry.name, entry.args)}")
    catalog = pinned(env.catalog, entry.relation)
    views = (*env.views, entry.relation.id)
    return replace(env, catalog=catalog, ctes={}, parameters=Parameters(), views=views, top=None)


def body(env: Environment, entry: Entry) -> Rel:
    """A routine's rows; the arguments are one level out."""
    text = entry.relation.definition
    assert text is not None, "a routine has a body"
    return _bound_body(_inside(env, entry), entry, text)


def _bound_body(env: Environment, entry: Entry, text: str) -> Rel:
    from sql.bind import query as queries

    routine = entry.routine
    query = _query(routine, text)
    known = [(a.name, a.type) for a in routine.arguments]
    visible = tuple(Visible(n, Column(i, t)) for i, (n, t) in enumerate(known) if n is not None)
    numbered = tuple(Visible(f"${i + 1}", Column(i, t)) for i, (_, t) in enumerate(known))
    scope = Scope(Namespace((*visible, *numbered), (Range(routine.name, (*visible, *numbered)),)), clause="FUNCTION")
    bound = queries.bind_unsettled(env, _named_parameters(query, len(known)), scope)
    rel = queries.finished(bound)
    found = schema(rel)
    wanted = [c.type for c in entry.relation.columns]
    if len(found) != len(wanted):
        many = "many" if len(found) > len(wanted) else "few"
        number = f"Final statement returns too {many} columns."
        raise _mismatch(routine, number if len(wanted) > 1 else "Final statement must return exactly one column.")
    for i, (have, want) in enumerate(zip(found, wanted, strict=True)):
        if have.type != UNKNOWN and not castable(have.type, want, "assignment"):
            place = f"Final statement returns {type_name(have.type)} instead of {type_name(want)} at column {i + 1}."
            raise _mismatch(routine, place if routine.table else f"Actual return type is {type_name(have.type)}.")
    return queries.convert(env, rel, wanted, "assignment")


def _mismatch(routine: Routine, detail: str) -> SqlError:
    shown = "record" if routine.result.kind is Kind.RECORD else format_type(routine.result, False)
    return SqlError("42P13", f"return type mismatch in function declared to return {shown}", detail)


def _query(routine: Routine, text: str) -> nodes.Query:
    if routine.expression:
        expr = parse_expression(text)
        select = nodes.Select((nodes.Target(expr, None, 0),), (), None, None, None, None, 0)
        return nodes.Query(select, 0)
    tree = parse(text.strip().removesuffix(";"))
    if not isinstance(tree, nodes.Query):
        raise unsupported("a function whose body is no SELECT")
    return tree


def _named_parameters(node: Any, count: int) -> Any:
    """The syntax with ``$1`` as a name, which the scope of the arguments knows. Raises 42P02."""
    if isinstance(node, nodes.Param):
        if not 1 <= node.index <= count:
            raise SqlError("42P02", f"there is no parameter ${node.index}")
        return nodes.Name((f"${node.index}",), node.at)
    if isinstance(node, tuple):
        return tuple(_named_parameters(n, count) for n in node)
    if is_dataclass(node) and not isinstance(node, type):
        changed = {f.name: _named_parameters(getattr(node, f.name), count) for f in fields(node)}
        return replace(node, **changed)
    return node


# Definitions.


def create(env: Environment, node: nodes_routines.CreateFunctionStatement) -> CreateFunction:
    """CREATE FUNCTION, with its body checked."""
    schema_name = env.catalog.home(node.name.schema_name, False)
    arguments = tuple(
        Argument(a.name, env.type(a.type), None if a.default is None else a.default[1]) for a in node.arguments
    )
    _check_arguments(arguments)
    columns = _result_columns(env, node)
    result = columns[0].type if node.columns is None or len(columns) == 1 else SqlType(Kind.RECORD)
    routine = Routine(
        node.name.name, arguments, result, node.returns_set, len(columns) > 1 or node.columns is not None,
        node.volatility, node.strict, node.expression,
    )  # fmt: skip
    relation = Relation(
        0, schema_name, signature(routine.name, routine.types), RelationKind.FUNCTION, columns, definition=node.body,
        routine=routine,
    )  # fmt: skip
    recorder = Recorder(env.catalog)
    inner = replace(env, catalog=recorder, ctes={}, parameters=Parameters(), top=None)
    try:
        _bound_body(inner, Entry(relation, routine), node.body)
    except SqlError as error:
        raise SqlError(error.sqlstate, error.message, error.detail, error.hint) from None
    references = recorder.references(0, len(node.body) + 1)
    relation = replace(relation, dependencies=tuple(sorted(recorder.seen)), references=references)
    return CreateFunction(relation, node.replace)


def _check_arguments(arguments: tuple[Argument, ...]) -> None:
    names = [a.name for a in arguments if a.name is not None]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise SqlError("42P13", f'parameter name "{name}" used more than once')
    defaults = [a.default is not None for a in arguments]
    if any(before and not after for before, after in pairwise(defaults)):
        raise SqlError("42P13", "input parameters after one with a default value must also have defaults")


def _result_columns(env: Environment, node: nodes_routines.CreateFunctionStatement) -> tuple[TableColumn, ...]:
    if node.columns is not None:
        return tuple(TableColumn(c.name or "", env.type(c.type)) for c in node.columns)
    assert node.result is not None, "the grammar asks for one"
    if node.result.name in ("void", "trigger", "record"):
        raise unsupported(f"functions that return {node.result.name}", position=node.result.at + 1)
    table = env.catalog.resolve(None, node.result.name) if node.returns_set else None
    if table is not None and table.kind is not RelationKind.SYSTEM:
        return tuple(TableColumn(c.name, c.type) for c in table.columns)
    return (TableColumn(node.name.name, env.type(node.result)),)


def drop(env: Environment, node: nodes_routines.DropFunctionStatement) -> DropFunction:
    """DROP FUNCTION and DROP AGGREGATE. Raises 42883, 42725, 42809."""
    kind = "aggregate" if node.aggregate else "function"
    found: list[Relation] = []
    missing: list[str] = []
    for name, types in node.names:
        known = env.catalog.routines(name.schema_name, name.name)
        message, shown = f'could not find a {kind} named "{name.name}"', f"{name.name}()"
        if types is not None:
            wanted = tuple(env.type(t) for t in types)
            known = tuple(r for r in known if r.routine is not None and r.routine.types == wanted)
            shown = f"{name.name}({', '.join(map(type_name, wanted))})"
            message = f"{kind} {shown} does not exist"
        if len(known) > 1 and types is None:
            hint = "Specify the argument list to select the function unambiguously."
            raise SqlError("42725", f'function name "{name.name}" is not unique', hint=hint)
        if not known and not node.if_exists:
            raise SqlError("42883", message)
        _check_kind(known[:1], node.aggregate, shown)
        found += known[:1]
        if not known:
            missing.append(f"{kind} {shown} does not exist, skipping")
    return DropFunction(tuple(found), tuple(missing), node.cascade, f"DROP {kind.upper()}")


def _check_kind(found: Sequence[Relation], aggregate: bool, shown: str) -> None:
    for relation in found:
        routine = relation.routine
        if routine is None or routine.aggregate == aggregate:
            continue
        if aggregate:
            raise SqlError("42809", f"function {shown} is not an aggregate")
        hint = "Use DROP AGGREGATE to drop aggregate functions."
        raise SqlError("42809", f'"{routine.name}" is an aggregate function', hint=hint)
