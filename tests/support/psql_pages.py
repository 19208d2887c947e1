r"""Pages of the documentation, run as psql sessions and compared with the real output.

Two kinds of a page's fenced blocks are run, in order, each page on a server of its own:

- ``sql``: a script. Every statement must succeed; no output is shown.
- ``psql``: a session. A line ``=> statement`` starts a statement (which ends with ``;`` at the end of a line); the
  lines up to the next one are psql's output. Another session's prompt has its name: ``other=> statement``.
  Of psql's own commands ``\gexec``, ``\i`` and ``\! sleep`` are run; others are assumed to have been run.

The output must match what is shown, except for values that vary, by these rules:

- ``…`` alone in a line matches any number of lines;
- in the columns ``VARYING`` values differ from run to run: each shown value stands for one real value;
- in the columns ``SIZES`` any number, or size in bytes, matches any other;
- ``Time:`` is psql's own measurement, and not compared;
- right after ``\! sleep`` the statement is repeated for up to a minute, until its output matches;
- command tags alone (``INSERT 0 1``) may be omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from ivm.errors import SqlError
from sql.parse import split
from sql.statements.results import CommandResult, Notice, RowsResult
from storage.types.type_names import type_oid
from tests.support.sessions import Client, Server, text_rows

VARYING = frozenset({"mz_timestamp", "mz_now", "started", "epoch", "lag"})
"""Epochs and times."""
SIZES = frozenset({"p50_us", "p99_us", "longest_us", "parts", "cpu_ms", "bytes", "size", "own_size"})
"""Memory, which grows in steps; counts of each thread's work; durations."""
PROMPT = re.compile(r"(\w*)=> ?(.*)")
RIGHT = frozenset({20, 21, 23, 26, 28, 29, 700, 701, 790, 1700})
"""OIDs of the types that psql aligns to the right."""
ELISION = "…"
AGAIN_SECONDS = 0.25
PATIENCE = 60.0


@dataclass(slots=True)
class Step:
    """A statement of a page: its session, the output shown (None for scripts), and its lines in the page."""

    session: str
    text: str
    shown: list[str] | None
    line: int
    first: int = 0
    """The line where ``shown`` begins in the page, from 0."""


def steps(page: str) -> Iterator[Step]:
    """The statements of a page's blocks."""
    lines = page.splitlines()
    kind = None
    block: list[str] = []
    for at, line in enumerate(lines):
        if not line.startswith("```"):
            block.append(line)
        elif kind is None:
            kind, block = line[3:].strip(), []
        else:
            start = at - len(block)
            if kind == "sql":
                yield Step("", "\n".join(s for s in block if not s.startswith("\\")), None, start + 1)
            elif kind == "psql":
                yield from session_steps(block, start)
            kind = None


def session_steps(block: list[str], start: int) -> Iterator[Step]:
    at = 0
    while at < len(block):
        prompt = PROMPT.fullmatch(block[at])
        assert prompt, f"line {start + at + 1}: no prompt: {block[at]}"
        begun, text = at, [prompt[2]]
        at += 1
        while not ended(text):
            assert at < len(block), f"line {start + begun + 1}: a statement without end"
            text.append(block[at])
            at += 1
        first = at
        while at < len(block) and not PROMPT.fullmatch(block[at]):
            at += 1
        yield Step(prompt[1], "\n".join(text), block[first:at], start + begun + 1, start + first)


def ended(text: list[str]) -> bool:
    """Whether the statement is complete, as psql sees it; of quotes only ``$$`` occur in the pages."""
    whole = "\n".join(text)
    return (
        whole.startswith("\\")
        or whole.endswith("\\gexec")
        or (whole.count("$$") % 2 == 0 and re.search(r";\s*(--.*)?$", text[-1]) is not None)
    )


@dataclass(slots=True)
class Sessions:
    """The sessions of a page, by name."""

    server: Server
    folder: Path
    """The page's folder, for files to be read."""
    clients: dict[str, Client] = field(default_factory=dict)

    def answer(self, step: Step) -> list[str]:
        """psql's output. A script's error is raised."""
        if pause := re.match(r"\\! sleep ([0-9.]+)", step.text):
            sleep(float(pause[1]))
        client = self.clients.get(step.session) or self.clients.setdefault(step.session, self.server.client())
        lines: list[str] = []
        text = "" if step.text.startswith("\\") else step.text
        if step.text.startswith("\\i "):
            text = (self.folder / step.text.removeprefix("\\i ").strip()).read_text()
        if text.endswith("\\gexec"):
            text = ";".join(str(row[0]) for row in client.rows(text.removesuffix("\\gexec")))
        for statement in split(text):
            try:
                found = client.results(statement.text)
            except SqlError as error:
                if step.shown is None:
                    raise
                lines += said("ERROR", error)
            else:
                for notice in client.notices():
                    lines += said(notice.severity, notice)
                for result in found:
                    lines += table(result) if isinstance(result, RowsResult) else tag(result)
        return lines


