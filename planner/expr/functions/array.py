"""Array functions and operators. An array's datum is a tuple, nested for more dimensions; lower bounds are 1."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ivm.errors import SqlError, unsupported
from ivm.stops import room
from ivm.words import BOOL, INT4, NAME, TEXT, Kind, SqlType
from planner.expr.functions import array_columns
from planner.expr.functions.table import (
    ANY,
    ANYARRAY,
    ANYCOMPATIBLE,
    ANYCOMPATIBLEARRAY,
    ANYELEMENT,
    ANYNONARRAY,
    CallSite,
    per_value,
)
from planner.expr.functions.text.concat import flatten
from storage.types.arrays import shape
from storage.types.order import canonical

Array = tuple[Any, ...]


_LONGEST: Final = 134_217_727
"""The most elements that Postgres allows in an array."""


_WITH_NAN: Final = (Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.RANGE, Kind.MULTIRANGE, Kind.RECORD)


def _element(type_: SqlType) -> SqlType:
    assert type_.element is not None
    return type_.element


def _shape(array: Array, type_: SqlType) -> tuple[int, ...]:
    return shape(array, _element(type_).kind is Kind.INTERVAL)


def _class(type_: SqlType, item: Any) -> Any:
    """A key that is the same for equal elements, and no other; NaN equals itself."""
    if item is None:
        return None
    found = canonical(type_, item)
    return repr(found) if type_.kind in _WITH_NAN else found


@per_value("array", (ANY,), ANYARRAY, strict=False, variadic=True, needs_site=True)
def make_array(site: CallSite, *items: Any) -> Array:
    """ARRAY[…]; items that are arrays add a dimension."""
    if site.args and site.args[0].kind is Kind.ARRAY:
        shapes = {_shape(item or (), site.args[0]) for item in items}
        if len(shapes) > 1:
            raise SqlError("2202E", "multidimensional arrays must have array expressions with matching dimensions")
        if shapes == {()}:
            return ()
    return items


@per_value(
    "array_subscript", (ANYARRAY, INT4), ANYELEMENT, variadic=True, needs_site=True, vector=array_columns.subscript
)
def array_subscript(site: CallSite, array: Array, *places: int) -> Any:
    lengths = _shape(array, site.args[0])
    if site.args[0].zero_based:
        places = tuple(place + 1 for place in places)
    if len(lengths) != len(places) or not all(1 <= p <= n for p, n in zip(places, lengths, strict=True)):
        return None
    item: Any = array
    for place in places:
        item = item[place - 1]
    return item


@per_value("name_subscript", (NAME, INT4), SqlType(Kind.CHAR1), internal=True)
def name_subscript(name: str, place: int) -> str | None:
    """A byte of a name, counted from 0; behind its end there are zeros, up to its 64 bytes."""
    data = name.encode()
    if not 0 <= place < 64:
        return None
    return data[place : place + 1].decode("latin-1")


@per_value("array_slice", (ANYARRAY, INT4), ANYARRAY, variadic=True, needs_site=True)
def array_slice(site: CallSite, array: Array, *bounds: int) -> Array:
    """``a[low:high]…``: what the array has of it, all of the dimensions that are left out."""
    lengths = _shape(array, site.args[0])
    if len(bounds) > 2 * len(lengths):
        return ()
    if site.args[0].zero_based:
        bounds = tuple(min(bound, 2**31 - 2) + 1 for bound in bounds)
    pairs = zip(bounds[::2], bounds[1::2], strict=True)
    cut = [(max(low, 1) - 1, min(high, n)) for (low, high), n in zip(pairs, lengths, strict=False)]
    return () if any(first >= end for first, end in cut) else _cut(array, cut)


def _cut(array: Array, cut: Sequence[tuple[int, int]]) -> Array:
    first, end = cut[0]
    return array[first:end] if len(cut) == 1 else tuple(_cut(item, cut[1:]) for item in array[first:end])


def _bound_of_one(place: int | None) -> int:
    """A subscript of an assignment. Lower bounds are 1."""
    if place is None:
        raise SqlError("22004", "array subscript in assignment must not be null")
    if place < 1:
        raise unsupported("an array whose lower bound is not 1")
    _check_size(place)
    return place


def _check_size(length: int) -> None:
    """54000: an array longer than Postgres's."""
    if length > _LONGEST:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({_LONGEST})")


@per_value("array_assign", (ANYARRAY, ANYELEMENT, INT4), ANYARRAY, strict=False, variadic=True, needs_site=True)
def array_assign(site: CallSite, array: Array | None, item: Any, *places: int | None) -> Array:
    """``a[i]… = item``: the array with another element; NULLs fill a gap behind the last one."""
    at = [_bound_of_one(p) for p in places]
    lengths = _shape(array or (), site.args[0])
    if not lengths:
        if any(p > 1 for p in at):
            raise unsupported("an array whose lower bound is not 1")
        for _ in at:
            item = (item,)
        made: Array = item
        return made
    if len(lengths) != len(at):
        raise SqlError("2202E", "wrong number of array subscripts")
    if len(at) > 1 and any(p > n for p, n in zip(at, lengths, strict=True)):
        raise SqlError("2202E", "array subscript out of range")
    return _with_item(array or (), item, at)


