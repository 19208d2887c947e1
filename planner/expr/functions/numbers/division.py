"""Division of numerics given as (mantissa, scale), with PostgreSQL's display scales and rounding."""

from __future__ import annotations

from decimal import Decimal


def _leading(mantissa: int, scale: int) -> tuple[int, int]:
    """The weight of a number's first base-10000 digit, and that digit; (0, 0) for zero."""
    if mantissa == 0:
        return 0, 0
    digits = str(Decimal(abs(mantissa)))  # Python's str() of a very long int is slow, and refused
    adjusted = len(digits) - 1 - scale
    weight = adjusted // 4
    return weight, int(digits[: adjusted - 4 * weight + 1].ljust(adjusted - 4 * weight + 1, "0"))


def division_scale(left: tuple[int, int], right: tuple[int, int]) -> int:
    """The display scale of a quotient of (mantissa, scale) numerics: PostgreSQL's ``select_div_scale``."""
    (weight1, first1), (weight2, first2) = _leading(*left), _leading(*right)
    quotient_weight = weight1 - weight2 - (first1 <= first2)
    return min(max(16 - quotient_weight * 4, left[1], right[1], 0), 1000)


def divide(left: tuple[int, int], right: tuple[int, int], scale: int) -> int:
    """The quotient's mantissa at a scale, rounded half away from zero."""
    shift = scale + right[1] - left[1]
    numerator, denominator = left[0], right[0]
    if shift >= 0:
        numerator *= 10**shift
    else:
        denominator *= 10**-shift
    quotient, rest = divmod(abs(numerator), abs(denominator))
    quotient += 2 * rest >= abs(denominator)
    return quotient if (numerator < 0) == (denominator < 0) else -quotient
