"""Random schemas, queries and changes as SQL text, over the grammar that PostgreSQL and Freshet share.

Every query has one answer: what breaks ties (LIMIT, numbering, aggregates with ORDER BY, DISTINCT ON) orders by whole
rows. Values are few, so that they meet, and include NULLs and extremes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

TYPES: Final = (
    "int", "bigint", "smallint", "numeric", "numeric(8,2)", "double precision", "text", "char(3)", "boolean", "date",
    "timestamp", "timestamptz", "interval", "jsonb", "int[]",
)  # fmt: skip
_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "int": ("0", "1", "2", "3", "-1", "7", "2147483647", "-2147483648"),
    "bigint": ("0", "1", "2", "5", "-3", "9223372036854775807"),
    "smallint": ("0", "1", "2", "-2", "32767"),
    "numeric": ("0", "1.0", "1.00", "2.5", "-0.001", "1e10", "NaN", "12345678901234567890.123"),
    "numeric(8,2)": ("0", "1.5", "-2.25", "999999.99"),
    "double precision": ("0", "-0", "1.5", "0.1", "1e300", "5e-324", "NaN", "Infinity"),
    "text": ("", "a", "b", "ab", "B", "é", "a b", "%_x"),
    "char(3)": ("", "a", "b  ", "abc"),
    "boolean": ("t", "f"),
    "date": ("2024-02-29", "2024-03-01", "1999-12-31", "2000-01-01", "infinity"),
    "timestamp": ("2024-02-29 12:00:00", "2024-03-01 00:00:00", "1970-01-01 00:00:00.000001"),
    "timestamptz": ("2024-02-29 12:00:00+00", "2024-03-10 10:00:00+00", "2024-11-03 09:30:00+00"),
    "interval": ("1 day", "24 hours", "1 mon", "30 days", "-1 hour", "0"),
    "jsonb": ("{}", '{"a": 1}', '{"a": "x", "b": [1, 2]}', "[1, null, 2]", '"s"', "1.50", "null"),
    "int[]": ("{}", "{1}", "{1,2,3}", "{NULL,2}", "{3,1}"),
}
_UNSORTED: Final = ("jsonb",)


@dataclass(frozen=True, slots=True)
class Column:
    """A column that can be named, as ``alias.name``, and its type (without length or precision)."""

    text: str
    type: str


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[tuple[str, str], ...]

    @property
    def definition(self) -> str:
        return f"CREATE TABLE {self.name} ({', '.join(f'{n} {t}' for n, t in self.columns)})"


def base(type_: str) -> str:
    """A type without its length or precision."""
    return {"numeric(8,2)": "numeric", "char(3)": "text"}.get(type_, type_)


class Maker:
    """Draws everything from one generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._aliases = 0
        self.tables = [self._table(f"t{i}") for i in range(rng.randint(2, 4))]

    def _table(self, name: str) -> Table:
        own = [("id", "int"), ("k", "int")]
        return Table(name, (*own, *((f"c{i}", self.rng.choice(TYPES)) for i in range(self.rng.randint(2, 5)))))

    def _alias(self) -> str:
        self._aliases += 1
        return f"a{self._aliases}"

    def _chance(self, percent: int) -> bool:
        return self.rng.randrange(100) < percent

    # -- changes -----------------------------------------------------------------------------------------------------

    def literal(self, type_: str) -> str:
        """A constant of the type, sometimes NULL."""
        known = "smallint" if type_ == "smallint" else type_
        if self._chance(12):
            return f"NULL::{type_}"
        value = self.rng.choice(_VALUES[known]).replace("'", "''")
        return f"'{value}'::{type_}"

    def change(self) -> str:
        """An INSERT, UPDATE or DELETE."""
        table = self.rng.choice(self.tables)
        kind = self.rng.random()
        if kind < 0.6:
            rows = [self._row(table) for _ in range(self.rng.randint(1, 4))]
            rows += rows[: self.rng.randint(0, 1)]
            return f"INSERT INTO {table.name} VALUES {', '.join(rows)}"
        where = f"id = {self.rng.randint(0, 6)}" if self._chance(70) else f"k = {self.rng.randint(0, 3)}"
        if kind < 0.8:
            name, type_ = self.rng.choice(table.columns[1:])
            return f"UPDATE {table.name} SET {name} = {self.literal(type_)} WHERE {where}"
        return f"DELETE FROM {table.name} WHERE {where}"

    def _row(self, table: Table) -> str:
        own = [str(self.rng.randint(0, 6)), str(self.rng.randint(0, 3))]
        return f"({', '.join([*own, *(self.literal(t) for _, t in table.columns[2:])])})"

    # -- expressions -------------------------------------------------------------------------------------------------

    def expr(self, type_: str, scope: Sequence[Column], depth: int = 2) -> str:
        """An expression of a type over the columns in scope."""
        mine = [c.text for c in scope if c.type == type_]
        if depth <= 0 or self._chance(35):
            return self.rng.choice(mine) if mine and self._chance(80) else self.literal(type_)
        general: list[Callable[[], str]] = [
            lambda: (
                f"CASE WHEN {self.condition(scope, depth - 1)} THEN {self.expr(type_, scope, depth - 1)} "
                f"ELSE {self.expr(type_, scope, depth - 1)} END"
            ),
            lambda: f"COALESCE({self.expr(type_, scope, depth - 1)}, {self.expr(type_, scope, depth - 1)})",
            lambda: f"NULLIF({self.expr(type_, scope, depth - 1)}, {self.expr(type_, scope, 0)})",
        ]
        own = [lambda text=text: self._filled(text, scope, depth - 1) for text in _CALLS.get(type_, ())]
        return self.rng.choice([*general, *own, *own])()

    def _filled(self, template: str, scope: Sequence[Column], depth: int) -> str:
        """A template with its ``{type}`` places filled by expressions."""
        out, rest = "", template
        while "{" in rest:
            before, _, after = rest.partition("{")
            type_, _, rest = after.partition("}")
            out += before + self.expr(type_, scope, depth)
        return out + rest

    def condition(self, scope: Sequence[Column], depth: int = 2) -> str:
        kind = self.rng.randrange(12)
        if depth <= 0 or kind < 4:
            type_ = self.rng.choice([c.type for c in scope] or ["int"])
            operators = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
            return f"({self.expr(type_, scope, 1)} {self.rng.choice(operators)} {self.expr(type_, scope, 1)})"
        inner = depth - 1
        match kind:
            case 4 | 5:
                return f"({self.condition(scope, inner)} AND {self.condition(scope, inner)})"
            case 6:
                return f"({self.condition(scope, inner)} OR {self.condition(scope, inner)})"
            case 7:
                return f"NOT {self.condition(scope, inner)}"
            case 8:
                type_ = self.rng.choice([c.type for c in scope] or ["int"])
                return f"({self.expr(type_, scope, 1)} IS {self.rng.choice(('', 'NOT '))}NULL)"
            case 9:
                return f"({self.expr('int', scope, 1)} IN ({', '.join(self.literal('int') for _ in range(3))}))"
            case 10:
                return f"({self.expr('text', scope, 1)} LIKE {self.rng.choice(_PATTERNS)})"
            case _:
                return self._subquery_condition(scope)

    def _subquery_condition(self, scope: Sequence[Column]) -> str:
        source, inner = self._table_item()
        own = [c for c in inner if c.type == "int"]
        column = self.rng.choice(own).text
        outer = [c.text for c in scope if c.type == "int"]
        where = f"{self.rng.choice(own).text} = {self.rng.choice(outer)}" if outer else "true"
        if self._chance(40):
            where += f" AND {self.condition([*inner, *scope], 1)}"
        value = self.rng.choice(outer) if outer else self.literal("int")
        match self.rng.randrange(5):
            case 0:
                return f"EXISTS (SELECT FROM {source} WHERE {where})"
            case 1:
                return f"NOT EXISTS (SELECT FROM {source} WHERE {where})"
            case 2:
                return f"({value} {self.rng.choice(('IN', 'NOT IN'))} (SELECT {column} FROM {source} WHERE {where}))"
            case 3:
                operator = self.rng.choice(("< ANY", "> ALL", "= ANY", "<> ALL"))
                return f"({value} {operator} (SELECT {column} FROM {source} WHERE {where}))"
            case _:
                aggregate = self.rng.choice(("max", "min", "count"))
                return f"({value} >= (SELECT {aggregate}({column}) FROM {source} WHERE {where}))"

    # -- FROM --------------------------------------------------------------------------------------------------------

    def _table_item(self) -> tuple[str, list[Column]]:
        table, alias = self.rng.choice(self.tables), self._alias()
        return f"{table.name} {alias}", [Column(f"{alias}.{n}", base(t)) for n, t in table.columns]

    def source(self, depth: int) -> tuple[str, list[Column]]:
        """A FROM clause and the columns in scope."""
        if depth <= 0 or self._chance(30):
            return self._table_item()
        if self._chance(20):
            query, types = self.query(depth - 1)
            alias = self._alias()
            names = [f"x{i}" for i in range(len(types))]
            columns = [Column(f"{alias}.{n}", t) for n, t in zip(names, types, strict=True)]
            return f"({query}) {alias}({', '.join(names)})", columns
        left, a = self.source(depth - 1)
        if self._chance(15):
            return self._expanded(left, a)
        right, b = self._table_item()
        if self._chance(15):
            return f"{left} CROSS JOIN LATERAL ({self._lateral(a)}) {(alias := self._alias())}(y)", [
                *a,
                Column(f"{alias}.y", "int"),
            ]
        kind = self.rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        keys = [c.text for c in a if c.type == "int"], [c.text for c in b if c.type == "int"]
        on = f"{self.rng.choice(keys[0])} = {self.rng.choice(keys[1])}" if keys[0] else "true"
        if kind != "FULL JOIN" and self._chance(30):
            on += f" AND {self.condition([*a, *b], 1)}"
        return f"{left} {kind} {right} ON {on}", [*a, *b]

    def _expanded(self, left: str, scope: list[Column]) -> tuple[str, list[Column]]:
        alias = self._alias()
        arrays = [c.text for c in scope if c.type == "int[]"]
        if arrays and self._chance(60):
            return f"{left}, unnest({self.rng.choice(arrays)}) {alias}(e)", [*scope, Column(f"{alias}.e", "int")]
        low, high = self.rng.randint(0, 2), self.rng.randint(1, 3)
        return f"{left}, generate_series({low}, {high}) {alias}(e)", [*scope, Column(f"{alias}.e", "int")]

    def _lateral(self, outer: list[Column]) -> str:
        source, inner = self._table_item()
        keys = [c.text for c in outer if c.type == "int"] or ["1"]
        own = [c.text for c in inner if c.type == "int"]
        where = f"{self.rng.choice(own)} = {self.rng.choice(keys)}"
        aggregate = self.rng.choice(("max", "count", "min"))
        return f"SELECT {aggregate}({self.rng.choice(own)})::int FROM {source} WHERE {where}"

    # -- queries -----------------------------------------------------------------------------------------------------

    def query(self, depth: int = 2) -> tuple[str, list[str]]:
        """A SELECT and its columns' types."""
        kind = self.rng.randrange(10)
        if depth > 0 and kind == 0:
            return self._set_operation(depth)
        if depth > 0 and kind == 1:
            return self._recursion()
        source, scope = self.source(depth)
        where = f" WHERE {self.condition(scope)}" if self._chance(60) else ""
        if kind in (2, 3, 4):
            return self._grouped(source, scope, where)
        if kind in (5, 6):
            return self._windowed(source, scope, where)
        types = [self.rng.choice([c.type for c in scope] + ["int", "text"]) for _ in range(self.rng.randint(1, 4))]
        exprs = [self.expr(t, scope) for t in types]
        if self._chance(15) and not {*types} & {*_UNSORTED}:
            return f"SELECT DISTINCT {_named(exprs)} FROM {source}{where}", types
        tail = self._sliced(types) if self._chance(20) else ""
        return f"SELECT {_named(exprs)} FROM {source}{where}{tail}", types

    def _sliced(self, types: Sequence[str]) -> str:
        """ORDER BY all columns with LIMIT."""
        order = ", ".join(f"{i + 1}{self.rng.choice(_DIRECTIONS)}" for i in range(len(types)))
        offset = f" OFFSET {self.rng.randint(0, 2)}" if self._chance(30) else ""
        if self._chance(20):
            return f" ORDER BY {order}{offset} FETCH FIRST {self.rng.randint(1, 3)} ROWS WITH TIES"
        return f" ORDER BY {order} LIMIT {self.rng.randint(1, 4)}{offset}"

    def _set_operation(self, depth: int) -> tuple[str, list[str]]:
        types = [self.rng.choice(("int", "text", "numeric", "date")) for _ in range(self.rng.randint(1, 2))]
        arms = []
        for _ in range(self.rng.randint(2, 3)):
            source, scope = self.source(depth - 1)
            where = f" WHERE {self.condition(scope, 1)}" if self._chance(50) else ""
            arms.append(f"SELECT {_named([self.expr(t, scope) for t in types])} FROM {source}{where}")
        operators = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
        text = f"({arms[0]})"
        for arm in arms[1:]:
            text = f"({text} {self.rng.choice(operators)} ({arm}))"
        return text, types

    def _recursion(self) -> tuple[str, list[str]]:
        source, scope = self._table_item()
        step, inner = self._table_item()
        ints = [c.text for c in scope if c.type == "int"]
        own = [c.text for c in inner if c.type == "int"]
        union = self.rng.choice(("UNION", "UNION ALL"))
        r = self._alias()
        return (
            f"WITH RECURSIVE {r}(a, b, n) AS (SELECT {self.rng.choice(ints)}, {self.rng.choice(ints)}, 0 FROM {source} "
            f"{union} SELECT {r}.a, {self.rng.choice(own)}, n + 1 FROM {r} "
            f"JOIN {step} ON {self.rng.choice(own)} = {r}.b "
            f"WHERE n < {self.rng.randint(1, 3)}) SELECT a, b, n FROM {r}"
        ), ["int", "int", "int"]

    def _grouped(self, source: str, scope: list[Column], where: str) -> tuple[str, list[str]]:
        plain = [c for c in scope if c.type not in _UNSORTED]
        keys = self.rng.sample(plain, min(len(plain), self.rng.randint(0, 2)))
        types = [k.type for k in keys]
        aggregates = [self._aggregate(scope) for _ in range(self.rng.randint(1, 3))]
        outputs = [*(k.text for k in keys), *(text for text, _ in aggregates)]
        types += [t for _, t in aggregates]
        group = ""
        if keys:
            listed = [k.text for k in keys]
            forms = [", ".join(listed)] * 5 + [f"ROLLUP ({', '.join(listed)})", f"CUBE ({', '.join(listed)})",
                                               f"GROUPING SETS (({', '.join(listed)}), ({listed[0]}), ())"]  # fmt: skip
            group = f" GROUP BY {self.rng.choice(forms)}"
            if " (" in group:
                outputs.append(f"GROUPING({listed[0]})")
                types.append("int")
        having = f" HAVING count(*) > {self.rng.randint(0, 2)}" if self._chance(25) else ""
        return f"SELECT {_named(outputs)} FROM {source}{where}{group}{having}", types

    def _aggregate(self, scope: Sequence[Column], window: bool = False) -> tuple[str, str]:
        """(text, type) of an aggregate call."""
        made: list[tuple[str, str]] = [("count(*)", "bigint")]
        for type_, functions in _AGGREGATES.items():
            for function, result in functions:
                distinct = "DISTINCT " if not window and self._chance(20) else ""
                made.append((f"{function}({distinct}{self.expr(type_, scope, 1)})", result))
        if not window:
            value = self.expr("text", scope, 1)
            made.append((f"string_agg({value}, ',' ORDER BY {value})", "text"))
            number = self.expr("int", scope, 1)
            made.append((f"array_agg({number} ORDER BY {number} DESC NULLS LAST)", "int[]"))
            made.append((f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {number})", "int"))
            made.append((f"jsonb_agg({number} ORDER BY {number})", "jsonb"))
        text, type_ = self.rng.choice(made)
        if self._chance(20):
            text += f" FILTER (WHERE {self.condition(scope, 1)})"
        return text, type_

    def _windowed(self, source: str, scope: list[Column], where: str) -> tuple[str, list[str]]:
        plain = [c for c in scope if c.type not in _UNSORTED]
        shown = self.rng.sample(plain, min(len(plain), 2))
        order = ", ".join(f"{c.text}{self.rng.choice(_DIRECTIONS)}" for c in plain)
        types = [c.type for c in shown]
        outputs = [c.text for c in shown]
        partition = f"PARTITION BY {self.rng.choice(plain).text} " if self._chance(60) else ""
        for _ in range(self.rng.randint(1, 2)):
            call, type_ = self._window_call(plain)
            frame = self.rng.choice(_FRAMES) if not call.startswith(_RANKS) else ""
            outputs.append(f"{call} OVER ({partition}ORDER BY {order}{frame})")
            types.append(type_)
        return f"SELECT {_named(outputs)} FROM {source}{where}", types

    def _window_call(self, scope: Sequence[Column]) -> tuple[str, str]:
        if self._chance(50):
            return self._aggregate(scope, window=True)
        column = self.rng.choice(scope)
        n = self.rng.randint(0, 3)
        options = [(f"{name}()", "bigint") for name in ("row_number", "rank", "dense_rank")]
        options += [(f"ntile({n + 1})", "int"), ("percent_rank()", "double precision")]
        options += [(f"{f}({column.text}{extra})", column.type) for f, extra in (
            ("lag", ""), ("lead", f", {n}"), ("first_value", ""), ("last_value", ""), ("nth_value", f", {n + 1}"),
        )]  # fmt: skip
        return self.rng.choice(options)


def _named(exprs: Sequence[str]) -> str:
    return ", ".join(f"{e} AS o{i}" for i, e in enumerate(exprs))


_DIRECTIONS: Final = ("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST")
_RANKS: Final = ("row_number", "rank", "dense_rank", "ntile", "percent_rank", "lag", "lead")
_FRAMES: Final = (
    "", "", " ROWS 1 PRECEDING", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW", " ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
    " GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
)  # fmt: skip
_PATTERNS: Final = ("'a%'", "'%b'", "'_'", "'%\\%%'", "''")
_AGGREGATES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "int": (("sum", "bigint"), ("avg", "numeric"), ("min", "int"), ("max", "int"), ("count", "bigint")),
    "numeric": (("sum", "numeric"), ("max", "numeric"), ("min", "numeric")),
    "double precision": (("max", "double precision"),),
    "text": (("min", "text"), ("max", "text"), ("count", "bigint")),
    "boolean": (("bool_and", "boolean"), ("bool_or", "boolean")),
    "date": (("min", "date"), ("max", "date")),
    "interval": (("max", "interval"),),
}
_CALLS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("length({text})", "abs({smallint}::int)", "({smallint} + {smallint})::int", "cardinality({int[]})",
            "extract(day from {timestamp})::int", "({int} % 7)", "position({text} in {text})",
            "sign({numeric})::int", "ascii({text})", "({date} - '2020-01-01'::date)"),
    "bigint": ("({int}::bigint * {int}::bigint)", "({int}::bigint - {smallint})"),
    "smallint": ("({int} % 5)::smallint",),
    "numeric": ("round({numeric}, 1)", "({numeric} + {int})", "({numeric} * 2)", "trunc({numeric})", "{int}::numeric",
                "{double precision}::numeric", "abs({numeric})", "({int} / 4.0)"),
    "double precision": ("({double precision} * 0.5)", "{int}::double precision", "abs({double precision})",
                         "floor({double precision})"),
    "text": ("({text} || {text})", "upper({text})", "substr({text}, 2)", "left({text}, 1)", "{int}::text",
             "coalesce({text}, 'z')", "replace({text}, 'a', 'xx')", "lpad({text}, 4, '*')", "trim({text})",
             "to_char({date}, 'YYYY-MM-DD')", "concat({text}, {int})", "({jsonb} ->> 'a')", "{numeric}::text",
             "md5({text})", "split_part({text}, ' ', 1)", "reverse({text})"),
    "boolean": ("({int} > {int})", "({text} ~ '^a')", "({jsonb} ? 'a')", "({int[]} @> {int[]})",
                "({int} = ANY ({int[]}))"),
    "date": ("({date} + {smallint}::int % 100)", "{timestamp}::date"),
    "timestamp": ("date_trunc('month', {timestamp})", "({timestamp} + '1 day'::interval)"),
    "timestamptz": ("({timestamptz} + '1 hour'::interval)", "date_trunc('hour', {timestamptz})"),
    "interval": ("({timestamp} - {timestamp})", "({interval} * 2)", "justify_days({interval})"),
    "jsonb": ("({jsonb} -> 'b')", "jsonb_build_object('k', {int})", "to_jsonb({text})",
              "jsonb_build_array({int}, {text})"),
    "int[]": ("ARRAY[{int}, {int}]", "array_append({int[]}, {int})", "({int[]} || {int[]})", "({int[]})[1:2]"),
}  # fmt: skip
"""Calls by the type of their result, with places for expressions of other types."""
