"""Nothing reaches other hosts but those of ``--allow-host``."""

from __future__ import annotations

from pathlib import Path

import pytest

from sql.settings.flags import arguments
from tests.support.sessions import Server

REACHING = (
    "COPY t FROM 's3a://bucket/x.csv' (FORMAT csv)",
    "COPY t FROM 'hdfs://name:8020/x.parquet' (FORMAT parquet)",
    "EXPLAIN COPY t FROM 's3a://bucket/x.csv' (FORMAT csv)",
    "CREATE TABLE u FROM 's3a://bucket/x.csv'",
    "COPY t FROM 'jdbc:postgresql://127.0.0.1:1/d' (FORMAT jdbc, DBTABLE 'x')",
    "CREATE SOURCE s FROM KAFKA (BROKERS 'broker:9092', TOPIC 'x') INTO t",
    "CREATE SOURCE s FROM JDBC (URL 'jdbc:postgresql://127.0.0.1:1/d', TABLE 'x', POLL 'a') INTO t",
)


@pytest.mark.parametrize("statement", REACHING)
def test_nothing_is_reached_without_the_flag(server: Server, statement: str) -> None:
    client = server.client()
    client.run("CREATE TABLE IF NOT EXISTS t (a int)")
    error = client.error(statement)
    assert error.sqlstate == "42501"
    assert "--allow-host" in (error.hint or "")
    client.close()


def test_the_flag_allows_its_hosts(tmp_path: Path) -> None:
    hosts = tuple(arguments(["--allow-host", "bucket", "--allow-host", "127.0.0.0/8"]).allow_host)
    server = Server(tmp_path, hosts=hosts)
    client = server.client()
    client.run("CREATE TABLE t (a int)")
    assert client.rows("EXPLAIN COPY t FROM 's3a://bucket/x.csv' (FORMAT csv)")[0] == ("Load into t",)
    assert client.state("EXPLAIN COPY t FROM 's3a://other/x.csv' (FORMAT csv)") == "42501"
    jdbc = "CREATE SOURCE s FROM JDBC (URL 'jdbc:postgresql://127.0.0.1:1/d{}', TABLE 'x', POLL 'a'{}) INTO t"
    for more in (("?socketFactory=x", ""), ("", ", DRIVER 'java.lang.Object'")):
        assert client.error(jdbc.format(*more)).sqlstate == "42501"
    kafka = (
        "CREATE SOURCE s FROM KAFKA (BROKERS '127.0.0.1:9092', TOPIC 'x', \"kafka.ssl.keystore.location\" '/x') INTO t"
    )
    assert client.state(kafka) == "42501"
    client.run(jdbc.format("?sslmode=require", ""))
    client.close()
    server.close()
