"""What `make bench` finds: rows of figures beside rivals and aims, kept as JSON and shown as tables.

A *run* is one workload measured once: when, at which load of the machine, by which calibration factor. Rivals' rates
are multiplied by the factor and their times divided by it, except where the rival ran beside on this machine.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[1] / "docs" / "benchmarks"
RESULTS: Final = FOLDER / "results.json"
PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
RATE, SECONDS, MILLISECONDS, MEGABYTES = "updates/s", "s", "ms", "MB"
HERE: Final = ", here"
"""Ends the name of a rival that ran beside on this machine."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``rivals``: theirs in the same unit, corrected. ``ratio``: as ``aim`` defines it. ``most``: p99.

    ``met`` is None where there is no aim; ``right``: whether the result was checked and right, None: not checked.
    """

    workload: str
    case: str
    unit: str
    ours: float
    rivals: dict[str, float] = field(default_factory=dict)
    ratio: float | None = None
    aim: str = ""
    met: bool | None = None
    right: bool | None = None
    most: float | None = None

    @property
    def told(self) -> str:
        """The figure, and p99 if there is one."""
        return figure(self.ours, self.unit) + ("" if self.most is None else f" / {figure(self.most, self.unit)}")


@dataclass(frozen=True, slots=True)
class Run:
    """A workload's rows; ``load``: the machine's load average before and after."""

    table: str
    date: str
    load: tuple[float, float]
    factor: float
    rows: tuple[Row, ...]


def at_least(row: dict[str, Any], ratio: float, aim: float | None) -> Row:
    """A row whose aim, if any, is a minimum ratio."""
    return Row(**row, ratio=ratio, aim="" if aim is None else f"≥ {aim:g}×", met=None if aim is None else ratio >= aim)


def at_most(row: dict[str, Any], ratio: float, aim: float | None, of: str) -> Row:
    """A row whose aim, if any, is a maximum ratio to something."""
    return Row(
        **row, ratio=ratio, aim="" if aim is None else f"≤ {aim:g}× {of}", met=None if aim is None else ratio <= aim
    )


def not_measured(row: dict[str, Any], aim: float | None, sign: str = "≥") -> Row:
    """A row whose rival has not run: its aim, if any, is neither met nor missed."""
    return Row(**row, aim="" if aim is None else f"{sign} {aim:g}×: not measured")


def below(row: dict[str, Any], limit: float) -> Row:
    """A row whose aim is a figure below the limit in the same unit."""
    return Row(**row, aim=f"< {figure(limit, row['unit'])}", met=row["ours"] < limit)


def machine() -> dict[str, Any]:
    """The machine that the figures come from."""
    model = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "unknown"
    )
    memory = next((int(line.split()[1]) >> 20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {"processor": model, "cores": os.cpu_count(), "memory GB": memory, "python": platform.python_version()}


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def now() -> str:
    """The time, to the minute."""
    return datetime.now().isoformat(" ", "minutes")


def figure(value: float, unit: str) -> str:
    """A figure as shown in a table."""
    if unit == SECONDS:
        for factor, name in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
            if value * factor >= 1 or name == "µs":
                return f"{three(value * factor)} {name}"
    return f"{value:,.0f}" if unit == RATE else f"{three(value)} {unit}"


def three(value: float) -> str:
    """A number with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def save(runs: dict[str, Run], path: Path = RESULTS) -> dict[str, Any]:
    """Replaces older runs of the same workloads; gives everything stored."""
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"runs": {}}
    kept["machine"] = machine()
    kept["runs"].update({name: asdict(run) for name, run in runs.items()})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return kept


def runs_of(kept: dict[str, Any]) -> dict[str, Run]:
    """The inverse of what ``save`` writes."""
    return {
        name: Run(run["table"], run["date"], tuple(run["load"]), run["factor"], tuple(Row(**r) for r in run["rows"]))
        for name, run in kept["runs"].items()
    }


def table(title: str, runs: list[Run]) -> str:
    """The runs of one table in Markdown."""
    rows = [row for run in runs for row in run.rows]
    rivals = sorted({name for row in rows for name in row.rivals}, key=lambda name: (name.endswith(HERE), name))
    lines = [
        f"### {title}",
        "",
        f"| workload | | ours | {' | '.join(rivals)} | ratio | aim | met |",
        "|---" * (6 + len(rivals)) + "|",
    ]
    for run in runs:
        for i, row in enumerate(run.rows):
            theirs = [figure(row.rivals[name], row.unit) if name in row.rivals else "" for name in rivals]
            met = {None: "", True: "yes", False: "**no**"}[row.met]
            met += ", **wrong result**" if row.right is False else ""
            ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
            name = row.workload if i == 0 else ""
            lines.append(f"| {name} | {row.case} | {row.told} | {' | '.join(theirs)} | {ratio} | {row.aim} | {met} |")
    dates = sorted(run.date for run in runs)
    loads = [load for run in runs for load in run.load]
    factors = sorted(run.factor for run in runs)
    met_all = [row.met for row in rows if row.met is not None]
    lines += [
        "",
        f"{sum(met_all)} of {len(met_all)} aims met. Measured {dates[0]} to {dates[-1]}; load average "
        f"{min(loads):.1f} to {max(loads):.1f}; calibration factor {factors[0]:.2f} to {factors[-1]:.2f}.",
    ]
    return "\n".join(lines)


def page(kept: dict[str, Any]) -> str:
    """All tables."""
    runs = runs_of(kept)
    found = kept["machine"]
    parts = [", ".join(f"{value} {name}" if name == "cores" else f"{name}: {value}" for name, value in found.items())]
    titles = dict.fromkeys(run.table for run in runs.values())
    parts += [table(title, [run for run in runs.values() if run.table == title]) for title in titles]
    return "\n\n".join(parts)


def publish(text: str, path: Path = PAGE) -> None:
    """Puts the tables between the markers of the page."""
    whole = path.read_text()
    before, rest = whole.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
