"""numeric(p, s) with a negative scale or one above the precision: errors, files and restarts. ``tests/answers`` has
what PostgreSQL answers, as queries and as views over changing tables (``changing/numeric_scales.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.sessions import Server

TABLE = "a numeric(2,-3), b numeric(3,5), c numeric(30,-9), d numeric(2,40)"
ROWS = (
    "(12345, 0.001234, 1500000000, 7e-40), (12499, 0.001229, -4e38, -0.5e-40), (99499, -0.009994, 0, 0), "
    "(500, 0.000005, NULL, NULL), (500, 0.000005, NULL, NULL)"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    out = tmp_path / "out"
    out.mkdir()
    made = Server(tmp_path / "data", files=(out,), places=(str(out),))
    yield made
    made.close()


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ("99500::numeric(2,-3)", "precision 2, scale -3 must round to an absolute value less than 10^5"),
        ("0.01::numeric(3,5)", "precision 3, scale 5 must round to an absolute value less than 10^-2"),
        ("1::numeric(3,3)", "precision 3, scale 3 must round to an absolute value less than 1"),
        ("1::numeric(1,1000)", "precision 1, scale 1000 must round to an absolute value less than 10^-999"),
        ("95e999::numeric(1,-1000)", "precision 1, scale -1000 must round to an absolute value less than 10^1001"),
        ("'-inf'::numeric(2,-3)", "precision 2, scale -3 cannot hold an infinite value"),
    ],
)
def test_what_overflows_is_told_with_the_limit(server: Server, value: str, detail: str) -> None:
    error = server.client().error(f"SELECT {value}")
    assert (error.sqlstate, error.message) == ("22003", "numeric field overflow")
    assert error.detail == f"A field with {detail}."


def test_rows_and_views_are_there_after_a_restart(server: Server) -> None:
    client = server.client()
    client.run(f"CREATE TABLE t ({TABLE})")
    client.run("CREATE MATERIALIZED VIEW v AS SELECT a, sum(b) AS b, min(c) AS c, max(d) AS d FROM t GROUP BY a")
    client.run("CREATE MATERIALIZED VIEW w AS SELECT DISTINCT a::numeric(2,-4) AS a, b::numeric(2,3) AS b FROM t")
    client.run(f"INSERT INTO t VALUES {ROWS}")
    kept = [client.sorted(f"SELECT * FROM {name}") for name in ("t", "v", "w")]
    assert kept[2] == [("0", "0.000"), ("10000", "0.001"), ("100000", "-0.010")]
    server.restart()
    client = server.client()
    assert [client.sorted(f"SELECT * FROM {name}") for name in ("t", "v", "w")] == kept
    client.run("INSERT INTO t VALUES (12000, 0.005, 1e38, 9e-40); DELETE FROM t WHERE a = 1000; UPDATE t SET b = b / 2")
    for view in ("v", "w"):
        assert client.rows(f"VERIFY MATERIALIZED VIEW {view}") == []


@pytest.mark.parametrize("options", ["", "(FORMAT csv, HEADER)", "(FORMAT parquet)", "(FORMAT json)"])
def test_what_is_written_can_be_loaded_again(server: Server, options: str) -> None:
    client = server.client()
    kept = "a numeric(2,-3), b numeric(3,5), c numeric(29,-9)"
    rows = "(12345, 0.001234, 15e8), (99499, -0.009994, -99e36), (500, 0.000005, 0), (NULL, NULL, NULL)"
    client.run(f"CREATE TABLE t ({kept}); CREATE TABLE back ({kept}); INSERT INTO t VALUES {rows}")
    client.run("INSERT INTO t SELECT * FROM t")
    assert client.run(f"COPY t TO 'rows.data' {options}") == "COPY 8"
    assert client.run(f"COPY back FROM 'rows.data' {options}") == "COPY 8"
    assert client.sorted("SELECT * FROM back") == client.sorted("SELECT * FROM t")


def test_decimals_of_parquet(server: Server, tmp_path: Path) -> None:
    """A file's scale is not negative nor above its precision, so columns become wider there; a load rounds."""
    client, out = server.client(), tmp_path / "out"
    client.run("CREATE TABLE t (a numeric(2,-3), b numeric(3,5)); INSERT INTO t VALUES (12345, 0.00123)")
    client.run("COPY t TO 't.parquet' (FORMAT parquet)")
    table = pq.read_table(out / "t.parquet")
    assert table.schema.types == [pa.decimal128(5, 0), pa.decimal128(5, 5)]
    wide = pa.table({"a": table["a"].cast(pa.decimal128(20, 3)), "b": table["b"].cast(pa.decimal128(20, 9))})
    pq.write_table(wide, out / "wide.parquet")
    client.run("COPY t FROM 'wide.parquet' (FORMAT parquet)")
    assert client.rows("SELECT * FROM t") == [("12000", "0.00123")] * 2
    pq.write_table(pa.table({"a": pa.array([99500]), "b": pa.array([0.001])}), out / "over.parquet")
    error = client.error("COPY t FROM 'over.parquet' (FORMAT parquet)")
    assert (error.sqlstate, error.message) == ("22003", 'numeric field overflow in column "a"')
    assert error.detail is not None
    assert error.detail.startswith("A field with precision 2, scale -3 must round to an absolute value less than 10^5")
