"""A certificate authority of one's own, for owners who have no certificate: made once, in the state directory.

Decides that the authority vouches for this server alone (path length 0, kept where only the owner reads it), which names a
certificate is for (the address listened at, the machine's name, localhost), and that it is made anew, for 90 days, by a start that
finds less than 30 left or another name missing. Whoever trusts ``ca.pem`` need not be told.
"""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ouvrage.adapters.home import make_private
from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND

DIRECTORY = "tls"
CA = "ca.pem"
_CA_KEY, _CERTIFICATE, _KEY = "ca.key", "server.pem", "server.key"
_CA_DAYS, _DAYS, _RENEWED_BEFORE_DAYS = 3650, 90, 30

Name = x509.DNSName | x509.IPAddress


def own_certificate(state_dir: Path, host: str, now_us: int) -> tuple[Path, Path]:
    """The files of a certificate for this server and of its key, made where they are missing or nearly over."""
    directory = make_private(state_dir / DIRECTORY)
    now = datetime.fromtimestamp(now_us // SECOND, timezone.utc)
    names = _names(host)
    certificate, key = directory / _CERTIFICATE, directory / _KEY
    if not _serves(certificate, names, now):
        ca, ca_key = _authority(directory, now)
        own_key = ec.generate_private_key(ec.SECP256R1())
        made = _signed(own_key, names, ca, ca_key, now)
        _write(key, _key_text(own_key), 0o600)
        _write(certificate, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return certificate, key


def _names(host: str) -> list[Name]:
    names: list[Name] = [x509.DNSName("localhost")]
    machine = socket.gethostname()
    if machine.isascii() and machine != "localhost":
        names.append(x509.DNSName(machine))
    addresses = {"127.0.0.1", "::1"} | ({host} if host != "localhost" else set())
    return names + [x509.IPAddress(ip_address(each)) for each in sorted(addresses)]


def _serves(file: Path, names: list[Name], now: datetime) -> bool:
    """Whether the certificate there is for all these names, and for a while to come."""
    if not file.exists():
        return False
    found = _read_certificate(file)
    held = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    left = found.not_valid_after_utc - now
    return set(names) <= set(held) and left > timedelta(days=_RENEWED_BEFORE_DAYS)


def _authority(
    directory: Path, now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    file, key_file = directory / CA, directory / _CA_KEY
    if file.exists() and key_file.exists():
        key = serialization.load_pem_private_key(key_file.read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return _read_certificate(file), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Ouvrage on this machine")])
    made = (
        _begun(name, name, key, now, _CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(key_file, _key_text(key), 0o600)
    _write(file, made.public_bytes(serialization.Encoding.PEM), 0o644)
    return made, key


def _signed(
    key: ec.EllipticCurvePrivateKey,
    names: list[Name],
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Ouvrage server")])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _begun(subject, ca.subject, key, now, _DAYS)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _read_certificate(file: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except ValueError as error:
        raise OuvrageError(
            "tls/certificate",
            f"{file} holds no certificate that can be read",
            hint=f"remove {file.parent}; the next start makes new ones, and people trust its ca.pem anew",
        ) from error


def _write(file: Path, content: bytes, mode: int) -> None:
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    with open(
        os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb"
    ) as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    beside.replace(file)


def check_pair(certificate: Path, key: Path) -> None:
    """Raise ``OuvrageError`` ``tls/pair`` where two files are no certificate and its key."""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise OuvrageError(
            "tls/pair",
            f"{certificate} and {key} are no certificate and its key: {error}",
            hint="both as PEM; the certificate with its chain behind it",
        ) from error
