"""``make bench``: W1 to W8, A to E, commits over the wire and values, beside the rivals' figures and the aims.

``make bench ONLY=W1,W4,A`` runs some. Every workload runs in a Python of its own. What was found is printed, kept in
``docs/benchmarks/results.json`` (in the place of what was known of the workload), and shown in ``docs/benchmarks.md``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import (
    compiled,
    engine,
    interning,
    library,
    pathway_beside,
    recompute,
    report,
    rivals,
    server,
    statements,
    values,
)
from benchmarks.calibrate import factor
from benchmarks.report import HERE, MILLISECONDS, SECONDS, Row, Run
from benchmarks.workloads import workloads
from ivm.kernels.warm import warm

ENGINE = "The engine, beside the compiled differential-dataflow (one worker)"
WIRE = "A to E over the wire, durable (milliseconds, median / p99)"
LIBRARY = "A to E, `ivm` alone in process (milliseconds of CPU, median / p99)"
COMMITS = "Commits over the wire, durable"
VALUES = "Functions and casts over 50,000 distinct rows, one-shot (microseconds of CPU a row, scan included)"
STATEMENTS = "Long statements, each text new (milliseconds of CPU)"
QUICK = {1: 20, 10: 20, 100: 200, 1_000: 2_000, 100_000: 2_000}


@dataclass(frozen=True, slots=True)
class Size:
    """``shrink`` divides bases; ``quick``: only as many updates as fit in a test."""

    shrink: int = 1
    quick: bool = False

    def plan(self, case: library.Case) -> library.Plan:
        """The batches of a workload."""
        sizes = dict.fromkeys(min(size, 100) for size, _ in case.plan)
        return tuple((size, 2) for size in sizes) if self.quick else case.plan


def engine_rows(name: str, size: Size, speed: float) -> list[Row]:
    """One of W1 to W8."""
    if name == "W6":
        return interning.compare(interning.measure(interning.VALUES // size.shrink), speed)
    workload = workloads(size.shrink)[name]
    most = QUICK if size.quick else engine.BATCHES
    load, cells = engine.measure(workload, most)
    return engine.compare(name, load, cells, compiled.measure(name, engine.counts(workload, most), size.shrink))


def computed_anew(case: library.Case, size: Size) -> dict[str, dict[int, float]]:
    """Median milliseconds by size of batch of the rival that recomputes the view, on this machine."""
    return {rivals.RECOMPUTE + HERE: {b.size: b.half for b in recompute.measure(case, size.plan(case))}}


def given(figures: dict[str, rivals.Cells], name: str, size: int, speed: float) -> dict[str, float]:
    """The rivals' figures for a cell, corrected."""
    return {
        rival: cells[name][size] / speed for rival, cells in figures.items() if size in cells.get(name, {})
    }  # fmt: skip


def cell(name: str, size: int, half: float, most: float, right: bool | None, theirs: dict[str, float]) -> Row:
    """A batch size of A to E whose aim is to be below all of ``theirs``."""
    least = min(theirs.values(), default=None)
    ratio = None if least is None else half / least
    aim = "" if least is None else f"< {report.figure(least, MILLISECONDS)}"
    met = None if least is None else half < least
    return Row(name, f"batch {size:,}", MILLISECONDS, half, theirs, ratio, aim, met, right, most)


def wire_rows(name: str, size: Size, speed: float) -> list[Row]:
    """One of A to E over the wire."""
    case = library.cases(size.shrink)[name]
    others = computed_anew(case, size)
    found = server.measure(case, size.plan(case))
    rows = [Row(name, "load", SECONDS, found.load)]
    for batch, samples in found.batches.items():
        half, most = (float(np.percentile(samples, q)) for q in (50, 99))
        row = cell(name, batch, half, most, found.right, given(rivals.DURABLE, name, batch, speed))
        row.rivals.update({rival: cells[batch] for rival, cells in others.items() if batch in cells})
        rows.append(row)
        aim = rivals.RECOMPUTE_RATIOS.get(name)
        if batch == 10_000 and aim is not None:
            theirs = others[rivals.RECOMPUTE + HERE][batch]
            beside_it = {"workload": name, "case": "beside DuckDB's recompute", "unit": MILLISECONDS, "ours": half}
            rows.append(report.at_most(beside_it, half / theirs, aim, "its"))
    return rows


