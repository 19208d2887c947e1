"""Certificates for tests: an authority and what it signs, as PEM files."""

from __future__ import annotations

import datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates into ``folder``; its own is ``root``."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.name = _name(name)
        self.key = ec.generate_private_key(ec.SECP256R1())
        own = self._builder(self.name, self.key).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.root = folder / f"{name}.pem"
        self.root.write_bytes(own.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM))

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    def sign(self, name: str, algorithm: hashes.HashAlgorithm | None = None) -> tuple[Path, Path]:
        """A certificate for a name, as a server at 127.0.0.1 or as a client, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        made = self._builder(_name(name), key).add_extension(names, critical=False)
        signed = made.sign(self.key, algorithm or hashes.SHA256())
        certificate, private = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate.write_bytes(signed.public_bytes(Encoding.PEM))
        private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        private.chmod(0o600)
        return certificate, private


def _name(text: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Freshet"), x509.NameAttribute(NameOID.COMMON_NAME, text)]
    )
