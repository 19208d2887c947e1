"""Our lexer's tokens as sqlglot's parser wants them.

Only PostgreSQL's keywords become sqlglot keywords, so that what is a keyword in some other dialect alone (QUALIFY,
PIVOT, TOP …) stays a name. A keyword that sqlglot has no token type for still gets one that is no name.
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token as ParserToken
from sqlglot.tokenizer_core import TokenType

from sql.syntax.lexing.keywords import NOT_A_COLUMN, RESERVED
from sql.syntax.lexing.lexer import Token, TokenKind

OTHER_OPERATOR: Final = TokenType.DAMP
"""Every operator without a precedence of its own."""
RESERVED_WORD: Final = TokenType.BACKSLASH
"""A reserved word that sqlglot's parser does not look for by type."""
FUNCTION_WORD: Final = TokenType.DOTCARET
"""The same for a word that may name functions and types, but not columns."""
GROUPS_WORD: Final = TokenType.PERCENT
"""GROUPS of a window's frame, which is no window's name there."""

WORDS: Final = {
    "all": TokenType.ALL, "and": TokenType.AND, "any": TokenType.ANY, "array": TokenType.ARRAY,
    "as": TokenType.ALIAS, "asc": TokenType.ASC, "between": TokenType.BETWEEN, "case": TokenType.CASE,
    "collate": TokenType.COLLATE, "constraint": TokenType.CONSTRAINT, "create": TokenType.CREATE,
    "cross": TokenType.CROSS, "default": TokenType.DEFAULT, "delete": TokenType.DELETE, "desc": TokenType.DESC,
    "distinct": TokenType.DISTINCT, "drop": TokenType.DROP, "else": TokenType.ELSE, "end": TokenType.END,
    "except": TokenType.EXCEPT, "exists": TokenType.EXISTS, "false": TokenType.FALSE, "fetch": TokenType.FETCH,
    "filter": TokenType.FILTER, "for": TokenType.FOR, "from": TokenType.FROM, "full": TokenType.FULL,
    "having": TokenType.HAVING, "ilike": TokenType.ILIKE, "in": TokenType.IN, "inner": TokenType.INNER,
    "insert": TokenType.INSERT, "intersect": TokenType.INTERSECT, "into": TokenType.INTO, "is": TokenType.IS,
    "isnull": TokenType.ISNULL, "join": TokenType.JOIN, "lateral": TokenType.LATERAL, "left": TokenType.LEFT,
    "like": TokenType.LIKE, "limit": TokenType.LIMIT, "natural": TokenType.NATURAL, "not": TokenType.NOT,
    "notnull": TokenType.NOTNULL, "null": TokenType.NULL, "offset": TokenType.OFFSET, "on": TokenType.ON,
    "only": TokenType.ONLY, "operator": TokenType.OPERATOR, "or": TokenType.OR, "ordinality": TokenType.ORDINALITY,
    "outer": TokenType.OUTER, "over": TokenType.OVER, "overlaps": TokenType.OVERLAPS, "range": TokenType.RANGE,
    "recursive": TokenType.RECURSIVE, "replace": TokenType.REPLACE, "returning": TokenType.RETURNING,
    "right": TokenType.RIGHT, "row": TokenType.ROW, "rows": TokenType.ROWS, "select": TokenType.SELECT,
    "set": TokenType.SET, "similar": TokenType.SIMILAR_TO, "some": TokenType.SOME, "table": TokenType.TABLE,
    "tablesample": TokenType.TABLE_SAMPLE, "temp": TokenType.TEMPORARY, "temporary": TokenType.TEMPORARY,
    "then": TokenType.THEN, "true": TokenType.TRUE, "truncate": TokenType.TRUNCATE, "union": TokenType.UNION,
    "unique": TokenType.UNIQUE, "update": TokenType.UPDATE, "using": TokenType.USING, "values": TokenType.VALUES,
    "view": TokenType.VIEW, "when": TokenType.WHEN, "where": TokenType.WHERE, "window": TokenType.WINDOW,
    "with": TokenType.WITH, "groups": GROUPS_WORD,
}  # fmt: skip

_PAIRS: Final = {
    ("group", "by"): TokenType.GROUP_BY,
    ("order", "by"): TokenType.ORDER_BY,
    ("partition", "by"): TokenType.PARTITION_BY,
    ("primary", "key"): TokenType.PRIMARY_KEY,
    ("foreign", "key"): TokenType.FOREIGN_KEY,
}
_OPENERS: Final = frozenset(first for first, _ in _PAIRS)
PAIR_TYPES: Final = frozenset(_PAIRS.values())

SYMBOLS: Final = {
    "(": TokenType.L_PAREN, ")": TokenType.R_PAREN, "[": TokenType.L_BRACKET, "]": TokenType.R_BRACKET,
    ",": TokenType.COMMA, ";": TokenType.SEMICOLON, ".": TokenType.DOT, ":": TokenType.COLON,
    "::": TokenType.DCOLON, ":=": TokenType.COLON_EQ, "..": TokenType.DOTCOLON, "=>": TokenType.FARROW,
    "<": TokenType.LT, ">": TokenType.GT, "=": TokenType.EQ, "<=": TokenType.LTE, ">=": TokenType.GTE,
    "<>": TokenType.NEQ, "+": TokenType.PLUS, "-": TokenType.DASH, "*": TokenType.STAR, "/": TokenType.SLASH,
    "%": TokenType.MOD, "^": TokenType.CARET,
}  # fmt: skip

_KINDS: Final = {
    TokenKind.QUOTED: TokenType.IDENTIFIER,
    TokenKind.NUMBER: TokenType.NUMBER,
    TokenKind.STRING: TokenType.STRING,
    TokenKind.PARAMETER: TokenType.PARAMETER,
}

NOT_WORDS: Final = frozenset({*SYMBOLS.values(), OTHER_OPERATOR, *_KINDS.values(), TokenType.SENTINEL}) - {
    TokenType.IDENTIFIER
}
"""The types of what is no word at all: what cannot even be a label after AS."""


def word_type(word: str) -> TokenType:
    """The type of one unquoted, folded word."""
    known = WORDS.get(word)
    if known is not None:
        return known
    if word in NOT_A_COLUMN:
        return RESERVED_WORD if word in RESERVED else FUNCTION_WORD
    return TokenType.VAR


def parser_tokens(tokens: list[Token]) -> list[ParserToken]:
    """The same tokens for sqlglot, without END; the keywords that it wants in pairs (GROUP BY) are one token."""
    result: list[ParserToken] = []
    index, count = 0, len(tokens)
    while index < count:
        kind, value, start, end = tokens[index]
        index += 1
        if kind is TokenKind.WORD:
            type_ = word_type(value)
            if value in _OPENERS and index < count and tokens[index].kind is TokenKind.WORD:
                pair = _PAIRS.get((value, tokens[index].value))
                if pair is not None:
                    value, type_, end = f"{value} {tokens[index].value}", pair, tokens[index].end
                    index += 1
        elif kind is TokenKind.SYMBOL:
            type_ = SYMBOLS.get(value, OTHER_OPERATOR)
        elif kind is TokenKind.END:
            break
        else:
            type_ = _KINDS[kind]
        result.append(ParserToken(type_, value, 1, 1, start, end - 1))
    return result
