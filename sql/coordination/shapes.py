"""Finds the plan of a statement again that differs from an earlier one only in its constants.

Many clients write values into their texts: psql, drivers that escape parameters themselves, pgbench in its simple mode.
A statement's *shape* is its tokens without the values of its constants. The second statement of a shape is bound twice:
as it is, and with a parameter in place of each constant that is still there, as a literal, in the bound statement. If
the two differ in nothing else, and their plans have the same form, further statements of the shape run by the second
plan, as prepared statements do. What a constant has decided (the column of ORDER BY 2, a type's modifier) is part of
what must be the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sql.catalog.catalog import Catalog
from sql.catalog.search_path import SearchPath
from sql.coordination.prepared import Prepared, Statements, shared
from sql.coordination.shape_variants import CONSTANTS, Learner, Variant
from sql.engine.snapshot import Published
from sql.parse import StatementText
from sql.settings.settings import Settings
from sql.syntax.lexing.lexer import Token

LONGEST: Final = 100_000
"""Characters of a statement that has a shape."""
MOST_CONSTANTS: Final = 5_000
_SHAPES: Final = 2_000
_PLANS: Final = 1_000
_CHARACTERS: Final = 1 << 20
"""Of all known shapes together: a limit on what they take, as the one on their plans."""
_VARIANTS: Final = 8
"""Of one shape: statements that differ in what must be the same."""
BEFORE: Final = 1
"""So many statements of a shape are bound as they are: most come once."""
_TRIES: Final = 24
"""After so many statements that no variant fitted, a shape is given up."""
_LARGE: Final = 20_000
_FEW_TRIES: Final = 4
"""The same, for statements of more than ``_LARGE`` characters: each try binds one several times."""
_FIRST: Final = frozenset({"select", "insert", "update", "delete", "values", "with", "("})
Found = tuple[Prepared, tuple[object, ...]]


@dataclass(slots=True)
class Shape:
    """What is known of the statements of one shape, over one catalog. ``tries``: how many no variant fitted.
    ``kept``: until it is forgotten."""

    characters: int
    variants: list[Variant] = field(default_factory=list)
    tries: int = 0
    kept: bool = True

    @property
    def most(self) -> int:
        """The number of tries after which it is given up."""
        return _TRIES if self.characters <= _LARGE else _FEW_TRIES


class Shapes:
    """The shapes of one database's statements."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._known: OrderedDict[tuple[object, ...], Shape] = OrderedDict()
        self._characters = self._plans = 0
        self._newest: object = None
        self._guard = threading.Lock()
        """Long statements are bound on threads of their own."""

    def find(
        self, statement: StatementText, catalog: Catalog, path: SearchPath, settings: Settings, published: Published
    ) -> Found | None:
        """A bound statement with parameters, and theirs, that does what a statement without any does. None: bind it.
        Raises SqlError as the statement does."""
        constants = _constants(statement)
        if not constants or self._statements.known(statement, catalog, path, settings) is not None:
            return None
        tokens, style = statement.tokens or (), settings.constants
        shape = self._look(_key(statement, catalog, path, settings), statement.text)
        found = self._fitting(shape, tokens, settings)
        if found is not None:
            return found
        shape.tries += 1
        if not BEFORE < shape.tries <= shape.most:
            return None
        learner = Learner(self._statements, statement, tokens, constants, catalog, path, settings, published)
        variant = learner.variant()
        if variant is None:
            shape.tries = shape.most if learner.hopeless else shape.tries
            return None
        self._add(shape, variant)
        values = variant.values(tokens, style)
        return None if values is None else (variant.prepared, values)

    def known(self, statement: StatementText, catalog: Catalog, path: SearchPath, settings: Settings) -> Found | None:
        """The same, if nothing needs to be bound for it."""
        if not _constants(statement):
            return None
        with self._guard:
            shape = self._known.get(_key(statement, catalog, path, settings))
        return None if shape is None else self._fitting(shape, statement.tokens or (), settings)

    def learns(self, statement: StatementText, catalog: Catalog, path: SearchPath, settings: Settings) -> bool:
        """Whether ``find`` would bind and plan the statement several times, to know more of its shape."""
        if not _constants(statement):
            return False
        with self._guard:
            shape = self._known.get(_key(statement, catalog, path, settings))
        return BEFORE <= (0 if shape is None else shape.tries) < (_TRIES if shape is None else shape.most)

    def _fitting(self, shape: Shape, tokens: Sequence[Token], settings: Settings) -> Found | None:
        for variant in shape.variants:
            values = variant.values(tokens, settings.constants)
            if values is not None:
                variant.prepared.check_secured(settings)
                return variant.prepared, values
        return None

    def _look(self, key: tuple[object, ...], text: str) -> Shape:
        with self._guard:
            found = self._known.get(key)
            if found is not None:
                self._known.move_to_end(key)
                return found
            self._forget_old(key[1])
            found = self._known[key] = Shape(len(text))
            self._characters += len(text)
            self._shrink()
            return found

    def _add(self, shape: Shape, variant: Variant) -> None:
        with self._guard:
            if not shape.kept:
                return
            before = len(shape.variants)
            shape.variants = [variant, *shape.variants[: _VARIANTS - 1]]
            self._plans += len(shape.variants) - before
            self._shrink()

    def _shrink(self) -> None:
        while len(self._known) > 1 and (
            len(self._known) > _SHAPES or self._characters > _CHARACTERS or self._plans > _PLANS
        ):
            self._forget(next(iter(self._known)))

    def _forget(self, key: tuple[object, ...]) -> None:
        shape = self._known.pop(key)
        shape.kept = False
        self._characters -= shape.characters
        self._plans -= len(shape.variants)

    def _forget_old(self, version: object) -> None:
        """Forgets what nobody can ask for again, when the first shape over a catalog comes."""
        if version == self._newest:
            return
        self._newest = version
        for key in [key for key in self._known if key[1] != version and not self._statements.has(key[1])]:
            self._forget(key)


def _constants(statement: StatementText) -> list[int]:
    """The tokens that are constants; none if the statement has no shape."""
    tokens = statement.tokens
    if tokens is None or len(statement.text) > LONGEST or tokens[0].value not in _FIRST:
        return []
    found = [i for i, token in enumerate(tokens) if token.kind in CONSTANTS]
    return found if len(found) <= MOST_CONSTANTS else []


def _key(statement: StatementText, catalog: Catalog, path: SearchPath, settings: Settings) -> tuple[object, ...]:
    form = tuple([token[0] if token[0] in CONSTANTS else token[:2] for token in statement.tokens or ()])
    where = shared(path, catalog, statement.text)
    return form, catalog.version, where, settings.constants, settings.planning