def _with_item(array: Array, item: Any, at: list[int]) -> Array:
    place = at[0]
    longer = (*array, *(None,) * (place - len(array)))
    inner = item if len(at) == 1 else _with_item(longer[place - 1], item, at[1:])
    return (*longer[: place - 1], inner, *longer[place:])


@per_value("array_assign_slice", (ANYARRAY, ANYARRAY, INT4), ANYARRAY, strict=False, variadic=True, needs_site=True)
def array_assign_slice(site: CallSite, array: Array | None, given: Array | None, *bounds: int | None) -> Array | None:
    """``a[low:high]… = given``, whose elements are taken in their order."""
    firsts = [_bound_of_one(low) for low in bounds[::2]]
    lasts = [_last(high) for high in bounds[1::2]]
    if given is None:
        return array
    own = array or ()
    lengths = _shape(own, site.args[0])
    if lengths and len(lengths) < len(firsts):
        raise SqlError("2202E", "wrong number of array subscripts")
    if any(last < first for first, last in zip(firsts, lasts, strict=True)):
        raise SqlError("2202E", "upper bound cannot be less than lower bound")
    if not lengths and any(first > 1 for first in firsts):
        raise unsupported("an array whose lower bound is not 1")
    cut = [(first - 1, last) for first, last in zip(firsts, lasts, strict=True)]
    cut += [(0, n) for n in lengths[len(cut) :]]
    if len(lengths) > 1 and any(end > n for (_, end), n in zip(cut, lengths, strict=True)):
        raise SqlError("2202E", "array subscript out of range")
    items = flatten(given, _element(site.args[1]).kind)
    if len(items) < math.prod(end - first for first, end in cut):
        raise SqlError("2202E", "source array too small")
    return _filled(own, cut, iter(items))


def _last(place: int | None) -> int:
    if place is None:
        raise SqlError("22004", "array subscript in assignment must not be null")
    _check_size(place)
    return place


def _filled(array: Array, cut: Sequence[tuple[int, int]], items: Iterator[Any]) -> Array:
    """The array with these items in a part of it; NULLs fill a gap behind its last element."""
    first, end = cut[0]
    longer = (*array, *(None,) * (end - len(array)))
    if len(cut) == 1:
        return (*longer[:first], *(next(items) for _ in range(first, end)), *longer[end:])
    return (*longer[:first], *(_filled(inner or (), cut[1:], items) for inner in longer[first:end]), *longer[end:])


@per_value("array_upper", (ANYARRAY, INT4), INT4, needs_site=True)
def array_upper(site: CallSite, array: Array, dimension: int) -> int | None:
    length = array_length(site, array, dimension)
    return length if length is None else length - site.args[0].zero_based


@per_value("array_length", (ANYARRAY, INT4), INT4, needs_site=True, vector=array_columns.length)
def array_length(site: CallSite, array: Array, dimension: int) -> int | None:
    lengths = _shape(array, site.args[0])
    return lengths[dimension - 1] if 1 <= dimension <= len(lengths) else None


@per_value("array_lower", (ANYARRAY, INT4), INT4, needs_site=True)
def array_lower(site: CallSite, array: Array, dimension: int) -> int | None:
    return None if array_length(site, array, dimension) is None else 1 - site.args[0].zero_based


@per_value("array_ndims", (ANYARRAY,), INT4, needs_site=True)
def array_ndims(site: CallSite, array: Array) -> int | None:
    return len(_shape(array, site.args[0])) or None


@per_value("array_dims", (ANYARRAY,), TEXT, needs_site=True)
def array_dims(site: CallSite, array: Array) -> str | None:
    first = 1 - site.args[0].zero_based
    return "".join(f"[{first}:{n - 1 + first}]" for n in _shape(array, site.args[0])) or None


@per_value("cardinality", (ANYARRAY,), INT4, needs_site=True, vector=array_columns.cardinality)
def cardinality(site: CallSite, array: Array) -> int:
    return len(flatten(array, _element(site.args[0]).kind))


def _one_dimension(site: CallSite, array: Array, type_: SqlType) -> None:
    if len(_shape(array, type_)) > 1:
        raise SqlError("22000", "argument must be empty or one-dimensional array")


