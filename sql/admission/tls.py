"""The server's certificate, its key, and whose certificates clients may show."""

from __future__ import annotations

import hashlib
import os
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ivm.errors import SqlError
from sql.system.state import TlsInfo

ALPN: Final = "postgresql"
_WEAK: Final = ("md5", "sha1")
"""Hashes of signatures in whose place channel binding takes SHA-256 (RFC 5929)."""


@dataclass(frozen=True, slots=True, eq=False)
class Tls:
    """``binding``: the certificate's hash for channel binding; None for a signature without a hash (Ed25519)."""

    context: ssl.SSLContext
    binding: bytes | None


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. ``certificate``: the server's own first, then those that lead to its authority."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def load(self) -> Tls:
        """Read the files. SqlError F0000."""
        _check_private(self.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.set_alpn_protocols([ALPN])
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_passphrase)
        except (OSError, ValueError) as error:
            raise _failed("server certificate", self.certificate, error) from None
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except (OSError, ValueError) as error:
                raise _failed("root certificate", self.client_ca, error) from None
            context.verify_mode = ssl.CERT_OPTIONAL
        return Tls(context, _binding(self.certificate))


def _no_passphrase() -> bytes:
    raise ValueError("the private key has a passphrase, which nobody can be asked for")


def _failed(what: str, path: Path, error: Exception) -> SqlError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SqlError("F0000", f'could not load {what} file "{path}": {reason}')


def _check_private(key: Path) -> None:
    """A key that others may read is none, as in PostgreSQL."""
    try:
        found = key.stat()
    except OSError as error:
        raise SqlError("F0000", f'could not access private key file "{key}": {error.strerror}') from None
    if not stat.S_ISREG(found.st_mode):
        raise SqlError("F0000", f'private key file "{key}" is not a regular file')
    if found.st_uid not in (os.geteuid(), 0):
        raise SqlError("F0000", f'private key file "{key}" must be owned by the database user or root')
    open_to = 0o077 if found.st_uid == os.geteuid() else 0o037
    if found.st_mode & open_to:
        hint = (
            "File must have permissions u=rw (0600) or less if owned by the database user, or permissions u=rw,g=r "
            "(0640) or less if owned by root."
        )
        raise SqlError("F0000", f'private key file "{key}" has group or world access', hint=hint)


def _binding(path: Path) -> bytes | None:
    """The hash of the server's certificate by the hash of its signature (tls-server-end-point, RFC 5929)."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificates

    certificate = load_pem_x509_certificates(path.read_bytes())[0]
    try:
        algorithm = certificate.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return None
    if algorithm is None:
        return None
    name = "sha256" if algorithm.name in _WEAK else algorithm.name.replace("-", "_")
    return hashlib.new(name, certificate.public_bytes(Encoding.DER)).digest()


def tls_info(connection: ssl.SSLObject) -> TlsInfo:
    """What is shown of an encrypted connection, and whose certificate the client has shown."""
    cipher = connection.cipher() or ("", "", 0)
    shown = connection.getpeercert(binary_form=True)
    if shown is None:
        return TlsInfo(connection.version() or "", cipher[0], cipher[2])
    from cryptography.x509 import Name, NameOID, load_der_x509_certificate

    def dn(name: Name) -> str:
        return "".join(f"/{part.rfc4514_attribute_name}={_text(part.value)}" for part in name)

    certificate = load_der_x509_certificate(shown)
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return TlsInfo(
        connection.version() or "", cipher[0], cipher[2], dn(certificate.subject), certificate.serial_number,
        dn(certificate.issuer), _text(names[-1].value) if len(names) == 1 else "",
    )  # fmt: skip


def _text(value: str | bytes) -> str:
    text = value if isinstance(value, str) else value.decode(errors="backslashreplace")
    return "" if "\0" in text else text
