"""A view's query in the form of pg_get_viewdef: the original text, with the present names of relations and columns."""

from __future__ import annotations

from planner.identifiers import quoted
from sql.bind.statement import bind_statement
from sql.catalog.catalog import Catalog, Relation, RelationReference
from sql.catalog.search_path import Pinned, SearchPathReader
from sql.parse import StatementText
from sql.statements.queries import Query
from sql.syntax.lexing.keywords import NOT_A_COLUMN
from sql.syntax.lexing.lexer import Token, TokenKind, tokenize
from sql.system.state import SystemState, all_relations


def view_definition(view: Relation, state: SystemState) -> str:
    """The query, with a semicolon. A renamed relation appears under its new name, aliased to the name that the text
    uses; one with renamed columns becomes a subquery that aliases them."""
    relations = {r.id: r for r, _ in all_relations(state)}
    text = _in_new_names(view, relations, state).strip().removesuffix(";")
    columns = tuple(c.name for c in view.columns)
    if _output(view, state) != columns:
        names = ", ".join(map(quoted, columns))
        text = f"SELECT * FROM ({text}) {quoted(view.name)}({names})"
    return f" {text};"


def _output(view: Relation, state: SystemState) -> tuple[str, ...]:
    """The view's column names by its definition alone."""
    bound = bind_statement(StatementText(view.definition or "", 0), Pinned(catalog_of(state), view)).statement
    assert isinstance(bound, Query), "a view's definition is a query"
    return tuple(c.name for c in bound.columns)


def catalog_of(state: SystemState) -> SearchPathReader:
    """A reader of the relations that the state knows."""
    relations = {r.id: r for r, _ in all_relations(state)}
    others = {r.id: r for r in (*state.routines(), *state.types())}
    return SearchPathReader(Catalog(relations | others, {(r.schema_name, r.name): r for r in relations.values()}))


def _in_new_names(view: Relation, relations: dict[int, Relation], state: SystemState) -> str:
    text = view.definition or ""
    tokens: list[Token] | None = None
    by_name = {(r.schema_name, r.name): r.id for r in relations.values()}
    edits: dict[int, tuple[int, str]] = {}
    for reference in view.references:
        meant = relations.get(reference.relation)
        if meant is None or _stands(reference, meant, by_name, state):
            continue
        tokens = tokenize(text) if tokens is None else tokens
        for at in reference.places:
            end, behind = _extent(tokens, at)
            edits[at] = end, _named(reference, meant, by_name, state, behind)
    for at in sorted(edits, reverse=True):
        end, new = edits[at]
        text = text[:at] + new + text[end:]
    return text


def _stands(
    reference: RelationReference, meant: Relation, by_name: dict[tuple[str, str], int], state: SystemState
) -> bool:
    """Whether the text's own name still finds the relation in this session."""
    if reference.columns or meant.name != reference.name:
        return False
    return reference.schema_name in (meant.schema_name, "pg_temp") or (
        reference.schema_name is None and _visible(meant, by_name, state)
    )


def _visible(meant: Relation, by_name: dict[tuple[str, str], int], state: SystemState) -> bool:
    found = (by_name.get((place, meant.name)) for place in state.path.places)
    return next((i for i in found if i is not None), None) == meant.id


def _extent(tokens: list[Token], at: int) -> tuple[int, Token | None]:
    """The end of the name that starts at an offset, and the token after it."""
    i = next(i for i, token in enumerate(tokens) if token.start == at)
    while i + 2 < len(tokens) and tokens[i + 1].value == "." and tokens[i + 1].kind is TokenKind.SYMBOL:
        i += 2
    return tokens[i].end, tokens[i + 1] if i + 1 < len(tokens) else None


def _named(
    reference: RelationReference,
    meant: Relation,
    by_name: dict[tuple[str, str], int],
    state: SystemState,
    behind: Token | None,
) -> str:
    """The replacement of a name: the relation's present name, aliased to the old name unless the text has an alias."""
    name = quoted(meant.name)
    if reference.schema_name is not None or not _visible(meant, by_name, state):
        name = f"{quoted(meant.schema_name)}.{name}"
    if reference.columns:
        pairs = ((old, c.name) for old, c in zip(reference.columns, meant.columns, strict=True) if old)
        listed = ", ".join(quoted(new) if new == old else f"{quoted(new)} AS {quoted(old)}" for old, new in pairs)
        name = f"(SELECT {listed} FROM {name})"
    elif meant.name == reference.name:
        return name
    return name if _is_alias(behind) else f"{name} {quoted(reference.name)}"


def _is_alias(token: Token | None) -> bool:
    if token is None or token.kind is TokenKind.QUOTED:
        return token is not None
    return token.kind is TokenKind.WORD and (token.value == "as" or token.value not in NOT_A_COLUMN)
