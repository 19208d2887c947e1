"""EXPLAIN's plan as a tree, in the forms that tools read: JSON, XML and YAML.

A node has PostgreSQL's keys where they mean the same (Node Type, Relation Name, Index Name, Actual Rows, Plans), and
its own label as Details. Node types are the operators' own names. There are no costs, as there are no estimates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.sax.saxutils import escape

Value = str | int | float

_NODE: Final = re.compile(r"(?:(?P<id>\d+) )?(?P<type>\w+):?(?: (?P<details>.*))?")
_AGAIN: Final = re.compile(r"node (\d+) again")
_INDEX: Final = re.compile(r"\bindex ([^;)]+)")
_READERS: Final = ("Table", "Get")


@dataclass(slots=True)
class PlanNode:
    """An operator: what is known of it, and its inputs."""

    properties: dict[str, Value]
    inputs: list[PlanNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Measured:
    """What running the statement took, in milliseconds. ``rows``: that it returned or changed."""

    rows: int
    planning: float
    execution: float
    timed: bool = True


def parsed(lines: Sequence[str]) -> tuple[list[PlanNode], list[str]]:
    """The trees of an explained plan, and the lines about the plan as a whole, which come last."""
    roots: list[PlanNode] = []
    above: list[tuple[int, PlanNode]] = []
    notes = []
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        if depth == 0 and roots and not line[:1].isdigit():
            notes.append(line)
            above.clear()
            continue
        node = PlanNode(_properties(line.strip()))
        while above and above[-1][0] >= depth:
            above.pop()
        (above[-1][1].inputs if above else roots).append(node)
        above.append((depth, node))
    return roots, notes


def _properties(label: str) -> dict[str, Value]:
    again = _AGAIN.fullmatch(label)
    if again is not None:
        return {"Node Type": "Again", "Node Id": int(again[1])}
    match = _NODE.fullmatch(label)
    if match is None:
        return {"Node Type": label}
    found: dict[str, Value] = {"Node Type": match["type"]}
    if match["id"] is not None:
        found["Node Id"] = int(match["id"])
    details = match["details"]
    if details and match["type"] in _READERS:
        found["Relation Name"] = details.split(" (")[0]
    if details and (index := _INDEX.search(details)) is not None:
        found["Index Name"] = index[1]
    if details:
        found["Details"] = details
    return found


def shown(lines: Sequence[str], form: str, measured: Measured | None, summary: bool) -> list[str]:
    """EXPLAIN's rows in a form: text, json, xml or yaml. ``summary``: with the times of planning and execution."""
    if form == "text":
        return [*lines, *_text(measured, summary)]
    roots, notes = parsed(lines)
    root = roots[0] if len(roots) == 1 else PlanNode({"Node Type": "Plans"}, roots)
    query: dict[str, object] = {"Plan": _nested(root, measured)}
    if notes:
        query["Notes"] = "; ".join(notes)
    if measured is not None and summary:
        query["Planning Time"] = round(measured.planning, 3)
        query["Execution Time"] = round(measured.execution, 3)
    if form == "json":
        return [json.dumps([query], indent=2, ensure_ascii=False)]
    if form == "xml":
        lines = ['<explain xmlns="http://www.postgresql.org/2009/explain">', *_xml("Query", query, 1), "</explain>"]
        return ["\n".join(lines)]
    return ["\n".join(_yaml(query, "- ", "  "))]


def _text(measured: Measured | None, summary: bool) -> Iterator[str]:
    if measured is not None:
        time = f"actual time={measured.execution:.3f} " if measured.timed else ""
        yield f"({time}rows={measured.rows} loops=1)"
        if summary:
            yield f"Planning Time: {measured.planning:.3f} ms"
            yield f"Execution Time: {measured.execution:.3f} ms"


def _nested(node: PlanNode, measured: Measured | None = None) -> dict[str, object]:
    found: dict[str, object] = dict(node.properties)
    if measured is not None:
        if measured.timed:
            found["Actual Total Time"] = round(measured.execution, 3)
        found |= {"Actual Rows": measured.rows, "Actual Loops": 1}
    if node.inputs:
        found["Plans"] = [_nested(n) for n in node.inputs]
    return found


def _xml(name: str, value: object, depth: int) -> Iterator[str]:
    space, tag = "  " * depth, name.replace(" ", "-")
    if isinstance(value, dict):
        yield f"{space}<{tag}>"
        for key, inner in value.items():
            yield from _xml(key, inner, depth + 1)
        yield f"{space}</{tag}>"
    elif isinstance(value, list):
        yield f"{space}<{tag}>"
        for inner in value:
            yield from _xml("Plan", inner, depth + 1)
        yield f"{space}</{tag}>"
    else:
        yield f"{space}<{tag}>{escape(str(value))}</{tag}>"


def _yaml(value: dict[str, object], first: str, other: str) -> Iterator[str]:
    lead = first
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield f"{lead}{key}: "
            yield from _yaml(inner, other + "  ", other + "  ")
        elif isinstance(inner, list):
            yield f"{lead}{key}: "
            for item in inner:
                yield from _yaml(item, other + "  - ", other + "    ")
        else:
            yield f"{lead}{key}: {json.dumps(inner, ensure_ascii=False) if isinstance(inner, str) else inner}"
        lead = other
