"""``make pictures``: the papers' pictures from our own runs, as SVG in docs/benchmarks.

They are drawn from ``docs/benchmarks/pictures.json``; ``make pictures MEASURE=fixpoints,rates`` (or ``all``) measures
anew before. Each measurement says when it was made, under which load, and on what.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks import curves, fixpoints, report, rivals
from benchmarks.calibrate import factor
from benchmarks.svg import Axis, Chart, Series, draw
from benchmarks.workloads import workloads
from ivm.kernels.warm import warm

STORED: Final = report.FOLDER / "pictures.json"
DAY: Final = fixpoints.Window(seconds=86_400, rate=5, people=400_000)
AFTER: Final = (100, 1_000, 10_000, 100_000, 1_000_000)
SIZES: Final = {
    "W1": (1, 10, 100, 1_000, 10_000), "W2": (1, 10, 100, 1_000, 10_000),
    "W4": (1, 10, 100, 1_000, 10_000, 100_000), "W5": (1, 10, 100, 1_000, 10_000, 100_000),
}  # fmt: skip
VALUES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
NODES: Final = (100, 300, 1_000, 3_000, 10_000, 30_000)

Data = dict[str, Any]


def measure_fixpoints(window: fixpoints.Window = DAY, slides: int = 101) -> Data:
    """Rounds of four ways to components."""
    found = fixpoints.measure(window, slides)
    return {
        "window": asdict(window),
        "passes": {name: [[p.vector, p.records, round(p.milliseconds, 4)] for p in ps] for name, ps in found.items()},
    }


def measure_latency(shrink: int = 1, after: tuple[int, ...] = AFTER, window: int = 1_000) -> Data:
    """Single updates of W1 after growing numbers of updates."""
    found = curves.latencies(workloads(shrink)["W1"], after, window)
    return {"window": window, "quantiles": curves.QUANTILES, "after": found}


def measure_rates(
    shrink: int = 1, sizes: dict[str, tuple[int, ...]] = SIZES, count: int = 20_000, speed: float | None = None
) -> Data:
    """Rates by size of batch. ``speed``: the calibration factor, measured if None."""
    chosen = workloads(shrink)
    return {
        "factor": speed or factor(),
        "ours": {name: curves.rates(chosen[name], batches, count) for name, batches in sizes.items()},
        "compiled": {name: chosen[name].rival for name in sizes},
    }


def measure_interning(counts: tuple[int, ...] = VALUES, speed: float | None = None) -> Data:
    """Interning 64-bit values."""
    return {"factor": speed or factor(), "values": curves.interned(counts)}


def measure_graphs(sizes: tuple[int, ...] = NODES, changes: int = 20) -> Data:
    """Table 1's algorithms by size."""
    return {
        name: {n: asdict(g) for n, g in curves.grown(name, sizes, changes).items()} for name in curves.ALGORITHMS
    }  # fmt: skip


def points(found: dict[Any, float], scale: float = 1.0) -> tuple[tuple[float, float], ...]:
    """A mapping, whose keys JSON has made strings, as points."""
    return tuple(sorted((float(x), scale * y) for x, y in found.items()))


WAYS: Final = {"stateless": 5, "incremental": 0, "prioritised": 1, "differential": 2}


def draw_fixpoints(data: Data, note: str) -> dict[str, Chart]:
    """Figures 1 and 6 of the CIDR paper; a pass is placed by its rank among the loop vectors of all four ways."""
    passes, window = data["passes"], data["window"]
    vectors = sorted({vector for found in passes.values() for vector, *_ in found})
    place = {vector: i for i, vector in enumerate(vectors)}
    note = f"{window['seconds']:,} s × {window['rate']} mentions among {window['people']:,} people. {note}"
    charts = {}
    for column, file, title, label, low in (
        (1, "fixpoint-records", "Records in difference, pass by pass (CIDR 2013, figure 1)", "records (log)", 0.5),
        (2, "fixpoint-times", "Milliseconds of CPU, pass by pass (CIDR 2013, figure 6)", "ms of CPU (log)", 0.01),
    ):
        lines = []
        for name, colour in WAYS.items():
            total = sum(found[column] for found in passes[name])
            spent = f"{total:,.0f} records" if column == 1 else f"{report.three(total)} ms"
            what = "differential (window slides by 1 s)" if name == "differential" else name
            known = {place[found[0]]: float(found[column]) for found in passes[name]}
            shown = tuple((x, known.get(x, 0.0)) for x in range(max(known) + 1))
            lines.append(Series(f"{what}: {spent} in all", shown, colour))
        x = Axis("pass (rounds; prioritised ones by priority, then round)")
        charts[file] = Chart(title, note, x, Axis(label, log=True, low=low), tuple(lines))
    return charts


