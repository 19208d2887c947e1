"""Who gets in: passwords, TLS, certificates and rules, by libpq against the server as a program."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from sql.pgwire import messages_frontend as front
from sql.pgwire import messages_opening as opening
from tests.support.certificates import Authority
from tests.support.paths import ROOT
from tests.support.program import Program
from tests.support.scram_client import ScramClient

SECRET = "päss 'wörd"
PLAIN = {"sslmode": "disable"}


class Door:
    """A server with a password for its superuser, a certificate, and an authority of clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder / "ca")
        self.clients = Authority(folder / "clients", "clients")
        self.certificate, self.key = self.authority.sign("server")
        (folder / "password").write_text(SECRET + "\n")
        self.program = Program(
            folder / "data", "--init-password-file", str(folder / "password"), "--tls-cert", str(self.certificate),
            "--tls-key", str(self.key), "--tls-client-ca", str(self.clients.root), "--audit", str(folder / "audit"),
        )  # fmt: skip
        self.rules = folder / "data" / "pg_hba.conf"
        self.first_rules = self.rules.read_text()

    def connect(self, user: str = "postgres", password: str | None = SECRET, **more: str) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1", port=self.program.port, user=user, password=password, dbname="postgres", autocommit=True,
            connect_timeout=20, **more,
        )  # fmt: skip

    def enters(self, user: str = "postgres", password: str | None = SECRET, **more: str) -> bool:
        with self.connect(user, password, **more) as connection:
            (found,) = connection.execute("SELECT session_user").fetchone() or ("",)
        return bool(found == user)

    def refusal(self, user: str = "postgres", password: str | None = SECRET, **more: str) -> str:
        with pytest.raises(psycopg.OperationalError) as raised:
            self.connect(user, password, **more)
        return str(raised.value)

    def reload(self, rules: str) -> None:
        """Put rules in force, by SIGHUP."""
        self.rules.write_text(rules)
        with self.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")

    def audit(self, event: str) -> list[dict[str, object]]:
        lines = [json.loads(line[line.index("{") :]) for line in (self.folder / "audit").read_text().splitlines()]
        return [line for line in lines if line["event"] == event]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    door = Door(tmp_path_factory.mktemp("door"))
    with door.connect() as connection:
        for text in (
            "CREATE ROLE ann LOGIN PASSWORD 'ann''s'", "CREATE ROLE crew", "CREATE ROLE bob LOGIN",
            "CREATE ROLE late LOGIN PASSWORD 'late' VALID UNTIL '2020-01-01'",
            "CREATE ROLE stays LOGIN PASSWORD 'stays' VALID UNTIL 'infinity'", "CREATE ROLE nologin PASSWORD 'x'",
        ):  # fmt: skip
            connection.execute(text)
    yield door
    door.program.kill()


def test_passwords(door: Door) -> None:
    assert door.enters()
    assert door.enters(**PLAIN)
    assert door.enters("ann", "ann's")
    assert door.enters("stays", "stays")
    for user, password in (("ann", "anns"), ("nobody", "x"), ("bob", "x"), ("late", "late"), ("nologin", "y")):
        assert f'FATAL:  password authentication failed for user "{user}"' in door.refusal(user, password, **PLAIN)
    assert 'FATAL:  role "nologin" is not permitted to log in' in door.refusal("nologin", "x", **PLAIN)
    assert "no password supplied" in door.refusal("ann", None, **PLAIN)
    whys = {str(line["user"]): line["detail"] for line in door.audit("connection refused") if "detail" in line}
    assert whys["late"] == 'User "late" has an expired password.'
    assert whys["nobody"] == 'Role "nobody" does not exist.'


def test_a_role_without_a_password_looks_like_one_that_does_not_exist(door: Door) -> None:
    """The salt of a role is always the same, that of a made-up role too."""
    challenges = {user: {_challenge(door, user) for _ in range(2)} for user in ("ann", "bob", "nobody")}
    assert all(len(found) == 1 for found in challenges.values())
    assert len({salt for found in challenges.values() for salt, _ in found}) == 3
    assert {iterations for found in challenges.values() for _, iterations in found} == {"4096"}


def _challenge(door: Door, user: str) -> tuple[str, str]:
    from sql.pgwire.messages_frontend import SaslInitial

    with socket.create_connection(("127.0.0.1", door.program.port), timeout=20) as plain:
        plain.sendall(opening.Startup(0, (("user", user),)).encode())
        plain.recv(1000)
        plain.sendall(SaslInitial("SCRAM-SHA-256", ScramClient("x").first()).encode())
        fields = plain.recv(1000)[9:].decode().split(",")
        return fields[1], fields[2].removeprefix("i=")


