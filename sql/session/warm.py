"""First start: compiles every kernel once and reports progress. The engine's kernels are compiled one by one, the
others by statements on a temporary database.

Compiled kernels are cached (``ivm.kernels.cache``). A marker file beside them, named by a hash of all kernel sources,
records that nothing is left to compile. Later starts load them when the server listens (``load``).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ivm.kernels.cache import base_folder, compiler

MOST_PROCESSES: Final = 2
"""More processes gain little (``ivm.kernels.warm``), and each takes half a gigabyte."""
_ROOT: Final = Path(__file__).resolve().parents[2]
_PACKAGES: Final = ("ivm", "planner", "storage", "sql")
_STATEMENTS: Final = (
    "CREATE TABLE a (id int PRIMARY KEY, g text, x numeric, f float8)",
    "CREATE TABLE b (g text NOT NULL, n bigint)",
    "INSERT INTO a SELECT i, 'g' || i % 50, i * 0.5, i / 3.0 FROM generate_series(1, 6000) i",
    "INSERT INTO b SELECT 'g' || i % 60, i FROM generate_series(1, 3000) i",
    "COPY b FROM STDIN",
    "CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS c, sum(x) AS s, avg(f) AS f, min(g) AS m, max(x) AS y"
    " FROM a LEFT JOIN b USING (g) GROUP BY g",
    "CREATE MATERIALIZED VIEW d AS SELECT DISTINCT g FROM a EXCEPT SELECT g FROM b WHERE n > 100",
    "CREATE MATERIALIZED VIEW t AS SELECT * FROM a ORDER BY g, id LIMIT 5",
    "CREATE MATERIALIZED VIEW r AS WITH RECURSIVE r(n) AS ("
    "SELECT id FROM a WHERE id < 5 UNION SELECT a.id FROM r JOIN a ON a.id = r.n * 2) SELECT n FROM r",
    "INSERT INTO a VALUES (10000, 'g1', 1, 1), (10001, NULL, NULL, NULL)",
    "UPDATE a SET x = x + 1, g = 'h' WHERE id % 1000 = 3",
    "DELETE FROM a WHERE id IN (1, 2, 4, 8)",
    "DELETE FROM a WHERE id > 3000",
    "SELECT * FROM a ORDER BY g, x DESC",
    "SELECT a.g, sum(b.n) FROM a JOIN b ON a.g = b.g GROUP BY a.g ORDER BY 2",
    "COPY (SELECT * FROM a) TO STDOUT",
    "SELECT length(g), substr(g, 2), trim(g), split_part(g, '1', 1), replace(g, '1', '2'), g LIKE '%1%', id::text::int,"
    " x / 3 FROM a",
    "SELECT 'ab' ~ '(a|a*)\\1c'",
    "VERIFY MATERIALIZED VIEW v",
    "VERIFY MATERIALIZED VIEW r",
)


def marker() -> Path:
    """The file that exists once all kernels are compiled."""
    digest = hashlib.sha256(compiler().encode())
    for source in sources():
        digest.update(source.read_bytes())
    return base_folder() / f"warm-{digest.hexdigest()[:16]}"


def sources() -> list[Path]:
    """The files that have kernels: those with kernels in their name, and all in folders named kernels."""
    found = [path for package in _PACKAGES for path in (_ROOT / package).rglob("*.py")]
    return sorted(path for path in found if "kernels" in path.stem or path.parent.name == "kernels")


async def warm(say: Callable[[str], None]) -> None:
    """Compile the missing kernels. Returns at once, without importing the server, if there are none."""
    mark = marker()
    if mark.exists():
        return
    await _compile(say)
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def load() -> None:
    """Load every kernel, beside everything else: the first statement that uses one would wait for it, as would all
    others. Cost: half a second of one core, in which Python's lock is held for a few milliseconds at most; 60 MB."""
    from ivm.kernels import arena, decimals, interning, texts
    from ivm.kernels.warm import load_cached
    from ivm.kernels.warm import warm as load_engine
    from sql.pgwire import copy_kernels, kernels, send_kernels

    load_engine(lambda *_: None)
    for module in (arena, interning, texts, decimals, kernels, copy_kernels, send_kernels):
        load_cached(f for name, f in vars(module).items() if hasattr(f, "py_func") and not name.startswith("_"))


async def _compile(say: Callable[[str], None]) -> None:
    from ivm.kernels.warm import KERNELS
    from ivm.kernels.warm import warm as warm_engine
    from sql.admission.admission import OWN
    from sql.coordination.coordinator import Coordinator
    from sql.pgwire.sending import send
    from sql.pgwire.values import encode_rows
    from sql.session.session import Session
    from sql.statements.results import CopyInResult, CopyOutResult, RowsResult

    say("freshet: first start: compiling kernels, once (minutes)")
    start = time.monotonic()
    whole = len(KERNELS) + len(_STATEMENTS)

    def progress(done: int) -> None:
        say(f"freshet: compiling kernels: {done * 100 // whole}% after {time.monotonic() - start:.0f} s")

    warm_engine(lambda _, done, __: progress(done), min(os.cpu_count() or 1, MOST_PROCESSES))
    with tempfile.TemporaryDirectory(prefix="freshet-warm-") as folder:
        coordinator = await Coordinator.open(Path(folder) / "data")
        session = Session(coordinator, "freshet", "warm", {}, OWN)
        for i, text in enumerate(_STATEMENTS):
            async for result in session.simple(text):
                if isinstance(result, RowsResult):
                    encode_rows(result.rows, (), result.dictionary)
                elif isinstance(result, CopyInResult):
                    await result.receiver.feed(b"g1\t5\ng2\t\\N\n" * 20000)
                    await result.receiver.finish()
                elif isinstance(result, CopyOutResult):
                    async for _ in result.data:
                        pass
            progress(len(KERNELS) + i + 1)
        await coordinator.close()
    send([])
