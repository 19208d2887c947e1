"""Window functions by definition: for each row, every other row of its partition is asked whether it is in the frame.

Shares no code with the engine. A window orders by at most one column; ties break by the row's columns from left to
right, NULLs last.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cmp_to_key, reduce
from typing import Any

Row = dict[str, Any]
COLUMNS = ("id", "g", "a", "n", "d", "f", "x", "s")
DDL = "id int, g int, a int, n numeric(8,2), d date, f float8, x int, s text"
EXCLUSIONS = ("no others", "current row", "group", "ties")


@dataclass(frozen=True)
class Bound:
    """``side``: -1 preceding, 1 following, 0 the current row; ``offset`` None: unbounded."""

    side: int
    offset: Any = 0

    def sql(self, column: str) -> str:
        if self.side == 0:
            return "CURRENT ROW"
        shown = "UNBOUNDED" if self.offset is None else _offset(column, self.offset)
        return f"{shown} {'PRECEDING' if self.side < 0 else 'FOLLOWING'}"


@dataclass(frozen=True)
class Window:
    """A window; ``mode`` None: the default frame."""

    partition: tuple[str, ...]
    order: str | None
    descending: bool
    nulls_first: bool
    mode: str | None
    start: Bound = Bound(-1, None)
    end: Bound = Bound(0)
    exclude: str = "no others"

    @property
    def sql(self) -> str:
        parts = ["PARTITION BY " + ", ".join(self.partition)] if self.partition else []
        if self.order is not None:
            nulls = "FIRST" if self.nulls_first else "LAST"
            parts.append(f"ORDER BY {self.order}{' DESC' if self.descending else ''} NULLS {nulls}")
        if self.mode is not None:
            column = (self.order or "") if self.mode == "RANGE" else ""
            parts.append(f"{self.mode} BETWEEN {self.start.sql(column)} AND {self.end.sql(column)}")
            parts.append(f"EXCLUDE {self.exclude.upper()}")
        return " ".join(parts)


def _offset(column: str, offset: Any) -> str:
    return f"'{offset} days'::interval" if column == "d" else f"'{offset}'::float8" if column == "f" else str(offset)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _compare(a: Any, b: Any) -> int:
    """NaN is the greatest value, NULL comes after it."""
    if a is None or b is None:
        return (a is None) - (b is None)
    nan_a, nan_b = _is_nan(a), _is_nan(b)
    if nan_a or nan_b:
        return nan_a - nan_b
    return (a > b) - (a < b)


def _key(window: Window, row: Row) -> Any:
    return None if window.order is None else row[window.order]


def _ordered(window: Window, a: Row, b: Row) -> int:
    x, y = _key(window, a), _key(window, b)
    if (x is None) != (y is None):
        return 1 if (x is None) != window.nulls_first else -1
    found = _compare(x, y)
    return -found if window.descending else found


def _rows(window: Window, a: Row, b: Row) -> int:
    found = _ordered(window, a, b)
    return found or next((c for c in (_compare(a[k], b[k]) for k in COLUMNS) if c), 0)


def _moved(value: Any, by: Any, least: bool) -> Any:
    if isinstance(value, date):
        return value + timedelta(days=by)
    if isinstance(value, float):
        moved = value + by
        return (-math.inf if least else math.inf) if _is_nan(moved) and not _is_nan(value) else moved
    return value + by


def _within(window: Window, partition: list[Row], groups: list[int], i: int, j: int, end: bool) -> bool:
    """Whether row j does not lie before the start of row i's frame, or after its end."""
    bound = window.end if end else window.start
    if bound.offset is None:
        return True
    step = bound.side * bound.offset
    sign = 1 if end else -1
    if window.mode == "ROWS":
        return sign * (j - (i + step)) <= 0
    if window.mode == "GROUPS" or bound.side == 0:
        return sign * (groups[j] - (groups[i] + step)) <= 0
    here, there = _key(window, partition[i]), _key(window, partition[j])
    if here is None or there is None:
        return sign * (_place(window, there) - _place(window, here)) <= 0
    limit = _moved(here, -step if window.descending else step, end == window.descending)
    return sign * (-1 if window.descending else 1) * _compare(there, limit) <= 0


def _place(window: Window, value: Any) -> int:
    return 0 if value is not None else -1 if window.nulls_first else 1


