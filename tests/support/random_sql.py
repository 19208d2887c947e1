"""Random schemas, queries and changes as SQL text, over the grammar that PostgreSQL and Freshet share.

Every query has one answer: what breaks ties (LIMIT, numbering, aggregates with ORDER BY, DISTINCT ON) orders by whole
rows. Values are few, so that they meet, and include NULLs and extremes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.support.random_calls import (
    AGGREGATES,
    CALLS,
    DIRECTIONS,
    FRAMES,
    OFFSETS,
    PATTERNS,
    RANKS,
    TYPES,
    UNSORTED,
    VALUES,
)


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
    return {"numeric(8,2)": "numeric", "char(3)": "text", "varchar(4)": "text"}.get(type_, type_)


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
        value = self.rng.choice(VALUES[known]).replace("'", "''")
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
        ]
        if type_ not in UNSORTED:
            general.append(lambda: f"NULLIF({self.expr(type_, scope, depth - 1)}, {self.expr(type_, scope, 0)})")
            general.append(lambda: f"GREATEST({self.expr(type_, scope, depth - 1)}, {self.expr(type_, scope, 0)})")
        own = [lambda text=text: self._filled(text, scope, depth - 1) for text in CALLS.get(type_, ())]
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
            type_ = self.rng.choice([c.type for c in scope if c.type not in UNSORTED] or ["int"])
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
                return f"({self.expr('text', scope, 1)} LIKE {self.rng.choice(PATTERNS)})"
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
        if self._chance(40):
            made, names, types = self.rng.choice((
                ("unnest({int[]}, {text[]}) WITH ORDINALITY", "p, q, o", ("int", "text", "bigint")),
                ("jsonb_array_elements(jsonb_build_array({int}, {text})) WITH ORDINALITY", "p, o", ("jsonb", "bigint")),
                ("jsonb_each(jsonb_build_object('k', {int}))", "p, q", ("text", "jsonb")),
                ("(VALUES ({int}, {text}), (1, 'a'))", "p, q", ("int", "text")),
                ("generate_series('2024-02-28'::timestamp, '2024-03-01', '1 day')", "p", ("timestamp",)),
                ("json_array_elements_text(json_build_array({int}, {text}))", "p", ("text",)),
                ("regexp_matches({text}, '(a)(b)?', 'g')", "p", ("text[]",)),
            ))  # fmt: skip
            columns = [Column(f"{alias}.{n}", t) for n, t in zip(names.split(", "), types, strict=True)]
            return f"{left} CROSS JOIN LATERAL {self._filled(made, scope, 1)} {alias}({names})", [*scope, *columns]
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
        kind = self.rng.randrange(14)
        if depth > 0 and kind == 0:
            return self._set_operation(depth)
        if depth > 0 and kind == 10:
            return self._common(depth)
        if depth > 0 and kind == 1:
            return self._recursion()
        source, scope = self.source(depth)
        where = f" WHERE {self.condition(scope)}" if self._chance(60) else ""
        if kind in (2, 3, 4):
            return self._grouped(source, scope, where)
        if kind in (5, 6):
            return self._windowed(source, scope, where)
        if kind == 11 and (plain := [c for c in scope if c.type not in UNSORTED]):
            return self._first_of_each(plain, source, where)
        if kind == 12:
            return self._expanding(scope, source, where)
        types = [self.rng.choice([c.type for c in scope] + ["int", "text"]) for _ in range(self.rng.randint(1, 4))]
        exprs = [self.expr(t, scope) for t in types]
        if self._chance(15) and not {*types} & {*UNSORTED}:
            return f"SELECT DISTINCT {_named(exprs)} FROM {source}{where}", types
        tail = self._sliced(types) if self._chance(20) and not {*types} & {*UNSORTED} else ""
        return f"SELECT {_named(exprs)} FROM {source}{where}{tail}", types

    def _common(self, depth: int) -> tuple[str, list[str]]:
        """WITH, whose query is named once or twice."""
        inner, types = self.query(depth - 1)
        names = [f"x{i}" for i in range(len(types))]
        columns = [Column(f"c.{n}", t) for n, t in zip(names, types, strict=True)]
        how = self.rng.choice(("AS", "AS MATERIALIZED", "AS NOT MATERIALIZED"))
        source = "w c"
        if self._chance(40):
            columns += [Column(f"d.{n}", t) for n, t in zip(names, types, strict=True)]
            same = f"c.{names[0]} = d.{names[0]}" if types[0] not in UNSORTED else "true"
            source += f" {self.rng.choice(('JOIN', 'LEFT JOIN'))} w d ON {same}"
        where = f" WHERE {self.condition(columns)}" if self._chance(50) else ""
        if self._chance(40):
            text, made = self._grouped(source, columns, where)
        else:
            made = [self.rng.choice(types) for _ in range(self.rng.randint(1, 3))]
            text = f"SELECT {_named([self.expr(t, columns) for t in made])} FROM {source}{where}"
        return f"WITH w({', '.join(names)}) {how} ({inner}) {text}", made

    def _first_of_each(self, plain: list[Column], source: str, where: str) -> tuple[str, list[str]]:
        """DISTINCT ON; the order is of all that is shown."""
        shown = self.rng.sample(plain, min(len(plain), self.rng.randint(2, 4)))
        order = ", ".join(f"{c.text}{self.rng.choice(DIRECTIONS)}" for c in shown)
        keys = ", ".join(c.text for c in shown[: self.rng.randint(1, len(shown))])
        outputs = _named([c.text for c in shown])
        return f"SELECT DISTINCT ON ({keys}) {outputs} FROM {source}{where} ORDER BY {order}", [c.type for c in shown]

    def _expanding(self, scope: list[Column], source: str, where: str) -> tuple[str, list[str]]:
        """Set-returning functions among what is selected."""
        made = [
            (f"unnest({self.expr('int[]', scope, 1)})", "int"), (f"unnest({self.expr('text[]', scope, 1)})", "text"),
            (f"generate_series(1, abs({self.expr('smallint', scope, 0)}::int) % 4)", "int"),
            (f"jsonb_array_elements(jsonb_build_array({self.expr('int', scope, 1)}, 'x'))", "jsonb"),
            (f"regexp_split_to_table({self.expr('text', scope, 1)}, 'a')", "text"),
        ]  # fmt: skip
        chosen = self.rng.sample(made, self.rng.randint(1, 2))
        type_ = self.rng.choice([c.type for c in scope])
        outputs = [*(text for text, _ in chosen), self.expr(type_, scope, 1)]
        return f"SELECT {_named(outputs)} FROM {source}{where}", [*(t for _, t in chosen), type_]

    def _sliced(self, types: Sequence[str]) -> str:
        """ORDER BY all columns with LIMIT."""
        order = ", ".join(f"{i + 1}{self.rng.choice(DIRECTIONS)}" for i in range(len(types)))
        offset = f" OFFSET {self.rng.randint(0, 2)}" if self._chance(30) else ""
        if self._chance(20):
            return f" ORDER BY {order}{offset} FETCH FIRST {self.rng.randint(1, 3)} ROWS WITH TIES"
        return f" ORDER BY {order} LIMIT {self.rng.randint(1, 4)}{offset}"

    def _set_operation(self, depth: int) -> tuple[str, list[str]]:
        types = [
            self.rng.choice(("int", "text", "numeric", "date", "int4range", "jsonb", "int[]", "uuid"))
            for _ in range(self.rng.randint(1, 2))
        ]
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
        plain = [c for c in scope if c.type not in UNSORTED]
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
        for type_, functions in AGGREGATES.items():
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
            made.append((f"json_agg({value} ORDER BY {value} DESC)", "json"))
            made.append((f"array_agg(DISTINCT {value})", "text[]"))
            made.append((f"string_agg(DISTINCT {value}, '+' ORDER BY {value} DESC)", "text"))
            made.append((f"mode() WITHIN GROUP (ORDER BY {number})", "int"))
            made.append((f"percentile_cont(0.25) WITHIN GROUP (ORDER BY {number})", "double precision"))
            made.append((f"rank({self.rng.randint(0, 3)}) WITHIN GROUP (ORDER BY {number})", "bigint"))
            made.append((f"jsonb_object_agg(coalesce({value}, ''), 1)", "jsonb"))
            made.append((f"count(DISTINCT ({number}, {value}))", "bigint"))
            made.append((f"(array_agg({number} ORDER BY {value}, {number}))[1]", "int"))
        text, type_ = self.rng.choice(made)
        if self._chance(20) and not text.endswith("]"):
            text += f" FILTER (WHERE {self.condition(scope, 1)})"
        return text, type_

    def _windowed(self, source: str, scope: list[Column], where: str) -> tuple[str, list[str]]:
        plain = [c for c in scope if c.type not in UNSORTED]
        shown = self.rng.sample(plain, min(len(plain), 2))
        order = ", ".join(f"{c.text}{self.rng.choice(DIRECTIONS)}" for c in plain)
        types = [c.type for c in shown]
        outputs = [c.text for c in shown]
        partition = f"PARTITION BY {self.rng.choice(plain).text} " if self._chance(60) else ""
        for _ in range(self.rng.randint(1, 2)):
            call, type_ = self._window_call(plain)
            frame = self.rng.choice(FRAMES) if not call.startswith(RANKS) else ""
            if self._chance(30) and (ranged := self._ranged(plain)):
                call, type_ = self._aggregate(plain, window=True)
                outputs.append(f"{call} OVER ({partition}{ranged})")
            else:
                outputs.append(f"{call} OVER ({partition}ORDER BY {order}{frame})")
            types.append(type_)
        return f"SELECT {_named(outputs)} FROM {source}{where}", types

    def _ranged(self, scope: Sequence[Column]) -> str:
        """An order by one column and a frame of offsets from its values; "" if none of the columns has offsets."""
        keys = [c for c in scope if c.type in OFFSETS]
        if not keys:
            return ""
        key = self.rng.choice(keys)
        near, far = (self.rng.choice(OFFSETS[key.type]) for _ in range(2))
        frame = self.rng.choice((
            f"RANGE {near} PRECEDING", f"RANGE BETWEEN {near} PRECEDING AND {far} FOLLOWING",
            f"RANGE BETWEEN CURRENT ROW AND {far} FOLLOWING", f"RANGE BETWEEN UNBOUNDED PRECEDING AND {near} PRECEDING",
            f"RANGE BETWEEN {near} FOLLOWING AND UNBOUNDED FOLLOWING",
        ))  # fmt: skip
        exclusion = self.rng.choice(("", "", " EXCLUDE GROUP", " EXCLUDE CURRENT ROW", " EXCLUDE TIES"))
        return f"ORDER BY {key.text}{self.rng.choice(DIRECTIONS)} {frame}{exclusion}"

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
