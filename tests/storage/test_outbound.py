"""Which hosts may be reached, and what JDBC URLs and Kafka's properties may say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ivm.errors import SqlError
from storage.load.jdbc import check_url
from storage.load.jdbc_url import check_driver, server_url
from storage.outbound import Outbound, Place, Reach, place_of_uri, places
from storage.streams.kafka_properties import check_property

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def state(work: Callable[[], object]) -> str:
    try:
        work()
    except SqlError as error:
        return error.sqlstate
    return ""


@pytest.mark.parametrize(
    ("rule", "allowed", "refused"),
    [
        ("db", ["db", "db:5432", "DB:1", "db."], ["db2", "x.db", "127.0.0.1"]),
        ("db:5432", ["db:5432"], ["db", "db:5433"]),
        ("*.example.com", ["a.example.com", "a.b.example.com:9"],
         ["example.com", "a.example.com.evil.org", "aexample.com"]),
        ("10.0.0.0/8", ["10.1.2.3", "10.0.0.1:80"], ["11.0.0.1", "db", "10.0.0.1.evil.org"]),
        ("fd00::/8", ["[fd00::1]:80"], ["[fe80::1]", "10.0.0.1"]), ("[::1]:5432", ["[::1]:5432"], ["[::1]:1", "::1"]),
        ("*", ["anything", "1.2.3.4:5", "hdfs:///x"], []), ("*:443", ["a:443"], ["a", "a:80"]),
    ],
)  # fmt: skip
def test_rules(rule: str, allowed: list[str], refused: list[str]) -> None:
    outbound = Outbound.of([rule])
    for text in allowed:
        outbound.check(places(text), text)
    for text in refused:
        assert state(lambda text=text: outbound.check(places(text), text)) == "42501", text  # type: ignore[misc]
        assert state(lambda text=text: Outbound().check(places(text), text)) == "42501"  # type: ignore[misc]


@pytest.mark.parametrize("text", ["", "a b", "http://a", "*.", "a:b", "10.0.0.0/99", "a:999999", "*a*"])
def test_what_is_no_rule(text: str) -> None:
    assert state(lambda: Outbound.of([text])) == "22023"


def test_hosts_of_uris() -> None:
    for uri, expected in (
        ("s3a://Bucket/x.csv", Place("bucket")), ("hdfs://nn:8020/x", Place("nn", 8020)), ("hdfs:///x", None),
        ("abfss://box@account.dfs.core.windows.net/x", Place("account.dfs.core.windows.net")),
        ("s3a://key:secret@bucket/x", Place("bucket")), ("s3a://a@b@bucket/x", Place("bucket")),
        ("s3a://{a,evil}/x", None), ("s3a://b*/x", None), ("s3a://bu%63ket/x", None), ("s3a://b\\evil/x", None),
    ):  # fmt: skip
        assert place_of_uri(uri) == expected, uri


HERE = Reach((), Outbound.of(["h", "h2:5433"]))


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://h/db",
        "jdbc:postgresql://h:5432,h2:5433/db?user=me&password=x&sslmode=verify-full",
        "jdbc:mysql://h/db?useSSL=true",
        "jdbc:mariadb://me:pass@h:3306/db",
        "jdbc:sqlserver://h\\inst:1433;database=x",
        "jdbc:sqlserver://h;encrypt=true;user=me",
        "jdbc:oracle:thin:@//h:1521/svc",
        "jdbc:oracle:thin:me/pw@h:1521:sid",
        "jdbc:db2://h:50000/db:currentSchema=X;",
        "jdbc:derby://h/db;user=a;password=b",
        "jdbc:PostgreSQL://H/db",
    ],
)
def test_urls_that_are_taken(url: str) -> None:
    assert check_url(url, HERE) == url
    assert state(lambda: check_url(url, Reach())) == "42501"


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://evil/db",
        "jdbc:postgresql://h,evil/db",
        "jdbc:postgresql://h2/db",
        "jdbc:postgresql:db",
        "jdbc:postgresql://h/db?socketFactory=a.B&socketFactoryArg=x",
        "jdbc:postgresql://h/db?loggerFile=/tmp/x",
        "jdbc:postgresql://h/db?ssl=true&sslkey=/etc/x",
        "jdbc:postgresql://h/db?user=a&%73ocketFactory=x",
        "jdbc:postgresql://h/?SOCKETFACTORY=x",
        "jdbc:postgresql://h%2Cevil/db",
        "jdbc:postgresql://h@evil/db",
        "jdbc:mysql://h/db?allowLoadLocalInfile=true",
        "jdbc:mysql://h/db?autoDeserialize=true&queryInterceptors=x",
        "jdbc:mysql://(host=evil,port=1)/db",
        "jdbc:mysql://address=(host=evil)/db",
        "jdbc:mysql://h#@evil/db",
        "jdbc:mysql://evil#@h/db",
        "jdbc:mysql:loadbalance://h,evil/db",
        "jdbc:mysql:replication://evil/db",
        "jdbc:mysql+srv://h/db",
        "jdbc:sqlserver://h;serverName=evil",
        "jdbc:sqlserver://;serverName=evil",
        "jdbc:sqlserver://h;trustStore=/etc/x",
        "jdbc:oracle:oci:@h",
        "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(HOST=h)))",
        "jdbc:oracle:thin:@ldap://evil/x",
        "jdbc:oracle:thin:@h:1521/svc?TNS_ADMIN=/tmp",
        "jdbc:oracle:thin:@alias?x=/y",
        "jdbc:db2://h:50000/db:traceFile=/tmp/x;",
        "jdbc:db2://h/db:clientRerouteServerListJNDIName=ldap://evil;",
        "jdbc:derby://h/db;create=true",
        "jdbc:derby://evil/db",
        "jdbc:derby://h/db;traceFile=/tmp/x",
    ],
)
def test_urls_that_are_refused(url: str) -> None:
    assert state(lambda: check_url(url, HERE)) in ("42501", "0A000", "22023")


def test_every_server_of_a_url_counts() -> None:
    assert server_url("jdbc:postgresql://a,b:1,[::1]:2/db").places == (
        Place("a", 5432), Place("b", 1), Place("::1", 2)
    )  # fmt: skip


def test_drivers_and_kafkas_properties() -> None:
    check_driver(None)
    check_driver("org.postgresql.Driver")
    assert state(lambda: check_driver("javax.naming.InitialContext")) == "42501"
    check_property("security.protocol", "SASL_SSL")
    check_property("sasl.jaas.config", f'{PLAIN} required username="a" password="b\\"c";')
    for name, value in (
        ("bootstrap.servers", "evil:9092"), ("ssl.truststore.location", "/etc/passwd"), ("interceptor.classes", "x"),
        ("sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required user.provider.url=\"ldap://e\";"),
        ("sasl.jaas.config", f"{PLAIN} required; com.sun.security.auth.module.JndiLoginModule required;"),
        ("sasl.oauthbearer.token.endpoint.url", "http://evil"), ("sasl.login.callback.handler.class", "x"),
        ("Security.Protocol", "x"),
    ):  # fmt: skip
        assert state(lambda name=name, value=value: check_property(name, value)) == "42501", name  # type: ignore[misc]
