"""Functions that change a jsonb: ``||``, ``-``, ``#-``, jsonb_set, jsonb_insert, jsonb_strip_nulls, jsonb_pretty."""

from __future__ import annotations

from typing import Any, Final

from ivm.errors import SqlError
from ivm.words import BOOL, INT4, JSON, JSONB, TEXT
from planner.expr.functions.json.set_path import PathChange, cannot_replace, set_path
from planner.expr.functions.json.trees import JSON_TREE
from planner.expr.functions.table import per_value
from planner.expr.functions.text.regex import TEXTS
from storage.types.text_json import format_json, load_json, quoted, sorted_pairs

_TREATMENTS: Final = ("delete_key", "return_target", "use_json_null", "raise_exception")


@per_value("||", (JSONB, JSONB), JSONB, makes_null=False)
@per_value("jsonb_concat", (JSONB, JSONB), JSONB, makes_null=False)
def concat(left: str, right: str) -> str:
    """Objects are merged; anything else is an array, or an element of one."""
    first, second = load_json(left), load_json(right)
    if isinstance(first, dict) and isinstance(second, dict):
        return format_json(first | second)
    whole = first if isinstance(first, list) else [first]
    return format_json(whole + (second if isinstance(second, list) else [second]))


def _deletable(value: str) -> Any:
    found = load_json(value)
    if not isinstance(found, dict | list):
        raise SqlError("22023", "cannot delete from scalar")
    return found


def _without(found: Any, keys: set[str]) -> str:
    if isinstance(found, dict):
        return format_json({k: v for k, v in found.items() if k not in keys})
    return format_json([item for item in found if not (isinstance(item, str) and item in keys)])


@per_value("-", (JSONB, TEXT), JSONB, makes_null=False)
def delete_key(value: str, key: str) -> str:
    return _without(_deletable(value), {key})


@per_value("jsonb_delete", (JSONB, TEXT), JSONB, variadic=True, strict=False)
def delete_keys(value: str | None, *keys: str | None) -> str | None:
    """A NULL key, of several, is none."""
    if value is None or keys == (None,):
        return None
    return _without(_deletable(value), {key for key in keys if key is not None})


@per_value("-", (JSONB, TEXTS), JSONB, makes_null=False)
def delete_all(value: str, keys: tuple[str | None, ...]) -> str:
    _check_flat(keys)
    return _without(_deletable(value), {key for key in keys if key is not None})


@per_value("-", (JSONB, INT4), JSONB, makes_null=False)
@per_value("jsonb_delete", (JSONB, INT4), JSONB, makes_null=False)
def delete_element(value: str, index: int) -> str:
    found = _deletable(value)
    if isinstance(found, dict):
        raise SqlError("22023", "cannot delete from object using integer index")
    if -len(found) <= index < len(found):
        del found[index]
    return format_json(found)


def _check_flat(path: tuple[Any, ...]) -> None:
    if path and isinstance(path[0], tuple):
        raise SqlError("2202E", "wrong number of array subscripts")


def _changed(value: str, path: tuple[str | None, ...], change: PathChange, new: Any) -> str:
    _check_flat(path)
    found = load_json(value)
    if not isinstance(found, dict | list):
        verb = "delete" if change is PathChange.DELETE else "set"
        raise SqlError("22023", f"cannot {verb} path in scalar")
    if not path or (not found and change in (PathChange.DELETE, PathChange.REPLACE)):
        return value
    return format_json(set_path(found, path, change, new))


@per_value("#-", (JSONB, TEXTS), JSONB, makes_null=False)
@per_value("jsonb_delete_path", (JSONB, TEXTS), JSONB, makes_null=False)
def delete_path(value: str, path: tuple[str | None, ...]) -> str:
    return _changed(value, path, PathChange.DELETE, None)


@per_value("jsonb_set", (JSONB, TEXTS, JSONB), JSONB, makes_null=False)
@per_value("jsonb_set", (JSONB, TEXTS, JSONB, BOOL), JSONB, makes_null=False)
def jsonb_set(value: str, path: tuple[str | None, ...], new: str, create: bool = True) -> str:
    return _changed(value, path, PathChange.CREATE if create else PathChange.REPLACE, load_json(new))


