"""The short form of ``tests.programs.fuzz``, and what its statements reach of the grammar."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import random
from dataclasses import fields, is_dataclass

import sql.syntax.nodes
from ivm.errors import SqlError
from sql.parse import parse, split
from tests.programs.fuzz import run
from tests.support.profiles import scaled
from tests.support.statements import FORMS, Statements

NEVER_DRAWN = {
    "CreateFromStatement",  # reads files
    "SubscribeStatement",  # does not end
    "Given",  # the binder's own
    "Param",  # simple queries have none but in PREPARE's text
}


def test_no_statement_fails_internally() -> None:
    found = run(scaled(350), 7)
    assert not found.first
    assert found.states["00000"] > found.done // 6


def test_statements_are_drawn_of_every_node_of_the_grammar() -> None:
    drawn = Statements(random.Random(3))
    seen: set[str] = set()
    statements = [form for name in ("define", "utility", "change", "viewed") for form in FORMS[name]]
    for form in (*statements * 2, *["{statement}"] * 700):
        drawn.scope = []
        try:
            for piece in split(drawn.fill(form)):
                _collect(parse(piece), seen)
        except SqlError:
            continue
    missing = _nodes() - seen - NEVER_DRAWN
    assert not missing, f"add forms to tests/support/statement_forms.txt: {missing}"


def _nodes() -> set[str]:
    found: set[str] = set()
    for module in pkgutil.iter_modules(sql.syntax.nodes.__path__):
        loaded = importlib.import_module(f"sql.syntax.nodes.{module.name}")
        mine = inspect.getmembers(loaded, inspect.isclass)
        found |= {name for name, kind in mine if kind.__module__ == loaded.__name__ and is_dataclass(kind)}
    return found


def _collect(node: object, seen: set[str]) -> None:
    if isinstance(node, tuple | list | frozenset):
        for item in node:
            _collect(item, seen)
    elif is_dataclass(node) and not isinstance(node, type):
        seen.add(type(node).__name__)
        for each in fields(node):
            _collect(getattr(node, each.name), seen)
