"""pg_hba.conf: what its lines mean, what is no line, and which line a client falls under."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivm.errors import SqlError
from sql.admission.admission import Client
from sql.admission.gate import Gate, loopback_gate
from sql.admission.matching import matching
from sql.admission.rules import ANYBODY_HERE, BadLine, Rule, is_loopback, parse_rules, plain_address
from sql.admission.shown import shown
from sql.catalog.access import Access
from sql.catalog.databases import Shared
from sql.catalog.roles import FIRST_MEMBERSHIPS, FIRST_ROLES, Membership, Role
from sql.system.state import TlsInfo
from storage.scram import verifier

ROLES = (
    Role(100, "ann", login=True, password=verifier("secret")), Role(101, "crew"), Role(102, "bob", login=True),
    Role(103, "old", login=True, password=verifier("secret"), valid_until=5), Role(104, "root", superuser=True),
)  # fmt: skip
ACCESS = Access(
    Shared(
        {**FIRST_ROLES, **{role.oid: role for role in ROLES}},
        (*FIRST_MEMBERSHIPS, Membership(101, 100, 10)),
    )
)


def rules(text: str) -> list[Rule]:
    found = list(parse_rules(text))
    assert all(isinstance(line, Rule) for line in found), found
    return [line for line in found if isinstance(line, Rule)]


def method(text: str, host: str = "10.1.2.3", user: str = "ann", database: str = "db", tls: bool = False) -> str | None:
    found = matching(rules(text), ACCESS, plain_address(host), tls, database, user)
    return found and found.method


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("host all all 10.0.0.0/8 trust", True),
        ("host all all 10.9.9.9/8 trust # host bits do not count", True),
        ("host all all 10.0.0.0 255.0.0.0 trust", True),
        ("host all all 11.0.0.0/8 trust", False),
        ("host all all ::/0 trust", False),
        ("host all all all trust", True),
        ("hostssl all all all trust", False),
        ("hostnossl all all all trust", True),
        ("host db all all trust", True),
        ("host other, db all all trust", True),
        ("host other all all trust", False),
        ("host all bob,ann all trust", True),
        ("host all bob all trust", False),
        ("host all +crew all trust", True),
        ('host all "+crew" all trust', False),
        ('host all "all" all trust', False),
        ("host all +root all trust", False),
        ("host sameuser all all trust", False),
        ("host samerole all all trust", False),
        ("host replication all all trust", False),
        ("host \\\n all all all trust", True),
    ],
)
def test_what_a_line_fits(line: str, fits: bool) -> None:
    assert method(line) == ("trust" if fits else None)


def test_the_rest_of_the_matching() -> None:
    assert method("hostssl all all all reject", tls=True) == "reject"
    assert method("hostnossl all all all reject", tls=True) is None
    assert method("host sameuser all all trust", database="ann") == "trust"
    assert method("host samerole all all trust", database="crew") == "trust"
    assert method("host all +crew all trust", user="root") is None
    assert method("host all all 10.0.0.0/8 trust", host="::ffff:10.1.2.3") == "trust"
    assert method("host all all 10.0.0.0/8 trust", host="") is None
    first = "host all bob all reject\nhost all all all scram-sha-256\nhost all bob all trust"
    assert [method(first, user=user) for user in ("ann", "bob")] == ["scram-sha-256", "reject"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("local all all trust", "local connections are not supported by this build"),
        ("hosts all all all trust", 'invalid connection type "hosts"'),
        ("host", "end-of-line before database specification"),
        ("host all", "end-of-line before role specification"),
        ("host all all", "end-of-line before IP address specification"),
        ("host all all all", "end-of-line before authentication method"),
        ("host all all 10.0.0.1", "end-of-line before netmask specification"),
        ("host all all 10.0.0.1 trust", 'invalid IP mask "trust"'),
        ("host all all 10.0.0.1 255.0.255.0 trust", 'invalid IP mask "255.0.255.0"'),
        ("host all all 10.0.0.1 ffff:: trust", "IP address and mask do not match"),
        ("host all all 10.0.0.1/33 trust", 'invalid CIDR mask in address "10.0.0.1/33"'),
        ("host all all 10.0.0.1/x trust", 'invalid CIDR mask in address "10.0.0.1/x"'),
        ("host all all example.org trust", 'invalid IP address "example.org"'),
        ("host all all samenet trust", 'address "samenet" is not supported'),
        ("host all all all md5", 'authentication method "md5" is not supported'),
        ("host all all all ident", 'invalid authentication method "ident"'),
        ("host all all all cert", "cert authentication is only supported on hostssl connections"),
        ("host all all all trust clientcert=verify-ca", 'clientcert can only be configured for "hostssl" rows'),
        ("hostssl all all all trust clientcert=1", 'invalid value for clientcert: "1"'),
        ("hostssl all all all trust map=x", 'unrecognized authentication option name: "map"'),
        ("hostssl all all all trust x", "authentication option not in name=value format: x"),
        ("host,hostssl all all all trust", "multiple values specified for connection type"),
        ("host all all 10.0.0.1,10.0.0.2 trust", "multiple values specified for host address"),
        ('host "all all all trust', "unterminated quoted name"),
        ("host all @admins all trust", "included files are not supported"),
    ],
)
def test_what_is_no_rule(line: str, message: str) -> None:
    (found,) = parse_rules(f"# a comment\n\n{line}\n")
    assert isinstance(found, BadLine)
    assert (found.line, found.message) == (3, message)


@given(st.text(st.sampled_from('host all10./:,"#@+\\\n\t=trus'), max_size=60))
def test_any_text_gives_rules_or_errors(text: str) -> None:
    for line in parse_rules(text):
        shown(line)


def test_a_rule_as_a_row() -> None:
    first, second, third = map(shown, parse_rules('host "a b",c +d ::1/128 cert\nhostssl all all 10.0.0.0/8 cert\n'
                                                  "hostssl all all all reject"))  # fmt: skip
    assert (first.line, first.type, first.error) == (
        1, None, "cert authentication is only supported on hostssl connections"
    )  # fmt: skip
    assert (second.address, second.netmask, second.options) == ("10.0.0.0", "255.0.0.0", ("clientcert=verify-full",))
    assert (third.databases, third.address, third.netmask, third.options) == (("all",), "all", None, None)


def gate(folder: Path, text: str | None = None, elsewhere: bool = False) -> Gate:
    if text is not None:
        (folder / "pg_hba.conf").write_text(text)
    return Gate(folder, lambda: ACCESS, b"secret", lambda: 10, None, elsewhere)


def test_without_a_file_this_machine_is_trusted(tmp_path: Path) -> None:
    for opened in (gate(tmp_path), loopback_gate()):
        opened.load()
        assert opened.rules is ANYBODY_HERE
        assert opened.rule(Client("127.0.0.1"), "db", "whoever").method == "trust"
        assert opened.rule(Client("::1"), "db", "whoever").method == "trust"
        with pytest.raises(SqlError) as raised:
            opened.rule(Client("10.1.2.3"), "db", "ann")
        message = 'no pg_hba.conf entry for host "10.1.2.3", user "ann", database "db", no encryption'
        assert (raised.value.sqlstate, raised.value.message) == ("28000", message)


def test_reject_says_so(tmp_path: Path) -> None:
    opened = gate(tmp_path, "host all all all reject")
    opened.load()
    with pytest.raises(SqlError, match=r"pg_hba\.conf rejects connection for host .* SSL encryption"):
        opened.rule(Client("10.1.2.3", TlsInfo("TLSv1.3", "x", 256)), "db", "ann")


def test_what_cannot_be_reloaded_leaves_what_is_in_force(tmp_path: Path) -> None:
    opened = gate(tmp_path, "host all all all scram-sha-256")
    opened.load()
    before = opened.rules
    (tmp_path / "pg_hba.conf").write_text("host all all all scram-sha-256\nhost all all")
    assert not opened.reload()
    assert [line.line for line in opened.lines()] == [1, 2]
    (tmp_path / "pg_hba.conf").unlink()
    assert not opened.reload()
    assert opened.rules is before
    (tmp_path / "pg_hba.conf").write_text("host all ann all reject")
    assert opened.reload()
    assert [rule.method for rule in opened.rules] == ["reject"]


def test_a_server_that_others_reach_needs_tls_and_passwords(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="only with TLS and passwords") as raised:
        gate(tmp_path, "host all all all scram-sha-256", elsewhere=True).load()
    assert raised.value.hint == "Give --tls-cert and --tls-key, or listen on 127.0.0.1."
    trusting = {
        "host all all all trust": True, "host all all 127.0.0.1/32 trust": False, "host all all ::1/128 trust": False,
        "host all all 127.0.0.0/7 trust": True, "hostssl all all all trust clientcert=verify-ca": False,
        "host all all 10.0.0.0/8 reject": False,
    }  # fmt: skip
    for line, others in trusting.items():
        assert rules(line)[0].trusts_others is others
    assert [is_loopback(h) for h in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "::", "10.1.2.3", "")] == [
        True, True, True, False, False, False, False,
    ]  # fmt: skip


def test_who_has_no_password_has_a_mock(tmp_path: Path) -> None:
    opened = gate(tmp_path)
    assert not opened.secret("ann").doomed
    whys = {user: opened.secret(user).why for user in ("bob", "old", "nobody")}
    assert whys == {
        "bob": 'User "bob" has no password assigned.', "old": 'User "old" has an expired password.',
        "nobody": 'Role "nobody" does not exist.',
    }  # fmt: skip
    assert all(opened.secret(user).doomed for user in whys)
