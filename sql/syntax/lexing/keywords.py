"""PostgreSQL 15's keyword classes (src/include/parser/kwlist.h), those that the grammar needs."""

from __future__ import annotations

from typing import Final

RESERVED: Final = frozenset(
    """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable
    desc distinct do else end except false fetch for foreign from grant group having in initially intersect into
    lateral leading limit localtime localtimestamp not null offset on only or order placing primary references
    returning select session_user some symmetric table then to trailing true union unique user using variadic
    when where window with
    """.split()  # noqa: SIM905
)
"""Cannot name a column, table or function without quotes."""

TYPE_OR_FUNCTION: Final = frozenset(
    """
    authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left
    like natural notnull outer overlaps right similar tablesample verbose
    """.split()  # noqa: SIM905
)
"""Can name functions and types, not columns or tables."""

COLUMN_ONLY: Final = frozenset(
    """
    between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout
    int integer interval least national nchar none normalize nullif numeric out overlay position precision real
    row setof smallint substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement
    xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
    """.split()  # noqa: SIM905
)
"""Can name columns and tables, not functions or types."""

NOT_A_COLUMN: Final = RESERVED | TYPE_OR_FUNCTION

NEEDS_AS: Final = frozenset(
    """
    array as char character create day except fetch filter for from grant group having hour intersect into
    isnull limit minute month notnull offset on order over overlaps precision returning second to union varying
    where window with within without year
    """.split()  # noqa: SIM905
)
"""Cannot be a result column's label without AS."""

NORMAL_FORMS: Final = ("nfc", "nfd", "nfkc", "nfkd")
"""Unicode's, in NORMALIZE and IS NORMALIZED."""
