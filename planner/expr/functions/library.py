"""The complete table of scalar functions and casts: this module imports all families.

To look functions up, import ``FUNCTIONS``, ``overloads`` and ``find_cast`` from here. A family imports only
``planner.expr.functions.table`` (or ``casts.registry``) and the families that it computes with.
"""

from __future__ import annotations

from typing import Final, TypeGuard

from planner.expr.comparison import Comparison
from planner.expr.functions import (
    aggregate_support,
    array,
    array_samples,
    bits,
    boolean,
    compare,
    domains,
    enum,
    network,
    ordered_set,
    points,
    python_calls,
    ranges,
    routine,
    row,
    uuid,
    values,
    variadic,
)
from planner.expr.functions.casts import json as json_casts
from planner.expr.functions.casts import numbers as number_casts
from planner.expr.functions.casts import registry as casts
from planner.expr.functions.casts import text as text_casts
from planner.expr.functions.casts import times as time_casts
from planner.expr.functions.casts.registry import ASSIGNMENT_CAST, CAST, CASTS, RAISING_CASTS, TRY, TRY_CAST, find_cast
from planner.expr.functions.datetime import clock, construction, overlaps, timetz, zones
from planner.expr.functions.datetime import operators as time_operators
from planner.expr.functions.formatting import to_char
from planner.expr.functions.internal import hashing, intervals, membership, recursion, sampling, subquery
from planner.expr.functions.json import access as json_access
from planner.expr.functions.json import building as json_building
from planner.expr.functions.json import changes as json_changes
from planner.expr.functions.json import constructors as json_constructors
from planner.expr.functions.json import containment as json_containment
from planner.expr.functions.json import members as json_members
from planner.expr.functions.json import populating as json_populating
from planner.expr.functions.jsonpath import calls as jsonpath
from planner.expr.functions.jsonpath import sql_json
from planner.expr.functions.numbers import accumulation, degrees, integer, numeric, randoms
from planner.expr.functions.numbers import float as floats
from planner.expr.functions.system import (
    catalog,
    definitions,
    information,
    inputs,
    locks,
    objects,
    privileges,
    sequence,
    server,
    session,
    sizes,
    visibility,
    waiting,
)
from planner.expr.functions.table import FUNCTIONS, Function, overloads
from planner.expr.functions.text import bytes as bytes_
from planner.expr.functions.text import concat, encoding, regex, regex_parts, string, unicode
from planner.expr.functions.textsearch import calls as textsearch
from planner.expr.functions.textsearch import parsing, ranking, rewriting, vectors
from planner.expr.scalar import Call, Scalar

__all__ = [
    "ASSIGNMENT_CAST", "CAST", "CASTS", "FAMILIES", "FUNCTIONS", "RAISING_CASTS", "TRY", "TRY_CAST",
    "called_function", "comparison_of", "find_cast", "is_equality", "is_volatile", "overloads",
]  # fmt: skip

FAMILIES: Final = (
    accumulation, aggregate_support, array, array_samples, bits, boolean, bytes_, casts, catalog, clock, compare,
    concat, construction, definitions, degrees, domains, encoding, enum, floats, hashing, information, inputs, integer,
    intervals, json_access, json_building, json_casts, json_changes, json_constructors, json_containment,
    json_members, json_populating, jsonpath, locks, membership, network, number_casts, numeric, objects,
    ordered_set, overlaps, parsing, points, privileges, python_calls, randoms, ranges, ranking, recursion, regex,
    regex_parts, rewriting, routine, row, sampling, sequence, server, session, sizes, sql_json, string, subquery,
    text_casts, textsearch, time_casts, time_operators, timetz, to_char, unicode, uuid, values, variadic, vectors,
    visibility, waiting, zones,
)  # fmt: skip
"""The modules that have added their functions to the table."""
variadic.add_forms()


def called_function(expr: Scalar) -> Function | None:
    """The entry of a call, including a cast; None for other expressions and for casts of arrays."""
    if not isinstance(expr, Call):
        return None
    if expr.function not in RAISING_CASTS:
        return FUNCTIONS.get(expr.function)
    source, target = expr.args[0].type, expr.type
    if source.element is not None and target.element is not None and source != target:
        return None
    return find_cast(source, target)


def comparison_of(expr: Scalar) -> Comparison | None:
    """The comparison operator that the expression calls, if any."""
    function = FUNCTIONS.get(expr.function) if isinstance(expr, Call) else None
    return None if function is None else function.comparison


def is_equality(expr: Scalar) -> TypeGuard[Call]:
    """Whether the expression is ``a = b``."""
    return comparison_of(expr) is Comparison.EQUAL


def is_volatile(expr: Scalar) -> bool:
    """Whether the expression itself (not an argument) is a call of a volatile function."""
    function = FUNCTIONS.get(expr.function) if isinstance(expr, Call) else None
    return function is not None and function.volatility == "volatile"
