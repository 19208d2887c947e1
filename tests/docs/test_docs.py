"""The documentation is true: every statement of its pages gives what the page shows, and every link leads somewhere.

Run as a program, with pages as arguments, it replaces shown results that differ from the real ones; review the
difference. ``--spark URL --shared DIR`` does so with another Spark than ``local[2]``.
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
    for pattern in ("*.md", "docs/**/*.md", "[a-z]*/README.md", "examples/*/README.md")
    for page in sorted(ROOT.glob(pattern))
}
NOT_RUN = {
    "docs/how-to/create-large-views.md": "ten million rows take half a minute; the hydration tests have smaller views",
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
    """The statements whose result differs from the page, with the real result. ``lent``: as in ``Server``; without it
    the server starts the Spark of ``spark``."""
    workers.use(WORKERS.get(str(page.relative_to(ROOT)), 1))
    out = folder / "out"
    (out / "arriving").mkdir(parents=True)
    server = Server(
        folder / "data",
        (ROOT / "docs" / "data", out),
        True,
        places=(str(out),),
        spark=spark,
        lent=lent,
        hosts=("lake",),
    )
    server.run(begin(server))
    try:
        return [(step, real) for step, real, agrees in play(page, server, patience) if not agrees]
    finally:
        server.close()
        workers.use(1)


async def begin(server: Server) -> None:
    """Starts the page's sources."""
    Sources(server.coordinator)


@pytest.mark.parametrize("name", RUN)
def test_page(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each statement of a page gives what the page shows."""
    lent = request.getfixturevalue("local_spark") if name in ON_SPARK else None
    found = differences(PAGES[name], tmp_path, lent)
    wrong = [f"line {step.line}: {step.text}\n" + "\n".join(real) for step, real in found]
    assert not wrong


def test_every_statement_is_run() -> None:
    """No page shows statements outside of the blocks that are run, and the pages named above exist."""
    assert len(RUN) >= 20
    assert {*NOT_RUN, *WORKERS, *ON_SPARK} <= set(PAGES)
    for name, page in PAGES.items():
        outside = re.sub(r"^```p?sql$.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^ *\w*(=>|#|=#) +[A-Za-z]+ .*;", outside, flags=re.MULTILINE), name
        assert not re.search(r"^\(\d+ rows?\)$", outside, flags=re.MULTILINE), name


LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *$", re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its fenced blocks and code spans, where brackets are no links."""
    return re.sub(r"`[^`\n]+`", "", fenceless(page))


def fenceless(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = [re.sub(r"\[([^][]*)\]\([^()]*\)", r"\1", found) for found in HEADING.findall(fenceless(page))]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The relative links of a page whose file, folder or anchor does not exist."""
    broken = []
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and (target.suffix != ".md" or anchor not in anchors(target))):
            broken.append(link)
    return broken


@pytest.mark.parametrize("name", PAGES)
def test_links(name: str) -> None:
    """Every relative link leads to a file or folder, and every anchor to a heading."""
    assert not broken_links(PAGES[name])


FOLDERS = ("ivm", "planner", "storage", "sql", "tests", "benchmarks", "examples", "docs")
NAMED = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+?(?:\.\w+|/))`")


@pytest.mark.parametrize("name", PAGES)
def test_named_files_exist(name: str) -> None:
    """Every file or folder of the repository that a page names exists. A folder's README may name its own."""
    page = PAGES[name]
    named = NAMED.findall(page.read_text())
    assert not [path for path in named if not (ROOT / path).exists() and not (page.parent / path).exists()]


CODE = ("ivm", "planner", "storage", "sql", "tests", "benchmarks")


@pytest.mark.parametrize("page", [page for folder in CODE for page in sorted((ROOT / folder).rglob("README.md"))])
def test_own_files_exist(page: Path) -> None:
    """Every module that a folder's README names is below the folder, under the path it is given there."""
    named = re.findall(r"`([\w/]+\.py)`", page.read_text())
    assert not [path for path in named if not (ROOT / path).exists() and not [*page.parent.rglob(path)]]


def test_code_names_pages_that_exist() -> None:
    """Docstrings and comments point to pages that exist."""
    wrong = [
        f"{file.relative_to(ROOT)}: {page}"
        for folder in FOLDERS[:-1]
        for file in sorted((ROOT / folder).rglob("*.py"))
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text())
        if not (ROOT / page).exists()
    ]
    assert not wrong


def test_broken_links_are_found(tmp_path: Path) -> None:
    """What the check of links accepts and refuses."""
    other = tmp_path / "other.md"
    other.write_text("# One file: `COPY … TO`\n\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#one-file-copy--to) [c](#here) [d](https://example.org/x) `[e](none)`\n"
        "[f](none.md) [g](other.md#no-heading) [h](#there) ![i](none.svg)\n"
    )
    assert broken_links(page) == ["none.md", "other.md#no-heading", "#there", "none.svg"]


def test_index_names_every_page() -> None:
    """The index of the documentation links to every page of its folders."""
    index = PAGES["docs/README.md"]
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(index))}
    linked |= {
        (decisions.parent / link).resolve()
        for decisions in linked
        if decisions.name == "README.md"
        for link in LINK.findall(prose(decisions))
    }
    assert not [name for name, page in PAGES.items() if name.startswith("docs/") and page not in linked | {index}]


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
    """Epochs may differ, but must be equal where the page shows equal ones; nothing else may differ."""

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
    """Replaces shown results that differ from the real ones."""
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
