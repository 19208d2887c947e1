"""What statements of one shape share: the plan, and how their constants become its parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ivm.errors import SqlError
from ivm.graph import Arrange, Concat, Errors, Threshold
from ivm.words import Kind, SqlType
from planner.expr.scalar import Call, Literal, Parameter, Scalar
from planner.logical.nodes import Rel
from planner.physical.nodes import Constants, Map
from planner.transform.branches import together
from sql.bind.constant_lists import array_beside
from sql.bind.literals import Origin, Origins, is_deferred, number, tracing
from sql.catalog.catalog import Catalog
from sql.catalog.search_path import SearchPath
from sql.coordination.bound_trees import Comparison, literals, with_parameters
from sql.coordination.prepared import Prepared, Statements
from sql.engine.snapshot import Published
from sql.parse import StatementText, parse
from sql.settings.settings import Settings
from sql.statements.queries import Query
from sql.statements.statements import Delete, Insert, Statement, Update
from sql.syntax.lexing.lexer import Token, TokenKind
from sql.syntax.nodes.constant_items import ConstantItems
from storage.types.text import parse_datum
from storage.types.text_style import TextStyle

CONSTANTS: Final = (TokenKind.NUMBER, TokenKind.STRING, TokenKind.LIST)

_SMALL: Final = (Constants, Arrange, Threshold, Map, Errors, Concat)
"""What a plan may have for parameters, which may be equal, and whose arithmetic may fail."""
_WITH_ZONE: Final = (Kind.TIMESTAMPTZ, Kind.TIMETZ)


class OtherError(Exception):
    """A constant is of another kind than that of the statement that a variant was made of."""


@dataclass(frozen=True, slots=True)
class Place:
    """A constant that a parameter stands for: its token, and the literal that it becomes.

    ``given``: the type that a number has by itself; None for a string. ``negative``: a minus before it is part of it.
    ``target``: the type as which a text is read when the plan runs, or beside which a list stands.
    """

    token: int
    type: SqlType
    given: SqlType | None
    negative: bool
    target: SqlType | None

    def read(self, token: Token, style: TextStyle) -> object:
        """The datum of a constant. Raises OtherError, SqlError: it does not become such a literal."""
        if token.kind is TokenKind.LIST:
            assert self.target is not None
            found = array_beside(self.target, ConstantItems(token.value, token.start))
            if found is None or found.type != self.type:
                raise OtherError
            return found.value
        if self.given is None:
            if is_deferred(self.type, token.value):
                raise OtherError
            if self.target is not None:  # an error has its position when the statement is bound
                parse_datum(self.target, token.value, style)
            return parse_datum(self.type, token.value, style)
        literal = number(f"-{token.value}" if self.negative else token.value)
        if literal.type != self.given:
            raise OtherError
        if literal.type == self.type:
            return literal.value
        return parse_datum(self.type, str(literal.value), style)


Group = tuple[Place, ...]
"""Constants that are equal, for which one parameter stands."""


@dataclass(frozen=True, slots=True)
class Variant:
    """How statements of a shape run whose other constants are ``fixed``. ``places``: those of each parameter."""

    fixed: tuple[tuple[int, str], ...]
    places: tuple[Group, ...]
    prepared: Prepared

    def values(self, tokens: Sequence[Token], style: TextStyle) -> tuple[object, ...] | None:
        """The parameters of a statement; None: it is another one."""
        for token, value in self.fixed:
            if tokens[token].value != value:
                return None
        try:
            return tuple([_value(places, tokens, style) for places in self.places])
        except (SqlError, OtherError):
            return None


def _value(places: Group, tokens: Sequence[Token], style: TextStyle) -> object:
    first = tokens[places[0].token]
    if any(tokens[place.token].value != first.value for place in places):
        raise OtherError
    return places[0].read(first, style)


def _standing_for(place: Place, index: int) -> Scalar:
    parameter = Parameter(index, place.type, nullable=False)
    if place.target is None or place.type.element is not None:  # it stands for itself, or for a list
        return parameter
    return Call("cast", (parameter,), place.target, nullable=False)


def _asked(prepared: Prepared) -> tuple[object, ...]:
    """What binding a statement has looked up, and what its role needs for it, some of which a constant may name."""
    denied = None if prepared.denied is None else (prepared.denied.sqlstate, prepared.denied.message)
    return prepared.seen, prepared.stored, denied, prepared.secured, prepared.shows_rows


class Learner:
    """Makes a variant of a statement."""

    def __init__(
        self, statements: Statements, statement: StatementText, tokens: Sequence[Token], constants: list[int],
        catalog: Catalog, path: SearchPath, settings: Settings, published: Published,
    ) -> None:  # fmt: skip
        self._statements, self._statement, self._tokens, self._constants = statements, statement, tokens, constants
        self._over, self._style = (catalog, path, settings), settings.constants
        self._published = published
        self.hopeless = False
        """Whether its constants make one of many branches of UNION ALL, which a plan for any constants could not."""

    def variant(self) -> Variant | None:
        """The variant that the statement belongs to; None: there is none."""
        text = replace(self._statement, tree=parse(self._statement), offset=0)
        with tracing() as origins:
            template = self._statements.bind(text, *self._over)
        statement = template.bound.statement
        if not isinstance(statement, Query | Insert | Update | Delete) or template.bound.parameters:
            return None
        rel: Rel = statement.rel if isinstance(statement, Query) else statement.source
        self.hopeless = together(rel) is not rel
        if (
            self.hopeless
            or template.bound.interpreted
            or (isinstance(statement, Query) and (statement.locks or statement.as_of))
        ):
            return None
        for groups in self._groupings(statement, origins):
            found = self._general(text, groups)
            if found is not None and self._is_alike(template, found, groups):
                lifted = {place.token for group in groups for place in group}
                fixed = tuple((i, self._tokens[i].value) for i in self._constants if i not in lifted)
                return Variant(fixed, tuple(groups), found)
        return None

    def _groupings(self, statement: Statement, origins: Origins) -> Iterator[list[Group]]:
        """The constants that may become parameters, in groups that share one. Groups of several are those of equal
        constants: a + 1 may have to be the same in GROUP BY and among the columns."""
        known = [origins.of[id(literal)][1] for literal in literals(statement) if id(literal) in origins.of]
        remaining = self._places(origin for of in known for origin in of)
        if not remaining:
            return
        yield [(place,) for place in remaining]
        groups: dict[object, list[Place]] = {}
        for place in self._places(origins.last.values()):
            groups.setdefault((self._tokens[place.token].value, replace(place, token=0)), []).append(place)
        equal = [tuple(group) for group in groups.values() if not set(remaining).isdisjoint(group)]
        if len(equal) < len(remaining) or any(len(group) > 1 for group in equal):
            yield equal
        plain = self._places(of[0] for of in known if len(of) == 1)
        if plain and len(plain) < len(remaining):
            yield [(place,) for place in plain]

    def _places(self, origins: Iterable[Origin]) -> list[Place]:
        """Those of the constants that are nothing but the literals that they have become."""
        by_start = {token.start: i for i, token in enumerate(self._tokens)}
        found: dict[int, Place | None] = {}
        for origin in origins:
            token = by_start.get(origin.at)
            if token is None:
                continue
            negative = self._tokens[token].value == "-" and self._tokens[token].kind is TokenKind.SYMBOL
            token += negative
            if self._tokens[token].kind not in CONSTANTS:
                continue
            place = self._place(token, negative, origin)
            found[token] = place if found.setdefault(token, place) == place else None
        return [place for _, place in sorted(found.items()) if place is not None]

    def _place(self, token: int, negative: bool, origin: Origin) -> Place | None:
        text, is_number = self._tokens[token].value, self._tokens[token].kind is TokenKind.NUMBER
        given = number(f"-{text}" if negative else text).type if is_number else None
        is_list = self._tokens[token].kind is TokenKind.LIST
        if origin.target is not None and not is_list and origin.target.kind not in _WITH_ZONE:
            return None
        place = Place(token, origin.literal.type, given, negative, origin.target)
        try:
            value = place.read(self._tokens[token], self._style)
        except (SqlError, OtherError):
            return None
        return place if Literal(value, place.type) == origin.literal else None

    def _general(self, text: StatementText, groups: Sequence[Group]) -> Prepared | None:
        """The statement with a parameter for each group of constants."""
        by_start = {
            self._tokens[place.token - place.negative].start: _standing_for(place, index)
            for index, group in enumerate(groups, 1)
            for place in group
        }
        try:
            found = self._statements.bind(replace(text, tree=with_parameters(text.tree, by_start)), *self._over)
        except SqlError:
            return None
        found.bound = replace(found.bound, parameters=tuple(group[0].type for group in groups))
        return found

    def _is_alike(self, template: Prepared, found: Prepared, groups: Sequence[Group]) -> bool:
        """Whether a statement differs from the template in parameters alone, and runs as it does."""
        values = [_value(group, self._tokens, self._style) for group in groups]
        if not Comparison(values).same(found.bound.statement, template.bound.statement):
            return False
        if _asked(found) != _asked(template):
            return False
        try:
            forms = [self._form(each) for each in (template, found)]
        except SqlError:
            return False
        return forms[0] == forms[1] and template.counted == found.counted

    def _form(self, prepared: Prepared) -> Counter[type]:
        """What the plan of a statement consists of, but for what is small."""
        statement = prepared.bound.statement
        assert isinstance(statement, Query | Insert | Update | Delete)
        rel: Rel = statement.rel if isinstance(statement, Query) else statement.source
        found = Counter([type(node) for node in prepared.plan_of(rel, self._published).nodes])
        for kind in _SMALL:
            del found[kind]
        return found