def library_rows(name: str, size: Size, speed: float) -> list[Row]:
    """One of A to E without the wire."""
    warm(lambda _name, _done, _all: None)
    case = library.cases(size.shrink)[name]
    others = (not size.quick and pathway_beside.measure(name, case, size.plan(case), size.shrink)) or {}
    found = library.measure(case, size.plan(case), recompute.expected)
    rows = [Row(name, "load", SECONDS, found.load)]
    for batch in found.batches:
        half, most = (float(np.percentile(batch.cpus, q)) for q in (50, 99))
        row = cell(name, batch.size, half, most, found.right, given(rivals.LIBRARIES, name, batch.size, speed))
        if batch.size in others:
            row.rivals[f"pathway{HERE}"] = others[batch.size]
        rows.append(row)
    return rows


def commit_rows(name: str, size: Size, speed: float) -> list[Row]:
    """Commits over the wire that are not a workload of WORKLOADS.md."""
    return server.COMMITS[name]()


def value_rows(name: str, size: Size, speed: float) -> list[Row]:
    """Functions and casts beside PostgreSQL, where one runs."""
    return list(values.measure(values.EXPRESSIONS[::20], 1_000) if size.quick else values.measure(values.EXPRESSIONS))


def statement_rows(name: str, size: Size, speed: float) -> list[Row]:
    """Long statements beside PostgreSQL, where one runs."""
    if size.quick:
        return list(statements.measure(list(statements.FORMS), size.shrink, 1))
    return list(statements.measure(list(statements.FORMS)))


Measure = Callable[[str, Size, float], list[Row]]


def chosen(only: Iterable[str] = ()) -> Iterator[tuple[str, str, str, Measure]]:
    """(key, table, workload, how it is measured) of the workloads asked for: ``W3`` is W3-1M too, ``A`` A_S and A_L."""
    wanted = tuple(only)

    def asked(name: str) -> bool:
        return not wanted or any(name == w or name.startswith((f"{w}_", f"{w}-")) or name[0] == w for w in wanted)

    for name in sorted([*workloads(), "W6"]):
        if asked(name):
            yield name, ENGINE, name, engine_rows
    for table, prefix, measure in ((WIRE, "wire", wire_rows), (LIBRARY, "library", library_rows)):
        for name in library.cases():
            if asked(name):
                yield f"{prefix} {name}", table, name, measure
    for name in server.COMMITS:
        if asked(name):
            yield f"commits {name}", COMMITS, name, commit_rows
    if asked("values"):
        yield "values", VALUES, "values", value_rows
    if asked("statements"):
        yield "statements", STATEMENTS, "statements", statement_rows


def measured(table: str, name: str, measure: Measure, size: Size, speed: float) -> Run:
    """One workload, now, in this Python."""
    date, before = report.now(), os.getloadavg()[0]
    rows = measure(name, size, speed)
    return Run(table, date, (before, os.getloadavg()[0]), speed, tuple(rows))


def apart(*what: object) -> Run:
    """``measured`` in its own Python process, so that no workload inherits another's memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measured, *what).result()  # type: ignore[arg-type]


def main() -> None:
    """Flags → runs, JSON, page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="workloads, separated by commas")
    parser.add_argument("--draft", type=Path, help="keep the figures in this file, and leave the page as it is")
    options = parser.parse_args()
    path = options.draft or report.RESULTS
    speed = factor()
    for key, *what in chosen(filter(None, options.only.split(","))):
        run = apart(*what, Size(), speed)
        kept = report.save({key: run}, path)
        print(report.table(run.table, [run]), flush=True)
        if options.draft is None:
            report.publish(report.page(kept))


if __name__ == "__main__":
    main()
