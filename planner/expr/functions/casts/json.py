"""Casts between json and jsonb, and from jsonb to numbers and booleans."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

from ivm.errors import SqlError
from ivm.words import Kind
from planner.expr.functions.casts.registry import cast_per_value
from planner.expr.functions.formula import BITS
from planner.expr.functions.json import columns
from planner.expr.functions.numbers.float import overflow, rounded
from planner.expr.functions.table import CallSite, Raises
from storage.types.numeric import WIDE
from storage.types.text_json import canonical_json, load_json
from storage.types.text_number import fit_numeric
from storage.types.type_names import format_type


def _scalar(site: CallSite, text: str, wanted: type) -> Any:
    value = load_json(text)
    if wanted is bool and isinstance(value, bool):
        return value
    if wanted is Decimal and isinstance(value, Decimal):
        return value
    names = {bool: "boolean", str: "string", type(None): "null", list: "array", dict: "object"}
    have = names.get(type(value), "numeric")
    raise SqlError("22023", f"cannot cast jsonb {have} to type {format_type(site.result)}")


cast_per_value((Kind.JSON,), (Kind.JSONB,))(canonical_json)


@cast_per_value((Kind.JSONB,), (Kind.JSON,), raises=Raises.NEVER)
def to_json(text: str) -> str:
    return text


@cast_per_value((Kind.JSONB,), (Kind.BOOL,), needs_site=True, vector=columns.to_bool)
def to_bool(site: CallSite, text: str) -> bool:
    return bool(_scalar(site, text, bool))


@cast_per_value((Kind.JSONB,), (Kind.NUMERIC,), needs_site=True, vector=columns.to_number)
def to_numeric(site: CallSite, text: str) -> Decimal:
    return fit_numeric(_scalar(site, text, Decimal), site.result.precision, site.result.scale)


@cast_per_value((Kind.JSONB,), (Kind.INT2, Kind.INT4, Kind.INT8), needs_site=True, vector=columns.to_number)
def to_integer(site: CallSite, text: str) -> int:
    value = int(WIDE.quantize(_scalar(site, text, Decimal), Decimal(1)))
    half = 1 << (BITS[site.result.kind] - 1)
    if not -half <= value < half:
        raise SqlError("22003", f"{format_type(site.result)} out of range")
    return value


@cast_per_value((Kind.JSONB,), (Kind.FLOAT4, Kind.FLOAT8), needs_site=True, vector=columns.to_number)
def to_float(site: CallSite, text: str) -> float:
    value = np.array([float(_scalar(site, text, Decimal))])
    with np.errstate(all="ignore"):
        result = float(rounded(value, site.result)[0])
    if np.isinf(result):
        raise overflow()
    return result