@per_value("array_append", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
@per_value("||", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
def array_append(site: CallSite, array: Array | None, item: Any) -> Array:
    _one_dimension(site, array or (), site.args[0])
    return (*(array or ()), item)


@per_value("array_prepend", (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
@per_value("||", (ANYCOMPATIBLE, ANYCOMPATIBLEARRAY), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
def array_prepend(site: CallSite, item: Any, array: Array | None) -> Array:
    _one_dimension(site, array or (), site.args[1])
    return (item, *(array or ()))


@per_value("array_cat", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
@per_value("||", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLEARRAY), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
def array_cat(site: CallSite, left: Array | None, right: Array | None) -> Array | None:
    if left is None or right is None:
        return left if right is None else right
    if not left or not right:
        return left or right
    one, two = _shape(left, site.args[0]), _shape(right, site.args[1])
    if one[1:] == two[1:]:
        return left + right
    if one[1:] == two:
        return (*left, right)
    if one == two[1:]:
        return (left, *right)
    raise SqlError("2202E", "cannot concatenate incompatible arrays")


@per_value("array_position", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, INT4), INT4, strict=False, needs_site=True)
@per_value("array_position", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), INT4, strict=False, needs_site=True)
def array_position(site: CallSite, array: Array | None, item: Any, start: int | None = 1) -> int | None:
    if array is None or not array or (item is None and None not in array):
        return None
    if start is None:
        raise SqlError("22004", "initial position must not be null")
    found = _positions(site, array, item)
    return next((place for place in found if place >= start), None)


@per_value(
    "array_positions", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), SqlType(Kind.ARRAY, element=INT4), strict=False,
    needs_site=True,
)  # fmt: skip
def array_positions(site: CallSite, array: Array | None, item: Any) -> Array | None:
    return None if array is None else tuple(_positions(site, array, item))


def _positions(site: CallSite, array: Array, item: Any) -> list[int]:
    element = _element(site.args[0])
    if len(_shape(array, site.args[0])) > 1:
        raise unsupported("searching for elements in multidimensional arrays")
    wanted = _class(element, item)
    first = 1 - site.args[0].zero_based
    return [place for place, other in enumerate(array, first) if _class(element, other) == wanted]


@per_value("array_remove", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE), ANYCOMPATIBLEARRAY, strict=False, needs_site=True)
def array_remove(site: CallSite, array: Array | None, item: Any) -> Array | None:
    if array is None:
        return None
    gone = set(_positions(site, array, item))
    return tuple(other for place, other in enumerate(array, 1) if place not in gone)


@per_value(
    "array_replace", (ANYCOMPATIBLEARRAY, ANYCOMPATIBLE, ANYCOMPATIBLE), ANYCOMPATIBLEARRAY, strict=False,
    needs_site=True,
)  # fmt: skip
def array_replace(site: CallSite, array: Array | None, old: Any, new: Any) -> Array | None:
    if array is None:
        return None
    changed = set(_positions(site, array, old))
    return tuple(new if place in changed else other for place, other in enumerate(array, 1))


_INTS = SqlType(Kind.ARRAY, element=INT4)
_LARGEST = 134_217_727


@per_value("array_fill", (ANYNONARRAY, _INTS), ANYARRAY, strict=False)
def array_fill(item: Any, lengths: Array | None) -> Array:
    """An array of one value."""
    return array_fill_from(item, lengths, (1,) * len(lengths or ()))


@per_value("array_fill", (ANYNONARRAY, _INTS, _INTS), ANYARRAY, strict=False)
def array_fill_from(item: Any, lengths: Array | None, lower: Array | None) -> Array:
    """The same with the lower bounds. Raises 0A000 for others than 1."""
    if lengths is None or lower is None:
        raise SqlError("22004", "dimension array or low bound array cannot be null")
    if any(isinstance(part, tuple) for part in (*lengths, *lower)):
        raise SqlError("2202E", "wrong number of array subscripts", "Dimension array must be one dimensional.")
    if None in lengths or None in lower:
        raise SqlError("22004", "dimension values cannot be null")
    if len(lower) != len(lengths):
        detail = "Low bound array has different size than dimensions array."
        raise SqlError("2202E", "wrong number of array subscripts", detail)
    if any(bound != 1 for bound in lower):
        raise unsupported("an array whose subscripts do not start at 1")
    if any(length < 0 for length in lengths) or math.prod(lengths) > _LARGEST:
        raise SqlError("54000", f"array size exceeds the maximum allowed ({_LARGEST})")
    if 0 in lengths or not lengths:
        return ()
    room(100 * math.prod(lengths))  # its bytes are made one by one
    filled = item
    for length in reversed(lengths):
        filled = (filled,) * length
    return tuple(filled)


@per_value("trim_array", (ANYARRAY, INT4), ANYARRAY)
def trim_array(array: Array, count: int) -> Array:
    if not 0 <= count <= len(array):
        raise SqlError("2202E", f"number of elements to trim must be between 0 and {len(array)}")
    return array[: len(array) - count]


def _classes(site: CallSite, array: Array) -> set[Any]:
    # NULL elements equal nothing
    element = _element(site.args[0])
    return {_class(element, item) for item in flatten(array, element.kind) if item is not None}


@per_value("@>", (ANYARRAY, ANYARRAY), BOOL, needs_site=True)
def array_contains(site: CallSite, left: Array, right: Array) -> bool:
    if None in flatten(right, _element(site.args[0]).kind):
        return False
    return _classes(site, right) <= _classes(site, left)


@per_value("<@", (ANYARRAY, ANYARRAY), BOOL, needs_site=True)
def array_contained(site: CallSite, left: Array, right: Array) -> bool:
    return array_contains(site, right, left)


@per_value("&&", (ANYARRAY, ANYARRAY), BOOL, needs_site=True)
def array_overlaps(site: CallSite, left: Array, right: Array) -> bool:
    return not _classes(site, left).isdisjoint(_classes(site, right))
