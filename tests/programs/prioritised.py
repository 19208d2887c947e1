"""Random recursions that keep a label for each key, prioritised or not, under random histories.

``python -m tests.programs.prioritised --count 1000``: at every epoch each view is compared with a naive interpreter,
which runs round by round without priorities; for blocks that are not monotone, with them. The grammar is in
docs/internals/test-grammars.md.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator

from planner.explain import explain
from planner.logical.nodes import Rel
from tests.support.bind_fake import FakeCatalog, query
from tests.support.planner_bench import Row, World
from tests.support.prioritised_rounds import Rounds

DDL = (
    "CREATE TABLE nodes (id int, label bigint); CREATE TABLE edges (src int, dst int, w int);"
    "CREATE TABLE known (id int NOT NULL, label bigint NOT NULL);"
    "CREATE TABLE ways (src int NOT NULL, dst int NOT NULL, w int NOT NULL)"
)
CATALOG = FakeCatalog(DDL)
NODES, EDGES, KNOWN, WAYS = (CATALOG.resolve(None, name) for name in ("nodes", "edges", "known", "ways"))

PRIORITIES = tuple(
    f"({option})"
    for option in (
        "PRIORITY BY coalesce(abs(v), 0)",
        "PRIORITY BY coalesce(abs(n), 7) / 2",
        "PRIORITY BY coalesce(10 - n, 0), RECURSION LIMIT 100",
        "ERROR AT RECURSION LIMIT 60, PRIORITY BY coalesce(least(abs(v), 3), 3)",
    )
)

Change = tuple[int, Row, int]


def block(rnd: random.Random) -> str:
    """A query over a block with one binding that keeps labels."""
    nodes, edges = rnd.choice((("nodes", "edges"), ("known", "ways")))
    function = rnd.choice(("min", "min", "min", "max"))
    base = rnd.choice((
        f"SELECT id, label FROM {nodes}",
        f"SELECT id, label FROM {nodes} WHERE id < 4",
        f"SELECT id, id::bigint FROM {nodes}",
        f"SELECT src, src::bigint FROM {edges}",
        "SELECT 1, 0::bigint",
    ))  # fmt: skip
    if rnd.random() < 0.4:
        return tangled(rnd, nodes, edges)
    union = rnd.choice(("UNION ALL", "UNION ALL", "UNION"))
    head = rnd.choice(("", "", "(NO PRIORITY)", *PRIORITIES))
    steps = [_step(rnd, edges, function, bool(head)) for _ in range(rnd.choice((1, 1, 2)))]
    proposed = f" {union} ".join([base, *steps])
    value = f"SELECT n, {function}(v) FROM ({proposed}) AS p (n, v) GROUP BY n"
    bindings = [f"best (n int, v bigint) AS ({value})"]
    if rnd.random() < 0.3:
        bindings.insert(rnd.randrange(2), "few (n int) AS (SELECT n FROM best WHERE v < 3)")
    if rnd.random() < 0.3:
        bindings.append(f"ends (a int, b int) AS (SELECT src, dst FROM {edges} UNION SELECT dst, src FROM {edges})")
    if rnd.random() < 0.15:
        return _nested(rnd, nodes, edges, value)
    block = f"WITH MUTUALLY RECURSIVE {head} {', '.join(bindings)}"
    body = rnd.choice((
        "SELECT n, v FROM best",
        "SELECT v, count(*) FROM best GROUP BY v",
        f"SELECT e.src, e.dst FROM {edges} e JOIN best a ON a.n = e.src JOIN best b ON b.n = e.dst AND a.v = b.v",
    ))  # fmt: skip
    return f"{block} {body}"


ORDERS = (
    "v", "coalesce(v, 0)", "coalesce(v + 2, 1)", "coalesce(9 - v, 4)", "coalesce(v * v, 0)", "coalesce(n, 0)",
    "coalesce(v + n, 30)", "coalesce(10 - n, 0)", "coalesce((9 - v) * 3, 2)", "CASE WHEN v < 3 THEN 0 ELSE 5 END",
    "coalesce(6 / v, 6)", "coalesce(n % 2, 1)", "0", "7", "1000 - coalesce(v, 0)", "coalesce(v, 0) - 1",
)  # fmt: skip
"""Some of these are negative, NULL or fail for some rows."""


def tangled(rnd: random.Random, nodes: str, edges: str, depth: int = 0) -> str:
    """Several bindings that read one another, not monotone, so that the order of rows affects the result."""
    count = rnd.choice((1, 2, 2, 3))
    names = [f"x{depth}{i}" for i in range(count)]
    keyed = [rnd.random() < 0.2 and count > 1 for _ in names]  # has no v, so mostly no priority of its own
    bindings = []
    for name, bare in zip(names, keyed, strict=True):
        value = _tangle(rnd, nodes, edges, [n for n, b in zip(names, keyed, strict=True) if not b] or [nodes], depth)
        columns = "n int" if bare else "n int, v bigint"
        bindings.append(f"{name} ({columns}) AS ({f'SELECT DISTINCT n FROM ({value}) AS part' if bare else value})")
    if all(keyed):
        return tangled(rnd, nodes, edges, depth)
    limit = f"{rnd.choice(('', 'ERROR AT '))}RECURSION LIMIT {rnd.choice((1, 2, 3, 4, 6, 8))}"
    order = f"PRIORITY BY {rnd.choice(ORDERS)}"
    head = rnd.choice((f"{order}, {limit}", f"{limit}, {order}", f"{order}, {limit}", limit))
    chosen = rnd.choice([n for n, bare in zip(names, keyed, strict=True) if not bare])
    return f"WITH MUTUALLY RECURSIVE ({head}) {', '.join(bindings)} SELECT n, v FROM {chosen}"


def _tangle(rnd: random.Random, nodes: str, edges: str, names: list[str], depth: int) -> str:
    """A binding's value; it may read the bindings in ``names`` that have columns n and v."""
    one, other = (
        rnd.choice([n for n in names if n != nodes] or [f"(SELECT id AS n, label AS v FROM {nodes})"]) for _ in range(2)
    )
    label = rnd.choice(("b.v", "b.v", "b.v + 1", "b.v + e.w", "b.v - 1", "e.w::bigint"))
    step = f"SELECT e.dst AS n, {label} AS v FROM {one} AS b JOIN {edges} e ON b.n = e.src AND b.v < 9 AND b.v > -4"
    base = rnd.choice((f"SELECT id AS n, label AS v FROM {nodes}", f"SELECT src, w::bigint AS v FROM {edges}"))
    if depth < 1 and rnd.random() < 0.25:
        inner = tangled(rnd, nodes, edges, depth + 1).replace(
            f"FROM {nodes}", f"FROM (SELECT n AS id, v AS label FROM {one}) AS outside", 1
        )
        base = f"SELECT n, v FROM ({inner}) AS block"
    if one in names and rnd.random() < 0.4:  # the first to arrive stays
        return (
            f"SELECT n, v FROM {one} AS had UNION SELECT n, v FROM ({base} UNION {step}) AS p (n, v) "
            f"WHERE NOT EXISTS (SELECT FROM {one} q WHERE q.n = p.n)"
        )
    return rnd.choice((
        f"SELECT n, min(v) FROM ({base} UNION ALL {step}) AS p (n, v) GROUP BY n",
        f"SELECT n, max(v) FROM ({base} UNION ALL {step}) AS p (n, v) GROUP BY n",
        f"SELECT n, count(*) FROM ({base} UNION ALL {step}) AS p (n, v) GROUP BY n",
        f"SELECT n, v FROM ({base} UNION {step}) AS p (n, v)",
        f"SELECT n, v FROM ({base}) AS p (n, v) EXCEPT SELECT n, v FROM {one} AS q",
        f"SELECT n, v FROM ({base} UNION {step}) AS p (n, v) "
        f"WHERE NOT EXISTS (SELECT FROM {other} q WHERE q.n = p.n AND q.v < p.v)",
        f"SELECT DISTINCT p.n, coalesce(q.v, p.v) FROM ({base}) AS p (n, v) LEFT JOIN {other} q ON q.n = p.n",
        f"SELECT n, v FROM ({base} UNION {step}) AS p (n, v) ORDER BY v, n LIMIT {rnd.randrange(1, 5)}",
    ))  # fmt: skip


