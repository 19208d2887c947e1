"""`make bench` on small data: every workload's result is right, every row names its rival. Times are never checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import crowd, demand, point_reads, report, rivals, spark_hydration, statements, wide
from benchmarks.run import COMMITS, ENGINE, LIBRARY, STATEMENTS, VALUES, WIRE, Run, Size, chosen, measured
from benchmarks.server import port_of, server
from benchmarks.svg import draw
from ivm.kernels.warm import warm

SMALL = Size(shrink=100, quick=True)
WORKLOADS = list(chosen())


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    warm(lambda _name, _done, _all: None)


def run_of(key: str) -> Run:
    table, name, measure = next(what for found, *what in WORKLOADS if found == key)
    return measured(table, name, measure, SMALL, 1.0)


@pytest.mark.parametrize("name", [key for key, table, *_ in WORKLOADS if table == ENGINE])
def test_engine(name: str) -> None:
    run = run_of(name)
    assert run.rows[0].case == "load"
    assert all(row.right is not False for row in run.rows)
    assert any(row.right for row in run.rows)
    assert all(row.ours > 0 for row in run.rows if row.unit != report.MEGABYTES)
    for row in run.rows:
        assert (row.met is None) == (not row.aim or row.aim.endswith("not measured"))
        if row.case.startswith(("load", "batch")):
            assert set(row.rivals) == ({rivals.COMPILED} if name == "W6" else set())


def test_the_compiled_system_runs_beside_where_its_driver_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "driver"
    driver.write_text(
        "#!/bin/sh\n[ \"$*\" = 'w4 10000 50000 3 1 1:20,1000:2000,100000:2000' ] || exit 1\n"
        "echo 'w4 n=10000 size=50000 load wall 3.9 cpu 1.5 rss 1 peak 2 base 3 MB'\n"
        "for batch in 1 1000 100000; do\n"
        'echo "  batch $batch n 9 rate_cpu 0.5 rate_wall 9 cpu_us p50 1.0 p99 157.5 max 498.0 wall_us p50 1"\ndone\n'
    )
    driver.chmod(0o755)
    monkeypatch.setenv("FRESHET_DIFFERENTIAL", str(driver))
    beside = {row.case: (row.rivals.get(f"{rivals.COMPILED}, here"), row.met) for row in run_of("W4").rows}
    assert [beside[case][0] for case in ("load", "batch 1", "batch 1,000")] == [1.5, 0.5, 0.5]
    assert beside["p99"][0] == pytest.approx(157.5e-6)
    assert beside["batch 1"][1] is True


@pytest.mark.parametrize("name", [key for key, table, *_ in WORKLOADS if table == LIBRARY])
def test_library(name: str) -> None:
    """The view is what DuckDB computes from the remaining rows."""
    batches = run_of(name).rows[1:]
    assert len(batches) >= 2
    assert all(row.right for row in batches)


def test_wire() -> None:
    run = run_of("wire A_S")
    assert [row.case for row in run.rows] == ["load", "batch 1", "batch 100"]
    assert all(row.right for row in run.rows[1:])
    assert any("here" in name for row in run.rows for name in row.rivals)


def test_values() -> None:
    rows = run_of("values").rows
    assert len(rows) > 4
    assert all(row.ours > 0 for row in rows)


def test_statements() -> None:
    """All of them are right."""
    rows = run_of("statements").rows
    assert len(rows) == 2 * len(statements.FORMS)
    assert all(row.ours > 0 for row in rows)


def test_many_clients() -> None:
    """What subscribers and readers got is checked where it is measured."""
    with server() as dsn:
        assert len(crowd.measure(port_of(dsn), 20, 20, 5, 5.0, 1.0)) > 3
        assert len(point_reads.measure(port_of(dsn), 4, 0.5, rows=1000)) > 4


def test_demand() -> None:
    """Counts are checked where they are measured."""
    pairs = demand.graph(100, True, 150)
    assert demand.reached(pairs, 3) == 100
    assert demand.reached(np.array([[0, 1], [1, 2], [3, 0]]), 0) == 2
    with server() as dsn:
        found = demand.measure(dsn, pairs, True, 1)
    assert [rows for rows, _ in found.values()] == [10_000, 100, 100]


def test_wide() -> None:
    """Both ways show the same rows; four views by three keys take far fewer bytes."""
    for views, measured_in in ((wide.VIEWS, 10), (wide.LATEST, 7)):
        lines: list[str] = []
        off, late = wide.compare(views, 5000, 20, lines.append)
        assert off.shown() == late.shown()
        assert min(off.shown()) > 0
        assert off.held()[0] == late.held()[0]
        assert late.held()[1] < off.held()[1] / 2
        assert len(lines) == measured_in


def test_hydration_by_spark() -> None:
    """The views match the tables; the figures become rows and a picture."""
    for view in spark_hydration.VIEWS.values():
        made = view.made(1_000)
        assert {name: len(table.columns) for name, table in made.items()} == {
            name: columns.count(",") + 1 for name, columns in view.tables.items()
        }
    ways = {"plain": [2.0, 1.0, 1.5], "spark": [5.0, 4.0, 4.5], "local": [3.0, 3.0, 3.0]}
    found = {way: spark_hydration.Found(seconds, [1, 2, 3]) for way, seconds in ways.items()}
    rows = [row for count in (10**6, 10**7) for row in spark_hydration.told("join", count, found)]
    assert [(row.case, row.ours, row.ratio) for row in rows[::2]] == [("1M rows", 4.5, 3.0), ("10M rows", 4.5, 3.0)]
    assert [row.met for row in rows[::2]] == [None, True]
    chart = spark_hydration.picture([Run(spark_hydration.TABLE, "2026-11-22 12:00", (0.5, 1.5), 1.0, tuple(rows))])
    assert {line.name: line.points for line in chart.series} == {
        "join, by Spark": ((1.0, 4.5), (10.0, 4.5)),
        "join, plain Spark SQL": ((1.0, 1.5), (10.0, 1.5)),
        "join, the server itself": ((1.0, 3.0), (10.0, 3.0)),
    }
    assert draw(chart).startswith("<svg")


def test_only() -> None:
    assert [key for key, *_ in chosen(["W3"])] == ["W3", "W3-1M", "W3-plain"]
    assert [key for key, *_ in chosen(["A_S", "copy"])] == ["wire A_S", "library A_S", "commits copy"]
    tables = {table for _, table, *_ in WORKLOADS}
    assert tables == {ENGINE, WIRE, LIBRARY, COMMITS, VALUES, STATEMENTS}


def test_rows_are_kept_and_shown(tmp_path: Path) -> None:
    row = {"workload": "W1", "case": "batch 1", "unit": report.RATE, "ours": 20_000.0, "right": True}
    first = report.at_least({**row, "rivals": {"other": 10_000.0}}, 2.0, 1.5)
    second = report.below({**row, "case": "p99", "unit": report.SECONDS, "ours": 2e-3, "right": False}, 1e-3)
    run = Run(ENGINE, "2026-11-20 12:00", (0.5, 1.5), 1.25, (first, second))
    kept = report.save({"W1": run}, tmp_path / "results.json")
    assert report.runs_of(kept) == {"W1": run}
    again = report.save({"W2": run}, tmp_path / "results.json")
    assert set(again["runs"]) == {"W1", "W2"}
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.publish(report.page(kept), page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| W1 | batch 1 | 20,000 | 10,000 | 2.00 | ≥ 1.5× | yes |" in text
    assert "|  | p99 | 2 ms |  |  | < 1 ms | **no**, **wrong result** |" in text
    assert "1 of 2 aims met" in text
    assert "load average 0.5 to 1.5" in text