def test_tls(door: Door) -> None:
    root = str(door.authority.root)
    assert door.enters(sslmode="verify-full", sslrootcert=root, channel_binding="require")
    assert door.enters(sslmode="require", channel_binding="disable")
    assert "certificate verify failed" in door.refusal(sslmode="verify-full", sslrootcert=str(door.clients.root))
    assert "channel binding required" in door.refusal(channel_binding="require", **PLAIN)
    if psycopg.pq.version() >= 170000:
        assert door.enters(sslmode="verify-full", sslrootcert=root, sslnegotiation="direct", channel_binding="require")
    with door.connect(sslmode="require") as connection:
        mine = "FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        found = connection.execute(f"SELECT ssl, version, bits > 100, client_dn, client_serial {mine}").fetchone()
        assert found == (True, "TLSv1.3", True, None, None)
        gss = connection.execute("SELECT gss_authenticated, principal, encrypted FROM pg_stat_gssapi").fetchall()
        assert set(gss) == {(False, None, False)}
    with door.connect(**PLAIN) as connection:
        assert connection.execute(f"SELECT ssl, version, cipher {mine}").fetchone() == (False, None, None)


def test_old_tls_is_refused(door: Door) -> None:
    assert "SSL error" in door.refusal(sslmode="require", ssl_min_protocol_version="TLSv1",
                                       ssl_max_protocol_version="TLSv1.1")  # fmt: skip


def test_client_certificates(door: Door) -> None:
    certificate, key = door.clients.sign("ann")
    stranger, strange = Authority(door.folder / "strangers", "strangers").sign("ann")
    shown = {"sslmode": "require", "sslcert": str(certificate), "sslkey": str(key)}
    door.reload(door.first_rules.replace("hostssl  all       all   all           scram-sha-256", "").replace(
        "host  ", "hostssl all ann,bob all cert\nhostssl all +crew all scram-sha-256 clientcert=verify-full\nhost  ", 1
    ))  # fmt: skip
    assert door.enters("ann", None, **shown)
    assert 'certificate authentication failed for user "bob"' in door.refusal("bob", None, **shown)
    assert "connection requires a valid client certificate" in door.refusal("ann", "ann's", sslmode="require")
    # in TLS 1.3 a client has finished before its certificate is looked at, and may see only that the connection is gone
    told = door.refusal("ann", None, sslmode="require", sslcert=str(stranger), sslkey=str(strange))
    assert re.search("SSL|closed the connection|reset by peer|Broken pipe", told), told
    with door.connect("ann", None, **shown) as connection:
        mine = "SELECT client_dn, issuer_dn, client_serial > 0 FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert connection.execute(mine).fetchone() == ("/O=Freshet/CN=ann", "/O=Freshet/CN=clients", True)
        assert connection.execute("SELECT system_user()").fetchone() == ("cert:/O=Freshet/CN=ann",)
    door.reload(door.first_rules)
    assert {line["method"] for line in door.audit("connection authorized")} == {"scram-sha-256", "cert"}


