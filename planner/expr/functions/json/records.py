"""JSON → SQL values, by the input functions of their types (``populate_record`` in jsonfuncs.c)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ivm.errors import SqlError
from ivm.words import Kind, SqlType
from planner.expr.functions.json.trees import ABSENT, Tree
from storage.types.arrays import Row
from storage.types.text import parse_datum
from storage.types.text_json import canonical_json
from storage.types.text_style import TextStyle


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands, for errors: the key of its column, and the indices in the arrays below."""

    key: str | None = None
    indices: tuple[int, ...] = ()

    @property
    def hint(self) -> str | None:
        """The hint of an error about the value."""
        element = "".join(f"[{index}]" for index in self.indices)
        if self.key is None:
            return f"See the array element {element}." if element else None
        return (
            f'See the array element {element} of key "{self.key}".'
            if element
            else f'See the value of key "{self.key}".'
        )


def populated(
    tree: Tree, document: Any, type_: SqlType, style: TextStyle, place: Place = Place(), base: Row | None = None
) -> Any:
    """A document as a datum of the type; None for null. ``base``: as in ``populated_row``. Raises 22P02, 22023, and the
    errors of input functions."""
    kind = tree.kind(document)
    if kind == "null":
        return None
    match type_.kind:
        case Kind.JSON:
            return tree.datum(document)
        case Kind.JSONB:
            return canonical_json(tree.datum(document))
        case Kind.ARRAY if kind == "array":
            return _array(tree, document, type_, style, place)
        case Kind.ARRAY if kind != "string":
            raise _no_array(place)
        case Kind.RECORD if type_.fields and kind != "string":
            return populated_row(tree, document, type_, base, style)
        case _:
            return parse_datum(type_, tree.text(document) or "", style)


def populated_row(tree: Tree, document: Any, type_: SqlType, base: Row | None, style: TextStyle) -> Row:
    """An object as a row. ``base``: has the values of keys that are not there. Raises 22023 for anything else."""
    kind = tree.kind(document)
    if kind != "object":
        what = "an array" if kind == "array" else "a scalar"
        raise SqlError("22023", f"cannot call populate_composite on {what}")
    members = dict(tree.pairs(document))
    values: list[Any] = []
    for i, (name, field) in enumerate(type_.fields):
        found = members.get(name, ABSENT)
        if found is ABSENT:
            values.append(None if base is None else base[i])
        else:
            inner = base[i] if base is not None and field.kind is Kind.RECORD else None
            values.append(populated(tree, found, field, style, Place(name), inner))
    return Row(values)


def _no_array(place: Place) -> SqlError:
    return SqlError("22P02", "expected JSON array", hint=place.hint)


def _dimensions(tree: Tree, document: Any) -> int:
    """How deep an array is nested: as deep as the first of its items that is no array, or an empty array."""
    count = 1
    while items := tree.items(document):
        document = items[0]
        if tree.kind(document) != "array":
            break
        count += 1
    return count


def _array(tree: Tree, document: Any, type_: SqlType, style: TextStyle, place: Place) -> tuple[Any, ...]:
    """An array of arrays where the JSON is one."""
    assert type_.element is not None, "an array has an element's type"
    return _level(tree, document, type_.element, style, place, _dimensions(tree, document))


def _level(tree: Tree, part: Any, element: SqlType, style: TextStyle, place: Place, depth: int) -> tuple[Any, ...]:
    """An array of so many dimensions."""
    if tree.kind(part) != "array":
        raise _no_array(place)
    made: list[Any] = []
    for i, item in enumerate(tree.items(part)):
        inner = replace(place, indices=(*place.indices, i))
        if depth > 1:
            made.append(_level(tree, item, element, style, inner, depth - 1))
        else:
            made.append(populated(tree, item, element, style, inner))
    if depth > 1 and len({len(item) for item in made}) > 1:
        detail = "Multidimensional arrays must have sub-arrays with matching dimensions."
        raise SqlError("22P02", "malformed JSON array", detail)
    return () if depth > 1 and not any(made) else tuple(made)


def no_row_type(name: str) -> SqlError:
    """For a record of which nothing says what its columns are."""
    return SqlError(
        "0A000", f"could not determine row type for result of {name}",
        hint="Provide a non-null record argument, or call the function in the FROM clause using a column definition "
        "list.",
    )  # fmt: skip