def _nested(rnd: random.Random, nodes: str, edges: str, value: str) -> str:
    """Labels of reached nodes, where a node's label decides whether it is followed: a block within a block."""
    leads = "<" if "min(v)" in value else ">"  # newly reached nodes move labels that way, or it might not terminate
    inner = f"WITH MUTUALLY RECURSIVE best (n int, v bigint) AS ({value}) SELECT n, v FROM best"
    inner = inner.replace(f"FROM {nodes}", "FROM (SELECT n AS id, n::bigint AS label FROM r) AS reached", 1)
    return (
        f"WITH MUTUALLY RECURSIVE r (n int) AS (SELECT id FROM {nodes} WHERE id < 2 UNION SELECT e.dst FROM {edges} e "
        f"JOIN labels l ON l.n = e.src AND l.v {leads} {rnd.randrange(1, 9)}), labels (n int, v bigint) AS ({inner}) "
        "SELECT r.n, l.v FROM r LEFT JOIN labels l ON l.n = r.n"
    )


def _step(rnd: random.Random, edges: str, function: str, monotone: bool) -> str:
    """The labels that neighbours propose. Some of these steps cannot be prioritised, neither by default nor on
    request."""
    start, end = rnd.choice((("src", "dst"), ("dst", "src")))
    grown = ("b.v + e.w", "b.v + 1") if function == "min" else ("b.v",)
    label = rnd.choice(("b.v", "b.v", *grown))
    where = rnd.choice(("", "", f" AND e.{end} <> 3", " AND e.w < 2", " AND b.n < 5", " AND b.v < 4"))
    if monotone:
        return (
            f"SELECT e.{end}, {label} FROM best b JOIN {edges} e ON b.n = e.{start}{where.replace(' AND b.v < 4', '')}"
        )
    if rnd.random() < 0.1:
        return f"SELECT e.{end}, {label} FROM {edges} e LEFT JOIN best b ON b.n = e.{start}{where}"
    if rnd.random() < 0.1:
        return f"SELECT a.n, b.v FROM best a JOIN best b ON a.v = b.v AND b.n < {rnd.randrange(6)}"
    return f"SELECT e.{end}, {label} FROM best b JOIN {edges} e ON b.n = e.{start}{where}"