def frames(window: Window, rows: Sequence[Row]) -> list[tuple[Row, list[Row], list[Row], int]]:
    """(row, its frame, its partition, its position there) for each row."""
    found = []
    for key in {tuple(r[c] for c in window.partition) for r in rows}:
        mine = [r for r in rows if tuple(r[c] for c in window.partition) == key]
        mine.sort(key=cmp_to_key(lambda a, b: _rows(window, a, b)))
        groups: list[int] = []
        for i, row in enumerate(mine):
            groups.append(groups[-1] + (_ordered(window, mine[i - 1], row) != 0) if i else 0)
        whole = window if window.mode is not None else replace(window, mode="RANGE")
        for i, row in enumerate(mine):
            frame = [
                other for j, other in enumerate(mine)
                if _within(whole, mine, groups, i, j, False) and _within(whole, mine, groups, i, j, True)
                and not _left_out(window.exclude, i, j, groups)
            ]  # fmt: skip
            found.append((row, frame, mine, i))
    return found


def _left_out(exclude: str, i: int, j: int, groups: list[int]) -> bool:
    match exclude:
        case "current row":
            return i == j
        case "group":
            return groups[i] == groups[j]
        case "ties":
            return groups[i] == groups[j] and i != j
        case _:
            return False


def _values(rows: Sequence[Row], column: str) -> list[Any]:
    return [r[column] for r in rows if r[column] is not None]


