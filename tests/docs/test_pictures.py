"""The papers' pictures: small measurements are right, and the committed pictures show the stored ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import fixpoints, pictures, report, spark_hydration, spark_loads
from benchmarks.svg import Axis, Chart, Series, draw, scale
from ivm.kernels.warm import warm

SMALL: dict[str, Callable[[], pictures.Data]] = {
    "fixpoints": lambda: pictures.measure_fixpoints(fixpoints.Window(200, 2, 500), 3),
    "latency": lambda: pictures.measure_latency(10, (10, 100), 20),
    "rates": lambda: pictures.measure_rates(100, {"W1": (1, 10), "W5": (1, 10)}, 20, speed=1.0),
    "interning": lambda: pictures.measure_interning((10_000, 20_000), speed=1.0),
    "graphs": lambda: pictures.measure_graphs((10, 20), 4),
}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    warm(lambda _name, _done, _all: None)


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_measured_and_drawn(name: str) -> None:
    """Measurements check their own results; drawn after a round trip through JSON, they are a picture with a legend."""
    data = json.loads(json.dumps(SMALL[name]()))
    for chart in pictures.PICTURES[name][1](data, "small").values():
        tree = ElementTree.fromstring(draw(chart))
        texts = [element.text for element in tree.iter(f"{SVG}text")]
        assert {chart.title, chart.note, chart.x.label, chart.y.label} <= set(texts)
        assert {series.name for series in chart.series} <= set(texts)
        assert "prefers-color-scheme:dark" in "".join(e.text or "" for e in tree.iter(f"{SVG}style"))


def test_ways_to_components() -> None:
    """Stateless rounds change every label each time; prioritised labels change less often; the slide does the least."""
    found = fixpoints.measure(fixpoints.Window(2_000, 2, 4_000), 5)
    total = {name: sum(p.records for p in passes) for name, passes in found.items()}
    assert {p.records for p in found["stateless"]} == {4_000}
    assert total["stateless"] > total["incremental"] > total["prioritised"] > 100 * total["differential"]
    assert found["incremental"][-1].records == 0


def test_components_of_the_window() -> None:
    assert fixpoints.components(5, np.array([[4, 1], [1, 3]]))[:, 1].tolist() == [0, 1, 2, 1, 1]


def test_committed_pictures_are_drawn_from_what_is_stored() -> None:
    drawn = pictures.drawn(json.loads(pictures.STORED.read_text()))
    runs = report.runs_of(json.loads(report.RESULTS.read_text())).values()
    for table, picture, file in (
        (spark_loads.TABLE_OF_LOADS, spark_loads.picture, spark_loads.PICTURE),
        (spark_hydration.TABLE, spark_hydration.picture, spark_hydration.PICTURE),
    ):
        drawn[file.name] = draw(picture([run for run in runs if run.table == table]))
    folder = pictures.STORED.parent
    assert {path.name for path in folder.glob("*.svg")} == set(drawn)
    for name, text in drawn.items():
        assert (folder / name).read_text() == text, f"make pictures: {name}"


def test_axes() -> None:
    log = scale(Axis("", log=True), (3, 4_000), 0, 100)
    assert (log.low, log.high, log.ticks) == (1, 10_000, (1, 10, 100, 1_000, 10_000))
    assert [log(value) for value in (1, 100, 10_000)] == [0, 50, 100]
    plain = scale(Axis(""), (2, 118), 100, 0)
    assert plain.ticks == (0, 20, 40, 60, 80, 100, 120)
    assert plain(60) == 50


def test_a_line_is_broken_where_there_is_nothing() -> None:
    series = (Series("s", ((0, 5), (1, 7), (2, 0), (3, 9), (4, 2)), 0),)
    for log, lines in ((True, 2), (False, 1)):
        tree = ElementTree.fromstring(draw(Chart("t", "n", Axis("x"), Axis("y", log=log), series)))
        assert len(list(tree.iter(f"{SVG}polyline"))) == lines