def test_rules_are_read_again(door: Door) -> None:
    door.reload(f"host all ann all reject\n{door.first_rules}")
    assert 'pg_hba.conf rejects connection for host "127.0.0.1", user "ann"' in door.refusal("ann", "ann's")
    door.rules.write_text(f"host all all 127.0.0.1/32 trust\nhost all {door.first_rules}")
    with door.connect() as connection:
        assert connection.execute("SELECT pg_reload_conf()").fetchone() == (False,)
        shown = connection.execute("SELECT line_number, type, address, auth_method, error FROM pg_hba_file_rules")
        rows = shown.fetchall()
    assert rows[0] == (1, "host", "127.0.0.1", "trust", None)
    assert rows[1] == (2, None, None, None, "end-of-line before role specification")
    assert "rejects" in door.refusal("ann", "ann's")
    door.rules.write_text(door.first_rules)
    door.program.process.send_signal(signal.SIGHUP)
    _until(lambda: door.enters("ann", "ann's"))
    with door.connect("ann", "ann's") as connection:
        for text in ("SELECT * FROM pg_hba_file_rules", "SELECT pg_reload_conf()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(text)


def test_with_rules_a_name_is_a_role(door: Door) -> None:
    door.reload(f"host all all 127.0.0.1/32 trust\n{door.first_rules}")
    assert 'role "me" does not exist' in door.refusal("me")
    assert door.enters("bob", None)
    door.reload(door.first_rules)


def test_certificates_are_read_again(door: Door) -> None:
    other = Authority(door.folder / "other", "other")
    certificate, key = other.sign("again")
    root = {"sslmode": "verify-full", "sslrootcert": str(other.root)}
    assert "certificate verify failed" in door.refusal(**root)
    before = door.certificate.read_bytes(), door.key.read_bytes()
    with door.connect() as connection:
        shutil.copy(certificate, door.certificate)
        assert connection.execute("SELECT pg_reload_conf()").fetchone() == (False,)  # the key is another's
        shutil.copy(key, door.key)
        assert connection.execute("SELECT pg_reload_conf()").fetchone() == (True,)
        assert door.enters(**root, channel_binding="require")
        assert connection.execute("SELECT 1").fetchone() == (1,)
        door.certificate.write_bytes(before[0])
        door.key.write_bytes(before[1])
        connection.execute("SELECT pg_reload_conf()")


def test_nothing_injected_before_the_handshake_counts(door: Door) -> None:
    """Bytes in the clear behind the request for TLS, in one segment or after it."""
    request = opening.EncryptionRequest(opening.SSL_REQUEST_CODE).encode()
    startup = opening.Startup(0, (("user", "postgres"),)).encode()
    with socket.create_connection(("127.0.0.1", door.program.port), timeout=20) as plain:
        plain.sendall(request + startup)
        answer = plain.makefile("rb").read()
        assert answer[:1] == b"E"
        assert b"received unencrypted data after an encryption request" in answer
    with socket.create_connection(("127.0.0.1", door.program.port), timeout=20) as plain:
        plain.sendall(request)
        assert plain.recv(1) == b"S"
        plain.sendall(startup)
        assert b"R\0\0\0" not in plain.makefile("rb").read()
    assert door.enters()


def test_no_order_of_messages_over_sockets_is_a_login(door: Door) -> None:
    """Each connection ends, and what is there says nothing of a session; others get in meanwhile."""
    choice = random.Random(11)
    messages = (
        opening.Startup(0, (("user", "ann"),)).encode(), opening.Startup(0, (("user", "postgres"),)).encode(),
        opening.EncryptionRequest(opening.GSS_REQUEST_CODE).encode(), opening.CancelRequest(1, b"abcd").encode(),
        front.SaslInitial("SCRAM-SHA-256", b"n,,n=,r=abc").encode(), front.Password(b"c=biws,r=abc,p=AAAA").encode(),
        front.Password(b"secret\0").encode(), front.Query("SELECT 1").encode(), front.Parse("", "SELECT 1").encode(),
        front.Bind("", "", (), (), ()).encode(), front.Execute("", 0).encode(), front.Sync().encode(),
        front.Terminate().encode(), b"\0\0\0\x08", b"\xff" * 9,
    )  # fmt: skip
    for i in range(150):
        order = [messages[i % 2]] if i % 3 else []
        order += [choice.choice(messages) for _ in range(choice.randint(1, 6))]
        with socket.create_connection(("127.0.0.1", door.program.port), timeout=20) as client:
            with contextlib.suppress(OSError):
                for message in order:
                    client.sendall(message)
                client.shutdown(socket.SHUT_WR)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                answer = client.makefile("rb").read()
            assert b"R\0\0\0\x08\0\0\0\0" not in answer, order
            assert b"Z\0\0\0\x05" not in answer, order
    assert door.enters()


def test_failed_logins_get_slower(door: Door) -> None:
    took = []
    for _ in range(5):
        start = time.monotonic()
        door.refusal("slow", "x", **PLAIN)
        took.append(time.monotonic() - start)
    assert took[4] > 0.7  # 0.1 × 2³
    others = []
    for _ in range(3):  # the machine may pause once
        start = time.monotonic()
        assert door.enters("ann", "ann's")
        others.append(time.monotonic() - start)
    assert min(others) < 0.7


@pytest.mark.skipif(shutil.which("psql") is None, reason="no psql")
def test_psqls_password_command(door: Door) -> None:
    """It sends a verifier, which is kept as it is."""
    command = ["psql", f"host=127.0.0.1 port={door.program.port} user=ann dbname=postgres", "-c", "\\password"]
    done = subprocess.run(
        command, input="new one\nnew one\n", text=True, capture_output=True, timeout=60, check=False,
        env={**os.environ, "PGPASSWORD": "ann's"}, start_new_session=True,
    )  # fmt: skip  # without a terminal it reads its input
    assert done.returncode == 0, done.stderr
    assert door.enters("ann", "new one")
    with door.connect() as connection:
        (kept,) = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'ann'").fetchone() or ("",)
        connection.execute(f"ALTER ROLE ann PASSWORD '{kept}'")
        assert door.enters("ann", "new one")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="hashed with MD5"):
            connection.execute(f"ALTER ROLE ann PASSWORD 'md5{'0' * 32}'")
        connection.execute("ALTER ROLE ann PASSWORD 'ann''s'")
        connection.execute("GRANT crew TO ann WITH ADMIN OPTION")
        connection.execute("REVOKE crew FROM ann")
    changes = door.audit("privileges changed")
    assert changes[-2:] == [
        {"event": "privileges changed", "user": "postgres", "role": "postgres", "tag": "GRANT ROLE",
         "statement": {"roles": ["crew"], "members": ["ann"], "option": True}},
        {"event": "privileges changed", "user": "postgres", "role": "postgres", "tag": "REVOKE ROLE",
         "statement": {"roles": ["crew"], "members": ["ann"], "revoke": True}},
    ]  # fmt: skip
    own = [line["statement"] for line in changes if line["user"] == "ann"]
    assert own == [{"role": "ann", "options": [["password", "***"]]}]
    assert "SCRAM-SHA-256$" not in (door.folder / "audit").read_text()


