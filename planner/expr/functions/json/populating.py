"""json_populate_record and jsonb_populate_record: a row of a given type, from an object."""

from __future__ import annotations

from typing import Any

from ivm.errors import SqlError
from ivm.words import BOOL, Kind
from planner.expr.functions.casts.text import style_of
from planner.expr.functions.json.records import no_row_type, populated_row
from planner.expr.functions.json.trees import TREES, Tree
from planner.expr.functions.table import ANYELEMENT, CallSite, per_value


def _register(tree: Tree) -> None:
    name = f"{tree.prefix}_populate_record"

    def populate(site: CallSite, base: Any, value: str | None, as_text: bool | None = False) -> Any:
        type_ = site.args[0]
        if type_.kind is not Kind.RECORD:
            raise SqlError("42804", f"first argument of {name} must be a row type")
        if value is None:
            return base
        if not type_.fields:
            raise no_row_type(name)
        return populated_row(tree, tree.load(value), type_, base, style_of(site))

    for args in ((ANYELEMENT, tree.type), (ANYELEMENT, tree.type, BOOL)):
        add = per_value(name, args, ANYELEMENT, strict=False, needs_site=True, volatility="settings", makes_row=True)
        add(populate)


for _tree in TREES:
    _register(_tree)
