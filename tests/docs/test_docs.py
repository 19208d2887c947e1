"""The documentation says what is so: every statement of its pages is run, and answers as the page shows.

``python -m tests.docs.test_docs PAGE …`` writes what came into pages where they show something else; read the
difference.
``--spark URL --shared DIR`` has the pages that are about Spark say what another one than ``local[2]`` gives.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ivm import workers
from sql.session.sources import Sources
from storage.spark.session import SparkSession, SparkSettings
from tests.support.paths import ROOT
from tests.support.psql_pages import ELISION, PATIENCE, Comparison, Step, play, steps
from tests.support.sessions import Server

PAGES = {
    str(page.relative_to(ROOT)): page
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("examples/*/README.md"))]
}
NOT_RUN = {
    "docs/how-to/create-large-views.md": "ten million rows, half a minute; the hydration tests have smaller views",
    "docs/how-to/limit-memory.md": "needs a server with its own limit, and a gigabyte; the memory tests use 8 MiB",
}
WORKERS = {"docs/how-to/use-several-cores.md": 2}
"""Pages about a server with more than one worker, and how many."""
ON_SPARK = ("docs/how-to/follow-a-source.md", "docs/how-to/load-files.md")
"""Pages with statements that Spark runs."""
LOCAL = SparkSettings("local[2]", memory="800m")
RUN = [name for name, page in PAGES.items() if name not in NOT_RUN and list(steps(page.read_text()))]


def differences(
    page: Path, folder: Path, lent: SparkSession | None = None, spark: SparkSettings = LOCAL, patience: float = PATIENCE
) -> list[tuple[Step, list[str]]]:
    """The statements that give something else than the page shows, with what they give. ``lent``: as ``Server`` has it;
    without it the server starts the Spark of ``spark``."""
    workers.use(WORKERS.get(str(page.relative_to(ROOT)), 1))
    out = folder / "out"
    (out / "arriving").mkdir(parents=True)
    server = Server(folder / "data", (ROOT / "docs" / "data", out), True, places=(str(out),), spark=spark, lent=lent)
    server.run(begin(server))
    try:
        return [(step, real) for step, real, agrees in play(page, server, patience) if not agrees]
    finally:
        server.close()
        workers.use(1)


async def begin(server: Server) -> None:
    """Has the page's sources run."""
    Sources(server.coordinator)


@pytest.mark.parametrize("name", RUN)
def test_page(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What each statement of a page gives is what the page shows."""
    lent = request.getfixturevalue("local_spark") if name in ON_SPARK else None
    found = differences(PAGES[name], tmp_path, lent)
    wrong = [f"line {step.line}: {step.text}\n" + "\n".join(real) for step, real in found]
    assert not wrong


def test_every_statement_is_run() -> None:
    """No page shows statements in a block that is not run, and the pages that have sessions are known to be there."""
    assert len(RUN) >= 12
    assert set(NOT_RUN) <= set(PAGES)
    for name, page in PAGES.items():
        outside = re.sub(r"^```p?sql$.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^ *\w*(=>|#|=#) +[A-Za-z]+ .*;", outside, flags=re.MULTILINE), name
        assert not re.search(r"^\(\d+ rows?\)$", outside, flags=re.MULTILINE), name


SHOWN = """\
 mz_timestamp | n | plan
--------------+---+------
           10 | 1 | a
           10 | 2 |
           11 | 3 | b
(3 rows)""".splitlines()


def changed(old: str, new: str) -> list[str]:
    return [line.replace(old, new) for line in SHOWN]


def test_what_varies_is_compared_by_rule() -> None:
    """Epochs may be others, but equal where equal ones are shown; nothing else may differ."""

    def agree(real: list[str], shown: list[str] = SHOWN) -> bool:
        return Comparison().agree(shown, real)

    assert agree(SHOWN)
    assert agree([line.replace("10", "77").replace("11 |", "78 |") for line in SHOWN])
    assert not agree([*SHOWN[:3], SHOWN[3].replace("10", "12"), *SHOWN[4:]])
    assert not agree(changed("| 2", "| 4"))
    assert not agree(changed("| b", "| c"))
    assert not agree(changed("plan", "plot"))
    assert not agree(changed("(3 rows)", "(4 rows)"))
    assert not agree(SHOWN[:4] + SHOWN[5:])
    assert agree(SHOWN, [*SHOWN[:3], ELISION, SHOWN[5]])
    assert not agree(changed("| 1", "| 9"), [*SHOWN[:3], ELISION, SHOWN[5]])
    assert agree(["INSERT 0 1"], [])
    assert not agree(["ERROR:  no"], [])
    assert not agree(["INSERT 0 2"], ["INSERT 0 1"])
    sizes = [" name | bytes", "------+-------", " a    |  1024", "(1 row)"]
    assert agree([*sizes[:2], " a    |  4096", sizes[3]], sizes)
    assert not agree([*sizes[:2], " a    |     x", sizes[3]], sizes)
    plan = ["QUERY PLAN", "----------", " a", "   b", "(2 rows)"]
    assert not agree([*plan[:3], " b", plan[4]], plan)


def rewrite(page: Path, spark: SparkSettings) -> None:
    """Puts what came in the place of what was shown otherwise."""
    lines = page.read_text().splitlines()
    with TemporaryDirectory() as folder:
        wrong = differences(page.resolve(), Path(folder), spark=spark, patience=5)
    for step, real in reversed(wrong):
        assert step.shown is not None
        after = step.first + len(step.shown)
        apart = [""] if real[-1].startswith("(") and not lines[after].startswith("```") else []
        lines[step.first : after] = [*real, *apart]
    page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spark", default=LOCAL.master)
    parser.add_argument("--shared", type=Path)
    parser.add_argument("pages", nargs="+", type=Path)
    options = parser.parse_args()
    for given in options.pages:
        rewrite(given, SparkSettings(options.spark, options.shared, memory=LOCAL.memory))
