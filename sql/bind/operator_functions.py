"""Postgres's functions behind operators: ``booleq(a, b)`` is ``a = b``, ``int4pl(a, b)`` is ``a + b``, …"""

from __future__ import annotations

from typing import Final

from ivm.words import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    SqlType,
)  # fmt: skip

_COMPARISONS: Final = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC: Final = {"pl": "+", "mi": "-", "mul": "*", "div": "/"}
_LONG: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
_PAIRS: Final[dict[str, tuple[SqlType, SqlType]]] = {
    "bool": (BOOL, BOOL), "int2": (INT2, INT2), "int4": (INT4, INT4), "int8": (INT8, INT8), "int24": (INT2, INT4),
    "int42": (INT4, INT2), "int48": (INT4, INT8), "int84": (INT8, INT4), "int28": (INT2, INT8), "int82": (INT8, INT2),
    "float4": (FLOAT4, FLOAT4), "float8": (FLOAT8, FLOAT8), "float48": (FLOAT4, FLOAT8), "float84": (FLOAT8, FLOAT4),
    "text": (TEXT, TEXT), "numeric_": (NUMERIC, NUMERIC), "date_": (DATE, DATE), "timestamp_": (TIMESTAMP, TIMESTAMP),
    "timestamptz_": (TIMESTAMPTZ, TIMESTAMPTZ), "interval_": (INTERVAL, INTERVAL),
}  # fmt: skip


def _functions() -> dict[str, tuple[str, tuple[SqlType, SqlType]]]:
    found: dict[str, tuple[str, tuple[SqlType, SqlType]]] = {}
    for prefix, pair in _PAIRS.items():
        symbols = dict(_COMPARISONS)
        if prefix.startswith(("int", "float")) and prefix != "interval_":
            symbols |= _ARITHMETIC
        if prefix == "numeric_":
            symbols |= _LONG
        for name, symbol in symbols.items():
            long_text = prefix == "text" and name not in ("eq", "ne")
            found[f"text_{name}" if long_text else prefix + name] = symbol, pair
    found["textcat"] = "||", (TEXT, TEXT)
    return found


FUNCTIONS: Final = _functions()
"""By name: the operator's symbol and its arguments' types."""
