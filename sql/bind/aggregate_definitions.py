"""CREATE AGGREGATE of a state function: its options, and what they mean (aggregatecmds.c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ivm.errors import SqlError, unsupported
from ivm.words import FLOAT8, INT8, INTERVAL, UNKNOWN, SqlType
from planner.expr.functions.table import ArgumentType, Polymorphic
from sql.bind.environment import Environment
from sql.bind.routine_resolution import signature
from sql.bind.routine_signatures import aggregated_type, check_determined, check_parameters
from sql.bind.state_aggregates import check_fold
from sql.catalog.catalog import Relation, RelationKind, TableColumn
from sql.catalog.column_types import array_of
from sql.catalog.routine import Argument, Fold, Routine
from sql.statements.routines import CreateFunction
from sql.syntax.nodes import queries as nodes
from sql.syntax.nodes import routines as nodes_routines

_OLD: Final = {"sfunc1": "sfunc", "stype1": "stype", "initcond1": "initcond"}
_IGNORED: Final = frozenset(
    [
        "sspace",
        "combinefunc",
        "serialfunc",
        "deserialfunc",
        "msfunc",
        "minvfunc",
        "mstype",
        "msspace",
        "mfinalfunc",
        "mfinalfunc_extra",
        "mfinalfunc_modify",
        "minitcond",
        "sortop",
        "parallel",
        "finalfunc_modify",
    ]
)
"""Options that say how PostgreSQL computes an aggregate, and not what."""
_KNOWN: Final = frozenset({"basetype", "sfunc", "stype", "finalfunc", "finalfunc_extra", "initcond", "hypothetical"})

Options = Mapping[str, nodes.TypeName | str]


def create_aggregate(env: Environment, node: nodes_routines.CreateAggregateStatement) -> CreateFunction:
    """The aggregate. Raises 42P13, 42883, 42804, 0A000."""
    options = {_OLD.get(name, name): value for name, value in node.options}
    warnings = tuple(
        f'aggregate attribute "{name}" not recognized' for name in options if name not in _KNOWN | _IGNORED
    )
    if "stype" not in options:
        raise SqlError("42P13", "aggregate stype must be specified")
    if "sfunc" not in options:
        raise SqlError("42P13", "aggregate sfunc must be specified")
    _check_moving(options)
    if options.get("parallel") not in (None, "safe", "restricted", "unsafe") and not _named(options, "parallel"):
        raise SqlError("42601", 'parameter "parallel" must be SAFE, RESTRICTED, or UNSAFE')
    direct = _arguments(env, node, options)
    declared = direct if node.ordered is None else (*direct, *_declared(env, node.ordered))
    check_parameters(declared)
    known = _known_ordered(node, options, len(direct))
    if known is not None:
        return _created(env, node, declared, *known, warnings)
    if _true(options.get("hypothetical")):
        raise unsupported("a hypothetical-set aggregate of functions of one's own")
    inputs = [a.type for a in declared[len(direct) if node.ordered is not None else 0 :]]
    state = _type(env, options["stype"])
    if state is Polymorphic.ANY:
        raise SqlError("42P13", 'aggregate transition data type cannot be "any"')
    check_determined(state, inputs, "transition")
    final = options.get("finalfunc")
    initial = options.get("initcond")
    fold = Fold(
        _name(options["sfunc"]), state, None if initial is None else _text(initial),
        None if final is None else _name(final), _true(options.get("finalfunc_extra")),
        None if node.ordered is None else len(direct),
    )  # fmt: skip
    result = check_fold(env, node.name.name, inputs, fold, [] if node.ordered is None else [a.type for a in direct])
    check_determined(result, [a.type for a in declared], "result")
    return _created(env, node, declared, fold, result, warnings)


def _created(
    env: Environment, node: nodes_routines.CreateAggregateStatement, declared: tuple[Argument, ...], fold: Fold,
    result: ArgumentType, warnings: tuple[str, ...],
) -> CreateFunction:  # fmt: skip
    routine = Routine(node.name.name, declared, result, volatility="immutable", aggregate=True, fold=fold)
    column = TableColumn(routine.name, result if isinstance(result, SqlType) else UNKNOWN)
    relation = Relation(
        0, env.catalog.home(node.name.schema_name, False), signature(routine.name, routine.types),
        RelationKind.FUNCTION, (column,), definition="", routine=routine,
        dependencies=_functions(env, fold),
    )  # fmt: skip
    return CreateFunction(relation, node.replace, warnings=warnings)


_STANDS_FOR: Final[Mapping[str, tuple[str, ArgumentType]]] = {
    "percentile_disc_final": ("percentile_disc", Polymorphic.ANYELEMENT),
    "percentile_disc_multi_final": ("percentile_disc", Polymorphic.ANYARRAY),
    "percentile_cont_float8_final": ("percentile_cont", FLOAT8),
    "percentile_cont_float8_multi_final": ("percentile_cont", array_of(FLOAT8)),
    "percentile_cont_interval_final": ("percentile_cont", INTERVAL),
    "percentile_cont_interval_multi_final": ("percentile_cont", array_of(INTERVAL)),
    "mode_final": ("mode", Polymorphic.ANYELEMENT), "rank_final": ("rank", INT8),
    "dense_rank_final": ("dense_rank", INT8), "percent_rank_final": ("percent_rank", FLOAT8),
    "cume_dist_final": ("cume_dist", FLOAT8),
}  # fmt: skip
"""What the final functions of PostgreSQL's ordered-set aggregates mean, and the type of the result."""


