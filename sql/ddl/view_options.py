"""ALTER VIEW of options and of columns' defaults."""

from __future__ import annotations

from dataclasses import replace

from sql.engine.writer import Writer
from sql.statements.definitions import AlterView


def alter_view(writer: Writer, statement: AlterView) -> None:
    """Change a view's options and defaults, which only statements that change rows through it read."""
    view = statement.view
    assert view is not None, "the caller has looked"
    pairs = zip(view.columns, statement.defaults, strict=True)
    columns = tuple(replace(column, default=default) for column, default in pairs)
    writer.redefine(replace(view, options=statement.options, columns=columns))
