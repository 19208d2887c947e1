"""The functions and operators of jsonpath: jsonb_path_exists, jsonb_path_match, jsonb_path_query and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ivm.errors import SqlError, too_deep
from ivm.words import BOOL, JSONB, JSONPATH
from planner.expr.context import Context
from planner.expr.functions.expansion import add, each
from planner.expr.functions.jsonpath.evaluator import Evaluation
from planner.expr.functions.jsonpath.moments import Moment
from planner.expr.functions.table import Volatility, per_value
from storage.types.jsonpath.parser import parse_path
from storage.types.text_json import format_json, load_json

Zone = tuple[str, int] | None


def evaluation(value: str, path: str, variables: str | None, zone: Zone) -> Evaluation:
    """An evaluation of a path over a jsonb. Raises 22023."""
    known = None if variables is None else load_json(variables)
    if (known is not None and not isinstance(known, dict)) or variables == "null":
        raise SqlError(
            "22023", '"vars" argument is not an object',
            'Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )  # fmt: skip
    return Evaluation(parse_path(path), load_json(value), known, zone)


def shown(value: Any) -> Any:
    """A result as a JSON value."""
    return value.text() if isinstance(value, Moment) else value


def path_exists(zone: Zone, value: str, path: str, variables: str | None = None, silent: bool = True) -> bool | None:
    """jsonb_path_exists."""
    return evaluation(value, path, variables, zone).exists(silent)


def path_match(zone: Zone, value: str, path: str, variables: str | None = None, silent: bool = True) -> bool | None:
    """jsonb_path_match."""
    found = evaluation(value, path, variables, zone).query(silent)
    if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
        return found[0]
    if not silent:
        raise SqlError("22038", "single boolean result is expected")
    return None


def path_query(zone: Zone, value: str, path: str, variables: str = "{}", silent: bool = False) -> list[str]:
    """jsonb_path_query: the results as jsonb."""
    return [format_json(shown(v)) for v in evaluation(value, path, variables, zone).query(silent)]


def _array(zone: Zone, value: str, path: str, variables: str = "{}", silent: bool = False) -> str:
    return f"[{', '.join(path_query(zone, value, path, variables, silent))}]"


def _first(zone: Zone, value: str, path: str, variables: str = "{}", silent: bool = False) -> str | None:
    return next(iter(path_query(zone, value, path, variables, silent)), None)


def _exists(zone: Zone, value: str, path: str, variables: str = "{}", silent: bool = False) -> bool | None:
    return path_exists(zone, value, path, variables, silent)


def _match(zone: Zone, value: str, path: str, variables: str = "{}", silent: bool = False) -> bool | None:
    return path_match(zone, value, path, variables, silent)


def _guarded(function: Callable[..., Any], context: Context | None, *args: Any) -> Any:
    try:
        return function(None if context is None else (context.timezone, context.statement_now), *args)
    except RecursionError:
        raise too_deep() from None


def _scalar(function: Callable[..., Any], zoned: bool) -> Callable[..., Any]:
    return lambda site, *args: _guarded(function, site.context if zoned else None, *args)


def _rows(zoned: bool) -> Callable[..., Any]:
    return lambda context, *args: _guarded(path_query, context if zoned else None, *args)


_ARGUMENTS = ((JSONB, JSONPATH), (JSONB, JSONPATH, JSONB), (JSONB, JSONPATH, JSONB, BOOL))
for _name, _result, _function in (
    ("exists", BOOL, _exists), ("match", BOOL, _match), ("query_array", JSONB, _array), ("query_first", JSONB, _first)
):  # fmt: skip
    for _zoned in (False, True):
        _volatility: Volatility = "settings" if _zoned else "immutable"
        for _args in _ARGUMENTS:
            per_value(
                f"jsonb_path_{_name}{'_tz' if _zoned else ''}", _args, _result, needs_site=True, volatility=_volatility
            )(_scalar(_function, _zoned))
for _zoned in (False, True):
    for _args in _ARGUMENTS:
        add(f"jsonb_path_query{'_tz' if _zoned else ''}", _args, JSONB, each(JSONB, _rows(_zoned)))


@per_value("@?", (JSONB, JSONPATH), BOOL)
@per_value("jsonb_path_exists_opr", (JSONB, JSONPATH), BOOL)
def exists_operator(value: str, path: str) -> bool | None:
    """``value @? path``"""
    return _guarded(path_exists, None, value, path)  # type: ignore[no-any-return]


@per_value("@@", (JSONB, JSONPATH), BOOL)
@per_value("jsonb_path_match_opr", (JSONB, JSONPATH), BOOL)
def match_operator(value: str, path: str) -> bool | None:
    """``value @@ path``"""
    return _guarded(path_match, None, value, path)  # type: ignore[no-any-return]