def _known_ordered(
    node: nodes_routines.CreateAggregateStatement, options: Options, direct: int
) -> tuple[Fold, ArgumentType] | None:
    """An ordered-set aggregate of PostgreSQL's own functions, and its result; None for one of others."""
    final = options.get("finalfunc")
    named = "" if final is None else _name(final)[-1]
    sfunc = _name(options["sfunc"])
    if node.ordered is None or not sfunc[-1].startswith("ordered_set_transition") or named not in _STANDS_FOR:
        return None
    stands_for, result = _STANDS_FOR[named]
    hypothetical = _true(options.get("hypothetical"))
    if hypothetical != (stands_for in ("rank", "dense_rank", "percent_rank", "cume_dist")):
        raise unsupported(f"{named} in an aggregate that is {'' if hypothetical else 'not '}HYPOTHETICAL")
    fold = Fold(sfunc, Polymorphic.ANY, None, (named,), True, direct, stands_for, hypothetical)
    return fold, result


def _functions(env: Environment, fold: Fold) -> tuple[int, ...]:
    """The users' functions that the aggregate may call."""
    names = [fold.transition, *([] if fold.final is None else [fold.final])]
    found = (r.id for name in names for r in env.catalog.routines(name[-2] if len(name) > 1 else None, name[-1]))
    return tuple(sorted(set(found)))


def _arguments(
    env: Environment, node: nodes_routines.CreateAggregateStatement, options: Options
) -> tuple[Argument, ...]:
    if node.arguments is not None:
        if "basetype" in options:
            raise SqlError("42P13", "basetype is redundant with aggregate input type specification")
        return _declared(env, node.arguments)
    if "basetype" not in options:
        raise SqlError("42P13", "aggregate input type must be specified")
    given = options["basetype"]
    if (given if isinstance(given, str) else given.name).lower() == "any":
        return ()
    return (Argument(None, _type(env, given)),)


def _declared(env: Environment, arguments: Sequence[nodes_routines.ArgumentNode]) -> tuple[Argument, ...]:
    for argument in arguments:
        if argument.mode not in ("in", "variadic"):
            raise SqlError("0A000", "aggregates cannot have output arguments")
        if argument.default is not None:
            raise SqlError("42P13", "aggregates cannot have default arguments", position=argument.at + 1)
    return tuple(Argument(a.name, aggregated_type(env, a.type), None, a.mode) for a in arguments)


def _check_moving(options: Options) -> None:
    """Raises 42P13 for options of a moving aggregate that do not fit together."""
    needed, others = ("msfunc", "minvfunc"), ("msspace", "minitcond", "mfinalfunc")
    if "mstype" in options:
        for name in needed:
            if name not in options:
                raise SqlError("42P13", f"aggregate {name} must be specified when mstype is specified")
        return
    for name in (*needed, *others):
        if name in options:
            raise SqlError("42P13", f"aggregate {name} must not be specified without mstype")


def _type(env: Environment, value: nodes.TypeName | str) -> ArgumentType:
    if isinstance(value, str):
        value = nodes.TypeName(value.lower(), (), False, 0)
    return aggregated_type(env, value)


def _name(value: nodes.TypeName | str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return (value.name,) if value.schema is None else (value.schema, value.name)


def _named(options: Options, name: str) -> bool:
    value = options.get(name)
    return isinstance(value, nodes.TypeName) and value.name in ("safe", "restricted", "unsafe")


def _text(value: nodes.TypeName | str) -> str:
    return value if isinstance(value, str) else value.name


def _true(value: nodes.TypeName | str | None) -> bool:
    """Whether an option without a value, or with a true one, was given."""
    return value is not None and _text(value).lower() not in ("false", "off", "0", "no")