def _until(true: object) -> None:
    assert callable(true)
    deadline = time.monotonic() + 20
    while True:
        try:
            if true():
                return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline
        time.sleep(0.05)


def start(*flags: str) -> tuple[int, str]:
    """Start a server that is expected to refuse it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "server.py"), "--port", "0", *flags], capture_output=True, text=True, timeout=120,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_starts_that_are_refused(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path / "ca").sign("server")
    data, tls = ("--data", str(tmp_path / "data")), ("--tls-cert", str(certificate), "--tls-key", str(key))
    everywhere = ("--host", "0.0.0.0", *data)
    (tmp_path / "empty").write_text("\n")
    for flags, said in (
        (everywhere, "Give --tls-cert and --tls-key, or listen on 127.0.0.1."),
        ((*everywhere, *tls), "Give --init-password-file FILE once"),
        ((*data, "--tls-cert", str(certificate)), "TLS needs both --tls-cert and --tls-key"),
        ((*data, "--init-password"), "asks for the password on a terminal"),
        ((*data, "--init-password-file", str(tmp_path / "empty")), "is empty"),
        ((*data, "--init-password-file", str(tmp_path / "none")), "No such file"),
    ):
        status, lines = start(*flags)
        assert status == 1
        assert said in lines
        assert "Traceback" not in lines
    key.chmod(0o640)
    assert "has group or world access" in start(*data, *tls)[1]
    key.chmod(0o600)
    assert not (tmp_path / "data").exists()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pg_hba.conf").write_text("host all all all trust\n")
    assert "Line 1 of pg_hba.conf trusts whoever connects" in start(*everywhere, *tls)[1]
    (tmp_path / "data" / "pg_hba.conf").write_text("host all all all md5\n")
    assert "Use scram-sha-256" in start(*data)[1]


def test_a_fresh_folder_says_that_it_trusts_and_a_second_password_is_not_set(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    assert any("whoever is on this machine may connect as superuser" in line for line in program.lines)
    assert program.connect().execute("SELECT session_user").fetchone() == ("me",)
    program.kill()
    certificate, key = Authority(tmp_path / "ca").sign("server")
    (tmp_path / "password").write_text("one")
    flags = ("--init-password-file", str(tmp_path / "password"), "--host", "0.0.0.0")
    program = Program(tmp_path / "data", *flags, "--tls-cert", str(certificate), "--tls-key", str(key))
    assert any('the password of superuser "postgres" is set' in line for line in program.lines)
    program.kill()
    (tmp_path / "password").write_text("two")
    program = Program(tmp_path / "data", *flags, "--tls-cert", str(certificate), "--tls-key", str(key))
    assert any("the first password was not set" in line for line in program.lines)
    dsn = f"host=127.0.0.1 port={program.port} user=postgres dbname=postgres"
    psycopg.connect(dsn, password="one").close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(dsn, password="two")
    program.kill()
