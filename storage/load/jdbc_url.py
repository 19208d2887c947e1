"""What a JDBC URL names: hosts, and properties of the driver, of which only harmless ones are taken.

Drivers read files, load classes and run code for some of their properties (``socketFactory``, ``loggerFile``,
``allowLoadLocalInfile``, ``autoDeserialize`` …). So a property must be in the list of its driver, and a URL that is not
understood here is refused whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ivm.errors import SqlError
from storage.outbound import Place, place, places
from storage.passwords import hide_passwords

_MYSQL: Final = (
    "user password usessl sslmode requiressl verifyservercertificate connecttimeout sockettimeout tcpkeepalive "
    "usecompression characterencoding useunicode servertimezone connectiontimezone zerodatetimebehavior tinyint1isbit "
    "usecursorfetch defaultfetchsize yearisdatetype"
)
PROPERTIES: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(words.split())
    for name, words in {
        "postgresql": "user password ssl sslmode channelbinding gssencmode connecttimeout sockettimeout logintimeout "
        "applicationname currentschema readonly tcpkeepalive defaultrowfetchsize preparethreshold binarytransfer "
        "targetservertype loadbalancehosts hostrecheckseconds stringtype",
        "mysql": _MYSQL, "mariadb": _MYSQL,
        "sqlserver": "databasename database user username password encrypt trustservercertificate "
        "hostnameincertificate logintimeout sockettimeout locktimeout querytimeout applicationname applicationintent "
        "multisubnetfailover selectmethod sendstringparametersasunicode",
        "oracle": "", "db2": "user password currentschema sslconnection logintimeout blockingreadconnectiontimeout",
        "derby": "user password",
    }.items()
}  # fmt: skip
"""By database, in lower case."""
DRIVERS: Final = frozenset((
    "org.postgresql.Driver", "com.mysql.cj.jdbc.Driver", "com.mysql.jdbc.Driver", "org.mariadb.jdbc.Driver",
    "com.microsoft.sqlserver.jdbc.SQLServerDriver", "oracle.jdbc.OracleDriver", "oracle.jdbc.driver.OracleDriver",
    "com.ibm.db2.jcc.DB2Driver", "org.apache.derby.jdbc.ClientDriver", "org.apache.derby.client.ClientAutoloadedDriver",
    "org.apache.derby.jdbc.EmbeddedDriver", "org.apache.derby.iapi.jdbc.AutoloadedDriver",
))  # fmt: skip
_PORTS: Final = {
    "postgresql": 5432, "mysql": 3306, "mariadb": 3306, "sqlserver": 1433, "oracle": 1521, "db2": 50000, "derby": 1527,
}  # fmt: skip
_URL: Final = re.compile(r"jdbc:(?P<kind>[a-z0-9]+):(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SERVER: Final = re.compile(r"//(?P<hosts>[^/?;]*)(?:/(?P<database>[^?;:]*))?(?P<rest>.*)", re.DOTALL)
_ORACLE: Final = re.compile(
    r"thin:(?:[^/@]*/[^@]*)?@(?://)?(?P<host>[A-Za-z0-9_.-]+)(?::(?P<port>\d+))?(?:[:/][A-Za-z0-9_.$#:-]*)?",
    re.IGNORECASE,
)
_USER: Final = re.compile(r"[\w.%-]*(?::[\w.%!*+=~$-]*)?")


@dataclass(frozen=True, slots=True)
class JdbcUrl:
    """``places``: the servers that the driver may connect to, None for one that cannot be told."""

    kind: str
    places: tuple[Place | None, ...]


def server_url(url: str) -> JdbcUrl:
    """A URL of a database server. Raises 42501 for a property that is not in the list, and for a form of URL in which
    hosts and properties cannot be told apart."""
    found = _URL.fullmatch(url)
    assert found is not None, "its scheme is known"
    kind, rest = found["kind"].lower(), found["rest"]
    if kind == "oracle":
        thin = _ORACLE.fullmatch(rest)
        if thin is None:
            raise _unclear(url, "jdbc:oracle:thin:@//HOST:PORT/SERVICE")
        return JdbcUrl(kind, (place(thin["host"], int(thin["port"] or _PORTS[kind])),))
    server = _SERVER.fullmatch(rest)
    if server is None:
        raise _unclear(url, f"jdbc:{kind}://HOST/DATABASE")
    for name in _properties(url, kind, server["rest"]):
        if name.lower() not in PROPERTIES[kind]:
            raise _property(url, kind, name)
    hosts = server["hosts"]
    if kind in ("mysql", "mariadb"):
        user, at, hosts = hosts.rpartition("@")
        if at and not _USER.fullmatch(user):
            raise _unclear(url, f"jdbc:{kind}://HOST/DATABASE")
    if kind == "sqlserver":
        hosts = re.sub(r"\\[A-Za-z0-9_$]*", "", hosts)
    return JdbcUrl(kind, tuple(places(hosts, _PORTS[kind])))


def check_driver(name: str | None) -> None:
    """Raises 42501 for a class that is no driver of a database above."""
    if name is not None and name not in DRIVERS:
        hint = f"Drivers are: {', '.join(sorted(DRIVERS))}."
        raise SqlError("42501", f'permission denied for the JDBC driver "{name}"', hint=hint)


def _properties(url: str, kind: str, text: str) -> Iterator[str]:
    """The names of a URL's properties, which follow the database."""
    mark, separator = {"sqlserver": (";", ";"), "derby": (";", ";"), "db2": (":", ";")}.get(kind, ("?", "&"))
    if not text:
        return
    if not text.startswith(mark) or "%" in text.partition("=")[0]:
        raise _unclear(url, f"jdbc:{kind}://HOST/DATABASE{mark}NAME=VALUE")
    for part in text[1:].split(separator):
        name = part.partition("=")[0].strip()
        if name:
            yield name


def _property(url: str, kind: str, name: str) -> SqlError:
    known = ", ".join(sorted(PROPERTIES[kind]))
    message = f'permission denied for the property "{name}" of "{hide_passwords(url)}"'
    hint = f"Properties are: {known}." if known else "Give USER and PASSWORD as options."
    return SqlError("42501", message, "Drivers read files and load classes for some properties.", hint)


def _unclear(url: str, form: str) -> SqlError:
    message = f'permission denied for "{hide_passwords(url)}", of which hosts and properties cannot be told'
    return SqlError("42501", message, hint=f"Write {form}.")