@per_value("jsonb_set_lax", (JSONB, TEXTS, JSONB), JSONB, strict=False)
@per_value("jsonb_set_lax", (JSONB, TEXTS, JSONB, BOOL), JSONB, strict=False)
@per_value("jsonb_set_lax", (JSONB, TEXTS, JSONB, BOOL, TEXT), JSONB, strict=False)
def jsonb_set_lax(
    value: str | None, path: tuple[str | None, ...] | None, new: str | None, create: bool | None = True,
    treatment: str | None = "use_json_null",
) -> str | None:  # fmt: skip
    """jsonb_set, where ``treatment`` says what NULL as the new value means."""
    if value is None or path is None or create is None:
        return None
    if treatment is None or (new is None and treatment not in _TREATMENTS):
        *first, last = (f'"{name}"' for name in _TREATMENTS)
        raise SqlError("22023", f"null_value_treatment must be {', '.join(first)}, or {last}")
    if new is not None:
        return jsonb_set(value, path, new, create)
    match treatment:
        case "raise_exception":
            raise SqlError(
                "22004", "JSON value must not be null",
                'Exception was raised because null_value_treatment is "raise_exception".',
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
            )  # fmt: skip
        case "use_json_null":
            return jsonb_set(value, path, "null", create)
        case "delete_key":
            return delete_path(value, path)
        case _:
            return value


@per_value("jsonb_insert", (JSONB, TEXTS, JSONB), JSONB, makes_null=False)
@per_value("jsonb_insert", (JSONB, TEXTS, JSONB, BOOL), JSONB, makes_null=False)
def jsonb_insert(value: str, path: tuple[str | None, ...], new: str, after: bool = False) -> str:
    return _changed(value, path, PathChange.INSERT_AFTER if after else PathChange.INSERT_BEFORE, load_json(new))


@per_value("jsonb_assign", (JSONB, JSONB, BOOL, TEXT), JSONB, strict=False, variadic=True, internal=True)
def jsonb_assign(value: str | None, new: str | None, is_array: bool, *keys: str | None) -> str:
    """``value[key][key]… = new``. A value that is NULL becomes an array or an object."""
    if None in keys:
        raise SqlError("22004", "jsonb subscript in assignment must not be null")
    found: Any = load_json(value) if value is not None else [] if is_array else {}
    if not isinstance(found, dict | list):
        raise cannot_replace()
    return format_json(set_path(found, keys, PathChange.ASSIGN, None if new is None else load_json(new)))


def _stripped(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items() if item is not None}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


@per_value("jsonb_strip_nulls", (JSONB,), JSONB, makes_null=False)
def jsonb_strip_nulls(value: str) -> str:
    """Objects without their keys whose value is null."""
    return format_json(_stripped(load_json(value)))


def _stripped_text(text: str) -> str:
    parts: list[str] = []
    match JSON_TREE.kind(text):
        case "object":
            for key, item in JSON_TREE.pairs(text):
                if item != "null":
                    parts.append(f"{quoted(key)}:{_stripped_text(item)}")
            return f"{{{','.join(parts)}}}"
        case "array":
            for item in JSON_TREE.items(text):
                parts.append(_stripped_text(item))  # noqa: PERF401 (a comprehension would take a second frame a level)
            return f"[{','.join(parts)}]"
        case "string":
            return quoted(JSON_TREE.text(text) or "")
        case _:
            return text


@per_value("json_strip_nulls", (JSON,), JSON, makes_null=False)
def json_strip_nulls(value: str) -> str:
    """The same of json, without white space."""
    return _stripped_text(JSON_TREE.load(value))


def _pretty(value: Any, indent: str, out: list[str]) -> None:
    if not isinstance(value, dict | list):
        out.append(format_json(value))
        return
    start, end = "{}" if isinstance(value, dict) else "[]"
    inner = indent + "    "
    out.append(start)
    pairs = sorted_pairs(value) if isinstance(value, dict) else [(None, item) for item in value]
    for i, (key, item) in enumerate(pairs):
        out += (",\n" if i else "\n", inner, "" if key is None else f"{quoted(key)}: ")
        _pretty(item, inner, out)
    out += ("\n", indent, end)


@per_value("jsonb_pretty", (JSONB,), TEXT, makes_null=False)
def jsonb_pretty(value: str) -> str:
    """The value with a line for each element, indented by four spaces a level."""
    out: list[str] = []
    _pretty(load_json(value), "", out)
    return "".join(out)