def changes(rnd: random.Random, world: World) -> list[Change]:
    """A few inserts, deletes and updates: NULLs, duplicates, negative labels."""
    made: list[Change] = []
    gone: dict[int, list[Row]] = {}
    for _ in range(rnd.randint(1, 4)):
        table = rnd.choice((NODES, EDGES, EDGES, KNOWN, WAYS, WAYS))
        assert table is not None
        have = sorted((world.contents[table.id] - _bag(gone.get(table.id, []))).elements(), key=repr)
        if have and rnd.random() < 0.5:
            row = rnd.choice(have)
            gone.setdefault(table.id, []).append(row)
            made.append((table.id, row, -1))
            if rnd.random() < 0.5:
                continue
        made.append((table.id, _row(rnd, table in (NODES, EDGES), len(table.schema)), 1))
    return made


def _bag(rows: list[Row]) -> Counter[Row]:
    return Counter(rows)


def _row(rnd: random.Random, nulls: bool, width: int) -> Row:
    def some(low: int, high: int) -> int | None:
        return None if nulls and rnd.random() < 0.1 else rnd.randint(low, high)

    return (some(0, 7), some(-2, 9)) if width == 2 else (some(0, 7), some(0, 7), some(0, 3))


def views(rnd: random.Random, count: int) -> Iterator[tuple[str, Rel]]:
    """Bound blocks, except those that may run forever."""
    for _ in range(count):
        text = block(rnd)
        yield text, query(text, CATALOG).rel


def play(seed: int, steps: int, count: int) -> int:
    """Play one history over some views; the number of prioritised views. Raises AssertionError with the view's text."""
    rnd = random.Random(seed)
    tables = {t.id: (t.schema, ()) for t in (NODES, EDGES, KNOWN, WAYS) if t is not None}
    world = World(tables)
    for _ in range(3):
        world.commit(changes(rnd, world))
    chosen = list(views(rnd, count))
    prioritised = 0
    for i, (_, rel) in enumerate(chosen):
        world.install(1 + i, rel)
        prioritised += "Prioritise" in explain(rel, "physical", world.indexes(False))
    for _ in range(steps):
        world.commit(changes(rnd, world))
        for i, (text, rel) in enumerate(chosen):
            expected = Rounds(world.contents).answer(rel)
            errors = world.errors(1 + i)
            assert (expected is None) == (errors is not None and len(errors[0]) > 0), (seed, world.ordinal, text)
            if expected is not None:
                assert world.view(1 + i) == expected, (seed, world.ordinal, text)
                if "x0" not in text:  # monotone or without priorities: the order does not matter
                    assert world.model(rel) == expected, (seed, world.ordinal, text)
        if rnd.random() < 0.5:
            world.dataflow.allow_compaction(world.ordinal)
    return prioritised


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    prioritised = sum(play(seed, 12, 3) for seed in range(given.first, given.first + given.count))
    print(
        f"{given.count} histories of 12 epochs, {3 * given.count} views, {prioritised} of them prioritised: all right"
    )


if __name__ == "__main__":
    main()
