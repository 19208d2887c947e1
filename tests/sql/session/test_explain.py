"""EXPLAIN's options: the forms that tools read, and ANALYZE, which runs the statement."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from planner.plan_forms import Measured, parsed, shown
from tests.support.sessions import Client, Server

_XML = "{http://www.postgresql.org/2009/explain}"


@pytest.fixture(scope="module")
def tables(server: Server) -> Iterator[None]:
    client = server.client()
    client.run("CREATE TABLE measured (id int PRIMARY KEY, x int)")
    client.run("CREATE TABLE other (id int)")
    client.run("INSERT INTO measured SELECT g, g FROM generate_series(1, 9) g")
    yield
    client.close()


def plan(client: Client, options: str, query: str) -> str:
    ((text,),) = client.rows(f"EXPLAIN ({options}) {query}")
    return str(text)


def nodes(node: dict[str, object]) -> Iterator[dict[str, object]]:
    yield node
    for inner in node.get("Plans", []):  # type: ignore[attr-defined]
        yield from nodes(inner)


@pytest.mark.usefixtures("tables")
def test_json_names_relations_and_indexes(client: Client) -> None:
    query = "SELECT * FROM measured JOIN other USING (id) WHERE id = 3"
    (found,) = json.loads(plan(client, "FORMAT JSON, VERBOSE, COSTS OFF, BUFFERS", query))
    every = list(nodes(found["Plan"]))
    assert all("Node Type" in node for node in every)
    assert {node.get("Relation Name") for node in every} - {None} == {"measured", "other"}
    assert "measured_pkey" in {node.get("Index Name") for node in every}
    assert "Execution Time" not in found
    assert "Actual Rows" not in found["Plan"]


@pytest.mark.usefixtures("tables")
def test_analyze_runs_the_statement(client: Client) -> None:
    (found,) = json.loads(plan(client, "ANALYZE, FORMAT JSON", "SELECT * FROM measured WHERE id < 4"))
    assert (found["Plan"]["Actual Rows"], found["Plan"]["Actual Loops"]) == (3, 1)
    assert found["Plan"]["Actual Total Time"] <= found["Execution Time"]
    (found,) = json.loads(plan(client, "ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON", "SELECT 1"))
    assert found["Plan"]["Actual Rows"] == 1
    assert "Actual Total Time" not in found["Plan"]
    assert "Execution Time" not in found
    client.run("BEGIN")
    lines = [str(line) for (line,) in client.rows("EXPLAIN ANALYZE DELETE FROM measured WHERE id > 5")]
    assert any("rows=4 loops=1" in line for line in lines)
    assert lines[-1].startswith("Execution Time: ")
    assert client.rows("SELECT count(*) FROM measured") == [("5",)]
    client.run("ROLLBACK")
    assert client.rows("SELECT count(*) FROM measured") == [("9",)]


@pytest.mark.usefixtures("tables")
def test_an_explained_change_commits_and_obeys_the_modes(client: Client) -> None:
    client.run("EXPLAIN ANALYZE INSERT INTO other VALUES (1), (2)")
    assert client.rows("SELECT count(*) FROM other") == [("2",)]
    client.run("BEGIN READ ONLY")
    assert client.state("EXPLAIN ANALYZE INSERT INTO other VALUES (3)") == "25006"
    client.run("ROLLBACK")
    client.run("CREATE ROLE reader")
    client.run("SET ROLE reader")
    assert client.state("EXPLAIN ANALYZE DELETE FROM other") == "42501"
    client.run("RESET ROLE")
    assert client.rows("SELECT count(*) FROM other") == [("2",)]


@pytest.mark.usefixtures("tables")
def test_xml_and_yaml(client: Client) -> None:
    query = "SELECT x FROM measured WHERE x < 4"
    root = ET.fromstring(plan(client, "FORMAT XML, ANALYZE", query))
    assert root.tag == f"{_XML}explain"
    assert root.find(f"{_XML}Query/{_XML}Plan/{_XML}Actual-Rows").text == "3"  # type: ignore[union-attr]
    assert root.find(f".//{_XML}Relation-Name").text == "measured"  # type: ignore[union-attr]
    lines = plan(client, "FORMAT YAML", query).splitlines()
    assert lines[0] == "- Plan: "
    assert lines[1].startswith('    Node Type: "')
    assert "    Plans: " in lines
    assert any(line.strip() == 'Relation Name: "measured"' for line in lines)


@pytest.mark.parametrize(
    ("options", "sqlstate"),
    [("FORMAT foo", "22023"), ("TIMING", "22023"), ("WAL", "22023"), ("ANALYZE maybe", "42601"), ("LAZY", "42601")],
)
def test_mistakes_in_options(client: Client, options: str, sqlstate: str) -> None:
    assert client.state(f"EXPLAIN ({options}) SELECT 1") == sqlstate


def test_what_cannot_be_analyzed(client: Client) -> None:
    assert client.state("EXPLAIN ANALYZE CREATE TABLE made AS SELECT 1") == "0A000"
    assert client.state("SELECT FROM made") == "42P01"


def test_parts_of_a_plan() -> None:
    lines = ["2 Join words [0]", "  1 Table t (shared: t; index t_pkey)", "    node 0 again", "3 Map", "about it all"]
    roots, notes = parsed(lines)
    assert [root.properties["Node Type"] for root in roots] == ["Join", "Map"]
    table = roots[0].inputs[0]
    assert table.properties == {
        "Node Type": "Table", "Node Id": 1, "Relation Name": "t", "Index Name": "t_pkey",
        "Details": "t (shared: t; index t_pkey)",
    }  # fmt: skip
    assert table.inputs[0].properties == {"Node Type": "Again", "Node Id": 0}
    assert notes == ["about it all"]
    (text,) = shown(lines, "json", Measured(5, 0.5, 1.5), summary=True)
    (found,) = json.loads(text)
    assert (found["Plan"]["Actual Rows"], found["Execution Time"], found["Notes"]) == (5, 1.5, "about it all")
