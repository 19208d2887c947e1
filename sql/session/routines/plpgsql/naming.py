"""What each kind of statement is called in the context of errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sql.syntax.plpgsql import nodes

_NAMES: Final[Mapping[type, str]] = {
    nodes.Block: "statement block", nodes.Assign: "assignment", nodes.If: "IF", nodes.Case: "CASE",
    nodes.ForRange: "FOR with integer loop variable", nodes.ForCursor: "FOR over cursor",
    nodes.ForEach: "FOREACH over array", nodes.Return: "RETURN", nodes.ReturnNext: "RETURN NEXT",
    nodes.ReturnQuery: "RETURN QUERY", nodes.Raise: "RAISE", nodes.Assert: "ASSERT", nodes.Execute: "EXECUTE",
    nodes.Open: "OPEN", nodes.Call: "CALL", nodes.Close: "CLOSE", nodes.Null: "NULL",
}  # fmt: skip


def shown(node: nodes.Node) -> str:
    """The statement's name."""
    match node:
        case nodes.Loop():
            return "LOOP" if node.condition is None else "WHILE"
        case nodes.ForRows():
            return "FOR over EXECUTE statement" if node.dynamic else "FOR over SELECT rows"
        case nodes.Exit():
            return "CONTINUE" if node.again else "EXIT"
        case nodes.Sql():
            return "PERFORM" if node.perform else "SQL statement"
        case nodes.GetDiagnostics():
            return "GET STACKED DIAGNOSTICS" if node.stacked else "GET DIAGNOSTICS"
        case nodes.Fetch():
            return "MOVE" if node.into is None else "FETCH"
        case nodes.End():
            return "COMMIT" if node.commit else "ROLLBACK"
        case _:
            return _NAMES[type(node)]
