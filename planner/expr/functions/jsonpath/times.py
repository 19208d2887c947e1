"""The method datetime() of a jsonpath."""

from __future__ import annotations

from typing import Any

from ivm.errors import SqlError
from planner.expr.functions.jsonpath.errors import PathError, failing
from planner.expr.functions.jsonpath.moments import Moment, check_template, parse_moment
from storage.types.jsonpath.nodes import Item


def to_moment(item: Item, value: Any) -> Moment:
    """What a string says by the method's template. Raises PathError, and SqlError for a wrong template."""
    if not isinstance(value, str):
        raise failing("22031", "jsonpath item method .datetime() can only be applied to a string")
    template = item.args[0].value if item.args else None
    if template is not None:
        check_template(template)
    try:
        return parse_moment(value, template)
    except SqlError as error:
        raise PathError(error) from None
