"""The oids of the operators that EXCLUDE constraints name in pg_constraint."""

from __future__ import annotations

from typing import Final

_OIDS: Final[dict[str, dict[str, int]]] = {
    "&&": {
        "anyarray": 2750, "anymultirange": 2868, "inet": 3552, "anyrange": 3888,
    },
    "-|-": {
        "anyrange": 3897, "anymultirange": 4198,
    },
    "<>": {
        "boolean": 85, "bigint": 411, "integer": 518, "smallint": 519, "text": 531, "oid": 608, "real": 621,
        "name": 643, "double precision": 671, "point": 713, "character": 1057, "anyarray": 1071, "date": 1094,
        "time without time zone": 1109, "inet": 1202, "macaddr": 1221, "timestamp with time zone": 1321,
        "interval": 1331, "time with time zone": 1551, "numeric": 1753, "bit": 1785, "bit varying": 1805,
        "bytea": 1956, "timestamp without time zone": 2061, "anymultirange": 2861, "uuid": 2973,
        "jsonb": 3241, "macaddr8": 3363, "anyenum": 3517, "anyrange": 3883,
    },
    "=": {
        "boolean": 91, "name": 93, "smallint": 94, "integer": 96, "text": 98, "bigint": 410, "oid": 607,
        "real": 620, "double precision": 670, "character": 1054, "anyarray": 1070, "date": 1093,
        "time without time zone": 1108, "inet": 1201, "macaddr": 1220, "timestamp with time zone": 1320,
        "interval": 1330, "time with time zone": 1550, "numeric": 1752, "bit": 1784, "bit varying": 1804,
        "bytea": 1955, "timestamp without time zone": 2060, "anymultirange": 2860, "uuid": 2972,
        "jsonb": 3240, "macaddr8": 3362, "anyenum": 3516, "anyrange": 3882,
    },
    "~=": {
        "point": 510,
    },
}  # fmt: skip


def operator_oid(symbol: str, type_name: str) -> int:
    """The oid of an operator between two values of one type; 0 if it is not known."""
    return _OIDS[symbol].get(type_name, 0)