def said(severity: str, what: SqlError | Notice) -> list[str]:
    parts = [(severity, what.message), ("DETAIL", what.detail), ("HINT", what.hint)]
    return [line for name, text in parts if text for line in f"{name}:  {text}".splitlines()]


def tag(result: object) -> list[str]:
    assert isinstance(result, CommandResult), result
    return [result.tag]


def table(result: RowsResult) -> list[str]:
    """A table aligned as by psql; then the tag of a change with RETURNING."""
    names = [c.name for c in result.columns]
    rows = [["" if v is None else v for v in row] for row in text_rows(result)]
    widths = [max([len(n), *(len(r[i]) for r in rows)]) for i, n in enumerate(names)]
    right = [type_oid(c.type) in RIGHT for c in result.columns]
    lefts = [(w - len(n)) // 2 for n, w in zip(names, widths, strict=True)]
    lines = ["|".join(f" {' ' * a}{n}".ljust(w + 2) for a, n, w in zip(lefts, names, widths, strict=True)).rstrip()]
    lines.append("+".join("-" * (w + 2) for w in widths))
    for row in rows:
        cells = zip(row, widths, right, strict=True)
        lines.append("|".join(f" {v.rjust(w) if r else v.ljust(w)} " for v, w, r in cells).rstrip())
    lines.append(f"({len(rows)} row{'s' * (len(rows) != 1)})")
    return [*lines, *([result.tag] if result.tag.startswith(("INSERT", "UPDATE", "DELETE")) else [])]


@dataclass(slots=True)
class Comparison:
    """Which real value each shown value stands for, over a page."""

    stands_for: dict[tuple[str, str], str] = field(default_factory=dict)

    def agree(self, shown: list[str], real: list[str]) -> bool:
        """Whether a page's lines match the real output."""
        said_lines = [cells for cells in cut(shown) if not cells[0][1].startswith("Time: ")]
        real_lines = list(cut(real))
        if not said_lines:
            return all(re.fullmatch(r"[A-Z][A-Z 0-9]+", line) for line in real)
        return self._match(said_lines, real_lines)

    def _match(self, shown: list[Cells], real: list[Cells]) -> bool:
        if not shown:
            return not real
        if shown[0][0][1].strip() == ELISION:
            return any(self._match(shown[1:], real[n:]) for n in range(len(real) + 1))
        return bool(real) and self._same(shown[0], real[0]) and self._match(shown[1:], real[1:])

    def _same(self, shown: Cells, real: Cells) -> bool:
        if len(shown) != len(real):
            return False
        return all(self._same_cell(a, b) for a, b in zip(shown, real, strict=True))

    def _same_cell(self, shown: tuple[str, str], real: tuple[str, str]) -> bool:
        if shown[0] != real[0]:
            return False
        if shown[0] in SIZES:
            return all(re.fullmatch(r"\d+(\.\d+|( (bytes|[kMG]B)))?", cell[1]) for cell in (shown, real))
        return (self.stands_for.setdefault(shown, real[1]) if shown[0] in VARYING else shown[1]) == real[1]


Cells = list[tuple[str, str]]
"""A line as (column, value) pairs; a line outside tables is one value of column ''."""


def cut(lines: list[str]) -> Iterator[Cells]:
    """Split lines into cells. Blank lines are omitted; alignment is ignored, but a plan's indentation is not."""
    names: list[str] = []
    ends: list[int] = []
    for at, line in enumerate(lines):
        if not line.strip() or re.fullmatch(r"[-+]+", line):
            continue
        if at + 1 < len(lines) and re.fullmatch(r"-[-+]*", lines[at + 1]):
            ends = [m.start() for m in re.finditer(r"\+|$", lines[at + 1])]
            names = [name.strip() for name in pieces(line, ends)]
            yield [("", name) for name in names]
        elif re.fullmatch(r"\(\d+ rows?\)", line):
            names = []
            yield [("", line)]
        elif names and line.strip() != ELISION:
            yield list(zip(names, pieces(line, ends), strict=True))
        else:
            yield [("", line.rstrip())]


def pieces(line: str, ends: list[int]) -> list[str]:
    starts = [0, *(end + 1 for end in ends[:-1])]
    ends = [*ends[:-1], max(ends[-1], len(line))]
    found = [line[a:b] for a, b in zip(starts, ends, strict=True)]
    return [found[0].rstrip()] if len(found) == 1 else [piece.strip() for piece in found]


def play(page: Path, server: Server, patience: float = PATIENCE) -> Iterator[tuple[Step, list[str], bool]]:
    """Each statement, its output, and whether that matches the page. ``patience``: seconds to retry after ``\\!
    sleep``."""
    sessions, comparison, until = Sessions(server, page.parent), Comparison(), 0.0
    for step in steps(page.read_text()):
        before = dict(comparison.stands_for)
        real = sessions.answer(step)
        while not (agrees := step.shown is None or comparison.agree(step.shown, real)) and monotonic() < until:
            sleep(AGAIN_SECONDS)
            comparison.stands_for = dict(before)
            real = sessions.answer(step)
        until = monotonic() + patience if step.text.startswith("\\! sleep") else 0.0
        yield step, real, agrees