def _on(column: str, rule: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    return lambda row, frame, mine, i: rule(v) if (v := _values(frame, column)) else None


def _nth(values: list[Any], n: int | None) -> Any:
    return values[n - 1] if n is not None and 0 < n <= len(values) else None


def _beside(mine: list[Row], i: int, column: str, step: int | None, default: Any, nulls: bool) -> Any:
    if step is None:
        return None
    if nulls or step == 0:
        j = i + step
        return mine[j][column] if 0 <= j < len(mine) else default
    side = range(i + 1, len(mine)) if step > 0 else range(i - 1, -1, -1)
    values = [mine[j][column] for j in side if mine[j][column] is not None]
    return values[abs(step) - 1] if abs(step) <= len(values) else default


def _ntile(mine: list[Row], i: int, n: int) -> int:
    size, larger = divmod(len(mine), n)
    edges = [k for k in range(n) for _ in range(size + (k < larger))]
    return edges[i] + 1


def _listed(values: Sequence[Any]) -> str:
    return "{" + ",".join("NULL" if v is None else str(v) for v in values) + "}"


def _sum(values: list[float]) -> float:
    special = [v for v in values if not math.isfinite(v)]
    return sum(special) if special else sum(values)


CALLS: dict[str, Callable[..., Any]] = {
    "count(*)": lambda row, frame, mine, i: len(frame),
    "count(s)": lambda row, frame, mine, i: len(_values(frame, "s")),
    "sum(x)": _on("x", sum),
    "sum(n)": _on("n", sum),
    "sum(f)": _on("f", _sum),
    "sum(x) FILTER (WHERE a > 1)": lambda row, frame, mine, i: (
        sum(v) if (v := _values([r for r in frame if (r["a"] or 0) > 1], "x")) else None),
    "min(x)": _on("x", min),
    "max(n)": _on("n", max),
    "max(s)": _on("s", max),
    "min(d)": _on("d", min),
    "bool_or(x > 3)": _on("x", lambda v: max(v) > 3),
    "bit_or(x)": _on("x", lambda v: reduce(lambda a, b: a | b, v)),
    "array_agg(x)": lambda row, frame, mine, i: _listed([r["x"] for r in frame]) if frame else None,
    "string_agg(s, '')": _on("s", "".join),
    "first_value(x)": lambda row, frame, mine, i: frame[0]["x"] if frame else None,
    "last_value(s)": lambda row, frame, mine, i: frame[-1]["s"] if frame else None,
    "nth_value(x, 2)": lambda row, frame, mine, i: _nth([r["x"] for r in frame], 2),
    "nth_value(x, nullif(abs(x), 0))": lambda row, frame, mine, i: _nth(
        [r["x"] for r in frame], abs(row["x"]) if row["x"] else None),
    "first_value(x) IGNORE NULLS": lambda row, frame, mine, i: _nth(_values(frame, "x"), 1),
    "last_value(x) IGNORE NULLS": lambda row, frame, mine, i: (_values(frame, "x") or [None])[-1],
    "nth_value(s, 3) IGNORE NULLS": lambda row, frame, mine, i: _nth(_values(frame, "s"), 3),
    "lag(x)": lambda row, frame, mine, i: _beside(mine, i, "x", -1, None, True),
    "lead(s, 2)": lambda row, frame, mine, i: _beside(mine, i, "s", 2, None, True),
    "lag(x, a, -1)": lambda row, frame, mine, i: _beside(
        mine, i, "x", None if row["a"] is None else -row["a"], -1, True),
    "lag(x) IGNORE NULLS": lambda row, frame, mine, i: _beside(mine, i, "x", -1, None, False),
    "lead(s, 2, 'none') IGNORE NULLS": lambda row, frame, mine, i: _beside(mine, i, "s", 2, "none", False),
    "lead(s, x)": lambda row, frame, mine, i: _beside(mine, i, "s", row["x"], None, True),
    "ntile(3)": lambda row, frame, mine, i: _ntile(mine, i, 3),
    "ntile(20)": lambda row, frame, mine, i: _ntile(mine, i, 20),
    "row_number()": lambda row, frame, mine, i: i + 1,
}  # fmt: skip


def text(value: Any) -> str | None:
    """A value as PostgreSQL writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if _is_nan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"{value:g}"
    return str(value)


def results(calls: Sequence[tuple[str, Window]], rows: Sequence[Row]) -> list[tuple[str | None, ...]]:
    """(id, each call's result) for each row, sorted. Where rows are equal, all calls must have the same window."""
    first: dict[int, list[str | None]] = {}
    order: dict[int, Row] = {}
    for call, window in calls:
        for row, frame, mine, i in frames(window, rows):
            order[id(row)] = row
            first.setdefault(id(row), []).append(text(CALLS[call](row, frame, mine, i)))
    return sorted(((text(order[k]["id"]), *v) for k, v in first.items()), key=repr)


def random_row(rnd: random.Random, number: int) -> Row:
    def some(value: Any) -> Any:
        return None if rnd.random() < 0.15 else value

    return {
        "id": number, "g": some(rnd.randint(1, 2)), "a": some(rnd.randint(0, 5)),
        "n": some(Decimal(rnd.randint(-4, 4)) / 4 + Decimal("0.00")), "d": some(date(2024, 2, rnd.randint(20, 29))),
        "f": some(rnd.choice([0.5, 1.5, -1.0, 2.25, math.inf, -math.inf, math.nan, 3.0])),
        "x": some(rnd.randint(-3, 6)), "s": some(rnd.choice("abcd")),
    }  # fmt: skip


def random_window(rnd: random.Random) -> Window:
    """A window with any frame that is not refused."""
    mode = rnd.choice([None, "ROWS", "ROWS", "RANGE", "RANGE", "GROUPS"])
    columns = ("a", "n", "d", "f") if mode == "RANGE" else ("a", "n", "d", "f", "s", "x")
    order = rnd.choice(columns) if mode in ("RANGE", "GROUPS") or rnd.random() < 0.8 else None
    partition = rnd.choice([(), ("g",), ("g",)])
    window = Window(partition, order, rnd.random() < 0.4, rnd.random() < 0.5, mode)
    if mode is None:
        return window
    offsets = {"n": [Decimal("0.25"), Decimal(1)], "f": [1.5, math.inf], "d": [1, 3]} if mode == "RANGE" else {}

    def bound(sides: Sequence[int]) -> Bound:
        side = rnd.choice(sides)
        if side == 0:
            return Bound(0)
        return Bound(side, rnd.choice([None, 0, 1, 2, *offsets.get(order or "", [3])]))

    while True:
        start, end = bound([-1, -1, 0, 1]), bound([-1, 0, 1, 1])
        unordered = (start.side > 0 and start.offset is None) or (end.side < 0 and end.offset is None)
        if not unordered and start.side <= end.side:
            return replace(window, start=start, end=end, exclude=rnd.choice(EXCLUSIONS))


def random_calls(rnd: random.Random, most: int = 2) -> list[tuple[str, Window]]:
    """Calls with at most so many windows. Without ORDER BY the order of what is aggregated is not defined."""
    windows = [random_window(rnd) for _ in range(most)]
    calls = [(rnd.choice(list(CALLS)), rnd.choice(windows)) for _ in range(rnd.randint(1, 4))]
    return [(call if window.order or "_agg" not in call else "count(*)", window) for call, window in calls]


def query(calls: Sequence[tuple[str, Window]]) -> str:
    """The calls over table t."""
    shown = [f"{call} OVER ({window.sql}) AS c{i}" for i, (call, window) in enumerate(calls)]
    return f"SELECT id, {', '.join(shown)} FROM t"


def literal(value: Any) -> str:
    """A value as SQL."""
    return "NULL" if value is None else f"'{text(value)}'"