def draw_latency(data: Data, note: str) -> dict[str, Chart]:
    """The roadmap's distributions: how many updates take longer than a given time."""
    lines = []
    for colour, (after, found) in enumerate(sorted(data["after"].items(), key=lambda item: int(item[0]))):
        shown = tuple((x, 1 - q / 100) for q, x in zip(data["quantiles"], found, strict=True))
        lines.append(Series(f"after {int(after):,} updates", shown, colour))
    note = f"W1: 1,000 nodes, 2,000 edges; {data['window']:,} single updates after so many. {note}"
    x, y = (
        Axis("microseconds of CPU for an update (log)", log=True),
        Axis("share of updates that take longer", log=True),
    )
    return {"latency": Chart("Latency stays flat (roadmap, 2016)", note, x, y, tuple(lines))}


def draw_rates(data: Data, note: str) -> dict[str, Chart]:
    """Rates by size of batch, ours and the compiled system's."""
    lines = []
    for colour, name in enumerate(data["ours"]):
        lines.append(Series(f"{name}, Freshet", points(data["ours"][name]), colour))
        theirs = points(data["compiled"][name], data["factor"])
        lines.append(Series(f"{name}, differential-dataflow", theirs, colour, dashed=True))
    note = f"{note}; its figures corrected by {data['factor']:.2f}"
    x, y = Axis("updates in a batch (log)", log=True), Axis("updates per second of CPU (log)", log=True)
    return {"rates": Chart("Updates per second by size of batch", note, x, y, tuple(lines))}


def draw_interning(data: Data, note: str) -> dict[str, Chart]:
    """CPU and memory of a value (interning post, 2018)."""
    found = data["values"]
    compiled = (rivals.INTERNING_LOAD * 100 / data["factor"], rivals.INTERNING_MB / 10)
    charts = {}
    for k, file, title, label in (
        (0, "interning-time", "Interning 64-bit values: time", "nanoseconds of CPU a value"),
        (1, "interning-bytes", "Interning 64-bit values: memory", "bytes a value"),
    ):
        ours = Series("Freshet's dictionary", points({n: cell[k] for n, cell in found.items()}), 0)
        theirs = Series("differential-dataflow (peak, 10M)", ((1e7, compiled[k]),), 1, dashed=True)
        x = Axis("values (log)", log=True)
        charts[file] = Chart(title, note, x, Axis(label), (ours, theirs))
    return charts


def draw_graphs(data: Data, note: str) -> dict[str, Chart]:
    """Load and change by size of graph (CIDR 2013, Table 1)."""
    charts = {}
    for key, file, title, label in (
        ("load", "graphs-load", "Table 1's algorithms: the first answer", "seconds of CPU (log)"),
        (
            "change",
            "graphs-change",
            "Table 1's algorithms: one edge goes or comes",
            "milliseconds of CPU, median (log)",
        ),
    ):
        lines = tuple(
            Series(name, points({n: g[key] for n, g in found.items()}), i)
            for i, (name, found) in enumerate(data.items())
        )
        x = Axis("nodes; twice as many edges (log)", log=True)
        charts[file] = Chart(title, f"Random graphs. {note}", x, Axis(label, log=True), lines)
    return charts


PICTURES: Final[dict[str, tuple[Callable[[], Data], Callable[[Data, str], dict[str, Chart]]]]] = {
    "fixpoints": (measure_fixpoints, draw_fixpoints),
    "latency": (measure_latency, draw_latency),
    "rates": (measure_rates, draw_rates),
    "interning": (measure_interning, draw_interning),
    "graphs": (measure_graphs, draw_graphs),
}


def measured(name: str) -> Data:
    """A measurement, and when and how it was made."""
    date, before = report.now(), os.getloadavg()[0]
    data = PICTURES[name][0]()
    return {"date": date, "load": [before, os.getloadavg()[0]], **report.machine(), "data": data}


def drawn(stored: Data) -> dict[str, str]:
    """Every picture with measurements: file name → SVG."""
    found = {}
    for name, kept in stored.items():
        low, high = sorted(kept["load"])
        note = f"{kept['processor']}, {kept['date']}, load {low:.1f} to {high:.1f}"
        for file, chart in PICTURES[name][1](kept["data"], note).items():
            found[f"{file}.svg"] = draw(chart)
    return found


def main() -> None:
    """Flags → measurements, pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", default="", help="pictures to measure anew, separated by commas, or all")
    parser.add_argument("--stored", type=Path, default=STORED)
    options = parser.parse_args()
    names = [*PICTURES] if options.measure == "all" else [*filter(None, options.measure.split(","))]
    stored = json.loads(options.stored.read_text()) if options.stored.exists() else {}
    if names:
        warm(lambda _name, _done, _all: None)
    for name in names:
        stored[name] = measured(name)
        ordered = {n: stored[n] for n in PICTURES if n in stored}
        options.stored.parent.mkdir(parents=True, exist_ok=True)
        options.stored.write_text(json.dumps(ordered, ensure_ascii=False) + "\n")
        print(f"{name}: measured, load {os.getloadavg()[0]:.1f}", flush=True)
    for file, text in drawn(stored).items():
        options.stored.with_name(file).write_text(text)
        print(options.stored.with_name(file))


if __name__ == "__main__":
    main()
