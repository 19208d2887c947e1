"""Time functions in sessions of 29 zones around changes of their clocks, and views over instants of a change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answers.make_zones import HERE, asked
from tests.support.sessions import Client, Server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    server = Server(Path(tmp_path_factory.mktemp("zones")))
    yield server.client()
    server.close()


@pytest.mark.parametrize("zone", sorted(json.loads((HERE / "zones.json").read_text())))
def test_texts(client: Client, zone: str) -> None:
    client.run(f"SET TimeZone = '{zone}'")
    expressions = asked(zone)
    for change, answers in json.loads((HERE / "zones.json").read_text())[zone]["texts"]:
        for moment, answer in zip((change - 1, change, change + 1800), answers, strict=True):
            texts = ", ".join(f"({text})::text" for text in expressions)
            (row,) = client.rows(
                f"SELECT {texts} FROM (SELECT to_timestamp({moment}) m, to_timestamp({moment})::timestamp l) t"
            )
            assert dict(zip(expressions, row, strict=True)) == dict(zip(expressions, answer, strict=True)), moment


def test_a_view_by_hours_of_a_zone(client: Client) -> None:
    """The two hours from 1 to 2 of the night of a change are two groups, which are maintained apart."""
    client.run("SET TimeZone = 'UTC'; CREATE TABLE hits (at timestamptz, n int)")
    client.run(
        "CREATE MATERIALIZED VIEW hourly AS SELECT date_trunc('hour', at, 'US/Pacific') h, sum(n) FROM hits GROUP BY 1"
    )
    client.run("INSERT INTO hits VALUES ('2024-11-03 08:30+00', 1), ('2024-11-03 09:30+00', 2), (NULL, 5)")
    client.run("INSERT INTO hits VALUES ('2024-11-03 09:30+00', 2), ('infinity', 7)")
    recomputed = "SELECT date_trunc('hour', at, 'US/Pacific'), sum(n) FROM hits GROUP BY 1"
    assert client.sorted("SELECT * FROM hourly") == client.sorted(recomputed)
    assert ("2024-11-03 08:00:00+00", "1") in client.rows("SELECT * FROM hourly")
    assert ("2024-11-03 09:00:00+00", "4") in client.rows("SELECT * FROM hourly")
    client.run("DELETE FROM hits WHERE at = '2024-11-03 08:30+00'")
    client.run("UPDATE hits SET at = at - interval '1 hour' WHERE n = 2")
    assert client.sorted("SELECT * FROM hourly") == client.sorted(recomputed)
