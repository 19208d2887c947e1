"""Sequence functions; the session keeps the sequences' state (``SessionFunctions``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from ivm.rows import Words
from ivm.words import BOOL, INT8, REGCLASS, TEXT
from planner.expr.functions.table import CallSite, function_key, per_value, session_of, vectorised

NEXTVAL: Final = function_key("nextval", (REGCLASS,))
IDENTITY: Final = function_key("identity_nextval", (REGCLASS,))
"""nextval for an identity column, which asks for no privilege on the sequence."""


@vectorised("nextval", (REGCLASS,), INT8, volatility="volatile", only_draws=True)
def nextval(site: CallSite, sequences: Words) -> Words:
    return _next(site, sequences, False)


@vectorised("identity_nextval", (REGCLASS,), INT8, volatility="volatile", only_draws=True, internal=True)
def identity_nextval(site: CallSite, sequences: Words) -> Words:
    return _next(site, sequences, True)


def _next(site: CallSite, sequences: Words, of_column: bool) -> Words:
    if not len(sequences):
        return np.zeros(0, np.int64)
    first = int(sequences[0])
    if (sequences == first).all():
        return session_of(site).nextval(first, len(sequences), of_column)
    return np.concatenate([session_of(site).nextval(oid, 1, of_column) for oid in sequences.tolist()])


@per_value("currval", (REGCLASS,), INT8, volatility="volatile", only_draws=True, needs_site=True)
def currval(site: CallSite, sequence: int) -> int:
    return session_of(site).currval(sequence)


@per_value("lastval", (), INT8, volatility="volatile", only_draws=True, needs_site=True)
def lastval(site: CallSite) -> int:
    return session_of(site).lastval()


@per_value("setval", (REGCLASS, INT8), INT8, volatility="volatile", needs_site=True)
@per_value("setval", (REGCLASS, INT8, BOOL), INT8, volatility="volatile", needs_site=True)
def setval(site: CallSite, sequence: int, value: int, called: bool = True) -> int:
    return session_of(site).setval(sequence, value, called)


@per_value("pg_get_serial_sequence", (TEXT, TEXT), TEXT, volatility="stable", needs_site=True)
def pg_get_serial_sequence(site: CallSite, table: str, column: str) -> str | None:
    return session_of(site).serial_sequence(table, column)


@per_value("pg_sequence_last_value", (REGCLASS,), INT8, volatility="volatile", needs_site=True)
def pg_sequence_last_value(site: CallSite, sequence: int) -> int | None:
    return session_of(site).sequence_last_value(sequence)
